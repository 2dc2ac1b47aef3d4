# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-sim explore with programs of Debian, and of C, Python and Rust."""

import pathlib

from fixture import Missing, test

HERE = pathlib.Path(__file__).resolve().parent
RACE = "240-260"  # seeds
EXPLORED = ("rping -s -C 2 :: rping -c -a 10.77.0.1 -C 2", "ucmatose :: ucmatose -s 10.77.0.1",
            *(f"{program} :: {program} 10.77.0.1" for program in (
                "ibv_rc_pingpong -g 1 -n 20", "ibv_rc_pingpong -e -g 1 -n 20",
                "ib_write_bw -F -n 20", "ib_write_lat -F -n 20")))


@test("explore runs programs with threads, sockets and loops in memory", "rping", "ibv_rc_pingpong", "ib_write_bw")
def explored(fixture):
    for programs in EXPLORED:
        fixture.expect(fixture.sim("explore", "--seeds", "1-3", "--faults", "none", "--check", "true", *programs.split()),
                       0, "3 schedules, 0 with faults: nothing found")


@test("explore finds the race at the end of rping before rdma-core 59", "rping", "dpkg-query")
def explored_race(fixture):
    """github.com/linux-rdma/rdma-core/pull/1622: a thread calls rdma_get_cm_event() after main() has destroyed the channel.
    The reason is that of the descriptor in memory that main() has freed."""
    version = int(fixture.run("dpkg-query", "-W", "-f", "${Version}", "rdmacm-utils").split(".")[0])
    done = fixture.sim_once("explore", "--seeds", RACE, "--faults", "none", "--check", "true", *EXPLORED[0].split())
    if version < 59:
        fixture.expect(done, 1, r"FOUND: host\d ends with status 255: rdma_get_cm_event: ")
    else:
        fixture.expect(done, 0, "nothing found")


def expect_equal_replays(fixture, programs, *options):
    finding = fixture.work / "finding"
    fixture.expect(fixture.sim("explore", *options, "--check", "false", "--save", str(finding), *programs.split()), 1, "FOUND")
    first = fixture.sim("explore", "--replay", str(finding))
    fixture.expect(first, 1, "FOUND: the check fails")
    for _ in range(3):
        again = fixture.sim("explore", "--replay", str(finding))
        assert again.stdout == first.stdout, again.stdout


@test("replays of programs with threads and sockets are equal", "rping", "ucmatose", "gcc")
def explored_again(fixture):
    tcp = fixture.work / "tcp"
    fixture.run("gcc", str(HERE / "tcp.c"), "-o", str(tcp))
    for programs in (EXPLORED[0], EXPLORED[1], f"{tcp} :: {tcp} 10.77.0.1"):
        expect_equal_replays(fixture, programs, "--seeds", "3")


def expect_explored(fixture, program):
    """The finding is a schedule without choices, because it takes a minute to shorten one of these programs."""
    programs = f"{program} :: {program} 10.77.0.1"
    fixture.expect(fixture.sim("explore", "--seeds", "1-3", "--faults", "none", "--check", "true", *programs.split()),
                   0, "3 schedules, 0 with faults: nothing found")
    expect_equal_replays(fixture, programs, "--seeds", "1-1", "--search", "exhaustive")


@test("explore runs perftest and libfabric, and replays are equal", "ib_write_bw", "fi_pingpong")
def explored_tools(fixture):
    for program in "ib_write_bw -F -n 5", "fi_pingpong -e msg -p verbs -I 2":
        expect_explored(fixture, program)


@test("explore runs a program of pyverbs, and replays are equal", "/usr/bin/python3")
def explored_pyverbs(fixture):
    if fixture.sim("/usr/bin/python3", "-c", "import pyverbs.device").returncode != 0:
        raise Missing("python3-pyverbs")
    program = f"/usr/bin/python3 {HERE}/write.py"
    fixture.expect(fixture.sim(*f"{program} :: {program} 10.77.0.1".split()), 0, "written: by pytho")
    expect_explored(fixture, program)


@test("explore runs programs of Rust, and replays are equal", "rustc")
def explored_rust(fixture):
    for name in "devices", "threads":
        program = fixture.work / name
        fixture.run("rustc", "--edition", "2021", str(HERE / f"{name}.rs"), "-o", str(program))
        expect_explored(fixture, program)
