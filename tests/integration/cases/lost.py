# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""A lost peer: the side that detects it, the time until then, and the side whose setting applies."""

import time

from harness import lab
from harness.case import case, connected, share_region
from harness.network import cables, cut, mend
from harness.side import STATUSES, completion, expect

from .survivors import begin_writes, check_new_side, wait_for_bytes

# Seconds; far above the waits of all cases. A missing completion ends the case nevertheless.
TIMEOUT = 60
# Seconds within which each operation with retries limited by the settings below fails.
LONG_ENOUGH = 3
SIZE = 1 << 20


def with_settings(test, server=None, client=None):
    """Connects a server and a client with these settings. Returns them and the ends of their cables."""
    ports = cables(test)
    sides = connected(test, SIZE, server, client)
    share_region(*reversed(sides), SIZE, number=1)
    return *sides, *ports


def bounds(ack, retry):
    """The earliest and the latest failure, in milliseconds: rpma_conn_cfg_set_ack_timeout(3)."""
    return ack * (retry + 1), 8 * ack * (retry + 1)


def milliseconds(since):
    return round(1000 * (time.monotonic() - since))


def expect_early(what, spent, latest):
    """Allows twice the documented time, because other programs also use the machine's processors."""
    expect(spent <= 2 * latest, True, f"{what}: {spent} ms, not within twice {latest}")


def post(side, verb, **values):
    """Posts an operation to the other side's region and returns the time, for expect_failure()."""
    began = time.monotonic()
    number = int(side.name == "server")
    side(verb, len=8, **({"persistent": 0} if verb == "flush" else {"mr": number}),
         **({} if verb == "send" else {"rmr": number}), **values)
    return began


def expect_failure(side, status, posted, earliest, latest, later=0):
    """Expects this status for the first operation, in time; the later operations are flushed."""
    answer = side("wc", count=1, timeout=TIMEOUT * 1000)
    spent = milliseconds(posted)
    expect(completion(answer["wc0"]).status, status, f"{side.name}: status")
    expect(spent >= earliest, True, f"{side.name}: after {spent} ms, not {earliest}")
    expect_early(side.name, int(answer["ms"]), latest)
    for one in side.completions(later) if later else ():
        expect(one.status, "WR_FLUSH_ERR", f"{side.name}: a later operation")


def expect_no_event(side, seconds=LONG_ENOUGH):
    """
    Expects neither a completion nor an event, except UNREACHABLE: a kernel reports it if it happens
    to update the neighbour (Linux 7.3, drivers/infiniband/core/cma.c, cma_netevent_callback()).
    """
    side.refuses("ERR_TIMEOUT", "wc", timeout=seconds * 1000)
    code, answer = side.execute("event", timeout=1)
    expect((code, answer.get("event")) in (("ERR_TIMEOUT", None), ("ok", "UNREACHABLE")), True,
           f"{side.name}: {code} {answer}")


# ---- outstanding operations ----------------------------------------------------------------

# The server keeps the timeout of the CM, which is half a second (exponent 17).
CM_TIMEOUT = (4096 << 17) // 1000000
# verb, the side that posts it, a description, the settings of both sides, and the result: timeout
# in ms, retries.
LINK_DOWN = [dict(zip(("verb", "poster", "what", "settings", "ack", "retry"), row)) for row in (
    ("write", "client", "its own 100 ms and 3 retries", {"client": {"ack": 100, "retry": 3}}, 100, 3),
    ("read", "client", "its own 50 ms and 6 retries", {"client": {"ack": 50, "retry": 6}}, 50, 6),
    ("send", "client", "its own 500 ms and 1 retry", {"client": {"ack": 500, "retry": 1}}, 500, 1),
    ("flush", "client", "its own 1000 ms and no retry", {"client": {"ack": 1000, "retry": 0}}, 1000, 0),
    ("write", "server", "the client's retry count but not its timeout", {"client": {"ack": 20, "retry": 2}},
     CM_TIMEOUT, 2),
    # With the CM's timeout the write would take at least 3.7 s, more than twice the bound.
    ("write", "server", "its own timeout", {"server": {"ack": 20}, "client": {"retry": 6}}, 20, 6),
)]


