# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Batches and arrays: replaced operations, versions of data, threads, partially accepted lists, and early ends."""

from harness import lab
from harness.case import case, connected, disconnect
from harness.network import cables, cut, mend
from harness.side import LOCAL_USAGES, ON_ERROR, expect

from .data import PATIENT, post, send_until_full

FLAG = "0102030405060708"
MESSAGE_SIZE = 64
QUEUE = 4  # requested size of a small send queue


def prepared(test, size=1 << 20, sq=100, queues=150):
    """Connects with queues for batches of two-element lists. The client has a second region."""
    settings = {"sge": 2, "sq": sq, "rq": queues, "cq": 3 * queues, **PATIENT}
    server, client = connected(test, size, settings, settings)
    client("reg", mr=1, size=size, usage=LOCAL_USAGES)
    return server, client


def expect_contexts(side, count, first=0, status="SUCCESS", **values):
    """Expects this number of completions, in the order of their contexts and all with this status."""
    found = [(one.ctx, one.status) for one in side.completions(count, **values)]
    if lab.lacks(lab.ORDERED_COMPLETIONS):
        found.sort()
    expect(found, [(number, status) for number in range(first, first + count)], f"{side.name}: completions")


def expect_no_completion(*sides):
    for side in sides:
        side.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)


@case("batches", "{length} bytes, changed between {versions} posts: a reader that sees the flag of the atomic "
      "write sees the data", [{"versions": 50, "length": 5000},
                                      {"versions": 5, "length": 1 << 20, "fabric": True}], limit=120)
def versions_follow(test, versions, length):
    """The server polls the flag in memory and checks each version as soon as it sees the flag."""
    server, client = prepared(test, size=2 << 20)
    client("batch-new", ops=4)
    client("write", batch=0, mr=0, off=64, rmr=0, roff=64, len=length, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=64, len=length, persistent=0, flags=ON_ERROR)
    client("atomic", batch=0, rmr=0, roff=0, bytes=FLAG, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, roff=0, len=8, persistent=0)
    for version in range(versions):
        server.begin("check", off=64, len=length, seed=version, flag=0, bytes=FLAG)
        client("fill", off=64, len=length, seed=version)
        client("batch-post")
        client.completion()
        server.end()
        server("set", len=8, byte=0)
    expect_no_completion(server, client)
    disconnect(client, server)


# ---- queues that accept part of a list ----------------------------------------------------


def add_messages(client, count):
    for number in range(count):
        client("fill", off=number * MESSAGE_SIZE, len=MESSAGE_SIZE, seed=number)
        client("send", batch=0, mr=0, off=number * MESSAGE_SIZE, len=MESSAGE_SIZE, ctx=number)


def expect_received_once(server, count):
    """Expects these messages in the receives, each once and in order, and no other message."""
    expect_contexts(server, count, busy=1)
    for number in range(count):
        server("check", off=number * MESSAGE_SIZE, len=MESSAGE_SIZE, seed=number)
    expect_no_completion(server)


def post_rest(client, count, posted):
    """Posts until the device has accepted all operations. Completions free queue entries."""
    while posted < count:
        code, part = post(client)
        posted += part
        expect(code, "ok" if posted == count else "RPMA_E_AGAIN", f"post up to {posted} of {count}")
        if part:
            expect_contexts(client, part, posted - part)
    expect_no_completion(client)


def expect_no_errors_in_log(test):
    """A full queue is a normal result, not an error."""
    expect([line for line in test.stderr().splitlines() if "ERROR" in line], [], "errors in the log")


@case("batches", "a send queue that accepts part of the list: the next post continues, and every message arrives once",
      builds=("native",), needs=(lab.FULL_QUEUE,), fabric=True)
def full_queue(test):
    """The receives are posted after the first post, so that all messages stay queued until then."""
    count = 40
    server, client = prepared(test, sq=QUEUE)
    client("batch-new", ops=count)
    add_messages(client, count)
    code, posted = post(client)
    server("recv", mr=0, len=MESSAGE_SIZE, count=count)
    expect((code, QUEUE <= posted < count), ("RPMA_E_AGAIN", True), f"accepted {posted}")
    expect_contexts(client, posted)
    post_rest(client, count, posted)
    expect_received_once(server, count)
    expect_no_errors_in_log(test)
    disconnect(client, server)


@case("batches", "link down: a batch fills the send queue and its post reports it, "
      "and each operation completes once after the link is up", lacks=lab.FULL_QUEUE)
def link_down(test):
    """While the link is down, TCP buffers fewer bytes than the list has."""
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
        expect(code, "RPMA_E_AGAIN", f"post after the first {taken}")
        taken += posted
    expect_no_errors_in_log(test)
    mend(cable)
    expect_contexts(client, taken)
    post_rest(client, count, taken)
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    server("check", len=1 << 20, seed=1)
    disconnect(client, server)


@case("batches", "a list with a flush that exceeds the send queue: a native list is posted in parts that fit, or "
      "not at all")
def full_queue_with_flush(test):
    """Of a list without native operations, the operations that fit are posted."""
    count = 40
    server, client = prepared(test, sq=QUEUE)
    server("recv", mr=0, len=MESSAGE_SIZE, count=count)
    client("batch-new", ops=count)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=0)
    for number in range(1, count):
        client("send", batch=0, mr=0, off=number * MESSAGE_SIZE, len=MESSAGE_SIZE, ctx=number)
    post_rest(client, count, 0)
    server.completions(count - 1)
    client("batch-reset")
    add_messages(client, QUEUE - 1)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=QUEUE - 1)
    server("recv", mr=0, len=MESSAGE_SIZE, count=QUEUE - 2)  # one receive is left from above
    expect(post(client), ("ok", QUEUE), "post of as many as the queue has room for")
    expect_contexts(client, QUEUE)
    server.completions(QUEUE - 1)
    if lab.lacks(lab.WAITING_MESSAGES):
        disconnect(client, server)
        return
    waiting = send_until_full(client, mr=0, off=MESSAGE_SIZE, len=MESSAGE_SIZE)
    for _ in range(2):
        expect(post(client), ("RPMA_E_AGAIN", 0), "post to a full queue")
    server("recv", mr=0, len=MESSAGE_SIZE, count=waiting, ctx=1000)
    expect_contexts(client, waiting, 1)
    server.completions(waiting)
    server("recv", mr=0, len=MESSAGE_SIZE, count=QUEUE - 1)
    expect(post(client), ("ok", QUEUE), "post to an empty queue")
    expect_contexts(client, QUEUE)
    expect_received_once(server, QUEUE - 1)
    disconnect(client, server)
