# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Every example pair, with its variants, on each kind of memory that it supports."""

import glob
import os
import re
import subprocess

from harness import lab
from harness.case import BOTH_BUILDS, case
from harness.network import delay_early_messages
from harness.side import Failed, expect

from .interop import OTHER, library

RUNNER = os.path.join(lab.CHECKOUT, "examples", "run-pair")


def runs():
    """
    Selects from the lines "EXAMPLE MEMORY CLIENTS [variant|direct-write]" of run-pair: all runs on
    plain memory; the last run of each example on device DAX; and two on FS-DAX, which all examples
    map with the same function: one with the memory at the client and one at the server.
    """
    if not os.path.exists(RUNNER):
        return []
    listed = subprocess.run([RUNNER, "list"], capture_output=True, text=True, check=True).stdout
    chosen = {}
    for line in listed.splitlines():
        example, memory, clients, *variant = line.split()
        variant = " ".join(["", *variant])
        if memory == "plain" and variant == " direct-write" or memory == "fsdax" and example[:2] not in ("03", "05"):
            continue
        needs = ([lab.IMMEDIATE_DATA] * ("with-imm" in example) + [lab.ON_DEMAND_PAGING] * (memory == "fsdax") +
                 [lab.MANY_CONNECTIONS] * (example == "16-coroutines"))
        chosen[example, memory, variant if memory == "plain" else ""] = {
            "example": example, "memory": memory, "clients": clients, "variant": variant,
            "builds": builds_for(example, memory), "needs": needs, "fabric": memory == "plain"}
    return list(chosen.values())


def builds_for(example, memory):
    """Both builds for device DAX if the example flushes or writes atomically. Exception: 14, which
    tests/durability runs without native operations."""
    sources = os.path.join(os.path.dirname(RUNNER), example, "*.c")
    for path in glob.glob(sources) if memory == "devdax" and example[:2] != "14" else ():
        with open(path, encoding="utf-8") as source:
            if re.search(r"rpma_\w*(flush|atomic)", source.read(), re.IGNORECASE):
                return BOTH_BUILDS
    return ("native",)


def check_claim(example, is_stated, output):
    """05 and 07 call data persistent only if the server has stated direct write to PMem."""
    if example[:2] in ("05", "07"):
        claims = re.findall(r"^client: .*?((?:not known to be )?persistent.*)", output, re.MULTILINE)
        unknown = "not known to be persistent (see example 09)"
        expect(claims, ["persistent" if is_stated else unknown], "claims of the client")


def run_pair(test, example, memory, clients, variant, environment=(), others_library=False):
    """The programs check the data themselves; their exit status is the result."""
    if memory != "plain":
        lab.need({"fsdax": lab.FSDAX, "devdax": lab.DEVDAX}[memory], memory)
    if example[:2] == "14" and not os.path.exists(os.path.join(lab.BUILD_DIR, "examples", f"{example}-client")):
        raise lab.Skipped(f"{example} is not built, because libisal is missing")
    delay_early_messages(test)
    options = ["--memory", memory] if memory != "plain" else []
    options += [f"--{variant.strip()}"] if variant else []
    if others_library:
        options += ["--client-library", library(OTHER[test.build])]
    done = subprocess.run([RUNNER, *options, "--clients", clients, example], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **dict(environment)})
    test.transcript.append(done.stdout)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    if done.returncode != 0:
        raise Failed(f"exit status {done.returncode}: {last}")
    if example != "log":
        sides = set(re.findall(r"^(server|client)", done.stdout, re.MULTILINE))
        expect(sides, {"server", "client"}, "sides that print lines")
    check_claim(example, variant == " direct-write" and memory != "plain", done.stdout)
    test.wait_until_equal(lab.resources, test.before, "remaining kernel objects")


@case("examples", "{example} on {memory} memory{variant}", runs(), limit=90)
def example_pair(test, **run):
    run_pair(test, **run)


@case("examples", "{example} on {memory} memory{variant}, the clients with the other build's library",
      [run for run in runs() if run["example"][:2] == "05" and run["memory"] == "devdax"], limit=90)
def unlike_pair(test, **run):
    """One side has native flush and native atomic write, the other side has neither."""
    run_pair(test, **run, others_library=True)


@case("examples", "05 ignores a store granularity that the environment sets", builds=("native",))
def forced_granularity(test):
    """With this variable libpmem2 returns the configured value, independent of the platform."""
    run_pair(test, "05-flush-to-persistent", "devdax", "3", "", {"PMEM2_FORCE_GRANULARITY": "BYTE"})
