# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Signals that arrive while a call waits."""

import errno
import os
import signal

from harness.case import PORT, case, connect, listen, request, share_region
from harness.side import expect, wait_until

SIGNAL = signal.SIGUSR2
HANDLED = chr(SIGNAL)  # Python's handler writes it: peer/processes.py
EVENT, COMPLETION = "rdma_cm", "infinibandevent"
EINTR, ETIMEDOUT = (str(error) for error in (errno.EINTR, errno.ETIMEDOUT))


def send_request(server, client):
    request(server, client, 2, data="77")
    expect(server.end()["pdata"][:2], "77", "request")
    server("req-delete", req=2)
    client.event("REJECTED", conn=2)


def message(server, client, conn=0):
    client("send", conn=conn, mr=0, len=8)
    server.end()
    server.completion(opcode="RECV", conn=conn)
    client.completion(opcode="SEND", conn=conn)


def end(server, client):
    client("disconnect")
    expect(server.end()["event"], "CLOSED", "event")


# Per call: its command, its values, the descriptor it waits for, its result after a signal, and a
# function that causes the event.
CALLS = {
    "rpma_ep_next_conn_req": ("next-req", {"req": 2, "timeout": 0}, EVENT, "RPMA_E_PROVIDER", send_request),
    "rpma_cq_wait": ("cq-wait", {}, COMPLETION, "RPMA_E_NO_COMPLETION", message),
    "rpma_conn_wait": ("conn-wait", {"conn": 1}, COMPLETION, "RPMA_E_NO_COMPLETION", message),
    "rpma_conn_next_event": ("event", {"timeout": 0}, EVENT, "RPMA_E_PROVIDER", end),
}


def send_signal(test, side):
    """Sends the signal and waits until the handler has reported that it ran."""
    before = test.stderr().count(HANDLED)
    os.kill(side.pid, SIGNAL)
    wait_until(lambda: test.stderr().count(HANDLED) > before, "the handler runs")


@case("signals", "blocking calls return at a signal without SA_RESTART, and continue with it",
      shows=("event: signal",))
def interrupted(test):
    """The server is the side that waits."""
    server, client = test.peers(environment={"RPMA_LOG": "debug"})
    share_region(server, client)
    listen(server)
    for number in (0, 1):
        server("cfg", shared=number)
        connect(server, client, number=number, server_cfg=0)
        server("recv", conn=number, mr=0, len=8)
    for call, (verb, values, kind, wanted, cause_event) in CALLS.items():
        before = test.stderr().count("ERROR")
        for restart in (0, 1):
            server("handle-signal", signal=int(SIGNAL), restart=restart)
            server.begin(verb, **values)
            server.wait_until_blocked(kind)
            send_signal(test, server)
            if restart:
                server.wait_until_blocked(kind)
                cause_event(server, client, **{"conn": 1} if "conn" in values else {})
                continue
            code, answer = server.read_reply(timeout=30)
            expect((code, answer.get("errno")), (wanted, EINTR if kind == EVENT else answer.get("errno")), call)
        expect(test.stderr().count("ERROR"), before, "errors in the log")


@case("signals", "resolving an absent machine ends at a signal without SA_RESTART, and "
      "at its time limit with it")
def unresolved(test):
    """rpma_limits(7): a call that resolves an address."""
    client = test.side(2, "client")
    client("cfg", timeout=3000)
    absent = client.address.rsplit(".", 1)[0] + ".250"
    for restart, error in ((0, EINTR), (1, ETIMEDOUT)):
        client("handle-signal", signal=int(SIGNAL), restart=restart)
        client.begin("req-new", addr=absent, port=PORT, cfg=0)
        client.wait_until_blocked(EVENT)
        send_signal(test, client)
        code, answer = client.read_reply(timeout=30)
        expect((code, answer["errno"]), ("RPMA_E_PROVIDER", error), f"restart={restart}")
