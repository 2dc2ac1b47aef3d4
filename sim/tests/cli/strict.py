#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""--strict: each check of client/preload/strict_checks.hh, and where the misuse is.

usage: strict.py RDMA-SIM STRICT SOURCE CHECKS    STRICT is the program strict.c, SOURCE its source
"""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
import explored

PROGRAM, STRICT, SOURCE, CHECKS = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:5])
NAMES = re.findall(r'CHECK\(\w+, "([a-z-]+)"', pathlib.Path(CHECKS).read_text(encoding="utf-8"))
# Other misuses with a check of the table.
VARIANTS = {"acknowledged-event": "acknowledged", "values-of-connection": "values", "in-use-of-id": "in-use",
            "in-use-of-channel": "in-use"}
LINE = re.compile(r"rdma-sim: host1: \S+: (\w+)\(\): .+: .+ \[([a-z-]+)\] \((.*)\)")
EXIT_MISUSE, EXIT_KILLED = 3, 128 + 14


def lines_at(place):
    """Return the lines of the source around FILE:LINE."""
    name, _, number = place.rpartition(":")
    source = pathlib.Path(SOURCE).read_text(encoding="utf-8").splitlines()
    return "\n".join(source[int(number) - 2:int(number) + 3]) if pathlib.Path(SOURCE).name in name else place


class Strict(explored.InDirectory):
    def test_correct_program_has_no_misuse(self):
        for device in "rxe", "mlx5":
            with self.subTest(device):
                self.assertEqual(explored.run(PROGRAM, "--strict", "--device", device, STRICT, "none"), ("", 0))

    def test_misuse_is_reported_with_its_line(self):
        self.assertGreater(len(NAMES), 15)
        for name in NAMES + list(VARIANTS):
            check = VARIANTS.get(name, name)
            with self.subTest(name):
                output, status = explored.run(PROGRAM, "--strict", STRICT, name)
                found = [match for match in map(LINE.fullmatch, output.splitlines()) if match[2] == check]
                self.assertTrue(found, output)
                # The call that waits for an event is ended by a signal.
                self.assertEqual(status, EXIT_KILLED if name == "events" else EXIT_MISUSE, output)
                for match in found:  # a macro calls ibv_reg_mr_iova2()
                    self.assertIn(f"{match[1].removesuffix('_iova2')}(", lines_at(match[3]), output)

    def test_without_the_option_nothing_is_reported(self):
        output, status = explored.run(PROGRAM, STRICT, "values-of-connection")
        self.assertEqual((output, status), ("", 0))

    def test_acknowledged_event_does_not_have_its_private_data(self):
        output, status = explored.run(PROGRAM, STRICT, "freed-event")
        self.assertEqual(status, 1, output)
        self.assertIn("memcmp(copied, GREETING", output)
        self.assertEqual(explored.run(PROGRAM, STRICT, "none"), ("", 0))

    def test_misuse_is_a_finding_of_explore(self):
        options = ["explore", "--strict", "--faults", "none", "--seeds", "1", "--check", "true"]
        output, status = explored.run(PROGRAM, *options, STRICT, "channel")
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"misuse: host1: \S+: ibv_req_notify_cq\(\): .* \[channel\]")
        output, status = explored.run(PROGRAM, *options, STRICT, "none")
        self.assertEqual(status, 0, output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
