# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Many connections whose completions go to one queue, which the program made."""

from cases.crowd import ROOMY
from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import ALWAYS, expect

SHARE = 7 * 8  # bytes of a connection's share at each side
SEND_QUEUE, RECEIVE_QUEUE = 8, 2


def lend(side, count, receives):
    """One queue for all completions, or a second one for receives."""
    apart = receives == "in one of their own"
    side("lend", lent=0, size=count * (SEND_QUEUE + (0 if apart else RECEIVE_QUEUE)))
    queues = {"lent": 0}
    if apart:
        side("lend", lent=1, size=count * RECEIVE_QUEUE)
        queues["lent-rcq"] = 1
    side("cfg", sq=SEND_QUEUE, rq=RECEIVE_QUEUE, **queues)


def everyone_has_turns(test, count, turns, receives):
    pair = server, client = [test.prepare(test.start(number, name, wrapper=ROOMY))
                             for number, name in ((1, "server"), (2, "client"))]
    for side in pair:
        side("peer")
    share_region(server, client, size=count * SHARE)
    listen(server)
    before = lab.resources()
    for side in pair:
        lend(side, count, receives)
    server.begin("line-accept", count=count, cfg=0)
    client("line-connect", count=count, cfg=0, addr=server.address, port=PORT)
    server.end()
    now = lab.resources()
    queues = 2 if receives == "in one of their own" else 1
    for side in pair:
        expect(now[side.device]["qp"] - before[side.device]["qp"], count, "queue pairs")
        expect(now[side.device]["cq"] - before[side.device]["cq"], queues, "completion queues")
    for threads in (0,) if queues > 1 else (4, 0):  # 4 block in the queue; 0: an epoll
        server.begin("line", threads=threads)
        done = client("line", threads=threads, turns=turns * count)
        served = server.end()
        expect(int(done["turns"]) >= turns * count, True, "turns")
        expect(served["least"] + served["most"], done["least"] + done["most"], "turns answered")
        for answer in (done, served):
            expect((answer["left"], answer["outstanding"]), (str(count), "0"),
                   "connections that ended, operations left")
        # Fairness: the connection with the fewest turns gets about as many as the others.
        expect(int(done["least"]) * 4 >= turns, True, f"share of the last in line, of {done}")
    for side in pair:
        side.refuses("RPMA_E_PROVIDER", "lend-no-more")
    server.begin("line-end")
    client("line-end", begins=1)
    server.end()
    for side in pair:
        for number in range(queues):
            side("lend-no-more", lent=number)


EVERYONE = ("{count} connections on one queue, receives {receives}: each completion is its connection's next, "
            "each connection gets its share")


@case("large", EVERYONE, [{"count": 1000, "receives": "in it"}, {"count": 1000, "receives": "in one of their own"}],
      limit=300, needs=(lab.MANY_CONNECTIONS,))
@case("line", EVERYONE, [{"count": 48 if lab.lacks(lab.MANY_CONNECTIONS) else 300, "receives": "in it"},
                         {"count": 48, "receives": "in one of their own"}], limit=300)
def everyone(test, count, receives):
    everyone_has_turns(test, count, max(1920 // count, 4), receives)


@case("line", "a deleted connection leaves its completions in the queue, another one works on")
def left_behind(test):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("lend", lent=0, size=100)
    client("cfg", lent=0)
    for number in (0, 1):
        connect(server, client, number=number, client_cfg=0)
    first, second = (int(client("qp", conn=number)["qp"]) for number in (0, 1))
    client("write", conn=0, mr=0, rmr=0, len=8, flags=ALWAYS, ctx=10)
    client("cq-wait", queue="lent")
    client("conn-delete", conn=0)
    server.event("CLOSED", conn=0)
    client("write", conn=1, mr=0, rmr=0, len=8, flags=ALWAYS, ctx=11)
    found = client.completions(2, conn=1, queue="lent")
    expect([(one.status, one.ctx, one.qp) for one in found],
           [("SUCCESS", 10, first), ("SUCCESS", 11, second)], "completions")
    client.refuses("RPMA_E_PROVIDER", "lend-no-more")
    disconnect(client, server, 1)
    client("conn-delete", conn=1)
    client("lend-no-more")  # acknowledges the event of the wait
