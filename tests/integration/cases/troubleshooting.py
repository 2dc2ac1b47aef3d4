# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Provokes each failure of rpma_troubleshooting(7). Cases of other groups cover some of them (shows=).
"""

import errno
import glob
import os

from harness import lab, page
from harness.case import PORT, TABLE, case, connect, connected, listen, listening, request
from harness.side import ALWAYS, LOCAL_USAGES, expect, wait_until

from .addresses import OTHER_NETWORK, add_other_network, wait_for_gid

ENOMEM, EMFILE = "12", "24"


@case("troubleshooting", "rpma_troubleshooting(7) and the cases have the same entries")
def complete(test):
    expect(page.faults(), [], "defects of the page that hide entries")
    shown = {name for one in TABLE for name in one.shows}
    wanted = {name for name, entry in page.entries().items() if not entry.elsewhere}
    expect(sorted(wanted - shown), [], "entries that no case shows")
    expect(sorted(shown - wanted), [], "cases that show no entry, or one that is not on soft-RoCE")


# Entries shown by a call without a connection: (configuration of a connection, command, its
# values).
ABSENT = "10.77.0.250"
REFUSED = {
    "local: no device": (None, "context", {"addr": "0.0.0.0"}),
    "remote: resolve": (None, "context", {"addr": OTHER_NETWORK["IPv4"] + "9", "remote": 1}),
    "listen: bind": (None, "listen", {"addr": ABSENT, "port": PORT}),
    "request: no network": (None, "req-new", {"addr": "192.0.2.1", "port": PORT}),
    "request: no route": ({"timeout": 500}, "req-new", {"addr": ABSENT, "port": PORT}),
    "request: cq too large": ({"cq": 5000000}, "req-new", {}),
    "request: sq too large": ({"sq": 5000000}, "req-new", {}),
    "request: too much inline": ({"inline": 100000}, "req-new", {}),
    "srq: too large": (None, "srq", {"rq": 5000000}),
    "request: unknown service": (None, "req-new", {"addr": ABSENT, "port": "rpma-has-no-service"}),
}


@case("troubleshooting", "local calls are refused with the log lines of the page",
      shows=(*REFUSED, "listen: port", "listen: port taken", "remote region: short", "remote region: no usage",
             "request: small cq", "steps: connect early"))
def refused(test):
    add_other_network(test, 2)
    server, client = test.peers()
    other = test.side(1, "second server")
    listen(server)
    there = {"addr": server.address, "port": PORT}
    for cfg, verb, values in REFUSED.values():
        client("cfg", **(cfg or {}))
        client.refuses("RPMA_E_PROVIDER", verb, **(values or there), **({"cfg": 0} if cfg else {}))
    other.refuses("RPMA_E_PROVIDER", "listen", **there)
    other.refuses("RPMA_E_INVAL", "listen", addr=server.address, port=65536)
    client("cfg", sq=30000, rq=30000)
    client("req-new", cfg=0, **there)
    client("req-delete")
    for length in (20, 21):  # the second one has a byte after the last address
        client.refuses("RPMA_E_INVAL", "remote", desc="ff" * length)
    client.refuses("RPMA_E_INVAL", "remote", desc="ff" * 20 + "00")
    client("req-start", **there)
    client.refuses("RPMA_E_INVAL", "connect")


@case("troubleshooting", "no device for the loopback address",
      shows=("local: no device", "request: loopback"))
def loopback(test):
    """librdmacm uses another host's device for this address."""
    side = test.side(1)
    side.checked = False
    side.refuses("RPMA_E_PROVIDER", "context", addr="127.0.0.1")
    side.refuses("RPMA_E_PROVIDER", "req-new", addr="127.0.0.1", port=PORT)


@case("troubleshooting", "refused between two sides: inline data, persistence, unpacked or too long private data",
      shows=("flush: no direct write", "flush: persistent usage",
             "write: too much inline", "unpack: something else", "connect", "accept", "reject: data"))
def refused_by_two(test):
    """
    The limits of InfiniBand and RoCE are 56, 196 and 148 bytes. Soft-RoCE pads private data with
    zeros, so a peer that sent none delivers zeros.
    """
    lab.need_virtual("the limits of soft-RoCE")
    server, client = listening(test)
    client("cfg", inline=64)
    connect(server, client, client_data="77", client_cfg=0)
    client.refuses("RPMA_E_PROVIDER", "write", mr=0, rmr=0, len=4096, flags=ALWAYS | 8)
    client("write", mr=0, rmr=0, len=64, flags=ALWAYS | 8)
    client.completion(opcode="WRITE")
    client.refuses("RPMA_E_NOSUPP", "flush", rmr=0, len=8, persistent=1)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    client("remote", rmr=1, desc=server("reg", mr=1, size=4096, usage=LOCAL_USAGES)["desc"])
    for persistent in (0, 1):
        client.refuses("RPMA_E_NOSUPP", "flush", rmr=1, len=8, persistent=persistent)
    for side in (client, server):
        side.refuses("RPMA_E_INVAL", "unpack")
    client("req-new", req=1, addr=server.address, port=PORT)
    client.refuses("RPMA_E_PROVIDER", "connect", req=1, conn=1, pdata="ab" * 57)
    for number, taken, answers, most in ((2, "next-req", "connect", 196), (3, "next-incoming", "req-reject", 148)):
        request(server, client, number)
        server(taken, req=number)
        server.refuses("RPMA_E_PROVIDER", answers, req=number, pdata="77" * (most + 1))
        client.event("REJECTED", conn=number)


