# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
What a side states with packed private data: flushes and atomic writes between the builds of this
library. One of them serves native operations, the other does not.
"""

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen
from harness.side import ALL_USAGES, LOCAL_USAGES, ON_ERROR, READ_SRC, expect

from .batches import FLAG, post
from .data import perform, place
from .unlike import NOTICE, start

SIZE = 2 << 20
LEN = 4096
AUTO, EMULATED, NATIVE = MODES = ("auto", "emulated", "native")
WAYS = ("call", "post", "batch")
REFUSED = "RPMA_E_NOSUPP"


def pairs():
    """Each mode other than AUTO is tried only by the build that has both ways to flush."""
    for initiator in ("native", "plain"):
        for target in ("native", "plain"):
            for mode in MODES if initiator == "native" else (AUTO,):
                yield {"initiator": initiator, "target": target, "mode": mode}


def outcome(initiator, target, mode, memory, direct, persistent):
    """The opcode of a flush, or REFUSED. Soft-RoCE has no native persistent flush of DRAM."""
    if persistent and not direct:
        return REFUSED
    natively = target == "native" and not (persistent and memory == "DRAM")
    if mode == NATIVE:
        return "FLUSH" if natively else REFUSED
    return "FLUSH" if natively and initiator == "native" and mode == AUTO else "READ"


def target_with(test, name, memories):
    target = start(test, 1, name, "target")
    for number, memory in enumerate(memories):
        file = place(memory)
        target("memory", mr=number, size=SIZE, **({"file": file} if file else {}))
        target("reg", mr=number, usage=ALL_USAGES & ~READ_SRC)
    listen(target)
    return target


def initiator_with(test, name, mode=AUTO):
    initiator = start(test, 2, name, "initiator")
    initiator("memory", mr=0, size=SIZE)
    initiator("reg", mr=0, usage=LOCAL_USAGES)
    initiator("cfg", sge=2, flush=MODES.index(mode))
    return initiator


def take_stated(initiator, target, direct, **packed):
    """
    A connection whose initiator applies the packed data that it received; regions count from 0.
    """
    stated = target("pack", direct=direct, **packed)["packed"]
    connect(target, initiator, client_cfg=0, server_data=stated)
    return initiator("unpack", apply=1)


def end(initiator, target):
    disconnect(initiator, target)
    initiator("conn-delete")
    target("conn-delete")
    for number in (0, 1):
        initiator("remote-delete", rmr=number)


def flush(initiator, target, way, wanted, seed, **values):
    """
    Writes, then flushes with these values; visible data are compared, and the connection works on.
    """
    initiator("fill", len=LEN, seed=seed)
    initiator("write", mr=0, rmr=values["rmr"], len=LEN, flags=ON_ERROR)
    if wanted == REFUSED:
        initiator("batch-new", ops=1)
        where = {"batch": 0} if way == "batch" else {"way": way}
        initiator.refuses(REFUSED, "flush", len=LEN, **where, **values)
        initiator("batch-delete")
        initiator("read", mr=0, off=2 * LEN, rmr=values["rmr"], len=0, ctx=seed)
        expect(initiator.completion(opcode="READ").ctx, seed, "operation behind a refused flush")
    else:
        perform(initiator, way, "flush", len=LEN, ctx=seed, **values)
        expect(initiator.completion(opcode=wanted).ctx, seed, "flush")
    target("check", mr=values["rmr"], len=LEN, seed=seed)


@case("unlike", "packed: {initiator} flushes {target}, mode {mode}; DRAM and device DAX, with and "
      "without direct write", list(pairs()), limit=120, builds=("native",),
      needs=(lab.NATIVE_OPERATIONS,))
def pair(test, initiator, target, mode):
    lab.need_virtual("a device known to have native flush")
    lab.need(lab.DEVDAX, "device DAX")
    row = {"initiator": initiator, "target": target, "mode": mode}
    memories = ("DRAM", "device DAX")
    one, other = initiator_with(test, initiator, mode), target_with(test, target, memories)
    serves = str(int(target == "native"))
    seeds = iter(range(1, 256))
    for direct in (0, 1):
        # If the configuration states nothing, the pack states what the device of the regions
        # serves.
        stated = take_stated(one, other, direct, count=2, bytes="77", served=direct)
        expect(stated, {"regions": "2", "bytes": "77", "direct": str(direct), "stated": "1",
                        "flush": serves, "atomic": serves}, "what the target states")
        natively = mode == NATIVE or outcome(**row, memory="", direct=0, persistent=0) == "FLUSH"
        expect(one("flush-mode")["mode"], "native" if natively else "emulated", "way to flush")
        for number, memory in enumerate(memories):
            for persistent in (0, 1):
                wanted = outcome(**row, memory=memory, direct=direct, persistent=persistent)
                for way in WAYS:
                    flush(one, other, way, wanted, next(seeds), rmr=number, persistent=persistent)
            one("atomic", rmr=number, roff=64, bytes=FLAG)
            native = initiator == target == "native"
            one.completion(opcode="ATOMIC_WRITE" if native else "WRITE")
            expect(other("bytes", mr=number, off=64, len=8)["bytes"], FLAG, "atomic write")
        end(one, other)
    expect(test.said().count(NOTICE), 0, "flushes whose way nobody stated")


@case("unlike", "packed: a batch that was made before goes by what the target states", limit=120,
      builds=("native",), needs=(lab.NATIVE_OPERATIONS,))
def batch_before(test):
    """Nothing of a batch is posted while one of its flushes is not allowed."""
    lab.need_virtual("a device known to have native flush")
    one, other = initiator_with(test, "native"), target_with(test, "plain", ("DRAM",))
    connect(other, one, client_cfg=0)
    said = {direct: other("pack", direct=direct)["packed"] for direct in (0, 1)}
    one("unpack", packed=said[1])
    one("fill", len=LEN, seed=1)
    one("batch-new", ops=4)
    one("write", batch=0, mr=0, rmr=0, len=LEN, flags=ON_ERROR)
    one("flush", batch=0, rmr=0, len=LEN, persistent=0, ctx=1)
    one("atomic", batch=0, rmr=0, roff=LEN, bytes=FLAG, ctx=2)
    other("set", len=2 * LEN, byte=0)

    def state(direct):
        one("remote-delete", rmr=1)
        one("unpack", packed=said[direct], rmr=1, apply=1)

    def arrives(operations, *opcodes):
        expect(post(one), ("ok", operations), "post")
        expect([(wc.status, wc.opcode) for wc in one.completions(len(opcodes))],
               [("SUCCESS", opcode) for opcode in opcodes], "completions")
        other("check", len=LEN, seed=1)
        expect(other("bytes", off=LEN, len=8)["bytes"], FLAG, "atomic write")

    state(1)
    arrives(3, "READ", "WRITE")
    one("flush", batch=0, rmr=0, len=LEN, persistent=1, ctx=3)
    state(0)
    for _ in range(2):
        expect(post(one), (REFUSED, 0), "post of a flush that is not allowed any more")
    one.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    state(1)
    arrives(4, "READ", "WRITE", "READ")
    expect("batch[3]: " in test.said(), True, "which flush it is, in the log")
    disconnect(one, other)


@case("flush", "RPMA_FLUSH_MODE_NATIVE: refused on both sides where there is no native flush")
def mode_native(test):
    server, client = test.peers()
    listen(server)
    for side in (server, client):
        side("cfg", flush=MODES.index(NATIVE))
    if test.is_native:
        connect(server, client, server_cfg=0, client_cfg=0)
        for side in (server, client):
            expect(side("flush-mode")["mode"], NATIVE, "way to flush")
        disconnect(client, server)
        return
    client.refuses(REFUSED, "req-new", addr=server.address, port=PORT, cfg=0)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server.refuses(REFUSED, "next-req", cfg=0)
    client.event("REJECTED")
    connect(server, client, number=1)
    for side in (server, client):
        expect(side("flush-mode", conn=1)["mode"], EMULATED, "way to flush")
    disconnect(client, server, 1)


@case("data", "a work request that the program posts itself goes to the region of the other side")
def raw_write(test):
    server, client = connected(test)
    server("set", len=3 * LEN, byte=0x5a)
    client("fill", off=64, len=LEN, seed=1)
    client("raw-write", mr=0, off=64, rmr=0, roff=LEN, len=LEN, ctx=7)
    expect(client.completion(opcode="WRITE").ctx, 7, "op_context")
    client("flush", rmr=0, len=8, persistent=0)
    client.completion()
    server("check", off=LEN, len=LEN, seed=1)
    for at in (0, 2 * LEN):
        server("check-set", off=at, len=LEN, byte=0x5a)
    disconnect(client, server)
