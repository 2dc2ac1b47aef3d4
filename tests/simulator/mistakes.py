# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Plants one mistake after another in the examples: the simulator has to find each of them.

mistakes.txt names them. A mistake whose text is no longer in its file is an error, as is one that
is not found: then the simulator, or a configuration, has become too weak. Each schedule that
found a mistake is run again from its file, and must find the same.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def read_mistakes(path):
    """Blocks as the head of mistakes.txt describes them."""
    mistakes = []
    for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
        head, body = block.split("\n", 1)
        name, file, configuration = (field.strip() for field in head.split("|"))
        edits = re.findall(r"^<<<\n(.*?)^===\n(.*?)^>>>\n", body, flags=re.M | re.S)
        mistakes.append((name, file, configuration, edits))
    return mistakes


def plant(tree, name, file, edits):
    path = tree / file
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        if text.count(old) != 1:
            sys.exit(f"mistakes.py: '{name}': this is {text.count(old)} times in {file}, not once"
                     f"; adapt tests/simulator/mistakes.txt:\n{old}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def build(tree, directory, file, options):
    """The modules that contain the file; the other modules come from the build."""
    for module in options.module:
        name, sources = module.split("=")
        target = directory / (name + ".so")
        if file not in sources.split(","):
            target.symlink_to(pathlib.Path(options.modules) / target.name)
            continue
        # The compiler may have a prefix, such as ccache: nothing can stand between it and its options.
        subprocess.run([*options.compiler, "-std=c99", "-O2", "-fPIC", "-shared", "-w",
                        "-I", options.include, "-I", tree / "common", "-o", target,
                        *[tree / source for source in sources.split(",")]], check=True)


def look_for(mistake, options):
    name, file, configuration, edits = mistake
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        tree = directory / "examples"
        shutil.copytree(options.examples, tree)
        plant(tree, name, file, edits)
        build(tree, directory, file, options)
        run = [options.simulator, "--modules", directory]
        saved = directory / "schedule"
        configuration, *how = configuration.split()
        scripted = bool(how) and how[0].endswith(".txt")
        run += ["--script", HERE / how[0]] if scripted else []
        amount = [] if scripted else ["--random", str(options.schedules)]
        amount += ["--kinds", *how] if how and not scripted else []
        found = subprocess.run([*run, *amount, "--save", saved, "--shorten", "200", configuration],
                               capture_output=True, text=True)
        finding = re.search(r"^(.*): FOUND: (.*)$", found.stdout, flags=re.M)
        if not finding:
            return name, False, f"NOT FOUND in {options.schedules} of {configuration}\n{found.stderr}"
        again = subprocess.run([*run, "--replay", saved], capture_output=True, text=True)
        if again.returncode != 1 or f"FOUND: {finding[2]}" not in again.stdout:
            return name, False, "found, but not again when it was replayed"
    return name, True, f"{finding[1]}, {time.monotonic() - begin:.1f} s: {finding[2]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulator", required=True)
    parser.add_argument("--examples", required=True, help="directory of their sources")
    parser.add_argument("--modules", required=True, help="directory of the modules")
    parser.add_argument("--include", required=True, help="directory of librpma.h")
    parser.add_argument("--schedules", type=int, default=20000)
    parser.add_argument("--only", default="", help="mistakes whose names contain this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("module", nargs="+", help="NAME=SOURCE,SOURCE…")
    arguments = sys.argv[1:]
    split = arguments.index("--")
    options = parser.parse_args(arguments[:split])
    options.compiler = arguments[split + 1:]
    mistakes = [m for m in read_mistakes(HERE / "mistakes.txt") if options.only in m[0]]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, good, text in pool.map(lambda m: look_for(m, options), mistakes):
            print(f"{name}: {text}", flush=True)
            missed += not good
    print(f"{len(mistakes) - missed} of {len(mistakes)} mistakes were found")
    return 1 if missed or not mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
