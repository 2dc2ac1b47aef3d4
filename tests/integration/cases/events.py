# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Events of the device, and the halves of rpma_cq_wait()."""

from harness import lab
from harness.case import case, connect, disconnect, listen, share_region
from harness.network import cables, cut, mend
from harness.side import expect

from .faults_peer import works_with_new_client

SLOT = 64
# enum rpma_peer_event_type
TYPES = (None, "OTHER", "PORT_UP", "PORT_DOWN", "ADDR_CHANGED", "DEVICE_GONE", "QP_ERROR",
         "CQ_ERROR", "SRQ_ERROR", "SRQ_LIMIT")


def happens(side, wanted, through="own peer", **named):
    """The device's next event is this one and names these handles, and no others."""
    answer = side("device-event", second=int(through == "another peer"))
    found = {key: value for key, value in answer.items() if key not in ("type", "ibv", "port")}
    expect((TYPES[int(answer["type"])], found), (wanted, {key: str(value) for key, value
                                                         in named.items()}),
           f"{side.name}: event of the device")
    expect(answer["port"], "1" if wanted in ("PORT_UP", "PORT_DOWN", "ADDR_CHANGED") else "0",
           "port")
    return answer


def no_other(side, port):
    """No event waits: the next is that of a cable which is cut now."""
    cut(port)
    happens(side, "PORT_DOWN")
    mend(port)
    happens(side, "PORT_UP")


def ip(number, *words):
    lab.run(*lab.on(lab.host(number), "ip", *words))


@case("events", "own link down and up, then a cable: PORT_DOWN and PORT_UP at that side, nothing at the other")
def port(test):
    ports = cables(test)
    server, client = test.peers()
    test.undo.callback(ip, 2, "link", "set", "veth0", "up")
    for _ in range(2):
        ip(2, "link", "set", "veth0", "down")
        happens(client, "PORT_DOWN")
        ip(2, "link", "set", "veth0", "up")
        happens(client, "PORT_UP")
    no_other(server, ports[0])


@case("events", "an address comes and goes: ADDR_CHANGED on soft-RoCE, nothing on soft-iWARP")
def address(test):
    """The GIDs of soft-RoCE are the addresses of the interface; that of soft-iWARP is its MAC."""
    ports = cables(test)
    _, client = test.peers()
    for change in ("add", "del"):
        ip(2, "addr", change, "10.77.9.9/24", "dev", "veth0")
        if lab.PROVIDER == "rxe":
            happens(client, "ADDR_CHANGED")
    no_other(client, ports[1])


@case("events", "a write is denied: QP_ERROR with its connection at the target, nothing at the "
      "writer")
def denied(test):
    ports = cables(test)
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    for number in range(3):
        connect(server, client, number=number)
    client("raw-write", conn=1, mr=0, rmr=0, roff=1 << 40, len=8)
    happens(server, "QP_ERROR", conn=1)
    for side, end in zip((server, client), ports):
        no_other(side, end)


@case("events", "fewer than {limit} of 8 receives left: SRQ_LIMIT once, with the queue, and again "
      "when it is asked for", [{"limit": 5}])
def srq_limit(test, limit):
    """A limit above what waits says so with the next receive that a message takes."""
    ports = cables(test)
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    server("srq", srq=1, rq=10, rcq=20)
    server("cfg", srq=1)
    connect(server, client, server_cfg=0)
    for place in range(8):
        server("srq-recv", srq=1, mr=0, off=place * SLOT, len=SLOT, ctx=place)
    server.refuses("RPMA_E_INVAL", "srq-limit", srq=1, limit=1000)
    server("srq-limit", srq=1, limit=limit)

    def one_message():
        client("send", mr=0, len=SLOT)
        client.completion(opcode="SEND")
        server.completion(opcode="RECV", queue="srq", srq=1)

    for _ in range(8 - limit):
        one_message()
    server.refuses("ERR_TIMEOUT", "device-event", timeout=0)
    one_message()
    happens(server, "SRQ_LIMIT", srq=1)
    one_message()
    server("srq-limit", srq=1, limit=limit)
    server.refuses("ERR_TIMEOUT", "device-event", timeout=0)
    one_message()
    happens(server, "SRQ_LIMIT", srq=1)
    server("srq-limit", srq=1, limit=0)
    one_message()
    no_other(server, ports[0])
    disconnect(client, server)


@case("events", "{count} writes and a CQ of the program with room for 1: CQ_ERROR for each lost "
      "completion, with the queue, through another peer", [{"count": 4}])
