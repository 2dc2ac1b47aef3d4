# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What a device does by itself, and the manual therefore says."""

from harness import lab
from harness.case import case, connected, disconnect
from harness.side import FLUSH_VISIBILITY, READ_SRC, SEND, WRITE_DST, expect

BLOCK = 4096


@case("device", "a region for writes and flushes can be read as well")
def flush_grants_read(test):
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
    server, client = connected(test)
    client("memory", mr=1, size=BLOCK)
    client("reg", mr=1, usage={"READ_SRC": READ_SRC, "SEND": SEND}[usage])
    client("fill", mr=1, len=BLOCK, seed=1)
    client("write", mr=1, rmr=0, len=BLOCK)
    client.completion(opcode="WRITE")
    server("check", len=BLOCK, seed=1)
    server("recv", mr=0, len=BLOCK)
    client("send", mr=1, len=BLOCK)
    client.completion(opcode="SEND")
    server.completion(opcode="RECV")
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
