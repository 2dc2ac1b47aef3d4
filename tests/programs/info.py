#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests rpma-info on a machine with or without RDMA: info.py PROGRAM SOURCE VERSION

The lab compares the data of devices (tests/integration/cases/info.py).
"""

import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import struct
import subprocess
import sys
import tempfile
import termios

sys.dont_write_bytecode = True

import harness
from harness import Skipped, expect, expect_one_line, run, test

PROGRAM, SOURCE, VERSION = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
SCHEMA = SOURCE / "programs/info/rpma-info.schema.json"
POSSIBLE, FAILED, WRONG_ARGUMENTS, NO_DEVICE, NO_MEMORY = range(5)
DRAM = {"tmpfs": "tmpfs", "ramfs": "tmpfs", "hugetlbfs": "hugetlbfs"}


def has_device():
    try:
        return bool(os.listdir("/sys/class/infiniband"))
    except FileNotFoundError:
        return False


def report(*arguments, **options):
    """Returns the JSON of a run, checked against the schema."""
    done = run(PROGRAM, "--json", *arguments, **options)
    expect(done.stderr, "", "standard error")
    found = json.loads(done.stdout)
    expect(found["exit_status"], done.returncode, "exit_status")
    try:
        import jsonschema
    except ImportError:
        raise Skipped("python3-jsonschema is not installed: tools/setup programs") from None
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(found)
    return found


@test("help, manual page and completion list the same options, and help fits a terminal")
def lists():
    harness.check_lists(PROGRAM, "rpma-info", SOURCE / "man/rpma-info.1",
                        SOURCE / "programs/completion/rpma-info")


@test("the completion offers paths after --memory")
def completes_paths():
    found = harness.completed(SOURCE / "programs/completion/rpma-info", "rpma-info", "--memory",
                              str(SOURCE / "mes"))
    expect(sorted(found), [str(SOURCE / "meson.build"), str(SOURCE / "meson_options.txt")], "paths")


@test("--version prints the version of the project, of the program and of the library")
def version():
    done = run(PROGRAM, "--version")
    expect((done.returncode, done.stdout, done.stderr),
           (0, f"rpma-info {VERSION}, librpma {VERSION}\n", ""), "--version")


@test("wrong arguments: status 2 and one line")
def wrong_arguments():
    for arguments in (["--unknown"], ["-h"], ["-x"], ["-xy"], ["--json=1"], ["--device"], ["--memory"], ["--plan"],
                      *(["--plan", size] for size in ("", "5", "5,", ",5", "0,5", "5,0", "-1,5", "5,1000001", "5,6,7", "5, 6", "a,5",
                                                      "99999999999999999999,5")),
                      ["--plan", "1,1", "--plan", "1,1"],
                      ["--device="], ["--memory", ""], [""], ["a", "b"], ["a", "--device", "b"],
                      ["--device", "a", "--device", "b"], ["--memory", "a", "--memory", "b"],
                      ["--dev", "a", "--", "b"], ["--", "a", "--json"]):
        expect_one_line(run(PROGRAM, *arguments), WRONG_ARGUMENTS, arguments)
    for arguments, words in ((["--json=1"], "--json takes no value;"), (["--memory"], "--memory needs a value;"),
                             (["a", "b"], "b follows the address a: only one address is possible")):
        expect(words in run(PROGRAM, *arguments).stderr, True, words)


@test("a machine without RDMA gets a report, in JSON according to the schema")
def no_device():
    found = report()
    if has_device():
        expect(found["devices"] != [], True, "devices of a machine that has some")
        return
    expect((found["exit_status"], found["devices"], found["usable"]["is"]),
           (NO_DEVICE, [], False), "answer")
    expect("modprobe rdma_rxe" in found["usable"]["help"], True, found["usable"]["help"])


@test("the text has the content of the JSON, outside a terminal in lines of at most 80 columns")
def text():
    found, done = report(), run(PROGRAM)
    expect((done.returncode, done.stderr), (found["exit_status"], ""), "end")
    for line in done.stdout.splitlines():
        expect(len(line) <= 80, True, f"columns of {line!r}")
    words = " ".join(done.stdout.split())
    for answer in (found["usable"], found["connection_manager"],
                   found["limits"]["locked_memory"]["unlimited"]):
        for sentence in (answer.get("why", ""), answer.get("help", "")):
            expect(" ".join(sentence.split()) in words, True, f"{sentence!r} in the text")
    for value in found["versions"].values():
        expect(value is None or value in words or "/" in value, True, f"{value} in the text")


def on_terminal(columns):
    """The text on a terminal with this number of columns."""
    own_end, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen([PROGRAM], stdin=subprocess.DEVNULL, stdout=other_end)
    os.close(other_end)
    output = b""
    try:
        while chunk := os.read(own_end, 4096):
            output += chunk
    except OSError:  # EIO: the other end is closed
        pass
    os.close(own_end)
    process.wait()
    return output.decode().replace("\r\n", "\n")


@test("the text fits the width of the terminal; its words do not change")
def width():
    output = run(PROGRAM).stdout
    for columns in (60, 1000, 40):
        expect(on_terminal(columns).split(), output.split(), f"words in {columns} columns")
    expect(55 < max(map(len, on_terminal(60).splitlines())) <= 60, True, "columns of the narrow text")
    expect(80 < max(map(len, on_terminal(1000).splitlines())), True, "columns of the wide text")
    expect(on_terminal(10), on_terminal(40), "a terminal without room")
    expect(on_terminal(0), output, "a terminal without a width")


@test("limits and versions are those of the system")
def system():
    soft, hard = 8192, 16384
    limits = {resource.RLIMIT_NOFILE: (soft, hard), resource.RLIMIT_MEMLOCK: (soft, hard)}

    def lower():
        for which, values in limits.items():
            resource.setrlimit(which, values)
    found = report(preexec_fn=lower)
    for name in ("descriptors", "locked_memory"):
        expect([found["limits"][name][key] for key in ("soft", "hard")], [soft, hard], name)
    expect(found["versions"]["kernel"], os.uname().release, "kernel")
    expect(found["versions"]["librpma"], VERSION, "librpma")
    package = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", "libibverbs1"],
                             capture_output=True, text=True, check=False).stdout
    if package:
        expect(found["versions"]["rdma_core"], package, "rdma-core, compared with the package")


@test("a device or an address that does not exist: status 3 and a report")
def missing():
    for arguments in (["--device", "no-such-device"], ["192.0.2.1"], ["no-such-host.invalid"]):
        found = report(*arguments)
        expect((found["exit_status"], found["usable"]["is"]), (NO_DEVICE, False), arguments)
        if "--device" in arguments:
            expect("no device no-such-device" in found["usable"]["why"], True, found["usable"]["why"])


@test("a plan that exceeds limits: the needs, and a reason and a remedy for each limit")
def plan_needs_and_limits():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))}
    # 10 entries: 16 of 256 and of 16 bytes, 2 pages; 32 completions of 64 bytes, 1 page
    for connections, queue, memory in ((1, 10, 3 * 4096), (5000, 10, 5000 * 3 * 4096), (3, 64, 3 * (5 + 4) * 4096)):
        found = report("--plan", f"{connections},{queue}", **few)["plan"]
        expect({key: found[key] for key in ("descriptors", "descriptors_shared", "completions", "queue_memory", "mappings")},
               {"descriptors": 2 * connections + 1, "descriptors_shared": connections + 2, "completions": 2 * queue,
                "queue_memory": memory, "mappings": 3 * connections}, (connections, queue))
        expect(found["descriptors_fit"]["is"], connections < 50, "100 descriptors")
    text = run(PROGRAM, "--plan", "5000,64", **few).stdout
    expect("Plan for 5000 connections with queues of 64 entries" in text and "too many: the limit is 100" in text, True, text)
    expect(report("--plan", "1000000,1000000")["plan"]["mappings_fit"]["is"], False, "vm.max_map_count")


@test("a plan needs no device: status 0 and a row, but 3 with a device or an address that does not exist")
def plan_without_device():
    done = run(PROGRAM, "--plan", "10,10")
    expect((done.returncode, "the limits of a device were not compared" in done.stdout), (POSSIBLE, not has_device()), done.stdout)
    for arguments in (["--device", "no-such-device"], ["no-such-host.invalid"]):
        expect(report("--plan", "10,10", *arguments)["exit_status"], NO_DEVICE, arguments)


@test("control characters in arguments and the environment: one row without control characters, and its reason")
def text_from_outside():
    for value, seen in (("x\n\x1b[2J\x7f\u009b", r"x\n\x1b[2J\x7f\xc2\x9b"), ("y" * 5000, "yyyy...")):
        for arguments, times in ((["--device", value], 2), ([value], 1)):
            done = run(PROGRAM, *arguments, env={**os.environ, "RPMA_FLUSH": value})
            text = re.sub(r"\n {22}", " ", done.stdout)
            expect([c for c in text.replace("\n", "") if ord(c) < 32 or 126 < ord(c) < 160], [], arguments)
            expect(text.count(seen) >= times, True, (arguments, text))
        done = run(PROGRAM, "--memory", f"/nowhere/{value}")
        expect_one_line(done, NO_MEMORY, value)


@test("the environment: RPMA_FLUSH is reported")
def environment():
    expect(report(env={**os.environ, "RPMA_FLUSH": "emulated"})["rpma_flush"], "emulated", "with")
    without = {key: value for key, value in os.environ.items() if key != "RPMA_FLUSH"}
    expect(report(env=without)["rpma_flush"], None, "without")


def check_file(directory, size):
    """Expects the file system that stat(1) reports."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        content = os.urandom(min(size, 4096)) + bytes(max(size - 4096, 0))
        file.write(content)
        file.flush()
        system = subprocess.run(["stat", "-f", "-c", "%T", file.name], capture_output=True,
                                text=True, check=True).stdout.strip()
        found = report("--memory", file.name)["memory"]
        expect((found["path"], found["size"], found["tried_size"], found["kind"]),
               (file.name, size, min(size, 64 << 20), DRAM.get(system, "file")), f"memory on {system}")
        expect((found["persistent"]["is"], found["map_sync"]), (False, False), "persistence")
        expect(pathlib.Path(file.name).read_bytes() == content, True, "unchanged content")
        return system


