# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Prints results as tables: medians with quartiles, and shares with their goals."""

import statistics

import measure

TIME_GOAL = 100 / 3  # percent of the original's time above the raw post
TIME_GOAL_CALLS = {"write", "read", "send", "flush"}
WHOLE_TIME_GOALS = {"poll": 90}  # percent of the original's time, loop and provider included
OURS, THEIRS = "librpma", "predecessor"


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 \
        else [values[0]] * 3


def spread(values, digits):
    """A median with its quartiles, as text."""
    low, middle, high = quartiles(values)
    if low == high:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def print_table(title, head, rows):
    """Aligns the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    print(f"\n{title}\n")
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  " + "   ".join(cells).rstrip())


def instruction_rows(counts):
    for row in measure.read_budget(measure.is_native(counts[OURS])):
        call, goal = row["call"], row["goal"]
        cells = [str(counts[name].get(call, "-")) for name in ("verbs", OURS, THEIRS)]
        if goal == "-":
            yield [call, *cells, "-", "-", "-"]
            continue
        share = measure.share(*(counts[name][call] for name in (OURS, THEIRS, "verbs")))
        yield [call, *cells, f"{share:.1f} %", f"{goal} %",
               "yes" if share <= float(goal) else "NO"]


def time_shares(times, call):
    """Returns one share per round, because the speed of the machine changes between rounds."""
    return [measure.share(ours, theirs, verbs) for ours, theirs, verbs in
            zip(times[OURS][call], times[THEIRS][call], times["verbs"][call])]


def time_rows(results):
    times = results["nanoseconds"]
    for call in times[OURS]:
        shares = time_shares(times, call)
        has_goal = call in TIME_GOAL_CALLS
        met = "yes" if quartiles(shares)[1] <= TIME_GOAL else "NO"
        yield [call, *(spread(times[name][call], 2) for name in ("verbs", OURS, THEIRS)),
               spread(shares, 0) + " %", "33 %" if has_goal else "-", met if has_goal else "-"]
    for call, goal in WHOLE_TIME_GOALS.items():
        shares = [100 * ours / theirs for ours, theirs in zip(times[OURS][call], times[THEIRS][call])]
        yield [f"{call}, of all time", "-", "-", "-", spread(shares, 0) + " %", f"{goal} %",
               "yes" if quartiles(shares)[1] <= goal else "NO"]


CALL_NAMES = {
    "flush": "flush (emulated)", "atomic_write": "atomic write", "poll": "poll, one completion",
    "poll_empty": "poll, empty queue", "native_flush": "native flush",
    "native_atomic_write": "native atomic write", "wait": "rpma_cq_wait()",
    "conn_wait": "rpma_conn_wait()", "message": "one side of a message and its echo",
    "refused": "write to a full queue, in the library",
    "refused_unlogged": "… with the log off, the whole call",
    "setup": "connection created and deleted, in the library",
    "setup_with_10000": "… with 10,000 others"}


def head(*names):
    """The head of a table in Markdown, whose columns are numbers except the first."""
    yield f"| {' | '.join(names)} |"
    yield f"| --- |{' ---: |' * (len(names) - 1)}"


def call_table(native):
    """The table of the instructions of calls, for builds with native operations or without."""
    yield from head("call", "verbs", "librpma", "packaged, Debian 12", "Debian 13",
                    "original 1.3.0" if native else "original 1.2.0", "above verbs, of the original's")
    for row in measure.read_budget(native):
        figures = [row[column] for column in ("verbs", *measure.LIBRARIES, "predecessor")]
        share = "-"
        if row["goal"] != "-":
            share = measure.share(int(row["budget"]), int(row["predecessor"]), int(row["verbs"]))
            share = f"{share:.0f} %"
        cells = [cell if cell == "-" else f"{int(cell):,}" for cell in figures]
        yield f"| {CALL_NAMES.get(row['call'], row['call'])} | {' | '.join(cells)} | {share} |"


METHODS = {"prepared": "prepared", "array": "array", "built": "built", "cleared": "built, struct cleared",
           "set": "set"}
GOAL_TEXTS = {
    "prepared_write_16": "prepared batch of 16 writes, a post", "sges_write_1": "write of 1 SGE, in a list",
    "sges_write_2": "write of 2 SGEs", "array_recv_16": "16 receives, rpma_recv_many()",
    "unlogged_write_1": "write that a full queue refuses, log off",
    "cleared_write_16": "built batch of 16 writes, struct cleared",
    "cleared_write_native_flush_16": "built batch of 16 writes and native flushes, struct cleared"}


def goal_table():
    """The table of the lists that have a goal, in the packages of Debian 12."""
    yield from head("list", "librpma", "goal", "met")
    budgets = {row["list"]: row for native in (True, False) for row in measure.read_budget(native, "batch-")}
    for name, text in GOAL_TEXTS.items():
        count, goal = int(budgets[name]["packaged"]), int(budgets[name]["goal"])
        yield f"| {text} | {count:,} | {goal:,} | {'yes' if count <= goal else 'no'} |"


def list_tables():
    """The tables of lists: name -> lines. An operation may be a pair, a write and its flush."""
    plain = {row["call"]: int(row["budget"]) for row in measure.read_budget(False)}
    counts = {native: {row["list"]: row for row in measure.read_budget(native, "batch-")}
              for native in (False, True)}

    def each(name, column="budget", native=False, digits=1):
        return f"{int(counts[native][name][column]) / measure.batch(name)[2]:,.{digits}f}"

    lists = [*head("operation", "length", "by hand", "librpma", "plain calls")]
    for what in ("write", "write_flush"):
        for method, name_of_method in METHODS.items():
            names = [name for name in counts[False] if name.startswith(f"{method}_{what}_")
                     and "native" not in name and measure.batch(name)[1] == what.split("_")]
            lists += [f"| {what.replace('_', ' + ')}, {name_of_method} | {measure.batch(name)[2]} | {each(name, 'verbs')} | "
                      f"{each(name)} | {sum(plain[call] for call in what.split('_'))} |" for name in names]
    kinds = [*head("operation", "plain call", "ready, alone", "ready, of 16", "built, of 16", "set, of 16")]
    for kind in ("write", "read", "send", "flush", "atomicwrite"):
        [call] = measure.batch(f"ready_{kind}_1")[1]
        kinds.append(f"| {call.replace('_', ' ')} | {plain[call]} | " + " | ".join(
            each(f"{method}_{kind}_{length}")
            for method, length in (("ready", 1), ("ready", 16), ("built", 16), ("set", 16))) + " |")
    methods = ("prepared", "built", "cleared", "array")
    native = [*head("write and native flush", "length", "by hand", *(METHODS[method] for method in methods))]
    for length in (1, 4, 16, 64):
        names = [f"{method}_write_native_flush_{length}" for method in methods]
        native.append(f"| a pair | {length} | {each(names[0], 'verbs', True)} | " +
                      " | ".join(each(name, native=True) if name in counts[True] else "-" for name in names) + " |")
    whole = [*head("call", "by hand", "librpma")]
    for text, name in (("write of 1 SGE, in a list", "sges_write_1"), ("write of 2 SGEs", "sges_write_2"),
                       ("write of 4 SGEs", "sges_write_4"), ("write of 8 SGEs", "sges_write_8"),
                       ("16 receives, rpma_recv_many()", "array_recv_16"),
                       ("remote atomic", "array_atomic_1"), ("4 remote atomics", "array_atomic_4"),
                       ("write that a full queue refuses", "refused_write_1"),
                       ("rpma_cq_take_event() and rpma_cq_arm()", "split_wait_1")):
        row = counts[False][name]
        whole.append(f"| {text} | {int(row['verbs']):,} | {int(row['budget']):,} |")
    return [lists, kinds, native, whole]


def driver_table():
    """The table of posts and polls over user-space drivers."""
    names = [column for driver in measure.DRIVERS
             for column in (f"lib{driver}: by hand", "librpma", "in librpma", f"in lib{driver}")]
    lines = [*head("operation", *names, "in libfabric")]
    texts = {"plain_write_16": "write", "prepared_write_16": "write, prepared batch of 16",
             "built_write_16": "write, built batch of 16", "poll_one_1": "poll, one completion",
             "poll_none_1": "poll, empty queue"}
    for row in measure.read_table(measure.HERE / "driver-budget.tsv"):
        length = int(row["list"].rpartition("_")[2])
        cells = [row[f"{driver} {column}"] for driver in measure.DRIVERS
                 for column in ("by hand", "all", "library", "driver")] + [row["libfabric"]]
        lines.append(f"| {texts[row['list']]} | " +
                     " | ".join(cell if cell == "-" else f"{int(cell) / length:,.1f}" for cell in cells) + " |")
    return lines


def print_tables(results):
    version = f"librpma0 {results['predecessor']}"
    print_table("Instructions of one call: loop, call, library and do-nothing provider; the "
                "share is what is above\nverbs, in percent of the original's",
                ["call", "verbs", OURS, version, "share", "goal", "met"],
                list(instruction_rows(results["instructions"])))
    rounds = len(next(iter(results["nanoseconds"][OURS].values())))
    print_table(f"Nanoseconds of one call, undisturbed: median and quartiles of {rounds} rounds; "
                "the share is of\nthe same round",
                ["call", "verbs", OURS, version, "share", "goal", "met"],
                list(time_rows(results)))
