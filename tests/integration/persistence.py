#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Data flushed for persistence survives a power cut, and data that was only posted does not.
persistence.py LAB LOGS [cxl] boots the lab twice on one file of emulated persistent memory, or CXL
memory, and kills the first machine. Both builds write in the first boot and are checked in the
second. Two more boots do the same with rpma-check --power-cut, and with controls that must lose
records.
"""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness.report import Tap  # noqa: E402

POWER_CUT = 137
SKIPPED = 77
INSIDE = "tests/integration/persistence_inside.py"
BUILDS = ("native", "plain")


class Runs:
    def __init__(self, lab, directory, options, tap):
        self.lab, self.directory, self.options, self.tap = lab, directory, options, tap

    def boot(self, step, name, wanted, lines):
        """Runs one machine. It must end with this exit status and print each of these lines."""
        began = time.monotonic()
        done = subprocess.run(
            [self.lab, "run", "--hosts", "2", "--share", self.directory, *self.options, "--",
             INSIDE, step, self.directory, *BUILDS],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.tap.keep(step + ".log", done.stdout)
        output = done.stdout.splitlines()
        for line in lines:
            if done.returncode == SKIPPED:
                result, reason = "skipped", done.stdout.strip()
            elif done.returncode == wanted and line in output:
                result, reason = "passed", ""
            else:
                last = (output or ["no output"])[-1]
                result, reason = "failed", f"status {done.returncode} instead of {wanted}: {last}"
            self.tap.add(f"persistence: {name}: {line}", result, reason, time.monotonic() - began)


def of_builds(line):
    return [f"{build}: {line}" for build in BUILDS]


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    lab, logs, *kind = sys.argv[1:]
    subprocess.run([lab, "build", "plain"], check=True)  # tools/lab run prepares only the native build
    written = of_builds("records are written") + ["lost memory: records are written"]
    verified = of_builds("no record is missing") + [
        "lost memory: records are missing", "early copy: records are missing"]
    tap = Tap("native and plain", 2 * len(BUILDS) + len(written) + len(verified),
              os.path.join(logs, "-".join(["persistence", *kind])))
    with tempfile.TemporaryDirectory() as directory:
        memory = ["--memory", *kind] if kind else []
        runs = Runs(lab, directory, ["--pmem", os.path.join(directory, "pmem"), *memory], tap)
        runs.boot("write", "the power is cut after half of the blocks was flushed", POWER_CUT,
                  of_builds("all blocks are flushed"))
        runs.boot("check", "the next boot finds every flushed block and no other", 0,
                  of_builds("no block of the control has arrived"))
        runs.boot("cut", "the power is cut while rpma-check writes records", POWER_CUT, written)
        runs.boot("verify", "the next boot compares them with the ledger", 0, verified)
    return tap.end("four boots on one file")


if __name__ == "__main__":
    sys.exit(main())
