# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Batches and arrays that the device does not take whole."""

from harness import lab
from harness.case import case, disconnect
from harness.network import cables, cut, mend
from harness.side import expect

from .batches import post, prepared

SLOT = 64
QUEUE = 4  # elements of the send queue that the case asks for


def add_messages(client, count, first=0, batch=0):
    """Adds messages to a batch or, with batch None, to the held array."""
    for number in range(first, first + count):
        client("fill", off=number * SLOT, len=SLOT, seed=number)
        client("send", **where(batch), mr=0, off=number * SLOT, len=SLOT, ctx=number)


def where(batch):
    return {"way": "hold"} if batch is None else {"batch": batch}


def heard_once(server, count, first=0):
    """The receives hold these messages, each once and in order, and no other message arrived."""
    found = server.completions(count, busy=1)
    expect([one.ctx for one in found], list(range(first, first + count)), "receives")
    for number in range(first, first + count):
        server("check", off=number * SLOT, len=SLOT, seed=number)
    server.refuses("RPMA_E_NO_COMPLETION", "poll-wc")


def posted_in_parts(client, count, batch=0, receive=None):
    """
    Posts until the device has taken all operations; completions make room. Returns the sizes of the
    parts. A device may complete the operations behind a flush before it. receive() posts receives:
    behind the first post, so that no message leaves the queue before, where messages wait for them.
    """
    parts = []
    done = []
    waits = receive and not lab.lacks(lab.WAITING_MESSAGES)
    if receive and not waits:
        receive()
    while sum(parts) < count:
        code, posted = post(client, batch)
        if waits and not parts:
            receive()
        rest = count - sum(parts)
        expect(posted <= rest, True, f"{posted} of {rest} operations")
        expect(code, "ok" if posted == rest else "RPMA_E_AGAIN", f"post of {posted}")
        parts.append(posted)
        if posted:
            done += client.completions(posted)
    contexts = [one.ctx for one in done]
    if lab.lacks(lab.ORDERED_COMPLETIONS):
        contexts.sort()
    expect(contexts, list(range(count)), "completions")
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    return parts


def received(server, client, count, more=0):
    """Receives the messages that wait, and posts receives for more of them."""
    server("recv", mr=0, len=SLOT, count=count, ctx=1000)
    if more:
        server("recv", mr=0, len=SLOT, count=more)
    client.completions(count)
    server.completions(count)


def took_a_part(parts, least, count):
    """Soft-iWARP sends while operations are posted: then the first post takes the whole list."""
    if not lab.lacks(lab.FULL_QUEUE):
        expect(least <= parts[0] < count, True, f"the first post took {parts[0]}")


def nobody_complains(test):
    """A full queue is a normal answer and no error."""
    expect([line for line in test.said().splitlines() if "ERROR" in line], [], "errors in the log")


@case("batches", "an array with a flush at its end, room for {room}: of {chunk} operations, which go at "
      "once, all or none where flush is native", [{"room": 20, "chunk": 16}],
      needs=(lab.WAITING_MESSAGES,))
def full_queue_array_with_flush(test, room, chunk):
    """Messages without a receive fill the send queue up to the room that the case needs."""
    server, client = prepared(test, sq=2 * chunk, queues=150)
    client.begin("send-until-full", mr=0, len=SLOT, limit=150)
    waiting = int(client.take()[1]["posted"])
    received(server, client, waiting)
    waiting -= room
    client("send-until-full", mr=0, len=SLOT, limit=waiting)
    add_with_flush(client, 2 * chunk, batch=None)
    first = chunk if test.is_native else room
    expect(post(client, None), ("RPMA_E_AGAIN", first), "post into what is left")
    received(server, client, waiting, 2 * chunk - 1)
    client.completions(first)
    expect(post(client, None), ("ok", 2 * chunk - first), "post of the rest")
    expect([one.ctx for one in client.completions(2 * chunk - first)],
           list(range(first, 2 * chunk)), "completions")
    heard_once(server, 2 * chunk - 1)
    disconnect(client, server)


@case("batches", "an operation of an array that is not valid: those before it are posted, and none "
      "behind it")
