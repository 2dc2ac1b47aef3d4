# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: wrong data, peers that vanish or speak another language, and refused settings."""

import os
import signal
import time

from harness import lab
from harness.case import PORT, case, listen
from harness.network import cables, disturbed, room_for_early_messages
from harness.program import (PATIENCE, Process, address, measure, new_file, nothing_stays, serve,
                             stop, stop_after_failure)
from harness.side import expect

from .perf import validated


@case("perf", "wrong data at the server is found, and fails the run")
def damaged_writes(test):
    """One byte changes between the end of the load and the server's check."""
    path = new_file(test, "/dev/shm")
    room_for_early_messages(test)
    server = serve(test, "--memory", path)
    client = measure(test, "-b", "100", "-D", "3", "-w", "0", "--verify")
    # Without a warm-up, the first bytes belong to the load.
    client.wait_until(lambda: any(content(path, 100)), "data at the server")
    server.signal(signal.SIGSTOP)  # a stopped server still takes writes
    client.wait_for_threads(1)
    damage(path, 99)
    server.signal(signal.SIGCONT)
    client.end(1, "verification failed: connection 0")
    server.wait_until(lambda: "byte 99 of 100" in server.complained(), "word about the byte")
    server.signal(signal.SIGTERM)
    server.process.wait(PATIENCE)
    nothing_stays(test)


def content(path, size):
    with open(path, "rb") as file:
        return file.read(size)


def damage(path, place):
    with open(path, "r+b", buffering=0) as file:
        byte = os.pread(file.fileno(), 1, place)
        os.pwrite(file.fileno(), bytes([byte[0] ^ 1]), place)


@case("perf", "wrong data that a read brings is found, and fails the run")
def damaged_reads(test):
    path = new_file(test, "/dev/shm")
    room_for_early_messages(test)
    server = serve(test, "--memory", path)
    client = measure(test, "-o", "read", "-b", "100", "-D", "60", "--verify")
    client.wait_for_threads(2)
    damage(path, 50)
    client.end(1, "byte 50 of 100 is wrong in the client's memory")
    stop_after_failure(test, server, "gone in the middle|closed")


@case("perf", "the server is killed in the middle of {operation}: one line and the status 1",
      [{"operation": operation} for operation in ("write", "ping-pong")])
def server_killed(test, operation):
    room_for_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", operation, "-D", "120", "-d", "4")
    client.wait_for_threads(2)
    server.signal(signal.SIGKILL)
    server.process.wait(PATIENCE)
    client.end(1, "")
    nothing_stays(test)


@case("perf", "the client is killed in the middle of ping-pong: the server serves the next one")
def client_killed(test):
    room_for_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", "ping-pong", "-D", "120", "-d", "4")
    client.wait_for_threads(2)
    client.signal(signal.SIGKILL)
    stop_after_failure(test, server, "closed|gone|failed")


# The cables stay in: a packet of the connection manager that rdma_rxe cannot send, because the port
# is down, can leave the device unable to send any other.
@case("perf", "nothing gets through in the middle of ping-pong: both sides notice", limit=200,
      needs=(lab.LIMITED_RETRIES,))
def cable_cut(test):
    server = serve(test, "--once")
    client = measure(test, "-o", "ping-pong", "-D", "120")
    client.wait_for_threads(2)
    with disturbed(cables(test), "loss", "100%"):
        client.end(1, "")
        server.end(1, "")


@case("perf", "the server is killed and comes back: one gap, with {operation}", limit=200,
      table=[{"operation": operation} for operation in ("write", "connect")])
def server_comes_back(test, operation):
    room_for_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", operation, "--reconnect", "-D", "8", "-w", "1", "--json")
    client.wait_for_threads(2)
    time.sleep(1)  # of the measurement, behind the warm-up
    server.signal(signal.SIGKILL)
    server.process.wait(PATIENCE)
    client.wait_for_threads(1)
    server = serve(test)
    one_gap(test, client)
    stop(test, server)


def one_gap(test, client):
    row, = validated(client.end())["results"]
    test.transcript.append(f"{row['gaps']} in {row['seconds']} s, {row['operations']} operations\n")
    expect(len(row["gaps"]), 1, f"gaps in {row}")
    gap, = row["gaps"]
    expect(gap["seconds"], row["without_service_s"], "the only gap")
    expect(0 < gap["begin_s"] < gap["begin_s"] + gap["seconds"] < row["seconds"], True,
           f"service before and after the gap in {row}")


@case("perf", "nothing gets through for a while: the client goes on, and reports the gap",
      needs=(lab.LIMITED_RETRIES,), limit=200)
