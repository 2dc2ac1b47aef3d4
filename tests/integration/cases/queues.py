# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Queues that are small, full or overrun: receives, completions, sends."""

from harness import lab
from harness.case import case, connect, connected, disconnect, listening
from harness.side import expect

from .data import send_until_full
from .events import expect_device_event
from .survivors import check_new_side

MESSAGE_SIZE = 64


@case("queues", "a full send queue refuses a post, and accepts it after completions",
      needs=(lab.WAITING_MESSAGES,), shows=("write",))
def full_send_queue(test):
    """Messages without a receive fill the queue."""
    server, client = connected(test, server={"cq": 1000, "sq": 4, "rq": 500}, client={"cq": 1000, "sq": 4})
    posted = send_until_full(client, mr=0, len=8)
    expect(posted >= 4, True, f"a queue of 4 accepted {posted}")
    client.refuses("RPMA_E_PROVIDER", "write", mr=0, rmr=0, len=8)
    server("recv", mr=0, len=8, count=posted)
    expect([found.ctx for found in client.completions(posted)], list(range(1, posted + 1)), "completions")
    server.completions(posted)
    client("write", mr=0, rmr=0, len=100)
    client.completion(opcode="WRITE")
    disconnect(client, server)


@case("queues", "more receives in one call than the queue accepts, {queue}: the reported number is exact, each gets "
      "a message", [{"queue": "recv", "shows": ("receive",)}, {"queue": "srq-recv"}], fabric=True)
def many_receives(test, queue):
    count, length = 200, 64
    server, client = listening(test)
    server("srq", rq=4, rcq=0)
    server("cfg", cq=500, rq=4, **({"srq": 0} if queue == "srq-recv" else {}))
    connect(server, client, server_cfg=0)
    code, answer = server.execute(queue, method="many", mr=0, len=length, count=count)
    taken = int(answer["posted"])
    expect((code, 4 <= taken < count), ("RPMA_E_AGAIN", True), f"post of {count}, accepted {taken}")
    expect("ERROR" in test.stderr(), False, "errors in the log")
    server.refuses("RPMA_E_PROVIDER", queue, mr=0, len=length)
    for number in range(taken):
        client("fill", len=length, seed=number)
        client("send", mr=0, len=length)
        client.completion(opcode="SEND")
    expect([found.ctx for found in server.completions(taken)], list(range(taken)), "receives")
    server.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)
    for number in range(taken):
        server("check", off=number * length, len=length, seed=number)
    disconnect(client, server)


@case("queues", "a CQ for each completion vector of the device, but for no other", fabric=True)
def vectors(test):
    server, client = listening(test)
    most = int(client("device-limits")["vectors"])
    for number, vector in enumerate(sorted({0, most - 1})):
        client("cq-new", shared_cq=number, size=10, vector=vector)
        client("cfg", cfg=number, shared_cq=number)
        connect(server, client, number=number, client_cfg=number)
        client("write", conn=number, mr=0, rmr=0, len=8)
        client("cq-wait", queue="shared_cq", shared_cq=number)
        client.completion(opcode="WRITE", conn=number, queue="shared_cq", shared_cq=number)
        disconnect(client, server, number)
    client.refuses("RPMA_E_INVAL", "cq-new", shared_cq=5, size=10, vector=most)


# ---- overrun -----------------------------------------------------------------------------


@case("overrun", "{senders} connections exceed a shared receive queue: messages wait, none is lost",
      [{"senders": 2}], needs=(lab.WAITING_MESSAGES,), shows=("shared queue: rpma_recv",), fabric=True)
