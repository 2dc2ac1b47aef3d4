#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
The network interfaces of a simulated host: functions of the C library, ioctl(), sysfs and netlink.

usage: EARLY=LIBRARY interfaces.py RDMA-SIM

Each test runs its own function `inside_...` on the fabric. The loopback interface is compared with
that of the kernel.
"""

import ctypes
import errno
import fcntl
import os
import pathlib
import random
import re
import select
import socket
import struct
import subprocess
import sys
import time
import unittest

NET = pathlib.Path("/sys/class/net")
REQUEST, ACK, DUMP, MULTI = 1, 4, 0x300, 2
ERROR, DONE = 2, 3
NEWLINK, GETLINK, GETADDR, GETROUTE, GETNEIGH, GETRULE = 16, 18, 22, 26, 30, 34
LINK, ADDR, ROUTE, NEIGH = struct.Struct("BxHiII"), struct.Struct("BBBBI"), struct.Struct("8BI"), struct.Struct("BxxxiHBB")
UP, BROADCAST, LOOPBACK, RUNNING, MULTICAST, LOWER_UP = 1, 2, 8, 0x40, 0x1000, 0x10000
IOCTL = {"NAME": 0x8910, "CONF": 0x8912, "FLAGS": 0x8913, "ADDR": 0x8915, "BRDADDR": 0x8919, "NETMASK": 0x891b,
         "MTU": 0x8921, "HWADDR": 0x8927, "INDEX": 0x8933, "TXQLEN": 0x8942, "SET FLAGS": 0x8914, "ETHTOOL": 0x8946}
LIBC = ctypes.CDLL(None, use_errno=True)


class Ifaddrs(ctypes.Structure):
    pass


Ifaddrs._fields_ = [("next", ctypes.POINTER(Ifaddrs)), ("name", ctypes.c_char_p), ("flags", ctypes.c_uint),
                    *((name, ctypes.c_void_p) for name in ("address", "mask", "broadcast", "data"))]


def attributes(data):
    """Returns the attributes by type, in their order."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        assert 4 <= length <= len(data), data
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def receive(netlink):
    """Returns the messages of one response as (type, flags, content), and the error number."""
    messages = []
    while True:
        data, sender = netlink.recvfrom(65536)
        assert sender == (0, 0), sender
        while data:
            length, kind, flags, sequence, port = struct.unpack_from("IHHII", data)
            assert 16 <= length <= len(data) and (sequence, port) == (7, netlink.getsockname()[0]), data
            content, data = data[16:length], data[(length + 3) & ~3:]
            if kind in (ERROR, DONE):
                assert not data and (kind == ERROR) == (flags & MULTI == 0), (kind, flags)
                return messages, -struct.unpack_from("i", content)[0]
            messages.append((kind, flags, content))
        if not flags & MULTI and not select.select([netlink], [], [], 0)[0]:
            return messages, 0


def ask(kind, header, *more, flags=REQUEST, netlink=None):
    netlink = netlink or socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    message = header + b"".join(more)
    netlink.sendto(struct.pack("IHHII", 16 + len(message), kind, flags, 7, 0) + message, (0, 0))
    return receive(netlink)


def objects(kind, header, size, *more, flags=REQUEST | DUMP):
    """Returns the objects of a response as (header, attributes)."""
    messages, error = ask(kind, header, *more, flags=flags)
    assert error == 0, os.strerror(error)
    return [(content[:size], attributes(content[size:])) for _, _, content in messages]


