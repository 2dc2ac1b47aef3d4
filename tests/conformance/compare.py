#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Compares answers with recorded ones: compare.py ANSWERS [--device FILE] [--differences FILE]
-- COMMAND runs COMMAND, which prints a question, a tab and an answer per line. --device names
the answers of another device, where they are not those in ANSWERS. Answers that differ fail,
unless --differences lists the question with the other answer and a reason; a listed difference
that is gone fails as well.
"""

import argparse
import pathlib
import subprocess
import sys


def table(text, columns, name):
    """Rows by their first column; each key is unique, and each row has all columns."""
    rows = {}
    for line in text.splitlines():
        question, *fields = line.split("\t")
        if line and not line.startswith("#"):
            if len(fields) != columns - 1 or not all([question, *fields]):
                sys.exit(f"{name}: \"{line}\" has not {columns} columns")
            if question in rows:
                sys.exit(f"{name}: \"{question}\" is there twice")
            rows[question] = fields
    return rows


def read(path, columns):
    return table(pathlib.Path(path).read_text(encoding="utf-8"), columns, path) if path else {}


def complaints(recorded, got, differences):
    for question in sorted((differences.keys() | got.keys()) - recorded.keys()):
        yield f"\"{question}\" has no recorded answer: record it (README.md)"
    for question, (wanted,) in recorded.items():
        answer, listed = got.get(question, [None])[0], differences.get(question)
        if answer is None:
            yield f"\"{question}\" was not asked"
        elif listed is None and answer != wanted:
            yield f"\"{question}\": {answer}, but {wanted} is recorded"
        elif listed is not None and answer == wanted:
            yield f"\"{question}\": no difference any more; take it off the list"
        elif listed is not None and answer != listed[0]:
            yield f"\"{question}\": {answer}, but {listed[0]} is listed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers")
    parser.add_argument("--device")
    parser.add_argument("--differences")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    recorded, others = read(arguments.answers, 2), read(arguments.device, 2)
    for question, answer in others.items():
        if recorded.get(question, answer) == answer:
            sys.exit(f"{arguments.device}: \"{question}\": the other device was not asked, or answers the same")
    differences = read(arguments.differences, 3)
    done = subprocess.run(arguments.command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments.command)} ended with status {done.returncode}, "
                 f"after: {(done.stdout.splitlines() or ['nothing'])[-1]}")
    got = table(done.stdout, 2, "the answers")
    wrong = list(complaints(recorded | others, got, differences))
    print(*wrong, f"{len(got)} answers, {len(differences)} listed differences, {len(wrong)} complaints",
          sep="\n")
    return 1 if wrong or not recorded else 0


if __name__ == "__main__":
    sys.exit(main())
