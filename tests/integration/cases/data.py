# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Every data operation with every size, and flushes on every kind of memory."""

from harness import lab
from harness.case import case, connect, connected, disconnect, listen, share_region
from harness.side import ALL_USAGES, expect

SIZES = (0, 1, 8, 4096, 1 << 20)
GUARD = 4096
ROOM = (1 << 20) + 2 * GUARD
AROUND = 0xa7
NAMED_SIZES = ", ".join(str(size) for size in SIZES)


def untouched_around(side, length):
    side("check-set", off=0, len=GUARD, byte=AROUND)
    side("check-set", off=GUARD + length, len=GUARD, byte=AROUND)


def prepare(source, target, length, seed):
    source("fill", off=GUARD, len=length, seed=seed)
    target("set", off=0, len=length + 2 * GUARD, byte=AROUND)


def arrived(target, length, seed):
    target("check", off=GUARD, len=length, seed=seed)
    untouched_around(target, length)


# Three ways to post: the operation's own function, rpma_post(), rpma_batch_add().
WAYS = [{"way": way, "sizes": NAMED_SIZES} for way in ("call", "post", "batch")]


def perform(side, way, verb, **values):
    """Posts one operation."""
    if way != "batch":
        side(verb, way=way, **values)
        return
    side("batch-new", ops=1)
    side(verb, batch=0, **values)
    expect(side("batch-post")["posted"], "1", "operations posted")
    side("batch-delete")


