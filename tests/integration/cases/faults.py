# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The other side ends, refuses, hangs or is absent: the remaining side gets an event and continues."""

import errno
import time

from harness import lab
from harness.case import PORT, case, connect, connected, disconnect, listen, listening, request, share_region
from harness.network import cables, cut, mend
from harness.side import expect, wait_until

from .events import expect_device_event
from .survivors import begin_load, check_new_side, expect_load_fails, write_and_check

# The errno of an accept after the client has ended.
GONE = {"siw": errno.ECONNRESET}.get(lab.PROVIDER, errno.EINVAL)
LIMIT = 1000  # milliseconds; a value that a program may choose
# The maximum time for deleting a connection, in seconds: soft-RoCE needs hundredths, soft-iWARP up
# to ten (rpma_devices(7)).
DELETE_S = 30


# ---- the state of both sides -------------------------------------------------------------


def take_request(server, client):
    request(server, client)
    server("next-req")


def accept(server, client):
    take_request(server, client)
    server("connect")


def establish(server, client):
    share_region(server, client)
    connect(server, client)


STAGES = {
    "before it takes the request": request, "before it accepts": take_request, "before it is accepted": take_request,
    "before it takes its event": accept, "while idle": establish,
    "during writes": lambda server, client: begin_load(server, client, 4 << 20),
}
ACTIONS = {
    "hangs": lambda side: None,  # its kernel receives messages that the process does not read
    "killed": lambda side: side.kill(),
    "refuses": lambda side: side("req-delete"),
    "shuts its endpoint down": lambda side: side("ep-shutdown"),
    "deletes the connection": lambda side: side("conn-delete"),
}
ENDS = [dict(zip(("who", "how", "when", "event", "shows"), row)) for row in (
    ("server", "shuts its endpoint down", "before it takes the request", "REJECTED"),
    ("server", "refuses", "before it accepts", "REJECTED", ("rejected: program",)),
    ("server", "killed", "before it accepts", "REJECTED"),
    ("server", "hangs", "before it takes the request", "no event within its time limit"),
    ("server", "hangs", "before it accepts", "no event within its time limit"),
    ("client", "cut off", "before it is accepted", "no event within its time limit"),
    ("client", "hangs", "before it takes its event", "no event within its time limit"),
    ("client", "killed", "before it takes its event", "REJECTED"),
    ("server", "killed", "while idle", "CLOSED"),
    ("client", "killed", "while idle", "CLOSED"),
    ("client", "deletes the connection", "while idle", "CLOSED"),
    ("server", "killed", "during writes", "CLOSED"),
    ("client", "killed", "during writes", "CLOSED"),
)]
# These cases need a device: the kernel acts for an ended process, or a page cites the case.
NEEDS_KERNEL = {("client", "before it is accepted"), ("server", "before it takes the request"),
                 ("server", "while idle"), ("server", "during writes"), ("client", "during writes")}
for row in ENDS:
    row["fabric"] = (row["who"], row["when"]) not in NEEDS_KERNEL


@case("faults", "{who} {how} {when}: the other side gets {event}", ENDS, limit=90)
def side_ends(test, who, how, when, event):
    """The provider determines the event of a server whose client ends before the connection is established."""
    port = cables(test)[1] if how == "cut off" else None
    server, client = test.peers()
    listen(server)
    before = {side: side.descriptors() for side in (server, client)}
    STAGES[when](server, client)
    ending, remaining = (server, client) if who == "server" else (client, server)
    if port:
        cut(port)
        server("connect")
    else:
        ACTIONS[how](ending)
    answer = expect_load_fails(client) if when == "during writes" and remaining is client else {}
    is_open = lab.PROVIDER != "rxe" and who == "client" and when.startswith("before")
    if is_open or "no event" in event:
        result = wait_and_delete(remaining)
        test.transcript.append(f"{who} {how} {when}: {result}")
        expect(is_open or result == "ERR_TIMEOUT", True, f"{remaining.name} got {result}")
    else:
        if "event" not in answer:  # a completion may be first
            remaining.event(event)
        if when == "while idle" and remaining is client and not lab.lacks(lab.LATE_COMPLETIONS):
            late_write(client)
        remaining("conn-delete")
    if when.startswith("before"):
        test.wait_until_equal(remaining.descriptors, before[remaining], f"the {remaining.name}'s descriptors")
    if ending.is_alive:
        continue_hung_side(server, client, who, how, when)
    if port:
        mend(port)
    check_new_side(test, remaining if remaining is server or not server.is_alive else server)


def wait_and_delete(side):
    """
    The pattern of rpma_conn_next_event(3): wait with poll(2) until the limit, then delete. Returns
    the event.
    """
    began = time.monotonic()
    code, answer = side.execute("event", timeout=LIMIT)
    side("conn-delete")
    spent = time.monotonic() - began
    expect(spent < LIMIT / 1000 + DELETE_S, True, f"{side.name}: deleted after {spent:.1f} s")
    return answer.get("event", code)


def late_write(client):
    client("disconnect")
    client("write", mr=0, rmr=0, len=16, ctx=1)
    expect(client.completion("WR_FLUSH_ERR").ctx, 1, "op_context")


