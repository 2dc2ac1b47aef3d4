# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Both sides run the same program with different libraries: this build, the other build of this
library, Debian's librpma0 1.2.0 and 1.3.0.
"""

import glob
import os
import re

from harness import lab
from harness.case import case, connect, disconnect, listen, share_region
from harness.side import ALL_USAGES, expect

OTHER = {"native": "plain", "plain": "native"}
# Releases that flush natively on a device with native flush.
NATIVE = ("native", "1.3.0")
SEEN = {}  # (target, way of the initiator): whether it worked


def library(name):
    """The directory that holds a library."""
    if name in OTHER:
        path = os.path.join(lab.build_directory(name), "src")
    else:
        path = os.path.dirname((glob.glob(f"/opt/librpma-{name}/usr/lib/*/librpma.so.0") or
                                ["/"])[0])
    if not os.path.exists(os.path.join(path, "librpma.so.0")):
        raise lab.Skipped(f"there is no librpma {name} here")
    return path


def side(test, number, name, role, way="auto"):
    environment = {"LD_LIBRARY_PATH": library(name), "RPMA_FLUSH": way}
    made = test.side(number, f"{role} {name}", environment=environment,
                     checked=name in OTHER, program=lab.PEER_OF_ANY_RELEASE)
    with open(f"/proc/{made.pid}/maps", encoding="utf-8") as maps:
        expect(environment["LD_LIBRARY_PATH"] in maps.read(), True, "library in use")
    made("peer")
    return made


def pairs():
    for other in ("other build", "1.2.0", "1.3.0"):
        yield {"target": "this build", "initiator": other, "way": "auto"}
        for way in ("auto", "emulated"):
            # 1.3.0 grants no remote read to a side that emulates flushes by reads.
            shows = ("REM_ACCESS_ERR: flush",) if (other, way) == ("1.3.0", "emulated") else ()
            yield {"target": other, "initiator": "this build", "way": way, "shows": shows}


def flushes_natively(name, way):
    return name in NATIVE and way == "auto"


def fits(target, native):
    """Whether the flush works on a region for flushes and writes only."""
    if native:
        return target in NATIVE
    return target != "1.3.0"


@case("interop", "{initiator} flushes {target}, RPMA_FLUSH={way}", list(pairs()),
      needs=(lab.NATIVE_OPERATIONS, lab.IMMEDIATE_DATA))
def pair(test, target, initiator, way):
    """Everything works between unlike libraries, the flush as the manual says."""
    names = {"this build": test.build, "other build": OTHER[test.build]}
    target, initiator = names.get(target, target), names.get(initiator, initiator)
    lab.need_virtual("a device known to have native flush")
    server = side(test, 1, target, "server")
    client = side(test, 2, initiator, "client", way)
    share_region(server, client, 2 << 20, ALL_USAGES & ~1,
                 file=lab.need(lab.DEVDAX, "device DAX"))
    listen(server)
    connect(server, client, server_data="01", client_data="02")
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    exchange(server, client)
    native = flushes_natively(initiator, way)
    for persistent in (0, 1):
        client("fill", len=4096, seed=persistent)
        client("write", mr=0, rmr=0, len=4096, flags=1)
        client("flush", rmr=0, len=4096, persistent=persistent)
        found = client.completions(1)[0]
        worked = found.status == "SUCCESS"
        SEEN[(target, "native" if native else "emulated")] = worked
        expect(worked, fits(target, native), f"flush ({found.status})")
        if not worked:
            return
        expect(found.opcode, "FLUSH" if native else "READ", "opcode")
        server("check", len=4096, seed=persistent)
    disconnect(client, server)


def exchange(server, client):
    """A message each way, an atomic write, a write with immediate data."""
    for sender, receiver, seed in ((client, server, 1), (server, client, 2)):
        receiver("recv", mr=0, off=8192, len=512)
        sender("fill", off=16384, len=512, seed=seed)
        sender("send", mr=0, off=16384, len=512)
        sender.completion(opcode="SEND")
        receiver.completion(opcode="RECV")
        receiver("check", off=8192, len=512, seed=seed)
    client("atomic", rmr=0, roff=64, bytes="77" * 8)
    client.completion()
    expect(server("bytes", off=64, len=8)["bytes"], "77" * 8, "atomic write")
    server("recv")
    client("write-imm", mr=0, off=16384, rmr=0, roff=128, len=512, imm=3)
    client.completion(opcode="WRITE")
    expect(server.completion(opcode="RECV_WITH_IMM").imm, 3, "immediate data")


def table():
    """The rows of rpma_flush(3): (initiator, operation) -> the words of the four targets."""
    path = os.path.join(os.path.dirname(__file__), "../../../man/rpma_flush.3")
    with open(path, encoding="utf-8") as page:
        rows = re.findall(r'^\.It ([ABCD]) Ta (flush|"atomic write") Ta (.+)$', page.read(),
                          re.MULTILINE)
    return {(initiator, what.strip('"')): [re.sub(r" ?\[\d\]", "", word).strip('"')
                                           for word in words.split(" Ta ")]
            for initiator, what, words in rows}


LETTERS = {"native": 0, "plain": 1, "1.3.0": 2, "1.2.0": 3}  # columns A to D of the table


@case("interop", "the table of pairs in rpma_flush(3) is what was seen")
def manual(test):
    """Initiators of this library, with and without native operations, before a statement."""
    rows = table()
    said = {(target, way): rows[(initiator, "flush")][column] == "works"
            for target, column in LETTERS.items()
            for initiator, way in (("A", "native"), ("B", "emulated"))}
    if not SEEN:
        raise lab.Skipped("no pair ran")
    expect(SEEN, {key: said[key] for key in SEEN}, "table of pairs")