@case("troubleshooting", "no file descriptor is available",
      shows=("request: no descriptor", "request: channel"))
def no_descriptors(test):
    """
    Raises the limit by one until a request has all its descriptors. Without one, librdmacm reports
    ENOMEM.
    """
    lab.need_virtual("a limit of descriptors")
    server, client = test.peers()
    listen(server)
    used = {int(fd) for fd in os.listdir(f"/proc/{client.pid}/fd")}
    for limit in (number for number in range(1024) if number - 1 not in used):
        lab.run("prlimit", "--pid", str(client.pid), f"--nofile={limit}:1024")
        code, answer = client.execute("req-new", addr=server.address, port=PORT)
        if code == "ok":
            break
        expect((code, answer.get("errno") in (ENOMEM, EMFILE)), ("RPMA_E_PROVIDER", True),
               f"the request within {limit} descriptors")
    client("req-delete")


LOCAL_PORTS = "net.ipv4.ip_local_port_range"


@case("troubleshooting", "every local port is in use", shows=("request: no local port",))
def no_local_port(test):
    lab.need_virtual("a setting of the network")
    server, client = test.peers()
    listen(server)
    setting = lab.on(lab.host(2), "sysctl", "-nq")
    before = lab.run(*setting, LOCAL_PORTS).strip()
    test.undo.callback(lab.run, *setting, "-w", f"{LOCAL_PORTS}={before}")
    lab.run(*setting, "-w", f"{LOCAL_PORTS}=40000 40003")
    for number in range(4):
        client("req-new", req=number, addr=server.address, port=PORT)
    client.refuses("RPMA_E_PROVIDER", "req-new", errno=str(errno.EADDRNOTAVAIL), req=4, addr=server.address,
                   port=PORT)
    for number in range(4):
        client("req-delete", req=number)


@case("troubleshooting", "the client has ended before the server replies: {answer}",
      [{"answer": answer, "shows": shows} for answer, shows in
       (("connect", ("accept: client is gone",)), ("next-req", ("next request: client is gone",)),
        ("req-reject", ()), ("req-delete", ()))])
def client_has_ended(test, answer):
    server, client = listening(test)
    request(server, client)
    if answer != "next-req":
        server("next-req")
    client.kill()
    wait_until(lambda: lab.resources()[client.device] == test.before[client.device], "the client's objects are deleted")
    server.refuses("RPMA_E_PROVIDER", answer, errno=str(errno.EINVAL))
    expect("the client may have timed out or exited" in test.stderr(), True, "the log names the reason")


@case("troubleshooting", "the link address of the other side changes", shows=("unreachable: established",))
def link_address_changes(test):
    lab.need_virtual("an entry of the neighbour table")
    server, client = connected(test)
    neighbour = ["ip", "-n", lab.host(2), "neigh"]
    lab.run(*neighbour, "replace", server.address, "lladdr", "02:00:00:00:00:99", "dev", "veth0")
    client.event("UNREACHABLE")
    lab.run(*neighbour, "del", server.address, "dev", "veth0")
    lab.wait_for_host(2, None, server.address)


def second_device(test, number):
    """Adds another RDMA device to a host, on an interface of its own. Returns its address."""
    address = add_other_network(test, number)["IPv4"]
    host = lab.host(number)
    test.undo.callback(lab.run, "rdma", "link", "delete", "rxe9")
    lab.run(*lab.on(host, "rdma", "link", "add", "rxe9", "type", "rxe", "netdev", "other0"))
    wait_for_gid("rxe9", address)
    return address


@case("troubleshooting", "a request, or a request in steps, uses another device than the peer's",
      shows=("next request: another device", "steps: another device"))
def other_device(test):
    lab.need_virtual("a second device")
    server = test.start(1, "server", checked=False)
    server.address = second_device(test, 1)
    test.with_peer(server)
    server("listen", addr="0.0.0.0", port=PORT)
    client = test.side(2, "client")
    there = {"addr": lab.address(lab.host(1)), "port": PORT}
    client("req-new", **there)
    client("connect")
    server.refuses("RPMA_E_PROVIDER", "next-req")
    client.event("REJECTED")
    server("req-start", addr=client.address, port=PORT)
    server.refuses("RPMA_E_PROVIDER", "req-resolve")
    server("req-delete")
    server("release")
    server.quit()


@case("troubleshooting", "the provider's part of libibverbs is missing",
      shows=("provider missing", "local: no ID"))
def no_provider(test):
    lab.need_virtual("a directory that a side finds empty")
    directory, = {os.path.dirname(path) for path in glob.glob("/usr/lib/*/libibverbs/lib*.so")}
    side = test.start(1, checked=False, wrapper=("unshare", "--mount", "sh", "-c",
                                                 'mount -t tmpfs none "$0" && exec "$@"', directory))
    side.refuses("RPMA_E_PROVIDER", "context", addr=side.address)
    side.quit()
