#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Runs programs of librpma, and of its users, on the simulated fabric, with the fixture of sim/tests/programs. Prints TAP.

usage: librpma_programs.py RDMA-SIM BUILD [CASE...]    BUILD is the build directory of librpma and of its examples
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
ABI = ROOT / "tests" / "abi"
sys.path.insert(0, str(ROOT / "sim/tests/programs"))

from fixture import OBJECTS, SERVER, main, test

BUILD = pathlib.Path(sys.argv.pop(2)).resolve() if len(sys.argv) > 2 else sys.exit(__doc__)


@test("Debian's librpma0 and a program linked to it", "cc")
def debian(fixture):
    """The original library and this one run the same executable."""
    fixture.run(ABI / "debian.py", "build", fixture.work)
    program, root = fixture.work / "debian-1.2.0", fixture.work / "librpma0"
    archive = max((pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
                   / "librpma" / "debian-1.2.0").glob("librpma0_*.deb"))
    fixture.run("dpkg-deb", "--extract", archive, root)
    for library in [next(root.glob("usr/lib/*/librpma.so.0")).parent, BUILD / "src"]:
        fixture.expect(fixture.sim("env", f"LD_LIBRARY_PATH={library}:{fixture.shims}", program, SERVER), 0)


@test("programs of old releases", "cc")
def releases(fixture):
    into = fixture.work / "releases"
    into.mkdir()
    fixture.run(ABI / "releases.py", "--library", BUILD / "src", "--into", into, "all")
    programs = sorted(path for path in into.iterdir() if os.access(path, os.X_OK))
    assert len(programs) > 5, f"{len(programs)} programs"
    for program in programs:
        fixture.expect(fixture.sim("env", f"LD_LIBRARY_PATH={BUILD / 'src'}:{fixture.shims}", program,
                                   SERVER), 0)


def power_failure(fixture, *options, host=1):
    """
    Runs the example until both programs have ended; the server's host loses power. Returns the
    content of the file.
    """
    address, other = f"10.77.0.{host}", 3 - host
    file = fixture.work / "pmem"
    file.unlink(missing_ok=True)
    example = BUILD / "examples" / "power-failure"
    done = fixture.sim("--pmem", f"host{host}={file}", "--fault", f"after host{host} power-off host{host}", "--prefix",
                       *options, f"@host{host}", f"{example}-server", "--direct-write", address, "7471", file, "::",
                       f"@host{other}", f"{example}-client", address, "7471")
    fixture.expect(done, 0, f"host{host}: server: sees both blocks in persistent memory",
                   f"host{other}: client: wrote block 1 and flushed it: it is persistent",
                   f"host{other}: client: wrote block 2 and did not flush it")
    return file.read_bytes()


def block(number):
    """The same content as fill_block() of the examples."""
    return b"".join(b"librpma example %02u, line %06u\n" % (number, line) for line in range(1, 129))


@test("a flushed write survives a power failure, an unflushed one does not")
def flushed_survives(fixture):
    for device, host in [("rxe", 1), ("mlx5", 2), ("siw", 1)]:
        data = power_failure(fixture, "--device", device, host=host)
        assert data == block(1) + bytes(4096), f"{device}: {data!r}"


@test("a power failure may lose some words only")
def loses_some(fixture):
    data = power_failure(fixture, "--lose", "random", "--seed", "7")
    assert data[:4096] == block(1)
    words = [data[4096 + at:4104 + at] for at in range(0, 4096, 8)]
    new = [block(2)[at:at + 8] for at in range(0, 4096, 8)]
    kept = sum(word == wanted for word, wanted in zip(words, new))
    assert all(word in (wanted, bytes(8)) for word, wanted in zip(words, new))
    assert 128 < kept < 384, kept
    assert power_failure(fixture, "--lose", "random", "--seed", "7") == data
    assert power_failure(fixture, "--lose", "random", "--seed", "8") != data


@test("a flush by a read persists nothing on a platform without direct write")
def cpu_flush(fixture):
    data = power_failure(fixture, "--device", "mlx5", "--platform", "cpu-flush")
    assert data == bytes(8192), data


