#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Tests the programs of examples/: examples.py RDMA_SIM EXAMPLES    EXAMPLES is the directory of the programs"""

import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import harness
from harness import expect, test

SIM, EXAMPLES = sys.argv[1:]
ADDRESS = "10.77.0.1"
LIMIT = 60


@test("they work with closed standard descriptors, and fail if their output was lost")
def closed_descriptors():
    with tempfile.TemporaryDirectory() as directory:
        for server, client in ((f"server {directory}/records", "status-fixed"), ("receive-fixed", "receive-fixed")):
            serves_one = server == "receive-fixed"  # and prints a line
            for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"):
                loses = ">&-" in closed.split() or closed == ">/dev/full"
                script = f"exec {EXAMPLES}/{server} {closed}"
                done = subprocess.run([SIM, *([] if serves_one else ["--until", "host2"]), "sh", "-c", script, "::",
                                       f"{EXAMPLES}/{client}", ADDRESS], capture_output=True, check=False, timeout=LIMIT)
                expect(done.returncode, int(serves_one and loses), f"{server} {closed}: {done.stderr!r}")
                script = f"exec {EXAMPLES}/{client} {ADDRESS} {closed}"
                done = subprocess.run([SIM, "--until", "host2", f"{EXAMPLES}/{server.split()[0]}", *server.split()[1:], "::",
                                       "sh", "-c", script], capture_output=True, check=False, timeout=LIMIT)
                expect(done.returncode, int(loses), f"{client} {closed}: {done.stderr!r}")
    for program in ("buffer", "connection", "receive", "server", "status"):
        done = subprocess.run([f"{EXAMPLES}/{program}", "1", "2"], capture_output=True, text=True, check=False)
        expect((done.returncode, done.stderr.startswith(f"usage: {program} ")), (2, True), program)


@test("the server accepts a client after another one has ended")
def clients_in_turn():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([SIM, "--until", "host2", f"{EXAMPLES}/server", f"{directory}/records", "::", "sh", "-c",
                               f"{EXAMPLES}/status-fixed {ADDRESS} && {EXAMPLES}/status-fixed {ADDRESS}"],
                              capture_output=True, text=True, check=False, timeout=LIMIT)
        expect(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    sys.exit(harness.main())
