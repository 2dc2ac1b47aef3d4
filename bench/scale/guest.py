#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs all measurements of scale/ in the lab: in each round, for each library.

usage: guest.py STAGE ROUNDS MAX     STAGE has the programs scale, lists and queues and a directory
                                      for each library; MAX is the greatest number of connections

Prints lines of library, kind, size, figure and value, separated by tabs. For lists, the first
column is the method of posting instead of the library; for queues, whether all connections share one.
"""

import contextlib
import itertools
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

LIBRARIES = ["librpma", "predecessor"]
CONNECTIONS = [1, 16, 64, 256, 1000]
MANY_CONNECTIONS = [10000]
MANY_EVERY = 5  # rounds: many connections take minutes; odd, so that their order alternates
DESCRIPTORS = 1 << 16  # a connection uses two on each side
DEPTHS = [1, 8, 64]
TIMES = {1: 400, 8: 1500, 64: 3000}
KINDS = ["write-flush", "send"]
RECEIVES = {"send": 512, "echo": 512}
# Messages of each run. The first run after a boot is discarded: its poll may find a message before the wait
# for it, which saves calls. The difference of the other two runs has no calls of the connection's setup.
COUNTED = [64, 64, 128]
SIDES = ["client", "server"]
METHODS = ["plain", "array", "built", "prepared", "hand-built", "hand-prepared"]
LIST_KINDS = ["write", "write-flush"]
LENGTHS = [1, 4, 16, 64]
LIST_TIMES = 101
QUEUES = ["one", "each"]
LAPS = 5
SERVER = [os.environ["LAB_ADDR_host2"], 7204]


def print_progress(text):
    print(f"guest: {text}", file=sys.stderr, flush=True)


def command(stage, library, host, words, counter=()):
    """A program and its arguments on one host, with one library."""
    program, *arguments = words
    return ["on", host, "env", f"LD_LIBRARY_PATH={stage / library}", *counter, stage / program,
            *map(str, arguments)]


@contextlib.contextmanager
def server(stage, library, kind="", counter=()):
    """Serves on host2 until the block ends."""
    words = ["scale", "echo-server" if kind == "echo" else "server", *SERVER, RECEIVES.get(kind, 0)]
    process = subprocess.Popen(command(stage, library, "host2", words, counter),
                               stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "listening\n":
            sys.exit("guest: the server did not start")
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def measure(stage, library, name, kind, size, *words):
    """Runs a client on host1, which prints pairs of figure and value, and reports them."""
    done = subprocess.run(command(stage, library, "host1", words), check=False,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"guest: {' '.join(map(str, words))} ended with {done.returncode}")
    for line in done.stdout.splitlines():
        print(name, kind, size, line, sep="\t", flush=True)


def count_system_calls(stage, library):
    """Counts the system calls of a message and its echo, on each side."""
    totals = []
    for times in COUNTED:
        with tempfile.TemporaryDirectory() as name:
            logs = [pathlib.Path(name, side) for side in SIDES]
            ours, theirs = (["strace", "-fc", "-Ucalls", "-o", log] for log in logs)
            with server(stage, library, "echo", theirs) as process:
                words = ["scale", "operations", *SERVER, "echo", 1, times]
                subprocess.run(command(stage, library, "host1", words, ours), check=True,
                               stdout=subprocess.DEVNULL)
                process.wait()
            totals.append([int(re.search(r"(\d+) total", log.read_text())[1]) for log in logs])
    for side, few, many in zip(SIDES, *totals[1:]):
        each = (many - few) / (COUNTED[2] - COUNTED[1])
        print(library, "echo, counted", 1, f"system calls of the {side}", each, sep="\t", flush=True)


def measure_lists(stage):
    """Measures the methods to post a list, in turn."""
    with server(stage, "librpma"):
        for kind, length, method in itertools.product(LIST_KINDS, LENGTHS, METHODS):
            measure(stage, "librpma", method, "lists", length,
                    "lists", *SERVER, method, kind, length, LIST_TIMES)


def measure_queues(stage, sizes):
    """Measures one completion queue for all connections, and one for each."""
    for size, queues in itertools.product(sizes, QUEUES):
        with server(stage, "librpma"):
            measure(stage, "librpma", queues, "queues", size, "queues", *SERVER, queues, size, LAPS)


def main():
    stage, rounds, max_connections = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    operations = [(kind, depth, ["operations", *SERVER, kind, depth, TIMES[depth]])
                  for kind, depth in [*itertools.product(KINDS, DEPTHS), ("echo", 1)]]
    for number in range(rounds):
        print_progress(f"round {number + 1} of {rounds}: lists")
        sizes = CONNECTIONS + (MANY_CONNECTIONS if number % MANY_EVERY == 0 else [])
        sizes = [many for many in sizes if many <= max_connections]
        measure_lists(stage)
        print_progress("completion queues")
        measure_queues(stage, sizes)
        if number == 0:
            print_progress("system calls")
            for library in LIBRARIES:
                count_system_calls(stage, library)
        connections = [("connections", many, ["connections", *SERVER, many]) for many in sizes]
        for kind, size, words in operations + connections:
            print_progress(f"{kind}, {size}")
            # The order alternates, so that neither library always runs first.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                with server(stage, library, kind):
                    measure(stage, library, library, kind, size, "scale", *words)


if __name__ == "__main__":
    main()