def srq_exhausted(test, senders):
    """The messages of each sender arrive in order, regardless of the receives that they use."""
    server, client = listening(test)
    room, each = 4, 5
    server("srq", rq=room, rcq=20)
    server("cfg", srq=0)
    for number in range(senders):
        connect(server, client, number=number, server_cfg=0)
    server.refuses("RPMA_E_INVAL", "recv", mr=0, len=MESSAGE_SIZE)
    server("srq-recv", mr=0, len=MESSAGE_SIZE, count=room)
    for place in range(senders * each):
        client("fill", off=place * MESSAGE_SIZE, len=MESSAGE_SIZE, seed=place)
        client("send", conn=place // each, mr=0, off=place * MESSAGE_SIZE, len=MESSAGE_SIZE, ctx=place)
    arrived = server.completions(room, queue="srq")
    server.refuses("ERR_TIMEOUT", "wc", queue="srq", timeout=500)
    while (first := len(arrived)) < senders * each:
        more = min(room, senders * each - first)
        server("srq-recv", mr=0, off=first * MESSAGE_SIZE, len=MESSAGE_SIZE, count=more, ctx=first)
        arrived += server.completions(more, queue="srq")
    for number in range(senders):
        qp = int(server("qp", conn=number)["qp"])
        own = [found for found in arrived if found.qp == qp]
        expect(len(own), each, "messages of a connection")
        mine = list(range(number * each, number * each + each))
        for place, found in zip(mine, own):
            server("check", off=found.ctx * MESSAGE_SIZE, len=found.len, seed=place)
        expect([found.ctx for found in client.completions(each, conn=number)], mine, "sends")
        disconnect(client, server, number)


@case("overrun", "receiver not ready, no retry: RNR_RETRY_EXC_ERR, and the server continues",
      needs=(lab.WAITING_MESSAGES,), shows=("RNR_RETRY_EXC_ERR: send",), fabric=True)
def finite_retry(test):
    """The receiver sets the number of retries for a message."""
    server, client = connected(test, client={"rnr": 0})
    for ctx, status in ((5, "RNR_RETRY_EXC_ERR"), (6, "WR_FLUSH_ERR")):
        server("send", mr=0, len=8, ctx=ctx)
        expect(server.completion(status).ctx, ctx, "op_context")
    disconnect(client, server)
    server("conn-delete")
    check_new_side(test, server)


def nothing_more(side):
    """Expects that neither a completion nor an event is outstanding."""
    side.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)
    side("nonblock", fd="event")
    side.refuses("RPMA_E_NO_EVENT", "event", timeout=0)


@case("overrun", "{whose} CQ of 1 and {count} writes: all arrive, one completes, CQ_ERROR for each other completion, "
      "the connection works", [{"whose": "a connection's", "count": 4}, {"whose": "the program's", "count": 4}],
      shows=("Completions are missing",), fabric=True)
def writes_overflow(test, whose, count):
    """librdmacm has one context for all peers of a process, so any of them can read the events."""
    lab.need_virtual("a CQ of exactly the requested size")
    server, client = listening(test)
    shared_cq = {"shared_cq": 2} if whose == "the program's" else {}
    if shared_cq:
        client("cq-new", size=1, **shared_cq)
    client("cfg", sq=count, **(shared_cq or {"cq": 1}))
    connect(server, client, client_cfg=0)
    client("fill", len=count * MESSAGE_SIZE, seed=1)
    for place in range(count):
        client("write", mr=0, off=place * MESSAGE_SIZE, rmr=0, roff=place * MESSAGE_SIZE, len=MESSAGE_SIZE, ctx=place)
    for _ in range(count - 1):
        expect_device_event(client, "CQ_ERROR", "another peer" if shared_cq else "own peer", queue="main", conn=0,
                            **shared_cq)
    expect(client.completion(opcode="WRITE").ctx, 0, "op_context")
    nothing_more(client)
    server("check", len=count * MESSAGE_SIZE, seed=1)
    for place in range(count):  # lost completions occupy no entry of the send queue
        client("write", mr=0, rmr=0, len=MESSAGE_SIZE, ctx=place)
        expect(client.completion(opcode="WRITE").ctx, place, "op_context")
    disconnect(client, server)


@case("overrun", "CQ of 1, {count} messages arrive: the receiver's queue pair fails, no side has an "
      "event, the sender blocks until it disconnects", [{"count": 5}], fabric=True)
def receives_overflow(test, count):
    lab.need_virtual("a CQ of exactly the requested size")
    server, client = connected(test, server={"cq": 1, "rq": count})
    server("recv", mr=0, len=MESSAGE_SIZE, count=count)
    for place in range(count):
        client("send", mr=0, len=MESSAGE_SIZE, ctx=place)
    expect_device_event(server, "CQ_ERROR", queue="main", conn=0)
    expect(client.completion(opcode="SEND").ctx, 0, "op_context")
    expect(server.completion(opcode="RECV").ctx, 0, "op_context")
    server("recv", mr=0, len=MESSAGE_SIZE, ctx=count)
    expect(server.completion("WR_FLUSH_ERR").ctx, count, "op_context")
    nothing_more(server)
    nothing_more(client)
    client("disconnect")
    expect([(found.status, found.ctx) for found in client.completions(count - 1)],
           [("WR_FLUSH_ERR", place) for place in range(1, count)], "sends")
    server.event("CLOSED")
    server("disconnect")
    check_new_side(test, server)
