# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What a device does by itself, and the manual therefore says."""

import contextlib
import glob
import os

from harness import lab
from harness.case import PORT, case, connected, disconnect, listen
from harness.network import cables, disturbed
from harness.side import (FLUSH_VISIBILITY, LOCAL_USAGES, READ_SRC, SEND, WRITE_DST, Failed,
                          expect)

BLOCK = 4096


@case("device", "a region for writes and flushes can be read as well")
def flush_grants_read(test):
    """rpma_security(7) and rpma_mr_reg(3)."""
    server, client = connected(test, usage=WRITE_DST | FLUSH_VISIBILITY)
    server("fill", len=BLOCK, seed=1)
    client("read", mr=0, rmr=0, len=BLOCK)
    client.completion(opcode="READ")
    client("check", len=BLOCK, seed=1)
    disconnect(client, server)


@case("device", "a region for writes alone cannot be read")
def write_grants_no_read(test):
    server, client = connected(test, usage=WRITE_DST)
    server("fill", len=BLOCK, seed=1)
    client("set", len=BLOCK, byte=0)
    client("read", mr=0, rmr=0, len=BLOCK)
    client.completion("REM_ACCESS_ERR")
    client("check-set", len=BLOCK, byte=0)


@case("device", "what a region is registered for locally is not kept apart: {usage} sends and "
      "is written from", [{"usage": "READ_SRC"}, {"usage": "SEND"}])
def local_usage(test, usage):
    """rpma_mr_reg(3): the device does not keep apart what this side does with a region."""
    server, client = connected(test)
    client("memory", mr=1, size=BLOCK)
    client("reg", mr=1, usage={"READ_SRC": READ_SRC, "SEND": SEND}[usage])
    client("fill", mr=1, len=BLOCK, seed=1)
    client("write", mr=1, rmr=0, len=BLOCK)
    client.completion(opcode="WRITE")
    server("recv", mr=0, off=BLOCK, len=BLOCK)
    client("send", mr=1, len=BLOCK)
    client.completion(opcode="SEND")
    server.completion(opcode="RECV")
    for offset in (0, BLOCK):
        server("check", off=offset, len=BLOCK, seed=1)
    disconnect(client, server)


@case("device", "a receive into a region that is not registered for it fails, nothing arrives")
def receive_needs_its_usage(test):
    server, client = connected(test)
    server("memory", mr=1, size=BLOCK)
    server("set", mr=1, len=BLOCK, byte=0)
    server("reg", mr=1, usage=SEND)
    server("recv", mr=1, len=BLOCK)
    client("send", mr=0, len=BLOCK)
    found = [side.completions(1)[0].status for side in (server, client)]
    if lab.PROVIDER == "rxe":
        expect(found, ["LOC_QP_OP_ERR", "REM_OP_ERR"], "failures")
    else:
        expect("SUCCESS" in found, False, f"a success in {found}")
    server("check-set", mr=1, len=BLOCK, byte=0)


@case("device", "a {verb} that leaves the local region ends with {status}, nothing arrives",
      [{"verb": "write", "status": "WR_FLUSH_ERR", "shows": ("WR_FLUSH_ERR: write, send",)},
       {"verb": "send", "status": "WR_FLUSH_ERR", "shows": ("WR_FLUSH_ERR: write, send",)},
       {"verb": "read", "status": "LOC_PROT_ERR", "shows": ("LOC_PROT_ERR: read",)}])
def local_range(test, verb, status):
    """The standard has LOC_PROT_ERR for all three; so have most devices."""
    server, client = connected(test)
    server("set", len=BLOCK, byte=0)
    server("recv", mr=0, len=BLOCK)
    client("memory", mr=1, size=2 * BLOCK)
    client("set", mr=1, len=2 * BLOCK, byte=1)
    client("reg", mr=1, len=BLOCK, usage=LOCAL_USAGES)
    remote = {} if verb == "send" else {"rmr": 0}
    client(verb, mr=1, off=BLOCK - 8, len=16, **remote)
    client.completion(status if lab.IS_VIRTUAL else "LOC_PROT_ERR")
    server("check-set", len=BLOCK, byte=0)
    client("check-set", mr=1, len=2 * BLOCK, byte=1)


@case("device", "a connection deleted without being disconnected: the other side sees CLOSED")
def deleted(test):
    server, client = connected(test)
    client("conn-delete")
    server.event("CLOSED")


@case("device", "receives complete when this side disconnects, not when the other did")
def receives_end(test):
    server, client = connected(test)
    for side in (server, client):
        side("recv", mr=0, len=BLOCK, ctx=9)
    client("disconnect")
    expect(client.completion("WR_FLUSH_ERR").ctx, 9, "receive")
    server.event("CLOSED")
    server.refuses("RPMA_E_NO_COMPLETION", "poll-wc")
    server("disconnect")
    expect(server.completion("WR_FLUSH_ERR").ctx, 9, "receive")
    client.event("CLOSED")


@case("device", "a server's ESTABLISHED comes once the client takes its own")
def handshake(test):
    """librpma(7), "Steps of a client": librdmacm answers for the client when it takes the event."""
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req")
    server("connect")
    client("epoll-add", fd="event", tag=1)
    client("epoll-wait")  # the server's answer is here
    server.refuses("ERR_TIMEOUT", "event", timeout=500)
    client.event("ESTABLISHED")
    server.event("ESTABLISHED")
    disconnect(client, server)


