#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
What persistence.py runs in the lab: persistence_inside.py write|check BUILD….

The emulated memory has no cache that a power cut would empty, so data that arrived is there. What
a client loses without a flush is what has not arrived yet. Therefore the network holds all packets
back until the client waits for a completion: one that waits for its flush finds its data after
the power cut, one that never waits does not. The control is the same program without the flush.
Each build has its server and its memory on another host.
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import lab  # noqa: E402
from harness.case import PORT, Test, connect, listen, share_region  # noqa: E402
from harness.side import ON_ERROR, Failed, expect  # noqa: E402

BLOCK = 65536
BLOCKS = 16
SIZE = BLOCKS * BLOCK
BEFORE = 0xa7
FLUSHED, CONTROL = 0, 1  # the regions, each a file of its own
CABLES = ("port1", "port2")  # what the bridge sends to the hosts


class Pair:
    """A client and a server of one build, this one on host NUMBER, with a connection for each region."""

    def __init__(self, number, build):
        self.number, self.build, self.test = number, build, Test(build)

    def file(self, region):
        return os.path.join(lab.memory_of("FSDAX", self.number), self.build + ("-flushed", "-control")[region])

    def tell(self, text):
        print(f"{self.build}: {text}", flush=True)

    def start(self, port):
        directory = lab.build_directory(self.build)
        self.server, self.client = (self.test.start(
            number, program=os.path.join(directory, "tests", "integration", "peer"),
            environment={"LD_LIBRARY_PATH": os.path.join(directory, "src")})
            for number in (self.number, 3 - self.number))
        for side in (self.server, self.client):
            self.test.prepare(side)("peer")
        listen(self.server, port)
        for side in (self.server, self.client):
            side("cfg", sq=BLOCKS + 1)
        for region in (FLUSHED, CONTROL):
            share_region(self.server, self.client, SIZE, number=region, file=self.file(region))
            connect(self.server, self.client, number=region, server_cfg=0, client_cfg=0, port=port)
            self.client("apply-pcfg", conn=region, desc=self.server("pcfg", direct=1)["desc"])
            self.server("set", mr=region, len=SIZE, byte=BEFORE)

    def write(self, region):
        for number in range(BLOCKS):
            place = number * BLOCK
            self.client("fill", mr=region, off=place, len=BLOCK, seed=number)
            self.client("write", conn=region, mr=region, off=place, rmr=region, roff=place, len=BLOCK,
                        flags=ON_ERROR)

    def store(self):
        """Writes all blocks, makes them persistent and waits until they are."""
        hold_packets()
        self.write(FLUSHED)
        self.client("flush", conn=FLUSHED, rmr=FLUSHED, len=SIZE, persistent=1)
        self.client.begin("wc", conn=FLUSHED)
        let_packets_go()
        self.client.end()
        for cable in CABLES:
            lab.run("tc", "qdisc", "del", "dev", cable, "root")
        self.tell("all blocks are flushed")

    def post(self):
        """Writes all blocks while no packet gets through."""
        self.write(CONTROL)
        self.server("check-set", mr=CONTROL, len=SIZE, byte=BEFORE)

    def check(self):
        reader = self.test.side(1, "reader")
        for region in (FLUSHED, CONTROL):
            if not os.path.exists(self.file(region)):
                raise Failed(f"{self.file(region)} is gone")
            reader("memory", mr=region, file=self.file(region), size=SIZE)
        for number in range(BLOCKS):
            reader("check", mr=FLUSHED, off=number * BLOCK, len=BLOCK, seed=number)
        self.tell("all blocks are there")
        for number in range(BLOCKS):
            code = reader.code("check", mr=CONTROL, off=number * BLOCK, len=BLOCK, seed=number)
            expect(code, "ERR_MISMATCH", f"block {number} of the control, which nobody flushed")
        self.tell("no block of the control is there")
        self.test.finish()


def hold_packets():
    for cable in CABLES:
        lab.run("tc", "qdisc", "add", "dev", cable, "root", "plug", "limit", str(1 << 30))


def let_packets_go():
    for cable in CABLES:
        lab.run("tc", "qdisc", "change", "dev", cable, "root", "plug", "release_indefinite")


def write(pairs):
    for number, pair in enumerate(pairs):
        pair.start(int(PORT) + number)
        pair.store()
    hold_packets()
    for pair in pairs:
        pair.post()
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("there is still power")


def check(pairs):
    for pair in pairs:
        pair.check()


def main():
    step, *builds = sys.argv[1:]
    if not lab.IS_VIRTUAL:
        print("there is no power to cut: this is no virtual machine")
        return 77
    pairs = [Pair(number, build) for number, build in enumerate(builds, 1)]
    try:
        {"write": write, "check": check}[step](pairs)
    except Failed as failure:
        print(*(pair.test.log() for pair in pairs), failure, sep="\n")
        return 1
    finally:
        for pair in pairs:
            pair.test.abandon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
