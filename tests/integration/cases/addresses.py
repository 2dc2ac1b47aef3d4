# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""IPv6, and names that have several addresses or none."""

import ipaddress

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import expect, wait_until

KINDS = {"global": "fd00:77::", "link-local": "fe80::77:"}
NAME = "several.test"
# NOWHERE: networks that a host has, but not through its RDMA device; DISTANT: an address that it has
# through it. getaddrinfo() puts the address first that shares more leading bits with the host's own
# one in that network; DISTANT shares fewer bits with it than NOWHERE. IPv6 comes before IPv4.
NOWHERE = {"IPv4": "10.78.0.", "IPv6": "fd00:78::"}
DISTANT = "10.77.0.129"
PREFIX = {"IPv4": 24, "IPv6": 64}


def add_address(test, number, address, device="veth0"):
    """Adds the address to a host of the lab; the case's end removes it."""
    lab.need_virtual("a new address")
    version = ipaddress.ip_address(address).version
    words = [f"{address}/{PREFIX[f'IPv{version}']}", "dev", device]
    ip = ["ip", "-n", lab.host(number), "addr"]
    lab.run(*ip, "add", *words, *(["nodad"] if version == 6 else []))
    if device == "veth0":
        test.undo.callback(lab.run, *ip, "del", *words)
        wait_for_gid(number, address)


def wait_for_gid(number, address):
    """Waits until the device's GID table holds the address; before that nothing can use the device by it."""
    packed = ipaddress.ip_address(address).packed
    digits = (bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed).hex()
    wanted = ":".join(digits[place:place + 4] for place in range(0, 32, 4))
    wait_until(lambda: wanted in lab.gids(f"rxe{number}"), f"rxe{number} takes the address {address}", 30)


def work(server, client):
    """A write with its flush and a read, so that data go both ways."""
    client("fill", len=4096, seed=1)
    client("write", mr=0, rmr=0, len=4096, flags=1)
    client("flush", rmr=0, len=4096, persistent=0)
    client.completion()
    server("check", len=4096, seed=1)
    client("read", mr=0, off=8192, rmr=0, len=4096)
    client.completion(opcode="READ")
    client("check", off=8192, len=4096, seed=1)
    disconnect(client, server)


@case("addresses", "IPv6, {kind}: everything between two hosts", [{"kind": k} for k in KINDS])
def ipv6(test, kind):
    sides = []
    for number, name in ((1, "server"), (2, "client")):
        address = f"{KINDS[kind]}{number}"
        add_address(test, number, address)
        side = test.start(number, name)
        side.address = address + ("%veth0" if kind == "link-local" else "")
        test.with_peer(side)
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
    expect(client("context", addr=server.address, remote=1)["device"], client.device,
           "device towards the server")


def nowhere(test, number):
    """A network device without an RDMA device; returns addresses on it: {family: address}."""
    lab.need_virtual("another network device")
    lab.run("modprobe", "dummy")
    ip = ["ip", "-n", lab.host(number), "link"]
    lab.run(*ip, "add", "nowhere", "type", "dummy")
    test.undo.callback(lab.run, *ip, "del", "nowhere")
    lab.run(*ip, "set", "nowhere", "addrgenmode", "none", "up")
    own = {family: f"{prefix}{number}" for family, prefix in NOWHERE.items()}
    for address in own.values():
        add_address(test, number, address, "nowhere")
    return own


def knows(test, number, addresses):
    """
    Returns the command prefix that starts a side for which NAME has these addresses, in this order.
    """
    lab.need_virtual("another list of hosts")
    directory = test.directory()
    with open(directory + "/hosts", "w", encoding="utf-8") as hosts:
        hosts.write("".join(f"{address} {NAME}\n" for address in addresses))
    with open(directory + "/nsswitch.conf", "w", encoding="utf-8") as switch:
        switch.write("hosts: files\n")
    mounts = " && ".join(f'mount --bind "$0/{file}" /etc/{file}'
                         for file in ("hosts", "nsswitch.conf"))
    wrapper = ("unshare", "--mount", "sh", "-c", mounts + ' && exec "$@"', directory)
    said = lab.run(*lab.on(lab.host(number), *wrapper, "getent", "ahosts", NAME))
    found = [line.split()[0] for line in said.splitlines() if "STREAM" in line]
    expect((sorted(found), found[-1]), (sorted(addresses), addresses[-1]), f"addresses of {NAME}")
    return wrapper


@case("addresses", "a name with {count} addresses, of which only the last can be used, at either side",
      [{"first": "IPv6", "count": 2}, {"first": "IPv4", "count": 20}])
def names(test, first, count):
    add_address(test, 1, DISTANT)
    lab.wait_for_host(2, None, DISTANT)
    own, _ = (nowhere(test, number)[first] for number in (1, 2))
    addresses = [f"{NOWHERE[first]}{3 + index}" for index in range(count - 1)] + [DISTANT]
    server = test.side(1, "server", wrapper=knows(test, 1, [own, DISTANT]))
    client = test.side(2, "client", wrapper=knows(test, 2, addresses))
    share_region(server, client)
    expect(server("context", addr=NAME)["device"], server.device, "device of the server's name")
    server("listen", addr=NAME, port=PORT)
    server.address = NAME  # the name that the client is given
    connect(server, client)
    work(server, client)
    expect(client("context", addr=NAME, remote=1)["device"], client.device, "device towards the server")


@case("addresses", "a name without an address: every call says so",
      shows=("request: unknown name",))
def unknown_name(test):
    server = test.side(1, "server", wrapper=knows(test, 1, [lab.address(lab.host(1))]))
    unknown = "unknown.invalid"
    for verb, values in (("listen", {"port": PORT}), ("req-new", {"port": PORT}),
                         ("context", {}), ("context", {"remote": 1})):
        server.refuses("RPMA_E_PROVIDER", verb, addr=unknown, **values)
