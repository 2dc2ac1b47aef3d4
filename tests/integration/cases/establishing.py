# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Establishing a connection within a time limit of the program, and with a type of service."""

import subprocess
import time

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.network import cables, cut, mend
from harness.side import expect

from .faults_peer import works_with_new_client

LIMIT = 1000  # milliseconds; a value that a program may choose
# Seconds until a side gives up: soft-RoCE needs hundredths, soft-iWARP up to ten (rpma_devices(7)).
GIVING_UP = 30


def ask(server, client):
    """Leaves a request waiting at the server. Returns the descriptors that both had open before."""
    before = server.descriptors(), client.descriptors()
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    return before


def gives_up(side, *hears):
    """
    The pattern of rpma_conn_next_event(3): wait with poll(2) until the limit, then delete. hears
    lists the events that may come instead of none.
    """
    began = time.monotonic()
    side.begin("event", timeout=LIMIT)
    code, answer = side.take()
    if code != "ERR_TIMEOUT":
        expect(code, "ok", f"{side.name}: event")
        expect(answer["event"] in hears, True, f"{side.name}: {answer['event']}, not in {hears}")
    side("conn-delete")
    spent = time.monotonic() - began
    expect(spent < LIMIT / 1000 + GIVING_UP, True, f"{side.name}: gave up after {spent:.1f} s")
    return code


@case("establish", "a request that nobody takes: the client gives up in time; the server that "
      "comes late loses nothing")
def never_taken(test):
    server, client = test.peers()
    listen(server)
    before = server.descriptors()
    _, clients = ask(server, client)
    expect(gives_up(client), "ERR_TIMEOUT", "what the client heard")
    test.wait_until_equal(client.descriptors, clients, "the client's descriptors")
    # The news of the client's end may or may not have come by now.
    if server.code("next-req") == "ok" and server.code("connect") == "ok":
        gives_up(server, "REJECTED", "LOST", "UNREACHABLE", "CLOSED", "ESTABLISHED")
    test.wait_until_equal(server.descriptors, before, "the server's descriptors")
    works_with_new_client(test, server)


@case("establish", "a request that is taken and never accepted: the client gives up in time")
def never_accepted(test):
    server, client = test.peers()
    listen(server)
    _, clients = ask(server, client)
    server("next-req")
    expect(gives_up(client), "ERR_TIMEOUT", "what the client heard")
    test.wait_until_equal(client.descriptors, clients, "the client's descriptors")
    server.code("req-delete")  # the client is gone, and a provider may report that
    works_with_new_client(test, server)


def hangs(client, port):
    """Its kernel receives the answer, but the process never takes the event."""


def is_killed(client, port):
    client.kill()


def is_cut_off(client, port):
    cut(port)


@case("establish", "the client {what} between request and established: the server gives up in time",
      [{"what": "hangs", "fate": hangs}, {"what": "is killed", "fate": is_killed},
       {"what": "is cut off", "fate": is_cut_off}])
def client_vanishes(test, what, fate):
    port = cables(test)[1]
    server, client = test.peers()
    listen(server)
    before, _ = ask(server, client)
    server("next-req")
    if fate is is_cut_off:
        fate(client, port)
    server("connect")
    if fate is not is_cut_off:
        fate(client, port)
    heard = gives_up(server, "ESTABLISHED", "REJECTED", "LOST", "UNREACHABLE", "CLOSED")
    test.transcript.append(f"{what}: {heard}")
    test.wait_until_equal(server.descriptors, before, "the server's descriptors")
    if client.is_alive:
        client("conn-delete")  # otherwise its kernel repeats the request when the cable is back
    mend(port)
    works_with_new_client(test, server)


# ---- type of service -----------------------------------------------------------------------

# The packets of a connection: RoCE to the queue pairs of programs, or TCP. Each line says whether
# the packet leaves this host, and its type of service.
LISTENER = f"""
import socket
def carries(packet):
    if "{lab.PROVIDER}" == "siw":
        return packet[9] == socket.IPPROTO_TCP
    to_port, to_queue_pair = (int.from_bytes(packet[at], "big")
                              for at in (slice(22, 24), slice(33, 36)))
    return packet[9] == socket.IPPROTO_UDP and to_port == 4791 and to_queue_pair > 1
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
print("listening", flush=True)
while True:
    packet, (_, _, kind, _, _) = tap.recvfrom(9216)
    if carries(packet):
        print("out" if kind == socket.PACKET_OUTGOING else "in", packet[1], flush=True)
"""


def listener(test, number):
    process = subprocess.Popen(lab.on(lab.host(number), "python3", "-c", LISTENER),
                               stdout=subprocess.PIPE, text=True)
    test.undo.callback(process.stdout.close)
    test.undo.callback(process.wait)
    test.undo.callback(process.kill)
    expect(process.stdout.readline(), "listening\n", "the listener")
    return process.stdout


@case("establish", "type of service: the client's holds for the packets of both directions; "
      "soft-iWARP has none")
def type_of_service(test):
    """0x68 is the byte of DSCP 26 (AF31)."""
    lab.need_virtual("a host whose packets can be watched")
    tos = 0x68
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    server("cfg", tos=tos ^ 0xff)
    client("cfg", tos=tos)
    connect(server, client, server_cfg=0, client_cfg=0)
    heard = listener(test, 1)
    seen = set()
    client("read", mr=0, rmr=0, len=8)
    client.completion()
    while len({direction for direction, _ in seen}) < 2:
        direction, value = heard.readline().split()
        seen.add((direction, int(value)))
    value = 0 if lab.PROVIDER == "siw" else tos
    expect(seen, {("in", value), ("out", value)}, "packets")
    disconnect(client, server)
