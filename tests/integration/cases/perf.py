# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf: its measurements, with every byte checked. tests/programs checks figures and texts."""

import json
import os
import signal

from harness import lab
from harness.case import case
from harness.network import delay_early_messages
from harness.program import TIMEOUT, expect_no_leak, measure, new_file, serve, stop
from harness.side import expect

SCHEMA = os.path.join(lab.CHECKOUT, "programs", "perf", "rpma-perf.schema.json")
ATOMICS = () if lab.lacks(lab.REMOTE_ATOMICS) else ("fetch-add", "compare-swap")
EIGHT_BYTES = ("atomic-write", *ATOMICS)
OPERATIONS = ("write", "read", "flush-visibility", "send", "ping-pong", "ping-pong-rcq", *EIGHT_BYTES)
# soft-iWARP reads into one SGE only.
LISTED = [name for name in OPERATIONS if name not in EIGHT_BYTES and not (name == "read" and lab.PROVIDER == "siw")]


def validated(text):
    try:
        import jsonschema
    except ImportError:
        raise lab.Skipped("python3-jsonschema is not installed: tools/setup programs") from None
    with open(SCHEMA, encoding="utf-8") as file:
        wanted = json.load(file)
    report = json.loads(text)
    jsonschema.Draft7Validator(wanted).validate(report)
    return report


def terminate(test, server):
    """The server may have printed lines about its clients."""
    server.signal(signal.SIGTERM)
    expect(server.process.wait(TIMEOUT), 0, "exit status of the server")
    expect_no_leak(test)


@case("perf", "each operation, verified: {shape}", [
    {"shape": "polling, 8 under way, 3 connections, 2 threads", "operations": OPERATIONS, "sizes": (1, 1000, 65536),
     "connections": 3, "options": ("--poll", "-c", "3", "-t", "2")},
    {"shape": "batches, inline", "operations": OPERATIONS, "sizes": (1, 1000), "connections": 1,
     "options": ("--batch", "4", "-i", "64")},
    {"shape": "prepared batches of lists of 5 elements", "operations": LISTED, "sizes": (5, 1001), "connections": 1,
     "options": ("--batch", "4", "--prepared", "-e", "5")}], limit=300, fabric=True)
def verified(test, shape, operations, sizes, connections, options):
    delay_early_messages(test)
    server = serve(test)
    client = measure(test, "-o", ",".join(operations), "-b", ",".join(map(str, sizes)), "-n", "64",
                     "-w", "16", "-d", "8", "--verify", "--json", *options)
    found = validated(client.end())["results"]
    expect([(row["operation"], row["size"], row["operations"], row["verified"]) for row in found],
           [(operation, size, 64 * connections, True) for operation in operations
            for size in ([8] if operation in EIGHT_BYTES else sizes)], "results")
    stop(test, server)


@case("perf", "persistent flushes to {kind} memory, verified",
      [{"kind": "fsdax", "needs": (lab.ON_DEMAND_PAGING,)}, {"kind": "devdax"}], limit=120)
def persistent(test, kind):
    path = lab.need({"fsdax": lab.FSDAX, "devdax": lab.DEVDAX}[kind], f"{kind} memory")
    if kind == "fsdax":
        path = new_file(test, lab.FSDAX)
    delay_early_messages(test)
    server = serve(test, "--memory", path, "--direct-write")
    client = measure(test, "-o", "flush-persistent,ping-pong", "-b", "100,4096", "-d", "4", "-n",
                     "100", "--verify", "--json")
    report = validated(client.end())
    expect((report["server"]["memory"], report["direct_write_stated"]), (kind, True), "server")
    expect([(row["verified"], row["persistence"]) for row in report["results"]],
           [(True, "stated")] * 2 + [(True, "not stated")] * 2, "verified, and persistent")
    stop(test, server)


MANY = "{connections} connections of one client, and {others} clients at once"


@case("large", MANY, [{"connections": 1000, "others": 40}], limit=600, needs=(lab.MANY_CONNECTIONS,))
@case("perf", MANY, [{"connections": 100, "others": 5}], limit=600, needs=(lab.MANY_CONNECTIONS,), fabric=True)
def many(test, connections, others):
    """The server serves all clients with one thread, because reads need no other."""
    delay_early_messages(test)
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
    terminate(test, server)
