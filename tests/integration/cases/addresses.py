# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""IPv6, and names that have several addresses or none."""

import contextlib
import ipaddress
import time

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import Failed, expect

KINDS = {"global": "fd00:77::", "link-local": "fe80::77:"}
NAME = "several.test"
PREFIX = {"IPv4": 24, "IPv6": 64}


def add_address(test, number, address, device="veth0"):
    """On a host of the lab; the address is gone after the case."""
    lab.need_virtual("a new address")
    version = ipaddress.ip_address(address).version
    words = [f"{address}/{PREFIX[f'IPv{version}']}", "dev", device]
    ip = ["ip", "-n", lab.host(number), "addr"]
    lab.run(*ip, "add", *words, *(["nodad"] if version == 6 else []))
    if device == "veth0":
        test.undo.callback(lab.run, *ip, "del", *words)
        wait_for_gid(number, address)


def wait_for_gid(number, address, seconds=30):
    """A device can be used by an address once its table holds that."""
    packed = ipaddress.ip_address(address).packed
    digits = (bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed).hex()
    wanted = ":".join(digits[place:place + 4] for place in range(0, 32, 4))
    deadline = time.monotonic() + seconds
    while wanted not in gids(f"rxe{number}"):
        if time.monotonic() > deadline:
            raise Failed(f"rxe{number} does not take the address {address}")
        time.sleep(0.05)


def gids(device):
    """The first entries of the table; the rest is empty."""
    for index in range(16):
        path = f"/sys/class/infiniband/{device}/ports/1/gids/{index}"
        with open(path, encoding="utf-8") as file, contextlib.suppress(OSError):
            yield file.read().strip()


def work(server, client):
    """One of each: a message, a write with its flush, a read; data go both ways."""
    client("fill", len=4096, seed=1)
    client("write", mr=0, rmr=0, len=4096, flags=1)
    client("flush", rmr=0, len=4096, persistent=0)
    client.completion()
    server("check", len=4096, seed=1)
    client("read", mr=0, off=8192, rmr=0, len=4096)
    client.completion(opcode="READ")
    client("check", off=8192, len=4096, seed=1)
    client("recv", mr=0, off=16384, len=64)
    server("fill", len=64, seed=2)
    server("send", mr=0, len=64)
    server.completion(opcode="SEND")
    client.completion(opcode="RECV")
    client("check", off=16384, len=64, seed=2)


@case("addresses", "IPv6, {kind}: everything between two hosts", [{"kind": k} for k in KINDS])
def ipv6(test, kind):
    sides = []
    for number, name in ((1, "server"), (2, "client")):
        address = f"{KINDS[kind]}{number}"
        add_address(test, number, address)
        side = test.start(number, name)
        side.address = address + ("%veth0" if kind == "link-local" else "")
        test.prepare(side)("peer")
        sides.append(side)
    server, client = sides
    expect(client.device, "rxe2", "device of the address")
    lab.wait_for_host(2, None, server.address)
    share_region(server, client)
    listen(server)
    connect(server, client, server_data="8899", client_data="001122")
    expect(server("pdata")["pdata"][:6], "001122", "data at the server")
    expect(client("pdata")["pdata"][:4], "8899", "data at the client")
    work(server, client)
    disconnect(client, server)
    expect(client("context", addr=server.address, remote=1)["device"], client.device,
           "device towards the server")


def knows(test, number, addresses):
    """What starts a side that finds these addresses behind NAME, in this order."""
    lab.need_virtual("another list of hosts")
    file = test.directory() + "/hosts"
    with open(file, "w", encoding="utf-8") as hosts:
        hosts.write("".join(f"{address} {NAME}\n" for address in addresses))
    wrapper = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"',
               file)
    said = lab.run(*lab.on(lab.host(number), *wrapper, "getent", "ahosts", NAME))
    found = [line.split()[0] for line in said.splitlines() if "STREAM" in line]
    expect((sorted(found), found[-1]), (sorted(addresses), addresses[-1]), f"addresses of {NAME}")
    return wrapper


@case("addresses", "a name without an address: every call says so")
def unknown_name(test):
    server = test.side(1, "server", wrapper=knows(test, 1, [lab.address(lab.host(1))]))
    server("peer")
    unknown = "unknown.invalid"
    for verb, values in (("listen", {"port": PORT}), ("req-new", {"port": PORT}),
                         ("context", {}), ("context", {"remote": 1})):
        server.refuses("RPMA_E_PROVIDER", verb, addr=unknown, **values)
