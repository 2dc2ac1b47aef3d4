#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
What persistence.py runs in the lab: persistence_inside.py BUILD write|check.

The emulated memory has no cache that a power cut would empty, so data that arrived is there. What
a client loses without a flush is what has not arrived yet. Therefore the network holds all packets
back until the client waits for a completion: one that waits for its flush finds its data after
the power cut, one that never waits does not. The control is the same program without the flush.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import lab  # noqa: E402
from harness.case import Test, connect, listen, share_region  # noqa: E402
from harness.side import ON_ERROR, Failed, expect  # noqa: E402

BLOCK = 65536
BLOCKS = 16
SIZE = BLOCKS * BLOCK
BEFORE = 0xa7
FLUSHED, CONTROL = 0, 1  # the regions, each a file of its own
CABLE = "port1"  # what the bridge sends to the server


def file(region):
    return os.path.join(lab.FSDAX, ("persistence", "control")[region])


def hold_packets():
    lab.run("tc", "qdisc", "add", "dev", CABLE, "root", "plug", "limit", str(1 << 30))


def let_packets_go():
    lab.run("tc", "qdisc", "change", "dev", CABLE, "root", "plug", "release_indefinite")


def store(server, client, region, flush):
    """Writes all blocks; with flush, makes them persistent and waits until they are."""
    server("set", mr=region, len=SIZE, byte=BEFORE)
    hold_packets()
    for number in range(BLOCKS):
        place = number * BLOCK
        client("fill", mr=region, off=place, len=BLOCK, seed=number)
        client("write", conn=region, mr=region, off=place, rmr=region, roff=place, len=BLOCK,
               flags=ON_ERROR)
    if flush:
        client("flush", conn=region, rmr=region, len=SIZE, persistent=1)
        client.begin("wc", conn=region)
        let_packets_go()
        client.end()
        lab.run("tc", "qdisc", "del", "dev", CABLE, "root")
    else:
        server("check-set", mr=region, len=SIZE, byte=BEFORE)


def write(test):
    server, client = test.peers()
    listen(server)
    for side in (server, client):
        side("cfg", sq=BLOCKS + 1)
    for region in (FLUSHED, CONTROL):
        share_region(server, client, SIZE, number=region, file=file(region))
        connect(server, client, number=region, server_cfg=0, client_cfg=0)
        client("apply-pcfg", conn=region, desc=server("pcfg", direct=1)["desc"])
    store(server, client, FLUSHED, flush=True)
    print("all blocks are flushed", flush=True)
    store(server, client, CONTROL, flush=False)
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("there is still power")


def check(test):
    reader = test.side(1, "reader")
    for region in (FLUSHED, CONTROL):
        if not os.path.exists(file(region)):
            raise Failed(f"{file(region)} is gone")
        reader("memory", mr=region, file=file(region), size=SIZE)
    for number in range(BLOCKS):
        reader("check", mr=FLUSHED, off=number * BLOCK, len=BLOCK, seed=number)
    print("all blocks are there")
    for number in range(BLOCKS):
        code = reader.code("check", mr=CONTROL, off=number * BLOCK, len=BLOCK, seed=number)
        expect(code, "ERR_MISMATCH", f"block {number} of the control, which nobody flushed")
    print("no block of the control is there")
    test.finish()


def main():
    build, step = sys.argv[1:]
    if not lab.IS_VIRTUAL:
        print("there is no power to cut: this is no virtual machine")
        return 77
    test = Test(build)
    try:
        {"write": write, "check": check}[step](test)
    except Failed as failure:
        print(test.log(), failure, sep="\n")
        return 1
    finally:
        test.abandon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