def continue_hung_side(server, client, who, how, when):
    """The side that hung continues; a provider may report that the other side has ended."""
    if who == "client" and how != "deletes the connection":
        client("conn-delete")  # otherwise its kernel repeats the request once the cable is mended
    elif how == "hangs" and when == "before it accepts":
        server.code("req-delete")
    elif how == "hangs" and server.code("next-req") == "ok" and server.code("connect") == "ok":
        wait_and_delete(server)
    elif how == "shuts its endpoint down":
        listen(server)


@case("faults", "client ends between request and accept: the accept fails, the next works")
def client_ends(test):
    """The next client's request arrives after the first client's end is detected."""
    server, client = test.peers()
    other = test.side(2, "new client")
    share_region(server, other, number=9)
    listen(server)
    take_request(server, client)
    client.kill()
    request(server, other, 9)
    server("next-req", req=9)
    server.refuses("RPMA_E_PROVIDER", "connect", errno=str(GONE))
    server("connect", req=9, conn=9)
    other.event("ESTABLISHED", conn=9)
    server.event("ESTABLISHED", conn=9)
    write_and_check(server, other, 9, region=9)
    disconnect(other, server, 9)


@case("faults", "endpoint shut down with requests pending: the accepted one works", fabric=True)
def endpoint_shut_down(test):
    server, client = listening(test)
    take_request(server, client)
    server("ep-shutdown")
    server("connect")
    for side in (client, server):
        side.event("ESTABLISHED")
    write_and_check(server, client)
    disconnect(client, server)


# ---- no listener, no route -----------------------------------------------------------------


@case("faults", "no listener: client gets REJECTED", shows=("rejected: no listener",))
def no_listener(test):
    server, client = test.peers()
    client("req-new", addr=server.address, port="7999")
    if lab.lacks(lab.CONNECT_IN_BACKGROUND):
        client.refuses("RPMA_E_PROVIDER", "connect")
        return
    client("connect")
    client.event("REJECTED")


@case("faults", "no answer: client gets UNREACHABLE", limit=150, shows=("unreachable",))
def unreachable(test):
    """
    Uses a host of its own, whose cable is unplugged between the request and the connect, and
    another address of the server: the kernel keeps the connections of all namespaces in one table,
    by address and interface number, so a lost neighbour also ends connections in other namespaces.
    """
    lab.need_virtual("a cable that can be pulled")
    lab.need(lab.HOSTS[2:], "third host")
    client, server = test.side(3, "client"), test.side(1, "server")
    address = client.address + "1"
    lab.run("ip", "-n", lab.host(1), "addr", "add", address + "/24", "dev", "veth0")
    wait_until(lambda: server.code("listen", addr=address, port=PORT) == "ok", "the device has the new address")
    lab.wait_for_host(3, None, address)
    client("req-new", addr=address, port=PORT)
    test.undo.callback(lab.wait_for_host, 3, None, server.address, seconds=60)
    test.undo.callback(mend, "port3")
    cut("port3")
    if lab.lacks(lab.CONNECT_IN_BACKGROUND):
        client.refuses("RPMA_E_PROVIDER", "connect")
        return
    client("connect")
    server("release")
    server.quit()
    expect(client("event", timeout=120000)["event"], "UNREACHABLE", "event")


# ---- no device ---------------------------------------------------------------------------


@case("faults", "device of the {removed} removed while it waits: LOST there, CLOSED at the other "
      "side, every object can be deleted", [{"removed": "server"}, {"removed": "client"}],
      needs=(lab.REMOVAL_IN_USE,), shows=("device removed",))
def device_removed(test, removed):
    lab.need_virtual("a device that can be removed")
    server, client = connected(test)
    warnings = lab.kernel_warnings()
    lost, other = (server, client) if removed == "server" else (client, server)
    waits, answer = {"server": ("next-req", "RPMA_E_INVAL"),
                     "client": ("cq-wait", "RPMA_E_PROVIDER")}[removed]
    lost.begin(waits, timeout=0)
    host = lab.host(1 if removed == "server" else 2)
    test.undo.callback(lab.add_device, lost.device, host)
    lab.run("rdma", "link", "delete", lost.device)
    expect(lost.read_reply()[0], answer, f"{removed}: end of {waits}")
    lost.event("LOST")
    other.event("CLOSED")
    expect_device_event(lost, "DEVICE_GONE")
    lost("nonblock", fd="device")
    lost.refuses("RPMA_E_NO_EVENT", "device-event", polled=0)
    lost.refuses("RPMA_E_PROVIDER", "send", mr=0, len=8)
    lost.refuses("RPMA_E_NO_COMPLETION", "wc", timeout=0)
    lost.refuses("RPMA_E_PROVIDER", "cq-wait")
    lost.refuses("RPMA_E_PROVIDER", "disconnect")
    for verb in ("conn-delete", "ep-shutdown", "dereg", "peer-delete"):
        lost(verb)
    lost.refuses("RPMA_E_PROVIDER", "context", addr=lost.address)
    lost.quit()
    test.undo.close()
    other("disconnect")
    expect(lab.kernel_warnings(), warnings, "warnings of the kernel")
    check_new_side(test, other)
