# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The results as TAP, and one log per case."""

import collections
import os
import shutil


class Tap:
    """Prints one line per case immediately, and keeps the logs of a run in one directory."""

    def __init__(self, build, count, directory):
        self.build, self.directory = build, directory
        self.number = 0  # of the last reported case
        self.counts = collections.Counter()
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        print(f"1..{count}", flush=True)

    def keep(self, name, text):
        """Writes the whole log or nothing, even if the machine ends meanwhile."""
        path = os.path.join(self.directory, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)

    def add(self, name, result, reason, seconds):
        self.number += 1
        self.counts[result] += 1
        verdict = "not ok" if result == "failed" else "ok"
        note = f" # SKIP {reason}" if result == "skipped" else ""
        print(f"{verdict} {self.number} - {name} ({seconds:.1f} s){note}")
        if result == "failed":
            print("\n".join(f"# {line}" for line in reason.splitlines()))
        print(end="", flush=True)

    def end(self, where):
        """Prints the counts. where: the machine and devices of the run. Returns the exit status."""
        counts = ", ".join(f"{self.counts[result]} {result}" for result in ("passed", "failed", "skipped"))
        print(f"# {self.build} build on {where}: {counts}; logs in {self.directory}", flush=True)
        return 1 if self.counts["failed"] else 0
