# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The table of cases, and the objects that cases use."""

import contextlib
import ctypes
import functools
import os
import re
import subprocess
import tempfile
import time

from . import lab
from .side import ALL_USAGES, LOCAL_USAGES, Forked, Side, expect

TABLE = []
PORT = "7204"
# The builds differ only in flushes and atomic writes. The cases of these groups do not depend on
# them and run on one build.
EITHER_BUILD = {"addresses", "device", "establish", "events", "faults", "fork", "info", "large",
                "limits", "lost", "manual", "overrun", "perf", "queues", "scale", "signals",
                "tracing", "troubleshooting"}
BOTH_BUILDS = ("native", "plain")
# These groups run only when they are named. They repeat other cases with sizes, or on devices, that need minutes.
ON_REQUEST = {"large", "hardware"}


class Case:
    def __init__(self, group, title, function, values, limit, builds, needs, lacks, shows, fabric):
        self.group, self.title, self.function = group, title, function
        self.values, self.limit = dict(values), limit
        self.lacks = lacks
        self.needs = self.values.pop("needs", needs)
        self.builds = self.values.pop("builds", builds)
        self.shows = self.values.pop("shows", shows)
        self.fabric = self.values.pop("fabric", fabric)

    @property
    def name(self):
        return f"{self.group}: {self.title.format(**self.values)}"

    def skip_reason(self):
        """The reason why the case cannot run on this machine's devices, or None."""
        if self.lacks and not lab.lacks(self.lacks):
            return f"{lab.PROVIDER} has {self.lacks}"
        return next((f"{lab.PROVIDER} on Linux {os.uname().release} has no {need}"
                     for need in self.needs if lab.lacks(need)), None)

    @property
    def file_name(self):
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-") + ".log"


def case(group, title, table=({},), limit=60, builds=None, needs=(), lacks=None, shows=(), fabric=False):
    """
    Registers a function as one case per row of values. limit: seconds until the case fails, on an
    idle machine. builds: the builds that it runs on, if others would add nothing. needs: features
    (lab.py) that some providers lack. lacks: the feature whose absence it shows. shows: the entries
    of rpma_troubleshooting(7) that it provokes. fabric: it needs no kernel, so it runs on the
    simulated fabric, and on a device only when its group is named. A row may override builds,
    needs, shows and fabric.
    """
    builds = builds or (("native",) if group in EITHER_BUILD else BOTH_BUILDS)

    def register(function):
        TABLE.extend(Case(group, title, function, values, limit, builds, needs, lacks, shows, fabric)
                     for values in table)
        return function
    return register


# A thousand connections or ten thousand requests need more descriptors than the default limit.
# Without the allocator's caches per thread, the number of used bytes is exact.
MANY_DESCRIPTORS = ("sh", "-c", 'ulimit -n 65536 || ulimit -n "$(ulimit -H -n)"; exec "$0"')
EXACT_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
PR_SET_CHILD_SUBREAPER = 36


def start_process(command, environment, errors):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                            env={**os.environ, **(environment or {})})


