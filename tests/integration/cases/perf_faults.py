# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: wrong data, sides that end during a measurement, and the ledger of flushed data."""

import os
import signal
import time

from harness import lab
from harness.case import case
from harness.network import cables, delay_early_messages, impaired
from harness.program import (TIMEOUT, Process, expect_no_leak, laps_of, ledger_lines, measure, new_file, serve,
                             stop, stop_after_failure)
from harness.side import expect

from .perf import terminate, validated


# The process, the signal, the operation during which it arrives, and the client's last line.
ENDS = [dict(zip(("who", "number", "operation", "line"), row)) for row in (
    ("server", signal.SIGKILL, "write", ""), ("server", signal.SIGKILL, "ping-pong", ""),
    ("client", signal.SIGKILL, "ping-pong", None), ("client", signal.SIGINT, "ping-pong", "interrupted"),
    ("server", signal.SIGTERM, "ping-pong", ""))]


@case("perf", "the {who} gets {number.name} during {operation}: one line on each side, a server serves the "
      "next client", ENDS, fabric=True)
def ended(test, who, number, operation, line):
    delay_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", operation, "-D", "120", "-d", "4")
    client.wait_for_threads(2)
    (server if who == "server" else client).signal(number)
    if line is not None:
        client.end(1, line)
    if who == "client":
        stop_after_failure(test, server, "closed|gone|failed")
        return
    status = server.process.wait(TIMEOUT)
    expect(status in (0, -signal.SIGKILL), True, f"exit status {status} of the server")
    expect_no_leak(test)


# The links stay up: while a port is down, rdma_rxe cannot send packets of the connection manager,
# and one that it could not send can stop the device from sending any other.
@case("perf", "link down during ping-pong: both sides report it", limit=200,
      needs=(lab.LIMITED_RETRIES,))
def cable_cut(test):
    server = serve(test, "--once")
    client = measure(test, "-o", "ping-pong", "-D", "120")
    client.wait_for_threads(2)
    with impaired(cables(test), "loss", "100%"):
        client.end(1, "")
        server.end(1, "")


def measure_restart(test, operation, seconds):
    """Returns the row of a measurement during which the server is killed and replaced."""
    server = serve(test)
    client = measure(test, "-o", operation, "--reconnect", "-D", str(seconds), "-w", "1", "--json")
    client.wait_for_threads(2)
    time.sleep(1)  # after the warm-up, during the measurement
    server.signal(signal.SIGKILL)
    server.process.wait(TIMEOUT)
    client.wait_for_threads(1)
    server = serve(test)
    row, = validated(client.end())["results"]
    stop(test, server)
    return row


@case("perf", "the server is killed and restarted: one gap, with {operation}", limit=200,
      table=[{"operation": operation} for operation in ("write", "connect")], fabric=True)
def server_restarts(test, operation):
    """On a busy machine the new server may start only after the measurement; then a longer one follows."""
    delay_early_messages(test)
    for seconds in (4, 100):
        row = measure_restart(test, operation, seconds)
        expect(len(row["gaps"]), 1, f"gaps in {row}")
        gap, = row["gaps"]
        if gap["begin_s"] + gap["seconds"] < row["seconds"]:
            break
    expect(gap["seconds"], row["without_service_s"], "the only gap")
    expect(0 < gap["begin_s"] < gap["begin_s"] + gap["seconds"] < row["seconds"], True,
           f"service before and after the gap in {row}")


@case("perf", "a device without atomics: refused in one line", lacks=lab.REMOTE_ATOMICS)
def no_atomics(test):
    delay_early_messages(test)
    server = serve(test)
    for operation in ("fetch-add", "compare-swap"):
        measure(test, "-o", operation, "-n", "9").end(1, "has no remote atomics")
    terminate(test, server)


# ---- the ledger --------------------------------------------------------------------------

ALL_FOUND, MISSING = 0, 3


def begin(test, *options):
    path = new_file(test, "/dev/shm")
    ledger = os.path.join(test.directory(), "ledger")
    delay_early_messages(test)
    server = serve(test, "--memory", path)
    return path, ledger, server, measure(test, "--ledger", ledger, *options)


def verify(test, ledger, path, status):
    return Process(test, 1, "--verify", "--ledger", ledger, "--memory", path).end(status)


@case("perf", "a client is killed: every recorded write has arrived", fabric=True)
def client_killed(test):
    path, ledger, server, client = begin(
        test, "-o", "flush-visibility", "--ring", "32", "-d", "8", "--batch", "4", "-c", "3", "-t", "2", "-b", "9000")
    client.wait_until(lambda: laps_of(ledger) >= 3, "three laps of the ring")
    client.signal(signal.SIGKILL)
    server.wait_until(lambda: server.stderr().count("\n") == 1, "line about the client")
    verify(test, ledger, path, ALL_FOUND)
    terminate(test, server)


@case("lacking", "rpma-perf --ledger: writes that completed and did not arrive are reported",
      lacks=lab.REMOTE_RESULTS, limit=120)
def never_arrived(test):
    """Without flushes the ledger contains writes that have not arrived. They must be reported."""
    path, ledger, server, client = begin(test, "-o", "write", "--ring", "512", "-d", "8")
    client.wait_until(lambda: laps_of(ledger) >= 1, "lap of the ring")
    verify(test, ledger, path, ALL_FOUND)
    test.undo.enter_context(impaired(cables(test)[:1], "loss", "100%"))
    before = ledger_lines(ledger)
    client.wait_until(lambda: ledger_lines(ledger) != before, "a record after the cut")
    client.signal(signal.SIGTERM)
    client.end(1, "interrupted")
    expect("first missing: connection 0, record " in verify(test, ledger, path, MISSING), True,
           "the first missing record")
    server.signal(signal.SIGKILL)
    server.process.wait(TIMEOUT)
