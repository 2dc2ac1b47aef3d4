# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Signals that arrive while a call waits."""

import errno
import os
import signal
import time

from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import Failed, expect

# Each call: its command, the descriptor it waits for, and its answer to a signal.
EVENT, COMPLETION = "rdma_cm", "infinibandevent"
CALLS = {
    "rpma_ep_next_conn_req": ("next-req", EVENT, "RPMA_E_PROVIDER"),
    "rpma_conn_next_event": ("event", EVENT, "RPMA_E_PROVIDER"),
    "rpma_cq_wait": ("cq-wait", COMPLETION, "RPMA_E_NO_COMPLETION"),
    "rpma_conn_wait": ("conn-wait", COMPLETION, "RPMA_E_NO_COMPLETION"),
}
EINTR, ETIMEDOUT = (str(error) for error in (errno.EINTR, errno.ETIMEDOUT))


def prepare(test, call):
    """The server is the side that waits."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    server("cfg", shared=int(call == "rpma_conn_wait"))
    connect(server, client, server_cfg=0)
    server("recv", mr=0, len=8)
    return server, client


def begin(server, call):
    verb, kind, _ = CALLS[call]
    server.begin(verb, **({"timeout": 0} if kind == EVENT else {}))
    server.wait_until_blocked(kind)


def send_signal(test, server, number=signal.SIGUSR1, seconds=30):
    """Sends the signal and waits until the handler has said that it ran."""
    before = test.said().count("signal\n")
    os.kill(server.pid, number)
    deadline = time.monotonic() + seconds
    while test.said().count("signal\n") == before:
        if time.monotonic() > deadline:
            raise Failed("the handler does not run")
        time.sleep(0.01)


def bring_about(call, server, client):
    """Causes the event or completion that the call waits for, and checks what the call returns."""
    if call == "rpma_ep_next_conn_req":
        client("req-new", req=1, addr=server.address, port=PORT)
        client("connect", req=1, conn=1, pdata="77")
        expect(server.end()["pdata"][:2], "77", "request")
        server("req-delete")
        client.event("REJECTED", conn=1)
    elif call == "rpma_conn_next_event":
        client("disconnect")
        expect(server.end()["event"], "CLOSED", "event")
        return
    else:
        client("send", mr=0, len=8)
        server.end()
        server.completion(opcode="RECV")
        client.completion(opcode="SEND")
    disconnect(client, server)


@case("signals", "{call} returns at a signal whose handler has no SA_RESTART, and goes on after one whose has",
      [{"call": call} for call in CALLS])
def interrupted(test, call):
    server, client = prepare(test, call)
    server("handle-signal", signal=int(signal.SIGUSR1), restart=0)
    begin(server, call)
    before = test.said().count("ERROR")
    send_signal(test, server)
    code, answer = server.take(timeout=30)
    wanted = CALLS[call][2]
    expect(code, wanted, call)
    if wanted == "RPMA_E_PROVIDER":
        expect(answer["errno"], EINTR, "errno")
    expect(test.said().count("ERROR"), before, "errors in the log")
    server("handle-signal", signal=int(signal.SIGUSR1), restart=1)
    begin(server, call)
    send_signal(test, server)
    server.wait_until_blocked(CALLS[call][1])
    bring_about(call, server, client)


@case("signals", "looking for a machine that is not there ends at a signal without SA_RESTART, and "
      "at its own limit with it")
def unresolved(test):
    """rpma_limits(7): an address that is being resolved."""
    client = test.side(2, "client")
    client("peer")
    client("cfg", timeout=3000)
    absent = client.address.rsplit(".", 1)[0] + ".250"
    for restart, error in ((0, EINTR), (1, ETIMEDOUT)):
        client("handle-signal", signal=int(signal.SIGUSR1), restart=restart)
        client.begin("req-new", addr=absent, port=PORT, cfg=0)
        client.wait_until_blocked(EVENT)
        send_signal(test, client)
        code, answer = client.take(timeout=30)
        expect((code, answer["errno"]), ("RPMA_E_PROVIDER", error), f"restart={restart}")


@case("signals", "a server that waits for requests until a signal stops it ends at SIGTERM")
def stopped(test):
    server, client = test.peers()
    server("handle-signal", signal=int(signal.SIGTERM), restart=0)
    listen(server)
    server.begin("refuse-all")
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    client.event("REJECTED")
    server.wait_until_blocked(EVENT)
    send_signal(test, server, signal.SIGTERM)
    expect(server.end(timeout=30)["refused"], "1", "clients that were refused")
