# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The other side dies, refuses, or is not there: what the survivor sees, and how soon."""

import errno
import time

from harness import lab
from harness.case import (PORT, case, connect, connected, disconnect, listen, share_region)
from harness.side import Failed, expect

BLOCK = 4096
# A connection has 7 retries. Hardware gives up after them, some seconds later; soft-RoCE repeats
# without end at 7, so there only the event reports the end. A busy machine takes longer.
RETRIES_END = 120
# The errno of an accept when the client is gone.
GONE = {"siw": errno.ECONNRESET}.get(lab.PROVIDER, errno.EINVAL)


def works_with_new_server(test, client):
    """The surviving client can work with another server."""
    server = test.side(1, "new server")
    server("peer")
    share_region(server, client, number=9)
    listen(server)
    connect(server, client, number=9)
    write_and_check(server, client, 9)
    disconnect(client, server, 9)


def works_with_new_client(test, server):
    client = test.side(2, "new client")
    client("peer")
    share_region(server, client, number=9)
    connect(server, client, number=9)
    write_and_check(server, client, 9)
    disconnect(client, server, 9)


def write_and_check(server, client, number):
    client("fill", mr=number, len=BLOCK, seed=number)
    client("write", conn=number, mr=number, rmr=number, len=BLOCK)
    client.completion(opcode="WRITE", conn=number)
    server("check", mr=number, len=BLOCK, seed=number)


def begin_writes(client, length, count):
    """
    Begins the load. Where a completion may be missing after the end, the event ends it as well.
    """
    last = int(lab.lacks(lab.LATE_COMPLETIONS))
    client.begin("write-blocks", mr=0, rmr=0, len=length, count=count, window=8, last=last)


def ends_broken(side, within=RETRIES_END):
    """The load ends in time with a failed completion, or with CLOSED."""
    code, answer = side.take(timeout=within)
    if code == "ERR_CLOSED" and lab.lacks(lab.LATE_COMPLETIONS):
        expect(answer["event"], "CLOSED", "event")
        return answer
    expect(code, "RPMA_E_PROVIDER", f"{side.name}: end of the load")
    expect(int(answer["status"]) != 0, True, "a completion says what failed")
    return answer


def wait_for_bytes(server, offset):
    """Waits until the load has written this place."""
    while server("bytes", off=offset, len=8)["bytes"] == "00" * 8:
        pass


