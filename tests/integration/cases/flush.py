# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Flushes on every kind of memory, at the edges of a region, and where they are refused."""

from harness import lab
from harness.case import case, connect, connected, disconnect, listening
from harness.side import expect

from .data import FILLER, GUARD, METHODS, perform

SIZES = (0, 1, 8, 4096, 1 << 20)
PAGED = (lab.ON_DEMAND_PAGING,)  # FS-DAX memory needs it


def memory_file(kind, host=1):
    """The file that holds memory of this kind."""
    if kind == "FS-DAX":
        return lab.need(lab.memory_of("FSDAX", host), "FS-DAX file system") + "/data"
    if kind == "device DAX":
        return lab.need(lab.memory_of("DEVDAX", host), "device DAX")
    return None


def connected_to(test, kind, source="DRAM"):
    """Connects; the server's memory is of this kind, the client's of kind source."""
    server, client = connected(test, 4 << 20, file=memory_file(kind), source=memory_file(source, host=2))
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    return server, client


def opcode_of_flush(test):
    return "FLUSH" if test.is_native else "READ"


@case("flush", "{aim} on {kind}, from {source} of the other host: the written data has arrived",
      [{"aim": "visibility", "kind": "DRAM", "source": "DRAM", "fabric": True},
       {"aim": "visibility and persistence", "kind": "FS-DAX", "source": "device DAX", "needs": PAGED},
       {"aim": "visibility and persistence", "kind": "device DAX", "source": "FS-DAX", "needs": PAGED}])
def flushes(test, aim, kind, source):
    """Each write is followed by its flush, and only the flush completes."""
    server, client = connected_to(test, kind, source)
    aims = (0, 1) if "persistence" in aim else (0,)
    rows = [(persistent, *row) for persistent in aims for row in zip(METHODS * 2, SIZES)]
    for seed, (persistent, method, length) in enumerate(rows):
        client("fill", off=GUARD, len=length, seed=seed)
        server("set", off=0, len=length + 2 * GUARD, byte=FILLER)
        client("write", mr=0, off=GUARD, rmr=0, roff=GUARD, len=length, flags=1)
        perform(client, method, "flush", rmr=0, roff=GUARD, len=length, persistent=persistent, ctx=length)
        expect(client.completion(opcode=opcode_of_flush(test)).ctx, length, "op_context")
        server("check", off=GUARD, len=length, seed=seed)
        for at in (0, GUARD + length):
            server("check-set", off=at, len=GUARD, byte=FILLER)
    disconnect(client, server)


@case("smoke", "a file on FS-DAX, flushed for persistence, is read by another process",
      needs=PAGED)
def read_by_another(test):
    server, client = connected_to(test, "FS-DAX")
    client("fill", len=GUARD, seed=4)
    client("write", mr=0, rmr=0, len=GUARD, flags=1)
    client("flush", rmr=0, len=GUARD, persistent=1)
    client.completion(opcode=opcode_of_flush(test))
    reader = test.side(1, "reader")
    reader("memory", file=memory_file("FS-DAX"), size=65536)
    reader("check", len=GUARD, seed=4)
    disconnect(client, server)


# (offset, length, persistent, status of a native flush). An emulated flush uses only the offset.
EDGES = {
    "of length 0": (0, 0, 0, "SUCCESS"),
    "at the last byte of the region": (4095, 1, 0, "SUCCESS"),
    "across its end": (4088, 4096, 0, "REM_ACCESS_ERR"),
    "for persistence on DRAM": (0, 8, 1, "REM_ACCESS_ERR"),
}


@case("flush", "ranges at the edges of a region, and persistence on DRAM: accepted by native and emulated flush")
def edges(test):
    """rpma_flush(3)"""
    server, client = listening(test, 4096)
    for number, (what, (offset, length, persistent, status)) in enumerate(EDGES.items()):
        connect(server, client, number=number)
        client("apply-pcfg", conn=number, desc=server("pcfg", direct=1)["desc"])
        client("flush", conn=number, rmr=0, roff=offset, len=length, persistent=persistent)
        found = client.completions(1, conn=number)[0]
        expect(found.status, status if test.is_native else "SUCCESS", what)
        if found.status == "SUCCESS":
            expect(found.opcode, opcode_of_flush(test), what)
            disconnect(client, server, number)
    if not test.is_native:
        connect(server, client, number=9)
        client.refuses("RPMA_E_INVAL", "flush", conn=9, rmr=0, roff=4096, len=1, persistent=0)