@test("--memory with an ordinary file, of whole pages or not")
def ordinary_file():
    for size in (1, 4096, 10000, (64 << 20) + 1):
        check_file(".", size)


@test("--memory with a file in DRAM")
def tmpfs():
    expect(check_file("/dev/shm", 1 << 20), "tmpfs", "file system of /dev/shm")


@test("--memory with a file that cannot be mapped: status 4 and one line")
def no_memory():
    with tempfile.TemporaryDirectory() as directory:
        empty, pipe = os.path.join(directory, "empty"), os.path.join(directory, "pipe")
        pathlib.Path(empty).touch()
        os.mkfifo(pipe)
        missing = os.path.join(directory, "missing")
        for path, why in ((missing, "the file does not exist"), (directory, "is a directory"),
                          (empty, "is empty"), (pipe, "neither a file nor a device DAX"),
                          ("/dev/null", "neither a file nor a device DAX"),
                          (empty + "/below", "Not a directory")):
            for json_too in ([], ["--json"]):
                done = run(PROGRAM, *json_too, "--memory", path)
                expect_one_line(done, NO_MEMORY, path)
                expect(f"{path}: " in done.stderr and why in done.stderr, True, done.stderr)
        expect((os.path.exists(missing), os.path.getsize(empty)), (False, 0), "no file is created")
        block = [path for path in pathlib.Path("/dev").iterdir() if path.is_block_device()]
        for path in block[:1]:
            expect_one_line(run(PROGRAM, "--memory", str(path)), NO_MEMORY, path)


@test("--memory with a file that is not writable: status 4 and one line")
def read_only():
    path = "/sys/kernel/uevent_seqnum"  # not even root can open it for writing
    expect(os.path.getsize(path) > 0, True, f"{path} has a size")
    expect_one_line(run(PROGRAM, "--memory", path), NO_MEMORY, path)


@test("output that cannot be written: status 1 and one line")
def full():
    for arguments in ([], ["--json"], ["--help"], ["--version"]):
        with open("/dev/full", "w", encoding="utf-8") as nowhere:
            expect_one_line(run(PROGRAM, *arguments, stdout=nowhere), FAILED, arguments)


sys.exit(harness.main())
