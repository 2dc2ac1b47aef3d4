#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs in the lab: all measurements of scale/, for each library in turn, round by round.

usage: guest.py STAGE ROUNDS MOST     STAGE has the programs scale and lists and a directory for each
                                      library, MOST is how many connections there are at most

Prints lines of library, kind, size, figure and value, separated by tabs; for lists the way of posting
stands in place of the library, and for queues whether all connections share one.
"""

import itertools
import os
import pathlib
import resource
import subprocess
import sys

LIBRARIES = ["librpma", "predecessor"]
CONNECTIONS = [1, 16, 64, 256, 1000]
MANY_CONNECTIONS = [10000]
MANY_EVERY = 5  # rounds: they take minutes; odd, so that the order changes for them too
DESCRIPTORS = 1 << 16  # a connection has two on each side
DEPTHS = [1, 8, 64]
TIMES = {1: 400, 8: 1500, 64: 3000}
KINDS = ["write-flush", "send"]
RECEIVES = 512
WAYS = ["plain", "built", "prepared", "hand-built", "hand-prepared"]
LIST_KINDS = ["write", "write-flush"]
LENGTHS = [1, 4, 16, 64]
LIST_TIMES = 101
QUEUES = ["one", "each"]
LAPS = 5
PORT = 7204


class Side:
    """The program on one host, with one library."""

    def __init__(self, stage, library, host, program="scale"):
        self.command = ["on", host, "env", f"LD_LIBRARY_PATH={stage / library}",
                        stage / program]

    def start(self, *arguments):
        process = subprocess.Popen([*self.command, *map(str, arguments)],
                                   stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != "listening\n":
            sys.exit(f"guest: the server did not start: {arguments}")
        return process

    def figures(self, *arguments):
        done = subprocess.run([*self.command, *map(str, arguments)], check=False,
                              stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"guest: {' '.join(map(str, arguments))} ended with {done.returncode}")
        return [line.split("\t") for line in done.stdout.splitlines()]


def measure(stage, library, receives, kind, size, *arguments):
    """One run of both sides; prints its figures."""
    address = os.environ["LAB_ADDR_host2"]
    server = Side(stage, library, "host2").start("server", address, PORT, receives)
    client = Side(stage, library, "host1")
    for figure, value in client.figures(arguments[0], address, PORT, *arguments[1:]):
        print(library, kind, size, figure, value, sep="\t", flush=True)
    server.kill()
    server.wait()


def measure_lists(stage):
    """The ways to post a list, one after the other."""
    address = os.environ["LAB_ADDR_host2"]
    server = Side(stage, "librpma", "host2").start("server", address, PORT, 0)
    client = Side(stage, "librpma", "host1", "lists")
    for kind, length, way in itertools.product(LIST_KINDS, LENGTHS, WAYS):
        for figure, value in client.figures(address, PORT, way, kind, length, LIST_TIMES):
            print(way, f"list {kind}", length, figure, value, sep="\t", flush=True)
    server.kill()
    server.wait()


def measure_queues(stage, sizes):
    """One completion queue for all connections, or one for each."""
    address = os.environ["LAB_ADDR_host2"]
    client = Side(stage, "librpma", "host1", "queues")
    for size, queues in itertools.product(sizes, QUEUES):
        server = Side(stage, "librpma", "host2").start("server", address, PORT, 0)
        for figure, value in client.figures(address, PORT, queues, size, LAPS):
            print(queues, "queues", size, figure, value, sep="\t", flush=True)
        server.kill()
        server.wait()


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
            # One after the other, and who comes first changes: both see the same machine.
            for library in LIBRARIES if number % 2 == 0 else reversed(LIBRARIES):
                measure(stage, library, receives, kind, size, *arguments)


if __name__ == "__main__":
    main()
