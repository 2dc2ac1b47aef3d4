# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Connecting and the first messages. data and flush have the other cases of the group, which each
change must pass.
"""

from harness.case import PORT, case, disconnect, listen
from harness.side import RECV, SEND, expect


def is_prefix(received, sent, what):
    """The transport may pad private data with zeros."""
    expect(received[:len(sent)], sent, what)
    expect(set(received[len(sent):]) <= {"0"}, True, what + ", padding")


@case("smoke", "connect, private data both ways, the client disconnects, then the server does")
def private_data(test):
    server, client = test.peers()
    listen(server)
    for number, order in enumerate(((client, server), (server, client))):
        client("req-new", req=number, addr=server.address, port=PORT)
        client("connect", req=number, conn=number, pdata="00112233")
        is_prefix(server("next-req", req=number)["pdata"], "00112233", "data of the request")
        server("connect", req=number, conn=number, pdata="8899aabbcc")
        for side in (client, server):
            side.event("ESTABLISHED", conn=number)
        is_prefix(server("pdata", conn=number)["pdata"], "00112233", "data at the server")
        is_prefix(client("pdata", conn=number)["pdata"], "8899aabbcc", "data at the client")
        disconnect(*order, number=number)
        for side in order:
            side("conn-delete", conn=number)


@case("smoke", "receives posted on the requests get the first messages, the {first} sends first",
      [{"first": "client"}, {"first": "server"}])
def early_receive(test, first):
    """The receives are SGE lists that are split at other offsets than the messages."""
    sides = server, client = test.peers()
    for side in sides:
        side("reg", size=4096, usage=RECV | SEND)
        side("cfg", sge=2)
    sgl = "0:1024:100,0:2048:412"
    listen(server)
    client("req-new", addr=server.address, port=PORT, cfg=0)
    client("req-recv", sgl=sgl, ctx=1)
    client("connect")
    server("next-req", cfg=0)
    server("req-recv", sgl=sgl, ctx=2)
    server("connect")
    client.event("ESTABLISHED")
    for sender in sides if first == "server" else sides[::-1]:
        for at, length, seed in ((0, 100, 7), (100, 412, 8)):
            sender("fill", off=at, len=length, seed=seed)
        sender("send", mr=0, len=512, flags=1)
    expect(server.completion(opcode="RECV").ctx, 2, "receive at the server")
    server.event("ESTABLISHED")
    expect(client.completion(opcode="RECV").ctx, 1, "receive at the client")
    for side in sides:
        side("check", off=1024, len=100, seed=7)
        side("check", off=2048, len=412, seed=8)
    disconnect(client, server)
