#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Boots the lab for run.py and passes its lines on. Each case gets a verdict, also the cases that did
not run because the machine died or hangs.
"""

import argparse
import os
import re
import select
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from harness.report import Tap, load  # noqa: E402

RUN = "tests/integration/run.py"
# Far above the limit of any case: run.py ends those itself, unless its kernel hangs.
SILENCE = 7200


def list_cases(arguments):
    done = subprocess.run([os.path.join(HERE, "run.py"), *arguments, "--list"], text=True,
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.splitlines()


class Machine:
    """The lab, which writes to a pipe; lines() ends with it, or when it is silent for too long."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.trouble = ""

    def lines(self):
        rest = b""
        while True:
            if not select.select([self.process.stdout], [], [], SILENCE)[0]:
                self.process.terminate()  # the end of the lab ends its machine, too
                self.trouble = f"nothing was heard of the lab for {SILENCE} s"
                break
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
        status = self.process.wait()
        self.trouble = self.trouble or f"the lab ended with status {status}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", help="tools/lab's option")
    parser.add_argument("--kernel", help="tools/lab's option")
    parser.add_argument("--hosts", default="3", help="tools/lab's option")
    parser.add_argument("--cpus", help="tools/lab's option")
    parser.add_argument("--memory", help="tools/lab's option")
    parser.add_argument("lab", help="tools/lab")
    parser.add_argument("logs", help="directory that has the logs of each run in one of its own")
    parser.add_argument("name", help="of that one")
    parser.add_argument("build", help="native or plain")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for run.py")
    return parser.parse_args()


def main():
    given = parse()
    directory = os.path.join(given.logs, given.name)
    arguments = ["--build", given.build, *given.arguments]
    names = list_cases(arguments)
    tap = Tap(given.build, len(names), directory)
    options = [word for option in ("provider", "kernel", "hosts", "cpus", "memory")
               if getattr(given, option) for word in ("--" + option, getattr(given, option))]
    machine = Machine([given.lab, "run", *options, "--share", given.logs, "--timeout", "1000000",
                       "--build", given.build, "--", RUN, *arguments, "--logs", directory])
    told = 0
    for line in machine.lines():
        if not line.startswith("1.."):
            print(line, flush=True)
        told += re.match(r"(not )?ok \d", line) is not None
    if told == len(names):
        return machine.process.returncode
    found = load(directory) or {"cases": []}
    tap.rows = found["cases"][:told]
    for name in names[told:]:
        tap.add(name, "failed", f"not run to its end: {machine.trouble}", 0)
    return tap.end("a machine that died")


if __name__ == "__main__":
    sys.exit(main())
