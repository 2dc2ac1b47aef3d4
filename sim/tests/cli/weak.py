#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""The weaknesses of rdma-sim: for each one, a program that is right only under the strong model, and the corrected one.

usage: weak.py RDMA-SIM PAGE WEAK [SEEDS]    WEAK is the program weak.c
"""

import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
import explored

PROGRAM, PAGE, WEAK = (str(pathlib.Path(word).resolve()) for word in sys.argv[1:4])
SEEDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5  # of a corrected program
MOST = 200  # seeds in which a wrong program is found
CHECK = "! grep -q stored $RDMA_SIM_OUT2 || grep -aq 'record 1' memory"
# The parts of the selector, behind six words of the file.
SELECTOR = "set -- $(od -An -tu{size} -j48 -N{both} memory) && test $1 = $2"
DATAGRAMS = "datagram-loss,datagram-order,datagram-repeat"
# Name of the program, weakness, device, options, and other weaknesses that reveal the mistake.
PROGRAMS = (
    ("fence", "fence", "rxe", [], ""),
    ("fence", "fence", "irdma-iwarp", [], ""),
    ("fence-at-target", "fence", "mlx5", [], ""),
    ("send-queue", "send-queue", "mlx5", [], ""),
    ("empty-read", "empty-read", "rxe", ["--faults", "power-off", "--pmem", "memory", "--until", "host2", "--check", CHECK], ""),
    ("datagram-loss", "datagram-loss", "rxe", [], DATAGRAMS),
    ("datagram-order", "datagram-order", "mlx5", [], DATAGRAMS),
    ("datagram-repeat", "datagram-repeat", "rxe", [], DATAGRAMS),
    ("datagram-mtu", "datagram-mtu", "rxe", [], DATAGRAMS),
    ("failed-completion", "failed-completion", "rxe", [], ""),
    ("failed-completion", "failed-completion", "mlx4", [], ""),
    ("polled-record", "word-order", "rxe", [], ""),
    ("polled-record", "word-order", "mlx4", [], ""),
    ("unaligned-value", "word-order", "mlx5", [], ""),
    ("two-word-tail", "word-order", "rxe", [], ""),
    ("commit-flag", "word-order", "rxe", [], ""),
    ("seqlock", "torn-read", "rxe", [], ""),
    ("seqlock", "torn-read", "mlx5", [], ""),
)


def run(*arguments):
    """Return the output and the status of rdma-sim."""
    return explored.run(PROGRAM, *arguments)


def programs(name, form):
    return [WEAK, name, form, "::", WEAK, name, form, "10.77.0.1"]


class Weak(explored.InDirectory):
    def test_program_that_needs_strength_fails_by_its_weakness_only(self):
        for name, weakness, device, options, others in PROGRAMS:
            options = options or ["--faults", "none", "--check", "true"]
            def explore(form, strong, seeds):
                return run("explore", "--device", device, "--seeds", f"1-{seeds}", *options,
                           *(["--strong", strong] if strong else []), *programs(name, form))
            with self.subTest(name, device=device):
                only = ",".join(other for other in others.split(",") if other not in ("", weakness))
                output, status = explore("wrong", only, MOST)
                self.assertEqual(status, 1, output)
                self.assertIn(f"weaknesses that this schedule needs: {weakness} (--strong turns them off)\n", output)
                output, status = explore("wrong", ",".join(filter(None, [only, weakness])), SEEDS)
                self.assertEqual(status, 0, output)
                output, status = explore("fixed", "", SEEDS)
                self.assertEqual(status, 0, output)

    def test_selector_of_two_words_is_torn_by_a_power_failure(self):
        for form, size, seeds, status in ("wrong", 8, MOST, 1), ("fixed", 4, 10 * SEEDS, 0):
            with self.subTest(form):
                output, got = run("explore", "--seeds", f"1-{seeds}", "--faults", "power-off", "--pmem", "memory", "--until", "host2",
                                  "--check", SELECTOR.format(size=size, both=2 * size), *programs("selector", form))
                self.assertEqual(got, status, output)
                if form == "wrong":
                    self.assertRegex(output, r"ms   host1 has lost \d+ words that were not persistent\n")
                    self.assertRegex(output, r"ms   host1 lost: 8 bytes of memory\+(48|56), write wr_id=0 of host2 QP \d+\n")

    def test_late_word_is_shown_after_the_next_write(self):
        """After the write that follows, and before the report of the server."""
        output, status = run("explore", "--seeds", f"1-{MOST}", "--faults", "none", "--check", "true", *programs("polled-record", "wrong"))
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"(?s)host1 visible: 8 bytes at 0x\w+, write wr_id=0 of host2 QP \d+\n"
                                 r".*host1 visible late: \d+ bytes at 0x\w+, write wr_id=0 of host2 QP \d+\n"
                                 r".*host1 prints: the record is incomplete\n")

    def test_child_of_fork_cannot_post(self):
        """With and without explore."""
        for device in "rxe", "siw", "mlx5":
            for form, options, status in (("wrong", (), 1), ("wrong", ("--strong", "fork"), 0), ("fixed", (), 0)):
                with self.subTest(device, form=form, options=options):
                    output, got = run("--device", device, *options, "--until", "host2", *programs("fork", form))
                    self.assertEqual(got, status, output)
        for form, status in ("wrong", 1), ("fixed", 0):
            output, got = run("explore", "--seeds", "0", "--faults", "none", "--check", "true", *programs("fork", form))
            self.assertEqual(got, status, output)

    def test_plain_run_has_the_weaknesses_without_choices(self):
        for name, device in ("send-queue", "mlx5"), ("failed-completion", "rxe"):
            with self.subTest(name):
                command = ["--device", device, "--until", "host2", *programs(name, "wrong")]
                self.assertEqual(run(*command)[1], 1)
                self.assertEqual(run("--strong", name, *command)[1], 0)
                self.assertEqual(run("--strong", "all", *command)[1], 0)

    def test_weaknesses_are_those_of_the_page(self):
        """The page describes each weakness of --strong help, with the devices that have it."""
        output, status = run("--strong", "help")
        listed = re.findall(r"^  ([a-z-]+)  ", output, re.M)
        page = pathlib.Path(PAGE).read_text()
        page = page[page.index(".Ss Weaknesses"):]
        page = page[:page.index("\n.S", 1)]
        self.assertEqual((status, listed), (0, [*re.findall(r"^\.It Cm ([a-z-]+)$", page, re.M), "all"]))
        self.assertEqual([line for line in output.splitlines() if len(line) > 80], [])

    def test_unknown_weakness_is_refused(self):
        for arguments, expected in (
                (["--strong", "weak"], "--strong: there is no weakness 'weak': --strong help lists them"),
                (["--strong", ""], "--strong: there is no weakness '': --strong help lists them"),
                (["--strong", "fork,"], "--strong: there is no weakness '': --strong help lists them"),
                (["--strong", "send-queue"], "--strong send-queue: the device rxe does not have this weakness"),
                (["--device", "siw", "--strong", "datagram-loss"], "--strong datagram-loss: the device siw does not have")):
            for explores in ([], ["explore", "--check", "true"]):
                with self.subTest(arguments, explores=explores):
                    output, status = run(*explores, *arguments, "echo", "started")
                    self.assertEqual((status, output.count("\n")), (2, 1), output)
                    self.assertTrue(output.startswith(f"rdma-sim: {expected}"), output)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
