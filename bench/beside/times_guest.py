#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs in the lab: rpma-perf, perftest and fi_pingpong in turn, doing the same work.

usage: times_guest.py ROUNDS

Prints lines of program, work, size, figure and value, separated by tabs. Programs that poll run
with the scheduling policy for idle time (chrt --idle), so that on the machine's one processor the
work of the device comes first.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TIMES = {64: 1024, 4096: 1024, 65536: 320}
SLICED_TIMES = 100  # transfers in SLICED_WORKS
TRIES = 5  # ib_write_bw of perftest dies of SIGSEGV when its server rejects the connection
DEPTH = 64
MIB = 1 << 20
WARMUP = 20
RPMA_PERF = os.path.join(os.environ["LIBRPMA_BUILD_DIR"], "programs", "perf", "rpma-perf")
ADDRESS = os.environ["LAB_ADDR_host2"]
IDLE = ["chrt", "--idle", "0"]


def is_listening(port):
    """Whether a program on host2 listens at the port, by TCP or RDMA."""
    ids = subprocess.run(["rdma", "resource", "show", "cm_id"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    if any(re.search(rf"rxe2\b.* LISTEN .*:{port}\b", line) for line in ids.splitlines()):
        return True
    sockets = subprocess.run(["on", "host2", "cat", "/proc/net/tcp"], stdout=subprocess.PIPE,
                             text=True, check=True).stdout
    return any(f":{port:04X} 00000000:0000 0A" in line for line in sockets.splitlines())


class Crashed(Exception):
    """A client that a signal ended."""


def run_pair(port, server, client):
    """Runs both sides and returns the output of the client; may raise Crashed."""
    with tempfile.TemporaryFile("w+") as log:
        serving = subprocess.Popen(["on", "host2", *map(str, server)], stdout=log,
                                   stderr=subprocess.STDOUT)
        listens = False
        while serving.poll() is None and not listens:
            listens = is_listening(port)
            # A polling server runs in idle time only, and listens before it accepts connections.
            time.sleep(0.1)
        done = subprocess.run(["on", "host1", *map(str, client)], stdout=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode != 0:
            serving.kill()
        status = serving.wait()
        if done.returncode or status:
            log.seek(0)
            what = (f"times: {client} ended with {done.returncode}, its server with {status}: "
                    f"{done.stdout}{log.read()}")
            if done.returncode < 0:
                raise Crashed(what)
            sys.exit(what)
    return done.stdout


def perftest(*work):
    """Repeats perftest_once() after a crash, and reports the crash."""
    for _ in range(TRIES - 1):
        try:
            return perftest_once(*work)
        except Crashed as crash:
            print(crash, file=sys.stderr, flush=True)
    return perftest_once(*work)


def perftest_once(program, polls, size, times, *options):
    """Runs both sides of a program of perftest and returns its results."""
    first = IDLE if polls else []
    with tempfile.TemporaryDirectory() as name:
        output = pathlib.Path(name) / "results.json"
        command = [program, "--rdma_cm", f"--size={size}", f"--iters={times}", *options]
        run_pair(18515, [*first, *command, "--ib-dev=rxe2"],
                 [*first, *command, "--ib-dev=rxe1", "--out_json",
                  f"--out_json_file={output}", ADDRESS])
        return json.loads(output.read_text())["results"]


def rpma_perf(operation, polls, size, times, *options):
    """Runs both sides of rpma-perf and returns its result."""
    first = IDLE if polls else []
    output = run_pair(7204, [*first, RPMA_PERF, "--server", "--once", ADDRESS],
                      [*first, RPMA_PERF, "--json", f"--operation={operation}", f"--size={size}",
                       f"--count={times}", f"--warmup={WARMUP}", *(["--poll"] if polls else []),
                       *options, ADDRESS])
    return json.loads(output)["results"][0]


def fi_pingpong(size, times):
    """Mean time of one transfer in microseconds."""
    command = ["fi_pingpong", "-p", "verbs", "-e", "msg", "-I", times, "-S", size]
    output = run_pair(47592, [*IDLE, *command, "-d", "rxe2"],
                      [*IDLE, *command, "-d", "rxe1", ADDRESS])
    return float(output.splitlines()[-1].split()[-2])


def half(result):
    return result["latency_us"]["median"] / 2


# Each work with its figure and a function of size and times for each program that does it.
WORKS = [
    ("read", "median µs", {
        "perftest": lambda size, times: perftest(
            "ib_read_lat", False, size, times, "--events")["t_typical"],
        "rpma-perf": lambda size, times: rpma_perf(
            "read", False, size, times)["latency_us"]["median"]}),
    ("message and echo, half", "median µs", {
        "perftest": lambda size, times: perftest(
            "ib_send_lat", False, size, times, "--events", f"--tx-depth={DEPTH}",
            f"--cq-mod={DEPTH}")["t_typical"],
        "rpma-perf": lambda size, times: half(rpma_perf("ping-pong-rcq", False, size, times))}),
    # The mean would mislead: perftest's server polls while it waits for the end, and shares the
    # idle time. Bytes divided by the peak bandwidth are the time of the fastest write.
    ("write, polled", "least µs", {
        "perftest": lambda size, times: size / MIB * 1e6 / perftest(
            "ib_write_bw", True, size, times, "--tx-depth=1", "--cq-mod=1")["BW_peak"],
        "rpma-perf": lambda size, times: rpma_perf(
            "write", True, size, times)["latency_us"]["min"]}),
]
# Both sides poll, and each transfer lasts until the scheduler takes the processor from the side
# that waits.
SLICED_WORKS = [
    ("message and echo, half, polled", "mean µs", {
        "perftest": lambda size, times: perftest(
            "ib_send_lat", True, size, times)["t_avg"],
        "fi_pingpong": fi_pingpong,
        "rpma-perf": lambda size, times: rpma_perf(
            "ping-pong-rcq", True, size, times)["latency_us"]["mean"] / 2}),
    ("write and answer, half, polled", "mean µs", {
        "perftest": lambda size, times: perftest(
            "ib_write_lat", True, size, times)["t_avg"]}),
]


def main():
    rounds = int(sys.argv[1])
    for number in range(rounds):
        print(f"times: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for works, sizes in ((WORKS, TIMES), (SLICED_WORKS, {64: SLICED_TIMES})):
            for size, times in sizes.items():
                for work, figure, programs in works:
                    # The order alternates, so that no program always runs first.
                    for name in list(programs)[::1 if number % 2 == 0 else -1]:
                        value = programs[name](size, times)
                        print(name, work, size, figure, f"{value:.3f}", sep="\t", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Crashed as error:
        sys.exit(str(error))
