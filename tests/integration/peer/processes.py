# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands about processes and signals."""

import contextlib
import ctypes
import os
import signal

from commands import OBJECTS, Failure, command, memory, objects, reply
from connecting import default_cfg
from waiting import Watched


@command("fork")
def fork(args):
    """Starts an independent side with its own standard streams. Forking twice leaves the new process without a parent here,
    so that the test adopts and reaps it."""
    if between := os.fork():
        if os.waitpid(between, 0)[1]:
            raise Failure("ERR_SYSTEM", call="fork")
        return
    with contextlib.suppress(OSError):
        for stream, (key, flags) in enumerate({"input": os.O_RDONLY, "output": os.O_WRONLY, "errors": os.O_WRONLY | os.O_APPEND}.items()):
            descriptor = os.open(args[key], flags)
            os.dup2(descriptor, stream)
            os.close(descriptor)
        if os.fork():
            os._exit(0)
        reply["pid"] = os.getpid()
        return
    os._exit(3)


@command("forget")
def forget(_):
    """Clears the handles without deleting the objects, which belong to the parent."""
    for kind, count in OBJECTS.items():
        objects[kind] = [None] * count
    memory[:] = [None] * len(memory)
    default_cfg.clear()
    Watched.forget()


@command("run")
def run_program(_):
    """Runs another program, which fails if it inherits a descriptor of a device."""
    if os.system("! ls -l /proc/self/fd | grep infiniband >&2"):
        raise Failure("ERR_SYSTEM")


@command("fork-status")
def fork_status(_):
    reply["fork"] = ("disabled", "enabled", "unneeded")[ctypes.CDLL("libibverbs.so.1").ibv_is_fork_initialized()]


@command("handle-signal")
def handle_signal(args):
    """Python's handler in C writes the number of the signal to the standard error, even while a call of the library blocks."""
    os.set_blocking(2, False)
    signal.set_wakeup_fd(2)
    signal.signal(args.number("signal"), lambda *_: None)
    signal.siginterrupt(args.number("signal"), not args.number("restart"))
