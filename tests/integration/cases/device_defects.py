# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Defects of rdma_rxe. If a case fails, the kernel may be fixed, and docs/ must be updated."""

from harness import lab
from harness.case import case, connected, disconnect
from harness.network import cables, impaired
from harness.side import ON_ERROR, Failed, expect


@case("device", "rdma_rxe cannot repeat a native {verb}: {status}",
      [{"verb": "flush", "status": "REM_ACCESS_ERR"},
       {"verb": "atomic", "status": "no completion"}], needs=(lab.NATIVE_OPERATIONS,))
def repeated(test, verb, status):
    """
    A defect of the kernel: req_retry() uses 0 as the address of an operation that is neither a read
    nor a write nor an atomic operation with a reply. Here a message without a receive causes the
    repetition; lost packets have the same effect.
    """
    lab.need_virtual("soft-RoCE")
    server, client = connected(test)
    client("send", mr=0, len=8, ctx=1)
    client("write", mr=0, rmr=0, roff=64, len=8, ctx=2)
    if verb == "flush":
        client("flush", rmr=0, roff=64, len=8, persistent=0, ctx=3)
    else:
        client("atomic", rmr=0, roff=64, bytes="01" * 8, ctx=3)
    client.refuses("ERR_TIMEOUT", "wc", timeout=1000)
    server("recv", mr=0, len=8)
    expect([(one.ctx, one.status) for one in client.completions(2)],
           [(1, "SUCCESS"), (2, "SUCCESS")], "completions")
    if verb == "flush":
        expect(client.completion(status).ctx, 3, "op_context")
    else:
        client.refuses("ERR_TIMEOUT", "wc", timeout=3000)


def duplicates(device):
    """The number of repeated requests that the device had already executed."""
    with open(f"/sys/class/infiniband/{device}/ports/1/hw_counters/duplicate_request",
              encoding="utf-8") as file:
        return int(file.read())


@case("device", "the reply to a flush is lost, rdma_rxe repeats it: no completion", needs=(lab.NATIVE_OPERATIONS,))
def reply_lost(test):
    """
    A defect of the kernel: rxe_prepare_res() does not store the packet number of a flush, so
    duplicate_request() does not find it, drops the repeated request and sends no reply. With the
    retry count 7, rxe_completer() repeats it until the reply to a later operation arrives.
    """
    cable_to_client = cables(test)[1:]
    server, client = connected(test)
    before = duplicates("rxe1")
    with impaired(cable_to_client, "loss", "100%"):
        client("flush", rmr=0, len=8, ctx=1, persistent=0)
        while duplicates("rxe1") == before:
            client.refuses("ERR_TIMEOUT", "wc", timeout=50)
    repeated_until_now = duplicates("rxe1")
    while duplicates("rxe1") < repeated_until_now + 3:
        client.refuses("ERR_TIMEOUT", "wc", timeout=200)
    client("write", mr=0, rmr=0, len=8, ctx=2)
    expect([(one.ctx, one.status) for one in client.completions(2)],
           [(1, "SUCCESS"), (2, "SUCCESS")], "completions")
    disconnect(client, server)


@case("device", "a native atomic write whose reply arrives after the next one: no later one completes",
      needs=(lab.NATIVE_OPERATIONS,))
def fence_never_ends(test):
    """
    A defect of the kernel: the reply to a later operation also completes the atomic write, but
    complete_wqe() does not increment rd_atomic again, as complete_ack() does. For
    rxe_wqe_is_fenced() it stays outstanding for ever, so neither a fenced operation nor any later
    one is sent.
    """
    server, client = connected(test)
    client("batch-new", ops=2)
    client("atomic", batch=0, rmr=0, bytes="01" * 8, flags=ON_ERROR)
    client("flush", batch=0, rmr=0, len=8, persistent=0, ctx=1)
    # Delays the first of two packets, but not the second.
    with impaired(cables(test)[1:], "delay", "200ms", "reorder", "100%", "gap", "2"):
        client("batch-post")
        expect(client.completion().ctx, 1, "op_context")
    client("atomic", rmr=0, bytes="02" * 8, ctx=2)
    client.refuses("ERR_TIMEOUT", "wc", timeout=2000)
    expect(server("bytes", len=8)["bytes"], "01" * 8, "the server's memory")
    client("batch-delete")
    disconnect(client, server)


PAGE, LEN = 4096, 64
FIXED = ("rdma_rxe stores it at the right offset now: remove the notes about it in docs/lab.md and "
         "examples/README.md and this case")


@case("device", "rdma_rxe stores data written into FS-DAX memory at the beginning of the page",
      needs=(lab.ON_DEMAND_PAGING,))
def misplaced(test):
    """
    A defect of the kernel, shown by raw work requests: in memory with on-demand paging, the offset
    within the page is lost. Therefore the examples use page boundaries.
    """
    lab.need_virtual("soft-RoCE")
    server, client = connected(test, 2 * PAGE, file=lab.need(lab.FSDAX, "FS-DAX file system") + "/odp-offset")
    client("set", len=LEN, byte=0xb7)
    found = {}
    for offset in (0, 64, PAGE, PAGE + 512):
        server("set", len=2 * PAGE, byte=0x5a)
        client("raw-write", mr=0, rmr=0, roff=offset, len=LEN)
        client.completion(opcode="WRITE")
        found[offset] = bytes.fromhex(server("bytes", len=2 * PAGE)["bytes"]).index(b"\xb7" * LEN)
    disconnect(client, server)
    test.transcript.append(f"where the data are: {found}")
    if all(offset == place for offset, place in found.items()):
        raise Failed(FIXED)
    expect(found, {offset: offset // PAGE * PAGE for offset in found}, "where the data are")