def error_of(function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        return error.errno
    return 0


def request(name, number, data=b""):
    with socket.socket() as any_socket:
        return fcntl.ioctl(any_socket, IOCTL[number], struct.pack("16s24s", name, data))[16:]


def ip(value):
    return socket.inet_ntoa(value)


def equal(found, expected):
    assert found == expected, f"{found} instead of {expected}"


# ---- on the fabric ---------------------------------------------------------------------------


def inside_c_library():
    equal(socket.if_nameindex(), [(1, "lo"), (2, "sim0")])
    equal((socket.if_nametoindex("sim0"), socket.if_indextoname(2)), (2, "sim0"))
    LIBC.if_nametoindex(b"eth9")
    equal(ctypes.get_errno(), errno.ENODEV)
    equal(error_of(socket.if_indextoname, 3), errno.ENXIO)
    first, found = ctypes.POINTER(Ifaddrs)(), []
    equal(LIBC.getifaddrs(ctypes.byref(first)), 0)
    entry = first
    while entry:
        each = entry.contents
        family = ctypes.c_ushort.from_address(each.address).value
        at, size = {socket.AF_PACKET: (12, 6), socket.AF_INET: (4, 4), socket.AF_INET6: (8, 16)}[family]
        value, broadcast = (where and ctypes.string_at(where + at, size) for where in (each.address, each.broadcast))
        found.append((each.name.decode(), family, value, broadcast))
        equal(each.flags, UP | LOOPBACK | RUNNING | LOWER_UP if each.name == b"lo" else
              UP | BROADCAST | RUNNING | MULTICAST | LOWER_UP)
        entry = each.next
    LIBC.freeifaddrs(first)
    equal(found, [("lo", socket.AF_PACKET, bytes(6), bytes(6)),
                  ("sim0", socket.AF_PACKET, bytes([0, 0x77, 0, 0, 1, 0]), b"\xff" * 6),
                  ("lo", socket.AF_INET, bytes([127, 0, 0, 1]), None),
                  ("sim0", socket.AF_INET, bytes([10, 77, 0, 1]), bytes([10, 77, 255, 255])),
                  ("lo", socket.AF_INET6, socket.inet_pton(socket.AF_INET6, "::1"), None),
                  ("sim0", socket.AF_INET6, socket.inet_pton(socket.AF_INET6, "fd77::1"), None)])


def inside_ioctl():
    for number, expected in [("ADDR", bytes([2, 0, 0, 0, 10, 77, 0, 1])), ("NETMASK", bytes([2, 0, 0, 0, 255, 255, 0, 0])),
                             ("BRDADDR", bytes([2, 0, 0, 0, 10, 77, 255, 255])), ("MTU", struct.pack("i", 1500)),
                             ("HWADDR", bytes([1, 0, 0, 0x77, 0, 0, 1, 0])), ("INDEX", struct.pack("i", 2)),
                             ("FLAGS", struct.pack("H", UP | BROADCAST | RUNNING | MULTICAST)),
                             ("TXQLEN", struct.pack("i", 1000))]:
        equal(request(b"sim0", number)[:len(expected)], expected)
        equal(error_of(request, b"eth9", number), errno.ENODEV)
    equal(request(b"lo", "INDEX")[:4], struct.pack("i", 1))
    equal(request(b"sim0:1", "INDEX")[:4], struct.pack("i", 2))
    equal(error_of(request, b"sim0:1", "ADDR"), errno.EADDRNOTAVAIL)
    equal(error_of(request, b"sim0", "SET FLAGS"), errno.EPERM)
    buffer = ctypes.create_string_buffer(100)
    with socket.socket() as any_socket:
        name = fcntl.ioctl(any_socket, IOCTL["NAME"], struct.pack("16xi20x", 2))
        equal(name[:16].rstrip(b"\0"), b"sim0")
        equal(error_of(fcntl.ioctl, any_socket, IOCTL["NAME"], struct.pack("16xi20x", 3)), errno.ENODEV)
        for room, used in [(100, 80), (79, 40), (39, 0)]:
            found = fcntl.ioctl(any_socket, IOCTL["CONF"], struct.pack("ixxxxP", room, ctypes.addressof(buffer)))
            equal(struct.unpack_from("i", found)[0], used)
        equal(struct.unpack_from("i", fcntl.ioctl(any_socket, IOCTL["CONF"], struct.pack("ixxxxP", 0, 0)))[0], 80)
        link = ctypes.create_string_buffer(struct.pack("II", 10, 0))  # ETHTOOL_GLINK
        fcntl.ioctl(any_socket, IOCTL["ETHTOOL"], struct.pack("16sP16x", b"sim0", ctypes.addressof(link)))
        equal(struct.unpack_from("II", link)[1], 1)
    equal((buffer.raw[:2], buffer.raw[20:24], buffer.raw[40:44]), (b"lo", bytes([127, 0, 0, 1]), b"sim0"))
    with open("/dev/null", encoding="utf-8") as file:
        equal(error_of(fcntl.ioctl, file, IOCTL["INDEX"], struct.pack("40s", b"sim0")), errno.ENOTTY)


def inside_files(*expected):
    """The arguments are FILE=LINE of the interface, and LINK=TARGET of its links."""
    equal(sorted(path.name for path in NET.iterdir()), ["lo", "sim0"])
    for file, line in (each.split("=") for each in expected):
        path = NET / "sim0" / file
        equal(path.resolve().name if path.is_dir() else path.read_text(encoding="utf-8").strip(), line)
    device, = pathlib.Path("/sys/class/infiniband").iterdir()
    equal((device / "ports/1/gid_attrs/ndevs/0").read_text(encoding="utf-8"), "sim0\n")
    if (NET / "sim0/device").exists():
        equal((NET / "sim0/device").resolve(), (device / "device").resolve())
        equal([path.name for path in (device / "device/net").iterdir()], ["sim0"])
    for file in ("dev", "route", "if_inet6"):
        equal(re.findall(r"^(?:.* )?(sim0|eth\w+)\b", pathlib.Path("/proc/net", file).read_text(encoding="utf-8"), re.M),
              ["sim0"])


def inside_netlink():
    names = [(LINK.unpack(header)[2], each[3]) for header, each in objects(GETLINK, LINK.pack(0, 0, 0, 0, 0), 16)]
    equal(names, [(1, b"lo\0"), (2, b"sim0\0")])
    for header, more in [(LINK.pack(0, 0, 2, 0, 0), b""), (LINK.pack(0, 0, 0, 0, 0), attribute(3, b"sim0\0")),
                         (LINK.pack(0, 0, 0, 0, 0), attribute(3, b"sim0"))]:
        (found, each), = objects(GETLINK, header, 16, more, flags=REQUEST)
        equal(LINK.unpack(found), (0, 1, 2, UP | BROADCAST | RUNNING | MULTICAST | LOWER_UP, 0))
        equal((each[4], each[16], each[1]), (struct.pack("I", 1500), b"\x06", bytes([0, 0x77, 0, 0, 1, 0])))
    found = objects(GETADDR, ADDR.pack(socket.AF_INET, 0, 0, 0, 0), 8)
    equal([(ADDR.unpack(header)[1::3], ip(each[2]), each[3]) for header, each in found],
          [((8, 1), "127.0.0.1", b"lo\0"), ((16, 2), "10.77.0.1", b"sim0\0")])
    equal(len(objects(GETADDR, b"\0", 8)), 4)
    for target, expected in [("10.77.0.2", (2, "10.77.0.1")), ("10.77.0.1", (1, "10.77.0.1")),
                             ("127.9.9.9", (1, "127.0.0.1"))]:
        (_, each), = objects(GETROUTE, ROUTE.pack(2, 32, 0, 0, 0, 0, 0, 0, 0), 12, attribute(1, socket.inet_aton(target)),
                             flags=REQUEST)
        equal((struct.unpack("I", each[4])[0], ip(each[7])), expected)
    main = [(ip(each[1]), ROUTE.unpack(header)[1]) for header, each in
            objects(GETROUTE, ROUTE.pack(2, 0, 0, 0, 0, 0, 0, 0, 0), 12) if each[15] == struct.pack("I", 254)]
    equal(main, [("10.77.0.0", 16)])
    found = objects(GETNEIGH, NEIGH.pack(2, 0, 0, 0, 0), 12)
    equal([(ip(each[1]), each[2]) for _, each in found],
          [(f"10.77.0.{host}", bytes([0, 0x77, 0, 0, host, 0])) for host in (2, 3)])


def inside_netlink_errors():
    """The errors of Linux."""
    for kind, header, more, expected in [
            (GETLINK, LINK.pack(0, 0, 3, 0, 0), b"", errno.ENODEV), (GETLINK, LINK.pack(0, 0, 0, 0, 0), b"", errno.EINVAL),
            (GETLINK, LINK.pack(0, 0, 0, 0, 0), attribute(3, b"eth9\0"), errno.ENODEV), (GETLINK, b"\0", b"", errno.EINVAL),
            (GETROUTE, ROUTE.pack(2, 32, *[0] * 7), attribute(1, bytes([8, 8, 8, 8])), errno.ENETUNREACH),
            (GETNEIGH, NEIGH.pack(2, 2, 0, 0, 0), attribute(1, bytes([10, 77, 0, 9])), errno.ENOENT),
            (NEWLINK, LINK.pack(0, 0, 2, 0, UP), b"", errno.EPERM), (60000, b"\0\0\0\0", b"", errno.EOPNOTSUPP),
            (GETRULE, b"\0", b"", errno.EOPNOTSUPP)]:
        for flags in (REQUEST, REQUEST | ACK):
            equal(ask(kind, header, more, flags=flags), ([], expected))
    equal(ask(NEWLINK, b"", flags=REQUEST | ACK), ([], 0))
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    for address, expected in [((1, 0), errno.ECONNREFUSED), ((0, 1), errno.EPERM)]:
        equal(error_of(netlink.sendto, bytes(20), address), expected)
    other = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 0)
    equal(error_of(other.bind, netlink.getsockname()), errno.EADDRINUSE)
    equal(error_of(socket.socket, socket.AF_NETLINK, socket.SOCK_STREAM, 0), errno.ESOCKTNOSUPPORT)


