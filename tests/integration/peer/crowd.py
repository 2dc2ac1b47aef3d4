# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Many connections: a client whose connections check all their data, its server, and a client that floods a server."""

import contextlib
import ctypes
import os
import random
import socket
import sys
import threading

import rpma

from commands import OBJECTS, Failure, command, memory, milliseconds, objects, reply
from data import pattern
from waiting import Watched

# Each connection has a share of the server's region 0 and two message buffers in region 1.
SHARE, MESSAGE = 8192, 1024
# A member's memory in region 0: data to write, data read back, messages to send and received.
BACK, SEND_AT, RECV_AT = SHARE, 2 * SHARE, 2 * SHARE + MESSAGE
ROOM = RECV_AT + MESSAGE
WRITES, ATOMIC_WRITES, MESSAGES = KINDS = (1, 2, 4)  # kinds of steps that a member executes


def require(holds):
    if not holds:
        raise Failure("ERR_MISMATCH")


def await_completion(cq):
    """Blocks until the next completion, which must be successful."""
    while True:
        with contextlib.suppress(rpma.WouldBlock):
            wc = cq.get_wc()[0]
            if wc.status:
                print(f"peer: a completion: {wc.status}", file=sys.stderr, flush=True)
                raise Failure("RPMA_E_PROVIDER")
            return wc
        with contextlib.suppress(rpma.WouldBlock):
            cq.wait()


def await_event(conn, wanted):
    """Blocks until the next event, which must be the wanted one."""
    event = conn.next_event()
    if event != wanted:
        print(f"peer: event {event} instead of {wanted}", file=sys.stderr, flush=True)
        raise Failure("ERR_MISMATCH")


def send(conn, region, offset, length, imm):
    """Sends a message, with immediate data unless it is None."""
    if imm is None:
        conn.send(region, offset, length, rpma.F_COMPLETION_ALWAYS)
    else:
        conn.send_with_imm(region, offset, length, rpma.F_COMPLETION_ALWAYS, imm)


def imm_of(wc):
    return socket.ntohl(wc.imm_data) if wc.wc_flags & rpma.IBV_WC_WITH_IMM else None


class Member:
    """A connection that checks all its data."""

    def __init__(self, number):
        """The private data of the reply has the number at the server, then the region's descriptor. If region 0 is too small
        for all members, all use the memory of the first."""
        self.conn, self.random = objects["conn"][number], random.Random(number)
        self.room = number * ROOM if (number + 1) * ROOM <= len(memory[0]) else 0
        data = self.conn.get_private_data()
        self.seed = int.from_bytes(data[:4], sys.byteorder)  # of the next pattern
        self.share = self.seed * SHARE  # offset of its share in the server
        if objects["rmr"][0] is None:
            objects["rmr"][0] = rpma.mr_remote_from_descriptor(data[4:])
        self.cq, self.executed, self.rounds = self.conn.get_cq(), 0, 0

    def bytes(self, offset, length):
        return memory[0][self.room + offset:self.room + offset + length]

    def read_back(self, offset, wanted):
        """Reads bytes of the share back and compares them with the written data."""
        self.bytes(BACK, len(wanted))[:] = bytes(len(wanted))
        self.conn.read(objects["mr"][0], self.room + BACK, objects["rmr"][0], self.share + offset, len(wanted),
                       rpma.F_COMPLETION_ALWAYS)
        await_completion(self.cq)
        require(self.bytes(BACK, len(wanted)) == wanted)

    def write_pattern(self, offset, length):
        written = pattern(self.seed, length)
        self.bytes(0, length)[:] = written
        self.conn.write(objects["rmr"][0], self.share + offset, objects["mr"][0], self.room, length, rpma.F_COMPLETION_ON_ERROR)
        self.conn.flush(objects["rmr"][0], self.share + offset, length, rpma.FLUSH_TYPE_VISIBILITY, rpma.F_COMPLETION_ALWAYS)
        await_completion(self.cq)
        self.read_back(offset, written)

    def write_atomically(self):
        offset, word = self.random.randrange(SHARE // 8) * 8, pattern(self.seed, 8)
        self.conn.atomic_write(objects["rmr"][0], self.share + offset, word, rpma.F_COMPLETION_ALWAYS)
        await_completion(self.cq)
        self.read_back(offset, word)

    def exchange(self, without_imm):
        """The server echoes the message or the immediate data."""
        length = self.random.randrange(MESSAGE) + 1
        imm = self.seed if self.random.randrange(2) and not without_imm else None
        sent = pattern(self.seed, length)
        self.bytes(SEND_AT, length)[:] = sent
        self.bytes(RECV_AT, length)[:] = bytes(length)
        self.conn.recv(objects["mr"][0], self.room + RECV_AT, MESSAGE)
        send(self.conn, objects["mr"][0], self.room + SEND_AT, length, imm)
        both = [await_completion(self.cq) for _ in range(2)]
        received = next(wc for wc in both if wc.opcode & rpma.IBV_WC_RECV)
        require(received.byte_len == length and self.bytes(RECV_AT, length) == sent and imm_of(received) == imm)

    def execute_random(self, kinds, without_imm):
        """Executes one of these kinds of steps, at random."""
        kind = self.random.choice([each for each in KINDS if each & kinds])
        self.seed += 1
        if kind == WRITES:
            length = self.random.randrange(SHARE) + 1
            self.write_pattern(self.random.randrange(SHARE - length + 1), length)
        elif kind == ATOMIC_WRITES:
            self.write_atomically()
        else:
            self.exchange(without_imm)
        self.rounds += 1
        self.executed |= kind


members = []  # member n has connection n


def for_each(args, count, work):
    """Calls work for each number, with threads=1 in a thread for each. Raises the first failure after all have ended."""
    if not args.number("threads", 0):
        for number in range(count):
            work(number)
        return
    failures = []

    def guarded(number):
        try:
            work(number)
        except Exception as error:  # pylint: disable=broad-exception-caught
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=[number]) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@command("crowd")
def connect_all(args):
    """Establishes count= connections."""
    def connect(number):
        req = rpma.conn_req_new(objects["peer"][0], args["addr"], args["port"])
        objects["conn"][number] = req.connect()
        await_event(objects["conn"][number], rpma.CONN_ESTABLISHED)

    for_each(args, args.number("count"), connect)
    members[:] = [Member(number) for number in range(args.number("count"))]


