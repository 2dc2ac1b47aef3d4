#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Checks that the fabric has each function of libibverbs and librdmacm, and that each function that it does not support
prints one line.

usage: unsupported.py RDMA-SIM SIM-UNSUPPORTED DIRECTORY

The functions are those that libibverbs.so.1 and librdmacm.so.1 of this machine export. DIRECTORY has those of the
fabric. The names that the sources of the fabric refuse must all be in the table of sim-unsupported, except those that
need no arguments. Each feature must be in the page.
"""

import pathlib
import os
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Of a version without libraries of providers.
ABSENT = {"ibv_register_driver"}
REFUSED = re.compile(r"(?<!define )\b(UNSUPPORTED|FAILS|NONE|FUNCTION_FAILS|FUNCTION_NONE)\((\w+)")
# rsocket.cc
FORWARDED = re.compile(r'(?<!define )FORWARD\(\w+, (\w+)|find\("(\w+)"')
WITHOUT_ARGUMENTS = "UNSUPPORTED"


def run(*command, **environment):
    done = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, stdout=subprocess.PIPE,
                          text=True, check=False)
    return done.returncode, done.stdout


def exported(library):
    """Return the functions of a library that programs can link, without those of another version."""
    names = {line.split()[2] for line in run("nm", "-D", "--defined-only", library)[1].splitlines()}
    return {name.split("@")[0] for name in names if not name.startswith(("IBVERBS_", "RDMACM_"))}


def real_library(name):
    cache = run("/sbin/ldconfig", "-p")[1]
    return re.search(rf"^\s*{re.escape(name)} .* => (\S+)$", cache, re.M)[1]


def main(rdma_sim, program, directory):
    failures, refused, called = [], set(), set()
    for name in ("libibverbs.so.1", "librdmacm.so.1"):
        missing = exported(real_library(name)) - exported(pathlib.Path(directory) / name) - ABSENT
        failures += [f"the fabric's {name} lacks {function}" for function in sorted(missing)]
    for source in sorted((HERE.parents[1] / "client").glob("*.cc")):
        for macro, function in REFUSED.findall(source.read_text(encoding="utf-8")):
            (called if macro == WITHOUT_ARGUMENTS else refused).add(
                function if macro == WITHOUT_ARGUMENTS or macro.startswith("FUNCTION") else f"ibv_{function}")
    called -= {"name"}
    sockets = FORWARDED.findall((HERE.parents[1] / "client/rsocket.cc").read_text(encoding="utf-8"))
    called |= {name or other for name, other in sockets}
    table = [line.split("\t") for line in run(program)[1].splitlines()]
    failures += [f"the table of unsupported.cc lacks {name}"
                 for name in sorted(refused - {"ibv_member", "name"} - {row[0] for row in table})]
    lines = (HERE.parents[1] / "man/rdma-sim.1").read_text(encoding="utf-8").splitlines()
    page = " ".join(re.sub(r"^\.(?:(?:Pq|Dv|Fn|Xr|Er|Ql) )*", "", line) for line in lines)
    features = sorted({row[1].rsplit(" ", 1)[0].replace("(", "").replace(")", "") for row in table})
    failures += [f"rdma-sim(1) does not list: {feature}" for feature in features if feature not in page]
    assert len(called) > 80 and len(table) > 40, (called, table)
    with tempfile.TemporaryDirectory() as empty:
        # rsocket.cc uses the first librdmacm.so.1 besides that of the fabric.
        (pathlib.Path(empty) / "librdmacm.so.1").touch()
        status, output = run(rdma_sim, program, *sorted(called), LD_LIBRARY_PATH=empty)
    if failures or status:
        sys.exit("\n".join([*failures, output, f"status {status}"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
