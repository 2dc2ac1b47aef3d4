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


@case("data", "read of {sizes} bytes", [{"sizes": NAMED_SIZES}])
def read(test, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(server, client, length, seed)
        client("read", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, ctx=length)
        expect(client.completion(opcode="READ").ctx, length, "op_context")
        arrived(client, length, seed)
    client("read")  # the form without regions
    client.completion(opcode="READ")
    disconnect(client, server)


@case("data", "write of {sizes} bytes", [{"sizes": NAMED_SIZES}])
def write(test, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        client("write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, ctx=length)
        expect(client.completion(opcode="WRITE").ctx, length, "op_context")
        arrived(server, length, seed)
    client("write")
    client.completion(opcode="WRITE")
    disconnect(client, server)


@case("data", "write with immediate data of {sizes} bytes", [{"sizes": NAMED_SIZES}],
      needs=(lab.IMMEDIATE_DATA,))
def write_with_imm(test, sizes):
    server, client = connected(test, ROOM)
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        server("recv", ctx=seed)
        client("write-imm", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, imm=seed + 1)
        client.completion(opcode="WRITE")
        found = server.completion(opcode="RECV_WITH_IMM")
        expect((found.ctx, found.imm, found.len), (seed, seed + 1, length), "receive")
        arrived(server, length, seed)
    server("recv", ctx=99)
    client("write-imm", imm=0xffffffff)
    client.completion(opcode="WRITE")
    expect(server.completion(opcode="RECV_WITH_IMM").imm, 0xffffffff, "immediate data")
    disconnect(client, server)


@case("data", "{verb} of {sizes} bytes",
      [{"verb": "send", "sizes": NAMED_SIZES}, {"verb": "send-imm", "sizes": NAMED_SIZES}])
def messages(test, verb, sizes):
    if verb == "send-imm":
        lab.need_feature(lab.IMMEDIATE_DATA)
    server, client = connected(test, ROOM)
    imm = 0x80000001 if verb == "send-imm" else 0
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        server("recv", mr=0, off=GUARD, len=length, ctx=seed)
        client(verb, mr=0, off=GUARD, len=length, imm=imm)
        client.completion(opcode="SEND")
        found = server.completion(opcode="RECV")
        expect((found.ctx, found.imm, found.len), (seed, imm, length), "receive")
        arrived(server, length, seed)
    if lab.lacks(lab.EMPTY_RECEIVE):
        disconnect(client, server)
        return
    server("recv", ctx=98)  # both without a region
    client(verb, imm=imm)
    client.completion(opcode="SEND")
    found = server.completion(opcode="RECV")
    expect((found.ctx, found.imm, found.len), (98, imm, 0), "empty receive")
    disconnect(client, server)


@case("data", "a message longer than the receive fails on both sides",
      shows=("LOC_QP_OP_ERR: receive", "REM_OP_ERR: send"))
def too_long(test):
    """The standard has another name for either failure than soft-RoCE has."""
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


@case("data", "atomic writes, several in a row, one at a place that is not aligned")
def atomic_writes(test):
    server, client = connected(test, ROOM)
    native = "ATOMIC_WRITE" if test.is_native else "WRITE"
    server("set", len=64, byte=0)
    for number in range(1, 6):
        client("atomic", rmr=0, roff=16, bytes=f"{number:02x}" * 8, ctx=number)
        expect(client.completion(opcode=native).ctx, number, "op_context")
        expect(server("bytes", off=8, len=24)["bytes"],
               "00" * 8 + f"{number:02x}" * 8 + "00" * 8, "memory")
    # A region that begins 4 bytes off: such a write cannot be atomic, and so not native either.
    server("memory", mr=1, size=4096)
    descriptor = server("reg", mr=1, off=4, len=1024, usage=ALL_USAGES)["desc"]
    client("remote", rmr=1, desc=descriptor)
    client("atomic", rmr=1, roff=8, bytes="ab" * 8)
    client.completion(opcode="WRITE")
    expect(server("bytes", mr=1, off=12, len=8)["bytes"], "ab" * 8, "memory")
    disconnect(client, server)


def place(kind):
    """The file to map for a kind of memory."""
    if kind == "FS-DAX":
        lab.need_feature(lab.ON_DEMAND_PAGING)
        return lab.need(lab.FSDAX, "FS-DAX file system") + "/data"
    if kind == "device DAX":
        return lab.need(lab.DEVDAX, "device DAX")
    return None


KINDS = ("DRAM", "FS-DAX", "device DAX")


@case("flush", "visibility on {kind}, {sizes} bytes",
      [{"kind": kind, "sizes": NAMED_SIZES} for kind in KINDS])
def visibility(test, kind, sizes):
    flushes(test, kind, persistent=0)


@case("flush", "persistence on {kind}, {sizes} bytes",
      [{"kind": kind, "sizes": NAMED_SIZES} for kind in KINDS[1:]])
def persistence(test, kind, sizes):
    flushes(test, kind, persistent=1)


def flushes(test, kind, persistent):
    """Writes and flushes back to back: only the flush completes."""
    server, client = test.peers()
    size = 4 << 20
    share_region(server, client, size, file=place(kind))
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    opcode = "FLUSH" if test.is_native else "READ"
    for seed, length in enumerate(SIZES):
        prepare(client, server, length, seed)
        client("write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, flags=1)
        client("flush", rmr=0, roff=GUARD, len=length, persistent=persistent, ctx=length)
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
