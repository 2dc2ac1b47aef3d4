# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: wrong data, and sides that end during a measurement."""

import signal
import time

from harness import lab
from harness.case import case
from harness.network import cables, delay_early_messages, impaired
from harness.program import TIMEOUT, expect_no_leak, measure, serve, stop, stop_after_failure
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
