# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Many connections, much private data."""

from harness import lab
from harness.case import PORT, case, disconnect, listen, share_region
from harness.side import expect

CONNECTIONS = 40
ENDPOINT, COMPLETION = 1000, 100  # tags of descriptors in the server's epoll
BLOCK = 256


@case("scale", f"{CONNECTIONS} connections at once, the server with epoll", limit=180)
def many(test):
    server, client = test.peers()
    share_region(server, client, CONNECTIONS * BLOCK)
    everyone = list(range(CONNECTIONS))
    listen(server)
    server("nonblock", fd="ep")
    server("epoll-add", fd="ep", tag=ENDPOINT)
    for number in everyone:
        client("req-new", req=number, addr=server.address, port=PORT)
        client("connect", req=number, conn=number, pdata=f"{number:02x}")
    reactor = Reactor(server)
    expect(reactor.gather("accepted"), everyone, "accepted by the server")
    for number in everyone:  # the server gets its event once the client has taken its own
        client.event("ESTABLISHED", conn=number)
    expect(reactor.gather("established"), everyone, "established at the server")
    for number in everyone:
        client("fill", off=number * BLOCK, len=BLOCK, seed=number)
        client("send", conn=number, mr=0, off=number * BLOCK, len=BLOCK, ctx=number)
    expect(reactor.gather("messages"), everyone, "messages at the server")
    for number in everyone:
        client.completion(opcode="SEND", conn=number)
        client("disconnect", conn=number)
    expect(reactor.gather("closed"), everyone, "closed at the server")
    for number in everyone:
        client.event("CLOSED", conn=number)


class Reactor:
    """A server that does what its descriptors ask for, until all connections have got as far."""

    def __init__(self, server):
        self.server = server
        self.seen = {"accepted": [], "established": [], "messages": [], "closed": []}

    def gather(self, kind):
        while len(self.seen[kind]) < CONNECTIONS:
            answer = self.server("epoll-wait")
            for i in range(int(answer["n"])):
                self.handle(int(answer[f"tag{i}"]))
        return sorted(self.seen[kind])

    def handle(self, tag):
        if tag == ENDPOINT:
            self.accept()
        elif tag >= COMPLETION:
            self.take_message(tag - COMPLETION)
        else:
            self.take_event(tag)

    def accept(self):
        """Requests come in any order; each one names its client."""
        server = self.server
        number = int(server("next-req", timeout=0)["pdata"][:2], 16)
        server("req-recv", mr=0, off=number * BLOCK, len=BLOCK, ctx=number)
        server("connect", conn=number)
        server("nonblock", fd="event", conn=number)
        server("nonblock", fd="cq", conn=number)
        server("epoll-add", fd="event", conn=number, tag=number)
        server("epoll-add", fd="cq", conn=number, tag=COMPLETION + number)
        self.seen["accepted"].append(number)

    def take_message(self, number):
        if number in self.seen["closed"]:
            return  # a closed connection's queue has no more messages
        code = self.server.code("cq-wait", conn=number)
        if code == "RPMA_E_NO_COMPLETION":
            return
        expect(code, "ok", "cq-wait")
        found = self.server.completion(opcode="RECV", conn=number)
        expect((found.ctx, found.len), (number, BLOCK), "receive")
        self.server("check", off=number * BLOCK, len=BLOCK, seed=number)
        self.seen["messages"].append(number)

    def take_event(self, number):
        event = self.server("event", conn=number, timeout=0)["event"]
        if event == "ESTABLISHED":
            self.seen["established"].append(number)
            return
        expect(event, "CLOSED", "event")
        if number not in self.seen["closed"]:  # comes again when the last packets have aged
            self.server("disconnect", conn=number)
            self.seen["closed"].append(number)


@case("scale", "private data of the largest size, and one byte more",
      shows=("connect", "accept"))
def largest_private_data(test):
    """
    The limit depends on the transport: 56 and 196 bytes on InfiniBand and RoCE. siw takes all that
    librpma can pass, but counts 4 bytes of its own in the same 8 bits.
    """
    limited = lab.PROVIDER != "siw"
    request, answer = (56, 196) if limited else (251, 251)
    server, client = test.peers()
    listen(server)
    if limited:
        client("req-new", addr=server.address, port=PORT)
        client.refuses("RPMA_E_PROVIDER", "connect", pdata="ab" * (request + 1))
    client("req-new", addr=server.address, port=PORT)
    client("connect", pdata="cd" * request)
    expect(server("next-req")["pdata"], "cd" * request, "data of the request")
    server("connect", pdata="ef" * answer)
    client.event("ESTABLISHED")
    server.event("ESTABLISHED")
    expect(client("pdata")["pdata"], "ef" * answer, "data of the answer")
    disconnect(client, server)
    if not limited:
        return
    client("req-new", req=1, addr=server.address, port=PORT)
    client("connect", req=1, conn=1)
    server("next-req", req=1)
    server.refuses("RPMA_E_PROVIDER", "connect", req=1, conn=1, pdata="12" * 197)
    client.event("REJECTED", conn=1)
