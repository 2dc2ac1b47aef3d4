#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Plant each weakness of a table in the harness and the fakes, or in the model: a test that it names must fail.

The changed file is compiled and linked with the commands of the build directory, whose other objects are used.
A weakness whose text is no longer in its file, or that does not compile, is also an error.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SIM = HERE.parents[1] / "sim"
# The folder of the files, how their objects begin, the path of a test's program, and its environment.
Table = collections.namedtuple("Table", "path folder objects test environment")
TABLES = {
    "unit": Table(HERE / "weaknesses.txt", HERE, "tests/unit/lib", "tests/unit/unit-{}",
                  lambda changed, build: {"LD_LIBRARY_PATH": f"{changed}:{build}/tests/unit:{build}/src"}),
    "model": Table(SIM / "tests" / "model" / "weaknesses.txt", SIM, "subprojects/rdma-sim/libsim-", "subprojects/rdma-sim/tests/{}",
                   lambda _, build: {"LD_LIBRARY_PATH": str(build / "subprojects" / "rdma-sim")}),
}
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "durability"))
from mistakes import plant, read_mistakes  # noqa: E402


class Build:
    def __init__(self, directory):
        self.directory = directory
        commands = json.loads((directory / "compile_commands.json").read_text(encoding="utf-8"))
        self.commands = [(pathlib.Path(directory, one["file"]).resolve(), one) for one in commands]

    def run(self, words):
        subprocess.run(words, cwd=self.directory, check=True)

    def compile_changed(self, source, changed, objects):
        """Compile the changed copy of the source; returns the path of the original object."""
        command = next(one for file, one in self.commands if file == source and one["output"].startswith(objects))
        words = [word for word in shlex.split(command["command"]) if word != "ccache"]
        words[words.index("-o") + 1] = f"{changed}.o"
        words[words.index("-MF") + 1] = words[words.index("-MQ") + 1] = f"{changed}.d"
        words[-1] = str(changed)
        self.run([*words, "-O0", "-w", "-iquote", str(source.parent)])
        return command["output"]

    def link(self, target, output, change):
        """Link the target to `output`. `change` maps the words of its command to others."""
        text = subprocess.check_output(["ninja", "-C", self.directory, "-t", "commands", "-s", target], text=True)
        words = change(shlex.split(text.splitlines()[-1]))
        words[words.index("-o") + 1] = str(output)
        self.run(words)


def program_with(build, target, original, changed, tree):
    """Return the program of a test that uses the changed object."""
    library = original.split(".p/")[0]
    if library.endswith(".a") or "harness" in library:
        # The linker takes the definitions of this object, and not the archive's.
        program = tree / pathlib.Path(target).name
        build.link(target, program, lambda words: [*words[:3], f"{changed}.o", *words[3:]])
        return program
    build.link(library, tree / pathlib.Path(library).name,
               lambda words: [f"{changed}.o" if part == original else part for part in words])
    return build.directory / target


def failure(weakness, table, build):
    """Return the first test that reports a failure, with its line; empty if all pass or do not run."""
    name, file, tests, edits = weakness
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary)
        source, changed = table.folder / file, tree / pathlib.Path(file).name
        shutil.copy(source, changed)
        plant(tree, name, changed.name, edits)
        original = build.compile_changed(source, changed, table.objects)
        environment = os.environ | table.environment(temporary, build.directory)
        for test in tests.split():
            program = program_with(build, table.test.format(test), original, changed, tree)
            run = subprocess.run([program], cwd=build.directory, env=environment, capture_output=True, text=True, timeout=300)
            lines = [line for line in (run.stdout + run.stderr).splitlines() if line.startswith(("[  FAILED  ] ", "[  ERROR   ] "))]
            if run.returncode < 0:
                lines.append(f"ended by signal {-run.returncode}")
            if run.returncode != 0 and lines:
                return f"{test}: {lines[0]}"
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="weaknesses whose names contain this")
    parser.add_argument("--table", choices=TABLES, default="unit", help="unit: harness and fakes; model: that of rdma-sim")
    parser.add_argument("--file", type=pathlib.Path, help="another list of weaknesses of the same folder")
    parser.add_argument("build", type=lambda path: Build(pathlib.Path(path).resolve()))
    options = parser.parse_args()
    table = TABLES[options.table]
    weaknesses = [one for one in read_mistakes(options.file or table.path) if options.only in one[0]]
    for test in {test for one in weaknesses for test in one[2].split()}:
        subprocess.run([options.build.directory / table.test.format(test)], cwd=options.build.directory, check=True, capture_output=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = []
        for weakness, line in zip(weaknesses, pool.map(lambda one: failure(one, table, options.build), weaknesses)):
            print(f"{weakness[0]}: {line or 'PASSES: ' + weakness[2]}", flush=True)
            found.append(line)
    print(f"{sum(map(bool, found))} of {len(weaknesses)} weaknesses were found")
    return 0 if weaknesses and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
