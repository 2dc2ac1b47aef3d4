# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Large numbers: unanswered requests, connections from one thread, connections on one queue."""

import collections
import time

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, listening, share_region
from harness.side import ALWAYS, expect, wait_until

from .crowd import make_server, pause, serve_until_all_left
from .establishing import flood


def held_by(server):
    """The server's descriptors, heap and device objects."""
    return {**lab.resources()[server.device], "descriptors": len(server.descriptors()),
            "heap": int(server("heap")["bytes"])}


WITHOUT_END = "{count} requests that are never completed: no queue pair, and nothing leaks"


@case("large", WITHOUT_END, [{"count": 10000}], limit=600, needs=(lab.BARE_REQUESTS,))
@case("scale", WITHOUT_END, [{"count": 200}], limit=120, needs=(lab.BARE_REQUESTS,))
def requests_without_end(test, count):
    """A server receives requests and answers none, then deletes them."""
    lab.need_virtual("a network for a flood of requests")
    server = test.side(1, "server")
    listen(server)
    before = held_by(server)
    requests = flood(test, server, count)
    server("next-incoming", count=count)
    most = held_by(server)
    for kind in ("qp", "cq", "mr"):
        expect(most[kind], before[kind], f"{kind} while the requests are held")
    expect(most["descriptors"], before["descriptors"] + count, "descriptors")
    requests.end()
    requests.kill()  # otherwise some requests are repeated
    server("nonblock", fd="ep")
    after = {}

    def nothing_leaks():
        server.code("req-delete", count=count)  # the client has ended: nothing to reject
        server.code("next-incoming", count=count, timeout=0)  # requests that arrived meanwhile
        after.update(held_by(server))
        return all(after[kind] == before[kind] for kind in ("descriptors", "qp", "cm_id"))

    wait_until(nothing_leaks, "descriptors, queue pairs and identifiers are as before the requests")
    # librdmacm keeps a table of identifiers, 8 bytes for each, and extends it by whole blocks
    # (indexer.c, idm_grow()). One lost allocation per request, at least 32 bytes, would exceed the
    # limit.
    expect(after["heap"] < before["heap"] + 16 * count + 16384, True,
           f"{after['heap']} bytes after the requests, {before['heap']} before")


LIMIT = 4  # seconds until an unreachable address fails


def next_step(client, number, requested):
    """Executes the next step of an attempt. Returns "up" or "failed" when it has ended, otherwise None."""
    if number not in requested:
        code = client.code("req-resolve", req=number, timeout=0)
        for verb in ("req-setup", "connect"):
            code = client.code(verb, req=number, conn=number, cfg=0) if code == "ok" else code
        if code == "ok":
            requested.add(number)
        if code in ("ok", "RPMA_E_AGAIN"):
            return None
        client("req-delete", req=number)
        return "failed"
    code, answer = client.execute("event", conn=number, timeout=0)
    if code == "RPMA_E_NO_EVENT":
        return None
    return "up" if answer.get("event") == "ESTABLISHED" else "failed"


def connect_to_all(client, addresses):
    """
    Connects to all addresses in one thread. Returns the seconds until each success and each
    failure, and of the longest step.
    """
    began, longest, requested, ends = time.monotonic(), 0, set(), {"up": [], "failed": []}
    for number, address in enumerate(addresses):
        client("req-start", req=number, addr=address, port=PORT, cfg=0)
        client("epoll-add", fd="req", req=number, tag=number)
    while len(ends["up"]) + len(ends["failed"]) < len(addresses):
        ready = client("epoll-wait")
        for place in range(int(ready["n"])):
            started = time.monotonic()
            if end := next_step(client, int(ready[f"tag{place}"]), requested):
                ends[end].append(time.monotonic() - began)
            longest = max(longest, time.monotonic() - started)
    return ends["up"], ends["failed"], longest


@case("scale", "connections to {count} addresses in one thread, {dead} of them unreachable: no attempt delays another",
      [{"count": 40, "dead": 20}], limit=120, fabric=True)
def attempts_are_independent(test, count, dead):
    lab.need_virtual("addresses that no host has")
    server, client = test.side(1, "server"), test.side(2, "client")
    make_server(server, count)
    server.begin("serve", steps=1)
    client("cfg", timeout=1000 * LIMIT)
    network, every = server.address.rsplit(".", 1)[0], count // dead
    up, failed, longest = connect_to_all(client, [
        server.address if number % every else f"{network}.{200 + number // every}" for number in range(count)])
    expect((len(up), len(failed)), (count - dead, dead), "connections and failures")
    # In sequence, the failures would need the time limit of an address multiplied by their number.
    expect(failed[-1] < LIMIT * dead / 2, True, f"{failed[-1]} s until the last failure was reported")
    expect(longest < LIMIT, True, f"{longest} s for one step")
    client("release")
    pause(server)
    serve_until_all_left(server)


# ---- one queue, created by the program ---------------------------------------------------

