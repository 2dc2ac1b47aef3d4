# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""IPv6, names that have several addresses or none, and a link address that changes."""

import ipaddress

from harness import lab
from harness.case import PORT, case, connect, disconnect, listen, share_region
from harness.side import expect, wait_until

KINDS = {"global": "fd00:77::", "link-local": "fe80::77:"}
NAME = "several.test"
# OTHER_NETWORK: networks of a host without an RDMA device; DISTANT: an address of its RDMA device.
# getaddrinfo() sorts IPv6 before IPv4, then by the number of leading bits that an address shares
# with the host's own address. DISTANT shares fewer of them than OTHER_NETWORK.
OTHER_NETWORK = {"IPv4": "10.78.0.", "IPv6": "fd00:78::"}
DISTANT = "10.77.0.129"
PREFIX = {"IPv4": 24, "IPv6": 64}


def add_address(test, number, address, device="veth0"):
    """Adds the address to a host of the lab; the end of the case removes it."""
    lab.need_virtual("a new address")
    version = ipaddress.ip_address(address).version
    words = [f"{address}/{PREFIX[f'IPv{version}']}", "dev", device]
    ip = ["ip", "-n", lab.host(number), "addr"]
    lab.run(*ip, "add", *words, *(["nodad"] if version == 6 else []))
    if device == "veth0":
        test.undo.callback(lab.run, *ip, "del", *words)
        wait_for_gid(f"rxe{number}", address)


def wait_for_gid(device, address):
    """Waits until the GID table of the device holds the address. The address is unusable until then."""
    packed = ipaddress.ip_address(address).packed
    digits = (bytes(10) + b"\xff\xff" + packed if len(packed) == 4 else packed).hex()
    wanted = ":".join(digits[place:place + 4] for place in range(0, 32, 4))
    wait_until(lambda: wanted in lab.gids(device), f"{device} takes the address {address}", 30)


def exchange_data(server, client):
    """Writes, flushes and reads back, so that data flows in both directions."""
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
    exchange_data(server, client)
    expect(client("context", addr=server.address, remote=1)["device"], client.device,
           "device towards the server")


def add_other_network(test, number):
    """Creates a network device without an RDMA device; returns its addresses as {family: address}."""
    lab.need_virtual("another network device")
    lab.run("modprobe", "dummy")
    ip = ["ip", "-n", lab.host(number), "link"]
    lab.run(*ip, "add", "other0", "type", "dummy")
    test.undo.callback(lab.run, *ip, "del", "other0")
    lab.run(*ip, "set", "other0", "addrgenmode", "none", "up")
    own = {family: f"{prefix}{number}" for family, prefix in OTHER_NETWORK.items()}
    for address in own.values():
        add_address(test, number, address, "other0")
    return own


