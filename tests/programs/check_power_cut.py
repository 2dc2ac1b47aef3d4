#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests rpma-check --power-cut and --verify, on the fabric: check_power_cut.py RPMA_CHECK RDMA_SIM"""

import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True

import harness
from harness import expect, expect_one_line, run, test

CHECK, SIM = (os.path.abspath(path) for path in sys.argv[1:3])
FOUND, MISSING, NOT_RUN = range(3)
SIZE, RECORD = 4 << 20, 4096
FOLDER = tempfile.TemporaryDirectory()
LEDGER, MEMORY = (str(pathlib.Path(FOLDER.name) / name) for name in ("ledger", "memory"))


def cut(*client, options=(), fault="400ms power-off host1", fresh=True, **keywords):
    """Runs a server whose power is cut, and a client. Returns the run."""
    if fresh:
        pathlib.Path(LEDGER).unlink(missing_ok=True)
        pathlib.Path(MEMORY).write_bytes(bytes(SIZE))
    fault = ["--fault", fault] if fault else ["--until", "host2"]
    return run(SIM, "--pmem", MEMORY, *fault, *options, CHECK, "--server", "--power-cut", MEMORY, "10.77.0.1",
               "::", *(client or (CHECK, "--power-cut", LEDGER, "10.77.0.1")), timeout=60, **keywords)


def verify(status, ledger=LEDGER, memory=MEMORY):
    done = run(CHECK, "--verify", ledger, "--memory", memory)
    expect((done.returncode, done.stderr), (status, ""), f"--verify: {done.stdout}")
    match = re.fullmatch(r"(\d+) records flushed, (\d+) checked, (\d+) missing(, first record \d+ at byte \d+)?\n", done.stdout)
    expect(bool(match), True, done.stdout)
    return [int(match[part]) for part in (1, 2, 3)]


def refused(words, status=NOT_RUN, ledger=LEDGER, memory=MEMORY):
    done = run(CHECK, "--verify", ledger, "--memory", memory)
    expect_one_line(done, status, words)
    expect(words in done.stderr, True, done.stderr)


@test("no flushed record is missing after a power cut")
def flushed():
    for options in ((), ("--lose", "random"), ("--device", "mlx5")):
        done = cut(options=options)
        expect(done.returncode, 0, f"{options}: {done}")
        expect("records flushed, listed in" in done.stdout and "the server is lost" in done.stdout, True, done.stdout)
        recorded, checked, missing = verify(FOUND)
        expect((recorded > 0, checked > 0, missing), (True, True, 0), f"{options}")


@test("writes without a flush, and flushes on a platform without direct write, are missing")
def lost():
    for client, options in ((("--no-flush",), ()), ((), ("--platform", "cpu-flush"))):
        done = cut(CHECK, *client, "--power-cut", LEDGER, "10.77.0.1", options=options)
        expect(done.returncode, 0, f"{done}")
        recorded, checked, missing = verify(MISSING)
        expect((recorded > 0, missing > 0), (True, True), f"{recorded} {checked} {missing}")


