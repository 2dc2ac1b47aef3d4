# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Batches that are outstanding when the other side, the link or the batch itself ends."""

from harness import lab
from harness.case import case, connect, disconnect
from harness.network import cables, cut, mend
from harness.side import expect

from .batches import AROUND, FLAG, PIECE, post, prepared
from .faults_data import again
from .faults_peer import works_with_new_server


def add_writes(client, count, length, flush=True):
    """Adds signaled writes with contexts 0, 1, …; the last operation is a flush."""
    client("batch-new", ops=count)
    for number in range(count - flush):
        client("write", batch=0, mr=0, off=number * length, rmr=0, roff=number * length,
               len=length, ctx=number)
    if flush:
        client("flush", batch=0, rmr=0, len=length, persistent=0, ctx=count - 1)


@case("batches", "server killed while a batch is on its way: each operation completes once, in "
      "order, none succeeds behind one that failed", limit=90)
def server_killed(test):
    server, client = prepared(test)
    count = 32
    add_writes(client, count, PIECE)
    server("set", len=8, byte=0)
    client("fill", len=count * PIECE, seed=1)
    client.begin("post-until-broken", batch=0)
    while server("bytes", off=0, len=8)["bytes"] == "00" * 8:
        pass
    server.kill()
    answer = client.end()
    expect(int(answer["good"]) + int(answer["failed"]), int(answer["posted"]), "completions")
    expect(int(answer["failed"]) > 0 or answer["post"] != "ok", True, "something failed")
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    works_with_new_server(test, client)


@case("batches", "link cut before the post: each operation completes once, with an error, when "
      "the client disconnects", limit=90, builds=("native",), needs=(lab.ANSWERS,))
def link_cut(test):
    port = cables(test)[1]
    server, client = prepared(test)
    count = 32
    add_writes(client, count, PIECE)
    cut(port)
    expect(post(client), ("ok", count), "post")
    client.refuses("ERR_TIMEOUT", "wc", timeout=1000)
    client("disconnect")
    found = client.completions(count)
    expect([(one.ctx, one.status) for one in found],
           [(number, "WR_FLUSH_ERR") for number in range(count)], "completions")
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    code, posted = post(client)
    if posted:  # the device may have taken operations that it will not execute
        found = client.completions(posted)
        expect({one.status for one in found}, {"WR_FLUSH_ERR"}, "statuses")
        expect([one.ctx for one in found], list(range(posted)), "completions")
    expect(code, "ok" if posted == count else "RPMA_E_PROVIDER", "post after the end")
    client("conn-delete")
    client("batch-delete")
    mend(port)
    lab.wait_for_host(2, client.address, server.address)
    again(server, client, 1)


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
    client.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    server("check-set", len=4 * PIECE, byte=AROUND)
    server("recv", mr=0, len=8)
    found = client.completions(count)
    expect([(one.ctx, one.status) for one in found],
           [(number, "SUCCESS") for number in range(count)], "completions")
    server("check", off=PIECE, len=PIECE, seed=1)
    server("check", off=2 * PIECE, len=PIECE, seed=1)
    if not test.is_native:
        expect(server("bytes", off=3 * PIECE, len=8)["bytes"], FLAG, "atomic write")
    disconnect(client, server)


@case("batches", "deleted at once after its post: all arrives", builds=("native",))
def deleted_at_once(test):
    server, client = prepared(test)
    count = 16
    add_writes(client, count, 4 * PIECE)
    client("fill", len=count * 4 * PIECE, seed=1)
    expect(post(client), ("ok", count), "post")
    client("batch-delete")
    expect([one.ctx for one in client.completions(count)], list(range(count)), "completions")
    server("check", len=(count - 1) * 4 * PIECE, seed=1)
    disconnect(client, server)


@case("batches", "the connection is deleted while operations are on their way: the batch can be deleted, others go on",
      builds=("native",))
def connection_deleted(test):
    server, client = prepared(test)
    add_writes(client, 16, 4 * PIECE)
    expect(post(client), ("ok", 16), "post")
    client("conn-delete")
    client("batch-delete")
    server.event("CLOSED")
    server("conn-delete")
    connect(server, client, number=1)
    client("batch-new", batch=1, conn=1, ops=1)
    client("fill", len=64, seed=5)
    client("write", batch=1, mr=0, rmr=0, len=64)
    expect(post(client, 1), ("ok", 1), "post on another connection")
    client.completion(opcode="WRITE", conn=1)
    client("read", conn=1, mr=1, rmr=0, len=64)
    client.completion(opcode="READ", conn=1)
    client("check", mr=1, len=64, seed=5)
    disconnect(client, server, 1)