@command("crowd-exchange")
def fill_and_exchange(_):
    for member in members:
        member.write_pattern(0, SHARE)
        member.exchange(False)


@command("crowd-in-threads")
def load_in_threads(args):
    """Runs one thread per connection. imm=0: without immediate data; atomic=0: without atomic writes; apart=1: every second
    thread only exchanges messages, and the others do everything else."""
    began, args["threads"] = milliseconds(), "1"

    def load(number):
        member, kinds = members[number], sum(KINDS) - (0 if args.number("atomic", 1) else ATOMIC_WRITES)
        if args.number("apart", 0):
            kinds &= MESSAGES if number % 2 else ~MESSAGES
        # On a busy machine the time may end before each kind has been executed once.
        while member.executed != kinds or milliseconds() - began < args.number("ms"):
            member.execute_random(kinds, not args.number("imm", 1))

    try:
        for_each(args, len(members), load)
    finally:
        reply.update({f"rounds{number}": member.rounds for number, member in enumerate(members)})


@command("crowd-end")
def end(args):
    """Ends every connection from this side."""
    def finish(number):
        await_event(objects["conn"][number], rpma.CONN_CLOSED)
        objects["conn"][number].delete()
        objects["conn"][number] = None

    for member in members:
        member.conn.disconnect()
    for_each(args, len(members), finish)
    objects["rmr"][0].delete()
    objects["rmr"][0] = None
    members.clear()  # frees the memory, because the test compares the heap


# ---- the server: one thread for all clients, whose messages it echoes until they disconnect ----

# Tags of descriptors: standard input, the endpoint, 2 n for the events of client n, 2 n + 1 for its queue.
STANDARD_INPUT, ENDPOINT = -1, -2


class Client:
    """Client n has connection n, share n of region 0, and two message buffers in region 1."""

    def __init__(self, number, cq):
        self.number, self.cq, self.buffer = number, cq, 0

    def message_at(self):
        return (2 * self.number + self.buffer) * MESSAGE

    def echo(self, wc):
        """Posts the next receive first: the next message may arrive before this echo has been sent."""
        conn, region, at = objects["conn"][self.number], objects["mr"][1], self.message_at()
        self.buffer ^= 1
        conn.recv(region, self.message_at(), MESSAGE)
        send(conn, region, at, wc.byte_len, imm_of(wc))
        counts["echoed"] += 1

    def serve_queue(self):
        """Operations fail once the client has ended; the event that follows ends the connection."""
        with contextlib.suppress(rpma.WouldBlock):
            self.cq.wait()
            while True:
                for wc in self.cq.get_wc():
                    if not wc.status and wc.opcode & rpma.IBV_WC_RECV:
                        self.echo(wc)

    def handle_event(self):
        conn = objects["conn"][self.number]
        with contextlib.suppress(rpma.WouldBlock):
            event = conn.next_event()
            if event == rpma.CONN_ESTABLISHED:
                return
            if event == rpma.CONN_CLOSED:
                with contextlib.suppress(rpma.Error):
                    conn.disconnect()  # completes the client's disconnection
            counts["present"] -= 1
            objects["conn"][self.number] = clients[self.number] = None
            conn.delete()


clients = [None] * OBJECTS["conn"]
counts = {"echoed": 0, "present": 0}


def watch(descriptor, tag):
    """The descriptor is non-blocking, because a wake-up may be stale."""
    os.set_blocking(descriptor, False)
    Watched.add(descriptor, tag)


