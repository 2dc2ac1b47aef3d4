#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
What persistence.py runs in the lab to try rpma-perf --ledger: persistence_ledger.py cut|verify
DIRECTORY BUILD…. DIRECTORY is outside of the machine; the ledgers get there while the clients stand
still, right before the power is cut. Linux writes zeros into a file of the shared folder that one
program reads while another one appends to it.

Two controls must fail. The memory of one is a device DAX that the next boot does not find again;
the other is a copy of the ring from before the end, as of a platform that loses the newest data.
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
from harness.case import PORT, Test  # noqa: E402
from harness.program import Process, laps_of, new_file_at, record, serve  # noqa: E402
from harness.side import Failed, expect  # noqa: E402

LOST, EARLY = "lost memory", "early copy"
OPTIONS = ("--ring", "256", "-d", "4", "-c", "2", "-t", "2")
FOUND, MISSING = 0, 3


def memory_of(name):
    return lab.DEVDAX if name == LOST else os.path.join(lab.FSDAX, "ring-" + name)


def ledger_of(directory, name):
    return os.path.join(directory, name)


def tell(name, text):
    print(f"{name}: {text}", flush=True)


def load(test, directory, name, port, build):
    """Starts a server and a client, and waits until their rings have been filled twice."""
    environment = {"LD_LIBRARY_PATH": os.path.join(lab.build_directory(build), "src")}
    if name != LOST:
        new_file_at(memory_of(name))
    serve(test, "--memory", memory_of(name), "--direct-write", "--port", port,
          environment=environment)
    client = record(test, ledger_of(directory, name), *OPTIONS, "--port", port,
                    environment=environment)
    client.wait_until(lambda: laps_of(ledger_of(directory, name)) >= 2, "two laps of the ring")
    return client


def cut(test, outside, builds):
    directory = tempfile.mkdtemp()
    loads = [(build, build) for build in builds] + [(LOST, builds[0])]
    clients = {name: load(test, directory, name, str(int(PORT) + number), build)
               for number, (name, build) in enumerate(loads)}
    shutil.copy(memory_of(builds[0]), memory_of(EARLY))
    os.sync()
    copied = {name: laps_of(ledger_of(directory, name)) for name in clients}
    for name, client in clients.items():
        ledger = ledger_of(directory, name)
        client.wait_until(lambda path=ledger, laps=copied[name]: laps_of(path) >= laps + 2,
                          "two more laps")
    for client in clients.values():
        client.signal(signal.SIGSTOP)
    for name in clients:
        shutil.copy(ledger_of(directory, name), ledger_of(outside, name))
        tell(name, "records are written")
    os.sync()
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("there is still power")


def verify(test, directory, builds):
    for name in (*builds, LOST, EARLY):
        ledger = ledger_of(directory, builds[0] if name == EARLY else name)
        status = MISSING if name in (LOST, EARLY) else FOUND
        said = Process(test, 1, "--verify", "--ledger", ledger, "--memory",
                       memory_of(name)).end(status)
        expect("first missing: connection 0, record " in said, status == MISSING, said)
        tell(name, said.strip())
        tell(name, "records are missing" if status == MISSING else "no record is missing")


def main():
    step, directory, *builds = sys.argv[1:]
    if not lab.IS_VIRTUAL:
        print("there is no power to cut: this is no virtual machine")
        return 77
    test = Test(builds[0])
    try:
        {"cut": cut, "verify": verify}[step](test, directory, builds)
    except Failed as failure:
        test.undo.close()
        print(*test.transcript, failure, sep="\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
