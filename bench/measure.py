# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs the programs of bench/ with a library and parses their output."""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sim/tests/drivers"))
import ask

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77  # exit status of a measurement that cannot run here
COUNTED_CALLS = 1024
LENGTHS = 3  # each loop is counted 0, 1, 2 and 3 times COUNTED_CALLS long
MARKS = LENGTHS + 1
# The libraries that have budgets: that of the build, and those built as in Debian 12 and 13.
LIBRARIES = {"budget": "src", "packaged": "bench/packaged", "packaged13": "bench/packaged13"}
# In these loops only librpma's own instructions are counted: those of the C library depend on the
# alignment of the stack, and so on the size of the environment.
IN_LIBRARY = {"refused", "setup", "setup_with_10000"}
LIBRARY = "librpma.so.0"
# The user-space drivers that have budgets, and the version of rdma-core that these hold for.
DRIVERS, RDMA_CORE = ("mlx5", "irdma"), "44"


class Missing(Exception):
    """A tool that a measurement needs is missing."""


class Failed(Exception):
    """A measurement failed; the text has the reason."""


def read_table(path):
    """The rows of a table: tab-separated; the first line that is not a comment has the names."""
    lines = [line.split("\t") for line in path.read_text().splitlines()
             if line and not line.startswith("#")]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def read_budget(native, kind=""):
    """The budget of builds with native operations or without; with kind "batch-", the budget of lists."""
    rows = read_table(HERE / f"{kind}budget.tsv")
    for row in rows:
        for column in [column for column in row if column.startswith("native ")]:
            value = row.pop(column)
            if native:
                row[column.removeprefix("native ")] = value
    return [row for row in rows if row["budget"] != "-"]


def is_native(counts):
    """Returns whether calls-rpma, which counted these calls, was built with native operations."""
    return "native_flush" in counts


def batch(name):
    """Posting method, plain calls of one operation and length of a loop over lists, from its name."""
    method, *what, length = name.split("_")
    calls = {"write": ["write"], "recv": ["recv"], "wait": ["wait"], "atomic": ["write"], "read": ["read"],
             "send": ["send"], "flush": ["flush"], "atomicwrite": ["atomic_write"],
             "write flush": ["write", "flush"],
             "write native flush": ["write", "native_flush"]}
    return method, calls[" ".join(what)], int(length)


