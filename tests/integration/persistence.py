#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Data that was flushed persistently survives a power cut, and data that was only posted does not:
persistence.py LAB LOGS boots the lab twice on one file of emulated persistent memory; the first
machine is killed at once. Both builds write in the first boot and are checked in the second one.
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
BUILDS = ("native", "plain")


class Runs:
    def __init__(self, lab, memory, tap):
        self.lab, self.memory, self.tap = lab, memory, tap

    def boot(self, step, name, wanted, line):
        """Runs one machine; it must end with this status and print this line for each build."""
        began = time.monotonic()
        done = subprocess.run(
            [self.lab, "run", "--hosts", "2", "--pmem", self.memory, "--", INSIDE, step, *BUILDS],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        keep(self.tap.directory, step + ".log", done.stdout)
        said = done.stdout.splitlines()
        for build in BUILDS:
            if done.returncode == SKIPPED:
                result, reason = "skipped", done.stdout.strip()
            elif done.returncode == wanted and f"{build}: {line}" in said:
                result, reason = "passed", ""
            else:
                last = (said or ["no output"])[-1]
                result, reason = "failed", f"status {done.returncode} instead of {wanted}: {last}"
            self.tap.add(f"persistence: {build} build: {name}", result, reason,
                         time.monotonic() - began)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    lab, logs = sys.argv[1:]
    subprocess.run([lab, "build", "plain"], check=True)  # the lab boots the other build
    tap = Tap("native and plain", 2 * len(BUILDS), os.path.join(logs, "persistence"))
    with tempfile.TemporaryDirectory() as directory:
        runs = Runs(lab, os.path.join(directory, "pmem"), tap)
        runs.boot("write", "blocks are written, one half of them is flushed, the power is cut",
                  POWER_CUT, "all blocks are flushed")
        runs.boot("check", "the next boot finds every flushed block and no other", 0,
                  "no block of the control is there")
    return tap.end("two boots on one file")


if __name__ == "__main__":
    sys.exit(main())
