# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Batches and arrays: replaced operations, versions of data, threads, queues that take a part, and early ends."""

from harness import lab
from harness.case import case, connect, disconnect, listen, share_region
from harness.network import cables, cut, mend
from harness.side import ALL_USAGES, LOCAL_USAGES, ON_ERROR, expect

from .data import AROUND, PATIENT, post

PIECE = 4096
FLAG = "0102030405060708"
SLOT = 64
QUEUE = 4  # elements of the send queue that a case with a small one asks for


def prepared(test, size=1 << 20, sq=100, queues=150):
    """A connection with room for batches of lists of two; the client has a second region."""
    server, client = test.peers()
    for side in (server, client):
        side("cfg", sge=2, sq=sq, rq=queues, cq=3 * queues, **PATIENT)
    client("memory", mr=1, size=size)
    client("reg", mr=1, usage=LOCAL_USAGES)
    share_region(server, client, size)
    listen(server)
    connect(server, client, server_cfg=0, client_cfg=0)
    return server, client


def contexts(side, count, first=0, status="SUCCESS", **values):
    """So many operations complete in the order of their contexts, all with this status."""
    found = [(one.ctx, one.status) for one in side.completions(count, **values)]
    if lab.lacks(lab.ORDERED_COMPLETIONS):
        found.sort()
    expect(found, [(number, status) for number in range(first, first + count)], f"{side.name}: completions")


def at_rest(*sides):
    for side in sides:
        side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")


@case("batches", "posted {versions} times, {length} bytes that change in between: who sees the "
      "flag of the atomic write sees the data", limit=120,
      table=[{"versions": 500, "length": 5000}, {"versions": 5, "length": 1 << 20}])
def versions_follow(test, versions, length):
    """The server only polls memory, checks every version, and resets the flag."""
    server, client = prepared(test, size=2 << 20)
    first = length // 3 + 1
    client("batch-new", ops=4)
    mine = f"0:64:{first},1:8:{length - first}"
    client("write", batch=0, sgl=mine, rmr=0, roff=64, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=64, len=length, persistent=0, flags=ON_ERROR)
    client("atomic", batch=0, rmr=0, roff=0, bytes=FLAG, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=0, len=8, persistent=0)
    server.begin("follow", mr=0, off=0, bytes=FLAG, versions=versions,
                 sgl=f"0:64:{first},0:{64 + first}:{length - first}")
    client.begin("publish", batch=0, sgl=mine, mr=0, off=0, versions=versions, ops=4)
    expect(server.end(timeout=600)["versions"], str(versions), "versions checked")
    expect(client.end()["versions"], str(versions), "versions posted")
    at_rest(server, client)
    disconnect(client, server)


@case("batches", "two threads with a batch each on one connection, {rounds} rounds", [{"rounds": 100}])
def two_threads(test, rounds):
    """Each round's data are read back; each round's message arrives once, in order."""
    threads, length, share, message = 2, 3000, 8192, 16
    server, client = prepared(test, queues=threads * rounds)
    server("memory", mr=1, size=threads * rounds * message)
    server("reg", mr=1, usage=ALL_USAGES)
    server("recv", mr=1, len=message, count=threads * rounds)
    for number in range(threads):
        client("batch-new", batch=number, ops=6)
        at = {"batch": number, "rmr": 0, "roff": number * share, "flags": ON_ERROR}
        client("write", sgl=f"{number}:0:1000,{number}:1000:{length - 1000}", **at)
        if number == 0:  # this thread's list has native operations, the other one's has none
            client("flush", **at, len=length, persistent=0)
            client("atomic", **{**at, "roff": number * share + 4096}, bytes=FLAG)
        client("send", batch=number, mr=number, off=2 * length, len=message, flags=ON_ERROR)
        client("read", **{**at, "flags": 3}, mr=number, off=length, len=length, ctx=number)
    done = client("post-in-threads", threads=threads, len=length, rounds=rounds)
    expect({value for key, value in done.items()}, {str(rounds)}, "posts and completions of each thread")
    server.completions(threads * rounds)
    raw = bytes.fromhex(server("bytes", mr=1, off=0, len=threads * rounds * message)["bytes"])
    words = [int.from_bytes(raw[at:at + 8], "little") for at in range(0, len(raw), 8)]
    for number in range(threads):
        expect([heard for thread, heard in zip(words[::2], words[1::2]) if thread == number], list(range(rounds)),
               f"messages of thread {number}")
    at_rest(server, client)
    disconnect(client, server)


# ---- queues that take a part --------------------------------------------------------------


def add_messages(client, count, first=0):
    for number in range(first, first + count):
        client("fill", off=number * SLOT, len=SLOT, seed=number)
        client("send", batch=0, mr=0, off=number * SLOT, len=SLOT, ctx=number)


def heard_once(server, count, first=0):
    """The receives hold these messages, each once and in order, and no other message arrived."""
    contexts(server, count, first, busy=1)
    for number in range(first, first + count):
        server("check", off=number * SLOT, len=SLOT, seed=number)
    at_rest(server)


def rest_posted(client, count, posted):
    """Posts until the device has taken all operations; completions make room."""
    while posted < count:
        code, part = post(client)
        posted += part
        expect(code, "ok" if posted == count else "RPMA_E_AGAIN", f"post up to {posted} of {count}")
        if part:
            contexts(client, part, posted - part)
    at_rest(client)


def nobody_complains(test):
    """A full queue is a normal answer and no error."""
    expect([line for line in test.said().splitlines() if "ERROR" in line], [], "errors in the log")


@case("batches", "a send queue that takes a part of the list: the next post goes on, more is added behind it, what is "
      "left is forgotten with the batch; every message arrives once", builds=("native",), needs=(lab.FULL_QUEUE,))
