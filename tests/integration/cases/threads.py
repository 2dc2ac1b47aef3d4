# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Threads that share a peer, also under valgrind."""

import os

from harness import lab
from harness.case import (PORT, case, connect, disconnect, listen, share_region)
from harness.side import ALL_USAGES, expect

THREADS = 4
REGION = 32768
ECHO_AT, MESSAGE = 8192, 1024  # offset where the echo receives its first message
HERE = os.path.dirname(os.path.abspath(__file__))


def mixed_load(test, seconds, threads=THREADS, wrapper=()):
    """
    Each thread has a connection; every operation's data is read back or echoed. On a device where
    messages and reads disturb each other they have separate connections. A device that repeats
    native operations wrongly gets none, because a busy machine loses packets.
    """
    repeats = not (lab.lacks(lab.REPEATED_NATIVE) and test.is_native)
    environment = {} if repeats else {"RPMA_FLUSH": "emulated"}
    server, client = test.peers(wrapper=wrapper, environment=environment)
    listen(server)
    for number in range(threads):
        share_region(server, client, REGION, number=number)
        connect(server, client, number=number)
        server("recv", conn=number, mr=number, off=ECHO_AT, len=MESSAGE)
    server.begin("echo", threads=threads)
    apart = lab.lacks(lab.SMALL_READS)
    answer = client("load", threads=threads, seconds=seconds,
                    imm=int(not lab.lacks(lab.IMMEDIATE_DATA)), apart=int(apart),
                    atomic=int(repeats))
    echoed = server.end()
    for number in range(threads):
        rounds = int(answer[f"rounds{number}"])
        expect(rounds > 0, True, f"thread {number} works")
        has_messages = not apart or number % 2 == 1
        expect(int(echoed[f"rounds{number}"]) > 0, has_messages, f"echo {number} works")
    test.transcript.append(f"rounds: {answer}, echoed: {echoed}")
    for number in range(threads):
        disconnect(client, server, number)


@case("threads", "{threads} threads, a connection each, mixed operations for {seconds} s",
      [{"threads": THREADS, "seconds": 4}], limit=180)
def load(test, threads, seconds):
    mixed_load(test, seconds, threads)


def churn(test, threads, count, wrapper=()):
    server, client = test.peers(wrapper=wrapper)
    for number in range(threads):
        client("memory", mr=number, size=4096)
        client("fill", mr=number, len=8, seed=number)
        client("reg", mr=number, usage=ALL_USAGES)
    server("memory", size=4096)
    server("reg", usage=ALL_USAGES)
    listen(server)
    server.begin("host", count=threads * count)
    client("churn", threads=threads, count=count, addr=server.address, port=PORT)
    expect(server.end()["welcomed"], str(threads * count), "connections at the server")
    for number in range(threads):
        server("check", off=8 * number, len=8, seed=number)


@case("threads", "{threads} threads make and delete {count} connections each",
      [{"threads": THREADS, "count": 25}], limit=180, builds=("native",))
def come_and_go(test, threads, count):
    churn(test, threads, count)


def valgrind(tool, *options):
    return ("valgrind", "-q", f"--tool={tool}", "--error-exitcode=99", "--fair-sched=try",
            f"--suppressions={HERE}/../valgrind.supp", *options)


# librdmacm keeps its device data until the process ends, which memcheck reports as possible leaks.
MEMCHECK = valgrind("memcheck", "--leak-check=full", "--errors-for-leak-kinds=definite",
                    "--show-leak-kinds=definite")
HELGRIND = valgrind("helgrind")


@case("valgrind", "memcheck: mixed operations", limit=300, builds=("native",))
def memcheck_load(test):
    mixed_load(test, 1, 2, MEMCHECK)


@case("valgrind", "helgrind: connections made and deleted", limit=300, builds=("native",))
def helgrind_churn(test):
    churn(test, 2, 3, HELGRIND)
