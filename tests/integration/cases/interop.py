# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
All operations between all pairs of libraries (both builds of this one, Debian's librpma0 1.2.0 and
1.3.0), before and after the initiator has applied the capabilities of the target. The table in
rpma_flush(3) must agree with the results.
"""

import glob
import os
import re

from harness import lab
from harness.case import case, connect, listen
from harness.side import ALL_USAGES, LOCAL_USAGES, READ_SRC, expect

OTHER = {"native": "plain", "plain": "native"}
# The columns of the table: this library, native and plain; the original 1.3.0 and 1.2.0.
NAMES = {"native": "A", "plain": "B", "1.3.0": "C", "1.2.0": "D"}
EMULATED = "native with RPMA_FLUSH=emulated"
SIZE = 2 << 20
NOTICE = "the other side does not advertise its flush method"


def library(name):
    """The directory of a library."""
    if name in OTHER:
        path = os.path.join(lab.build_directory(name), "src")
    else:
        path = os.path.dirname((glob.glob(f"/opt/librpma-{name}/usr/lib/*/librpma.so.0") or ["/"])[0])
    if not os.path.exists(os.path.join(path, "librpma.so.0")):
        raise lab.Skipped(f"there is no librpma {name} here")
    return path


def start(test, number, name, role, mode="auto"):
    """Starts a side that uses this library and has a peer."""
    environment = {"LD_LIBRARY_PATH": library(name), "RPMA_FLUSH": mode}
    is_ours = name in OTHER
    side = test.side(number, f"{role} {name} {mode}", environment=environment, checked=is_ours)
    with open(f"/proc/{side.pid}/maps", encoding="utf-8") as maps:
        expect(environment["LD_LIBRARY_PATH"] in maps.read(), True, "library in use")
    return side


class Pair:
    """A target and an initiator, which make a new connection for each operation."""

    def __init__(self, target, initiator, number):
        self.target, self.initiator, self.number = target, initiator, number

    def connection(self, is_applied):
        connect(self.target, self.initiator)
        if is_applied:
            self.initiator("apply-pcfg", desc=self.target.capabilities)

    def end(self):
        self.initiator("disconnect")
        self.target.event("CLOSED")
        self.target("conn-delete")
        self.initiator("conn-delete")

    def flush(self, persistent, is_applied, seed):
        """True if the flush works; a failed flush has ended its connection."""
        self.connection(is_applied)
        self.initiator("fill", len=4096, seed=seed)
        self.initiator("write", mr=0, rmr=self.number, len=4096, flags=1)
        self.initiator("flush", rmr=self.number, len=4096, persistent=persistent)
        self.initiator("write", mr=0, rmr=self.number, roff=8192, len=8)
        flush, later = self.initiator.completions(2)
        works = flush.status == "SUCCESS"
        if works:
            self.target("check", len=4096, seed=seed)
        expect(later.status, "SUCCESS" if works else "WR_FLUSH_ERR", "operation after the flush")
        self.end()
        return works

    def atomic_write(self, is_applied, seed):
        """True if it works; also sends a message in each direction, and immediate data."""
        self.connection(is_applied)
        value = f"{seed:02x}" * 8
        self.initiator("atomic", rmr=self.number, roff=64, bytes=value)
        works = self.initiator.completions(1)[0].status == "SUCCESS"
        if works:
            expect(self.target("bytes", off=64, len=8)["bytes"], value, "atomic write")
            self.exchange(seed)
        self.end()
        return works

    def exchange(self, seed):
        for sender, receiver, at in ((self.initiator, self.target, 1024), (self.target, self.initiator, 2048)):
            receiver("recv", mr=0, off=at, len=512)
            sender("fill", off=8192, len=512, seed=seed + at)
            sender("send", mr=0, off=8192, len=512)
            sender.completion(opcode="SEND")
            receiver.completion(opcode="RECV")
            receiver("check", off=at, len=512, seed=seed + at)
        self.target("recv")
        self.initiator("write-imm", mr=0, off=8192, rmr=self.number, roff=128, len=512, imm=3)
        self.initiator.completion(opcode="WRITE")
        expect(self.target.completion(opcode="RECV_WITH_IMM").imm, 3, "immediate data")


def start_target(test, name, memory):
    target = start(test, 1, name, "target")
    # The original can register a region for flushes without the usage for reads.
    target.region = target("reg", size=SIZE, file=memory, usage=ALL_USAGES & ~READ_SRC)["desc"]
    target.capabilities = target("pcfg", direct=1, **({"served": 1} if name in OTHER else {}))["desc"]
    return target


def start_initiator(test, name):
    initiator = (start(test, 2, "native", "initiator", "emulated") if name == EMULATED else
                 start(test, 2, name, "initiator"))
    initiator("reg", size=SIZE, usage=LOCAL_USAGES)
    return initiator


def notices(test, side):
    return next(text.count(NOTICE) for name, text in test.stderr_by_side() if name == side.name)


def try_pair(test, pair, seeds):
    """
    Returns {operation: (before, after)}. This library logs one notice on each connection that
    flushes without known capabilities: before applying them, and with an older target also on the
    two connections after it.
    """
    before = notices(test, pair.initiator)
    seen = {
        "visibility": tuple(pair.flush(0, applied, next(seeds)) for applied in (False, True)),
        # None: without the capabilities, direct write to PMem is unknown, so the flush is refused.
        "persistent": (None, pair.flush(1, True, next(seeds))),
        "atomic write": tuple(pair.atomic_write(applied, next(seeds)) for applied in (False, True)),
    }
    lines = (1 if pair.target.checked else 3) if pair.initiator.checked else 0
    expect(notices(test, pair.initiator) - before, lines, "flushes by a method that the peer did not advertise")
    return seen


@case("interop", "every pair of libraries: results equal the table in rpma_flush(3)", limit=240, builds=("native",),
      needs=(lab.NATIVE_OPERATIONS,), shows=("REM_ACCESS_ERR: flush",))
def pairs(test):
    """RPMA_FLUSH=emulated has the results of an initiator without native flush."""
    lab.need_virtual("a device known to have native flush")
    memory = lab.need(lab.DEVDAX, "device DAX")
    seen = {}  # (initiator, target, operation): the results before and after
    seeds = iter(range(1, 256))
    initiators = {name: start_initiator(test, name) for name in (*NAMES, EMULATED)}
    for number, name in enumerate(NAMES):
        target = start_target(test, name, memory)
        listen(target)
        for other, initiator in initiators.items():
            initiator("remote", rmr=number, desc=target.region)
            for what, results in try_pair(test, Pair(target, initiator, number), seeds).items():
                seen[(other, name, what)] = results
        target("ep-shutdown")
    ours = {pair: results[1] for pair, results in seen.items() if pair[0] in OTHER and pair[1] in OTHER}
    expect(ours, dict.fromkeys(ours, True), "pairs of this library, once the target has advertised")
    flushes = {pair for pair in seen if pair[0] == EMULATED and pair[2] != "atomic write"}
    expect({pair: seen[pair] for pair in flushes}, {pair: seen[("plain", *pair[1:])] for pair in flushes}, EMULATED)
    check_table(seen)


def table():
    """The rows of rpma_flush(3): (initiator, operation) -> the results of the four targets."""
    with open(os.path.join(lab.CHECKOUT, "man", "rpma_flush.3"), encoding="utf-8") as page:
        rows = re.findall(r'^\.It ([ABCD]) Ta (flush|"atomic write") Ta (.+)$', page.read(), re.MULTILINE)
    return {(initiator, what.strip('"')): [re.sub(r" ?\[\d\]", "", word).strip('"') for word in words.split(" Ta ")]
            for initiator, what, words in rows}


def verdict(before, after):
    return "works" if before else "if advertised" if after else "fails"


def check_table(seen):
    found = {}
    for initiator, letter in NAMES.items():
        for what, of_kind in (("flush", "visibility"), ("atomic write", "atomic write")):
            found[(letter, what)] = [verdict(*seen[(initiator, target, of_kind)]) for target in NAMES]
    expect(table(), found, "table of pairs")
    both = {pair: results[1] for pair, results in seen.items() if pair[2] == "persistent"}
    same = {pair: seen[(*pair[:2], "visibility")][1] for pair in both}
    expect(both, same, "persistent flushes, compared with those for visibility")
