# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Events of the device, and rpma_cq_arm() with rpma_cq_take_event()."""

from harness import lab
from harness.case import case, connect, connected, disconnect, listening
from harness.network import cables, cut, mend
from harness.side import ALWAYS, expect

MESSAGE_SIZE = 64
# enum rpma_peer_event_type
TYPES = (None, "OTHER", "PORT_UP", "PORT_DOWN", "ADDR_CHANGED", "DEVICE_GONE", "QP_ERROR",
         "CQ_ERROR", "SRQ_ERROR", "SRQ_LIMIT")


def expect_device_event(side, wanted, through="own peer", **named):
    """Expects this event of the device next, with exactly these handles."""
    answer = side("device-event", second=int(through == "another peer"))
    found = {key: value for key, value in answer.items() if key not in ("type", "port")}
    expect((TYPES[int(answer["type"])], found), (wanted, {key: str(value) for key, value
                                                         in named.items()}),
           f"{side.name}: event of the device")
    expect(answer["port"], "1" if wanted in ("PORT_UP", "PORT_DOWN", "ADDR_CHANGED") else "0",
           "port")
    return answer


def expect_no_other_event(side, port):
    """No event is pending: the next one belongs to a cable that is cut now."""
    cut(port)
    expect_device_event(side, "PORT_DOWN")
    mend(port)
    expect_device_event(side, "PORT_UP")


def ip(number, *words):
    lab.run(*lab.on(lab.host(number), "ip", *words))


@case("events", "own link down and up, then a cable: PORT_DOWN and PORT_UP at that side, no event at the other; "
      "an address is added and removed: ADDR_CHANGED on soft-RoCE")
def port(test):
    """
    The GIDs of soft-RoCE are the addresses of the interface; the GID of soft-iWARP is the MAC
    address. The device's descriptor can be polled; a non-blocking call without an event returns
    RPMA_E_NO_EVENT.
    """
    ports = cables(test)
    server, client = test.peers()
    test.undo.callback(ip, 2, "link", "set", "veth0", "up")
    client("nonblock", fd="device")
    client("epoll-add", fd="device", tag=7)
    client.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)
    for state, wanted in (("down", "PORT_DOWN"), ("up", "PORT_UP")):
        ip(2, "link", "set", "veth0", state)
        expect(client("epoll-wait")["tag0"], "7", "descriptor")
        expect_device_event(client, wanted)
    for change in ("add", "del"):
        ip(2, "addr", change, "10.77.9.9/24", "dev", "veth0")
        if lab.PROVIDER == "rxe":
            expect_device_event(client, "ADDR_CHANGED")
    expect_no_other_event(client, ports[1])
    expect_no_other_event(server, ports[0])
    client.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)


@case("events", "a write is denied: QP_ERROR with its connection at the target, no event at the "
      "client")
def denied(test):
    ports = cables(test)
    server, client = connected(test, count=3)
    client("raw-write", conn=1, mr=0, rmr=0, roff=1 << 40, len=8)
    expect_device_event(server, "QP_ERROR", conn=1)
    for side, end in zip((server, client), ports):
        expect_no_other_event(side, end)


@case("events", "fewer than {limit} of 8 receives left: SRQ_LIMIT once, with the queue, and again "
      "after it is set again", [{"limit": 5}])
def srq_limit(test, limit):
    """The event follows the message that reduces the number of receives below the limit."""
    ports = cables(test)
    server, client = listening(test)
    server("srq", srq=1, rq=10, rcq=20)
    server("cfg", srq=1)
    connect(server, client, server_cfg=0)
    for place in range(8):
        server("srq-recv", srq=1, mr=0, off=place * MESSAGE_SIZE, len=MESSAGE_SIZE, ctx=place)
    server.refuses("RPMA_E_INVAL", "srq-limit", srq=1, limit=1000)
    server("srq-limit", srq=1, limit=limit)

    def one_message():
        client("send", mr=0, len=MESSAGE_SIZE)
        client.completion(opcode="SEND")
        server.completion(opcode="RECV", queue="srq", srq=1)

    for _ in range(8 - limit):
        one_message()
    server.refuses("ERR_TIMEOUT", "device-event", timeout=0)
    one_message()
    expect_device_event(server, "SRQ_LIMIT", srq=1)
    one_message()
    server("srq-limit", srq=1, limit=limit)
    server.refuses("ERR_TIMEOUT", "device-event", timeout=0)
    one_message()
    expect_device_event(server, "SRQ_LIMIT", srq=1)
    server("srq-limit", srq=1, limit=0)
    one_message()
    expect_no_other_event(server, ports[0])
    disconnect(client, server)


