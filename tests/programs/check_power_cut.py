#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
Tests rpma-check --power-cut and --verify, on the fabric: check_power_cut.py RPMA_CHECK OTHER RDMA_SIM.
OTHER is an rpma-check with another version of the protocol, which gives up after 2 seconds of silence.
"""

import os
import pathlib
import re
import struct
import sys
import tempfile

sys.dont_write_bytecode = True

import harness
from harness import expect, expect_one_line, run, test
from small_disk import has_small_disk, on_small_disk

CHECK, OTHER, SIM = (os.path.abspath(path) for path in sys.argv[1:4])
FOUND, MISSING, NOT_RUN = range(3)
SIZE, RECORD, STREAMS = 4 << 20, 4096, 4
FOLDER = tempfile.TemporaryDirectory()
LEDGER, MEMORY = (str(pathlib.Path(FOLDER.name) / name) for name in ("ledger", "memory"))
LATER = "host2:ibv_post_send:6000 "  # after several passes over the rings
STARTED = f"{CHECK} --power-cut {LEDGER} 10.77.0.1 & while ! [ -s {LEDGER} ]; do sleep 0.02; done; "


def cut(*client, options=(), fault=LATER + "power-off host1", fresh=True, server=CHECK, wrapper=(), **keywords):
    """Runs a server whose power is cut, and a client. Returns the run."""
    if fresh:
        pathlib.Path(LEDGER).unlink(missing_ok=True)
        pathlib.Path(MEMORY).write_bytes(bytes(SIZE))
    fault = ["--fault", fault] if fault else ["--until", "host2"]
    return run(*wrapper, SIM, "--pmem", MEMORY, *fault, *options, server, "--server", "--power-cut", MEMORY, "10.77.0.1",
               "::", *(client or (CHECK, "--power-cut", LEDGER, "10.77.0.1")), timeout=60, **keywords)


def verify(status, ledger=LEDGER, memory=MEMORY):
    done = run(CHECK, "--verify", ledger, "--memory", memory)
    expect((done.returncode, done.stderr), (status, ""), f"--verify: {done.stdout}")
    match = re.fullmatch(r"(\d+) records flushed, (\d+) checked, (\d+) missing(, first missing: stream \d, record \d+; its place at "
                         r"byte \d+ (?:has|is) [^()]+)?( \(the last line of .* is incomplete and ignored\))?\n", done.stdout)
    expect(bool(match), True, done.stdout)
    expect(bool(match[4]), status == MISSING, f"the first missing record: {done.stdout}")
    return [int(match[part]) for part in (1, 2, 3)]


def read_ledger():
    """Returns the places of a stream, and {stream: (done, bound)} of the last complete lines."""
    head, *lines = pathlib.Path(LEDGER).read_text(encoding="ascii").splitlines(keepends=True)
    words = [[int(word) for word in line.split()[:3]] for line in lines if line.endswith("\n")]
    return int(re.search(r"places (\d+)", head)[1]), {stream: (done, bound) for stream, done, bound in words}


@test("no flushed record is missing after a power cut")
def flushed():
    for options, environment in (((), {}), (("--lose", "random"), {}), (("--device", "mlx5"), {}), (("--device", "siw"), {}),
                                 ((), {"RPMA_FLUSH": "emulated"})):
        done = cut(options=options, env={**os.environ, **environment})
        expect(done.returncode, 0, f"{options}: {done}")
        expect("records flushed, listed in" in done.stdout and "the server is lost" in done.stdout, True, done.stdout)
        recorded, checked, missing = verify(FOUND)
        expect((recorded > 0, checked > 0, missing), (True, True, 0), f"{options}")
        expect(sorted(read_ledger()[1]), list(range(STREAMS)), "streams")


@test("writes without a flush, and flushes on a platform without direct write, are missing")
def lost():
    for client, options in ((("--no-flush",), ()), ((), ("--platform", "cpu-flush"))):
        done = cut(CHECK, *client, "--power-cut", LEDGER, "10.77.0.1", options=options)
        expect(done.returncode, 0, f"{done}")
        recorded, checked, missing = verify(MISSING)
        expect((recorded > 0, missing > 0), (True, True), f"{recorded} {checked} {missing}")


@test("a client that is killed has listed no record too many, and has written none before its line permitted it")
def killed_client():
    done = cut(fault=LATER + "kill host2")
    expect("the client has ended\n" in done.stdout, True, f"{done}")
    places, last = read_ledger()
    memory = pathlib.Path(MEMORY).read_bytes()
    expect((places, sorted(last)), (SIZE // RECORD // STREAMS, list(range(STREAMS))), "rings")
    expect(all(done > places for done, _ in last.values()), True, f"each ring was filled: {last}")
    for place in range(SIZE // RECORD):
        _, stream, number = struct.unpack_from("=3Q", memory, place * RECORD)
        expect((stream, number % places), divmod(place, places), f"place {place}")
        expect(number < last[stream][1], True, f"record {number} of stream {stream}: {last}")
    expect(verify(FOUND)[2], 0, "missing")


@test("the records of another run are missing")
def another_run():
    expect(cut().returncode, 0, "a run")
    first, (_, checked, _) = pathlib.Path(LEDGER).read_bytes(), verify(FOUND)
    expect(cut().returncode, 0, "another run")
    other = LEDGER + "-of-another-run"
    pathlib.Path(other).write_bytes(first)
    expect(verify(MISSING, other)[1:], [checked, checked], "all records are of another run")


@test("a full disk ends the client with one line, and the records listed before can be verified")
def full_disk():
    done = cut("sh", "-c", f"trap '' XFSZ; ulimit -f 1; exec {CHECK} --power-cut {LEDGER} 10.77.0.1", fault=None)
    expect((done.returncode, done.stderr.splitlines()[0]), (NOT_RUN, f"rpma-check: cannot write {LEDGER}: File too large"), f"{done}")
    expect(os.path.getsize(LEDGER), 512, "the size of the file")
    expect(verify(FOUND)[2], 0, "missing")
    done = cut("sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {CHECK} --power-cut {LEDGER} 10.77.0.1", fault=None)
    expect((done.returncode, f"cannot write {LEDGER}" in done.stderr, os.path.exists(LEDGER)), (NOT_RUN, True, False), f"{done}")
    for before, files in (("true", "ledger "), ("head -c 4096 /dev/zero >other", "other ")) if has_small_disk() else ():
        done = cut(CHECK, "--power-cut", "ledger", "10.77.0.1", fault=None, wrapper=on_small_disk("4k", before))
        expect(done.stdout.endswith(f"status {NOT_RUN}, files: {files}\n"), True, f"{before}: {done}")
        expect("cannot write ledger: No space left on device" in done.stderr, True, f"{before}: {done.stderr}")


@test("a server that is killed, or silent, ends the client, which lists its records")
def lost_server():
    for client, options, fault, reason in ((CHECK, (), LATER + "kill host1", ""),
                                           (OTHER, ("--device", "siw"), LATER + "cut host2", "no completion for 2 s")):
        done = cut(client, "--power-cut", LEDGER, "10.77.0.1", options=options, fault=fault, server=client)
        expect("records flushed, listed in" in done.stdout and f"the server is lost: {reason}" in done.stdout, True, f"{done}")
        expect(verify(FOUND)[2], 0, "missing")


@test("another version on the other side, and a client or server of another kind, are refused by one line")
def other_side():
    done = cut(OTHER, "--power-cut", LEDGER, "10.77.0.1", fault=None)
    for line in ("the server has version 1 of the protocol, this program version 999", "a client has version 999 of the protocol"):
        expect(done.stderr.count(line), 1, f"{done}")
    for server, client, line in ((("--power-cut", MEMORY), (), "the server was started with --power-cut: start both sides"),
                                 ((), ("--power-cut", LEDGER), "the server was started without --power-cut: start both sides")):
        done = run(SIM, "--pmem", MEMORY, "--until", "host2", CHECK, "--server", *server, "10.77.0.1", "::", CHECK, *client,
                   "10.77.0.1", timeout=60)
        expect((done.returncode, len(done.stderr.splitlines()), line in done.stderr), (NOT_RUN, 1, True), f"{done}")
        expect(os.path.exists(LEDGER), False, "the file")


@test("a second client is refused, and the first one goes on")
def second_client():
    second = f"{CHECK} --power-cut {LEDGER}-2 10.77.0.1; echo second $?; sleep 0.5; kill -TERM $!; wait"
    done = cut("sh", "-c", STARTED + second, fault=None)
    expect((f"second {NOT_RUN}\n" in done.stdout, "interrupted\n" in done.stdout), (True, True), f"{done}")
    expect("the server serves another client" in done.stderr, True, f"{done}")
    expect((os.path.exists(LEDGER + "-2"), verify(FOUND)[2]), (False, 0), "the file of the second client, missing records")


@test("a file that cannot be used is refused by one line, and nothing is left")
def unusable():
    done = run(CHECK, "--server", "--power-cut", CHECK, "127.0.0.1")
    expect_one_line(done, NOT_RUN, "a program that runs")
    pathlib.Path(MEMORY).write_bytes(bytes(RECORD))
    for path, words in ((MEMORY, "is not persistent memory"), ("/dev/null", "is neither a file nor a device DAX"), ("/none", "No such file"),
                        (FOLDER.name, "Is a directory")):
        done = run(CHECK, "--server", "--power-cut", path, "127.0.0.1")
        expect_one_line(done, NOT_RUN, path)
        expect(words in done.stderr, True, done.stderr)
    done = run(SIM, "--pmem", MEMORY, CHECK, "--server", "--power-cut", MEMORY, "10.77.0.1")
    expect((done.returncode, "the check needs 4194304 or more" in done.stderr), (NOT_RUN, True), done.stderr)
    pathlib.Path(LEDGER).write_bytes(b"kept")
    pathlib.Path(MEMORY).write_bytes(bytes(SIZE))
    done = cut(fault=None, fresh=False)
    expect((done.returncode, "File exists" in done.stderr, pathlib.Path(LEDGER).read_bytes()), (NOT_RUN, True, b"kept"), f"{done}")


@test("an interrupted client lists its records, and a client without a server says so")
def interrupted():
    for number in ("INT", "TERM", "HUP"):
        done = cut("sh", "-c", f"{STARTED} sleep 0.3; kill -{number} $!; wait", fault=None)
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
