# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
The failures of docs/troubleshooting.md, each made to happen. The cases of other groups show some of
them already (shows=); the rest is here.
"""

import glob
import os
import signal

from harness import lab, page
from harness.case import PORT, TABLE, case, connect, listen, share_region
from harness.side import expect

from .addresses import NOWHERE, nowhere, wait_for_gid

ENOMEM, EMFILE = "12", "24"


@case("troubleshooting", "each entry of docs/troubleshooting.md has a case, and no other has one")
def complete(test):
    expect(page.faults(), [], "what no test would see")
    shown = {name for one in TABLE for name in one.shows}
    wanted = {name for name, entry in page.entries().items() if not entry.elsewhere}
    expect(sorted(wanted - shown), [], "entries that no case shows")
    expect(sorted(shown - wanted), [], "cases that show no entry, or one that is not on soft-RoCE")


@case("troubleshooting", "no device behind {what}: {verb} is refused",
      [{"what": "a wildcard", "verb": "context", "values": {"addr": "0.0.0.0"},
        "shows": ("local: no device",)},
       {"what": "the loopback address", "verb": "context", "values": {"addr": "127.0.0.1"},
        "shows": ("local: no device",)},
       {"what": "another interface", "verb": "context",
        "values": {"addr": NOWHERE["IPv4"] + "9", "remote": 1}, "shows": ("remote: resolve",)},
       {"what": "the loopback address", "verb": "req-new",
        "values": {"addr": "127.0.0.1", "port": PORT}, "shows": ("request: loopback",)},
       {"what": "an address of another machine", "verb": "listen",
        "values": {"addr": "10.77.0.250", "port": PORT}, "shows": ("listen: bind",)}])
def no_device(test, what, verb, values):
    side = test.side(1)
    side.checked = what != "the loopback address"  # librdmacm takes another host's device for it
    if what == "another interface":
        nowhere(test, 1)
    side("peer")
    side.refuses("RPMA_E_PROVIDER", verb, **values)


@case("troubleshooting", "no network leads to the address", shows=("request: no network",))
def no_network(test):
    client = test.side(2)
    client("peer")
    client.refuses("RPMA_E_PROVIDER", "req-new", addr="192.0.2.1", port=PORT)


@case("troubleshooting", "a port that another program has", shows=("listen: port taken",))
def port_taken(test):
    first, second = test.side(1, "first"), test.side(1, "second")
    for side in (first, second):
        side("peer")
    listen(first)
    second.refuses("RPMA_E_PROVIDER", "listen", addr=second.address, port=PORT)


@case("troubleshooting", "a queue that the device cannot make: {queue}",
      [{"queue": "cq", "shows": ("request: cq too large",)},
       {"queue": "sq", "shows": ("request: sq too large",)},
       {"queue": "srq", "shows": ("srq: too large",)}])
def too_large(test, queue):
    server, client = test.peers()
    listen(server)
    if queue == "srq":
        client.refuses("RPMA_E_PROVIDER", "srq", rq=5000000)
        return
    client("cfg", **{queue: 5000000})
    client.refuses("RPMA_E_PROVIDER", "req-new", addr=server.address, port=PORT, cfg=0)


@case("troubleshooting", "no file descriptor is left",
      shows=("request: no descriptor", "request: channel"))
def no_descriptors(test):
    """
    The limit grows by one from try to try, until a request has all its descriptors. librdmacm
    reports ENOMEM when it has none.
    """
    lab.need_virtual("a limit of descriptors")
    server, client = test.peers()
    listen(server)
    used = {int(fd) for fd in os.listdir(f"/proc/{client.pid}/fd")}
    for limit in (number for number in range(1024) if number - 1 not in used):
        lab.run("prlimit", "--pid", str(client.pid), f"--nofile={limit}:1024")
        client.begin("req-new", addr=server.address, port=PORT)
        code, answer = client.take()
        if code == "ok":
            break
        expect((code, answer.get("errno") in (ENOMEM, EMFILE)), ("RPMA_E_PROVIDER", True),
               f"the request within {limit} descriptors")
    client("req-delete")


@case("troubleshooting", "private data that nobody packed", shows=("unpack: something else",))
def not_packed(test):
    """Soft-RoCE pads the client's data with zeros; a server that sent nothing delivers zeros."""
    server, client = test.peers()
    listen(server)
    connect(server, client, client_data="77")
    for side in (client, server):
        side.refuses("RPMA_E_INVAL", "unpack")


