# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The network loses packets, or the other side's memory is not as the client expects."""

import random
import time

from harness import lab
from harness.case import (case, connect, connected, disconnect, listen, share_region)
from harness.network import PORTS, cables, cut, disturbed, mend
from harness.side import ALL_USAGES, expect

from .faults_peer import ends_broken, wait_for_bytes, writing

BLOCK = 4096
BEYOND = 0x5b


def again(server, client, number, region_at=0):
    """A new connection between the same two processes works."""
    connect(server, client, number=number)
    client("fill", len=64, seed=number)
    client("write", conn=number, mr=0, rmr=0, len=64)
    client.completion(opcode="WRITE", conn=number)
    server("check", off=region_at, len=64, seed=number)
    disconnect(client, server, number)


def denied(client, verb, conn=0):
    """
    Where the target answers each operation, the completion reports that it denies the access.
    Elsewhere the end of the connection does: a write completes when it has left the device, and a
    read never completes.
    """
    if not lab.lacks(lab.ANSWERS):
        client.completion("REM_ACCESS_ERR", conn=conn)
        return
    client.completion("SUCCESS" if verb == "write" else "WR_FLUSH_ERR", conn=conn)
    client.event("CLOSED", conn=conn)


@case("faults", "{verb} {what}: denied, memory untouched",
      [{"verb": "write", "what": "behind the region"}, {"verb": "read", "what": "across its end"},
       {"verb": "write", "what": "before it"}])
def beyond_region(test, verb, what):
    """The region is the middle page of the memory."""
    server, client = test.peers()
    server("memory", size=3 * BLOCK)
    server("set", len=3 * BLOCK, byte=BEYOND)
    client("memory", size=3 * BLOCK)
    client("reg", usage=ALL_USAGES)
    descriptor = server("reg", off=BLOCK, len=BLOCK, usage=ALL_USAGES)["desc"]
    client("remote", desc=descriptor)
    listen(server)
    connect(server, client)
    offset = {"behind the region": BLOCK, "across its end": BLOCK - 8,
              "before it": (1 << 64) - 64}[what]
    client(verb, mr=0, rmr=0, roff=offset, len=16)
    denied(client, verb)
    server("check-set", len=3 * BLOCK, byte=BEYOND)
    client("conn-delete")
    again(server, client, 1, region_at=BLOCK)


@case("faults", "access that the region does not grant: denied",
      shows=("REM_ACCESS_ERR: read, write",))
def not_granted(test):
    server, client = connected(test, usage=1)  # READ_SRC alone
    client("write", mr=0, rmr=0, len=16)
    denied(client, "write")


@case("faults", "stale rkey: denied")
def stale_key(test):
    server, client = connected(test)
    server("dereg")
    server("set", len=BLOCK, byte=BEYOND)
    client("write", mr=0, rmr=0, len=16)
    denied(client, "write")
    server("check-set", len=BLOCK, byte=BEYOND)


@case("faults", "region deregistered under traffic: a failed completion")
def deregistered(test):
    size = 4 << 20
    server, client = writing(test, size)
    server("dereg")
    server("set", len=size, byte=BEYOND)
    ends_broken(client)
    server("check-set", len=size, byte=BEYOND)


@case("faults", "garbage for a descriptor is refused, or fails where it is used",
      shows=("remote region: short", "remote region: no usage"))
def garbage(test):
    server, client = connected(test)
    random.seed(7204)
    for length in (0, 1, 20):
        client.refuses("RPMA_E_INVAL", "remote", rmr=1, desc="ff" * length)
    client.refuses("RPMA_E_INVAL", "remote", rmr=1, desc="ff" * 20 + "00")
    client.refuses("RPMA_E_INVAL", "apply-pcfg", desc="")
    server("set", len=65536, byte=BEYOND)
    client.refuses("RPMA_E_INVAL", "remote", rmr=1, desc="ff" * 21)  # ends behind the last address
    for number in range(1, 4):
        foreign = b"".join(random.randbytes(7) + bytes(1) for _ in "as") + random.randbytes(4)
        client("remote", rmr=number, desc=foreign.hex() + "ff")
        connect(server, client, number=number)
        client("write", conn=number, mr=0, rmr=number, len=16)
        denied(client, "write", conn=number)
    server("check-set", len=65536, byte=BEYOND)
    again(server, client, 9)


@case("faults", "link down for 1 s under writes: they end, what completed is there",
      limit=120)
def short_outage(test):
    """
    Devices differ in which operations survive an outage; no operation that did not arrive may
    complete.
    """
    port = cables(test)[1]
    server, client = test.peers()
    size = 1 << 19
    share_region(server, client, size)
    listen(server)
    connect(server, client)
    client("fill", len=size, seed=1)
    client.begin("write-blocks", mr=0, rmr=0, len=16, count=size // 16, window=8)
    wait_for_bytes(server, 16 * 100)
    cut(port)
    time.sleep(1)
    mend(port)
    code, answer = client.take()
    expect(code == "ok" or (code == "RPMA_E_PROVIDER" and answer["status"] != "0"), True,
           f"end of the load ({code} {answer})")
    server("check", len=16 * int(answer["done"]), seed=1)
    client("conn-delete")
    lab.wait_for_host(2, client.address, server.address)
    again(server, client, 1)


@case("faults", "link down for 8 s: neither side hears anything, the client may disconnect; a new "
      "connection once it is up", limit=120, needs=(lab.ANSWERS,))
def long_outage(test):
    """
    The outage lasts longer than the retries of hardware; soft-RoCE retries until it is told to end.
    """
    port = cables(test)[1]
    server, client = connected(test)
    cut(port)
    client("write", mr=0, rmr=0, len=64)
    client.refuses("ERR_TIMEOUT", "wc", timeout=8000)
    server.refuses("ERR_TIMEOUT", "event", timeout=1)  # the idle side gets no event either
    client("disconnect")
    client.completion("WR_FLUSH_ERR")
    client("conn-delete")
    mend(port)
    lab.wait_for_host(2, client.address, server.address)
    again(server, client, 1)


@case("faults", "5 % loss and reordering during {count} writes: all verified",
      [{"count": 2000}], limit=300)
def lossy(test, count):
    lab.need_virtual("a bad cable")
    server, client = test.peers()
    share_region(server, client, count * 64)
    listen(server)
    client("cfg", cq=64, sq=64)
    connect(server, client, client_cfg=0)
    client("fill", len=count * 64, seed=1)
    with disturbed(PORTS, "loss", "5%", "delay", "1ms", "reorder", "25%", "50%"):
        answer = client("write-blocks", mr=0, rmr=0, len=64, count=count, window=32)
        expect(answer["done"], str(count), "completions")
        for port in PORTS:
            dropped = lab.run("tc", "-s", "qdisc", "show", "dev", port)
            test.transcript.append(dropped)
            expect("dropped 0," in dropped, False, "the network loses packets")
    server("check", len=count * 64, seed=1)
    disconnect(client, server)