def writing(test, size=4 << 20):
    """A client in the middle of a load of 16-byte writes over size bytes of a server."""
    server, client = test.peers()
    share_region(server, client, size)
    listen(server)
    connect(server, client)
    client("fill", len=size, seed=1)
    begin_writes(client, 16, size // 16)
    wait_for_bytes(server, 16 * 500)
    return server, client


@case("faults", "{who} killed {when}: the other side sees CLOSED",
      [{"who": who, "when": when} for who in ("server", "client") for when in ("while idle", "during writes")])
def killed(test, who, when):
    """A client's load ends with a failed completion as well, and a write after the end says WR_FLUSH_ERR."""
    is_idle = when == "while idle"
    server, client = connected(test) if is_idle else writing(test)
    if who == "client":
        client.kill()
        server.event("CLOSED")
        works_with_new_client(test, server)
        return
    server.kill()
    if is_idle or "event" not in ends_broken(client):  # the completion may come first
        client.event("CLOSED")
    if is_idle and not lab.lacks(lab.LATE_COMPLETIONS):
        client("disconnect")
        client("write", mr=0, rmr=0, len=16, ctx=1)
        expect(client.completion("WR_FLUSH_ERR").ctx, 1, "op_context")
    works_with_new_server(test, client)


@case("faults", "server killed before it accepts: client sees REJECTED")
def server_killed_connecting(test):
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req")
    server.kill()
    client.event("REJECTED")
    client("conn-delete")
    works_with_new_server(test, client)


@case("faults", "client vanishes between request and accept: the accept fails, the next works")
def client_vanishes(test):
    """The next client's request comes after the news that the first client is gone."""
    server, client = test.peers()
    other = test.side(2, "new client")
    other("peer")
    share_region(server, other, number=9)
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req")
    client.kill()
    other("req-new", req=9, addr=server.address, port=PORT)
    other("connect", req=9, conn=9)
    server("next-req", req=9)
    server.begin("connect")
    code, answer = server.take()
    expect((code, answer.get("errno")), ("RPMA_E_PROVIDER", str(GONE)), "accept")
    server("connect", req=9, conn=9)
    other.event("ESTABLISHED", conn=9)
    server.event("ESTABLISHED", conn=9)
    write_and_check(server, other, 9)
    disconnect(other, server, 9)


@case("faults", "server that rejects: client sees REJECTED",
      shows=("rejected: program",))
def rejected(test):
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-req")
    server("req-delete")
    client.event("REJECTED")


@case("faults", "nobody listens: client sees REJECTED",
      shows=("rejected: nobody listens",))
def nobody_listens(test):
    server, client = test.peers()
    client("req-new", addr=server.address, port="7999")
    if lab.lacks(lab.CONNECT_IN_BACKGROUND):
        client.refuses("RPMA_E_PROVIDER", "connect")
        return
    client("connect")
    client.event("REJECTED")


@case("faults", "no such host: the request fails within the timeout",
      shows=("request: no route",))
def no_such_host(test):
    client = test.side(2, "client")
    client("peer")
    client("cfg", timeout=500)
    absent = client.address.rsplit(".", 1)[0] + ".250"
    client.begin("req-new", addr=absent, port=PORT, cfg=0)
    expect(client.take()[0], "RPMA_E_PROVIDER", "request")


def retry(action, seconds=10):
    """A device needs a moment to know a new address."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except Failed:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


@case("faults", "nobody answers: client sees UNREACHABLE", limit=150,
      shows=("unreachable",))
def unreachable(test):
    """
    A host of its own, whose cable is pulled between the request and the connect. The server has
    another address for it: the kernel keeps the connections of all namespaces in one table, by
    address and interface number, so a lost neighbour also ends connections in other namespaces.
    """
    lab.need_virtual("a cable that can be pulled")
    lab.need(lab.HOSTS[2:], "third host")
    client = test.side(3, "client")
    client("peer")
    server = test.side(1, "server")
    server("peer")
    address = client.address + "1"
    lab.run("ip", "-n", lab.host(1), "addr", "add", address + "/24", "dev", "veth0")
    retry(lambda: server("listen", addr=address, port=PORT))
    lab.wait_for_host(3, None, address)
    client("req-new", addr=address, port=PORT)
    test.undo.callback(lab.run, "ip", "link", "set", "port3", "up")
    lab.run("ip", "link", "set", "port3", "down")
    if lab.lacks(lab.CONNECT_IN_BACKGROUND):
        client.refuses("RPMA_E_PROVIDER", "connect")
        yield
        return
    client("connect")
    server("release")
    server.begin("quit")
    server.wait_for_end()
    client.begin("event", timeout=120000)
    yield
    expect(client.end()["event"], "UNREACHABLE", "event")


@case("faults", "endpoint shut down with requests pending: the taken one lives, the other is "
      "REJECTED")
def endpoint_shut_down(test):
    server, client = test.peers()
    share_region(server, client, number=9)
    listen(server)
    for number in (9, 1):
        client("req-new", req=number, addr=server.address, port=PORT)
        client("connect", req=number, conn=number)
    server("next-req", req=9)
    server("ep-shutdown")
    client.event("REJECTED", conn=1)
    server("connect", req=9, conn=9)
    client.event("ESTABLISHED", conn=9)
    server.event("ESTABLISHED", conn=9)
    write_and_check(server, client, 9)
    disconnect(client, server, 9)


@case("faults", "{count} clients that are refused leave nothing behind", [{"count": 200}],
      limit=240)
def refused_clients(test, count):
    """Objects are counted while the server lives and still listens."""
    server, client = test.peers()
    listen(server)
    before = server.descriptors(), len(client.descriptors())
    server.begin("refuse", count=count)
    client("be-refused", count=count, addr=server.address, port=PORT)
    server.end()
    expect((server.descriptors(), len(client.descriptors())), before, "descriptors")
    works_with_new_client(test, server)