def not_valid(test):
    server, client = prepared(test)
    server("set", len=4 * SLOT, byte=0)
    for number in range(4):
        client("write", way="hold", mr=0, rmr=0, roff=number * SLOT, len=SLOT, ctx=number,
               flags=3 if number != 2 else 0)
    client("fill", len=SLOT, seed=1)
    for posted in (2, 0):  # the wrong operation is tried as the first one, too
        expect(post(client, None), ("RPMA_E_INVAL", posted), "post")
    expect([one.ctx for one in client.completions(2)], [0, 1], "completions")
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    for number in (0, 1):
        server("check", off=number * SLOT, len=SLOT, seed=1)
    server("check-set", off=2 * SLOT, len=2 * SLOT, byte=0)
    said = test.said()
    expect((said.count("work[2]: "), said.count("work[0]: ")), (1, 1), "elements in the log")
    client("post", forget=1)
    expect(post(client, None), ("ok", 0), "post of nothing")
    disconnect(client, server)


@case("batches", "a send queue of {queue}, {count} messages: the device takes a part, the next "
      "post goes on, every message arrives once", [{"queue": QUEUE, "count": 60}],
      builds=("native",))
def full_queue(test, queue, count):
    server, client = prepared(test, sq=queue)
    client("batch-new", ops=count)
    add_messages(client, count)
    parts = posted_in_parts(client, count, receive=lambda: server("recv", mr=0, len=SLOT, count=count))
    took_a_part(parts, queue, count)
    heard_once(server, count)
    nobody_complains(test)
    # When the whole list has been posted, the next post begins at its start.
    again_parts = posted_in_parts(
        client, count, receive=lambda: server("recv", mr=0, len=SLOT, count=count, ctx=count))
    if not lab.lacks(lab.FULL_QUEUE):
        expect(again_parts[0], parts[0], "the first post of the second time")
    found = server.completions(count, busy=1)
    expect([one.ctx for one in found], list(range(count, 2 * count)), "receives")
    server.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    disconnect(client, server)


@case("batches", "the device takes a part, more is added behind it: the order is kept",
      builds=("native",), needs=(lab.FULL_QUEUE,))
