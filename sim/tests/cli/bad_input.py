#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Invalid faults, hosts, names and options of rdma-sim: bad_input.py RDMA-SIM

Each is refused with one line and status 2 before a program starts: each fault of --fault help in a plain run, with --join,
in explore and in a replay.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
# A device that lacks the fault; all devices have the others.
LACKING = {"drop-datagram": "siw", "repeat-datagram": "siw", "drop-cm": "siw", "port-down": None, "poison": "rxe", "doorbell": "mlx5",
           "overrun": "mana", "event": "rxe", "remove": "siw", "insert": "siw"}
ARGUMENTS = {"TIME": "5ms", "CALL": "ibv_reg_mr", "EVENT": "device-fatal"}
STARTED = ("sh", "-c", "echo started")


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], text=True, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout, done.returncode


def faults():
    """{name: (words of its arguments)} of --fault help."""
    listed = re.findall(r"^  ([a-z-]+) +(?:\* )?((?:[A-Z]+|\[[A-Za-z]+\])(?: (?:[A-Z]+|\[[A-Za-z]+\]))*) ", run("--fault", "help")[0], re.M)
    return {name: arguments.split() for name, arguments in listed}


FAULTS = faults()


def action(name, host="host2"):
    words = [{"HOST": host}.get(word, ARGUMENTS.get(word)) for word in FAULTS[name] if not word.startswith("[")]
    return " ".join([name, *("host1" if word == host and index < words.index(host) + words.count(host) - 1 else word
                             for index, word in enumerate(words))])


class BadInput(unittest.TestCase):
    def refused(self, expected, *arguments):
        with self.subTest(arguments):
            output, status = run(*arguments)
            self.assertEqual((status, output.count("\n")), (2, 1), output)
            self.assertTrue(output.startswith(f"rdma-sim: {expected}"), f"{output} instead of {expected}")

    def test_table_has_all_faults(self):
        self.assertGreaterEqual(len(FAULTS), 25)
        self.assertEqual(sorted(LACKING), sorted(set(LACKING) & set(FAULTS)))

    def test_plain_run_refuses_each_fault_with_invalid_words(self):
        for name in FAULTS:
            fault = f"1s {action(name)}"
            if name == "clock-ahead":
                self.refused(f"--fault '{fault}': only explore has this fault", "--hosts", "2", "--fault", fault, *STARTED)
                continue
            self.refused("--fault: there is no host7, only 2 hosts: see --hosts", "--hosts", "2", "--fault",
                         f"1s {action(name, 'host7')}", *STARTED)
            if LACKING.get(name):
                self.refused(f"--fault '{fault}': the device {LACKING[name]} of host2 cannot have this fault", "--hosts", "2",
                             "--device", LACKING[name], "--fault", fault, *STARTED)

    def test_join_refuses_each_fault(self):
        for name in FAULTS:
            fault = f"1s {action(name)}"
            expected = f"--fault '{fault}': only explore" if name == "clock-ahead" else "--join takes no --fault: the fabric runs"
            self.refused(expected, "--join", "name", "--fault", fault, *STARTED)

    def test_explore_refuses_each_fault_that_no_device_has(self):
        explored = re.findall(r"^([a-z-]+) ", run("explore", "--faults", "help")[0], re.M)
        for name in FAULTS:
            explore = ["explore", "--check", "true", "--hosts", "2"]
            if name not in explored:
                self.refused(f"--faults: there is no kind '{name}': --faults help", *explore, "--faults", name, *STARTED)
            elif LACKING.get(name) and name != "event":  # a device has some event
                self.refused(f"--faults {name}: no host, device or file", *explore, "--device", LACKING[name], "--faults", name, *STARTED)

    def test_replay_refuses_each_fault(self):
        with tempfile.TemporaryDirectory(prefix="rdma-sim-bad-input-") as directory:
            saved, bad = pathlib.Path(directory, "saved"), pathlib.Path(directory, "bad")
            output, status = run("explore", "--check", "false", "--seeds", "0", "--faults", "none", "--save", saved, "true")
            self.assertEqual(status, 1, output)
            text = saved.read_text()
            for name in FAULTS:
                arguments = ["--check", "true", "--fault", f"1s {action(name)}", *STARTED]
                head, *rest = re.split(r"^(?=argument )", text, flags=re.M)
                tail = re.sub(r"\Aargument .*\n", "", rest[-1])
                bad.write_text(head + "".join(f"argument {word}\n" for word in arguments) + tail)
                self.refused("explore chooses faults itself", "explore", "--replay", bad)

    def test_option_of_another_command_is_refused(self):
        join = ["--join", "name"]
        self.refused("--fault '1s cut host1 now': unexpected 'now'", "--fault", "1s cut host1 now", *STARTED)
        self.refused("explore chooses faults itself", "explore", "--check", "true", "--fault", "1s cut host1", *STARTED)
        for option, value in (("--strong", "fork"), ("--device", "mlx5"), ("--hosts", "3"), ("--pmem", "file"), ("--dax", "fs"),
                              ("--platform", "cpu-flush"), ("--lose", "random"), ("--until", "all"), ("--seed", "2"),
                              ("--name", "other"), ("--memory", "direct")):
            self.refused(f"--join takes no {option}: the fabric runs already", *join, option, value, *STARTED)
        for option in ("--together", "--prefix", "--verbose"):
            self.refused(f"--join takes no {option}: the fabric runs already", *join, option, *STARTED)
        self.refused("--host is for --join", "--host", "host1", *STARTED)
        self.refused("no fabric 'name' runs", *join, "--host", "host1", *STARTED)
        for option in ("--device", "--pmem"):
            self.refused(f"{option}: there is no host7, only 1 hosts", option, f"host7={'rxe' if option == '--device' else 'file'}", *STARTED)
        self.refused("--fault: there is no host7", "--fault", "after host7 kill host1", *STARTED)
        self.refused("--fault: there is no host7", "--fault", "host7:ibv_reg_mr kill", *STARTED)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
