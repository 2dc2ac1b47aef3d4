# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: the ledger of what is flushed, when the client, the server or the network fails."""

import os
import signal

from harness import lab
from harness.case import case
from harness.network import cables, disturbed, room_for_early_messages
from harness.program import (PATIENCE, Process, laps_of, ledger_lines, new_file, nothing_stays,
                             record, serve, stop)
from harness.side import expect

ALL_FOUND, MISSING = 0, 3
SHAPES = [
    {"shape": "one connection", "options": ("--ring", "4")},
    {"shape": "batches on 3 connections of 2 threads, large records",
     "options": ("--ring", "32", "-d", "8", "--batch", "4", "-c", "3", "-t", "2", "-b", "9000")},
]


def begin(test, *options):
    path = new_file(test, "/dev/shm")
    ledger = os.path.join(test.directory(), "ledger")
    room_for_early_messages(test)
    server = serve(test, "--memory", path)
    return path, ledger, server, record(test, ledger, *options)


def verify(test, ledger, path, status):
    return Process(test, 1, "--verify", "--ledger", ledger, "--memory", path).end(status)


@case("perf", "a client that is killed has recorded nothing that is not there: {shape}", SHAPES)
def client_killed(test, shape, options):
    path, ledger, server, client = begin(test, "-o", "flush-visibility", *options)
    client.wait_until(lambda: laps_of(ledger) >= 5, "five laps of the ring")
    client.signal(signal.SIGKILL)
    server.wait_until(lambda: server.complained().count("\n") == 1, "line about the client")
    verify(test, ledger, path, ALL_FOUND)
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "a ledger is complete, and the same memory verifies, when {end}",
      [{"end": "the server is killed"}, {"end": "the client is interrupted"},
       {"end": "the client is done"}])
def complete(test, end):
    depth, connections, count = 4, 2, 500 if end == "the client is done" else 1 << 30
    path, ledger, server, client = begin(
        test, "-o", "flush-visibility", "--ring", "64", "-d", str(depth), "-c", str(connections),
        "-n", str(count))
    if end == "the client is done":
        said = client.end()
    else:
        client.wait_until(lambda: laps_of(ledger) >= 2, "two laps of the ring")
        killed = end == "the server is killed"
        (server if killed else client).signal(signal.SIGKILL if killed else signal.SIGTERM)
        said = client.end(*((0,) if killed else (1, "interrupted")))
        expect("until the server was lost: " in said, killed, f"the server in {said}")
    lines = ledger_lines(ledger)
    expect(set(lines), set(range(connections)), "connections in the ledger")
    for done, bound in lines.values():
        expect(0 < bound - done <= depth + 1, True, f"{bound} is little more than {done}")
    recorded = sum(done for done, _ in lines.values())
    expect(f"{recorded} records recorded in {ledger}" in said, True, f"{recorded} in {said}")
    expect(f"{recorded} records recorded, " in verify(test, ledger, path, ALL_FOUND), True,
           "the verifier's count")
    if end == "the client is done":
        stop(test, server)


@case("lacking", "rpma-perf --ledger: writes that completed and never arrived are missing",
      lacks=lab.ANSWERS, limit=120)
def never_arrived(test):
    """What a ledger without flushes names is not there: so a missing record is seen."""
    path, ledger, server, client = begin(test, "-o", "write", "--ring", "512", "-d", "8")
    client.wait_until(lambda: laps_of(ledger) >= 1, "lap of the ring")
    verify(test, ledger, path, ALL_FOUND)
    test.undo.enter_context(disturbed(cables(test)[:1], "loss", "100%"))
    before = ledger_lines(ledger)
    client.wait_until(lambda: ledger_lines(ledger) != before, "record after the cut")
    client.signal(signal.SIGTERM)
    client.end(1, "interrupted")
    expect("first missing: connection 0, record " in verify(test, ledger, path, MISSING), True,
           "the first missing record")
    server.signal(signal.SIGKILL)
    server.process.wait(PATIENCE)
