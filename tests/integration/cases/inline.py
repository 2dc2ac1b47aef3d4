# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Inline data: posting copies them, up to the size that the connection takes."""

from harness import lab
from harness.case import case, connect, disconnect, listen, share_region
from harness.network import PORTS, disturbed
from harness.side import Failed, expect

SIZE = 64  # soft-iWARP takes 80
BEFORE, AFTER = 0x11, 0x22
ALWAYS, INLINE = 3, 8
LARGE = 1 << 20
ROOM = LARGE + 4096


def pair(test, **cfg):
    server, client = test.peers()
    share_region(server, client, ROOM)
    listen(server)
    client("cfg", sq=16, rq=16, **cfg)
    connect(server, client, client_cfg=0)
    return server, client


@case("inline", "{verb} of 0, 1 and {most} bytes, alone and in a batch",
      [{"verb": verb, "most": SIZE} for verb in ("write", "write-imm", "send", "send-imm")])
def carried(test, verb, most):
    if verb.endswith("imm"):
        lab.need_feature(lab.IMMEDIATE_DATA)
    server, client = pair(test, inline=SIZE)
    client("batch-new", batch=0, conn=0, ops=1)
    ways = [(size, where) for size in (0, 1, most) for where in ({}, {"batch": 0})]
    for seed, (size, where) in enumerate(ways):
        client("fill", off=0, len=size, seed=seed)
        server("set", off=0, len=4096, byte=AFTER)
        if verb != "write":
            server("recv", mr=0, off=0, len=SIZE)
        remote = {"rmr": 0, "roff": 0} if verb.startswith("write") else {}
        client(verb, mr=0, off=0, len=size, flags=ALWAYS | INLINE, **remote, **where)
        if where:
            client("batch-post", batch=0)
            client("batch-reset", batch=0)
        client.completion()
        if verb != "write":
            server.completion()
        server("check", off=0, len=size, seed=seed)
        server("check-set", off=size, len=4096 - size, byte=AFTER)
    disconnect(client, server)


def overwritten(server, client, milliseconds, flags):
    """
    The bytes that arrive from a small write whose memory changes right after the post. A large
    write fills the cable before it, so that the device reaches the small write only when the first
    answers have arrived.
    """
    client("set", off=LARGE, len=SIZE, byte=BEFORE)
    with disturbed(PORTS[1:], "delay", f"{milliseconds}ms", "limit", "100000"):
        client("write", mr=0, rmr=0, len=LARGE)
        client("write", mr=0, off=LARGE, rmr=0, roff=LARGE, len=SIZE, flags=flags)
        client("set", off=LARGE, len=SIZE, byte=AFTER)
        client.completions(2, timeout=120000)
    try:
        server("check-set", off=LARGE, len=SIZE, byte=BEFORE)
        return BEFORE
    except Failed:
        server("check-set", off=LARGE, len=SIZE, byte=AFTER)
        return AFTER


@case("inline", "the memory may be changed at once, which without the flag shows", limit=300)
def free_at_once(test):
    """The first part is the control: on a busy machine the delay has to be longer."""
    lab.need_virtual("a slow cable")
    server, client = pair(test, inline=SIZE)
    for milliseconds in (100, 400, 1600):
        if overwritten(server, client, milliseconds, ALWAYS) == AFTER:
            break
    else:
        raise Failed("a write without the flag never showed the change")
    expect(overwritten(server, client, milliseconds, ALWAYS | INLINE), BEFORE, "with the flag")
    disconnect(client, server)


@case("inline", "more than the connection takes is refused, and nothing else is",
      shows=("write: too much inline",))
def too_much(test):
    server, client = pair(test, inline=SIZE)
    client.begin("write", mr=0, rmr=0, len=4096, flags=ALWAYS | INLINE)
    expect(client.take()[0], "RPMA_E_PROVIDER", "4096 bytes inline")
    client("write", mr=0, rmr=0, len=SIZE, flags=ALWAYS | INLINE)
    client.completion(opcode="WRITE")
    client("write", mr=0, rmr=0, len=4096)
    client.completion(opcode="WRITE")
    disconnect(client, server)


@case("inline", "more than the device takes is refused when the connection is requested",
      shows=("request: too much inline",))
def device_takes_less(test):
    server, client = test.peers()
    listen(server)
    client("cfg", inline=100000)
    client.refuses("RPMA_E_PROVIDER", "req-new", addr=server.address, port=7204, cfg=0)
