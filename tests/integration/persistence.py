#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Data that was flushed persistently survives a power cut, and data that was only posted does not:
persistence.py LAB BUILD LOGS boots the lab twice on one file of emulated persistent memory; the
first machine is killed at once.
"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness.report import Tap, keep  # noqa: E402

POWER_CUT = 137
SKIPPED = 77
INSIDE = "tests/integration/persistence_inside.py"


class Runs:
    def __init__(self, lab, build, memory, tap):
        self.lab, self.build, self.memory, self.tap = lab, build, memory, tap

    def boot(self, step, name, wanted, line):
        """One machine; it must end with this status and have said this line."""
        began = time.monotonic()
        done = subprocess.run(
            [self.lab, "run", "--hosts", "2", "--build", self.build, "--pmem", self.memory, "--",
             INSIDE, self.build, step], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        keep(self.tap.directory, step + ".log", done.stdout)
        if done.returncode == SKIPPED:
            result, reason = "skipped", done.stdout.strip()
        elif done.returncode == wanted and line in done.stdout.splitlines():
            result, reason = "passed", ""
        else:
            last = (done.stdout.strip().splitlines() or ["no output"])[-1]
            result, reason = "failed", f"status {done.returncode} instead of {wanted}: {last}"
        self.tap.add("persistence: " + name, result, reason, time.monotonic() - began)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    lab, build, logs = sys.argv[1:]
    tap = Tap(build, 2, os.path.join(logs, "persistence-" + build))
    with tempfile.TemporaryDirectory() as directory:
        runs = Runs(lab, build, os.path.join(directory, "pmem"), tap)
        runs.boot("write", "blocks are written, one half of them is flushed, the power is cut",
                  POWER_CUT, "all blocks are flushed")
        runs.boot("check", "the next boot finds every flushed block and no other", 0,
                  "no block of the control is there")
    return tap.end("two boots on one file")


if __name__ == "__main__":
    sys.exit(main())
