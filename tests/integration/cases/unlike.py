# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Flushes and atomic writes between all pairs of libraries, before and after the initiator has applied
what the target states; and the table in rpma_flush(3), which has to agree with the results.
"""


from harness import lab
from harness.case import case, connect, listen
from harness.side import ALL_USAGES, LOCAL_USAGES, READ_SRC, expect

from .interop import OTHER, library, table

# The columns of the table: this library, native and plain; the original, likewise.
NAMES = {"native": "A", "plain": "B", "1.3.0": "C", "1.2.0": "D"}
SIZE = 2 << 20
NOTICE = "the other side does not state how it serves flushes"
SEEN = {}  # (initiator, target, operation): the results before and after


class Pair:
    """A target and an initiator, which make a new connection for each operation."""

    def __init__(self, target, initiator, number):
        self.target, self.initiator, self.number = target, initiator, number

    def connection(self, is_applied):
        connect(self.target, self.initiator)
        if is_applied:
            self.initiator("apply-pcfg", desc=self.target.statement)

    def end(self):
        self.initiator("disconnect")
        self.target.event("CLOSED")
        self.target("conn-delete")
        self.initiator("conn-delete")

    def flush(self, persistent, is_applied, seed):
        """Whether the flush works; a failed flush has ended its connection."""
        self.connection(is_applied)
        self.initiator("fill", len=4096, seed=seed)
        self.initiator("write", mr=0, rmr=self.number, len=4096, flags=1)
        self.initiator("flush", rmr=self.number, len=4096, persistent=persistent)
        self.initiator("write", mr=0, rmr=self.number, roff=8192, len=8)
        flush, behind = self.initiator.completions(2)
        works = flush.status == "SUCCESS"
        if works:
            self.target("check", len=4096, seed=seed)
        expect(behind.status, "SUCCESS" if works else "WR_FLUSH_ERR", "operation behind the flush")
        self.end()
        return works

    def atomic_write(self, is_applied, seed):
        self.connection(is_applied)
        value = f"{seed:02x}" * 8
        self.initiator("atomic", rmr=self.number, roff=64, bytes=value)
        works = self.initiator.completions(1)[0].status == "SUCCESS"
        if works:
            expect(self.target("bytes", off=64, len=8)["bytes"], value, "atomic write")
        self.end()
        return works


def start(test, number, name, role):
    is_ours = name in OTHER
    environment = {"LD_LIBRARY_PATH": library(name), "RPMA_FLUSH": "auto"}
    side = test.side(number, f"{role} {name}", environment=environment, checked=is_ours,
                     program=lab.PEER if is_ours else lab.PEER_OF_ANY_RELEASE)
    side("peer")
    return side


def start_target(test, name, memory):
    target = start(test, 1, name, "target")
    target("memory", mr=0, size=SIZE, file=memory)
    target.region = target("reg", mr=0, usage=ALL_USAGES & ~READ_SRC)["desc"]
    states = {"served": 1} if name in OTHER else {}
    target.statement = target("pcfg", direct=1, **states)["desc"]
    return target


def start_initiator(test, name):
    initiator = start(test, 2, name, "initiator")
    initiator("memory", mr=0, size=SIZE)
    initiator("reg", mr=0, usage=LOCAL_USAGES)
    return initiator


def notices(test, side):
    return next(said.count(NOTICE) for name, said in test.words() if name == side.name)


def try_pair(test, pair, seeds):
    """
    Returns {operation: (before, after)}. This library logs one notice on each connection that
    flushes without a statement: the one before, and with an older target also the two after.
    """
    before = notices(test, pair.initiator)
    seen = {
        "visibility": tuple(pair.flush(0, applied, next(seeds)) for applied in (False, True)),
        # Before, the flush is refused: nobody has stated direct write to PMem.
        "persistent": (None, pair.flush(1, True, next(seeds))),
        "atomic write": tuple(pair.atomic_write(applied, next(seeds)) for applied in (False, True)),
    }
    lines = (1 if pair.target.checked else 3) if pair.initiator.checked else 0
    expect(notices(test, pair.initiator) - before, lines, "flushes whose way nobody stated")
    return seen


@case("unlike", "every pair of libraries", limit=180, builds=("native",),
      needs=(lab.NATIVE_OPERATIONS,))
def pairs(test):
    lab.need_virtual("a device known to have native flush")
    memory = lab.need(lab.DEVDAX, "device DAX")
    seeds = iter(range(1, 256))
    initiators = {name: start_initiator(test, name) for name in NAMES}
    for number, name in enumerate(NAMES):
        target = start_target(test, name, memory)
        listen(target)
        for other, initiator in initiators.items():
            initiator("remote", rmr=number, desc=target.region)
            for what, results in try_pair(test, Pair(target, initiator, number), seeds).items():
                SEEN[(other, name, what)] = results
        target("ep-shutdown")
    ours = {pair: results[1] for pair, results in SEEN.items()
            if pair[0] in OTHER and pair[1] in OTHER}
    expect(ours, dict.fromkeys(ours, True), "pairs of this library, once the target has stated")


def words(before, after):
    return "works" if before else "if stated" if after else "fails"


@case("unlike", "the table of pairs in rpma_flush(3) is what was seen", builds=("native",),
      needs=(lab.NATIVE_OPERATIONS,))
def manual(test):
    if not SEEN:
        raise lab.Skipped("no pair ran")
    found = {}
    for initiator, letter in NAMES.items():
        for what, of_kind in (("flush", "visibility"), ("atomic write", "atomic write")):
            found[(letter, what)] = [words(*SEEN[(initiator, target, of_kind)])
                                     for target in NAMES]
    expect(table(), found, "table of pairs")
    both = {pair: results[1] for pair, results in SEEN.items() if pair[2] == "persistent"}
    same = {(initiator, target, "persistent"): SEEN[(initiator, target, "visibility")][1]
            for initiator, target, _ in both}
    expect(both, same, "persistent flushes beside those for visibility")


@case("unlike", "{name} reads the byte of a peer configuration as every release",
      [{"name": name} for name in NAMES], builds=("native",))
def byte(test, name):
    """0 means no and every other byte yes, whatever else the byte states."""
    side = start(test, 1, name, "reader")
    expect(side("pcfg-bytes")["direct"], "00" + "01" * 255, "direct write to PMem by byte")
