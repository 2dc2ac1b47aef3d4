#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Runs 1,000 connections of one program, and 254 hosts: scale.py RDMA-SIM CONNECT

CONNECT is connect.c of this folder, whose connections have two completion channels at each end. Prints TAP.
"""

import pathlib
import resource
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import expect, main, run, test

SIM, CONNECT = sys.argv[1:3]
CONNECTIONS, HOSTS, LIMIT = 1000, 254, 3000


def limit_files():
    """The programs may open LIMIT files; rdma-sim needs more for both of them, and raises its own limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert hard == resource.RLIM_INFINITY or hard > 5 * CONNECTIONS, f"ulimit -Hn is {hard}"
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))


@test("1,000 connections of one program")
def connections():
    done = run(SIM, CONNECT, "serve", str(CONNECTIONS), "::", CONNECT, "open", "10.77.0.1", str(CONNECTIONS),
               preexec_fn=limit_files)
    expect((done.returncode, done.stderr), (0, ""), "the run")


@test("a connection between the first and the last of 254 hosts")
def hosts():
    done = run(SIM, "--hosts", str(HOSTS), f"@host{HOSTS}", CONNECT, "serve", "1", "::",
               "@host1", CONNECT, "open", f"10.77.0.{HOSTS}", "1")
    expect((done.returncode, done.stderr), (0, ""), "the run")


sys.exit(main())
