# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Many requests that nobody answers, connections in one thread, connections on one queue."""

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import ALWAYS, expect

from .establishing import ROOMY, Program, flood, wait_until


def counts(number):
    """Objects of the device of a host."""
    device = f"{lab.PROVIDER}{number}" if lab.IS_VIRTUAL else next(iter(lab.resources()))
    return lab.resources()[device]


WITHOUT_END = "{count} requests that never finish: no queue pair, and nothing stays"


@case("large", WITHOUT_END, [{"count": 10000}], limit=600, needs=(lab.BARE_REQUESTS,))
@case("scale", WITHOUT_END, [{"count": 800}], limit=120, needs=(lab.BARE_REQUESTS,))
def requests_without_end(test, count):
    """A server takes requests and answers none, then deletes them."""
    lab.need_virtual("a network for a flood of requests")
    server = Program(test, 1, "hold", lab.address("host1"), PORT, "0", str(count))
    before = {**server.reads("listening"), **counts(1)}
    requests = flood(test, lab.address("host1"), count)
    server.goes_on()
    server.reads("at-once")
    server.reads("taken")
    server.goes_on()
    most = {**server.reads("held"), **counts(1)}
    expect(int(server.reads("taken")["taken"]), count, "requests taken")
    for kind in ("qp", "cq", "mr"):
        expect(most[kind], before[kind], f"{kind} while the requests are held")
    expect(int(most["descriptors"]), int(before["descriptors"]) + count, "descriptors")
    requests.end_by_force()  # otherwise some requests are repeated
    after = {}

    def nothing_stays():
        server.goes_on()
        after.update({**server.reads("deleted"), **counts(1)})
        return all(after[kind] == before[kind] for kind in ("descriptors", "qp", "cm_id"))

    wait_until(nothing_stays, "descriptors, queue pairs and identifiers are as before the requests")
    server.ends()
    # librdmacm keeps the table of its numbers, 8 bytes for each, and adds whole blocks to it (indexer.c, idm_grow()).
    # Together with a lost allocation per request, 32 bytes at least, this would be more.
    expect(int(after["heap"]) < int(before["heap"]) + 16 * count + 16384, True,
           f"{after['heap']} bytes behind the requests, {before['heap']} before")


@case("scale", "many connections in one thread, a tenth of them to addresses that nobody has: none "
      "waits for another", limit=120)
def none_waits_for_another(test):
    lab.need_virtual("addresses that nobody has")
    count, dead = (40, 4) if lab.lacks(lab.MANY_CONNECTIONS) else (300, 30)
    here = lab.address("host1")
    nobody = [f"{here.rsplit('.', 1)[0]}.{number}" for number in range(250 - dead, 250)]
    every = count // dead
    addresses = [nobody[i // every] if i % every == every - 1 else here for i in range(count)]
    before = counts(1)
    server = Program(test, 1, "server", here, PORT)
    server.reads("listening")
    clients = Program(test, 2, "clients", PORT, *addresses)
    figures = clients.reads("established")
    expect((int(figures["established"]), int(figures["failed"])), (count - dead, dead), "established and failed")
    # One after another the dead ones would take the timeout of one second each.
    expect(float(figures["last-failed"]) < dead * 1000 / 2, True,
           f"{figures['last-failed']} ms until the last dead address was told")
    expect(float(figures["longest-call"]) < 1000, True, f"{figures['longest-call']} ms in one call")
    clients.goes_on()
    clients.reads("gone")
    clients.ends()
    wait_until(lambda: counts(1)["qp"] == before["qp"], "the server has deleted its connections")
    server.ends()


# ---- one queue, which the program made ---------------------------------------------------

TURN = 7 * 8  # bytes of a connection's share at each side
SEND_QUEUE, RECEIVE_QUEUE = 8, 2
EVERYONE = ("{count} connections on one queue, receives {receives}: each completion is its connection's next, "
            "each connection gets its share")
OWN = "in one of their own"


def lend(side, count, receives):
    """One queue for all completions, or a second one for receives."""
    side("lend", lent=0, size=count * (SEND_QUEUE + (0 if receives == OWN else RECEIVE_QUEUE)))
    if receives == OWN:
        side("lend", lent=1, size=count * RECEIVE_QUEUE)
    side("cfg", sq=SEND_QUEUE, rq=RECEIVE_QUEUE, lent=0, **({"lent-rcq": 1} if receives == OWN else {}))


@case("large", EVERYONE, [{"count": 1000, "receives": "in it"}, {"count": 1000, "receives": OWN}],
      limit=300, needs=(lab.MANY_CONNECTIONS,))
@case("line", EVERYONE, [{"count": 48 if lab.lacks(lab.MANY_CONNECTIONS) else 200, "receives": "in it"},
                         {"count": 48, "receives": OWN}], limit=300)
def everyone_has_turns(test, count, receives):
    turns = max(1920 // count, 4)
    pair = server, client = [test.prepare(test.start(number, name, wrapper=ROOMY))
                             for number, name in ((1, "server"), (2, "client"))]
    for side in pair:
        side("peer")
    share_region(server, client, size=count * TURN)
    listen(server)
    before = lab.resources()
    for side in pair:
        lend(side, count, receives)
    server.begin("line-accept", count=count, cfg=0)
    client("line-connect", count=count, cfg=0, addr=server.address, port=PORT)
    server.end()
    now = lab.resources()
    queues = 2 if receives == OWN else 1
    for side in pair:
        grown = [now[side.device][kind] - before[side.device][kind] for kind in ("qp", "cq")]
        expect(grown, [count, queues], "queue pairs and completion queues")
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
