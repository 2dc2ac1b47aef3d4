#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Plant each weakness of weaknesses.txt in the harness or in the fakes: the named unit test must fail.

The changed file is compiled and linked with the commands of the build directory, whose other objects are used.
A weakness whose text is no longer in its file, or that does not compile, is also an error.
"""

import argparse
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
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "simulator"))
from mistakes import plant, read_mistakes  # noqa: E402


class Build:
    def __init__(self, directory):
        self.directory = directory
        commands = json.loads((directory / "compile_commands.json").read_text(encoding="utf-8"))
        self.compile = {pathlib.Path(directory, one["file"]).resolve(): one for one in commands
                        if one["output"].startswith("tests/unit/lib")}

    def run(self, words):
        subprocess.run(words, cwd=self.directory, check=True)

    def compile_changed(self, file, changed):
        """Compile the changed copy of the file; returns the path of the original object."""
        command = self.compile[HERE / file]
        words = shlex.split(command["command"])
        words[words.index("-o") + 1] = f"{changed}.o"
        words[words.index("-MF") + 1] = words[words.index("-MQ") + 1] = f"{changed}.d"
        words[-1] = str(changed)
        self.run([*words, "-w", "-iquote", str((HERE / file).parent)])
        return command["output"]

    def link(self, target, output, change):
        """Link the target to `output`. `change` maps the words of its command to others."""
        text = subprocess.check_output(["ninja", "-C", self.directory, "-t", "commands", "-s", target], text=True)
        words = change(shlex.split(text.splitlines()[-1]))
        words[words.index("-o") + 1] = str(output)
        self.run(words)


def failure(weakness, build):
    """Return the first line in which the test reports a failure; empty if it passes or does not run."""
    name, file, test, edits = weakness
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary)
        changed = tree / pathlib.Path(file).name
        shutil.copy(HERE / file, changed)
        plant(tree, name, changed.name, edits)
        original = build.compile_changed(file, changed)
        program, environment = build.directory / "tests" / "unit" / f"unit-{test}", os.environ | {
            "LD_LIBRARY_PATH": f"{temporary}:{build.directory}/tests/unit:{build.directory}/src"}
        if file.startswith("harness/"):
            # The linker takes the definitions of this object, and not the archive's.
            program = tree / f"unit-{test}"
            build.link(f"tests/unit/unit-{test}", program,
                       lambda words: [word for part in words for word in (
                           [part, f"{changed}.o"] if part.endswith(f"{test}.c.o") else [part])])
        else:
            library = original.split("/")[2].removesuffix(".p")
            build.link(f"tests/unit/{library}", tree / library,
                       lambda words: [f"{changed}.o" if part == original else part for part in words])
        run = subprocess.run([program], cwd=build.directory, env=environment, capture_output=True, text=True, timeout=300)
        lines = [line for line in (run.stdout + run.stderr).splitlines() if line.startswith(("[  FAILED  ] ", "[  ERROR   ] "))]
        return lines[0] if run.returncode != 0 and lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="weaknesses whose names contain this")
    parser.add_argument("build", type=lambda path: Build(pathlib.Path(path).resolve()))
    options = parser.parse_args()
    for test in {one[2] for one in read_mistakes(HERE / "weaknesses.txt")}:
        subprocess.run([options.build.directory / "tests" / "unit" / f"unit-{test}"], check=True, capture_output=True)
    weaknesses = [one for one in read_mistakes(HERE / "weaknesses.txt") if options.only in one[0]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = []
        for (name, _, test, _), line in zip(weaknesses, pool.map(lambda one: failure(one, options.build), weaknesses)):
            print(f"{name}: {test}: {line or 'PASSES'}", flush=True)
            found.append(line)
    print(f"{sum(map(bool, found))} of {len(weaknesses)} weaknesses were found")
    return 0 if weaknesses and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
