#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
The steps that persistence.py runs in the lab: persistence_inside.py STEP DIRECTORY BUILD….

write and check: the emulated memory has no cache that a power cut would empty, so data survives
once it has arrived. Without a flush, a client loses the data that has not arrived. Therefore the
network holds all packets until the client waits for a completion: data whose client waited for its
flush is found after the power cut, data of the control, which is not flushed, is not. Each build
has its server and its memory on another host.

cut and verify test rpma-check --power-cut. DIRECTORY is outside the machine; the ledgers are copied to
it while the clients are stopped, right before the power cut, because Linux writes zeros into a file
of the shared folder that one program reads while another one appends to it. Two controls must fail:
one has a device DAX whose content the next boot does not find, the other an early copy of the
records, as on a platform that loses the newest data.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import lab  # noqa: E402
from harness.case import PORT, Test, connect, listen, share_region  # noqa: E402
from harness.program import flushed_records, new_file_at, start_power_cut, verify_records  # noqa: E402
from harness.side import ON_ERROR, Failed, expect  # noqa: E402

BLOCK = 65536
BLOCKS = 16
SIZE = BLOCKS * BLOCK
BEFORE = 0xa7
FLUSHED, CONTROL = 0, 1  # the regions; each has its own file
CABLES = ("port1", "port2")  # the bridge's ends, which send to the hosts


def report(name, text):
    print(f"{name}: {text}", flush=True)


def cut_power():
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("the machine runs after the power cut")


# ---- blocks --------------------------------------------------------------------------------


def on_cables(*words):
    for cable in CABLES:
        lab.run("tc", "qdisc", words[0], "dev", cable, "root", *words[1:])


def hold_packets():
    on_cables("add", "plug", "limit", str(1 << 30))


class Pair:
    """A client, and a server on host NUMBER, of one build, with one connection per region."""

    def __init__(self, test, number, build):
        self.test, self.number, self.build = test, number, build

    def file(self, region):
        return os.path.join(lab.memory_of("FSDAX", self.number), self.build + ("-flushed", "-control")[region])

    def start(self):
        directory, port = lab.build_directory(self.build), str(int(PORT) + self.number)
        self.server, self.client = (self.test.side(
            number, f"{self.build} on host{number}", environment={"LD_LIBRARY_PATH": os.path.join(directory, "src")})
            for number in (self.number, 3 - self.number))
        for side in (self.server, self.client):
            side("cfg", sq=BLOCKS + 1)
        listen(self.server, port)
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
        """Writes all blocks, flushes them for persistence and waits for the completion."""
        hold_packets()
        self.write(FLUSHED)
        self.client("flush", conn=FLUSHED, rmr=FLUSHED, len=SIZE, persistent=1)
        self.client.begin("wc", conn=FLUSHED)
        on_cables("change", "plug", "release_indefinite")
        self.client.end()
        on_cables("del")
        report(self.build, "all blocks are flushed")

    def post(self):
        """Writes all blocks while the network holds all packets."""
        self.write(CONTROL)
        self.server("check-set", mr=CONTROL, len=SIZE, byte=BEFORE)

    def check(self):
        reader = self.test.side(1, f"{self.build} reader")
        for region in (FLUSHED, CONTROL):
            if not os.path.exists(self.file(region)):
                raise Failed(f"{self.file(region)} is gone")
            reader("memory", mr=region, file=self.file(region), size=SIZE)
        for number in range(BLOCKS):
            reader("check", mr=FLUSHED, off=number * BLOCK, len=BLOCK, seed=number)
            code = reader.code("check", mr=CONTROL, off=number * BLOCK, len=BLOCK, seed=number)
            expect(code, "ERR_MISMATCH", f"block {number} of the control, which was not flushed")
        report(self.build, "no block of the control has arrived")


def write(test, _, builds):
    pairs = [Pair(test, *numbered) for numbered in enumerate(builds, 1)]
    for pair in pairs:
        pair.start()
        pair.store()
    hold_packets()
    for pair in pairs:
        pair.post()
    cut_power()


def check(test, _, builds):
    for numbered in enumerate(builds, 1):
        Pair(test, *numbered).check()
    test.finish()


# ---- records -------------------------------------------------------------------------------

LOST, EARLY = "lost memory", "early copy"
RECORDS_SIZE = 4 << 20  # 256 places for each stream
FOUND, MISSING = 0, 1


def records_of(name):
    return lab.DEVDAX if name == LOST else os.path.join(lab.FSDAX, "records-" + name)


def load(test, ledger, name, port, build):
    """Starts a server and a client, and waits until its records have filled a file twice."""
    if name != LOST:
        new_file_at(records_of(name), RECORDS_SIZE)
    _, client = start_power_cut(test, records_of(name), ledger, port=port,
                                environment={"LD_LIBRARY_PATH": os.path.join(lab.build_directory(build), "src")})
    return client


def cut(test, outside, builds):
    directory = tempfile.mkdtemp()
    ledgers = {name: os.path.join(directory, name) for name in (*builds, LOST)}
    clients = {name: load(test, ledger, name, str(int(PORT) + number), name if name in builds else builds[0])
               for number, (name, ledger) in enumerate(ledgers.items())}
    shutil.copy(records_of(builds[0]), records_of(EARLY))
    os.sync()
    copied = {name: flushed_records(ledger) for name, ledger in ledgers.items()}
    for name, client in clients.items():
        client.wait_until(lambda name=name: flushed_records(ledgers[name]) >= copied[name] + 512, "512 more records")
    for client in clients.values():
        client.signal(signal.SIGSTOP)
    for name, ledger in ledgers.items():
        shutil.copy(ledger, os.path.join(outside, name))
        report(name, "records are written")
    os.sync()
    cut_power()


def verify(test, directory, builds):
    for name in (*builds, LOST, EARLY):
        ledger = os.path.join(directory, builds[0] if name == EARLY else name)
        status = MISSING if name in (LOST, EARLY) else FOUND
        output = verify_records(test, ledger, records_of(name), status)
        expect("first missing: stream 0, record " in output, status == MISSING, output)
        report(name, output.strip())
        report(name, "records are missing" if status == MISSING else "no record is missing")


def main():
    step, directory, *builds = sys.argv[1:]
    if not lab.IS_VIRTUAL:
        print("cutting the power needs a virtual machine")
        return 77
    test = Test(builds[0])
    try:
        {"write": write, "check": check, "cut": cut, "verify": verify}[step](test, directory, builds)
    except Failed as failure:
        print(test.log(), failure, sep="\n")
        return 1
    finally:
        test.abandon()
    return 0


if __name__ == "__main__":
    sys.exit(main())
