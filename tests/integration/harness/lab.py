# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What the tests run on: hosts, devices, persistent memory, and what the kernel counts."""

import contextlib
import json
import os
import subprocess
import time

HOSTS = os.environ.get("LAB_HOSTS", "").split()
FSDAX = os.environ.get("LAB_FSDAX", "")
DEVDAX = os.environ.get("LAB_DEVDAX", "")
BUILD_DIR = os.environ.get("LIBRPMA_BUILD_DIR", "")
IS_VIRTUAL = os.environ.get("LAB_RDMA") == "rxe"
COUNTED = ("pd", "cq", "qp", "cm_id", "mr", "srq")
PEER = os.path.join(BUILD_DIR, "tests", "integration", "peer")


class Skipped(Exception):
    """The case cannot run here; the text says why."""


def host(number):
    """The name of a host; on a machine with fewer the last one stands for the rest."""
    return HOSTS[min(number, len(HOSTS)) - 1]


def address(name):
    return os.environ["LAB_ADDR_" + name]


def on(name, *command):
    return ["on", name, *command]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def resources():
    """What the kernel counts per device: {device: {"qp": 1, …}}."""
    shown = json.loads(run("rdma", "-j", "resource", "show"))
    return {row["ifname"]: {kind: row.get(kind, 0) for kind in COUNTED} for row in shown}


def owners():
    """Who holds what, for a message about a leak."""
    return "".join(run("rdma", "resource", "show", kind) for kind in ("cm_id", "qp", "mr"))


def wait_for_host(number, source, target, seconds=20):
    """Until the other address answers; then the neighbour is known, too."""
    command = on(host(number), "ping", "-c", "1", "-W", "1",
                 *(["-I", source.split("%")[0]] if source else []), target)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(RuntimeError):
            run(*command)
            return
    raise RuntimeError(f"{target} does not answer")
def complaints():
    """What the kernel found wrong with itself so far."""
    return [line for line in run("dmesg").splitlines()
            if any(word in line for word in ("WARNING:", "BUG:", "Oops"))]


def add_device(device, name):
    """The RDMA device of a host, which was removed, is there again and knows its address."""
    run(*on(name, "rdma", "link", "add", device, "type", os.environ["LAB_RDMA"], "netdev", "veth0"))
    deadline = time.monotonic() + 60
    while not any(":ffff:" in gid for gid in gids(device)):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{device} has no IPv4 address")
        time.sleep(0.05)


def gids(device):
    """The addresses in the device's table; empty places cannot be read on some devices."""
    directory = f"/sys/class/infiniband/{device}/ports/1/gids"
    for number in os.listdir(directory):
        with contextlib.suppress(OSError), open(f"{directory}/{number}", encoding="ascii") as file:
            yield file.read()


def need_virtual(what):
    if not IS_VIRTUAL:
        raise Skipped(f"{what} is possible in the virtual machine only")


def need(path, what):
    if not path:
        raise Skipped(f"no {what} here")
    return path
