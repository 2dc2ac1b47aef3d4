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
import subprocess
import sys


def table(lines, columns, name):
    """Rows by their first column; each key is unique, and each row has all columns."""
    rows = {}
    for line in lines:
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != columns or not all(fields):
            sys.exit(f"{name}: \"{line}\" has not {columns} columns")
        if fields[0] in rows:
            sys.exit(f"{name}: \"{fields[0]}\" is there twice")
        rows[fields[0]] = fields[1:]
    return rows


def read(path, columns):
    with open(path, encoding="utf-8") as file:
        return table(file.read().splitlines(), columns, path)


def of_device(recorded, others, path):
    """The recorded answers with those of another device in their places."""
    for question, answer in others.items():
        if recorded.get(question, answer) == answer:
            sys.exit(f"{path}: \"{question}\": the other device was not asked, or answers the same")
    return recorded | others


def complaints(recorded, got, differences):
    for question in differences.keys() - recorded.keys():
        yield f"\"{question}\" is listed as a difference, but it is no recorded question"
    for question in got.keys() - recorded.keys():
        yield f"\"{question}\" has no recorded answer: record it (README.md)"
    for question, (wanted,) in recorded.items():
        if question not in got:
            yield f"\"{question}\" was not asked"
            continue
        answer = got[question][0]
        listed = differences.get(question)
        if listed is None and answer != wanted:
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
    recorded = read(arguments.answers, 2)
    if arguments.device:
        recorded = of_device(recorded, read(arguments.device, 2), arguments.device)
    differences = read(arguments.differences, 3) if arguments.differences else {}
    done = subprocess.run(arguments.command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments.command)} ended with status {done.returncode}, "
                 f"after: {(done.stdout.splitlines() or ['nothing'])[-1]}")
    got = table(done.stdout.splitlines(), 2, "the answers")
    wrong = list(complaints(recorded, got, differences))
    for line in wrong:
        print(line)
    print(f"{len(got)} answers, {len(differences)} listed differences, {len(wrong)} complaints")
    return 1 if wrong or not recorded else 0


if __name__ == "__main__":
    sys.exit(main())
