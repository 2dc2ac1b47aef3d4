# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The machine of the tests: hosts, devices, persistent memory, and the kernel's counters."""

import collections
import contextlib
import functools
import json
import os
import re
import subprocess

from .side import wait_until

HOSTS = os.environ.get("LAB_HOSTS", "").split()
FSDAX = os.environ.get("LAB_FSDAX", "")
DEVDAX = os.environ.get("LAB_DEVDAX", "")
CHECKOUT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD_DIR = os.environ.get("LIBRPMA_BUILD_DIR", "")
PROVIDER = os.environ.get("LAB_RDMA", "")
ON_CXL = os.environ.get("LAB_MEMORY", "") == "cxl"
IS_VIRTUAL = PROVIDER in ("rxe", "siw")
# The hosts belong to rdma-sim, whose devices imitate rdma_rxe and have no kernel objects.
ON_FABRIC = "RDMA_SIM_SOCKET" in os.environ
COUNTED = ("pd", "cq", "qp", "cm_id", "mr", "srq")
PEER = os.path.join(CHECKOUT, "tests", "integration", "peer", "main.py")


# Features that a case may need and a provider may lack; rpma_devices(7) describes such devices.
IMMEDIATE_DATA = "immediate data"
EMPTY_RECEIVE = "receives without memory"
WAITING_MESSAGES = "messages that wait for a receive"
ON_DEMAND_PAGING = "on-demand paging, which FS-DAX memory needs"
NATIVE_OPERATIONS = "native flush and atomic write"
REMOTE_RESULTS = "completion that reports the result of a write"
CONNECT_IN_BACKGROUND = "connection attempt that fails later than in the call"
MANY_CONNECTIONS = "room for more than 48 connections of one process"
REMOVAL_IN_USE = "removal of a device that programs hold open"
SMALL_READS = "answers to small reads that can meet a post of this side"
LATE_COMPLETIONS = "completions of what is posted after the end of a connection"
EARLY_MESSAGES = "accept that notices a message which follows it at once"
SERVER_FIRST = "client that takes a message together with the answer to its request"
LIMITED_RETRIES = "retries that a program can limit"
ORDERED_COMPLETIONS = "completions in the order of posting after a read"
LASTING_RECEIVES = "receives that outlive the other side's end of the connection"
REPEATED_NATIVE = "native flush or atomic write that may be repeated"
FULL_QUEUE = "send queue that fills up although its operations can leave"
BARE_REQUESTS = "requests that need no queue pair"
REMOTE_ATOMICS = "remote atomics"
LACKS = {
    "rxe": {REPEATED_NATIVE},
    "siw": {IMMEDIATE_DATA, EMPTY_RECEIVE, WAITING_MESSAGES, NATIVE_OPERATIONS, REMOTE_RESULTS,
            CONNECT_IN_BACKGROUND, MANY_CONNECTIONS, REMOVAL_IN_USE, LATE_COMPLETIONS,
            EARLY_MESSAGES, SERVER_FIRST, SMALL_READS, LIMITED_RETRIES, ORDERED_COMPLETIONS,
            LASTING_RECEIVES, FULL_QUEUE, BARE_REQUESTS, REMOTE_ATOMICS},
}


class Skipped(Exception):
    """The case cannot run on this machine; the text is the reason."""


def host(number):
    """The name of a host. On a machine with fewer hosts, the last one replaces the missing ones."""
    return HOSTS[min(number, len(HOSTS)) - 1]


def address(name):
    return os.environ["LAB_ADDR_" + name]


def memory_of(kind, number):
    """
    The FS-DAX directory or the device DAX (FSDAX, DEVDAX) of a host. On CXL memory each host has
    its own region.
    """
    return os.environ.get(f"LAB_{kind}_{host(number)}", "")


def build_directory(name):
    """The path of the other build, native or plain, which has the same parent directory."""
    return re.sub("(native|plain)$", name, BUILD_DIR)


def on(name, *command):
    return ["on", name, *command]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def resources():
    """The kernel's counts of objects per device: {device: {"qp": 1, …}}."""
    if ON_FABRIC:
        return collections.defaultdict(dict)
    shown = json.loads(run("rdma", "-j", "resource", "show"))
    return {row["ifname"]: {kind: row.get(kind, 0) for kind in COUNTED} for row in shown}


@functools.cache
def lacks(feature):
    """True if this machine's RDMA devices lack a feature."""
    if feature == ON_DEMAND_PAGING:  # this also depends on the kernel
        return "ODP_SUPPORT" not in run("ibv_devinfo", "-v")
    return feature in LACKS.get(PROVIDER, ())


def owners():
    """The kernel objects and their owners, for a message about a leak."""
    return "".join(run("rdma", "resource", "show", kind) for kind in ("cm_id", "qp", "mr"))


def wait_for_host(number, source, target, seconds=20):
    """Waits until the other address replies, so that it is in the neighbour table."""
    command = on(host(number), "ping", "-c", "1", "-W", "1",
                 *(["-I", source.split("%")[0]] if source else []), target)
    wait_until(lambda: subprocess.run(command, capture_output=True).returncode == 0, f"{target} replies", seconds)


def kernel_warnings():
    """The warnings and errors in the log of the kernel so far."""
    return [line for line in run("dmesg").splitlines()
            if any(word in line for word in ("WARNING:", "BUG:", "Oops"))]


def add_device(device, name):
    """Adds the removed RDMA device of a host again and waits until it has its address."""
    run(*on(name, "rdma", "link", "add", device, "type", os.environ["LAB_RDMA"], "netdev", "veth0"))
    wait_until(lambda: any(":ffff:" in gid for gid in gids(device)), f"{device} has an IPv4 address")


def gids(device):
    """The first GIDs of the device's table. The other entries are empty, and reading all is slow."""
    for number in range(16):
        path = f"/sys/class/infiniband/{device}/ports/1/gids/{number}"
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            yield file.read().strip()


def need_virtual(what):
    if not IS_VIRTUAL:
        raise Skipped(f"{what} is possible in the virtual machine only")


def need(path, what):
    if not path:
        raise Skipped(f"no {what} here")
    return path
