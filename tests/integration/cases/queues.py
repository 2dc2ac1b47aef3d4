# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Queues: small, full, separate, shared; and the two ways to wait for them."""

from harness import lab
from harness.case import (PORT, case, connect, connected, disconnect, listen, share_region)
from harness.side import expect


@case("queues", "all of size 1")
def size_one(test):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    for side in (server, client):
        side("cfg", cq=1, sq=1, rq=1)
    connect(server, client, server_cfg=0, client_cfg=0)
    for seed in range(10):
        client("fill", len=1000, seed=seed)
        client("write", mr=0, rmr=0, len=1000)
        client.completion(opcode="WRITE")
        server("check", len=1000, seed=seed)
        server("recv", mr=0, off=2000, len=1000)
        client("send", mr=0, len=1000)
        client.completion(opcode="SEND")
        server.completion(opcode="RECV")
        server("check", off=2000, len=1000, seed=seed)
    disconnect(client, server)


@case("queues", "a full send queue refuses, and takes more once it has drained",
      needs=(lab.WAITING_MESSAGES,), shows=("write",))
def full_send_queue(test):
    """Messages without a receive fill the queue."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    for side in (server, client):
        side("cfg", cq=1000, sq=4, rq=500)
    connect(server, client, server_cfg=0, client_cfg=0)
    client.begin("send-until-full", mr=0, len=8, limit=500)
    code, answer = client.take()
    posted = int(answer["posted"])
    expect(code, "RPMA_E_PROVIDER", "post to a full queue")
    expect(posted >= 4, True, "at least sq_size went in")
    client.refuses("RPMA_E_PROVIDER", "write", mr=0, rmr=0, len=8)
    for _ in range(posted):
        server("recv", mr=0, len=8)
    order = [found.ctx for found in client.completions(posted)]
    expect(order, list(range(1, posted + 1)), "order of completions")
    server.completions(posted)
    client("fill", len=100, seed=1)
    client("write", mr=0, rmr=0, len=100)
    client.completion(opcode="WRITE")
    server("check", len=100, seed=1)
    disconnect(client, server)


@case("queues", "many receives at once, {queue}: those that it takes are exact, and get a message "
      "each", [{"queue": "recv"}, {"queue": "req-recv"}, {"queue": "srq-recv"}])
def many_receives(test, queue):
    """Posts more receives than the queue has room for; then a wrong receive behind a valid one."""
    count, length = 200, 64
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    shared = {"srq": 0} if queue == "srq-recv" else {}
    if shared:
        server("srq", rq=4, rcq=0)
    server("cfg", cq=500, rq=4, **shared)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req", cfg=0)
    if queue == "recv":
        server("connect")
    server.begin(queue, way="many", mr=0, len=length, count=count)
    code, answer = server.take()
    taken = int(answer["posted"])
    expect((code, 4 <= taken < count), ("RPMA_E_AGAIN", True), f"post of {count}, took {taken}")
    if queue != "recv":
        server("connect")
    for side in (client, server):
        side.event("ESTABLISHED")
    for number in range(taken):
        client("fill", len=length, seed=number)
        client("send", mr=0, len=length)
        client.completion(opcode="SEND")
    expect([found.ctx for found in server.completions(taken)], list(range(taken)), "receives")
    server.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    for number in range(taken):
        server("check", off=number * length, len=length, seed=number)
    expect([line for line in test.said().splitlines() if "ERROR" in line], [], "errors in the log")
    if queue == "recv":
        expect(server("recv", way="many", count=0)["posted"], "0", "receives of none")
        server.refuses("RPMA_E_INVAL", "recv", way="many", sgl="-:8:0", count=2)
    disconnect(client, server)


@case("queues", "a queue of any completion vector of the device, and of none behind them")
def vectors(test):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    most = int(client("device-limits")["vectors"])
    for number, vector in enumerate(sorted({0, most - 1})):
        client("lend", lent=number, size=10, vector=vector)
        client("cfg", cfg=number, lent=number)
        connect(server, client, number=number, client_cfg=number)
        client("write", conn=number, mr=0, rmr=0, len=8)
        client("cq-wait", queue="lent", lent=number)
        client.completion(opcode="WRITE", conn=number, queue="lent", lent=number)
    client.refuses("RPMA_E_INVAL", "lend", lent=5, size=10, vector=most)
    expect(f"comp_vector of cfg is {most}, {client.device} has {most}," in test.said(),
           True, "both numbers in the log")
    for number in range(len({0, most - 1})):
        disconnect(client, server, number)


def rows(*combinations):
    return [dict(zip(("rcq", "shared", "srq"), one)) for one in combinations]


# Each value with each value of the others.
ALLOWED = rows((0, 0, "no SRQ"), (10, 1, "no SRQ"), (10, 0, "SRQ"), (0, 1, "SRQ"), (0, 0, "SRQ with its CQ"),
               (10, 0, "SRQ with its CQ"))


def make_cfg(side, rcq, shared, srq):
    queue = {}
    if srq != "no SRQ":
        side("srq", rq=20, rcq=20 if "CQ" in srq else 0)
        queue = {"srq": 0}
    side("cfg", rcq=rcq, shared=shared, cq=20, rq=20, **queue)


def receive_queue(rcq, srq):
    if srq == "SRQ with its CQ":
        return "srq"
    return "rcq" if rcq else "main"


@case("queues", "receive CQ of {rcq}, shared channel {shared}, {srq}",
      ALLOWED)
def combination(test, rcq, shared, srq):
    """The server's receives and sends complete in the queues of its configuration."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    make_cfg(server, rcq, shared, srq)
    connect(server, client, server_cfg=0)
    queue = receive_queue(rcq, srq)
    if srq != "no SRQ":
        server.refuses("RPMA_E_PROVIDER", "srq-delete")  # harms nothing that follows
    for seed in range(3):
        post = {"verb": "recv"} if srq == "no SRQ" else {"verb": "srq-recv"}
        server(**post, mr=0, off=1024, len=512, ctx=seed)
        client("fill", len=512, seed=seed)
        client("send", mr=0, len=512)
        client.completion(opcode="SEND")
        if shared:
            woken_by(server, queue)
        found = server.completion(opcode="RECV", queue=queue)
        expect((found.ctx, found.len), (seed, 512), "receive")
        server("check", off=1024, len=512, seed=seed)
        client("recv", mr=0, off=2048, len=512)
        server("send", mr=0, off=1024, len=512, ctx=seed)
        expect(server.completion(opcode="SEND", queue="main").ctx, seed, "send")
        client.completion(opcode="RECV")
        client("check", off=2048, len=512, seed=seed)
    if shared:
        server.refuses("RPMA_E_SHARED_CHANNEL", "cq-wait")
    else:
        server.refuses("RPMA_E_NOT_SHARED_CHNL", "conn-wait")
    disconnect(client, server)


