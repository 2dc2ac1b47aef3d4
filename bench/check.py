#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the library against its budgets, bench/*.tsv, and the tables of docs/performance.md against the budgets.

Counts instructions, calls and bytes, which do not depend on the load of the machine. Exits with 0, with 1
(prints one line per fault) or with 77 (skipped: prints the reason).
"""

import argparse
import itertools
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True

import measure
import tables

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"


# A budget is a measured value. A plain call must take exactly this number of instructions; a list
# or a failing call may take fewer instructions, by up to this share.
SLACK = 0.01
NOT_EXACT = {"refused", "refused_unlogged", "setup", "setup_with_10000"}
# KiB of the packaged library in the memory of a program that has loaded it and called nothing.
RESIDENT_KIB = 114
STARTS = 21


def all_builds(build, program, by_hand):
    """Column of the budgets -> call -> instructions, with the library of the column, or of the loops in verbs."""
    subjects = {column: (program, library) for column, library in measure.LIBRARIES.items()}
    subjects["verbs"] = by_hand, "src"
    return {column: measure.Subject(column, build, name, build / library).instructions()
            for column, (name, library) in subjects.items()}


def off_budget(name, row, ours, slack):
    """Yields a fault for each count, of any build, that exceeds its budget or is below it by more than slack."""
    for column, counts in ours.items():
        if name not in counts:
            continue
        budget = int(row[column])
        if not budget * (1 - slack) <= counts[name] <= budget:
            yield (f"{name} takes {counts[name]} instructions, the budget is {row[column]} "
                   f"(column {column}); --write corrects all")


def write_budget(native, kind, ours):
    """Writes the counts into the columns of this build: with native operations, or without."""
    path = measure.HERE / f"{kind}budget.tsv"
    lines = path.read_text().splitlines()
    names = next(line for line in lines if not line.startswith("#")).split("\t")
    for number, line in enumerate(lines):
        cells = line.split("\t")
        if line.startswith("#") or cells[0] not in ours["budget"]:
            continue
        for column, counts in ours.items():
            cells[names.index(f"native {column}" if native else column)] = str(counts.get(cells[0], "-"))
        lines[number] = "\t".join(cells)
    path.write_text("\n".join(lines) + "\n")


def check_calls(build, write):
    """Checks the instructions of each call against its budget, and their share above verbs against the goal."""
    ours = all_builds(build, "calls-rpma", "calls-verbs")
    verbs = ours["verbs"]
    native = measure.is_native(ours["budget"])
    if write:
        write_budget(native, "", ours)
    rows = measure.read_budget(native)
    if {row["call"] for row in rows} != set(ours["budget"]):
        yield f"the budget has other calls than calls-rpma: {' '.join(ours['budget'])}"
        return
    for row in rows:
        call = row["call"]
        print(f"{call}:", ", ".join(f"{counts[call]} of {row[column]} ({column})"
                                    for column, counts in ours.items() if call in counts))
        yield from off_budget(call, row, ours, SLACK if call in NOT_EXACT else 0)
        if row["goal"] == "-":
            continue
        share = measure.share(ours["budget"][call], int(row["predecessor"]), verbs[call])
        print(f"{call}: above verbs {share:.0f} % of the original, goal {row['goal']} %")
        if share > float(row["goal"]):
            yield f"{call} is {share:.1f} % above verbs, the goal is {row['goal']} %"


def check_growth(counts):
    """Checks that an operation costs no more in a longer list."""
    lengths = {}
    for name in counts:
        lengths.setdefault(name.rpartition("_")[0], []).append(measure.batch(name)[2])
    for what, sizes in lengths.items():
        if len(sizes) < 3:
            continue
        small, middle, large = sizes[-3:]
        first, second = ((counts[f"{what}_{end}"] - counts[f"{what}_{begin}"]) / (end - begin)
                         for begin, end in ((small, middle), (middle, large)))
        if what.startswith("array"):  # after 16 operations rpma_post() calls the provider again
            first = counts[f"{what}_{middle}"] / middle
        if second > first * 1.01:
            yield f"{what}: an operation costs more in longer lists"


def check_batches(build, write):
    """Checks the instructions of each list against its budget."""
    ours = all_builds(build, "batches-rpma", "batches-verbs")
    plain = measure.Subject("librpma", build, "calls-rpma", build / "src").instructions()
    if write:
        write_budget(measure.is_native(plain), "batch-", ours)
    rows = {row["list"]: row for row in measure.read_budget(measure.is_native(plain), "batch-")}
    if set(rows) != set(ours["budget"]):
        yield f"the budget has other lists than batches-rpma: {' '.join(ours['budget'])}"
        return
    for name, count in ours["budget"].items():
        _, what, length = measure.batch(name)
        calls = sum(plain[call] for call in what)
        print(f"{name}:", ", ".join(f"{counts[name]} of {rows[name][column]} ({column})"
                                    for column, counts in ours.items()) +
              f"; an operation {count / length:.2f}, by hand {ours['verbs'][name] / length:.2f}, "
              f"by plain calls {calls}, goal {rows[name]['goal']}")
        yield from off_budget(name, rows[name], ours, SLACK)
    yield from check_growth(ours["budget"])


def driver_counts(build):
    """Row of the budget of drivers -> column -> instructions."""
    rows = {}
    for name in measure.DRIVERS:
        with tempfile.TemporaryDirectory(prefix="librpma-drivers-") as directory:
            counts = measure.Driver(name, build, pathlib.Path(directory)).columns(measure.LIBRARY, 40)
        for loop, by_column in counts.items():
            row = rows.setdefault(loop.removesuffix("_by_hand"), {})
            if loop.endswith("_by_hand"):
                row[f"{name} by hand"], row[f"{name} driver by hand"] = by_column["all"], by_column["driver"]
            else:
                row |= {f"{name} {column}": count for column, count in by_column.items()}
    with tempfile.TemporaryDirectory(prefix="librpma-drivers-") as directory:
        other = measure.Driver("mlx5", build, pathlib.Path(directory), "calls-libfabric")
        other = other.columns("libfabric.so", 8, slack=2)  # one poll of many takes 2 more
    for loop, row in rows.items():
        row["libfabric"] = other[loop]["library"] if loop in other else "-"
    return rows


def check_drivers(build, write):
    """Checks the instructions of posts and polls over user-space drivers against their budget."""
    path = HERE / "driver-budget.tsv"
    ours = driver_counts(build)
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    columns = [column for column in next(iter(ours.values())) if not column.endswith("driver by hand")]
    if write:
        lines = ["\t".join(["list", *columns])]
        lines += ["\t".join([name, *(str(row[column]) for column in columns)]) for name, row in ours.items()]
        path.write_text("\n".join(comments + lines) + "\n")
    budget = {row.pop("list"): row for row in measure.read_table(path)}
    if set(budget) != set(ours):
        yield f"the budget has other lists than calls-drivers: {' '.join(ours)}"
        return
    for name, row in ours.items():
        print(f"{name}:", ", ".join(f"{row[column]} of {budget[name][column]} ({column})" for column in columns))
        yield from (f"{name} takes {row[column]} instructions, the budget is {budget[name][column]} (column {column}); "
                    f"--write corrects all" for column in columns if str(row[column]) != budget[name][column])
        yield from (f"{name}: the instructions of the driver {driver} depend on its caller"
                    for driver in measure.DRIVERS if row[f"{driver} driver"] != row[f"{driver} driver by hand"])


def check_cpp(build, _):
    """Checks that no call takes more instructions through librpma.hpp than in C."""
    counts = {program: measure.Subject("librpma", build, program, build / "src").instructions()
              for program in ("calls-rpma", "batches-rpma", "calls-cpp")}
    ours = counts.pop("calls-cpp")
    in_c = {name: count for each in counts.values() for name, count in each.items()}
    in_c |= {name.removesuffix("_in_c"): ours.pop(name) for name in list(ours)
             if name.endswith("_in_c")}
    for name, count in ours.items():
        if name not in in_c:
            yield f"no program in C has the loop {name}"
            continue
        print(f"{name}: {count}, in C {in_c[name]}")
        if count > in_c[name]:
            yield f"{name} takes {count} instructions through librpma.hpp, {in_c[name]} in C"


def check_connection(build, _):
    """Checks the costs of a connection against their budget."""
    ours = measure.Subject("librpma", build, "connection", build / "src").connection()
    for row in measure.read_table(HERE / "connection.tsv"):
        figure, budget = row["figure"], int(row["budget"])
        if figure not in ours:
            yield f"the program prints no '{figure}'"
            continue
        print(f"{figure}: {ours[figure]}, budget {budget}, the original {row['predecessor']}")
        if ours[figure] > budget:
            yield f"{figure} is {ours[figure]}, the budget is {budget}"


def resident_kib(library):
    """KiB of a library in the memory of one program that has loaded it."""
    maps = measure.run(["cat", "/proc/self/smaps"], {**os.environ, "LD_PRELOAD": str(library)})
    return sum(int(kib) for kib in re.findall(rf"{library.name}\n(?:\w+: .*\n)*?Rss: +(\d+) kB", maps))


def check_size(build, _):
    """Checks that loading the library maps few of its pages."""
    with tempfile.TemporaryDirectory(prefix="librpma-size-", dir=build) as directory:
        library = shutil.copy(build / measure.LIBRARIES["packaged"] / measure.LIBRARY, directory)
        # Linux maps a file that was just written in larger blocks than a file that it has read from
        # the disk.
        with open(library, "rb+") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        kib = statistics.median(resident_kib(pathlib.Path(library)) for _ in range(STARTS))
    print(f"resident after loading: {kib} KiB of {RESIDENT_KIB}")
    if not 0 < kib <= RESIDENT_KIB:
        yield f"a program that loads the library has {kib} KiB of it in memory, the budget is {RESIDENT_KIB}"


def check_tables(_, write):
    """Checks that the tables of docs/performance.md show the budgets."""
    path = DOCS / "performance.md"
    page = path.read_text().splitlines()
    for table in (tables.call_table(False), tables.call_table(True), *tables.list_tables(), tables.goal_table(),
                  tables.driver_table()):
        expected = list(table)
        if expected[0] not in page:
            yield f"performance.md has no table with the head {expected[0]}"
            continue
        begin = page.index(expected[0])
        shown = list(itertools.takewhile(lambda line: line.startswith("|"), page[begin:]))
        if write:
            page[begin:begin + len(shown)] = expected
        elif shown != expected:
            yield from (f"performance.md: '{line}' should be '{right}'; --write corrects all" for line, right
                        in itertools.zip_longest(shown, expected, fillvalue="no line") if line != right)
        print(f"{len(expected)} lines: {expected[0]}")
    if write:
        path.write_text("\n".join(page) + "\n")


CHECKS = {"calls": check_calls, "batches": check_batches, "drivers": check_drivers, "cpp": check_cpp,
          "connection": check_connection, "size": check_size,
          "tables": check_tables}


def main():
    parser = argparse.ArgumentParser(description="check librpma against its budgets")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build directory")
    parser.add_argument("--skip", metavar="WHY", help="do not check; print this reason")
    parser.add_argument("--write", action="store_true", help="write the counts of calls, batches or drivers as the budget, or tables into the page")
    parser.add_argument("what", choices=CHECKS)
    arguments = parser.parse_args()
    try:
        if arguments.skip:
            raise measure.Missing(arguments.skip)
        faults = list(CHECKS[arguments.what](arguments.build.resolve(), arguments.write))
    except measure.Missing as missing:
        print(f"bench {arguments.what}: SKIPPED, {missing}: nothing was checked")
        return measure.SKIPPED
    except measure.Failed as failed:
        faults = [str(failed)]
    for fault in faults:
        print(f"bench {arguments.what}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