@functools.cache
def spawner(host, environment=()):
    """
    Starts a side that only forks others, because an emulated machine needs long to start a program.
    This program adopts its children.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    process = start_process(lab.on(host, *MANY_DESCRIPTORS, lab.PEER), EXACT_HEAP | dict(environment), subprocess.DEVNULL)
    side = Side(f"spawner of {host}", [], process)
    side.wait_for_line()
    return side


class Test:
    """
    Starts sides. At the end they release everything, and their descriptors and kernel objects are
    compared with those at the start.
    """

    def __init__(self, build):
        self.build = build
        self.transcript = []
        self.sides = []
        self.errors = []
        self.undo = contextlib.ExitStack()
        self.before = lab.resources()

    def side(self, number, name=None, **values):
        """Starts a process on host 1 or 2, with a peer on the device."""
        return self.with_peer(self.start(number, name, **values))

    def start(self, number, name=None, wrapper=(), environment=None, checked=True):
        host = lab.host(number)
        errors = tempfile.TemporaryFile()
        if wrapper:
            process = start_process(lab.on(host, *wrapper, lab.PEER), environment, errors)
        else:
            try:
                process = Forked(spawner(host, tuple((environment or {}).items())), errors)
            except BaseException:
                spawner.cache_clear()  # its reply may arrive after the case's time limit and would stay unread
                raise
        side = self.add(name or f"host{number}", process, errors, lab.address(host))
        side.checked = checked
        return side

    def add(self, name, process, errors, address):
        self.errors.append((name, errors))
        side = Side(name, self.transcript, process)
        side.address = address
        self.sides.append(side)
        process.pid = int(side.wait_for_line().rpartition("=")[2])
        return side

    def directory(self):
        """Creates a directory, which the end of the case removes."""
        return self.undo.enter_context(tempfile.TemporaryDirectory())

    def fork(self, parent, name="child"):
        """
        Forks the process of a side. The child inherits all objects of the parent, and must end
        before the case does.
        """
        errors = tempfile.TemporaryFile()
        child = self.add(name, Forked(parent, errors), errors, parent.address)
        child.device = parent.device
        return child

    def with_peer(self, side):
        side.device = side("context", addr=side.address)["device"]
        side.baseline = side.descriptors()
        side("peer")
        return side

    def peers(self, **values):
        """Starts a server on host 1 and a client on host 2."""
        return self.side(1, "server", **values), self.side(2, "client", **values)

    @property
    def is_native(self):
        """True if flushes and atomic writes are native operations."""
        if self.build != "native":
            return False
        return lab.PROVIDER == "rxe" or "native flush: yes" in self.stderr()

    def stderr_by_side(self):
        """(name, its standard error so far) of each side."""
        for name, errors in self.errors:
            # Without seek(), because the side writes at the same offset.
            size = os.fstat(errors.fileno()).st_size
            yield name, os.pread(errors.fileno(), size, 0).decode(errors="replace")

    def stderr(self):
        """The standard error of all sides in one text."""
        return "\n".join(f"==== {name}\n{text}" for name, text in self.stderr_by_side())

    def finish(self):
        """All sides release their objects while the processes still run; then the processes end."""
        running = [side for side in self.sides if side.is_alive]
        together(running, "release")
        for side in running:
            if side.checked:
                self.wait_until_equal(side.descriptors, side.baseline,
                                      f"{side.name}: descriptors")
        foreign = {side.device for side in self.sides if not side.checked}
        wanted = {side.device: self.before[side.device] for side in self.sides
                  if side.device not in foreign}
        self.wait_until_equal(lambda: {device: lab.resources()[device] for device in wanted},
                              wanted, "remaining kernel objects")
        for side in running:
            side.begin("quit")
        for side in running:
            side.wait_for_end()

    def wait_until_equal(self, measure, wanted, what, seconds=60):
        deadline = time.monotonic() + seconds
        while (found := measure()) != wanted:
            if time.monotonic() > deadline:
                self.transcript.append(lab.owners())
                expect(found, wanted, what)
            time.sleep(0.02)

    def abandon(self):
        """Kills the sides and undoes the changes of the case, also after a failure."""
        for side in self.sides:
            side.record_unread_output()
            if side.is_alive:
                side.kill()
        self.undo.close()

    def close(self):
        """Closes this program's own descriptors: three per side."""
        for side in self.sides:
            side.close()
        for _, errors in self.errors:
            errors.close()

    def log(self):
        return "\n".join(self.transcript) + "\n" + self.stderr()


def together(sides, verb, **values):
    """All sides perform the command at the same time."""
    for side in sides:
        side.begin(verb, **values)
    for side in sides:
        side.end()


def listen(server, port=PORT):
    server("listen", addr=server.address, port=port)


def request(server, client, number=0, cfg=None, data="", port=PORT):
    """The client requests a connection."""
    client("req-new", req=number, addr=server.address, port=port, **nonempty(cfg=cfg))
    client("connect", req=number, conn=number, **nonempty(pdata=data))


def connect(server, client, number=0, server_cfg=None, client_cfg=None, server_data="",
            client_data="", port=PORT):
    """Connects connection number on both sides; the server must be listening."""
    request(server, client, number, client_cfg, client_data, port)
    server("next-req", req=number, **nonempty(cfg=server_cfg))
    server("connect", req=number, conn=number, **nonempty(pdata=server_data))
    client.event("ESTABLISHED", conn=number)
    server.event("ESTABLISHED", conn=number)


def nonempty(**values):
    """The values that are neither None nor empty."""
    return {key: value for key, value in values.items() if value not in (None, "")}


def listening(test, size=65536, **values):
    """
    Starts a listening server and a client; each has region 0, and the client has the descriptor of
    the server's.
    """
    server, client = test.peers()
    share_region(server, client, size, **values)
    listen(server)
    return server, client


def connected(test, size=65536, server=None, client=None, count=1, **values):
    """Like listening(), with connections that have these settings."""
    sides = listening(test, size, **values)
    for side, settings in zip(sides, (server, client)):
        side("cfg", **(settings or {}))
    for number in range(count):
        connect(*sides, number=number, server_cfg=0, client_cfg=0)
    return sides


def share_region(server, client, size=65536, usage=ALL_USAGES, number=0, file=None, source=None):
    """
    Registers region number on both sides and passes its descriptor. The server maps file, the
    client source; None is DRAM.
    """
    client("reg", mr=number, size=size, usage=LOCAL_USAGES, **nonempty(file=source))
    descriptor = server("reg", mr=number, size=size, usage=usage, **nonempty(file=file))["desc"]
    client("remote", rmr=number, desc=descriptor)
    return descriptor


def disconnect(first, second, number=0):
    """The first side disconnects, then the second; both get CLOSED."""
    first("disconnect", conn=number)
    second.event("CLOSED", conn=number)
    second("disconnect", conn=number)
    first.event("CLOSED", conn=number)
