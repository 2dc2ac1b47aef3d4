# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Device behaviour that the manual describes."""

from harness import lab
from harness.case import PORT, case, connected, disconnect, listen
from harness.side import FLUSH_VISIBILITY, LOCAL_USAGES, READ_SRC, SEND, WRITE_DST, expect

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
    """rpma_mr_reg(3): the device does not check the local usages of a region one by one."""
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
    """
    librpma(7), "Steps of a client": librdmacm completes the handshake when the client takes its
    event.
    """
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req")
    server("connect")
    client("epoll-add", fd="event", tag=1)
    client("epoll-wait")  # the server's answer has arrived
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
    Nobody polls before all messages have arrived, so the queues hold their maximum: ten sends and
    ten receives on each side.
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
