# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The cables between the hosts: cut, mended, or impaired."""

import contextlib

from . import lab

PORTS = ("port1", "port2")  # the bridge's ends of the cables of host1 and host2


def cables(test):
    """
    The bridge's ends of both cables. The end of the case mends them and waits until the hosts reach
    each other, because the first request of the next case could wait half a minute for its
    neighbour.
    """
    lab.need_virtual("a cable that can be pulled")
    for number, other in ((1, 2), (2, 1)):
        test.undo.callback(lab.wait_for_host, number, None, lab.address(lab.host(other)), seconds=60)
    for port in PORTS:
        test.undo.callback(mend, port)
    return PORTS


def cut(port):
    lab.run("ip", "link", "set", port, "down")


def mend(port):
    lab.run("ip", "link", "set", port, "up")


def delay_early_messages(test):
    """
    If a device can lose a message that follows the accept at once, delays packets to the clients'
    host, as a real cable does. Otherwise a client's first message could arrive before the accept
    has ended.
    """
    if lab.lacks(lab.EARLY_MESSAGES):
        test.undo.enter_context(impaired(PORTS[1:], "delay", "50ms"))


def stop_delay(port):
    """Packets already delayed on the link to this host stay delayed; later ones are not."""
    lab.run("tc", "qdisc", "change", "dev", port, "root", "netem", "delay", "0ms")


@contextlib.contextmanager
def impaired(ports, *how):
    """Delays, drops or reorders the packets to these hosts inside the block. The words are arguments of netem."""
    lab.run("modprobe", "sch_netem")
    with contextlib.ExitStack() as undo:
        for port in ports:
            lab.run("tc", "qdisc", "add", "dev", port, "root", "netem", *how)
            undo.callback(lab.run, "tc", "qdisc", "del", "dev", port, "root")
        yield
