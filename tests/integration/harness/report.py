# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The results: TAP for Meson, logs, and files that the summary reads."""

import json
import os
import shutil

RESULTS = "results.json"


def keep(directory, name, text):
    """Writes the file whole or not at all, even if the machine dies meanwhile."""
    path = os.path.join(directory, name)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def load(directory):
    """The results that a run left, or None."""
    try:
        with open(os.path.join(directory, RESULTS), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


class Tap:
    """Prints a line per case at once, and keeps logs and results in one directory per run."""

    def __init__(self, build, count, directory):
        self.build = build
        self.rows = []
        self.directory = directory
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        print(f"1..{count}", flush=True)

    def add(self, name, result, reason, seconds):
        self.rows.append({"name": name, "result": result, "reason": reason,
                          "seconds": round(seconds, 1)})
        self.save("a machine that is still running, or died")
        verdict = "not ok" if result == "failed" else "ok"
        note = f" # SKIP {reason}" if result == "skipped" else ""
        print(f"{verdict} {len(self.rows)} - {name} ({seconds:.1f} s){note}")
        if result == "failed":
            print("\n".join(f"# {line}" for line in reason.splitlines()))
        print(end="", flush=True)

    def save(self, where):
        counts = {result: sum(row["result"] == result for row in self.rows)
                  for result in ("passed", "failed", "skipped")}
        keep(self.directory, RESULTS, json.dumps(
            {"build": self.build, "where": where, **counts, "cases": self.rows}, indent=1))
        return counts

    def end(self, where):
        """where: the machine and devices of the run. Returns the exit status."""
        counts = self.save(where)
        print(f"# {self.build} build on {where}: {counts['passed']} passed, "
              f"{counts['failed']} failed, {counts['skipped']} skipped; logs in "
              f"{self.directory}", flush=True)
        return 1 if counts["failed"] else 0
