# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: its measurements, with every byte checked; figures and words are tests/programs."""

import json
import os
import signal

from harness import lab
from harness.case import case
from harness.network import room_for_early_messages
from harness.program import PATIENCE, Process, address, measure, new_file, nothing_stays, serve, stop
from harness.side import expect

from .threads import MEMCHECK

SCHEMA = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))), "programs", "perf", "rpma-perf.schema.json")
ATOMICS = () if lab.lacks(lab.REMOTE_ATOMICS) else ("fetch-add", "compare-swap")
EIGHT_BYTES = ("atomic-write", *ATOMICS)
OPERATIONS = ("write", "read", "flush-visibility", "send", "ping-pong", "ping-pong-rcq", *EIGHT_BYTES)
# A device may be able to read into one element only.
LISTED = [name for name in OPERATIONS if name not in EIGHT_BYTES and not (name == "read" and lab.PROVIDER == "siw")]


def validated(text):
    import jsonschema  # the lab's root has it
    with open(SCHEMA, encoding="utf-8") as file:
        wanted = json.load(file)
    report = json.loads(text)
    jsonschema.Draft7Validator(wanted).validate(report)
    return report


def ends_at_signal(test, server):
    """The server may have said something about its clients."""
    server.signal(signal.SIGTERM)
    expect(server.process.wait(PATIENCE), 0, "exit status of the server")
    nothing_stays(test)


@case("perf", "each operation, verified: {shape}", [
    {"shape": "polling, 8 under way, 3 connections, 2 threads", "operations": OPERATIONS, "sizes": (1, 1000, 65536),
     "connections": 3, "options": ("--poll", "-c", "3", "-t", "2")},
    {"shape": "batches, inline", "operations": OPERATIONS, "sizes": (1, 1000), "connections": 1,
     "options": ("--batch", "4", "-i", "64")},
    {"shape": "prepared batches of lists of 5 elements", "operations": LISTED, "sizes": (5, 1001), "connections": 1,
     "options": ("--batch", "4", "--prepared", "-e", "5")}], limit=300)
def verified(test, shape, operations, sizes, connections, options):
    room_for_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", ",".join(operations), "-b", ",".join(map(str, sizes)), "-n", "64",
                     "-w", "16", "-d", "8", "--verify", "--json", *options)
    found = validated(client.end())["results"]
    expect([(row["operation"], row["size"], row["operations"], row["verified"]) for row in found],
           [(operation, size, 64 * connections, True) for operation in operations
            for size in ([8] if operation in EIGHT_BYTES else sizes)], "results")
    stop(test, server)


@case("perf", "persistent flushes to {kind} memory, verified",
      [{"kind": "fsdax", "needs": (lab.ON_DEMAND_PAGING,)}, {"kind": "devdax", "needs": ()}], limit=120)
def persistent(test, kind, needs):
    for feature in needs:
        lab.need_feature(feature)
    path = lab.need({"fsdax": lab.FSDAX, "devdax": lab.DEVDAX}[kind], f"{kind} memory")
    if kind == "fsdax":
        path = new_file(test, lab.FSDAX)
    room_for_early_messages(test)
    server = serve(test, "--memory", path, "--direct-write")
    client = measure(test, "-o", "flush-persistent,ping-pong", "-b", "100,4096", "-d", "4", "-n",
                     "100", "--verify", "--json")
    report = validated(client.end())
    expect((report["server"]["memory"], report["direct_write_stated"]), (kind, True), "server")
    expect([(row["verified"], row["persistence"]) for row in report["results"]],
           [(True, "stated")] * 2 + [(True, "not stated")] * 2, "verified, and persistent")
    stop(test, server)


@case("perf", "--direct-write is refused for memory that is not persistent")
def no_persistent_memory(test):
    path = new_file(test, "/dev/shm")
    Process(test, 1, "--server", "--memory", path, "--direct-write", address()).end(
        1, f"{path} is neither a file on FS-DAX nor a device DAX")
    nothing_stays(test)


def plausible(row, seconds):
    latency = [row["latency_us"][key] for key in ("min", "median", "p90", "p99", "p99_9", "max")]
    expect(latency, sorted(latency), "order of the latencies")
    expect(row["seconds"] >= seconds, True, f"{row['seconds']} s are less than asked for")
    rate = row["operations"] / row["seconds"]
    expect(abs(rate - row["operations_per_second"]) < rate / 100, True, f"rate of {row}")
    expect(abs(rate * row["size"] / 2**20 - row["bandwidth_mib_per_second"]) < 0.01, True,
           f"bandwidth of {row}")
    # Four operations are outstanding, so their times add up to four times the duration at most.
    expect(row["latency_us"]["mean"] * row["operations"] <= 4.04e6 * row["seconds"], True,
           f"mean of {row}")
    expect(row["cpu_us_per_operation"]["client"] > 0, True, "work of the client's processors")


