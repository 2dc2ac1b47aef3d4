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
WAYS = ("call", "post", "batch")


def perform(side, way, verb, **values):
    """Posts one operation."""
    if way != "batch":
        side(verb, way=way, **values)
        return
    side("batch-new", ops=1)
    side(verb, batch=0, **values)
    expect(side("batch-post")["posted"], "1", "operations posted")
    side("batch-delete")


IMM = 0x80000001  # a part of it that is a sign elsewhere


@case("data", "{verb} of {sizes} bytes, and without memory: by its own function, rpma_post() and a batch",
      [{"verb": verb, "sizes": NAMED_SIZES} for verb in ("read", "write", "write-imm", "send", "send-imm")],
      builds=("native",))
def transfer(test, verb, sizes):
    if verb.endswith("imm"):
        lab.need_feature(lab.IMMEDIATE_DATA)
    server, client = connected(test, ROOM)
    rounds = [(way, length) for way in WAYS for length in SIZES]
    for seed, (way, length) in enumerate(rounds):
        source, target = (server, client) if verb == "read" else (client, server)
        prepare(source, target, length, seed)
        remote = {} if verb.startswith("send") else {"rmr": 0, "roff": GUARD}
        one_transfer(server, client, way, verb, length, seed, mr=0, off=GUARD, len=length, **remote)
        arrived(target, length, seed)
    if not (verb.startswith("send") and lab.lacks(lab.EMPTY_RECEIVE)):
        for way in WAYS:  # without regions
            one_transfer(server, client, way, verb, 0, 98)
    disconnect(client, server)


def one_transfer(server, client, way, verb, length, ctx, **memory):
    """One operation, its completion, and that of the receive if it takes one."""
    imm = IMM + ctx if verb.endswith("imm") else 0
    into = {key: memory[key] for key in ("mr", "off", "len") if key in memory and verb.startswith("send")}
    if verb.startswith("send") or imm:
        server("recv", ctx=ctx, **into)
    perform(client, way, verb, ctx=ctx, **memory, **({"imm": imm} if imm else {}))
    found = client.completion(opcode=verb.partition("-")[0].upper())
    expect(found.ctx, ctx, "op_context")
    if verb.startswith("send") or imm:
        found = server.completion(opcode="RECV_WITH_IMM" if verb == "write-imm" else "RECV")
        expect((found.ctx, found.imm, found.len), (ctx, imm, length), "receive")


@case("data", "a message longer than the receive fails on both sides", builds=("native",),
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
      [{"way": way} for way in WAYS])
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


@case("flush", "{aim} on {kind}, from {source} of the other host, {sizes} bytes: by each way to post",
      [{"aim": aim, "kind": kind, "source": source, "sizes": NAMED_SIZES} for aim, kind, source in
       (*(("visibility", kind, "DRAM") for kind in KINDS), ("persistence", "FS-DAX", "DRAM"),
        ("persistence", "FS-DAX", "device DAX"), ("persistence", "device DAX", "FS-DAX"))])
def flushes(test, aim, kind, source, sizes):
    """Writes and flushes one after the other: only the flush completes."""
    server, client = test.peers()
    size = 4 << 20
    share_region(server, client, size, file=place(kind), source=place(source, host=2))
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    opcode = "FLUSH" if test.is_native else "READ"
    for seed, (way, length) in enumerate((way, length) for way in WAYS for length in SIZES):
        prepare(client, server, length, seed)
        client("write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, flags=1)
        perform(client, way, "flush", rmr=0, roff=GUARD, len=length, persistent=int(aim == "persistence"),
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
      [{"kind": kind, "reason": reason, "shows": (failure,)} for kind, reason, failure in
       (("FS-DAX", "no direct write to PMem", "flush: no direct write"),
        ("device DAX", "not registered for it", "flush: persistent usage"))])
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


@case("data", "advice: RPMA_E_NOSUPP, for soft-RoCE takes none even with on-demand paging", builds=("native",))
def advice(test):
    lab.need_virtual("a device known to take no advice")
    server = test.side(1, "server")
    server("peer")
    for number, kind in enumerate(("FS-DAX", "device DAX")):
        server("memory", mr=number, size=4 << 20, file=place(kind))
        server("reg", mr=number, usage=ALL_USAGES)
        server.refuses("RPMA_E_NOSUPP", "advise", mr=number, len=1 << 20)