# Commands that log lines and pages advise, and what they show in this situation: this file finds them.
def advised_commands():
    paths = [*ROOT.glob("docs/*.md"), *ROOT.glob("man/*.[1-7]"), *ROOT.glob("sim/man/*.[1-7]"), *ROOT.glob("src/verbs/*.cc")]
    pattern = re.compile(r"""(?:^\.Dl [$\#] |^\.Ql |^|['`])(rdma (?:link|dev|res|resource|stat|statistic|system)\b[^'`\n"]*)""", re.M)
    return {command.strip() for path in paths for command in pattern.findall(path.read_text(encoding="utf-8"))}


def show_port_owner(fixture, command):
    """Two servers want one port: the command names the program that has it."""
    perf = f"{BUILD}/programs/perf/rpma-perf"
    done = fixture.sim("sh", "-c", f"{perf} -s {SERVER} >/dev/null & until rdma resource show cm_id | grep -q LISTEN; do "
                       f"sleep 0.01; done; echo has $!; {perf} -s {SERVER}; {command}; kill $!; wait",
                       environment={"RPMA_LOG": "info"})
    fixture.expect(done, 0, "Address already in use .*'rdma resource show cm_id' names the program that has the port")
    owner = re.search(r"^has (\d+)$", done.stdout, re.M).group(1)
    fixture.expect(done, 0, rf"state LISTEN ps TCP pid {owner} comm rpma-perf src-addr 10.77.0.1:7204")


def show_timeouts(fixture, command):
    """The link is cut while the client writes: the counters show the lost responses."""
    file = fixture.work / "begun"
    file.unlink(missing_ok=True)
    sent = "$(cat /sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_packets)"
    done = fixture.sim("--device", "mlx5", "--until", "host2", "--fault", "after host3 cut host1 host2",
                       "sh", "-c", "ib_write_bw -F -x 1 -D 100; true", "::", "sh", "-c",
                       f"ib_write_bw -F -x 1 -D 100 {SERVER} & until test {sent} -gt 1000; do sleep 0.01; done; "
                       f"touch {file}; wait $!; {command}", "::", "sh", "-c", f"until test -e {file}; do sleep 0.01; done")
    # perftest repeats a timeout seven times.
    fixture.expect(done, 0, " local_ack_timeout_err 8 ", " req_transport_retries_exceeded 1 ")


def show_output(*expected, argument=""):
    def function(fixture, command):
        source, program = fixture.work / "objects.c", fixture.work / "objects"
        source.write_text(OBJECTS, encoding="utf-8")
        fixture.run("cc", source, "-o", program, "-libverbs")
        fixture.expect(fixture.sim("--device", "mlx5", program, f"{command} {argument}; true"), 0, *expected)
    return function


# The name of a network namespace is that of a file, which no host has.
REFUSED = "^error: (Operation not|Invalid argument|No such device)|\"NAME\": No such file"
ADVISED = {
    "rdma link": show_output("^link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev sim0 $"),
    "rdma resource": show_output("^0: mlx5_0: pd 2 cq 2 qp 6 cm_id 0 mr 3 ctx 1 srq 0 $"),
    "rdma resource show qp": show_output("lqpn [0-9]+ .*type RC state RESET .*comm objects"),
    "rdma resource show cm_id": show_port_owner,
    "rdma statistic": show_timeouts,
    "rdma statistic show link mlx5_0/1": show_timeouts,
    "rdma link add rxe0 type rxe netdev eth0": show_output(REFUSED),
    "rdma link delete": show_output(REFUSED, argument="mlx5_0"),
    "rdma system set netns exclusive": show_output(REFUSED),
    "rdma dev set mlx5_0 netns NAME": show_output(REFUSED),
}


@test("advised commands of rdma show the cause", "rdma", "cc", "ibv_rc_pingpong")
def advised(fixture):
    commands = advised_commands()
    assert commands == set(ADVISED), commands ^ set(ADVISED)
    for command, check in ADVISED.items():
        check(fixture, command)


if __name__ == "__main__":
    main(__doc__)