# ---- rpma_cq_arm() and rpma_cq_take_event() instead of rpma_cq_wait() ---------------------------


@case("events", "messages between all steps of the loop of rpma_cq_arm(3), {how}: no wake-up is lost",
      [{"how": "epoll"}, {"how": "poll-then-sleep"}], fabric=True)
def loop(test, how):
    """The loop polls each message, or wakes up for it, whenever it arrives."""
    queue = {"queue": "shared_cq", "shared_cq": 0}
    server, client = listening(test)
    server("cq-new", shared_cq=0, size=100)
    server("cfg", shared_rcq=0, rq=64)
    connect(server, client, server_cfg=0)
    server("recv", mr=0, len=8, count=64)
    server("epoll-add", fd="cq", tag=0, **queue)
    sent = received = 0

    def message():
        client("send", mr=0, len=8)
        client.completion(opcode="SEND")

    def step(verb):
        nonlocal received
        if verb == "wc":
            while server.code(verb, timeout=0, **queue) == "ok":
                received += 1
        else:
            server(verb, **queue)

    sleep = ["epoll-wait", "cq-take-event"]
    steps = [*sleep, "cq-arm", "wc"] if how == "epoll" else ["cq-arm", "wc", *sleep, "wc"]
    for moment in range(len(steps)):
        for number, verb in enumerate(steps):
            if number == moment or number == steps.index("epoll-wait"):
                message()
                sent += 1
            step(verb)
    while received < sent:
        for verb in steps:
            if received < sent or verb not in sleep:
                step(verb)
    expect(received, sent, "messages")
    disconnect(client, server)


@case("events", "a CQ armed for solicited completions has an event for a solicited message, for no other, for no "
      "write, and for no write that failed")
def solicited(test):
    """Soft-iWARP does not report solicited messages either."""
    always, solicited_too = ALWAYS, ALWAYS | 1 << 2  # RPMA_F_SOLICITED
    server, client = connected(test)
    for side in (server, client):
        side("nonblock", fd="cq")
        side("epoll-add", fd="cq", tag=1)
    for flags, armed_for, wakes in ((always, None, True), (always, 1, False),
                                    (solicited_too, 1, lab.PROVIDER != "siw"), (always, 0, True)):
        if armed_for is not None:
            server("cq-arm", solicited=armed_for)
        server("recv", mr=0, len=8)
        client("send", mr=0, len=8, flags=flags, method="post")
        client.completion(opcode="SEND", busy=1)
        server.completion(opcode="RECV", busy=1)
        if wakes:
            server("epoll-wait")
            server("cq-take-event")
        else:
            server.refuses("RPMA_E_NO_COMPLETION", "cq-take-event")
    client("epoll-wait")
    client("cq-take-event")  # a new queue is armed for any completion
    client("cq-arm", solicited=1)
    client("write", mr=0, rmr=0, len=8)
    client.completion(opcode="WRITE", busy=1)
    client.refuses("RPMA_E_NO_COMPLETION", "cq-take-event")
    if lab.lacks(lab.REMOTE_RESULTS):
        return
    client("raw-write", mr=0, rmr=0, roff=1 << 40, len=8)
    client.completion("REM_ACCESS_ERR", busy=1)
    client.refuses("RPMA_E_NO_COMPLETION", "cq-take-event")
    client("cq-arm")
    client("write", mr=0, rmr=0, len=8)
    client.completion("WR_FLUSH_ERR", busy=1)
    client("epoll-wait")
    client("cq-take-event")