def cable_back(test):
    server = serve(test)
    client = measure(test, "--reconnect", "-D", "30", "-w", "1", "--json")
    client.wait_for_threads(2)
    time.sleep(1)
    with disturbed(cables(test), "loss", "100%"):
        client.wait_for_threads(1)
    one_gap(test, client)
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "atomics are refused where a device has none: one line", lacks=lab.REMOTE_ATOMICS)
def no_atomics(test):
    room_for_early_messages(test)
    server = serve(test)
    for operation in ("fetch-add", "compare-swap"):
        measure(test, "-o", operation, "-n", "9").end(1, "has no remote atomics")
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "SIGINT ends the client, SIGTERM the server in the middle of a load")
def interrupted(test):
    room_for_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", "ping-pong", "-D", "120")
    client.wait_for_threads(2)
    client.signal(signal.SIGINT)
    client.end(1, "interrupted")
    server.wait_until(lambda: server.complained().count("\n") == 1, "line about the client")
    client = measure(test, "-o", "ping-pong", "-D", "120")
    client.wait_for_threads(2)
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    client.end(1, "")
    nothing_stays(test)


@case("perf", "a client of another version is told so, and the server says it")
def newer_client(test):
    server = serve(test, "--once")
    client = test.side(2)
    client("peer")
    client("req-new", addr=address(), port="7204")
    client("connect", pdata=b"rpma-perf 4 control 0 0\0".hex())
    client.event("ESTABLISHED")
    greeting = bytes.fromhex(client("pdata")["pdata"]).rstrip(b"\0")
    expect(greeting, b"rpma-perf 3 control 0 0", "what the server sends with the connection")
    client("disconnect")
    server.end(1, "a client speaks version 4 of the protocol, this server version 3")


@case("perf", "a server of {what} is refused", [
    {"what": "another version", "greeting": b"rpma-perf 4 control 0 0\0",
     "line": "the server speaks version 4 of the protocol, this client version 3"},
    {"what": "another kind", "greeting": b"hello", "line": "is no rpma-perf"}])
def other_server(test, what, greeting, line):
    server = test.side(1)
    server("peer")
    listen(server)
    client = measure(test, "--port", PORT)
    server("next-req")
    server("connect", pdata=greeting.hex())
    server.event("ESTABLISHED")
    client.end(1, line)


@case("perf", "somebody who is no rpma-perf is turned away")
def stranger(test):
    server = serve(test)
    client = test.side(2)
    client("peer")
    client("req-new", addr=address(), port="7204")
    client("connect")
    client.event("REJECTED")
    server.wait_until(lambda: "no rpma-perf" in server.complained(), "line about it")
    measure(test, "-n", "20").end()
    server.signal(signal.SIGTERM)
    server.process.wait(PATIENCE)


@case("perf", "with --once a second client is refused while the first is served")
def busy(test):
    room_for_early_messages(test)
    server = serve(test, "--once")
    first = measure(test, "-D", "120")
    first.wait_for_threads(2)
    measure(test, "-n", "1").end(1, "the server has as many clients as it serves")
    first.signal(signal.SIGINT)
    first.end(1, "interrupted")
    server.end(1, "closed")
    nothing_stays(test)


@case("perf", "clients that stand still hold up no other: {stopped} of them", [{"stopped": 4}])
def stalled_clients(test, stopped):
    """They stop in the middle of their loads; others come, measure, verify and go."""
    room_for_early_messages(test)
    server = serve(test)
    clients = [measure(test, "-o", operation, "-D", "120", "--verify")
               for operation in ("write", "ping-pong", "read", "send") * (stopped // 4)]
    for client in clients:
        client.wait_for_threads(2)
        client.signal(signal.SIGSTOP)
    for operation in ("write", "ping-pong"):
        measure(test, "-o", operation, "-n", "100", "--verify").end()
    for client in clients:
        client.signal(signal.SIGKILL)
    server.wait_until(lambda: server.complained().count("\n") == stopped, "lines about them")
    measure(test, "-n", "20", "--verify").end()
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "the clients of a server share its memory")
def shared_memory(test):
    room_for_early_messages(test)
    server = serve(test, "--limit", "1M")
    first = measure(test, "-b", "600K", "-D", "120")
    first.wait_for_threads(2)
    measure(test, "-b", "600K", "-n", "1").end(1, "and other clients use 614400")
    first.signal(signal.SIGKILL)
    server.wait_until(lambda: server.complained().count("\n") == 2, "lines about both")
    measure(test, "-b", "600K", "-n", "20", "--verify").end()
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "settings that need more memory than the server has are refused")
def refused(test):
    room_for_early_messages(test)
    server = serve(test, "--memory", new_file(test, "/dev/shm"))
    measure(test, "-b", "1048576", "-d", "64").end(1, "these settings need")
    stop_after_failure(test, server, "these settings need")


@case("perf", "no device, and nobody who listens: one line")
def nobody(test):
    Process(test, 2, "--server", "192.0.2.1").end(1, "192.0.2.1")
    measure(test, "-n", "1").end(1, "")
    nothing_stays(test)
