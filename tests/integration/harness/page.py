# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Compares rpma_troubleshooting(7) with the failures that a case provoked."""

import functools
import os
import re
import sys

from . import lab
from .side import Failed

sys.path.insert(0, os.path.join(lab.CHECKOUT, "tests"))

import troubleshooting_page  # noqa: E402

LOGGED = re.compile(r"^(?:\S+ +\d+ [\d:.]+ )?\[\d+\] (\*[A-Z]+\*) +\S+: +\d+: (.*)$")


@functools.cache
def text():
    return troubleshooting_page.text_of(lab.CHECKOUT)


@functools.cache
def entries():
    return troubleshooting_page.entries_of(text())


def faults():
    return list(troubleshooting_page.faults_of(text()))


def as_written(line):
    """A line of standard error in the format of the page: without time, thread and source location."""
    found = LOGGED.match(line)
    return f"{found[1]} {found[2]}" if found else line


def check(names, stderr, transcript):
    """
    Expects the lines and statuses of a case in the page. The page describes soft-RoCE; on other
    devices only the case itself checks the failure.
    """
    if lab.PROVIDER != "rxe":
        return
    lines = [as_written(line) for line in stderr.splitlines()]
    for entry in (entries()[name] for name in names):
        if entry.line and not entry.is_in(lines):
            raise Failed(f"rpma_troubleshooting(7), {entry.name}: no line was\n{entry.line}\n"
                         "but these were:\n" + "\n".join(lines))
        if entry.status and not re.search(rf"\bwc\d+={entry.status}:", "\n".join(transcript)):
            raise Failed(f"rpma_troubleshooting(7), {entry.name}: no completion had the status "
                         f"{entry.status}")