def full_queue(test):
    """Receives are posted behind the first post, so that no message leaves the queue before."""
    count = 40
    server, client = prepared(test, sq=QUEUE)
    client("batch-new", ops=count)

    def first_part(wanted):
        code, posted = post(client)
        server("recv", mr=0, len=SLOT, count=count)
        expect((code, QUEUE <= posted < wanted), ("RPMA_E_AGAIN", True), f"took {posted}")
        contexts(client, posted)
        return posted

    add_messages(client, count)
    for _ in range(2):  # the second time begins at the start of the list
        rest_posted(client, count, first_part(count))
        heard_once(server, count)
    client("batch-reset")
    add_messages(client, count // 2)
    posted = first_part(count // 2)
    add_messages(client, count // 2, first=count // 2)
    rest_posted(client, count, posted)
    heard_once(server, count)
    posted = first_part(count)
    client("batch-reset")
    heard_once(server, posted)
    add_messages(client, 1, first=posted)
    expect(post(client), ("ok", 1), "post behind a forgotten rest")
    contexts(client, 1, posted)
    heard_once(server, 1, first=posted)
    nobody_complains(test)
    disconnect(client, server)


@case("batches", "nothing leaves while the cable is out: a batch fills the send queue, which says so, "
      "and each operation completes once when the cable is in", lacks=lab.FULL_QUEUE)
def no_way_out(test):
    """TCP buffers fewer bytes than the list has while the cable is out."""
    cable = cables(test)[1]
    server, client = prepared(test, sq=QUEUE)
    count = 60
    client("fill", len=1 << 20, seed=1)
    client("batch-new", ops=count)
    for number in range(count):
        client("write", batch=0, mr=0, rmr=0, len=1 << 20, ctx=number)
    cut(cable)
    taken, posted = 0, count
    while posted:
        code, posted = post(client)
        expect(code, "RPMA_E_AGAIN", f"post of the rest behind {taken}")
        taken += posted
    nobody_complains(test)
    mend(cable)
    contexts(client, taken)
    rest_posted(client, count, taken)
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    server("check", len=1 << 20, seed=1)
    disconnect(client, server)


@case("batches", "a flush in a list that the send queue cannot take at once: a native list goes in parts that fit, or "
      "not at all")
def full_queue_with_flush(test):
    """Other lists go as far as there is room."""
    count = 40
    server, client = prepared(test, sq=QUEUE)
    server("recv", mr=0, len=SLOT, count=count)
    client("batch-new", ops=count)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=0)
    for number in range(1, count):
        client("send", batch=0, mr=0, off=number * SLOT, len=SLOT, ctx=number)
    rest_posted(client, count, 0)
    server.completions(count - 1)
    client("batch-reset")
    add_messages(client, QUEUE - 1)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=QUEUE - 1)
    server("recv", mr=0, len=SLOT, count=QUEUE - 2)  # one is left
    expect(post(client), ("ok", QUEUE), "post of as many as the queue has room for")
    contexts(client, QUEUE)
    server.completions(QUEUE - 1)
    if lab.lacks(lab.WAITING_MESSAGES):
        disconnect(client, server)
        return
    client.begin("send-until-full", mr=0, off=SLOT, len=SLOT, limit=100)
    code, answer = client.take()
    waiting = int(answer["posted"])
    expect(code, "RPMA_E_PROVIDER", "post to a full queue")
    for _ in range(2):
        expect(post(client), ("RPMA_E_AGAIN", 0), "post to a full queue")
    server("recv", mr=0, len=SLOT, count=waiting, ctx=1000)
    contexts(client, waiting, 1)
    server.completions(waiting)
    server("recv", mr=0, len=SLOT, count=QUEUE - 1)
    expect(post(client), ("ok", QUEUE), "post to an empty queue")
    contexts(client, QUEUE)
    heard_once(server, QUEUE - 1)
    disconnect(client, server)


@case("batches", "deleted while its operations wait: they arrive", needs=(lab.WAITING_MESSAGES,))
def deleted_waiting(test):
    """
    The first operation waits for a receive, and the other ones wait for the first. Meanwhile new
    batches take the memory of the old one. rdma_rxe cannot repeat native operations, so they have a
    case of their own.
    """
    server, client = prepared(test)
    server("set", len=4 * PIECE, byte=AROUND)
    client("fill", len=PIECE, seed=1)
    client("batch-new", ops=5)
    client("send", batch=0, mr=0, len=8, ctx=0)
    client("write", batch=0, mr=0, rmr=0, roff=PIECE, len=PIECE, ctx=1)
    client("write", batch=0, sgl=f"0:0:8,0:8:{PIECE - 8}", rmr=0, roff=2 * PIECE, ctx=2)
    count = 3
    if not test.is_native:
        client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=3)
        client("atomic", batch=0, rmr=0, roff=3 * PIECE, bytes=FLAG, ctx=4)
        count = 5
    expect(post(client), ("ok", count), "post")
    client("batch-delete")
    for number in range(4):
        client("batch-new", batch=number, ops=5)
        for _ in range(5):
            client("atomic", batch=number, rmr=0, roff=3 * PIECE, bytes="ee" * 8)
    at_rest(client)
    server("check-set", len=4 * PIECE, byte=AROUND)
    server("recv", mr=0, len=8)
    contexts(client, count)
    server("check", off=PIECE, len=PIECE, seed=1)
    server("check", off=2 * PIECE, len=PIECE, seed=1)
    if not test.is_native:
        expect(server("bytes", off=3 * PIECE, len=8)["bytes"], FLAG, "atomic write")
    disconnect(client, server)
