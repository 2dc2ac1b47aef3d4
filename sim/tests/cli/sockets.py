#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-sim explore with programs that also use TCP and UDP: a wrong and a corrected form of each, and faults of links.

usage: sockets.py RDMA-SIM SOCKETS [SEEDS]    SOCKETS is the program sockets.c
"""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
import explored

PROGRAM, SOCKETS = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
SEEDS = int(sys.argv[3]) if len(sys.argv) > 3 else 20  # of a corrected program
MOST = 200  # seeds in which a wrong program is found
ORDER = ("--faults", "none", "--check", "true", "--until", "host2")
POWER = ("--faults", "power-off", "--pmem", "host2=memory", "--live", "1000s", "--check", "true")
# Name of the program, options, finding of the wrong form.
PROGRAMS = (
    ("announced-write", ORDER, "host1 ends with status 1: the message arrives before the write"),
    ("late-message", ORDER, "host1 ends with status 1: the write arrives before the request"),
    ("split-message", ORDER, "host1 ends with status 1: half a message arrives"),
    ("both-write", ORDER, "the programs wait for ever: host1 waits in send, host2 waits in send"),
    ("datagrams", ORDER, "the programs wait for ever: host1 waits in recvfrom, host2 waits in poll"),
    ("silent-peer", POWER, "the programs do not end after the last fault: host1 waits in poll"),
)
# The fault, and the results of a request: the reply; the request is repeated for 924 s, which is tcp_retries2 = 15 of
# Linux; the connection is closed, or reset; no connection within 127 s, which is tcp_syn_retries = 6.
REPLY, TIMEOUT, END, RESET, NONE, REFUSED = (
    "1", "-1 ETIMEDOUT after 924 s", "0", "-1 ECONNRESET", "connect: ETIMEDOUT after 127 s", "connect: ECONNREFUSED")
RESULTS = (
    ("cut", [], {REPLY, TIMEOUT, NONE, REFUSED}),
    ("port-down", [], {REPLY, TIMEOUT, NONE, REFUSED}),
    ("flap", [], {REPLY}),
    ("freeze", [], {REPLY}),
    ("kill", [], {REPLY, END, RESET, REFUSED}),
    ("power-off", ["--pmem", "host1=memory"], {REPLY, TIMEOUT, RESET, NONE, REFUSED}),
)


def explore(*arguments):
    """Return the output and the status of rdma-sim explore."""
    return explored.run(PROGRAM, "explore", *arguments)


def commands(name, form):
    return [SOCKETS, name, form, "::", SOCKETS, name, form, "10.77.0.1"]


class Sockets(explored.InDirectory):
    MEMORY = 4096

    def test_wrong_programs_are_found_and_corrected_ones_pass(self):
        for name, options, finding in PROGRAMS:
            with self.subTest(name):
                output, status = explore(*options, "--seeds", f"1-{MOST}", "--save", "finding", *commands(name, "wrong"))
                self.assertIn(f"FOUND: {finding}", output)
                self.assertEqual(status, 1)
                first = explore("--replay", "finding")
                self.assertIn(f"FOUND: {finding}", first[0])
                self.assertEqual(explore("--replay", "finding"), first)
                output, status = explore(*options, "--seeds", f"1-{SEEDS}", *commands(name, "fixed"))
                self.assertEqual(status, 0, output)

    def test_runs_at_the_same_time_use_the_same_port(self):
        """Each of the processes that explore runs all programs."""
        self.assertEqual(explore(*ORDER, "-j", "4", "--seeds", "1-40", *commands("announced-write", "stdio"))[1], 0)

    def test_faults_of_a_link_reach_a_connection(self):
        for fault, options, expected, form in (row + (form,) for row in RESULTS for form in ("fixed", "stdio")):
            with self.subTest(fault, form=form):
                pathlib.Path("results").write_text("")
                output, status = explore("--faults", fault, *options, "--check", "cat $RDMA_SIM_OUT2 >>results", "--seeds", "1-100",
                                         *commands("request", form))
                self.assertEqual(status, 0, output)
                found = {line if "ETIMEDOUT" in line else line.rsplit(" after", 1)[0].rstrip()
                         for line in pathlib.Path("results").read_text().splitlines()}
                self.assertEqual(found - expected, set())
                self.assertIn(REPLY, found)
                if expected & {TIMEOUT, END}:
                    self.assertTrue(found & {TIMEOUT, END}, found)

    def test_late_or_lost_packet_is_in_the_trace(self):
        """Each is sent, and arrives or is lost, which a late one does after a choice."""
        output, _ = explore(*ORDER, "--seeds", f"1-{MOST}", *commands("late-message", "wrong"))
        self.assertRegex(output, r"host2 send: 8 bytes by TCP to host1  \[\S*sockets\.c:\d+\]\n(.*\n)?"
                                 r".* - a packet arrives (10 us|100 ms) late\n")
        output, _ = explore(*ORDER, "--seeds", f"1-{MOST}", *commands("datagrams", "wrong"))
        self.assertRegex(output, r"host\d sendto: 4 bytes by UDP to host\d .*\n(.*\n)?.*host\d 4 bytes by UDP are lost from host\d")
        self.assertTrue(re.search("weaknesses that this schedule needs: datagram-loss", output), output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