@case("device", "who receives a message sees what was written before it")
def order(test):
    server, client = connected(test, 1 << 20)
    for seed in range(20):
        server("recv", mr=0, len=8)
        client("fill", off=BLOCK, len=BLOCK * 100, seed=seed)
        client("write", mr=0, off=BLOCK, rmr=0, roff=BLOCK, len=BLOCK * 100, flags=1)
        client("send", mr=0, len=8)
        server.completion(opcode="RECV", busy=1)
        server("check", off=BLOCK, len=BLOCK * 100, seed=seed)
        client.completion(opcode="SEND")
    disconnect(client, server)


@case("device", "receives are used in the order in which they were posted")
def receive_order(test):
    server, client = connected(test)
    for number in range(5):
        server("recv", mr=0, off=64 * number, len=64, ctx=number)
    for number in range(5):
        client("send", mr=0, len=8)
    expect([found.ctx for found in server.completions(5)], list(range(5)), "receives")
    client.completions(5)
    disconnect(client, server)


@case("device", "default configurations lose no completion")
def default_sizes(test):
    """
    Nobody polls before all messages are there, so the queues hold as much as they ever have to:
    ten sends and ten receives on each side.
    """
    count = 10
    server, client = connected(test, server_cfg="defaults")
    for side in (server, client):
        for number in range(count):
            side("recv", mr=0, off=64 * number, len=64, ctx=number)
        side("set", len=4096, byte=0)
        side("fill", off=8192, len=64, seed=1)
    for side in (server, client):
        for number in range(count):
            side("send", mr=0, off=8192, len=64, ctx=100 + number)
    for side in (server, client):
        while side.code("check", off=64 * (count - 1), len=64, seed=1) != "ok":
            pass
    for side in (server, client):
        found = side.completions(2 * count)
        for opcode, first in (("RECV", 0), ("SEND", 100)):
            contexts = [one.ctx for one in found if one.opcode == opcode]
            expect(contexts, list(range(first, first + count)), f"{side.name}: {opcode}")
    disconnect(client, server)


@case("device", "rdma_rxe cannot repeat a native {verb}: {status}",
      [{"verb": "flush", "status": "REM_ACCESS_ERR"},
       {"verb": "atomic", "status": "no completion"}], needs=(lab.NATIVE_OPERATIONS,))
def repeated(test, verb, status):
    """
    A defect of the kernel: req_retry() takes 0 for the address of what is neither a read nor a
    write nor an atomic operation with an answer. Here the device repeats what stands behind a
    message without a receive; when packets get lost it does the same.
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
    """How many requests have come to the device again, after it had served them."""
    with open(f"/sys/class/infiniband/{device}/ports/1/hw_counters/duplicate_request",
              encoding="utf-8") as file:
        return int(file.read())


@case("device", "the answer to a {verb} gets lost, rdma_rxe asks again: {status}",
      [{"verb": "flush", "status": "no completion"}, {"verb": "read", "status": "SUCCESS"}],
      limit=60, needs=(lab.NATIVE_OPERATIONS,))
def answered_again(test, verb, status):
    """
    A defect of the kernel: rxe_prepare_res() does not note the packet's number of a flush, so
    duplicate_request() does not find it, drops what was repeated and answers no more. With the
    retry count 7 rxe_completer() repeats for ever. The answer to what follows ends it.
    """
    way_to_client = cables(test)[1:]
    server, client = connected(test)
    before = duplicates("rxe1")
    arguments = {"persistent": 0} if verb == "flush" else {"mr": 0}
    with disturbed(way_to_client, "loss", "100%"):
        client(verb, rmr=0, len=8, ctx=1, **arguments)
        while duplicates("rxe1") == before:
            client.refuses("ERR_TIMEOUT", "wc", timeout=50)
    if status == "SUCCESS":
        expect(client.completion(timeout=10000).ctx, 1, "op_context")
    else:
        repeated_until_now = duplicates("rxe1")
        while duplicates("rxe1") < repeated_until_now + 3:
            client.refuses("ERR_TIMEOUT", "wc", timeout=200)
        client("write", mr=0, rmr=0, len=8, ctx=2)
        expect([(one.ctx, one.status) for one in client.completions(2)],
               [(1, "SUCCESS"), (2, "SUCCESS")], "completions")
    disconnect(client, server)


PAGE = 4096
MENDED = ("rdma_rxe places it right now: remove the notes about it in docs/lab.md and "
          "examples/README.md and this case")


def ipv4_gid(device):
    """The index of the entry that holds the IPv4 address."""
    for path in glob.glob(f"/sys/class/infiniband/{device}/ports/1/gids/*"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            if file.read().startswith("0000:0000:0000:0000:0000:ffff:"):
                return os.path.basename(path)
    raise Failed(f"{device} has no IPv4 address")


@case("device", "rdma_rxe puts what is written into FS-DAX memory at the beginning of the page",
      needs=(lab.ON_DEMAND_PAGING,))
def misplaced(test):
    """
    A defect of the kernel, shown by verbs alone: in memory that is paged on demand the place
    within the page gets lost. The examples keep to page boundaries for that reason.
    """
    lab.need_virtual("soft-RoCE")
    file = lab.need(lab.FSDAX, "FS-DAX file system") + "/odp-offset"
    program = os.path.join(os.path.dirname(lab.PEER), "odp-offset")
    found = {}
    for offset in (0, 64, PAGE, PAGE + 512):
        said = lab.run(*lab.on(lab.host(1), program, "rxe1", ipv4_gid("rxe1"), file, str(offset)))
        found[offset] = int(said)
    test.transcript.append(f"where the data are: {found}")
    if all(offset == place for offset, place in found.items()):
        raise Failed(MENDED)
    expect(found, {offset: offset // PAGE * PAGE for offset in found}, "where the data are")
