# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Statements of the manual about real devices that no other group covers."""

import os
import re
import subprocess

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen, request
from harness.side import expect

BLOCK = 4096


@case("device", "receives complete when the own side disconnects, not when the other side does")
def receives_end(test):
    server, client = connected(test)
    for side in (server, client):
        side("recv", mr=0, len=BLOCK, ctx=9)
    client("disconnect")
    expect(client.completion("WR_FLUSH_ERR").ctx, 9, "receive")
    server.event("CLOSED")
    server.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)
    server("disconnect")
    expect(server.completion("WR_FLUSH_ERR").ctx, 9, "receive")
    client.event("CLOSED")


@case("device", "a server gets ESTABLISHED once the client has read its own event")
def handshake(test):
    """
    librpma(7), "Steps of a client": librdmacm completes the handshake when the client reads its
    event.
    """
    server, client = test.peers()
    listen(server)
    request(server, client)
    server("next-req")
    server("connect")
    client("epoll-add", fd="event", tag=1)
    client("epoll-wait")  # the server's reply has arrived
    server.refuses("ERR_TIMEOUT", "event", timeout=500)
    client.event("ESTABLISHED")
    server.event("ESTABLISHED")
    disconnect(client, server)


# (settings of a connection, number of its descriptors).
DESCRIPTORS = (({}, 2), ({"rcq": 10}, 3), ({"rcq": 10, "shared": 1}, 2), ({"shared_cq": 0}, 1))


@case("manual", "descriptors of connections, of an endpoint, of a CQ for many connections, of a shared receive queue",
      fabric=True)
def descriptors(test):
    """rpma_limits(7)"""
    server, client = test.peers()

    def grows(side, count, *make):
        before = len(side.descriptors())
        for one in make:
            one()
        expect(len(side.descriptors()) - before, count, f"descriptors of the {side.name}")

    grows(server, 1, lambda: listen(server))
    grows(server, 1, lambda: server("srq", rq=10, rcq=10))
    grows(client, 1, lambda: client("cq-new", size=100))
    for number, (values, count) in enumerate(DESCRIPTORS):
        client("cfg", cfg=number, **values)
        if number == 0:  # a side creates its permanent objects with its first connection
            connect(server, client, number=9, client_cfg=0)
        grows(client, count, lambda: connect(server, client, number=number, client_cfg=number))


# ---- programs in manual pages -------------------------------------------------------------


def programs_of(page):
    """The complete programs in a manual page."""
    with open(os.path.join(lab.CHECKOUT, "man", page), encoding="utf-8") as file:
        text = file.read()
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$", text, re.MULTILINE)
    return [block.replace("\\e", "\\") for block in blocks if re.search(r"^main\(", block, re.M)]


@case("manual", "the server and the client of rpma_tutorial(7) are compiled and work", fabric=True)
def server_and_client(test):
    directory, programs = test.directory(), programs_of("rpma_tutorial.7")
    expect(len(programs), 2, "programs in rpma_tutorial(7)")
    for name, code in zip(("server", "client"), programs):
        source = os.path.join(directory, name + ".c")
        with open(source, "w", encoding="utf-8") as file:
            file.write(code)
        # The compiler must not load the libraries of the simulated fabric.
        lab.run("env", "-u", "LD_LIBRARY_PATH", "cc", f"-I{lab.CHECKOUT}/include", source, "-o",
                os.path.join(directory, name), f"-L{lab.BUILD_DIR}/src", "-lrpma", "-libverbs")
    where = lab.address(lab.host(1)), PORT
    server = subprocess.Popen(lab.on(lab.host(1), os.path.join(directory, "server"), *where),
                              stdout=subprocess.PIPE, text=True)
    test.undo.callback(server.kill)
    command = lab.on(lab.host(2), os.path.join(directory, "client"), *where)
    client = None
    while client is None or client.returncode != 0:  # until the server listens
        expect(server.poll(), None, "the server's exit status")
        client = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    expect(client.stdout, "done\n", "output of the client")
    expect(server.communicate()[0], "Connection closed: written from afar\n", "output of the server")