@case("lost", "{verb} of the {poster}, link down, {what}: RETRY_EXC_ERR in time", LINK_DOWN,
      needs=(lab.LIMITED_RETRIES,), shows=("RETRY_EXC_ERR: any",))
def link_down_before_posts(test, verb, poster, what, settings, ack, retry):
    """The other host's cable is unplugged before the operations are posted, and stays unplugged."""
    server, client, *ports = with_settings(test, **settings)
    side, other, port = (client, server, ports[0]) if poster == "client" else (server, client, ports[1])
    other("recv", mr=0, len=8, count=3)
    cut(port)
    posted = post(side, "write" if verb == "flush" else verb)
    post(side, verb, ctx=1)
    expect_failure(side, "RETRY_EXC_ERR", posted, *bounds(ack, retry), later=1)


@case("lost", "link down during writes: RETRY_EXC_ERR in time",
      needs=(lab.LIMITED_RETRIES,))
def link_down_during_writes(test):
    ack, retry = 100, 3
    server, client, port, _ = with_settings(test, client={"ack": ack, "retry": retry})
    client("fill", len=SIZE, seed=1)
    begin_writes(client, 16, SIZE // 16)
    wait_for_bytes(server, 16 * 500)
    cut(port)
    cut_at = time.monotonic()
    code, answer = client.read_reply(timeout=TIMEOUT)
    expect((code, STATUSES[int(answer["status"])]), ("RPMA_E_PROVIDER", "RETRY_EXC_ERR"), "the load")
    expect_early("the load", milliseconds(cut_at), bounds(ack, retry)[1])


@case("lost", "a server with a smaller MTU than its client: connected, short writes arrive, longer ones: RETRY_EXC_ERR",
      needs=(lab.LIMITED_RETRIES,), shows=("RETRY_EXC_ERR: any",))
def smaller_mtu(test):
    lab.need_virtual("an interface with another MTU")
    resize = lab.on(lab.host(1), "ip", "link", "set", "veth0", "mtu")
    test.undo.callback(lab.run, *resize, "9000")
    lab.run(*resize, "1500")
    ack, retry = 100, 3
    _, client = connected(test, client={"ack": ack, "retry": retry})
    client("write", mr=0, rmr=0, len=1024)
    client.completion()
    posted = time.monotonic()
    client("write", mr=0, rmr=0, len=4096)
    expect_failure(client, "RETRY_EXC_ERR", posted, *bounds(ack, retry))


@case("lost", "the server's retry count is not used", needs=(lab.LIMITED_RETRIES,))
def servers_retry_count(test):
    """
    With the server's count the write would fail after 20 ms; the client's count 7 is unlimited.
    """
    server, _, _, port = with_settings(test, server={"ack": 20, "retry": 0})
    cut(port)
    post(server, "write")
    expect_no_event(server)
    mend(port)
    server.completion(timeout=TIMEOUT * 1000)


@case("lost", "no receive: the sender's own RNR retry count is not used", needs=(lab.WAITING_MESSAGES,))
def senders_rnr_count(test):
    server, client, *_ = with_settings(test, server={"rnr": 7}, client={"rnr": 0})
    post(client, "send")
    expect_no_event(client)
    server("recv", mr=0, len=8)
    client.completion(timeout=TIMEOUT * 1000)


@case("lost", "no receive: the {sender} uses the RNR retry count of the {receiver}: RNR_RETRY_EXC_ERR "
      "in time, {timer}", [{"receiver": "client", "sender": "server", "count": 0, "timer": "default timer"},
                           {"receiver": "server", "sender": "client", "count": 2, "timer": "default timer"},
                           {"receiver": "server", "sender": "client", "count": 2, "timer": "100 ms"},
                           {"receiver": "client", "sender": "server", "count": 2, "timer": "100 ms"}],
      needs=(lab.WAITING_MESSAGES,))
def receivers_rnr_count(test, receiver, sender, count, timer):
    # Milliseconds between two tries: the default timer of Linux's CM, and InfiniBand's first timer
    # above 100.
    pause, settings = (655, {}) if timer == "default timer" else (123, {"rnr-timer": 100})
    sides = with_settings(test, **{receiver: {"rnr": count, **settings}})
    side = sides[("server", "client").index(sender)]
    expect_failure(side, "RNR_RETRY_EXC_ERR", post(side, "send"), count * pause, (count + 1) * pause)


# ---- no outstanding operation --------------------------------------------------------------


@case("lost", "link down, an idle connection: neither side has an event; a prepared read fails, {how}",
      [{"how": "in the configured time", "settings": {"client": {"ack": 100, "retry": 3}},
        "needs": (lab.LIMITED_RETRIES,)},
       {"how": "after the program's own time limit", "settings": {}}])
def idle(test, how, settings):
    """
    The pattern of rpma_failures(7): on every device a missing reply is sufficient, and all objects
    can be deleted.
    """
    server, client, port, _ = with_settings(test, **settings)
    client("batch-new", ops=1)
    client("read", batch=0, mr=0, rmr=0, len=8)
    for _ in range(3):
        client("batch-post")
        client.completion(timeout=TIMEOUT * 1000)
    cut(port)
    for side in (client, server) if settings else ():
        expect_no_event(side)
    posted = time.monotonic()
    client("batch-post")
    if settings:
        expect_failure(client, "RETRY_EXC_ERR", posted, *bounds(100, 3))
    else:
        expect_no_event(client, seconds=1)
    began = time.monotonic()
    for verb in ("disconnect", "batch-delete", "conn-delete"):
        client(verb)
    expect(milliseconds(began) < 10000, True, "disconnecting and deleting do not wait for the other side")
    mend(port)
    server("conn-delete")
    check_new_side(test, server)


# ---- iWARP ---------------------------------------------------------------------------------

TCP_RETRIES = "net.ipv4.tcp_retries2"


def limit_tcp(test, retries):
    """Sets a value as an operator would; the end of the case restores it."""
    for number in (1, 2):
        on_host = lab.on(lab.host(number), "sysctl", "-nq")
        before = lab.run(*on_host, TCP_RETRIES).strip()
        lab.run(*on_host, "-w", f"{TCP_RETRIES}={retries}")
        test.undo.callback(lab.run, *on_host, "-w", f"{TCP_RETRIES}={before}")


@case("lost", "TCP retransmits: {verb}, then CLOSED at TCP's limit",
      [{"verb": verb, "status": status} for verb, status in
       (("write", "SUCCESS"), ("send", "SUCCESS"), ("read", "WR_FLUSH_ERR"))],
      lacks=lab.LIMITED_RETRIES)
def tcp_limit(test, verb, status):
    """The settings allow a fraction of a second; two retries of TCP need more than one second."""
    limit_tcp(test, 2)
    server, client, port, _ = with_settings(test, client={"ack": 20, "retry": 0})
    server("recv", mr=0, len=8)
    cut(port)
    posted = post(client, verb)
    if status != "SUCCESS":
        client.refuses("ERR_TIMEOUT", "wc", timeout=1000)
    client.completion(status, timeout=300000)
    answer = client("event", timeout=300000)
    if answer["event"] == "UNREACHABLE":  # expect_no_event() describes this event
        answer = client("event", timeout=300000)
    expect(answer["event"], "CLOSED", "event")
    expect(milliseconds(posted) > 1000, True, "TCP retransmits for longer than the settings allow")


@case("lost", "an idle connection, on which TCP retransmits nothing, stays established",
      lacks=lab.LIMITED_RETRIES)
def tcp_idle(test):
    limit_tcp(test, 1)
    server, client, port, _ = with_settings(test)
    cut(port)
    for side in (client, server):
        expect_no_event(side, seconds=5)