@test("one changed byte of a record, a record of another pass or of another run is missing")
def changed():
    expect(cut().returncode, 0, "a run")
    good, (_, checked, _) = pathlib.Path(MEMORY).read_bytes(), verify(FOUND)
    head, *_, last = pathlib.Path(LEDGER).read_text(encoding="ascii").splitlines()
    done, records = int(last.split()[0]), int(re.search(r"records (\d+)", head)[1])
    expect(records, SIZE // RECORD, "records")
    at = (done - 1) % records * RECORD
    for offset in (0, 8, 4095):
        byte = bytes([good[at + offset] ^ 1])
        pathlib.Path(MEMORY).write_bytes(good[:at + offset] + byte + good[at + offset + 1:])
        expect(verify(MISSING), [done, checked, 1], f"byte {offset}")
    pathlib.Path(MEMORY).write_bytes(good + bytes(5000))
    expect(verify(FOUND)[2], 0, "larger memory")
    pathlib.Path(MEMORY).write_bytes(good[:-1])
    refused("has 4194303 bytes")
    first = pathlib.Path(LEDGER).read_bytes()
    expect(cut().returncode, 0, "another run")
    other = LEDGER + "-of-another-run"
    pathlib.Path(other).write_bytes(first)
    expect(verify(MISSING, other)[1:], [checked, checked], "all records are of another run")


@test("a damaged list of records is refused, and an incomplete last line is ignored")
def damaged():
    expect(cut().returncode, 0, "a run")
    good, before = pathlib.Path(LEDGER).read_bytes(), verify(FOUND)
    lines = good.count(b"\n")
    for at in range(len(good) - 1):
        if good[at:at + 1] != b"\n":
            pathlib.Path(LEDGER).write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            refused("")
    pathlib.Path(LEDGER).write_bytes(good + good.splitlines(keepends=True)[-1][:-5])
    expect(verify(FOUND), before, "an incomplete line")
    pathlib.Path(LEDGER).write_bytes(good + good.splitlines(keepends=True)[1])
    refused(f"line {lines + 1} of {LEDGER} is damaged")
    pathlib.Path(LEDGER).write_bytes(good.splitlines(keepends=True)[0])
    refused("lists no flushed record")
    for content in (b"", b"x", bytes(100), b"1 2 3\n"):
        pathlib.Path(LEDGER).write_bytes(content)
        refused("is not a file of rpma-check --power-cut")
    refused("No such file", ledger="/none")


@test("a file that cannot be used is refused by one line, and nothing is left")
def unusable():
    done = run(CHECK, "--server", "--power-cut", CHECK, "127.0.0.1")
    expect_one_line(done, NOT_RUN, "a program that runs")
    pathlib.Path(MEMORY).write_bytes(bytes(RECORD))
    for path, words in ((MEMORY, "is not persistent memory"), ("/dev/null", "is not persistent memory"), ("/none", "No such file"),
                        (FOLDER.name, "Is a directory")):
        done = run(CHECK, "--server", "--power-cut", path, "127.0.0.1")
        expect_one_line(done, NOT_RUN, path)
        expect(words in done.stderr, True, done.stderr)
    done = run(SIM, "--pmem", MEMORY, CHECK, "--server", "--power-cut", MEMORY, "10.77.0.1")
    expect((done.returncode, "the check needs 1048576 or more" in done.stderr), (NOT_RUN, True), done.stderr)
    pathlib.Path(LEDGER).write_bytes(b"kept")
    pathlib.Path(MEMORY).write_bytes(bytes(SIZE))
    done = cut(fault=None, fresh=False)
    expect((done.returncode, "File exists" in done.stderr, pathlib.Path(LEDGER).read_bytes()), (NOT_RUN, True, b"kept"), f"{done}")

    done = cut("sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {CHECK} --power-cut {LEDGER} 10.77.0.1", fault=None)
    expect((done.returncode, f"cannot write {LEDGER}" in done.stderr, os.path.exists(LEDGER)), (NOT_RUN, True, False), f"{done}")


@test("an interrupted client lists its records, and a client without a server says so")
def interrupted():
    done = cut("timeout", "-s", "INT", "1", CHECK, "--power-cut", LEDGER, "10.77.0.1", fault=None)
    expect(("interrupted\n" in done.stdout, done.stderr), (True, ""), f"{done}")
    expect(verify(FOUND)[2], 0, "missing")
    pathlib.Path(LEDGER).unlink()
    done = run(SIM, "--hosts", "2", CHECK, "--power-cut", LEDGER, "10.77.0.2")
    expect_one_line(done, NOT_RUN, "no server")
    expect(os.path.exists(LEDGER), False, "the file")


@test("options of other uses are refused")
def options():
    for arguments, words in ((["--power-cut", "f", "--json", "host"], "--json cannot be used with --power-cut"),
                             (["--power-cut", "f", "--report", "f", "host"], "--report cannot be used"),
                             (["--power-cut", "f", "--memory", "f", "--server", "host"], "--memory cannot be used"),
                             (["--power-cut", "f", "--verify", "f"], "--power-cut cannot be used with --verify"),
                             (["--power-cut", "f"], "address"), (["--no-flush", "host"], "--no-flush is for"),
                             (["--no-flush", "--server", "--power-cut", "f", "host"], "--no-flush is for"),
                             (["--verify", "f"], "add --memory"), (["--verify", "f", "--memory", "f", "host"], "no ADDRESS"),
                             (["--verify", "f", "--memory", "f", "--server"], "--server cannot be used with --verify")):
        done = run(CHECK, *arguments)
        expect_one_line(done, NOT_RUN, f"{arguments}")
        expect(words in done.stderr, True, f"{arguments}: {done.stderr}")


if __name__ == "__main__":
    sys.exit(harness.main())
