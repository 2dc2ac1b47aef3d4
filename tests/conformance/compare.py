#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Compares answers with recorded ones: compare.py ANSWERS [--device FILE] -- COMMAND runs
COMMAND, which prints a question, a tab and an answer per line. --device names the answers of
another device, where they are not those in ANSWERS. Answers that differ fail.
"""

import argparse
import pathlib
import subprocess
import sys


def table(text, name):
    """Answers by their questions; each question is unique."""
    rows = {}
    for line in text.splitlines():
        question, *fields = line.split("\t")
        if line and not line.startswith("#"):
            if len(fields) != 1 or not all([question, *fields]):
                sys.exit(f"{name}: \"{line}\" has not 2 columns")
            if question in rows:
                sys.exit(f"{name}: \"{question}\" is there twice")
            rows[question] = fields[0]
    return rows


def read(path):
    return table(pathlib.Path(path).read_text(encoding="utf-8"), path) if path else {}


def complaints(recorded, got):
    for question in sorted(got.keys() - recorded.keys()):
        yield f"\"{question}\" has no recorded answer: record it (README.md)"
    for question, wanted in recorded.items():
        if question not in got:
            yield f"\"{question}\" was not asked"
        elif got[question] != wanted:
            yield f"\"{question}\": {got[question]}, but {wanted} is recorded"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers")
    parser.add_argument("--device")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    recorded, others = read(arguments.answers), read(arguments.device)
    for question, answer in others.items():
        if recorded.get(question, answer) == answer:
            sys.exit(f"{arguments.device}: \"{question}\": the other device was not asked, or answers the same")
    done = subprocess.run(arguments.command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments.command)} ended with status {done.returncode}, "
                 f"after: {(done.stdout.splitlines() or ['nothing'])[-1]}")
    got = table(done.stdout, "the answers")
    wrong = list(complaints(recorded | others, got))
    print(*wrong, f"{len(got)} answers, {len(wrong)} complaints", sep="\n")
    return 1 if wrong or not recorded else 0


if __name__ == "__main__":
    sys.exit(main())
