# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Threads that share a peer."""

from harness import lab
from harness.case import PORT, case
from harness.side import expect

from .crowd import leave, make_client, make_server, pause

THREADS, TIMES, SECONDS = 4, 10, 3


@case("threads", f"{THREADS} threads make and delete {TIMES} connections each, then do mixed operations for "
      f"{SECONDS} s", limit=300)
def mixed_load(test):
    """
    Every operation's data is read back or echoed. On a device where messages and reads interfere
    they use separate connections. A device that repeats native operations incorrectly executes
    none, because a busy machine loses packets.
    """
    repeats = not (lab.lacks(lab.REPEATED_NATIVE) and test.is_native)
    environment = {} if repeats else {"RPMA_FLUSH": "emulated"}
    server, client = test.peers(environment=environment)
    make_server(server, THREADS * (TIMES + 1))
    make_client(client, THREADS)
    for more in range(TIMES, -1, -1):
        server.begin("serve")
        client("crowd", count=THREADS, addr=server.address, port=PORT, threads=1)
        if more:
            client("crowd-end", threads=1)
            pause(server)
    answer = client("crowd-in-threads", ms=SECONDS * 1000, apart=int(lab.lacks(lab.SMALL_READS)), atomic=int(repeats),
                    imm=int(not lab.lacks(lab.IMMEDIATE_DATA)))
    for number in range(THREADS):
        expect(int(answer[f"rounds{number}"]) > 0, True, f"thread {number} works")
    expect(int(pause(server)["echoed"]) > 0, True, "the server echoes")
    server.begin("serve")
    leave(server, [client])
