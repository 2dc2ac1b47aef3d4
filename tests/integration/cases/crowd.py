# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Many connections of few client processes to a server with one thread, which echoes messages."""

from harness import lab
from harness.case import PORT, case, listen, together
from harness.side import ALL_USAGES, LOCAL_USAGES, expect

SHARE, MESSAGES, LOCAL = 8192, 2048, 18432  # bytes: per connection of the server, per client


def make_server(server, room):
    """Registers memory for this number of connections, then listens."""
    server("reg", size=room * SHARE, usage=ALL_USAGES)
    server("reg", mr=1, size=room * MESSAGES, usage=LOCAL_USAGES)
    listen(server)


def make_client(client, members=1):
    """Members that run in threads at the same time need separate memory."""
    client("reg", size=members * LOCAL, usage=LOCAL_USAGES)


def heap(side):
    return int(side("heap")["bytes"])


def pause(server):
    """Ends "serve" and returns its reply."""
    server.begin("heap")
    answer = server.end()
    server.end()
    return answer


def serve_until_all_left(server):
    while True:
        server.begin("serve")
        if pause(server)["present"] == "0":
            return


def leave(server, everyone):
    """Ends all clients' connections and waits until the server has detected it."""
    together(everyone, "crowd-end")
    pause(server)
    serve_until_all_left(server)


EVERYONE = ("{count} connections of {clients} processes: all write, flush, read back and exchange a message; "
            "nothing leaks")


@case("large", EVERYONE, [{"count": 1000, "clients": 2}], limit=120, needs=(lab.MANY_CONNECTIONS,))
@case("scale", EVERYONE, [{"count": 100, "clients": 2}], limit=120, needs=(lab.MANY_CONNECTIONS,))
def crowd(test, count, clients):
    server = test.side(1, "server")
    make_server(server, count)
    everyone = [test.side(2, f"client {number}") for number in range(clients)]
    for client in everyone:
        make_client(client)
    for connections in (1, count // clients):  # the first connection creates the side's permanent objects
        before = lab.resources()
        heaps = {side: heap(side) for side in (server, *everyone)}
        server.begin("serve")
        together(everyone, "crowd", count=connections, addr=server.address, port=PORT)
        now = lab.resources()
        together(everyone, "crowd-exchange")
        expect(pause(server)["present"], str(connections * clients), "connections at the server")
        for number in range(connections * clients):
            server("check", off=number * SHARE, len=SHARE, seed=number)
        server.begin("serve")
        leave(server, everyone)
    for device in (server.device, everyone[0].device):
        expect(now[device]["qp"] - before[device]["qp"], count, f"{device}: queue pairs")
    # librdmacm keeps tables for its identifiers: some KiB per thousand connections.
    grown = {side.name: heap(side) - used for side, used in heaps.items()}
    expect([name for name, growth in grown.items() if growth > 32 << 10], [],
           f"heaps that grew by more than 32 KiB, of {grown}")
    test.wait_until_equal(lab.resources, before, "kernel objects", seconds=60)


@case("faults", "server killed with {count} connections: clients get CLOSED, a new server "
      "listens on the same port at once", [{"count": 20}], needs=(lab.MANY_CONNECTIONS,))
def restart(test, count):
    server, new_server = (test.side(1, name) for name in ("server", "new server"))
    client = test.side(2, "client")
    make_client(client)
    for one in (server, new_server):
        make_server(one, count)
        one.begin("serve")
        client("crowd", count=count, addr=server.address, port=PORT)
        client("crowd-exchange")
        if one is server:
            server.kill()
            for number in range(count):
                client.event("CLOSED", conn=number)
                client("conn-delete", conn=number)
            client("remote-delete")
    leave(new_server, [client])