def mix(value):
    for shift, factor in ((30, 0xbf58476d1ce4e5b9), (27, 0x94d049bb133111eb)):
        value = (value ^ value >> shift) * factor % 2**64
    return value ^ value >> 31


@case("perf", "reads among writes at random places, at a rate, with intervals and a picture")
def mixture(test):
    """The places that hold zeros afterwards are those of the writes, and of no read."""
    path, size, places, warmup = new_file(test, "/dev/shm"), 4096, 256, 20
    with open(path, "r+b") as file:
        file.write(b"\xff" * (2 * places * size))
    room_for_early_messages(test)
    server = serve(test, "--memory", path)
    picture = os.path.join(test.directory(), "run.svg")
    report = validated(measure(test, "-b", "4K", "--region", "1M", "--random", "--reads", "60",
                               "--rate", "40", "-d", "4", "-w", str(warmup), "-D", "3",
                               "--interval", "0.5", "--plot", picture, "--json").end())
    row, = report["results"]
    plausible(row, 3)
    expect(100 <= row["operations"] <= 121, True, f"{row['operations']} operations in 3 s at 40")
    expect(sum(part["operations"] for part in row["intervals"]), row["operations"], "intervals")
    with open(path, "rb") as file:
        written = {place for place in range(2 * places) if file.read(size) == bytes(size)}
    expect(written, {mix(mix(0) + number) % places for number in range(warmup + row["operations"])
                     if mix(number) % 100 >= 60}, "places that were written")
    with open(picture, encoding="utf-8") as file:
        expect("write, 4096 bytes" in file.read(), True, "title of the picture")
    stop(test, server)


@case("perf", "both directions at once, each operation")
def both(test):
    room_for_early_messages(test)
    server = serve(test)
    operations = ["write", "read", "flush-visibility", *EIGHT_BYTES]
    report = validated(measure(test, "-o", ",".join(operations), "-b", "1000", "--both", "-c", "3", "-t", "2",
                               "-d", "4", "--batch", "2", "-D", "1", "-w", "0", "--json").end())
    expect([row["operation"] for row in report["results"]], operations, "operations")
    for row in report["results"]:
        own = row["operations"] / row["seconds"]
        expect(row["server_operations_per_second"] > 0, True, "the server's operations")
        expect(abs(own + row["server_operations_per_second"] - row["operations_per_second"]) < own / 100,
               True, f"sum of both directions in {row}")
    stop(test, server)


@case("perf", "connections are made and taken down, on {connections} at once", [{"connections": 16}])
def connections_made(test, connections):
    room_for_early_messages(test)
    server = serve(test)
    report = validated(measure(test, "-o", "connect", "-c", str(connections), "-n", "10", "-w", "2",
                               "--json").end())
    row, = report["results"]
    expect((row["size"], row["operations"]), (0, 10 * connections), "size and operations")
    # A connection is taken down, too, before the next one is made in its place.
    expect(row["latency_us"]["mean"] * row["operations_per_second"] < 1e6 * connections, True,
           f"time of {row}")
    stop(test, server)


MANY = "{connections} connections of one client, and {others} clients at once"


@case("large", MANY, [{"connections": 1000, "others": 40}], limit=600, needs=(lab.MANY_CONNECTIONS,))
@case("perf", MANY, [{"connections": 100, "others": 5}], limit=600, needs=(lab.MANY_CONNECTIONS,))
def many(test, connections, others):
    """The server has one thread for all of them, because reads need no other."""
    room_for_early_messages(test)
    server = serve(test)
    clients = [measure(test, "-o", "read", "-D", "600", "--rate", "1") for _ in range(others)]
    for client in clients:
        client.wait_for_threads(2)
    report = validated(measure(test, "-o", "write,read", "-c", str(connections), "-b", "8", "-n", "20",
                               "-w", "0", "--verify", "--json").end())
    expect([(row["operations"], row["verified"]) for row in report["results"]], [(20 * connections, True)] * 2,
           "operations of all connections")
    expect(server.threads(), 1, "threads of the server")
    for client in clients:
        client.signal(signal.SIGINT)
        client.end(1, "interrupted")
    ends_at_signal(test, server)


@case("perf", "memcheck: both sides, each operation, and a peer that is killed", limit=600)
def valgrind(test):
    room_for_early_messages(test)
    server = serve(test, wrapper=MEMCHECK)
    measure(test, "-o", ",".join(OPERATIONS), "-d", "4", "--batch", "2", "-n", "8", "--verify",
            wrapper=MEMCHECK).end()
    client = measure(test, "-o", "ping-pong", "-D", "120")
    client.wait_for_threads(2)
    client.signal(signal.SIGKILL)
    server.wait_until(lambda: server.complained().count("\n") == 1, "line about the client")
    ends_at_signal(test, server)