WORDS, WORD, TURN = 32, 8, 40  # bytes per turn: written, received, both
SEND_QUEUE, RECEIVE_QUEUE, TURNS = 8, 2, 3
EVERYONE = "{count} connections on one queue, receives {receives}: completions of a connection are in order"
OWN = "in one of their own"


def create_queues(side, count, receives):
    """Creates one queue for all completions, or a second one for receives."""
    side("cq-new", shared_cq=0, size=count * (SEND_QUEUE + (0 if receives == OWN else RECEIVE_QUEUE)))
    if receives == OWN:
        side("cq-new", shared_cq=1, size=count * RECEIVE_QUEUE)
    side("cfg", sq=SEND_QUEUE, rq=RECEIVE_QUEUE, shared_cq=0, **({"shared_rcq": 1} if receives == OWN else {}))


@case("large", EVERYONE, [{"count": 1000, "receives": "in it"}, {"count": 1000, "receives": OWN}],
      limit=300, needs=(lab.MANY_CONNECTIONS,))
@case("scale", EVERYONE, [{"count": 32, "receives": "in it"}, {"count": 16, "receives": OWN}], limit=300, fabric=True)
def connections_share_a_queue(test, count, receives):
    """In each turn all clients write and send a message; the server replies after checking the data."""
    pair = server, client = test.peers()
    queues = 2 if receives == OWN else 1
    everyone = range(count)
    share_region(server, client, size=count * TURN)
    listen(server)
    for side in pair:
        create_queues(side, count, receives)
    for number in everyone:
        connect(server, client, number=number, server_cfg=0, client_cfg=0)
    owners = {side: {int(side("qp", conn=number)["qp"]): number for number in everyone} for side in pair}

    def receive(side, number):
        side("recv", conn=number, mr=0, off=number * TURN + WORDS, len=WORD)

    def completed(side, sends, received):
        """Expects these sends, in order, and this number of receives from each connection."""
        order, arrived = collections.defaultdict(list), collections.Counter()
        counts = [count * len(sends), count * received]
        for shared_cq, number in enumerate(counts if queues == 2 else [sum(counts)]):
            for one in side.completions(number, queue="shared_cq", shared_cq=shared_cq):
                expect(one.status, "SUCCESS", "completion")
                if one.opcode == "RECV":
                    arrived[owners[side][one.qp]] += 1
                else:
                    order[owners[side][one.qp]].append(one.ctx)
        expect((order, arrived), ({number: sends for number in everyone if sends},
                                  {number: received for number in everyone if received}), f"{side.name}: completions")

    for side in pair:
        for number in everyone:
            receive(side, number)
    for turn in range(TURNS):
        for number in everyone:
            data = {"conn": number, "mr": 0, "off": number * TURN}
            client("fill", len=WORDS, seed=turn * count + number, **data)
            client("write", len=WORDS, rmr=0, roff=number * TURN, ctx=2 * turn, **data)
            client("send", len=WORD, ctx=2 * turn + 1, **data)
        completed(server, [], 1)
        for number in everyone:
            server("check", off=number * TURN, len=WORDS, seed=turn * count + number)
            receive(server, number)
            server("send", conn=number, mr=0, off=number * TURN, len=WORD, ctx=turn)
        completed(server, [turn], 0)
        completed(client, [2 * turn, 2 * turn + 1], 1)
        for number in everyone:
            client("check", off=number * TURN + WORDS, len=WORD, seed=turn * count + number)
            receive(client, number)
    for side in pair:
        side.refuses("RPMA_E_PROVIDER", "cq-delete")
    for number in everyone:
        client("conn-delete", conn=number)
        server.event("CLOSED", conn=number)
        server("conn-delete", conn=number)
    for side in pair:
        for number in range(queues):
            side("cq-delete", shared_cq=number)


@case("scale", "a deleted connection leaves its completions in the queue, another one continues")
def completions_remain(test):
    server, client = listening(test)
    client("cq-new", shared_cq=0, size=100)
    client("cfg", shared_cq=0)
    for number in (0, 1):
        connect(server, client, number=number, client_cfg=0)
    first, second = (int(client("qp", conn=number)["qp"]) for number in (0, 1))
    client("write", conn=0, mr=0, rmr=0, len=8, flags=ALWAYS, ctx=10)
    client("cq-wait", queue="shared_cq")
    client("conn-delete", conn=0)
    server.event("CLOSED", conn=0)
    client("write", conn=1, mr=0, rmr=0, len=8, flags=ALWAYS, ctx=11)
    found = client.completions(2, conn=1, queue="shared_cq")
    expect([(one.status, one.ctx, one.qp) for one in found],
           [("SUCCESS", 10, first), ("SUCCESS", 11, second)], "completions")
    client.refuses("RPMA_E_PROVIDER", "cq-delete")
    disconnect(client, server, 1)
    client("conn-delete", conn=1)
    client("cq-delete")  # acknowledges the event of the wait