def wrapper_with_hosts(test, number, addresses):
    """
    Returns the command prefix that starts a side where NAME resolves to these addresses, in this
    order.
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
    output = lab.run(*lab.on(lab.host(number), *wrapper, "getent", "ahosts", NAME))
    found = [line.split()[0] for line in output.splitlines() if "STREAM" in line]
    expect((sorted(found), found[-1]), (sorted(addresses), addresses[-1]), f"addresses of {NAME}")
    return wrapper


@case("addresses", "a name with an IPv6 and an IPv4 address, only the second usable, on each side")
def names(test):
    add_address(test, 1, DISTANT)
    lab.wait_for_host(2, None, DISTANT)
    own, _ = (add_other_network(test, number)["IPv6"] for number in (1, 2))
    addresses = [OTHER_NETWORK["IPv6"] + "3", DISTANT]
    server = test.side(1, "server", wrapper=wrapper_with_hosts(test, 1, [own, DISTANT]))
    client = test.side(2, "client", wrapper=wrapper_with_hosts(test, 2, addresses))
    share_region(server, client)
    expect(server("context", addr=NAME)["device"], server.device, "device of the server's name")
    server("listen", addr=NAME, port=PORT)
    server.address = NAME  # the name that the client resolves
    connect(server, client)
    exchange_data(server, client)
    expect(client("context", addr=NAME, remote=1)["device"], client.device, "device towards the server")


@case("addresses", "a name without an address: every call reports it",
      shows=("request: unknown name",))
def unknown_name(test):
    server = test.side(1, "server", wrapper=wrapper_with_hosts(test, 1, [lab.address(lab.host(1))]))
    unknown = "unknown.invalid"
    for verb, values in (("listen", {"port": PORT}), ("req-new", {"port": PORT}),
                         ("context", {}), ("context", {"remote": 1})):
        server.refuses("RPMA_E_PROVIDER", verb, addr=unknown, **values)


@case("addresses", "port 0, a source port, and the addresses of both sides",
      shows=("request: source port taken",), fabric=True)
def ports(test):
    server, client = test.peers()
    server("listen", addr=server.address, port="0")
    there, here = server("ep-addr"), {"addr": client.address, "port": "7301"}
    expect(there["addr"], server.address, "address of the endpoint")
    expect(0 < int(there["port"]) < 65536, True, f"port {there['port']} of the endpoint")
    client("cfg", **{"source": here["addr"], "source-port": here["port"]})
    wanted = {"addr": server.address, "port": there["port"], "cfg": 0}
    for number in range(2):
        client("req-start", req=number, **wanted)
        client("req-resolve", req=number)
        client("req-setup", req=number)
        expect(client("req-local-addr", req=number), here, "local address of the client's request")
        expect(client("req-peer-addr", req=number), there, "address of the server")
        client("connect", req=number, conn=number)
        server("next-req", req=number)
        expect(server("req-local-addr", req=number), there, "local address of the server's request")
        expect(server("req-peer-addr", req=number), here, "address of the client")
        server("connect", req=number, conn=number)
        for side, local, peer in ((client, here, there), (server, there, here)):
            side.event("ESTABLISHED", conn=number)
            expect(side("local-addr", conn=number), local, f"local address of the {side.name}")
            expect(side("peer-addr", conn=number), peer, f"address of the other side of the {side.name}")
        client.refuses("RPMA_E_PROVIDER", "req-new", req=2, **wanted)  # the port is in use
        disconnect(client, server, number)
        client("conn-delete", conn=number)


# ---- a bond that has the link address of its active interface -----------------------------------

BOND, BOND_PEER = "10.90.0.1", "10.90.0.2"  # of host1 and host2
# Each failover needs an interface of its own: Linux compares a new link address with the one at the
# time of the connection, so a failover back to the first interface would cause no event.
BONDED = ("bonded0", "bonded1", "bonded2")
# Linux derives the packet size from the client's interface even if the server's MTU is smaller.
HOST_MTU = "9000"


def link_address(number, device):
    return lab.run("ip", "netns", "exec", lab.host(number), "cat", f"/sys/class/net/{device}/address").strip()


def bond(test):
    """Creates a device on a bond of host1. Returns the function that activates the bond's next interface."""
    lab.need_virtual("a bond")
    lab.run("modprobe", "bonding", "max_bonds=0")
    ip = ["ip", "-n", lab.host(1)]
    lab.run(*ip, "link", "add", "bond0", "type", "bond", "mode", "active-backup", "fail_over_mac", "active")
    test.undo.callback(lab.run, *ip, "link", "del", "bond0")
    for name in BONDED:
        lab.run("ip", "link", "add", "port-" + name, "type", "veth", "peer", "name", name, "netns", lab.host(1))
        test.undo.callback(lab.run, "ip", "link", "del", "port-" + name)
        lab.run("ip", "link", "set", "port-" + name, "master", "bridge0", "mtu", HOST_MTU, "up")
        lab.run(*ip, "link", "set", name, "master", "bond0")
    lab.run(*ip, "link", "set", "bond0", "mtu", HOST_MTU)
    lab.run(*ip, "addr", "add", BOND + "/24", "dev", "bond0")
    lab.run(*ip, "link", "set", "bond0", "type", "bond", "active_slave", BONDED[0])
    lab.run(*ip, "link", "set", "bond0", "up")
    lab.run(*lab.on(lab.host(1), "rdma", "link", "add", "rxebond", "type", lab.PROVIDER, "netdev", "bond0"))
    test.undo.callback(lab.run, *lab.on(lab.host(1), "rdma", "link", "del", "rxebond"))
    wait_for_gid("rxebond", BOND)
    add_address(test, 2, BOND_PEER)

    def wait_for_each_other():
        for number, address in ((1, BOND_PEER), (2, BOND)):
            lab.wait_for_host(number, None, address)

    wait_for_each_other()
    test.before = lab.resources()
    others = iter(BONDED[1:])

    def fail_over():
        lab.run(*ip, "link", "set", "bond0", "type", "bond", "active_slave", name := next(others))
        wait_until(lambda: link_address(1, "bond0") == link_address(1, name), f"the bond has the address of {name}")
        wait_for_each_other()
    return fail_over


@case("addresses", "a bond changes its active interface: an endpoint, a request and a connection get the event and "
      "continue")
def bond_of_objects(test):
    fail_over = bond(test)
    sides = bonded, other = [test.start(number, name) for number, name in ((1, "bonded"), (2, "other"))]
    for side, side.address in zip(sides, (BOND, BOND_PEER)):
        test.with_peer(side)
        listen(side)
    share_region(bonded, other)
    connect(bonded, other)
    bonded("req-start", req=1, addr=BOND_PEER, port=PORT)
    bonded("req-resolve", req=1)
    for _ in BONDED[1:]:
        fail_over()
        other.event("UNREACHABLE")  # Linux 6.0 and later
        bonded.refuses("RPMA_E_NO_EVENT", "event")
        # Without O_NONBLOCK, only the event ends this call.
        bonded.refuses("RPMA_E_NO_EVENT", "next-req", timeout=0)
        bonded("req-resolve", req=1)
    bonded("req-delete", req=1)
    for side in sides:
        side("conn-delete")
    connect(bonded, other)
    exchange_data(bonded, other)
