# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Threads that share a peer, also under valgrind."""

import os

from harness import lab
from harness.case import PORT, case, listen
from harness.side import ALL_USAGES, expect

from .crowd import leave, make_client, make_server, pause

THREADS = 4
HERE = os.path.dirname(os.path.abspath(__file__))


def mixed_load(test, seconds, threads=THREADS, wrapper=()):
    """
    Each thread of the client has a connection; every operation's data is read back or echoed. On a
    device where messages and reads disturb each other they have separate connections. A device that
    repeats native operations wrongly gets none, because a busy machine loses packets.
    """
    repeats = not (lab.lacks(lab.REPEATED_NATIVE) and test.is_native)
    environment = {} if repeats else {"RPMA_FLUSH": "emulated"}
    server, client = (test.side(number, name, wrapper=wrapper, environment=environment)
                      for number, name in ((1, "server"), (2, "client")))
    make_server(server, threads)
    make_client(client, threads)
    server.begin("serve")
    client("crowd", count=threads, addr=server.address, port=PORT)
    apart = lab.lacks(lab.SMALL_READS)
    answer = client("crowd-in-threads", ms=seconds * 1000, apart=int(apart), atomic=int(repeats),
                    imm=int(not lab.lacks(lab.IMMEDIATE_DATA)))
    for number in range(threads):
        expect(int(answer[f"rounds{number}"]) > 0, True, f"thread {number} works")
    expect(int(pause(server)["echoed"]) > 0, True, "the server echoes")
    server.begin("serve")
    leave(server, [client])


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
      [{"threads": THREADS, "count": 25}], limit=180)
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