def inside_netlink_random():
    """A malformed request gets an error, a response or nothing, and does not end the program."""
    chance = random.Random(1)
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    replies = 0
    for _ in range(3000):
        body = bytearray(chance.choice([LINK.pack(0, 0, chance.randrange(4), 0, 0), ROUTE.pack(*[2, 32] + [0] * 7)]) +
                         attribute(chance.randrange(5), b"sim0\0"))
        for _ in range(chance.randrange(4)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        body = body[:chance.randrange(len(body) + 1)]
        length = chance.choice([16 + len(body), chance.randrange(64), 1 << 31])
        netlink.send((struct.pack("IHHII", length, chance.choice([18, 22, 26, 30, chance.randrange(120)]),
                                  chance.choice([REQUEST, REQUEST | DUMP, chance.randrange(65536)]), 7, 0) + body)
                     [:chance.choice([None, None, chance.randrange(64)])])
        while select.select([netlink], [], [], 0)[0]:
            netlink.recv(65536)
            replies += 1
    assert replies > 1000, replies


def inside_sockets():
    """The socket is one of netlink for poll(), dup(), children and the options."""
    first, second = (socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) for _ in range(2))
    equal(first.getsockname(), (os.getpid(), 0))
    assert second.getsockname() != first.getsockname()
    second.bind((12345, 0))
    equal((second.getsockname(), second.getpeername()), ((12345, 0), (0, 0)))
    equal([first.getsockopt(socket.SOL_SOCKET, option) for option in (39, 38, 3)], [socket.AF_NETLINK, 0, socket.SOCK_RAW])
    first.setsockopt(270, 11, 1)  # NETLINK_EXT_ACK
    first.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    equal(error_of(first.setsockopt, 270, 99, 1), errno.ENOPROTOOPT)
    equal(select.select([first], [first], [], 0)[0], [])
    copy = first.dup()
    equal(len(ask(GETLINK, LINK.pack(0, 0, 0, 0, 0), flags=REQUEST | DUMP, netlink=copy)[0]), 2)
    message = struct.pack("IHHII", 16 + LINK.size, GETLINK, REQUEST | DUMP, 7, 0) + LINK.pack(0, 0, 0, 0, 0)
    for send in (first.send, lambda data: os.write(first.fileno(), data), lambda data: first.sendmsg([data[:9], data[9:]]),
                 lambda data: os.writev(first.fileno(), [data[:9], data[9:]])):
        equal(send(message), 32)
        equal(select.select([first], [], [], 0)[0], [first])
        equal(len(receive(first)[0]), 2)
    child = os.fork()
    if child == 0:
        os._exit(len(ask(GETLINK, LINK.pack(0, 0, 0, 0, 0), flags=REQUEST | DUMP, netlink=first)[0]))
    equal(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 2)