def overrun(test, count):
    """librdmacm has one context for all peers of a process, so any of them takes the events."""
    ports = cables(test)
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("lend", size=1, lent=2)
    client("cfg", sq=count, lent=2)
    connect(server, client, client_cfg=0)
    for place in range(count):
        client("write", mr=0, rmr=0, len=SLOT, ctx=place)
    for _ in range(count - 1):
        happens(client, "CQ_ERROR", "another peer", queue="main", conn=0, lent=2)
    expect(client.completion(opcode="WRITE").ctx, 0, "op_context")
    no_other(client, ports[1])
    disconnect(client, server)


@case("events", "no event waits, or the device's descriptor is polled: NO_EVENT, epoll")
def descriptor(test):
    ports = cables(test)
    _, client = test.peers()
    client("nonblock", fd="device")
    client("epoll-add", fd="device", tag=7)
    client.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)
    cut(ports[1])
    expect(client("epoll-wait")["tag0"], "7", "descriptor")
    happens(client, "PORT_DOWN")
    client.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)
    mend(ports[1])
    happens(client, "PORT_UP")


# ---- the halves of rpma_cq_wait() ---------------------------------------------------------------


@case("events", "{count} messages and the loop of rpma_cq_arm(3), {how}: no wake-up is lost",
      [{"count": 300, "how": "epoll"}, {"count": 300, "how": "poll-then-sleep"}], limit=120)
def loop(test, count, how):
    """The sender waits for each burst, so that the receiver falls asleep again and again."""
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    server("lend", lent=0, size=100)
    server("cfg", **{"lent-rcq": 0, "rq": 64})
    connect(server, client, server_cfg=0)
    for _ in range(64):
        server("recv", mr=0, len=8)
    server.begin("receive-armed", queue="lent", lent=0, count=count, how=how)
    sent = burst = 0
    while sent < count:
        burst = min(burst % 7 + 1, count - sent)
        for _ in range(burst):
            client("send", mr=0, len=8)
        client.completions(burst)
        sent += burst
    expect(int(server.end()["n"]), count, "messages")
    disconnect(client, server)


@case("events", "a CQ that is armed for solicited completions stays quiet for others",
      [{"then": ""}])
@case("events", "a CQ that is armed for solicited completions stays quiet for {then}",
      [{"then": "a failed write"}], needs=(lab.ANSWERS,))
def solicited(test, then):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("lend", lent=0, size=10)
    client("cfg", lent=0)
    connect(server, client, client_cfg=0)
    queue = {"queue": "lent", "lent": 0}
    client("nonblock", fd="cq", **queue)
    client("write", mr=0, rmr=0, len=8)
    client.completion(opcode="WRITE", busy=1, **queue)
    client("cq-take-event", **queue)  # a new queue is armed for any completion
    client("cq-arm", solicited=1, **queue)
    client("write", mr=0, rmr=0, len=8)
    client.completion(opcode="WRITE", busy=1, **queue)
    client.refuses("RPMA_E_NO_COMPLETION", "cq-take-event", **queue)
    if not then:
        disconnect(client, server)
        return
    client("raw-write", mr=0, rmr=0, roff=1 << 40, len=8)
    client.completion("REM_ACCESS_ERR", busy=1, **queue)
    client.refuses("RPMA_E_NO_COMPLETION", "cq-take-event", **queue)
    client("cq-arm", **queue)
    client("write", mr=0, rmr=0, len=8)
    client.completion("WR_FLUSH_ERR", busy=1, **queue)
    client("cq-take-event", **queue)
    works_with_new_client(test, server)


@case("events", "a CQ that is armed for solicited completions wakes up for a solicited message")
def solicited_message(test):
    always, solicited_too = 3, 3 | 1 << 2  # RPMA_F_COMPLETION_ALWAYS, RPMA_F_SOLICITED
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    connect(server, client)
    server("nonblock", fd="cq")
    server("epoll-add", fd="cq", tag=1)
    for flags, armed_for, wakes in ((always, None, True), (always, 1, False),
                                    (solicited_too, 1, True), (always, 0, True)):
        if armed_for is not None:
            server("cq-arm", solicited=armed_for)
        server("recv", mr=0, len=8)
        client("send", mr=0, len=8, flags=flags, way="post")
        client.completion(opcode="SEND")
        server.completion(opcode="RECV", busy=1)
        if wakes:
            server("epoll-wait")
            server("cq-take-event")
        else:
            server.refuses("RPMA_E_NO_COMPLETION", "cq-take-event")
    disconnect(client, server)


@case("events", "moderation: neither soft-RoCE nor soft-iWARP can hold back notifications")
def moderation(test):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    connect(server, client)
    lab.need_virtual("a device without moderation")
    client.refuses("RPMA_E_NOSUPP", "moderate", count=2, us=50)
    disconnect(client, server)