@case("data", "{way}: read of {sizes} bytes", WAYS)
def read(test, way, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(server, client, length, seed)
        perform(client, way, "read", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, ctx=length)
        expect(client.completion(opcode="READ").ctx, length, "op_context")
        arrived(client, length, seed)
    perform(client, way, "read")  # an empty read, without regions
    client.completion(opcode="READ")
    disconnect(client, server)


@case("data", "{way}: write of {sizes} bytes", WAYS)
def write(test, way, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        perform(client, way, "write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, ctx=length)
        expect(client.completion(opcode="WRITE").ctx, length, "op_context")
        arrived(server, length, seed)
    perform(client, way, "write")
    client.completion(opcode="WRITE")
    disconnect(client, server)


@case("data", "{way}: write with immediate data of {sizes} bytes", WAYS,
      needs=(lab.IMMEDIATE_DATA,))
def write_with_imm(test, way, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        server("recv", ctx=seed)
        perform(client, way, "write-imm", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length,
                imm=seed + 1)
        client.completion(opcode="WRITE")
        found = server.completion(opcode="RECV_WITH_IMM")
        expect((found.ctx, found.imm, found.len), (seed, seed + 1, length), "receive")
        arrived(server, length, seed)
    server("recv", ctx=99)
    perform(client, way, "write-imm", imm=0xffffffff)
    client.completion(opcode="WRITE")
    expect(server.completion(opcode="RECV_WITH_IMM").imm, 0xffffffff, "immediate data")
    disconnect(client, server)


@case("data", "{way}: {verb} of {sizes} bytes",
      [{"verb": verb, **row} for verb in ("send", "send-imm") for row in WAYS])
def messages(test, way, verb, sizes):
    if verb == "send-imm":
        lab.need_feature(lab.IMMEDIATE_DATA)
    server, client = connected(test, ROOM)
    imm = 0x80000001 if verb == "send-imm" else 0
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        server("recv", mr=0, off=GUARD, len=length, ctx=seed)
        perform(client, way, verb, mr=0, off=GUARD, len=length, imm=imm)
        client.completion(opcode="SEND")
        found = server.completion(opcode="RECV")
        expect((found.ctx, found.imm, found.len), (seed, imm, length), "receive")
        arrived(server, length, seed)
    if lab.lacks(lab.EMPTY_RECEIVE):
        disconnect(client, server)
        return
    server("recv", ctx=98)  # an empty message, without a region
    perform(client, way, verb, imm=imm)
    client.completion(opcode="SEND")
    found = server.completion(opcode="RECV")
    expect((found.ctx, found.imm, found.len), (98, imm, 0), "empty receive")
    disconnect(client, server)


@case("data", "a message longer than the receive fails on both sides",
      shows=("LOC_QP_OP_ERR: receive", "REM_OP_ERR: send"))
def too_long(test):
    """The standard names either failure otherwise than soft-RoCE does."""
    at_server, at_client = (("LOC_QP_OP_ERR", "REM_OP_ERR") if lab.PROVIDER == "rxe" else
                            ("LOC_LEN_ERR", "REM_INV_REQ_ERR"))
    if lab.lacks(lab.ANSWERS):
        at_client = "SUCCESS"
    server, client = connected(test, ROOM)
    server("set", len=GUARD, byte=AROUND)
    server("recv", mr=0, len=8, ctx=1)
    client("send", mr=0, len=4096, ctx=2)
    expect(server.completion(at_server).ctx, 1, "receive")
    expect(client.completion(at_client).ctx, 2, "send")
    server("check-set", off=8, len=GUARD - 8, byte=AROUND)


@case("data", "{way}: atomic writes, several in a row, one at a place that is not aligned",
      [{"way": row["way"]} for row in WAYS])
def atomic_writes(test, way):
    server, client = connected(test, ROOM)
    native = "ATOMIC_WRITE" if test.is_native else "WRITE"
    server("set", len=64, byte=0)
    for number in range(1, 6):
        perform(client, way, "atomic", rmr=0, roff=16, bytes=f"{number:02x}" * 8, ctx=number)
        expect(client.completion(opcode=native).ctx, number, "op_context")
        expect(server("bytes", off=8, len=24)["bytes"],
               "00" * 8 + f"{number:02x}" * 8 + "00" * 8, "memory")
    # The region begins at an address that 8 does not divide: no write to it is atomic or native.
    server("memory", mr=1, size=4096)
    descriptor = server("reg", mr=1, off=4, len=1024, usage=ALL_USAGES)["desc"]
    client("remote", rmr=1, desc=descriptor)
    perform(client, way, "atomic", rmr=1, roff=8, bytes="ab" * 8)
    client.completion(opcode="WRITE")
    expect(server("bytes", mr=1, off=12, len=8)["bytes"], "ab" * 8, "memory")
    disconnect(client, server)


def place(kind, host=1):
    """The file that memory of this kind maps."""
    if kind == "FS-DAX":
        lab.need_feature(lab.ON_DEMAND_PAGING)
        return lab.need(lab.memory_of("FSDAX", host), "FS-DAX file system") + "/data"
    if kind == "device DAX":
        return lab.need(lab.memory_of("DEVDAX", host), "device DAX")
    return None


KINDS = ("DRAM", "FS-DAX", "device DAX")


@case("flush", "{way}: visibility on {kind}, {sizes} bytes",
      [{"kind": kind, **row} for kind in KINDS for row in WAYS])
def visibility(test, kind, way, sizes):
    flushes(test, kind, way, persistent=0)


@case("flush", "{way}: persistence on {kind}, {sizes} bytes",
      [{"kind": kind, **row} for kind in KINDS[1:] for row in WAYS])
def persistence(test, kind, way, sizes):
    flushes(test, kind, way, persistent=1)


@case("flush", "{way}: persistence on {kind}, from {source} of the other host, {sizes} bytes",
      [{"kind": kind, "source": source, **WAYS[0]}
       for kind, source in (KINDS[1:], KINDS[:0:-1])])
def persistence_of_persistent(test, kind, source, way, sizes):
    flushes(test, kind, way, persistent=1, source=source)


def flushes(test, kind, way, persistent, source="DRAM"):
    """Writes and flushes one after the other: only the flush completes."""
    server, client = test.peers()
    size = 4 << 20
    share_region(server, client, size, file=place(kind), source=place(source, host=2))
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    opcode = "FLUSH" if test.is_native else "READ"
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        client("write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, flags=1)
        perform(client, way, "flush", rmr=0, roff=GUARD, len=length, persistent=persistent,
                ctx=length)
        expect(client.completion(opcode=opcode).ctx, length, "op_context")
        arrived(server, length, seed)
    disconnect(client, server)


@case("flush", "at the last byte of a region")
def last_byte(test):
    server, client = connected(test, 4096)
    client("flush", rmr=0, roff=4095, len=1, persistent=0)
    client.completion()
    if not test.is_native:
        client.refuses("RPMA_E_INVAL", "flush", rmr=0, roff=4096, len=1, persistent=0)
    disconnect(client, server)


@case("flush", "persistence on DRAM is what a native device cannot do")
def persistence_on_dram(test):
    server, client = connected(test)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    client("flush", rmr=0, len=8, persistent=1)
    if test.is_native:
        client.completion("REM_ACCESS_ERR")
    else:
        client.completion(opcode="READ")
        disconnect(client, server)


@case("flush", "RPMA_FLUSH=emulated on persistence to DRAM")
def emulated_by_choice(test):
    server, client = test.peers(environment={"RPMA_FLUSH": "emulated"})
    share_region(server, client)
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    client("fill", len=4096, seed=9)
    client("write", mr=0, rmr=0, len=4096, flags=1)
    client("flush", rmr=0, len=4096, persistent=1)
    client.completion(opcode="READ")
    server("check", len=4096, seed=9)
    disconnect(client, server)


@case("flush", "refused on {kind}: {reason}",
      [{"kind": kind, "reason": reason, "shows": (failure,)} for kind in KINDS
       for reason, failure in (("no direct write to PMem", "flush: no direct write"),
                               ("not registered for it", "flush: persistent usage"))])
def refused(test, kind, reason):
    server, client = test.peers()
    usage = ALL_USAGES if reason.startswith("no direct") else 15
    share_region(server, client, 4 << 20, usage, file=place(kind))
    listen(server)
    connect(server, client)
    direct = int(usage != ALL_USAGES)
    client("apply-pcfg", desc=server("pcfg", direct=direct)["desc"])
    client.refuses("RPMA_E_NOSUPP", "flush", rmr=0, len=8, persistent=1)
    if direct:
        client.refuses("RPMA_E_NOSUPP", "flush", rmr=0, len=8, persistent=0)
    client.refuses("ERR_TIMEOUT", "wc", timeout=50)
    disconnect(client, server)


@case("data", "advice: RPMA_E_NOSUPP, for soft-RoCE takes none even with on-demand paging")
def advice(test):
    lab.need_virtual("a device known to take no advice")
    server = test.side(1, "server")
    server("peer")
    for number, kind in enumerate(("FS-DAX", "device DAX")):
        server("memory", mr=number, size=4 << 20, file=place(kind))
        server("reg", mr=number, usage=ALL_USAGES)
        server.refuses("RPMA_E_NOSUPP", "advise", mr=number, len=1 << 20)
