# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The commands of one side of an integration test: what they share.

Each object has a number, which is 0 unless the command has another one.
"""

import ctypes
import select
import time


TIMEOUT_MS = 60000  # for resolving an address or waiting, on a busy machine
# In the order of deletion that the manual requires. Lists of a fixed length keep the heap of malloc() as it is.
OBJECTS = {"batch": 8, "conn": 10240, "req": 10240, "ep": 1, "cfg": 8, "srq": 8, "shared_cq": 8, "mr": 72, "rmr": 72, "peer": 1}
objects = {kind: [None] * count for kind, count in OBJECTS.items()}
memory = [None] * OBJECTS["mr"]
reply = {}  # the words of the reply to the running command
COMMANDS = {}
libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """A command failed for a reason other than an error code of the library."""

    def __init__(self, name, **words):
        super().__init__(name)
        self.name = name
        reply.update(words)


class Args(dict):
    """The words of a command."""

    def __init__(self, line):
        self.verb, *words = line.split()
        super().__init__(word.split("=", 1) for word in words)

    def number(self, key, default=None):
        return int(self[key]) if default is None or key in self else default

    def bytes(self, key):
        return bytes.fromhex(self.get(key, ""))

    def object(self, kind, key=None):
        found = objects[kind][self.number(key or kind, 0)]
        if found is None:
            raise LookupError(f"there is no such {kind}")
        return found

    def set(self, kind, handle):
        objects[kind][self.number(kind, 0)] = handle

    def range(self, number=None, offset=None, length=None):
        """A part of the memory of region mr=, from off=, of len= bytes."""
        area = memory[self.number("mr", 0) if number is None else number]
        offset = self.number("off", 0) if offset is None else offset
        length = self.number("len") if length is None else length
        if offset + length > len(area):
            raise IndexError("outside the memory")
        return area[offset:offset + length]


def command(*verbs):
    def register(function):
        COMMANDS.update(dict.fromkeys(verbs, function))
        return function
    return register


def call(verb, kind, method, *keys, result=None):
    """A command that calls a method of an object with the words of these keys."""
    def function(args):
        found = getattr(args.object(kind), method)(*(args.number(key) for key in keys))
        if result:
            reply[result] = found
    COMMANDS[verb] = function


def milliseconds():
    return time.monotonic_ns() // 1000000


def wait_readable(descriptor, timeout):
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(timeout):
        raise Failure("ERR_TIMEOUT")


class Device:
    context = name = None
