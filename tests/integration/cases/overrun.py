# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A queue overflows: messages without a receive, completions without an entry."""

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import expect

from .events import happens
from .faults_peer import works_with_new_client

SLOT = 64


@case("overrun", "{senders} connections outrun a shared receive queue: messages wait, none is lost",
      [{"senders": 2}])
def srq_exhausted(test, senders):
    """Each sender's messages arrive in their order, whichever receive takes them."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    room, each = 4, 5
    server("srq", rq=room, rcq=20)
    server("cfg", srq=0)
    for number in range(senders):
        connect(server, client, number=number, server_cfg=0)
    qps = [int(server("qp", conn=number)["qp"]) for number in range(senders)]
    post(server, range(room))
    for place in range(senders * each):
        client("fill", off=place * SLOT, len=SLOT, seed=place)
        client("send", conn=place // each, mr=0, off=place * SLOT, len=SLOT, ctx=place)
    arrived = server.completions(room, queue="srq")
    server.refuses("ERR_TIMEOUT", "wc", queue="srq", timeout=1000)
    while len(arrived) < senders * each:
        first = len(arrived)
        post(server, range(first, min(first + room, senders * each)))
        arrived += server.completions(min(room, senders * each - first), queue="srq")
    for number, qp in enumerate(qps):
        own = [found for found in arrived if found.qp == qp]
        expect(len(own), each, "messages of a connection")
        for place, found in enumerate(own, number * each):
            server("check", off=found.ctx * SLOT, len=found.len, seed=place)
        sent = client.completions(each, conn=number)
        expect([found.ctx for found in sent], list(range(number * each, number * each + each)),
               "sends")
    for number in range(senders):
        disconnect(client, server, number)


def post(server, places):
    for place in places:
        server("srq-recv", mr=0, off=place * SLOT, len=SLOT, ctx=place)


@case("overrun", "receiver not ready, no retry: RNR_RETRY_EXC_ERR, and the server goes on",
      shows=("RNR_RETRY_EXC_ERR: send",))
def finite_retry(test):
    """The receiver sets how often a message is repeated: here the receiver is no librpma."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client.begin("raw-connect", addr=server.address, port=PORT, rnr=0)
    server("next-req")
    server("connect")
    client.end()
    server.event("ESTABLISHED")
    server("send", mr=0, len=8, ctx=5)
    expect(server.completion("RNR_RETRY_EXC_ERR").ctx, 5, "op_context")
    server("send", mr=0, len=8, ctx=6)
    expect(server.completion("WR_FLUSH_ERR").ctx, 6, "op_context")
    client.begin("raw-close")  # which waits for the other side
    server.event("CLOSED")
    server("disconnect")
    server("conn-delete")
    client.end()
    works_with_new_client(test, server)


def nothing_more(side):
    """Neither a completion nor an event is outstanding."""
    side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    side("nonblock", fd="event")
    side.refuses("RPMA_E_NO_EVENT", "event", timeout=0)


def overflows(side, times):
    """The device, not the connection, reports a completion that found no entry."""
    for _ in range(times):
        happens(side, "CQ_ERROR", queue="main", conn=0)


@case("overrun", "CQ of 1, {count} writes: all arrive, one completes, the others' completions are "
      "lost, the connection goes on", [{"count": 10}], shows=("Completions are missing",))
def writes_overflow(test, count):
    lab.need_virtual("a CQ of exactly the size that was asked for")
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("cfg", cq=1, sq=count)
    connect(server, client, client_cfg=0)
    client("fill", len=count * SLOT, seed=1)
    for place in range(count):
        client("write", mr=0, off=place * SLOT, rmr=0, roff=place * SLOT, len=SLOT, ctx=place)
    overflows(client, count - 1)
    expect(client.completion(opcode="WRITE").ctx, 0, "op_context")
    nothing_more(client)
    server("check", len=count * SLOT, seed=1)
    for place in range(count):  # lost completions take no room in the send queue
        client("write", mr=0, rmr=0, len=SLOT, ctx=place)
        expect(client.completion(opcode="WRITE").ctx, place, "op_context")
    disconnect(client, server)


@case("overrun", "CQ of 1, {count} messages arrive: the receiver's queue pair breaks, nobody is "
      "told, the sender waits until it disconnects", [{"count": 5}],
      shows=("Completions are missing",))
def receives_overflow(test, count):
    lab.need_virtual("a CQ of exactly the size that was asked for")
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    server("cfg", cq=1, rq=count)
    connect(server, client, server_cfg=0)
    for place in range(count):
        server("recv", mr=0, off=place * SLOT, len=SLOT, ctx=place)
    for place in range(count):
        client("send", mr=0, len=SLOT, ctx=place)
    overflows(server, 1)
    expect(client.completion(opcode="SEND").ctx, 0, "op_context")
    expect(server.completion(opcode="RECV").ctx, 0, "op_context")
    server("recv", mr=0, len=SLOT, ctx=count)
    expect(server.completion("WR_FLUSH_ERR").ctx, count, "op_context")
    nothing_more(server)
    nothing_more(client)
    client("disconnect")
    given_back = client.completions(count - 1)
    expect([(found.status, found.ctx) for found in given_back],
           [("WR_FLUSH_ERR", place) for place in range(1, count)], "sends")
    server.event("CLOSED")
    server("disconnect")
    works_with_new_client(test, server)
