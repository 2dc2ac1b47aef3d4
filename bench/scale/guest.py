#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs in the lab: all measurements of scale/, for each library in turn, round by round.

usage: guest.py STAGE ROUNDS MOST     STAGE has the programs scale, lists and queues and a directory
                                      for each library; MOST is the greatest number of connections

Prints lines of library, kind, size, figure and value, separated by tabs. For lists, the first
column is the way of posting instead of the library; for queues, whether all connections share one.
"""

import contextlib
import itertools
import os
import pathlib
import resource
import subprocess
import sys

LIBRARIES = ["librpma", "predecessor"]
CONNECTIONS = [1, 16, 64, 256, 1000]
MANY_CONNECTIONS = [10000]
MANY_EVERY = 5  # rounds: many connections take minutes; odd, so that their order alternates
DESCRIPTORS = 1 << 16  # a connection has two on each side
DEPTHS = [1, 8, 64]
TIMES = {1: 400, 8: 1500, 64: 3000}
KINDS = ["write-flush", "send"]
RECEIVES = 512
WAYS = ["plain", "array", "built", "prepared", "hand-built", "hand-prepared"]
LIST_KINDS = ["write", "write-flush"]
LENGTHS = [1, 4, 16, 64]
LIST_TIMES = 101
QUEUES = ["one", "each"]
LAPS = 5
PORT = 7204


def command(stage, library, host, program, *arguments):
    """A program on one host, with one library."""
    return ["on", host, "env", f"LD_LIBRARY_PATH={stage / library}", stage / program,
            *map(str, arguments)]


@contextlib.contextmanager
def server(stage, library, receives):
    """Serves on host2 until the block ends."""
    arguments = ("server", os.environ["LAB_ADDR_host2"], PORT, receives)
    process = subprocess.Popen(command(stage, library, "host2", "scale", *arguments),
                               stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout.readline() != "listening\n":
            sys.exit(f"guest: the server did not start: {arguments}")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def figures(stage, library, program, *arguments):
    """Runs a client on host1 and returns its output: pairs of figure and value."""
    done = subprocess.run(command(stage, library, "host1", program, *arguments), check=False,
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"guest: {program} {' '.join(map(str, arguments))} ended with {done.returncode}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def report(name, kind, size, pairs):
    for figure, value in pairs:
        print(name, kind, size, figure, value, sep="\t", flush=True)


def measure(stage, library, receives, kind, size, *arguments):
    """Runs both sides with one library."""
    with server(stage, library, receives):
        report(library, kind, size, figures(stage, library, "scale", arguments[0],
                                            os.environ["LAB_ADDR_host2"], PORT, *arguments[1:]))


def measure_lists(stage):
    """Measures the ways to post a list, one after the other."""
    address = os.environ["LAB_ADDR_host2"]
    with server(stage, "librpma", 0):
        for kind, length, way in itertools.product(LIST_KINDS, LENGTHS, WAYS):
            report(way, "lists", length,
                   figures(stage, "librpma", "lists", address, PORT, way, kind, length, LIST_TIMES))


def measure_queues(stage, sizes):
    """Measures one completion queue for all connections, and one for each."""
    address = os.environ["LAB_ADDR_host2"]
    for size, queues in itertools.product(sizes, QUEUES):
        with server(stage, "librpma", 0):
            report(queues, "queues", size,
                   figures(stage, "librpma", "queues", address, PORT, queues, size, LAPS))


def main():
    stage, rounds, most = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    connections, many_connections = (
        [("connections", many, 0, ("connections", many)) for many in sizes if many <= most]
        for sizes in (CONNECTIONS, MANY_CONNECTIONS))
    operations = [(kind, depth, RECEIVES if kind == "send" else 0,
                   ("operations", kind, depth, TIMES[depth]))
                  for kind in KINDS for depth in DEPTHS]
    for number in range(rounds):
        print(f"guest: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        measure_lists(stage)
        sizes = CONNECTIONS + (MANY_CONNECTIONS if number % MANY_EVERY == 0 else [])
        measure_queues(stage, [many for many in sizes if many <= most])
        runs = operations + connections
        if number % MANY_EVERY == 0:
            runs += many_connections
        for kind, size, receives, arguments in runs:
            # The order alternates, so that no library always runs first.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                measure(stage, library, receives, kind, size, *arguments)


if __name__ == "__main__":
    main()
