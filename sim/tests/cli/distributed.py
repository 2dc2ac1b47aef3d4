#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-sim explore with programs that run at the same time, restart, or must end: a wrong and a corrected form of each.

usage: distributed.py RDMA-SIM DISTRIBUTED [SEEDS]    DISTRIBUTED is the program distributed.c
"""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
import explored

PROGRAM, DISTRIBUTED = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:3])
SEEDS = int(sys.argv[3]) if len(sys.argv) > 3 else 30  # of a corrected program
CLIENTS = ("--faults", "none", "--check", "true", "--until", "host2")
LIVE = ("--check", "true", "--until", "host2", "--faults", "cut,cut-one-way,flap,drop-cm,kill,freeze")
# Name of the program, clients, options, seeds that have a finding in the wrong form, finding.
PROGRAMS = (
    ("free-list", 2, CLIENTS, "380-390", "two clients use one node"),
    ("lock", 2, CLIENTS, "1-100", "two clients have the lock"),
    ("failed-write", 1, (*LIVE, "--live", "100s"), "1-100", "the programs do not end after the last fault: host2 waits in"),
    ("recovery", 0, ("--faults", "power-off", "--pmem", "memory", "--check", "! grep differ $RDMA_SIM_OUT1"), "150-160",
     "the check fails: the values differ"),
)


def explore(*arguments):
    """Return the output and the status of rdma-sim explore."""
    return explored.run(PROGRAM, "explore", *arguments)


def commands(name, form, clients):
    found = [DISTRIBUTED, name, form]
    for _ in range(clients):
        found += ["::", "@2", DISTRIBUTED, name, form, "10.77.0.1"]
    return found


class Distributed(explored.InDirectory):
    MEMORY = 4096

    def test_wrong_programs_are_found_and_corrected_ones_pass(self):
        for name, clients, options, seeds, finding in PROGRAMS:
            with self.subTest(name):
                output, status = explore(*options, "--seeds", seeds, *commands(name, "wrong", clients))
                self.assertIn(f"FOUND: {finding}" if clients != 2 else finding, output)
                if clients == 2:
                    for number in 1, 2:
                        self.assertIn(f"host2 sim-distributed #{number} starts\n", output)
                    self.assertRegex(output, r"fetch and add wr_id=\d+ of host2 QP \d+: 1 becomes 2\n")
                self.assertEqual(status, 1)
                output, status = explore(*options, "--seeds", f"1-{SEEDS}", *commands(name, "fixed", clients))
                self.assertEqual(status, 0, output)
                self.assertNotIn("overlapped", output)

    def test_lease_that_ends_while_its_owner_is_frozen_is_found(self):
        """Between its look at the clock and its post; the other client continues meanwhile."""
        options = ("--faults", "freeze", "--until", "host2", "--check", "! cat $RDMA_SIM_ERR2 $RDMA_SIM_ERR3 | grep another")
        output, status = explore(*options, "--seeds", "1-100", *commands("lease", "wrong", 2))
        self.assertIn("FOUND: the check fails: another client has written during the lease\n", output)
        next_post = re.search(r"- fault: freeze host2 for 10s \(host2 (sim-distributed #\d)\)\n(?:.*\n)*?.*the fault ends: .*\n"
                              r"(?:.*\n)*?.*host2 \1 ibv_post_send: QP \d+, (\w+)", output)
        self.assertEqual(next_post and next_post[2], "write", output)
        self.assertEqual(status, 1, output)
        output, status = explore(*options, "--seeds", "1-100", *commands("lease", "fixed", 2))
        self.assertEqual(status, 0, output)

    def test_hang_after_a_fault_is_a_finding_only_with_live(self):
        name, clients, options, seeds, _ = PROGRAMS[2]
        self.assertEqual(explore(*options[:-2], "--seeds", seeds, *commands(name, "wrong", clients))[1], 0)

    def test_connection_has_failed_when_its_cut_ends(self):
        """The programs have a whole link then, over which they can connect again."""
        options = ("--check", "true", "--until", "host2", "--faults", "cut-one-way", "--live", "100s", "--seeds", "1-12")
        output, status = explore(*options, *commands("failed-write", "wrong", 1))
        self.assertIn("the fault ends: cut-one-way host2 host1 for 10s\n", output)
        self.assertIn("completion wr_id=0: RETRY_EXC_ERR", output)
        self.assertEqual(status, 1)

    def test_peer_without_reply_is_a_timeout_once_no_program_can_run(self):
        """cm.c: a DREQ is sent 16 times, and each repetition of a REQ waits for the time of an MRA."""
        for form, limit, event in ("fixed", 68, "disconnected after"), ("wrong", 1035, "unreachable after"):
            with self.subTest(event):
                check = f"n=$(sed -n 's/^{event} \\([0-9]*\\) s$/\\1/p' $RDMA_SIM_OUT2); test $n -ge {limit} -a $n -lt {limit + 10}"
                options = ("--faults", "none", "--until", "host2", "--check", check, "--seeds", "1-40")
                output, status = explore(*options, *commands("no-reply", form, 1))
                self.assertEqual(status, 0, output)
                self.assertIn("40 schedules, 0 with faults: nothing found", output)

    def test_order_of_polling_programs_is_covered_by_the_bound(self):
        """In another order, they poll more often than in the schedule that determines the number of steps."""
        options = ("--faults", "none", "--check", "true", "--until", "host2", "--search", "pct", "--seeds", "1-40")
        output, status = explore(*options, *commands("lock", "fixed", 2))
        schedules, bounded = re.search(r"^priorities alone: (\d+) schedules, (\d+) with at most k", output, re.M).groups()
        self.assertEqual((status, schedules), (0, "20"), output)
        self.assertGreaterEqual(int(bounded), 15, output)

    def test_finding_of_six_programs_has_few_choices(self):
        """The mistake needs two clients of five that continue later than the others."""
        for name, seed in ("lock", 1), ("lock-once", 13):
            output, status = explore(*CLIENTS, "--seeds", f"{seed}-{seed}", *commands(name, "wrong", 5))
            self.assertEqual(status, 1, output)
            after, before = re.search(r"^\((\d+) choices?, 0 faults; (\d+) choices before", output, re.M).groups()
            self.assertGreater(int(before), 50, output)
            self.assertLess(int(after), 10, output)

    def test_exploration_without_overlap_is_reported(self):
        """With --in-order, the second client starts after the end of the first one."""
        for option, seeds, is_reported in ([], "1-8", False), (["--in-order"], "4", True):
            output, status = explore(*CLIENTS, "--seeds", seeds, *option, *commands("free-list", "fixed", 2))
            self.assertEqual(status, 0, output)
            self.assertEqual("no two clients overlapped in any schedule" in output, is_reported, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