def run(command, environment=None, directory=None):
    """Returns the standard output of a command, which must succeed."""
    done = subprocess.run(command, env=environment, cwd=directory, check=False,
                          capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failed(f"{pathlib.Path(command[0]).name} ended with {done.returncode}: {last}")
    return done.stdout


class Subject:
    """One subject of a comparison: a program of the build with a library, over the do-nothing provider."""

    def __init__(self, name, build, program, library):
        self.name = name
        self.program = build / "bench" / program
        path = f"{build / 'bench' / 'provider'}:{library}"
        self.environment = {**os.environ, "LD_LIBRARY_PATH": path, "LD_BIND_NOW": "1"}

    def counts(self, read, calls=COUNTED_CALLS):
        """Loop -> what read() returns for each of its lengths, a part of callgrind's output."""
        if not shutil.which("valgrind"):
            raise Missing("valgrind is not installed: apt-get install valgrind")
        with tempfile.TemporaryDirectory(prefix="librpma-bench-") as directory:
            output = pathlib.Path(directory) / "callgrind"
            names = run(["valgrind", "--tool=callgrind", "--dump-before=mark",
                         f"--callgrind-out-file={output}", self.program, "count",
                         str(calls)], self.environment, directory).split()
            return {name: [read(name, pathlib.Path(f"{output}.{part + 1}"))
                           for part in range(MARKS * number + 1, MARKS * (number + 1))]
                    for number, name in enumerate(names)}

    def instructions(self):
        """Instructions of one call for each loop, including the loop and the provider."""
        return {name: per_call(name, lengths) for name, lengths in self.counts(read_count).items()}

    def nanoseconds(self, calls):
        """Nanoseconds of one call for each loop, in one run of the program."""
        return {name: float(value) for name, value in
                (line.split("\t") for line in
                 run([self.program, "time", str(calls)], self.environment).splitlines())}

    def connection(self):
        """The cost of one more connection: "side figure" -> number, or the list of calls."""
        figures = {}
        for line in run([self.program], self.environment).splitlines():
            side, figure, value = line.split("\t")
            if not figure.endswith("list"):
                figures[f"{side} {figure}"] = int(value)
                continue
            calls = value.split()
            figures[f"{side} {figure.replace('list', 'calls')}"] = len(calls)
            figures[f"{side} {figure}"] = calls
            if figure == "connect list":
                figures[f"{side} registrations"] = calls.count("ibv_reg_mr")
        return figures


class Driver(Subject):
    """A program over a user-space driver of the machine and the stub of its kernel, with the library of the build."""

    def __init__(self, name, build, directory, program="calls-drivers"):
        super().__init__(name, build, program, build / "src")
        if not self.program.exists():
            raise Missing("libfabric 1.17.0 was not found when this directory was configured: "
                          "apt-get install libfabric-dev")
        tests = build / "subprojects/rdma-sim/tests/drivers"
        try:
            version = ask.find_driver(name, tests / "questions").parent.name
        except SystemExit as without:
            raise Missing(f"the driver {name} cannot run") from without
        if version != RDMA_CORE:
            raise Missing(f"the budget is for rdma-core {RDMA_CORE}, not {version}")
        ask.make_sysfs(directory, name)
        self.environment |= {"LD_LIBRARY_PATH": str(build / "src"), "LD_PRELOAD": str(tests / "libdriver-stub.so"),
                             "STUB_DRIVER": name, "SYSFS_PATH": str(directory)}

    def columns(self, library, calls, slack=0):
        """Loop -> instructions of one call: of all, of the library, of the driver. calls: COUNTED of the program."""
        def of_objects(length, prefix):
            return sum(count for binary, count in length.items() if binary.startswith(prefix))

        lengths = self.counts(lambda _, part: own_instructions(part), calls)
        return {name: {column: per_call(name, [of_objects(length, prefix) for length in parts], calls, slack)
                       for column, prefix in (("all", ""), ("library", library), ("driver", f"lib{self.name}"))}
                for name, parts in lengths.items()}


def read_total(part):
    """The instructions of one part of callgrind's output."""
    found = re.search(r"^totals: (\d+)$", part.read_text(), re.MULTILINE)
    if not found:
        raise Failed(f"callgrind wrote no total into {part.name}: valgrind may be too old")
    return int(found.group(1))


def own_instructions(part):
    """Object -> instructions of its own functions, in one part of callgrind's output."""
    names, counts = {}, collections.Counter()
    current, is_call = None, False
    for line in part.read_text().splitlines():
        match = re.match(r"(c?ob)=(\(\d+\))(?: (.*))?$", line)
        if match:
            kind, number, name = match.groups()
            if name:
                names[number] = pathlib.Path(name).name
            if kind == "ob":
                current = names[number]
        elif line.startswith("calls="):
            is_call = True  # the next line has the instructions of the callee
        elif re.match(r"[+\-*0-9]", line):
            if not is_call:
                counts[current] += int(line.split()[1])
            is_call = False
    if read_total(part) != sum(counts.values()):
        raise Failed(f"the objects in {part.name} do not add up to callgrind's total")
    return counts


def read_count(name, part):
    """The instructions of a loop in one part of callgrind's output."""
    if name not in IN_LIBRARY:
        return read_total(part)
    counts = own_instructions(part)
    return sum(count for binary, count in counts.items() if binary.startswith(LIBRARY))


def per_call(name, lengths, calls=COUNTED_CALLS, slack=0):
    """Each step in length adds the same number of calls, and must add as many instructions, except for slack."""
    first, second = sorted(after - before for before, after in zip(lengths, lengths[1:]))
    if second - first > slack:
        raise Failed(f"{name}: {calls} calls took {first} instructions, then {second}: "
                     "the count is not reproducible")
    return -(-first // calls)  # rounded up: only some waits acknowledge events


def share(ours, predecessor, verbs):
    """The overhead of librpma above the call of verbs, in percent of the original's overhead."""
    return 100 * (ours - verbs) / (predecessor - verbs)
