#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Tests rpma-perf --verify --ledger with memory images and ledgers of its own: perf_ledger.py PROGRAM.
With "known" instead, prints the bytes that perf.cc expects.
"""

import os
import struct
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from harness import expect, expect_one_line, main, run, test  # noqa: E402

PROGRAM = sys.argv[1]
MASK = 2**64 - 1
FOUND, REFUSED, MISSING = 0, 1, 3
RUN, SIZE, STRIDE, RING, CONNECTIONS = 0xfedcba9876543210, 4500, 8192, 8, 2
HEAD = (f"rpma-perf ledger 1: run {RUN:016x}, flush-persistent, size {SIZE}, ring {RING}, "
        f"connections {CONNECTIONS}")
LINES = ("0 3 7", "1 2 6", "0 13 17", "1 10 12")  # required records: 9 to 12, and 4 to 9
LAST = {0: (13, 17), 1: (10, 12)}


def mix(value):
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & MASK
    value = (value ^ value >> 27) * 0x94d049bb133111eb & MASK
    return value ^ value >> 31


def place(connection, number):
    return (connection * RING + number % RING) * STRIDE


def record(connection, number, started=RUN):
    seed = mix(mix(started + connection + 1 & MASK) + number & MASK)
    words = [started, connection, number, place(connection, number)]
    words += [mix(seed + (i + 1) * 0x9e3779b97f4a7c15 & MASK) for i in range(SIZE // 8)]
    return struct.pack(f"={len(words)}Q", *words)[:SIZE]


def image():
    """The memory after the last lines: each place has its newest record."""
    memory = bytearray(CONNECTIONS * RING * STRIDE)
    for connection, (done, _) in LAST.items():
        for number in range(done):
            put(memory, connection, number)
    return memory


def put(memory, connection, number, data=None, at=None):
    start = place(connection, number if at is None else at)
    memory[start:start + SIZE] = data or record(connection, number)


def with_checksum(line):
    return f"{line} {zlib.crc32(line.encode()):08x}\n"


def ledger(lines=LINES, head=HEAD):
    return "".join(map(with_checksum, (head, *lines)))


def check(text, memory):
    with tempfile.TemporaryDirectory() as directory:
        files = [os.path.join(directory, name) for name in ("ledger", "memory")]
        for name, data in zip(files, (text.encode("latin-1"), memory)):
            with open(name, "wb") as file:
                file.write(data)
            os.chmod(name, 0o400)
        return run(PROGRAM, "--verify", "--ledger", files[0], "--memory", files[1])


def expect_line(done, status, line):
    expect((done.returncode, done.stdout, done.stderr), (status, f"flush-persistent: {line}\n", ""),
           "the verifier")


def expect_missing(memory, found, first, text=None):
    expect_line(check(text or ledger(), memory), MISSING,
                f"23 records recorded, 10 checked, {found} found, first missing: {first}")


def expect_refused(text, memory, part):
    done = check(text, memory)
    expect_one_line(done, REFUSED, part)
    expect(part in done.stderr, True, f"{part!r} in {done.stderr!r}")


@test("every record that was recorded and cannot be overwritten is found")
def all_found():
    for lines in (LINES, ("0 3 3", *LINES[1:], LINES[2])):
        expect_line(check(ledger(lines), image()), FOUND, "23 records recorded, 10 checked, 10 found")


@test("places that later records may have overwritten are not checked")
def overwritten():
    memory = image()
    for connection, (done, bound) in LAST.items():
        for number in range(done, bound):
            put(memory, connection, number, b"\xff" * SIZE)
    expect_line(check(ledger(), memory), FOUND, "23 records recorded, 10 checked, 10 found")


@test("a memory that is larger than the ring passes, and one that is smaller is refused")
def sizes():
    memory = image()
    expect_line(check(ledger(), memory + bytes(5000)), FOUND,
                "23 records recorded, 10 checked, 10 found")
    expect_refused(ledger(), memory[:-1], f"has {len(memory) - 1} bytes, the ledger")
    expect_refused(ledger(), b"", "is empty")


@test("one missing record is named")
def one_missing():
    memory = image()
    put(memory, 1, 7, bytes(SIZE))
    expect_missing(memory, 9, "connection 1, record 7; its place at byte 122880 has no record of "
                   "this run")


@test("of several missing records the first one of the first connection is named")
def several_missing():
    memory = image()
    for connection, number in ((1, 4), (0, 12), (0, 10)):
        put(memory, connection, number, bytes(SIZE))
    expect_missing(memory, 7, "connection 0, record 10; its place at byte 16384 has no record of "
                   "this run")


@test("one byte that differs is a torn record, at any offset")
def torn():
    for byte in (24, 32, 63, 64, 4095, 4096, SIZE - 1):
        memory = image()
        memory[place(0, 12) + byte] ^= 0x10
        expect_missing(memory, 9, f"connection 0, record 12; its place at byte {place(0, 12)} is "
                       f"torn: its byte {byte} of {SIZE} is wrong")


@test("a record whose last cache line is of the previous lap is torn")
def mixed():
    memory = image()
    put(memory, 1, 9, record(1, 9)[:4480] + record(1, 1)[4480:])
    expect_missing(memory, 9, f"connection 1, record 9; its place at byte {place(1, 9)} is torn: "
                   f"its byte 4480 of {SIZE} is wrong")


@test("a whole record of the previous lap does not pass")
def older_lap():
    memory = image()
    put(memory, 0, 4, at=12)
    expect_missing(memory, 9, f"connection 0, record 12; its place at byte {place(0, 12)} has "
                   "record 4")


@test("a record that a client wrote too early does not pass")
def later_lap():
    memory = image()
    put(memory, 0, 20, at=12)
    expect_missing(memory, 9, f"connection 0, record 12; its place at byte {place(0, 12)} has "
                   "record 20")


@test("the same record of another run or of another connection does not pass")
def another_run():
    for data in (record(0, 12, RUN ^ 1), record(1, 12)):
        memory = image()
        put(memory, 0, 12, data)
        done = check(ledger(), memory)
        expect((done.returncode, "first missing: connection 0, record 12;" in done.stdout),
               (MISSING, True), done.stdout)


@test("an incomplete last line is ignored")
def cut_ledger():
    text = ledger((*LINES, "0 15 17"))
    for end in (1, 2, 9, 15):
        expect_line(check(text[:-end], image()), FOUND, "23 records recorded, 10 checked, 10 found "
                    "(the last line of the ledger is incomplete and ignored)")
    memory = image()
    expect(check(text, memory).returncode, MISSING, "with its end: exit status")


@test("a ledger without a record to check does not pass")
def nothing_recorded():
    for lines in ((), ("0 0 4", "1 0 4"), ("0 8 16",)):
        expect_refused(ledger(lines), image(), "lists no record to check")


@test("a file that is not a ledger, or a ledger of another version, is refused")
def other_files():
    for text in ("", "\n", "hello\n", "{}"):
        expect_refused(text, image(), "is not a ledger of rpma-perf")
    expect_refused(ledger(head=HEAD.replace("ledger 1", "ledger 2")), image(),
                   "a ledger of version 2, this rpma-perf reads version 1")


@test("a first line that is damaged or impossible is refused")
def damaged_head():
    text = ledger()
    for at in (19, 30, 50, 60, len(HEAD) + 3):
        changed = chr(ord(text[at]) ^ 1)
        expect_refused(text[:at] + changed + text[at + 1:], image(), "line 1 of the ledger")
    for old, new in ((f"size {SIZE}", "size 127"), (f"size {SIZE}", "size 1073741825"),
                     (f"ring {RING}", "ring 3"), (f"ring {RING}", "ring 16777217"),
                     (f"connections {CONNECTIONS}", "connections 0"),
                     (f"connections {CONNECTIONS}", "connections 1025"),
                     ("flush-persistent", "read"), ("flush-persistent", "fetch")):
        expect_refused(ledger(head=HEAD.replace(old, new)), image(), "line 1 of the ledger")
    expect_refused(text[:40], image(), "line 1 of the ledger")
    for old, new in ((f"size {SIZE}", "size 1073741824"), (f"ring {RING}", "ring 16777216"),
                     (f"connections {CONNECTIONS}", "connections 1024")):
        expect_refused(ledger(head=HEAD.replace(old, new)), image(), "bytes, the ledger")
    expect(check(ledger(head=HEAD.replace(f"size {SIZE}", "size 128")), image()).returncode, MISSING, "the least size")


@test("a damaged or inconsistent line is refused with its number")
def damaged_line():
    lines = ledger().splitlines(keepends=True)
    for changed in ("0 4" + lines[1][3:], lines[1].replace(" ", "  ", 1), "\n",
                    lines[1].replace("\n", "\0\n"), "9" * 200 + "\n", with_checksum("2 1 5"),
                    with_checksum("0 5 4"), with_checksum("0 -1 4"), with_checksum("0 1")):
        expect_refused("".join((lines[0], changed, *lines[2:])), image(), "line 2 of the ledger")
    expect_refused(ledger((*LINES, "0 12 17")), image(), "line 6 of the ledger")


@test("a line that does not end is refused")
def endless_line():
    expect_refused(ledger() + "0" * 100000, image(), "line 6 of the ledger")


@test("files that do not exist, or cannot be read, are refused")
def no_files():
    for ledger_path, memory, why in (("/nowhere/ledger", PROGRAM, "/nowhere/ledger: No such file"),
                                     ("/proc/self/mem", PROGRAM, "cannot read /proc/self/mem"),
                                     (PROGRAM, "/nowhere/memory", "is not a ledger")):
        done = run(PROGRAM, "--verify", "--ledger", ledger_path, "--memory", memory)
        expect_one_line(done, REFUSED, ledger_path)
        expect(why in done.stderr, True, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["known"]:
        print(ledger(), *(f"{word:#x}" for word in struct.unpack("=562QI", record(1, 9))))
    else:
        sys.exit(main())
