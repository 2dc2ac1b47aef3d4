#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Boots the lab for run.py and prints its lines. Each case gets a verdict, even if it did not run
because the machine ended or hung.
"""

import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from harness.report import Tap  # noqa: E402

RUN = "tests/integration/run.py"
# Far above the time of all cases: run.py itself ends a case that is too slow, unless its kernel
# hangs.
LIMIT = "36000"
# Options of tools/lab, with their defaults here.
OPTIONS = {"provider": None, "kernel": None, "hosts": "3", "cpus": None, "memory": None}


def list_cases(arguments):
    done = subprocess.run([os.path.join(HERE, "run.py"), *arguments, "--list"], text=True,
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.splitlines()


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    for option, default in OPTIONS.items():
        parser.add_argument("--" + option, default=default, help="option of tools/lab")
    parser.add_argument("lab", help="tools/lab")
    parser.add_argument("logs", help="directory with one subdirectory of logs per run")
    parser.add_argument("name", help="name of the subdirectory")
    parser.add_argument("build", help="native or plain")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for run.py")
    return parser.parse_args()


def main():
    given = parse()
    directory = os.path.join(given.logs, given.name)
    arguments = ["--build", given.build, *given.arguments]
    if not given.provider and not given.kernel and glob.glob("/sys/class/infiniband/*"):  # tools/lab uses this device
        arguments.append("--all")
    names = list_cases(arguments)
    tap = Tap(given.build, len(names), directory)
    options = [word for option in OPTIONS if getattr(given, option)
               for word in ("--" + option, getattr(given, option))]
    command = [given.lab, "run", *options, "--share", given.logs, "--timeout", LIMIT,
               "--build", given.build, "--", RUN, *arguments, "--logs", directory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as machine:
        for line in machine.stdout:
            if not line.startswith("1.."):
                print(line, end="", flush=True)
            tap.number += re.match(r"(not )?ok \d", line) is not None
    if tap.number == len(names):
        return machine.returncode
    for name in names[tap.number:]:
        tap.add(name, "failed", f"not run to its end: the lab ended with status {machine.returncode}", 0)
    return tap.end("a machine that ended too early")


if __name__ == "__main__":
    sys.exit(main())