def inside_addresses():
    """A socket can have the addresses of its own host only."""
    for family, own, others in [(socket.AF_INET, ["10.77.0.1", "0.0.0.0", "127.0.0.1", "127.5.5.5", "10.77.255.255"],
                                 ["10.77.0.2", "10.77.0.0", "10.77.1.1", "10.78.0.1"]),
                                (socket.AF_INET6, ["fd77::1", "::", "::1", "::ffff:10.77.0.1"], ["fd77::2", "::ffff:10.77.0.2"])]:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            for address in own:
                socket.socket(family, kind).bind((address, 0))
            for address in others:
                equal((address, error_of(socket.socket(family, kind).bind, (address, 0))), (address, errno.EADDRNOTAVAIL))
    # bind() accepts AF_UNSPEC with all IPv4 addresses only.
    for address, expected in [("0.0.0.0", 0), ("10.77.0.1", errno.EAFNOSUPPORT)]:
        bound = socket.socket()
        failed = LIBC.bind(bound.fileno(), struct.pack("=HH4s8x", 0, 0, socket.inet_aton(address)), 16)
        equal((failed != 0, ctypes.get_errno() if failed else bound.getsockname()[0]), (expected != 0, expected or "10.77.0.1"))


def inside_fault(fault):
    """Waits until the fault has occurred: everything shows the same state."""
    limit = time.monotonic() + 30

    def state():
        (header, each), = objects(GETLINK, LINK.pack(0, 0, 2, 0, 0), 16, flags=REQUEST)
        flags = LINK.unpack(header)[3]
        address = request(b"sim0", "HWADDR")[2:8]
        is_running = bool(struct.unpack_from("H", request(b"sim0", "FLAGS"))[0] & RUNNING)
        files = [(NET / "sim0" / name).read_text(encoding="utf-8").strip() for name in ("operstate", "carrier", "address")]
        return (bool(flags & RUNNING), bool(flags & LOWER_UP), flags & UP, each[16][0], each[33][0], each[1].hex(":"),
                is_running, address.hex(":"), *files)

    mac = "00:77:00:01:01:00" if fault == "addr-change" else "00:77:00:00:01:00"
    expected = (True, True, UP, 6, 1, mac, True, mac, "up", "1", mac) if fault == "addr-change" else \
        (False, False, UP, 2, 0, mac, False, mac, "down", "0", mac)
    while state() != expected:
        assert time.monotonic() < limit, f"{state()} instead of {expected}"
        time.sleep(0.001)


