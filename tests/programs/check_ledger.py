#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Tests rpma-check --verify with memory images and ledgers of its own: check_ledger.py RPMA_CHECK.
With "known" instead, prints the bytes that check_ledger_file.cc expects.
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
FOUND, MISSING, REFUSED = range(3)
RUN, SIZE, PLACES, STREAMS = 0xfedcba9876543210, 4096, 256, 2
HEAD = f"rpma-check power cut 1: run {RUN:016x}, streams {STREAMS}, places {PLACES}"
LINES = ("0 3 200", "1 2 130", "0 400 460", "1 300 310")  # required: records 204 to 399, and 54 to 299
LAST = {0: (400, 460), 1: (300, 310)}
RESULT = "700 records flushed, 442 checked, {} missing"


def mix(value):
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9 & MASK
    value = (value ^ value >> 27) * 0x94d049bb133111eb & MASK
    return value ^ value >> 31


def place(stream, number):
    return (stream * PLACES + number % PLACES) * SIZE


def record(stream, number, started=RUN):
    seed = mix(mix(started ^ mix(stream)) ^ number)
    words = [started, stream, number, place(stream, number)]
    words += [mix(seed + i & MASK) for i in range(4, SIZE // 8)]
    return struct.pack(f"={len(words)}Q", *words)


def put(memory, stream, number, data=None, at=None):
    start = place(stream, number if at is None else at)
    memory[start:start + SIZE] = data or record(stream, number)


def new_image():
    memory = bytearray(STREAMS * PLACES * SIZE)
    for stream, (done, _) in LAST.items():
        for number in range(max(0, done - PLACES), done):
            put(memory, stream, number)
    return memory


def image(whole=new_image()):
    """The memory after the last lines: each place has its newest record."""
    return bytearray(whole)


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
        done = run(PROGRAM, "--verify", files[0], "--memory", files[1])
        done.stdout = done.stdout.replace(directory + "/", "")
        return done


def expect_line(done, status, line):
    expect((done.returncode, done.stdout, done.stderr), (status, f"{line}\n", ""), "the comparison")


def expect_missing(memory, missing, first, text=None):
    expect_line(check(text or ledger(), memory), MISSING, f"{RESULT.format(missing)}, first missing: {first}")


def expect_refused(text, memory, part):
    done = check(text, memory)
    expect_one_line(done, REFUSED, part)
    expect(part in done.stderr, True, f"{part!r} in {done.stderr!r}")


@test("every record that was flushed and cannot be overwritten is found")
def all_found():
    for lines in (LINES, ("0 3 3", *LINES[1:], LINES[2])):
        expect_line(check(ledger(lines), image()), FOUND, RESULT.format(0))


@test("places that later records may have overwritten are not compared")
def overwritten():
    memory = image()
    for stream, (done, bound) in LAST.items():
        for number in range(done, bound):
            put(memory, stream, number, b"\xff" * SIZE)
    expect_line(check(ledger(), memory), FOUND, RESULT.format(0))


@test("a memory that is larger than the rings passes, and one that is smaller is refused")
def sizes():
    expect_line(check(ledger(), image() + bytes(5000)), FOUND, RESULT.format(0))
    expect_refused(ledger(), image()[:-1], f"has {STREAMS * PLACES * SIZE - 1} bytes, the records of")
    expect_refused(ledger(), b"", "is empty")


@test("the first and the last record that must be found are missing if their place has another content")
def missing():
    for stream, first in ((0, 204), (0, 399), (1, 54), (1, 299)):
        memory = image()
        put(memory, stream, first, bytes(SIZE))
        expect_missing(memory, 1, f"stream {stream}, record {first}; its place at byte {place(stream, first)} "
                       "has no record of this run")


@test("one wrong byte anywhere in a record is missing: it is torn there")
def torn():
    for at in (8, 16, 24, 31, 32, 64, 2047, SIZE - 1):
        memory = image()
        memory[place(1, 299) + at] ^= 1
        expect_missing(memory, 1, f"stream 1, record 299; its place at byte {place(1, 299)} is torn: "
                       f"its byte {at} of {SIZE} is wrong")
    memory = image()  # the end is that of the previous pass
    put(memory, 1, 299, record(1, 299)[:4032] + record(1, 43)[4032:])
    expect_missing(memory, 1, f"stream 1, record 299; its place at byte {place(1, 299)} is torn: "
                   f"its byte 4032 of {SIZE} is wrong")


@test("a whole record of another pass over the ring is missing")
def other_passes():
    for other in (143, 655):
        memory = image()
        put(memory, 0, other, at=399)
        expect_missing(memory, 1, f"stream 0, record 399; its place at byte {place(0, 399)} has record {other}")


@test("the same record of another run, of another stream or of another place is missing")
def another_run():
    for data in (record(0, 399, RUN ^ 1), record(1, 399), record(0, 398)):
        memory = image()
        put(memory, 0, 399, data)
        done = check(ledger(), memory)
        expect((done.returncode, f"{RESULT.format(1)}, first missing: stream 0, record 399;" in done.stdout),
               (MISSING, True), done.stdout)


@test("an incomplete last line is ignored")
def cut_ledger():
    text = ledger((*LINES, "0 430 460"))
    for end in (1, 2, 9, 15):
        expect_line(check(text[:-end], image()), FOUND,
                    f"{RESULT.format(0)} (the last line of ledger is incomplete and ignored)")
    expect(check(text, image()).returncode, MISSING, "with its end: exit status")


@test("a ledger without a record to compare does not pass")
def nothing_recorded():
    for lines in ((), ("0 0 4", "1 0 4"), ("0 8 264",)):
        expect_refused(ledger(lines), image(), "lists no flushed record")


@test("a file that is not a ledger, or a ledger of another version or of rpma-perf, is refused")
def other_files():
    for text in ("", "\n", "hello\n", "{}", with_checksum("rpma-perf ledger 1: run 1, write, size 128, ring 8, connections 1")):
        expect_refused(text, image(), "is not a file of rpma-check --power-cut")
    expect_refused(ledger(head=HEAD.replace("cut 1", "cut 2")), image(),
                   "has version 2 of the format, this rpma-check reads version 1")


@test("a first line that is damaged or impossible is refused")
def damaged_head():
    text = ledger()
    for at in (24, 30, 44, 60, len(HEAD) + 3):
        changed = chr(ord(text[at]) ^ 1)
        expect_refused(text[:at] + changed + text[at + 1:], image(), "line 1 of")
    for old, new in ((f"streams {STREAMS}", "streams 0"), (f"streams {STREAMS}", "streams 65"), (f"places {PLACES}", "places 255"),
                     (f"places {PLACES}", f"places {2**64 // 64 // 4096}"), (f"places {PLACES}", "places -1")):
        expect_refused(ledger(head=HEAD.replace(old, new)), image(), "line 1 of")
    expect_refused(text[:40], image(), "line 1 of")
    for old, new in ((f"streams {STREAMS}", "streams 64"), (f"places {PLACES}", f"places {2**64 // 64 // 4096 - 1}")):
        expect_refused(ledger(head=HEAD.replace(old, new)), image(), "bytes, the records of")


@test("a damaged or inconsistent line is refused with its number")
def damaged_line():
    lines = ledger().splitlines(keepends=True)
    for changed in ("0 4" + lines[1][3:], lines[1].replace(" ", "  ", 1), "\n",
                    lines[1].replace("\n", "\0\n"), "9" * 200 + "\n", with_checksum("2 1 5"),
                    with_checksum("0 5 4"), with_checksum("0 -1 4"), with_checksum("0 1")):
        expect_refused("".join((lines[0], changed, *lines[2:])), image(), "line 2 of")
    expect_refused(ledger((*LINES, "0 399 460")), image(), "line 6 of")


@test("each changed bit of a ledger is detected")
def changed_bits():
    text = ledger()
    for at, byte in enumerate(text[:-1]):
        if byte != "\n":
            expect_refused(text[:at] + chr(ord(byte) ^ 1 << at % 7) + text[at + 1:], image(), "")


@test("a line that does not end is refused")
def endless_line():
    expect_refused(ledger() + "0" * 100000, image(), "line 6 of")


@test("files that do not exist, or cannot be read, are refused")
def no_files():
    for path, memory, why in (("/nowhere/ledger", PROGRAM, "/nowhere/ledger: No such file"),
                              ("/proc/self/mem", PROGRAM, "cannot read /proc/self/mem"),
                              (PROGRAM, "/nowhere/memory", "is not a file of rpma-check"),
                              (os.path.dirname(PROGRAM), PROGRAM, "cannot read")):
        done = run(PROGRAM, "--verify", path, "--memory", memory)
        expect_one_line(done, REFUSED, path)
        expect(why in done.stderr, True, done.stderr)


@test("memory that does not exist, or is neither a file nor a device DAX, is refused")
def no_memory():
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(ledger())
        file.flush()
        for memory, why in (("/nowhere/memory", "No such file"), ("/dev/null", "is neither a file nor a device DAX"),
                            (os.path.dirname(PROGRAM), "is neither a file nor a device DAX")):
            done = run(PROGRAM, "--verify", file.name, "--memory", memory)
            expect_one_line(done, REFUSED, memory)
            expect(why in done.stderr, True, done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["known"]:
        print(ledger(), *(f"{word:#x}" for word in struct.unpack("=512Q", record(1, 300))))
    else:
        sys.exit(main())