@case("troubleshooting", "a full receive queue", shows=("receive",))
def full(test):
    server, client = test.peers()
    share_region(server, client)
    listen(server)
    client("cfg", cq=1000, sq=4, rq=4)
    connect(server, client, client_cfg=0)
    refused = (client.code("recv", mr=0, len=8) for _ in range(500))
    expect(next(code for code in refused if code != "ok"), "RPMA_E_PROVIDER", "recv")


@case("troubleshooting", "a signal ends a wait", shows=("event: signal",))
def interrupted(test):
    server, client = test.peers(environment={"RPMA_LOG": "debug"})
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    client("handle-signal", signal=int(signal.SIGUSR1), restart=0)
    client.begin("event", timeout=0)
    client.wait_until_blocked("rdma_cm")
    client.process.send_signal(signal.SIGUSR1)
    expect(client.take(timeout=30)[0], "RPMA_E_PROVIDER", "event")


def second_device(test, number):
    """Another RDMA device of a host, by an interface of its own; returns its address."""
    address = nowhere(test, number)["IPv4"]
    host = lab.host(number)
    test.undo.callback(lab.run, "rdma", "link", "delete", "rxe9")
    lab.run(*lab.on(host, "rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "nowhere"))
    wait_for_gid(9, address)
    return address


@case("troubleshooting", "a request comes by another device than the peer's",
      shows=("next request: another device",))
def other_device(test):
    lab.need_virtual("a second device")
    address = second_device(test, 1)
    server = test.start(1, "server", checked=False)
    server.address = address
    test.prepare(server)("peer")
    server("listen", addr="0.0.0.0", port=PORT)
    client = test.side(2, "client")
    client("peer")
    client("req-new", addr=lab.address(lab.host(1)), port=PORT)
    client("connect")
    server.refuses("RPMA_E_PROVIDER", "next-req")
    client.event("REJECTED")
    server("release")
    server.begin("quit")
    server.wait_for_end()


@case("troubleshooting", "a request in steps leads over another device than the peer's",
      shows=("steps: another device",))
def steps_to_other_device(test):
    lab.need_virtual("a second device")
    client = test.start(2, "client", checked=False)
    client.address = second_device(test, 2)
    test.prepare(client)("peer")
    client("req-start", addr=lab.address(lab.host(1)), port=PORT)
    client.refuses("RPMA_E_PROVIDER", "req-resolve")
    client("req-delete")
    client("release")
    client.begin("quit")
    client.wait_for_end()


@case("troubleshooting", "connecting before the queues are made", shows=("steps: connect early",))
def connect_early(test):
    server, client = test.peers()
    listen(server)
    client("req-start", addr=server.address, port=PORT)
    client.refuses("RPMA_E_INVAL", "connect")


@case("troubleshooting", "a refusal with too much private data", shows=("reject: data",))
def refused_at_length(test):
    server, client = test.peers()
    listen(server)
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-incoming")
    server.refuses("RPMA_E_PROVIDER", "req-reject", pdata="77" * 149)
    client.event("REJECTED")


@case("troubleshooting", "the provider's part of libibverbs is missing",
      shows=("provider missing", "local: no ID"))
def no_provider(test):
    lab.need_virtual("a directory that a side finds empty")
    directory, = {os.path.dirname(path) for path in glob.glob("/usr/lib/*/libibverbs/lib*.so")}
    finds_no_device(test, ("unshare", "--mount", "sh", "-c",
                           'mount -t tmpfs none "$0" && exec "$@"', directory))


def finds_no_device(test, wrapper=()):
    side = test.start(1, wrapper=wrapper, checked=False)
    side.wait_for_line()
    side.refuses("RPMA_E_PROVIDER", "context", addr=side.address)
    side.begin("quit")
    side.wait_for_end()


@case("troubleshooting", "no RDMA device at all", shows=("local: no ID",))
def no_devices(test):
    lab.need_virtual("a machine without RDMA devices")
    for number, host in enumerate(lab.HOSTS, 1):
        device = f"{lab.PROVIDER}{number}"
        test.undo.callback(lab.add_device, device, host)
        lab.run("rdma", "link", "delete", device)
    finds_no_device(test)