def inside_loopback():
    """Prints the headers of the loopback interface and its addresses, and the types of their attributes."""
    link, = (each for each in objects(GETLINK, LINK.pack(0, 0, 0, 0, 0), 16) if each[1][3] == b"lo\0")
    print(LINK.unpack(link[0])[1:3], *link[1])
    for family in (socket.AF_INET, socket.AF_INET6):
        for header, each in objects(GETADDR, ADDR.pack(family, 0, 0, 0, 0), 8):
            if ADDR.unpack(header)[4] == 1:
                print(ADDR.unpack(header), *each)


# ---- the tests -------------------------------------------------------------------------------


class Interfaces(unittest.TestCase):
    def run_inside(self, name, *arguments, options=()):
        command = [sys.executable, __file__, PROGRAM, name, *arguments]
        done = subprocess.run([PROGRAM, *options, *command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_fault_is_visible_in_every_interface(self):
        for fault in ("port-down", "addr-change"):
            with self.subTest(fault):
                self.run_inside("inside_fault", fault, options=["--fault", f"0s {fault} host1"])

    def test_constructor_of_a_library_is_run_on_its_host(self):
        command = 'LD_PRELOAD="$LD_PRELOAD:$EARLY" exec /bin/true'
        done = subprocess.run([PROGRAM, "@host2", "sh", "-c", command], text=True, stdout=subprocess.PIPE, timeout=60,
                              check=True)
        self.assertEqual(done.stdout, "host2 2 0\n")

    def test_files_describe_the_device(self):
        for device, expected in [
                ("rxe", ["type=1", "address=00:77:00:00:01:00", "mtu=1500", "operstate=up", "flags=0x1003", "speed=100000",
                         "carrier=1", "ifindex=2"]),
                ("mlx5", ["device=sim0", "address=00:77:00:00:01:00"]),
                ("mlx5-ib", ["type=32", "mtu=2044", "addr_len=20",
                             "address=00:00:00:48:fe:80:00:00:00:00:00:00:02:77:00:ff:fe:00:01:00"])]:
            with self.subTest(device):
                self.run_inside("inside_files", *expected, options=["--device", device])

    def test_loopback_is_that_of_the_kernel(self):
        kernel, found = ([line.split(") ") for line in output.splitlines()] for output in (
            subprocess.run([sys.executable, __file__, PROGRAM, "inside_loopback"], text=True, stdout=subprocess.PIPE,
                           check=True).stdout, self.run_inside("inside_loopback")))
        self.assertLessEqual(len(kernel), len(found))  # a kernel may have no IPv6
        for (header, kinds), (expected, all_kinds) in zip(found, kernel):
            self.assertEqual(header, expected)
            self.assertEqual(kinds.split(), [kind for kind in all_kinds.split() if kind in kinds.split()])


for inside in ("c_library", "ioctl", "netlink", "netlink_errors", "netlink_random", "sockets", "addresses"):
    setattr(Interfaces, f"test_{inside}",
            lambda self, name=f"inside_{inside}": self.assertEqual(self.run_inside(name, options=["--hosts", "3"]), ""))

if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv[1]).resolve()
    if len(sys.argv) > 2:
        globals()[sys.argv[2]](*sys.argv[3:])
    else:
        unittest.main(argv=sys.argv[:1])