def added_to_part(test):
    server, client = prepared(test, sq=QUEUE)
    count = 40
    client("batch-new", ops=count)
    add_messages(client, count // 2)
    code, posted = post(client)
    server("recv", mr=0, len=SLOT, count=count)
    expect((code, QUEUE <= posted < count // 2), ("RPMA_E_AGAIN", True), f"took {posted}")
    add_messages(client, count // 2, first=count // 2)
    done = client.completions(posted)
    while posted < count:
        part = post(client)[1]
        posted += part
        done += client.completions(part)
    expect([one.ctx for one in done], list(range(count)), "completions")
    heard_once(server, count)
    disconnect(client, server)


@case("batches", "the device takes a part, the batch is emptied: the rest is forgotten",
      builds=("native",), needs=(lab.FULL_QUEUE,))
def forgotten(test):
    server, client = prepared(test, sq=QUEUE)
    count = 20
    client("batch-new", ops=count)
    add_messages(client, count)
    posted = post(client)[1]
    server("recv", mr=0, len=SLOT, count=count + 1)
    client("batch-reset")
    client.completions(posted)
    heard_once(server, posted)
    add_messages(client, 1, first=posted)
    expect(post(client), ("ok", 1), "post")
    expect(client.completion().ctx, posted, "op_context")
    heard_once(server, 1, first=posted)
    disconnect(client, server)


@case("batches", "nothing leaves while the cable is out: {one} fills the send queue, which says so, "
      "and each operation completes once when the cable is in", [{"one": "a batch"}, {"one": "an array"}],
      lacks=lab.FULL_QUEUE)
def no_way_out(test, one):
    """TCP buffers fewer bytes than the list has while the cable is out."""
    cable = cables(test)[1]
    batch = 0 if one == "a batch" else None
    server, client = prepared(test, sq=QUEUE)
    count = 60
    client("fill", len=1 << 20, seed=1)
    client("batch-new", ops=count)
    for number in range(count):
        client("write", **where(batch), mr=0, rmr=0, len=1 << 20, ctx=number)
    cut(cable)
    taken, posted = 0, count
    while posted:
        code, posted = post(client, batch)
        expect(code, "RPMA_E_AGAIN", f"post of the rest behind {taken}")
        taken += posted
    nobody_complains(test)
    mend(cable)
    done = client.completions(taken)
    while taken < count:
        code, posted = post(client, batch)
        taken += posted
        expect(code, "ok" if taken == count else "RPMA_E_AGAIN", f"post up to {taken}")
        done += client.completions(posted) if posted else []
    expect([found.ctx for found in done], list(range(count)), "completions")
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    server("check", len=1 << 20, seed=1)
    disconnect(client, server)


@case("batches", "a flush among {count} operations, a send queue of {queue}: the list goes in parts, every "
      "message arrives once", [{"count": 40, "queue": QUEUE}])
def full_queue_with_flush(test, count, queue):
    """A native list goes in parts that fit the queue, other lists as far as there is room."""
    server, client = prepared(test, sq=queue)
    client("batch-new", ops=count)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=0)
    client("fill", len=64 * count, seed=1)
    for number in range(1, count):
        client("send", batch=0, mr=0, off=number * SLOT, len=SLOT, ctx=number)
    server("recv", mr=0, len=SLOT, count=2 * count)
    posted_in_parts(client, count)
    server.completions(count - 1)
    client("batch-reset")
    add_with_flush(client, queue)
    expect(post(client), ("ok", queue), "post of as many as the queue has room for")
    found = client.completions(queue)
    expect([one.ctx for one in found], list(range(queue)), "completions")
    server.completions(queue - 1)
    disconnect(client, server)


def add_with_flush(client, count, batch=0):
    """Adds messages 0, 1, … and a flush as the last operation."""
    add_messages(client, count - 1, batch=batch)
    client("flush", **where(batch), rmr=0, len=8, persistent=0, ctx=count - 1)


@case("batches", "a flush in the list while the queue is full of messages that wait: nothing is "
      "taken until there is room, then all", needs=(lab.WAITING_MESSAGES,))
def occupied_queue(test):
    """Messages without a receive keep the queue full."""
    server, client = prepared(test, sq=QUEUE)
    client.begin("send-until-full", mr=0, off=SLOT, len=SLOT, limit=100)
    code, answer = client.take()
    waiting = int(answer["posted"])
    expect(code, "RPMA_E_PROVIDER", "post to a full queue")
    client("batch-new", ops=QUEUE)
    add_with_flush(client, QUEUE)
    for _ in range(2):
        expect(post(client), ("RPMA_E_AGAIN", 0), "post to a full queue")
    server("recv", mr=0, off=0, len=SLOT, count=waiting, ctx=1000)
    client.completions(waiting)
    server.completions(waiting)
    server("recv", mr=0, len=SLOT, count=QUEUE - 1)
    expect(post(client), ("ok", QUEUE), "post to an empty queue")
    found = client.completions(QUEUE)
    expect([one.ctx for one in found], list(range(QUEUE)), "completions")
    heard_once(server, QUEUE - 1)
    disconnect(client, server)


@case("batches", "{one} with immediate data in the middle: what is before it goes in, it is refused "
      "each time, and the connection goes on", [{"one": "a batch"}, {"one": "an array"}],
      lacks=lab.IMMEDIATE_DATA)
def refused_operation(test, one):
    server, client = prepared(test)
    batch = 0 if one == "a batch" else None
    server("recv", mr=0, len=SLOT, count=3)
    client("batch-new", ops=4)
    add_messages(client, 2, batch=batch)
    client("send-imm", **where(batch), mr=0, len=8, imm=1, ctx=2)
    add_messages(client, 1, first=3, batch=batch)
    expect(post(client, batch), ("RPMA_E_PROVIDER", 2), "post")
    heard_once(server, 2)
    expect([found.ctx for found in client.completions(2)], [0, 1], "completions")
    expect(post(client, batch), ("RPMA_E_PROVIDER", 0), "second post")
    client("batch-reset")
    client("post", forget=1)
    add_messages(client, 1, first=2, batch=batch)
    expect(post(client, batch), ("ok", 1), "post without immediate data")
    client.completion()
    heard_once(server, 1, first=2)
    disconnect(client, server)
