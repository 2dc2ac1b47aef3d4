#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Prints what the integration tests showed: summary.py DIRECTORY RUN…; fails unless all passed."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness.report import keep, load  # noqa: E402


def describe(run, result):
    """The lines about one run: a total, then each case that did not pass and why."""
    if result is None:
        yield f"{run}: has no results: it did not run to its end"
        return
    seconds = sum(case["seconds"] for case in result["cases"])
    yield (f"{run}: {result['build']} build on {result['where']}: {result['passed']} passed, "
           f"{result['failed']} failed, {result['skipped']} skipped in {seconds:.0f} s")
    for case in result["cases"]:
        if case["result"] != "passed":
            yield f"  {case['result']}: {case['name']}: {case['reason']}"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    directory, runs = sys.argv[1], sys.argv[2:]
    results = {run: load(os.path.join(directory, run)) for run in runs}
    text = "\n".join(line for run in runs for line in describe(run, results[run]))
    print(f"{text}\nlogs: {directory}")
    keep(directory, "summary.txt", text + "\n")
    good = all(result and not result["failed"] and result["passed"]
               for result in results.values())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
