#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Fail for each row of contract/errors.tsv, and each cause that it names, that no test exercised.

usage: exercised.py [--native WHAT]... NOTES_DIRECTORY EXECUTABLE...

The unit tests write notes at run time: which row a test provoked, by which cause and errno. lines.py
writes the notes of unit-script. WHAT is "flush" or "atomic_write": operations that this build has natively.
"""
import argparse
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "contract"))

from errors import read_errors

PROVIDER_CALL = re.compile(r"\b(?:ibv|rdma)_\w+\(\)")
ERRNO_SET = re.compile(r"\b(not )?in \{([A-Z0-9, ]+)\}")
# Functions and first words of conditions that need native flushes: a connection that requires
# them, and a flush that was added as a native one, whose range is checked only if it becomes
# an emulated one.
NATIVE_ONLY = [("rpma_", "the flush mode is RPMA_FLUSH_MODE_NATIVE &&"),
               ("rpma_batch_post", "remote_offset >= size of the remote region")]
SAME_ERRNO = {"EWOULDBLOCK": "EAGAIN", "ENOTSUP": "EOPNOTSUPP"}


def terms(condition):
    """Return the alternatives of a condition: split at || outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(condition):
        depth += (char == "(") - (char == ")")
        if depth == 0 and condition.startswith(" || ", i):
            parts.append(condition[start:i])
            start = i + 4
    return parts + [condition[start:]]


def errnos(text):
    return {SAME_ERRNO.get(name.strip(), name.strip()) for name in text.split(",")}


def wanted(row, native):
    """Return the causes and errno values that must occur, and the calls of native builds only."""
    condition, causes, values, elsewhere = row["condition"], set(), set(), set()
    for part in condition.split("; "):
        calls = set(PROVIDER_CALL.findall(part))
        if part.startswith("native:") and not native:
            elsewhere |= calls
        else:
            causes |= calls
    for negated, names in ERRNO_SET.findall(condition):
        if not negated and "E" in names:
            values |= errnos(names)
    if row["code"] == "RPMA_E_INVAL" and not causes:
        causes = set(terms(condition.split(";")[0]))
    return causes, values, elsewhere


def is_native(function, operations):
    """Return whether the build executes the function natively; arrays may contain any operation."""
    if function in ("rpma_batch_post", "rpma_post"):
        return bool(operations)
    return function.removeprefix("rpma_") in operations


def missing(row, notes, native):
    causes, values, elsewhere = wanted(row, native)
    if not notes:
        return ["no test provoked it"], elsewhere
    seen = {cause for cause, _ in notes}
    errors = {error for _, error in notes}
    lacking = [f"not by {cause}" for cause in sorted(causes - seen)]
    lacking += [f"not with errno {value}" for value in sorted(values - errors)]
    for negated, names in ERRNO_SET.findall(row["condition"]):
        if negated and not errors - errnos(names) - {""}:
            lacking.append(f"not with an errno other than {names}")
    return lacking, elsewhere


def read_notes(directory, executables):
    """Return a dictionary: (function, code, condition) -> set of (cause, errno)."""
    notes = {}
    for executable in executables:
        name = os.path.basename(executable).removeprefix("unit-")
        path = os.path.join(directory, name + ".tsv")
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(executable):
            sys.exit(f"{name} has not run since it was built: run the whole suite, "
                     "meson test --suite unit")
        with open(path, encoding="utf-8") as lines:
            rows = lines.read().splitlines()
        if not rows or rows.pop() != "complete":
            sys.exit(f"{name} did not end: run it alone and repair it")
        for line in rows:
            function, code, condition, cause, error = line.split("\t")
            notes.setdefault((function, code, condition), set()).add((cause, error))
    return notes


def gaps(rows, notes, operations):
    """Return the gaps, and what only a build with native operations tests."""
    found, elsewhere = [], []
    for row in rows:
        if row["decision"] == "never":
            continue
        key = (row["function"], row["code"], row["condition"])
        if "flush" not in operations and any(
                row["function"].startswith(function) and row["condition"].startswith(condition)
                for function, condition in NATIVE_ONLY):
            elsewhere.append(f"{row['function']} {row['code']}: {row['condition']}")
            continue
        lacking, native_only = missing(row, notes.get(key, set()), is_native(row["function"], operations))
        elsewhere += [f"{row['function']} {row['code']}: {call}" for call in sorted(native_only)]
        found += [f"{' | '.join(key)}: {what}" for what in lacking]
    return found, elsewhere


def check_itself(rows, notes, operations):
    """Fail unless a gap is found for each row without one of its notes that are needed."""
    for row in rows:
        key = (row["function"], row["code"], row["condition"])
        causes, values, _ = wanted(row, is_native(row["function"], operations))
        lost = [set()] + [{note for note in notes.get(key, ()) if cause not in note} for cause in causes | values]
        for rest in lost if key in notes and row["decision"] != "never" else []:
            if not gaps([row], {key: rest}, operations)[0]:
                sys.exit(f"{' | '.join(key)}: a gap is overlooked: repair gaps()")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--native", action="append", default=[])
    parser.add_argument("notes")
    parser.add_argument("executable", nargs="+")
    args = parser.parse_args()
    notes = read_notes(args.notes, args.executable)
    rows = read_errors()
    found, elsewhere = gaps(rows, notes, args.native)
    for gap in found:
        print(f"not exercised: {gap}")
    never = sum(row["decision"] == "never" for row in rows)
    print(f"{len(rows)} rows, {never} that cannot happen, {len(found)} gaps; "
          f"{sum(len(causes) for causes in notes.values())} different causes were exercised")
    for what in elsewhere:
        print(f"NOT TESTED BY THIS BUILD, only by one with native operations: {what}")
    if found:
        sys.exit(f"{len(found)} gaps: add a test for each to tests/unit")
    check_itself(rows, notes, args.native)


if __name__ == "__main__":
    main()
