# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Threads that share a peer, also under memcheck."""

from harness import lab
from harness.case import PORT, case
from harness.side import expect

from .crowd import leave, make_client, make_server, pause

# librdmacm keeps its device data until the process ends, which memcheck reports as possible leaks.
MEMCHECK = ("valgrind", "-q", "--error-exitcode=99", "--fair-sched=try", "--leak-check=full",
            "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite")


@case("threads", "{threads} threads make and delete {times} connections each, then do mixed operations for {seconds} s"
      "{how}", limit=300, table=[
          {"threads": 4, "times": 10, "seconds": 3, "how": "", "wrapper": ()},
          {"threads": 2, "times": 1, "seconds": 1, "how": ", under memcheck", "wrapper": MEMCHECK,
           "builds": ("native",)}])
def mixed_load(test, threads, times, seconds, how, wrapper):
    """
    Every operation's data is read back or echoed. On a device where messages and reads disturb each other they have
    separate connections. A device that repeats native operations wrongly gets none: a busy machine loses packets.
    """
    repeats = not (lab.lacks(lab.REPEATED_NATIVE) and test.is_native)
    environment = {} if repeats else {"RPMA_FLUSH": "emulated"}
    server, client = (test.side(number, name, wrapper=wrapper, environment=environment)
                      for number, name in ((1, "server"), (2, "client")))
    make_server(server, threads * (times + 1))
    make_client(client, threads)
    for more in range(times, -1, -1):
        server.begin("serve")
        client("crowd", count=threads, addr=server.address, port=PORT, threads=1)
        if more:
            client("crowd-end", threads=1)
            pause(server)
    answer = client("crowd-in-threads", ms=seconds * 1000, apart=int(lab.lacks(lab.SMALL_READS)), atomic=int(repeats),
                    imm=int(not lab.lacks(lab.IMMEDIATE_DATA)))
    for number in range(threads):
        expect(int(answer[f"rounds{number}"]) > 0, True, f"thread {number} works")
    expect(int(pause(server)["echoed"]) > 0, True, "the server echoes")
    server.begin("serve")
    leave(server, [client])
