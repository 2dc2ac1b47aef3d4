# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What came out: TAP for Meson, logs, and results that the summary reads."""

import json
import os
import platform
import shutil

from . import lab


def keep(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        file.write(text)


class Tap:
    """Prints a line per case at once, and keeps logs and results in one directory per run."""

    def __init__(self, build, count, name="integration"):
        self.build = build
        self.rows = []
        self.directory = os.path.join(lab.BUILD_DIR, name + "-logs")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        print(f"1..{count}", flush=True)

    def add(self, name, result, reason, seconds):
        self.rows.append({"name": name, "result": result, "reason": reason,
                          "seconds": round(seconds, 1)})
        verdict = "not ok" if result == "failed" else "ok"
        note = f" # SKIP {reason}" if result == "skipped" else ""
        print(f"{verdict} {len(self.rows)} - {name} ({seconds:.1f} s){note}")
        if result == "failed":
            print(f"# {reason}")
        print(end="", flush=True)

    def end(self):
        counts = {result: sum(row["result"] == result for row in self.rows)
                  for result in ("passed", "failed", "skipped")}
        where = {"build": self.build, "kernel": platform.release(),
                 "devices": sorted(lab.resources())}
        keep(self.directory, "results.json", json.dumps({**where, **counts, "cases": self.rows},
                                                        indent=1))
        print(f"# {self.build} build on {', '.join(where['devices'])}: "
              f"{counts['passed']} passed, {counts['failed']} failed, "
              f"{counts['skipped']} skipped; logs in {self.directory}", flush=True)
        return 1 if counts["failed"] else 0
