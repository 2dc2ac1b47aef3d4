# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Statements of the manual about real devices that no other group shows."""

import os
import re
import subprocess

from harness import lab
from harness.case import (BOTH_BUILDS, PORT, case, connect, connected, disconnect, listen,
                          share_region)
from harness.side import SEND, expect

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))


@case("manual", "a write before a message can be seen when the message is received, {rounds} rounds",
      [{"rounds": 50}])
def message_after_write(test, rounds):
    """rpma_memory_model(7): a receive says that the writes before its message have arrived."""
    server, client = connected(test)
    for number in range(rounds):
        server("recv", mr=0, off=32768, len=8, ctx=number)
        client("fill", len=16384, seed=number)
        client("write", mr=0, rmr=0, len=16384, flags=1)
        client("send", mr=0, len=8)
        expect(server.completion(opcode="RECV").ctx, number, "op_context")
        server("check", len=16384, seed=number)
        client.completion(opcode="SEND")
    disconnect(client, server)


@case("manual", "a flush of length 0 completes", builds=BOTH_BUILDS)
def empty_flush(test):
    """rpma_flush(3)"""
    server, client = connected(test)
    client("flush", rmr=0, len=0, persistent=0)
    client.completion()
    disconnect(client, server)


@case("manual", "a flush across the end of the region: emulated it succeeds, native it is denied",
      builds=BOTH_BUILDS)
def flush_across_end(test):
    """rpma_flush(3): an emulated flush looks at its offset only."""
    server, client = connected(test, size=4096)
    client("flush", rmr=0, roff=4088, len=4096, persistent=0)
    if test.is_native:
        client.completion("REM_ACCESS_ERR")
        client("conn-delete")
    else:
        client.completion(opcode="READ")
        disconnect(client, server)


@case("manual", "a timeout of 0 ms: the request fails")
def no_time(test):
    """rpma_conn_cfg_set_timeout(3)"""
    server, client = test.peers()
    listen(server)
    client("cfg", timeout=0)
    client.refuses("RPMA_E_PROVIDER", "req-new", addr=server.address, port=PORT, cfg=0)


@case("manual", "descriptors of a connection: {count} with {what}",
      [{"what": "the defaults", "values": {}, "count": 2},
       {"what": "a receive CQ", "values": {"rcq": 10}, "count": 3},
       {"what": "a receive CQ and a shared channel", "values": {"rcq": 10, "shared": 1},
        "count": 2},
       {"what": "a CQ that the program made", "values": {"lent": 0}, "count": 1}])
def descriptors(test, what, values, count):
    """rpma_limits(7)"""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("lend", size=100)
    client("cfg", **values)
    before = client.descriptors()
    connect(server, client, client_cfg=0)
    expect(len(client.descriptors()) - len(before), count, "descriptors of a connection")
    disconnect(client, server)


@case("manual", "descriptors: one of an endpoint, of a CQ for many connections, of a shared "
      "receive queue")
def other_descriptors(test):
    """rpma_limits(7)"""
    server, _ = test.peers()
    for make in (lambda: listen(server), lambda: server("lend", size=10),
                 lambda: server("srq", rq=10, rcq=10)):
        before = len(server.descriptors())
        make()
        expect(len(server.descriptors()) - before, 1, "descriptors")


# ---- who may use a region ------------------------------------------------------------------


@case("manual", "a client that has the descriptor of another client's region can use the region")
def any_client(test):
    """rpma_security(7): a region belongs to a peer, not to a connection."""
    server, client = test.peers()
    stranger = test.side(2, "stranger")
    stranger("peer")
    descriptor = share_region(server, client)
    listen(server)
    connect(server, client)
    stranger("memory", mr=0, size=4096)
    stranger("reg", mr=0, usage=SEND)
    stranger("remote", rmr=0, desc=descriptor)
    stranger("req-new", addr=server.address, port=PORT)
    stranger("connect")
    server("next-req", req=1)
    server("connect", req=1, conn=1)
    stranger.event("ESTABLISHED")
    server.event("ESTABLISHED", conn=1)
    stranger("fill", len=64, seed=5)
    stranger("write", mr=0, rmr=0, len=64)
    stranger.completion(opcode="WRITE")
    server("recv", conn=1, mr=0, off=4096, len=8)
    stranger("send", mr=0, len=8)
    server.completion(opcode="RECV", conn=1)
    server("check", len=64, seed=5)


@case("manual", "a region of another peer on the same device is denied")
def another_peer(test):
    """rpma_security(7): one peer is one domain of trust."""
    server, client = test.peers()
    other = test.side(1, "other")
    other("peer")
    share_region(server, client)
    listen(other)
    connect(other, client)
    server("set", len=64, byte=7)
    client("write", mr=0, rmr=0, len=64)
    client.completion("REM_ACCESS_ERR")
    server("check-set", len=64, byte=7)


# ---- programs that pages show --------------------------------------------------------------


def programs_of(page):
    """The complete programs that a page shows."""
    with open(os.path.join(CHECKOUT, "man", page), encoding="utf-8") as file:
        text = file.read()
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", text, re.MULTILINE)
    return [block.replace("\\e", "\\") for block in blocks if re.search(r"^main\(", block, re.M)]


@case("manual", "the server and the client of rpma_tutorial(7) are compiled and work")
def server_and_client(test):
    directory, programs = test.directory(), programs_of("rpma_tutorial.7")
    expect(len(programs), 2, "programs in rpma_tutorial(7)")
    for name, code in zip(("server", "client"), programs):
        source = os.path.join(directory, name + ".c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code)
        lab.run("cc", f"-I{CHECKOUT}/include", source, "-o", os.path.join(directory, name),
                f"-L{lab.BUILD_DIR}/src", "-lrpma", "-libverbs")
    where = lab.address(lab.host(1)), PORT
    server = subprocess.Popen(lab.on(lab.host(1), os.path.join(directory, "server"), *where),
                              stdout=subprocess.PIPE, text=True)
    test.undo.callback(server.kill)
    command = lab.on(lab.host(2), os.path.join(directory, "client"), *where)
    client = None
    while client is None or client.returncode != 0:  # the server is not listening yet
        expect(server.poll(), None, "the server's exit status")
        client = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    expect(client.stdout, "done\n", "the client's words")
    expect(server.communicate()[0], "Connection closed: written from afar\n", "the server's words")
