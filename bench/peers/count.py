#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs in the lab: counts with callgrind the instructions of a write and its completion by object.

usage: count.py STAGE     STAGE is the directory that bench/peers/run has filled

Prints lines of subject, object and instructions, separated by tabs.
"""

import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import measure

TIMES = 500  # writes of the second lap; the third is twice as long
PORT = 7205
ARCHITECTURE = "x86_64-linux-gnu"


def fail(text):
    sys.exit(f"beside: {text}")


def subjects():
    """Name, program, directory of the library, and the program's own argument."""
    ours = pathlib.Path(os.environ["LIBRPMA_BUILD_DIR"]) / "src"
    fabric = f"/usr/lib/{ARCHITECTURE}"
    return [
        ("librpma", "rpma", ours, []),
        ("original 1.2.0", "rpma", f"/opt/librpma-1.2.0/usr/lib/{ARCHITECTURE}", []),
        ("original 1.3.0", "rpma", f"/opt/librpma-1.3.0/usr/lib/{ARCHITECTURE}", []),
        ("libfabric, FI_THREAD_SAFE", "fabric", fabric, ["safe"]),
        ("libfabric, FI_THREAD_DOMAIN", "fabric", fabric, ["domain"]),
    ]


def on(host, library, *command):
    """A command on a host; the loader binds all symbols before main()."""
    return ["on", host, "env", f"LD_LIBRARY_PATH={library}", "LD_BIND_NOW=1", *map(str, command)]


def per_write(name, laps):
    """Fails unless the third lap took exactly twice the instructions of the second per object."""
    second, third = laps
    for thing in second.keys() | third.keys():
        if third[thing] != 2 * second[thing] or second[thing] % TIMES:
            fail(f"{name}: {TIMES} writes took {second[thing]} instructions in {thing}, twice as "
                 f"many took {third[thing]}: the count is disturbed")
    return {thing: count // TIMES for thing, count in second.items()}


def count(stage, name, program, library, how):
    """Runs both sides of one subject, the client under callgrind."""
    address = os.environ["LAB_ADDR_host2"]
    output = pathlib.Path("/tmp") / f"callgrind.{name.replace(' ', '-')}"
    server = subprocess.Popen(on("host2", library, stage / program, "server", address, PORT),
                              stdout=subprocess.PIPE, text=True)
    if server.stdout.readline() != "listening\n":
        fail(f"{name}: the server did not start")
    client = subprocess.run(
        on("host1", library, "valgrind", "--quiet", "--tool=callgrind", "--dump-before=mark",
           "--toggle-collect=counted_*", f"--callgrind-out-file={output}", stage / program,
           "writer", address, PORT, TIMES, *how), check=False)
    server.kill()
    server.wait()
    if client.returncode != 0:
        fail(f"{name}: the client ended with {client.returncode}")
    return per_write(name, [measure.own_instructions(pathlib.Path(f"{output}.{part}")) for part in (2, 3)])


def main():
    stage = pathlib.Path(sys.argv[1])
    try:
        for name, program, library, how in subjects():
            counts = count(stage, name, program, library, how)
            for thing, value in sorted(counts.items()):
                print(name, thing, value, sep="\t")
            print(name, "all", sum(counts.values()), sep="\t", flush=True)
    except measure.Failed as failed:
        fail(failed)


if __name__ == "__main__":
    main()
