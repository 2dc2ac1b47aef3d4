#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Compares results with recorded ones: compare.py RECORD [--device FILE] -- COMMAND runs COMMAND,
which prints a line per case: its name, a tab, its result. FILE has the results of another device
that differ from RECORD. A recorded result may be several ones, separated by " | ". Fails if a result differs from the recorded one.
"""

import argparse
import pathlib
import subprocess
import sys


def table(text, name):
    """Return the results by the names of the cases, which are unique."""
    rows = {}
    for line in text.splitlines():
        case, *fields = line.split("\t")
        if line and not line.startswith("#"):
            if len(fields) != 1 or not all([case, *fields]):
                sys.exit(f"{name}: \"{line}\" does not have 2 columns")
            if case in rows:
                sys.exit(f"{name}: \"{case}\" occurs twice")
            rows[case] = fields[0]
    return rows


def read(path):
    return table(pathlib.Path(path).read_text(encoding="utf-8"), path) if path else {}


def overlay(recorded, path):
    """Return the results with those of FILE, which differ."""
    others = read(path)
    for case, result in others.items():
        if recorded.get(case, result) == result:
            sys.exit(f"{path}: \"{case}\" is missing in the record, or has the same result there")
    return recorded | others


def differences(recorded, got):
    for case in sorted(got.keys() - recorded.keys()):
        yield f"\"{case}\" has no recorded result: record it (README.md)"
    for case, expected in recorded.items():
        if case not in got:
            yield f"\"{case}\" has no result"
        elif got[case] not in expected.split(" | "):
            yield f"\"{case}\": {got[case]}, but {expected} is recorded"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record")
    parser.add_argument("--device")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    recorded = overlay(read(arguments.record), arguments.device)
    done = subprocess.run(arguments.command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:  # the command has printed the reason to standard error
        return 77
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments.command)} ended with status {done.returncode}, "
                 f"after: {(done.stdout.splitlines() or ['nothing'])[-1]}")
    got = table(done.stdout, "the output")
    wrong = list(differences(recorded, got))
    print(*wrong, f"{len(got)} results, {len(wrong)} differences", sep="\n")
    return 1 if wrong or not recorded else 0


if __name__ == "__main__":
    sys.exit(main())
