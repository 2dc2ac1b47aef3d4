# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Operations of several pieces: every operation, from one piece to more than the device has."""

from harness import lab
from harness.case import (PORT, case, connect, disconnect, listen, share_region)
from harness.elements import GUARD, REGIONS, SIZE, Elements, blank
from harness.side import LOCAL_USAGES, expect


def limits(side):
    """Elements that the device allows in a work request, in a read and in a receive of an SRQ."""
    return {name: int(value) for name, value in side("device-limits").items()}


def prepared(test, **cfg):
    """As connected(), with the device's element limit and with more regions on both sides."""
    server, client = test.peers()
    for side in (server, client):
        side("cfg", **{"sge": limits(side)["sge"], **cfg})
        for number in range(1, REGIONS):
            side("memory", mr=number, size=SIZE)
            side("reg", mr=number, usage=LOCAL_USAGES)
    share_region(server, client, SIZE)
    listen(server)
    connect(server, client, server_cfg=0, client_cfg=0)
    return server, client


def counts(most):
    return sorted({0, 1, min(2, most), most})


def refused(side, most, verb, **values):
    """One element too many: nothing is posted, and the log line gives the limit."""
    elements = Elements(most + 1)
    side.refuses("RPMA_E_INVAL", verb, **elements.sgl, **values)
    side.refuses("RPMA_E_NO_COMPLETION", "poll-wc")


def has_arrived(client):
    """Where the write's completion does not say that it arrived, a flush behind it does."""
    if lab.lacks(lab.ANSWERS):
        client("flush", rmr=0, len=8, persistent=0)
        client.completion()


def says(test, *words):
    lines = [line for line in test.said().splitlines() if all(word in line for word in words)]
    expect(len(lines) > 0, True, f"a line with {' and '.join(words)}")


@case("lists", "write of 0, 1, 2 and all elements that the device has, and one more")
def write(test):
    server, client = prepared(test)
    most = limits(client)["sge"]
    for seed, count in enumerate(counts(most)):
        elements = Elements(count, room=most)
        blank(server, regions=1)
        elements.fill(client, 100 * seed)
        client("write", **elements.sgl, rmr=0, roff=GUARD + 3, ctx=count)
        expect(client.completion(opcode="WRITE").ctx, count, "op_context")
        has_arrived(client)
        elements.check_in_a_row(server, GUARD + 3, 100 * seed)
    refused(client, most, "write", rmr=0)
    says(test, f"nsge is {most + 1}; possible: {most} at most")
    disconnect(client, server)


@case("lists", "read into 0, 1, 2 and all elements that the device has, and one more")
def read(test):
    """iWARP reads into one element: the answer of a read has one target."""
    server, client = prepared(test)
    most = min(limits(client)["sge"], limits(client)["read_sge"])
    if lab.PROVIDER in ("rxe", "siw"):
        expect(most == 1, lab.PROVIDER == "siw", f"whether a read has one element, not {most}")
    for seed, count in enumerate(counts(most)):
        elements = Elements(count, room=most)
        blank(client)
        elements.fill_in_a_row(server, GUARD + 3, 100 * seed)
        client("read", **elements.sgl, rmr=0, roff=GUARD + 3, ctx=count)
        expect(client.completion(opcode="READ").ctx, count, "op_context")
        elements.check(client, 100 * seed)
    refused(client, most, "read", rmr=0)
    says(test, f"nsge is {most + 1}; possible: {most} at most")
    disconnect(client, server)


RECEIVE = {"its own queue": "recv", "a shared receive queue": "srq-recv"}


@case("lists", "send of 0, 1, 2 and all elements that the device has into as many of {queue}",
      [{"queue": queue} for queue in RECEIVE])
def message(test, queue):
    """Messages scatter over elements whose borders differ from those that were sent."""
    server, client = test.peers()
    own = limits(server)
    shared = queue != "its own queue"
    most = min(own["sge"], own["srq_sge"]) if shared else own["sge"]
    for side in (server, client):
        for number in range(REGIONS):
            side("memory", mr=number, size=SIZE)
            side("reg", mr=number, usage=LOCAL_USAGES)
    if shared:
        server("srq", rq=4, rcq=0, sge=most)
    server("cfg", sge=most, **({"srq": 0} if shared else {}))
    client("cfg", sge=own["sge"])
    listen(server)
    connect(server, client, server_cfg=0, client_cfg=0)
    for seed, count in enumerate(counts(most)):
        if count == 0 and lab.lacks(lab.EMPTY_RECEIVE):
            continue
        blank(server)
        elements = Elements(count, room=most)
        server(RECEIVE[queue], **elements.sgl, ctx=count)
        scattered(server, client, elements, 100 * seed, ctx=count)
    refused(server, most, RECEIVE[queue])
    refused(client, own["sge"], "send")
    disconnect(client, server)


def scattered(server, client, elements, seed, ctx):
    """
    Sends one message from two pieces of memory 0; it has to arrive in the elements of the receive.
    """
    elements.fill_in_a_row(client, GUARD, seed)
    third = elements.length // 3
    parts = [f"0:{GUARD}:{third}", f"0:{GUARD + third}:{elements.length - third}"]
    client("send", sgl=",".join(parts), ctx=seed)
    expect(client.completion(opcode="SEND").ctx, seed, "op_context")
    found = server.completion(opcode="RECV")
    expect((found.ctx, found.len), (ctx, elements.length), "receive")
    elements.check(server, seed)


@case("lists", "a message shorter than the list of its receive leaves the rest untouched")
def short_message(test):
    server, client = prepared(test)
    elements = Elements(4)
    blank(server)
    elements.fill_in_a_row(client, GUARD, 1)
    for received in (1, 4096, 4097, 4100, 4105):
        blank(server)
        server("recv", **elements.sgl)
        client("send", mr=0, off=GUARD, len=received)
        client.completion(opcode="SEND")
        expect(server.completion(opcode="RECV").len, received, "length")
        elements.check(server, 1, received)
    disconnect(client, server)


@case("lists", "receives with lists posted on the requests meet the first messages")
def early_receive(test):
    server, client = test.peers()
    elements = Elements(3)
    for side in (server, client):
        for number in range(REGIONS):
            side("memory", mr=number, size=SIZE)
            side("reg", mr=number, usage=LOCAL_USAGES)
        side("cfg", sge=3)
        blank(side)
    listen(server)
    client("req-new", addr=server.address, port=PORT, cfg=0)
    client("req-recv", **elements.sgl, ctx=1)
    client.refuses("RPMA_E_INVAL", "req-recv", **Elements(4).sgl)
    client("connect")
    server("next-req", cfg=0)
    server("req-recv", **elements.sgl, ctx=2)
    server("connect")
    client.event("ESTABLISHED")
    server.event("ESTABLISHED")
    for sender, receiver, ctx in ((client, server, 2), (server, client, 1)):
        elements.fill_in_a_row(sender, SIZE // 2, 10 * ctx)
        sender("send", mr=0, off=SIZE // 2, len=elements.length)
        sender.completion(opcode="SEND")
        expect(receiver.completion(opcode="RECV").ctx, ctx, "receive")
        elements.check(receiver, 10 * ctx)
    disconnect(client, server)
