# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands that wait: completions, and events of the device."""

import contextlib
import os
import select
import socket

import rpma

from commands import TIMEOUT_MS, Device, Failure, command, milliseconds, objects, reply, wait_readable


def queue_of(args):
    """The queue of the connection, or the one that queue= names."""
    name = args.get("queue", "main")
    if name == "main":
        return args.object("conn").get_cq()
    return {"rcq": lambda: args.object("conn").get_rcq(), "srq": lambda: args.object("srq").get_rcq(),
            "shared_cq": lambda: args.object("shared_cq")}[name]()


@command("wc")
def completions(args):
    """Collects count= completions within timeout=; with 0 it polls once. With busy=1 it never sleeps."""
    cq, wanted, timeout, began, got = queue_of(args), args.number("count", 1), args.number("timeout", TIMEOUT_MS), milliseconds(), 0
    try:
        while got < wanted:
            try:
                for wc in cq.get_wc(min(wanted - got, 16)):
                    worked = not wc.status
                    imm = socket.ntohl(wc.imm_data) if worked and wc.wc_flags & rpma.IBV_WC_WITH_IMM else 0
                    reply[f"wc{got}"] = ":".join(map(str, (wc.status, wc.opcode if worked else "-", wc.wr_id,
                                                           wc.byte_len if worked else 0, imm, wc.qp_num)))
                    got += 1
                continue
            except rpma.WouldBlock:
                left = timeout - (milliseconds() - began)
                if left <= 0:
                    if timeout:
                        raise Failure("ERR_TIMEOUT") from None
                    raise
            if not args.number("busy", 0):
                wait_for_wake_up(args, cq, left)
    finally:
        reply["ms"] = milliseconds() - began


def wait_for_wake_up(args, cq, timeout):
    """A stale wake-up is harmless, because the caller polls the queue again."""
    wait_readable(cq.get_fd(), timeout)
    with contextlib.suppress(rpma.WouldBlock):
        try:
            cq.wait()
        except rpma.Error as error:
            if error.name != "RPMA_E_SHARED_CHANNEL":
                raise
            args.object("conn").wait(0)


@command("conn-wait")
def wait_for_connection(args):
    """Replies with the queue that the connection's shared channel reports."""
    conn = args.object("conn")
    cq, is_rcq = conn.wait(0)
    reply.update(queue="main" if cq == conn.get_cq() else "rcq", rcq=int(is_rcq))


@command("cq-wait", "cq-take-event")
def wait_for_queue(args):
    getattr(queue_of(args), args.verb[3:].replace("-", "_"))()


@command("cq-arm")
def arm(args):
    queue_of(args).arm(args.number("solicited", 0))


def descriptor_named(args):
    getters = {"ep": ("ep", "get_fd"), "req": ("req", "get_event_fd"), "event": ("conn", "get_event_fd"),
               "channel": ("conn", "get_compl_fd"), "device": ("peer", "get_event_fd")}
    if args["fd"] not in getters:
        return queue_of(args).get_fd()
    kind, method = getters[args["fd"]]
    return getattr(args.object(kind), method)()


class Watched:
    """The descriptors of one epoll instance, with their tags: a list, because a dict keeps its memory."""
    epoll, tags = None, [0] * 65536

    @classmethod
    def add(cls, descriptor, tag):
        cls.epoll = cls.epoll or select.epoll()
        with contextlib.suppress(FileExistsError):
            cls.epoll.register(descriptor, select.EPOLLIN)
        cls.tags[descriptor] = tag

    @classmethod
    def ready(cls, timeout):
        """The tags of the ready descriptors."""
        return [cls.tags[descriptor] for descriptor, _ in cls.epoll.poll(timeout, 64)]

    @classmethod
    def forget(cls):
        if cls.epoll:
            cls.epoll.close()
        cls.epoll = None


@command("nonblock")
def make_non_blocking(args):
    os.set_blocking(descriptor_named(args), False)


@command("epoll-add")
def add_to_epoll(args):
    Watched.add(descriptor_named(args), args.number("tag"))


@command("epoll-wait")
def wait_by_epoll(args):
    tags = Watched.ready(args.number("timeout", TIMEOUT_MS) / 1000)
    if not tags:
        raise Failure("ERR_TIMEOUT")
    reply["n"] = len(tags)
    reply.update({f"tag{number}": tag for number, tag in enumerate(tags)})


def reply_index(kind, pointer):
    for number, handle in enumerate(objects[kind]):
        if pointer and handle is not None and handle.pointer == pointer:
            reply[kind] = number


def reply_queue(pointer):
    """Replies with the words that name the queue in other commands."""
    for number, srq in enumerate(objects["srq"]):
        if srq is not None and (rcq := srq.get_rcq()) and rcq.pointer == pointer:
            reply.update(queue="srq", srq=number)
    for number, conn in enumerate(objects["conn"]):
        if conn is not None:
            for name, cq in (("main", conn.get_cq()), ("rcq", conn.get_rcq())):
                if cq and cq.pointer == pointer:
                    reply.update(queue=name, conn=number)
    reply_index("shared_cq", pointer)


@command("device-event")
def device_event(args):
    """Replies with the next event of the device and the numbers of its handles. second=1 reads it through another peer."""
    with contextlib.ExitStack() as end:
        of = end.enter_context(rpma.peer_new(Device.context)) if args.number("second", 0) else objects["peer"][0]
        if args.number("polled", 1):
            wait_readable(of.get_event_fd(), args.number("timeout", TIMEOUT_MS))
        event = of.next_event()
        reply.update(type=event.type, port=event.port)
        reply_index("conn", event.conn)
        reply_index("srq", event.srq)
        if event.cq:
            reply_queue(event.cq)