def woken_by(side, queue):
    """
    A stale wake-up may name the queue of a completion already polled; then the next one counts.
    """
    heard = side("conn-wait")
    if heard["queue"] != queue:
        heard = side("conn-wait")
    expect((heard["queue"], heard["rcq"]), (queue, str(int(queue == "rcq"))), "wake-up")


@case("queues", "receive CQ of {rcq}, shared channel {shared}, {srq}: refused on both sides",
      rows((10, 1, "SRQ with its CQ")))
def refused_combination(test, rcq, shared, srq):
    server, client = test.peers()
    listen(server)
    for side in (server, client):
        make_cfg(side, rcq, shared, srq)
    client.refuses("RPMA_E_INVAL", "req-new", addr=server.address, port=PORT, cfg=0)
    server("nonblock", fd="ep")
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server.refuses("RPMA_E_INVAL", "next-req", cfg=0)
    client.event("REJECTED")
    server.refuses("RPMA_E_NO_EVENT", "next-req", timeout=0)  # no event is left over
    connect(server, client, number=1)
    disconnect(client, server, 1)


@case("queues", "non-blocking descriptors say that there is nothing")
def nonblocking(test):
    server, client = connected(test)
    server("nonblock", fd="ep")
    server.refuses("RPMA_E_NO_EVENT", "next-req", timeout=0, req=1)
    client("nonblock", fd="event")
    client.refuses("RPMA_E_NO_EVENT", "event", timeout=0)
    client("nonblock", fd="cq")
    client.refuses("RPMA_E_NO_COMPLETION", "cq-wait")
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    client("cfg", shared=1)
    connect(server, client, number=1, client_cfg=0)
    client("nonblock", fd="channel", conn=1)
    client.refuses("RPMA_E_NO_COMPLETION", "conn-wait", conn=1)
    client("epoll-add", fd="cq", tag=7)
    client.refuses("ERR_TIMEOUT", "epoll-wait", timeout=50)
    client("write", mr=0, rmr=0, len=8)
    expect(client("epoll-wait"), {"n": "1", "tag0": "7"}, "epoll")
    client("cq-wait")
    expect(client("poll-wc")["n"], "1", "completions")
    for number in (0, 1):
        disconnect(client, server, number)
