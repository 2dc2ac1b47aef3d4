# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Operations on memory that they may not use, remote and local; and a network that loses packets."""

import random

from harness import lab
from harness.case import case, connect, connected, disconnect, listen, listening
from harness.network import PORTS, cables, cut, impaired, mend
from harness.side import ALL_USAGES, FLUSH_VISIBILITY, LOCAL_USAGES, READ_SRC, RECV, SEND, WRITE_DST, expect

from .data import post
from .survivors import begin_load, check_new_connection, expect_load_fails

BLOCK = 4096
FILLER = 0x5b


def denied(client, verb, conn=0):
    """
    A target that acknowledges each operation causes a completion with an access error. Without
    acknowledgements only the end of the connection reports it: a write completes once it has left
    the device, and a read is flushed.
    """
    if not lab.lacks(lab.REMOTE_RESULTS):
        client.completion("REM_ACCESS_ERR", conn=conn)
        return
    client.completion("SUCCESS" if verb == "write" else "WR_FLUSH_ERR", conn=conn)
    client.event("CLOSED", conn=conn)


# (operation, region of the server, offset). Each region is the middle page of its memory.
PAST_END, ONLY_READ, ONLY_WRITTEN, DEREGISTERED, FOREIGN, FORGED = range(6)
DENIED = (("write", PAST_END, BLOCK), ("read", PAST_END, BLOCK - 8), ("write", PAST_END, (1 << 64) - 64),
          ("write", ONLY_READ, 0), ("read", ONLY_WRITTEN, 0), ("write", DEREGISTERED, 0), ("write", FOREIGN, 0),
          ("write", FORGED, 0), ("write", FORGED + 1, 0), ("write", FORGED + 2, 0))


@case("faults", "operations without the usage at the target: denied, memory unchanged, a new connection works",
      shows=("REM_ACCESS_ERR: read, write",))
def not_granted(test):
    """Beyond a region, without the usage, with a stale key, in another peer's region, with a forged descriptor."""
    server, client = test.peers()
    other = test.side(1, "another peer")
    for side in (server, other):
        side("memory", size=3 * BLOCK)
        side("set", len=3 * BLOCK, byte=FILLER)
    usages = {PAST_END: ALL_USAGES, ONLY_READ: READ_SRC, ONLY_WRITTEN: WRITE_DST, DEREGISTERED: ALL_USAGES}
    for number, usage in usages.items():
        if number:
            server("memory", mr=number, size=3 * BLOCK)
            server("set", mr=number, len=3 * BLOCK, byte=FILLER)
        client("remote", rmr=number, desc=server("reg", mr=number, off=BLOCK, len=BLOCK, usage=usage)["desc"])
    server("dereg", mr=DEREGISTERED)
    client("remote", rmr=FOREIGN, desc=other("reg", off=BLOCK, len=BLOCK, usage=ALL_USAGES)["desc"])
    random.seed(7204)
    for number in range(FORGED, FORGED + 3):
        forged = b"".join(random.randbytes(7) + bytes(1) for _ in "as") + random.randbytes(4)
        client("remote", rmr=number, desc=forged.hex() + "ff")
    client("memory", size=3 * BLOCK)
    client("set", len=3 * BLOCK, byte=0)
    client("reg", usage=ALL_USAGES)
    listen(server)
    for number, (verb, region, offset) in enumerate(DENIED):
        if region == ONLY_WRITTEN and lab.PROVIDER == "siw":  # siw does not check it
            continue
        connect(server, client, number=number)
        client(verb, conn=number, mr=0, rmr=region, roff=offset, len=16)
        denied(client, verb, number)
    for number in usages:
        server("check-set", mr=number, len=3 * BLOCK, byte=FILLER)
    other("check-set", len=3 * BLOCK, byte=FILLER)
    client("check-set", len=3 * BLOCK, byte=0)
    check_new_connection(server, client, len(DENIED), region_at=BLOCK)


@case("faults", "region deregistered under traffic: a failed completion", fabric=True)
def deregistered(test):
    size = 1 << 20
    server, client = test.peers()
    listen(server)
    begin_load(server, client, size)
    server("dereg")
    server("set", len=size, byte=FILLER)
    expect_load_fails(client)
    server("check-set", len=size, byte=FILLER)


LEAVES = {"write": "WR_FLUSH_ERR", "send": "WR_FLUSH_ERR", "read": "LOC_PROT_ERR"}


@case("device", "an operation outside of the local region fails, no data arrives",
      shows=("WR_FLUSH_ERR: write, send", "LOC_PROT_ERR: read"))
def local_range(test):
    """The standard requires LOC_PROT_ERR for all three, and most devices report it."""
    server, client = listening(test)
    server("set", len=BLOCK, byte=0)
    client("memory", mr=1, size=2 * BLOCK)
    client("set", mr=1, len=2 * BLOCK, byte=1)
    client("reg", mr=1, len=BLOCK, usage=LOCAL_USAGES)
    for number, (verb, status) in enumerate(LEAVES.items()):
        connect(server, client, number=number)
        server("recv", conn=number, mr=0, len=BLOCK)
        client(verb, conn=number, mr=1, off=BLOCK - 8, len=16, **({} if verb == "send" else {"rmr": 0}))
        client.completion(status if lab.IS_VIRTUAL else "LOC_PROT_ERR", conn=number)
    server("check-set", len=BLOCK, byte=0)
    client("check-set", mr=1, len=2 * BLOCK, byte=1)


