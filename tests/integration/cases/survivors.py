# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A side whose peer has ended: its load fails, and it works with a new peer."""

import errno

from harness import lab
from harness.case import connect, disconnect, listen, share_region
from harness.side import expect

BLOCK = 4096
# A connection has 7 retries. Hardware fails some seconds later; soft-RoCE retries without limit at
# 7, so only the event reports the end. A busy machine needs more time.
RETRIES_END = 120


def check_new_side(test, side):
    """Connects the remaining server to a new client, or the remaining client to a new server."""
    is_server = side.name == "server"
    new = test.side(2, "new client") if is_server else test.side(1, "new server")
    server, client = (side, new) if is_server else (new, side)
    share_region(server, client, number=9)
    if not is_server:
        listen(server)
    check_new_connection(server, client, 9, region=9)


def write_and_check(server, client, number=0, region=0, region_at=0):
    client("fill", mr=region, len=BLOCK, seed=number)
    client("write", conn=number, mr=region, rmr=region, len=BLOCK, ctx=number)
    expect(client.completion(opcode="WRITE", conn=number).ctx, number, "op_context")
    server("check", mr=region, off=region_at, len=BLOCK, seed=number)


def check_new_connection(server, client, number, **values):
    """A new connection works."""
    connect(server, client, number=number)
    write_and_check(server, client, number, **values)
    disconnect(client, server, number)


def begin_writes(client, length, count):
    """
    Begins the load. On a device that may drop completions after the end, the event ends it as well.
    """
    last = int(lab.lacks(lab.LATE_COMPLETIONS))
    client.begin("write-blocks", mr=0, rmr=0, len=length, count=count, window=8, last=last)


def expect_load_fails(side, within=RETRIES_END):
    """
    The load ends in time with a failed completion, or with CLOSED. siw may also refuse a post while
    the connection ends.
    """
    code, answer = side.read_reply(timeout=within)
    if code == "ERR_CLOSED" and lab.lacks(lab.LATE_COMPLETIONS):
        expect(answer["event"], "CLOSED", "event")
        return answer
    expect(code, "RPMA_E_PROVIDER", f"{side.name}: end of the load")
    if lab.lacks(lab.LATE_COMPLETIONS) and int(answer["status"]) == 0:
        expect(int(answer["errno"]), errno.ENOTCONN, "errno of the refused post")
        return answer
    expect(int(answer["status"]) != 0, True, "a completion reports the failure")
    return answer


def wait_for_bytes(server, offset):
    """Waits until the load has written at this offset."""
    while server("bytes", off=offset, len=8)["bytes"] == "00" * 8:
        pass


def begin_load(server, client, size):
    """Connects, and begins a load of 16-byte writes over size bytes of the server."""
    share_region(server, client, size)
    connect(server, client)
    client("fill", len=size, seed=1)
    begin_writes(client, 16, size // 16)
    wait_for_bytes(server, 16 * 500)
