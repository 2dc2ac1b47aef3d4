#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Shows that checks can fail: plants each fault of faults.tsv in a copy of the sources and runs the
check, which has to fail and to name the fault.

usage: run.py BUILD [WORD]    only the rows that contain WORD; CC: compiler of programs, with its options

The columns are the command of the check; the files to spoil; a regular expression, which each of them
contains; its replacement; and a regular expression for a line that the check prints. An empty
expression removes the file. Commands know $LIBRARY and $BUILD.
"""

import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent


def change(path, pattern, replacement):
    """Spoils a file; returns a function that repairs it."""
    old = path.read_text(encoding="utf-8") if path.exists() else None
    if not pattern:
        path.unlink()
    else:
        text, times = re.subn(pattern, replacement, old or "", count=1, flags=re.M)
        if not times or text == old:
            sys.exit(f"{path.name} has nothing like {pattern!r} to spoil: choose another place in faults.tsv")
        path.write_text(text, encoding="utf-8")
    return lambda: path.unlink() if old is None else path.write_text(old, encoding="utf-8")


def plant(copy, row, environment):
    """What becomes of one fault: "noticed", "SKIPPED" or "NOT NOTICED", and what the check said."""
    repairs = [change(copy / file, row["pattern"], row["replacement"]) for file in row["files"].split()]
    done = subprocess.run(["bash", "-c", row["check"]], cwd=copy, env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for repair in repairs:
        repair()
    said = next((line for line in done.stdout.splitlines() if re.search(row["complaint"], line)), None)
    if done.returncode == 77:
        return "SKIPPED", done.stdout.strip()
    return ("noticed", said) if done.returncode and said else ("NOT NOTICED", done.stdout.strip())


def plant_all(rows, environment):
    """One process's share, in a copy of its own."""
    results = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="librpma-spoiled-") as directory:
        copy = pathlib.Path(directory) / "copy"
        shutil.copytree(SOURCE, copy, symlinks=True, ignore=lambda folder, _: (
            ["build", ".git"] if folder == str(SOURCE) else []))
        for row in rows:
            result, said = plant(copy, row, environment)
            results[result] += 1
            print(f"{result}: {row['check']}: {row['files']}: {said}", flush=True)
    return results


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with open(SOURCE / "tests/spoiled/faults.tsv", encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)
                if len(sys.argv) < 3 or sys.argv[2] in "\t".join(row.values())]
    environment = {"CC": "cc", **os.environ, "BUILD": str(build),
                   "LIBRARY": str(build / "src/librpma.so.0"), "PYTHONDONTWRITEBYTECODE": "1"}
    shares = os.cpu_count() or 1
    with concurrent.futures.ProcessPoolExecutor(shares) as pool:
        results = sum(pool.map(plant_all, (rows[at::shares] for at in range(shares)),
                               [environment] * shares), collections.Counter())
    print(f"{len(rows)} faults: " + ", ".join(f"{count} {result}" for result, count in results.items()))
    sys.exit(1 if not rows or results["NOT NOTICED"] else 77 if results["SKIPPED"] else 0)


if __name__ == "__main__":
    main()