def accept_client(in_steps):
    """The private data of the reply: the client's number, then the descriptor of region 0, because padding may follow it. A
    client killed meanwhile does not end the server."""
    number, ep = objects["conn"].index(None), objects["ep"][0]
    data = number.to_bytes(4, sys.byteorder) + objects["mr"][0].get_descriptor()
    req = None
    try:
        req = ep.next_incoming() if in_steps else ep.next_conn_req()
        if in_steps:
            req.setup()
        req.recv(objects["mr"][1], 2 * number * MESSAGE, MESSAGE)
        objects["conn"][number] = conn = req.connect(data)
    except rpma.WouldBlock:
        return
    except rpma.Error as error:
        if error.name != "RPMA_E_PROVIDER":
            raise
        return
    finally:
        if req is not None and req.pointer is not None:
            req.delete()
    clients[number] = Client(number, conn.get_cq())
    watch(conn.get_event_fd(), 2 * number)
    watch(clients[number].cq.get_fd(), 2 * number + 1)
    counts["present"] += 1


@command("serve")
def serve(args):
    """Serves until the next command; the next "serve" continues with the remaining clients. steps=1: receives requests in
    steps."""
    watch(objects["ep"][0].get_fd(), ENDPOINT)
    Watched.add(0, STANDARD_INPUT)
    tags = []
    try:
        while STANDARD_INPUT not in tags:
            tags = Watched.ready(None)
            for tag in tags:
                if tag == ENDPOINT:
                    accept_client(args.number("steps", 0))
                elif tag >= 0 and (client := clients[tag // 2]):  # an earlier event of this wake-up may have ended it
                    client.serve_queue() if tag % 2 else client.handle_event()
    finally:
        reply.update(counts)


# ---- a client that uses only librdmacm ---------------------------------------------------------


class Address(ctypes.Structure):
    """struct rdma_addrinfo"""
    _fields_ = [("flags", ctypes.c_int), ("family", ctypes.c_int), ("qp_type", ctypes.c_int), ("port_space", ctypes.c_int),
                ("src_len", ctypes.c_uint32), ("dst_len", ctypes.c_uint32), ("src_addr", ctypes.c_void_p),
                ("dst_addr", ctypes.c_void_p), ("rest", ctypes.c_void_p * 7)]


class Event(ctypes.Structure):
    """The beginning of struct rdma_cm_event"""
    _fields_ = [("id", ctypes.c_void_p), ("listen_id", ctypes.c_void_p), ("event", ctypes.c_int), ("status", ctypes.c_int)]


class Parameters(ctypes.Structure):
    """struct rdma_conn_param"""
    _fields_ = [("private_data", ctypes.c_void_p), ("private_data_len", ctypes.c_uint8), ("responder_resources", ctypes.c_uint8),
                ("initiator_depth", ctypes.c_uint8), ("flow_control", ctypes.c_uint8), ("retry_count", ctypes.c_uint8),
                ("rnr_retry_count", ctypes.c_uint8), ("srq", ctypes.c_uint8), ("qp_num", ctypes.c_uint32)]


@command("flood")
def flood(args):
    """Requests count= connections, with invented queue pair numbers, and completes none. The requests exist until the process
    ends."""
    rdmacm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
    rdmacm.rdma_create_event_channel.restype = ctypes.c_void_p

    def must(name, *arguments):
        if getattr(rdmacm, name)(*arguments):
            raise OSError(ctypes.get_errno(), name)

    tcp, count = 0x0106, args.number("count")  # RDMA_PS_TCP
    channel, address, event = ctypes.c_void_p(rdmacm.rdma_create_event_channel()), ctypes.POINTER(Address)(), ctypes.POINTER(Event)()
    must("rdma_getaddrinfo", args["addr"].encode(), args["port"].encode(), ctypes.byref(Address(port_space=tcp)), ctypes.byref(address))
    for _ in range(count):
        new = ctypes.c_void_p()
        must("rdma_create_id", channel, ctypes.byref(new), None, tcp)
        must("rdma_resolve_addr", new, None, ctypes.c_void_p(address.contents.dst_addr), 5000)
    requested = 0
    while requested < count:
        must("rdma_get_cm_event", channel, ctypes.byref(event))
        of, kind = ctypes.c_void_p(event.contents.id), event.contents.event
        must("rdma_ack_cm_event", event)
        if kind == 0:  # RDMA_CM_EVENT_ADDR_RESOLVED
            must("rdma_resolve_route", of, 5000)
        elif kind == 2:  # RDMA_CM_EVENT_ROUTE_RESOLVED
            parameters = Parameters(responder_resources=1, initiator_depth=1, retry_count=7, qp_num=0x100 + requested)
            must("rdma_connect", of, ctypes.byref(parameters))
            requested += 1
        else:
            raise Failure("ERR_SYSTEM", event=kind)
