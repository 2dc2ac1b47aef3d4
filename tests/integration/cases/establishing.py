# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Establishing: rejections, a backlog, a client that aborts, private data, a type of service."""

import subprocess

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen, request
from harness.side import expect, wait_until


def flood(test, server, count):
    """Starts a client that sends this number of requests without queue pairs and completes none."""
    client = test.side(2, "flood")
    client.begin("flood", addr=server.address, port=PORT, count=count)
    return client


def received(kind):
    """The number of requests, or rejections, that have arrived at the device of host 1."""
    path = f"/sys/class/infiniband/rxe1/ports/1/cm_rx_msgs/{kind}"
    with open(path, encoding="ascii") as file:
        return int(file.read())


@case("establish", "a backlog of {backlog} holds {backlog} of {count} requests; the others are "
      "repeated", [{"backlog": 3, "count": 8}], needs=(lab.BARE_REQUESTS,))
def backlog_is_kept(test, backlog, count):
    lab.need_virtual("a network without other requests")
    server = test.side(1, "server")
    server("listen", addr=server.address, port=PORT, backlog=backlog)
    before = received("req")
    requests = flood(test, server, count)
    requests.end()
    wait_until(lambda: received("req") >= before + count, f"{count} requests have arrived")
    server("nonblock", fd="ep")
    code, answer = server.execute("next-incoming", count=count, timeout=0)
    taken = int(answer["taken"])
    # On a busy machine a repeated request replaces one that was just read.
    expect((code, backlog <= taken < count), ("RPMA_E_NO_EVENT", True), f"{taken} requests that waited")
    server("next-incoming", req=taken, count=count - taken)
    requests.kill()
    server.code("req-delete", count=count)  # the client has ended: nothing to reject


@case("establish", "a client aborts before the server accepts: the queue pair cannot be created",
      needs=(lab.BARE_REQUESTS,))
def client_aborts(test):
    lab.need_virtual("a network without other requests")
    server, client = test.peers()
    listen(server)
    before = received("rej")
    request(server, client)
    server("next-incoming")
    client("conn-delete")
    wait_until(lambda: received("rej") > before, "the server's device has received the rejection")
    server("req-resolve")
    server.refuses("RPMA_E_PROVIDER", "req-setup")
    server.refuses("RPMA_E_PROVIDER", "req-delete")  # the client has ended: nothing to reject


@case("establish", "private data of the largest size, and the reason of a rejection")
def largest_private_data(test):
    """
    The limit depends on the transport: 56 and 196 bytes on InfiniBand and RoCE. siw accepts all
    that librpma can pass, but adds its own 4 bytes to the same 8-bit length.
    """
    request_bytes, reply_bytes = (56, 196) if lab.PROVIDER != "siw" else (251, 251)
    server, client = test.peers()
    listen(server)
    connect(server, client, server_data="ef" * reply_bytes, client_data="cd" * request_bytes)
    expect(server("pdata")["pdata"], "cd" * request_bytes, "data of the request")
    expect(client("pdata")["pdata"], "ef" * reply_bytes, "data of the answer")
    disconnect(client, server)
    request(server, client, 1)
    server("next-incoming", req=1)
    server("req-reject", req=1, pdata=b"no-room".hex())
    client.event("REJECTED", conn=1)
    expect(bytes.fromhex(client("pdata", conn=1)["pdata"])[:7], b"no-room", "private data of the rejection")


# ---- type of service -----------------------------------------------------------------------

# Prints the packets of a connection, RoCE to the queue pairs of programs or TCP: each line has the
# direction of a packet and its type of service.
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


@case("establish", "type of service: the client's value is used in both directions; "
      "soft-iWARP has none")
def type_of_service(test):
    """0x68 is the byte of DSCP 26 (AF31)."""
    lab.need_virtual("a host whose packets can be watched")
    tos = 0x68
    server, client = connected(test, server={"tos": tos ^ 0xff}, client={"tos": tos})
    packets = listener(test, 1)
    seen = set()
    client("read", mr=0, rmr=0, len=8)
    client.completion()
    while len({direction for direction, _ in seen}) < 2:
        direction, value = packets.readline().split()
        seen.add((direction, int(value)))
    value = 0 if lab.PROVIDER == "siw" else tos
    expect(seen, {("in", value), ("out", value)}, "packets")
    disconnect(client, server)
