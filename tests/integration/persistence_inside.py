#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What persistence.py runs in the lab: persistence_inside.py BUILD write|check."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import lab  # noqa: E402
from harness.case import Test, connect, listen, share_region  # noqa: E402
from harness.side import Failed  # noqa: E402

BLOCK = 65536
BLOCKS = 16
SIZE = (BLOCKS + 1) * BLOCK


def write(test, file):
    """Every block but the last is flushed; nothing is claimed about that one."""
    server, client = test.peers()
    share_region(server, client, SIZE, file=file)
    listen(server)
    connect(server, client)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    for number in range(BLOCKS + 1):
        place = number * BLOCK
        client("fill", off=place, len=BLOCK, seed=number)
        client("write", mr=0, off=place, rmr=0, roff=place, len=BLOCK)
        client.completion(opcode="WRITE")
        if number < BLOCKS:
            client("flush", rmr=0, roff=place, len=BLOCK, persistent=1)
            client.completion()
    print("all blocks are flushed", flush=True)
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("there is still power")


def check(test, file):
    if not os.path.exists(file):
        raise Failed(f"{file} is gone")
    reader = test.side(1, "reader")
    reader("memory", file=file, size=SIZE)
    for number in range(BLOCKS):
        reader("check", off=number * BLOCK, len=BLOCK, seed=number)
    last = reader.code("check", off=BLOCKS * BLOCK, len=BLOCK, seed=BLOCKS)
    print("the block that was not flushed " + ("came through" if last == "ok" else "is lost"))
    print("all blocks are there")
    test.finish()


def main():
    build, step = sys.argv[1:]
    if not lab.IS_VIRTUAL:
        print("there is no power to cut: this is no virtual machine")
        return 77
    test = Test(build)
    try:
        {"write": write, "check": check}[step](test, os.path.join(lab.FSDAX, "persistence"))
    except Failed as failure:
        print(test.log(), failure, sep="\n")
        return 1
    finally:
        test.abandon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