@case("device", "a region for writes and flushes can be read as well, one for reads can be the source of sends")
def granted(test):
    """rpma_mr_reg(3) and rpma_security(7): devices do not distinguish all usages."""
    server, client = connected(test, usage=WRITE_DST | FLUSH_VISIBILITY)
    client("reg", mr=1, size=BLOCK, usage=READ_SRC)
    client("fill", mr=1, len=BLOCK, seed=1)
    client("write", mr=1, rmr=0, len=BLOCK)
    client.completion(opcode="WRITE")
    client("read", mr=0, rmr=0, len=BLOCK)
    client.completion(opcode="READ")
    client("check", len=BLOCK, seed=1)
    server("reg", mr=1, size=BLOCK, usage=RECV)
    server("recv", mr=1, len=BLOCK)
    client("send", mr=1, len=BLOCK)
    client.completion(opcode="SEND")
    server.completion(opcode="RECV")
    server("check", mr=1, len=BLOCK, seed=1)
    disconnect(client, server)


@case("data", "a message longer than the receive, or a receive into a region without the usage: both sides fail",
      builds=("native",), shows=("LOC_QP_OP_ERR: receive", "REM_OP_ERR: send"))
def no_room_in_receive(test):
    """For both failures, soft-RoCE reports other statuses than those of the standard."""
    server, client = listening(test)
    server("reg", mr=1, size=BLOCK, usage=SEND)
    for number, length in enumerate((8, BLOCK)):
        server("set", mr=number, len=BLOCK, byte=FILLER)
        connect(server, client, number=number)
        server("recv", conn=number, mr=number, len=length)
        client("send", conn=number, mr=0, len=BLOCK)
        found = [side.completions(1, conn=number)[0].status for side in (server, client)]
        if lab.PROVIDER == "rxe":
            expect(found, ["LOC_QP_OP_ERR", "REM_OP_ERR"], "failures")
        elif number == 0:
            at_sender = "SUCCESS" if lab.lacks(lab.REMOTE_RESULTS) else "REM_INV_REQ_ERR"
            expect(found, ["LOC_LEN_ERR", at_sender], "failures")
        server("check-set", mr=number, off=8, len=BLOCK - 8, byte=FILLER)


# ---- the network -------------------------------------------------------------------------


@case("faults", "link down under a batch: neither side has an event; each operation completes once, with an error, "
      "when the client disconnects; a new connection once it is up", limit=120, needs=(lab.REMOTE_RESULTS,))
def long_outage(test):
    """Hardware stops after some seconds of retries; soft-RoCE retries until the connection ends."""
    port = cables(test)[1]
    count = 8
    server, client = connected(test)
    client("batch-new", ops=count)
    for number in range(count - 1):
        client("write", batch=0, mr=0, rmr=0, len=64, ctx=number)
    client("flush", batch=0, rmr=0, len=64, persistent=0, ctx=count - 1)
    cut(port)
    expect(post(client), ("ok", count), "post")
    client.refuses("ERR_TIMEOUT", "wc", timeout=3000)
    server.refuses("ERR_TIMEOUT", "event", timeout=1)  # the idle side has no event either
    client("disconnect")
    all_flushed(client, count)
    code, posted = post(client)
    all_flushed(client, posted)  # the device may have accepted operations that it will not execute
    expect(code, "ok" if posted == count else "RPMA_E_PROVIDER", "post after the end")
    client("conn-delete")
    client("batch-delete")
    mend(port)
    lab.wait_for_host(2, client.address, server.address)
    check_new_connection(server, client, 1)


def all_flushed(client, count):
    found = client.completions(count)
    expect([(one.ctx, one.status) for one in found],
           [(number, "WR_FLUSH_ERR") for number in range(count)], "completions")
    client.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)


@case("faults", "5 % loss and reordering during {count} writes: all verified", [{"count": 1000}], limit=300)
def lossy(test, count):
    lab.need_virtual("a bad cable")
    server, client = connected(test, count * 64, client={"cq": 64, "sq": 64})
    client("fill", len=count * 64, seed=1)
    with impaired(PORTS, "loss", "5%", "delay", "1ms", "reorder", "25%", "50%"):
        answer = client("write-blocks", mr=0, rmr=0, len=64, count=count, window=32)
        expect(answer["done"], str(count), "completions")
        for port in PORTS:
            dropped = lab.run("tc", "-s", "qdisc", "show", "dev", port)
            test.transcript.append(dropped)
            expect("dropped 0," in dropped, False, "the network loses packets")
    if lab.lacks(lab.REMOTE_RESULTS):  # only a flush shows that the data has arrived
        client("flush", rmr=0, len=8, persistent=0)
        client.completion()
    server("check", len=count * 64, seed=1)
    disconnect(client, server)
