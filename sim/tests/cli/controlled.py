#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""rdma-sim explore: programs that it controls: they pass, or have a finding, which replays are equal to.

usage: controlled.py RDMA-SIM PROGRAMS [SCHEDULES]
PROGRAMS is the directory of the programs that meson.build names. SCHEDULES of each correct program run, 1000 on demand.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RDMA_SIM, PROGRAMS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
SCHEDULES = int(sys.argv[3]) if len(sys.argv) > 3 else 10
DAEMONS, DIRECT, IPC, OPENMP, PERSISTENT, POLL, PROCESSES, RANDOM, THREADS = (
    f"{PROGRAMS}/sim-{name}" for name in ("daemons", "direct_calls", "ipc", "openmp", "persistent", "memory_poll", "processes", "random", "threads"))


def both(program, options):
    return f"{program} {options} :: {program} {options} 10.77.0.1"


# (name, arguments, faults)
CORRECT = [(f"memory_poll {how}", both(POLL, how), faults)
           for how in ("spin", "pause", "yield", "sleep", "clock") for faults in ("none", "kill,cut,freeze")]
CORRECT += [(f"threads {name}", f"{THREADS} {name}", "none")
            for name in ("mutex", "condition", "timeout", "atomic-wait", "barrier", "spin", "poll-under-locks", "poll-in-turn", "locks",
                         "c11", "cancel", "detach", "processors", "end")]
# A thread whose sleep ends while its program is frozen.
CORRECT += [("threads detach", f"--seeds 1-20 {THREADS} detach", "freeze")]
CORRECT += [(f"processes {name}", f"{PROCESSES} {name}", "none")
            for name in ("fork", "spawn", "shell", "kill", "kill-threads", "parent-ends", "sigsuspend", "sigchld", "timers", "counter")]
DAEMON_NAMES = ("close-all", "replace-3", "daemon", "pidfd", "sender", "signal-thread", "own-signal", "timer-of-thread", "move",
                "names")
CORRECT += [(f"daemons {name}", f"{DAEMONS} {name}", "none") for name in (*DAEMON_NAMES, "processor")]
if pathlib.Path(OPENMP).exists():
    CORRECT += [("openmp", OPENMP, "none")]
CORRECT += [(f"direct_calls {name}", f"{DIRECT} {name}", "none") for name in ("futex", "sleep", "signals", "process")]
CORRECT += [(f"ipc {name}", f"{IPC} {name}", "none")
            for name in ("flock", "fcntl", "open-file", "lockf", "close", "poll-lock", "posix-queue", "queue", "semaphore", "shared-memory",
                         "interrupted", "time-limits", "pipes", "printing", "large-write", "files", "messages")]
CORRECT += [("bash replaces 3", "bash -c 'exec 3>file; echo line >&3; (exit 0)'", "none")]
CORRECT += [("bash", "bash -c 'read -r line </proc/self/stat && (exit 0) && echo $line | cat'", "none")]
CORRECT += [("processes wait-long", f"--seeds 1-2 --live 10000s {PROCESSES} wait-long", faults) for faults in ("none", "freeze")]
# The last command is killed, and its children with it.
CORRECT += [(f"processes {name}", f"--live 100s --seeds 1-20 {PROCESSES} {name}", "kill") for name in ("fork", "shell")]
STORED = "--pmem memory --check '! grep -q stored $RDMA_SIM_OUT1 || grep -aq record memory'"
CORRECT += [("persistent threads", f"{STORED} --seeds 1-20 {PERSISTENT} threads memory", faults) for faults in ("none", "power-off")]
# Before the first schedule, the file is empty.
WHOLE = "--pmem memory --faults power-off --check 'test ! -s memory || grep -aq \"^one record of three words\" memory'"
CORRECT += [(f"persistent {name}", f"{WHOLE} --seeds 1-40 {PERSISTENT} {name} memory", "power-off") for name in ("replace", "remove", "map")]
CORRECT += [("direct_calls sockets", both(DIRECT, "sockets"), "none")]
ENDS = ("wrong-end", "wrong-exit", "wrong-_exit", "wrong-quick_exit")
# (name, arguments, finding)
WRONG = [(f"memory_poll {how}", both(POLL, f"wrong-{how}"), "host1 ends with status 1: line ")
         for how in ("spin", "pause", "yield", "sleep", "clock")]
WRONG += [("endless loop", f"{POLL} endless", "the programs wait for ever: host1 waits in a loop that reads memory")]
WRONG += [(f"threads {name}", f"{THREADS} {name}", finding) for name, finding in (
    ("wrong-update", "host1 ends with status 1"),
    ("wrong-order", "the programs wait for ever: host1 waits in pthread_mutex_lock, host1 thread 2 waits in pthread_mutex_lock"),
    ("wrong-condition", "the programs wait for ever: host1 waits in pthread_join, host1 thread 2 waits in pthread_cond_wait"))]
WRONG += [(f"threads {name}", f"{THREADS} {name}", "host1 ends with status 1")
          for name in ("wrong-unlock", "wrong-post", "wrong-signal", "wrong-wake", "wrong-write", *ENDS)]
WRONG += [(f"processes {name}", f"{PROCESSES} {name}", finding) for name, finding in (
    ("wrong-fork", "host1 ends with status 1"),
    ("wrong-child", "host1 process 2 is ended by signal 6 (Aborted)"),
    ("wrong-pause", "the programs wait for ever: host1 waits in pause"),
    ("wrong-sigqueue", "host1 ends with status 3"),
    ("wrong-alarm", "host1 is ended by signal 14 (Alarm clock)"))]
WRONG += [("daemons wrong-signal-thread", f"{DAEMONS} wrong-signal-thread",
           "the programs wait for ever: host1 waits in pthread_join, host1 thread 2 waits in pause")]
if pathlib.Path(OPENMP).exists():
    WRONG += [("openmp wrong", f"{OPENMP} wrong", "host1 ends with status 1")]
WRONG += [(f"ipc {name}", f"{IPC} {name}", finding) for name, finding in (
    ("wrong-no-lock", "host1 ends with status 1: line "),
    ("wrong-order", "the programs wait for ever: host1 waits in flock, host1 process 2 waits in flock"))]
WRONG += [(f"direct_calls {name}", f"{DIRECT} {name}", finding) for name, finding in (
    ("wrong-futex", "host1 ends with status 1: line "),
    ("wrong-wake", "the programs wait for ever: host1 waits in pthread_join, host1 thread 2 waits in futex"))]
WRONG += [("persistent wrong-replace", f"{WHOLE} --seeds 1-200 {PERSISTENT} wrong-replace memory", "the check fails")]


class Controlled(unittest.TestCase):
    """Each program runs in a directory of its own."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="rdma-sim-controlled-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def explore(self, arguments):
        done = subprocess.run(f"timeout -k 10 {60 + SCHEDULES} {RDMA_SIM} explore {arguments}", shell=True, text=True,
                              cwd=self.directory, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode

    def test_correct_program_has_no_finding(self):
        for name, arguments, faults in CORRECT:
            with self.subTest(name, faults=faults):
                output, status = self.explore(f"--check true --seeds 1-{SCHEDULES} --faults {faults} {arguments}")
                self.assertEqual(status, 0, output[-4000:])

    def test_program_is_correct_without_explore(self):
        for program, name in ((IPC, "messages"), *((DAEMONS, name) for name in DAEMON_NAMES)):
            with self.subTest(name):
                subprocess.run([RDMA_SIM, program, name], check=True, timeout=60)

    def test_system_call_that_is_not_controlled_is_refused(self):
        for program, call in ((f"{DIRECT} refused", "clone3() as a direct system call"), (f"{DAEMONS} refused-stop", "kill(SIGSTOP)"),
                              (f"{DAEMONS} refused-ring", "io_uring_setup() as a direct system call")):
            with self.subTest(call):
                output, status = self.explore(f"--check true {program}")
                call = re.escape(call)
                self.assertRegex(output, rf"\Ardma-sim: \S+ calls {call}, which explore does not control\n\Z")
                self.assertEqual(status, 2)

    def test_event_is_that_of_one_queue(self):
        """Two processes have a queue with the same address."""
        output, _ = self.explore(f"--check false --faults none --seeds 1-1 {DAEMONS} children-wait")
        events = re.findall(r"ibv_get_cq_event: (.*?)  ", output)
        self.assertEqual(len(events), 2, output)
        for event in events:
            self.assertRegex(event, r"^CQ \d+$")
        self.assertNotEqual(*events)

    def test_descriptor_is_open_until_the_end_of_a_call_that_waits(self):
        """The schedule without choices: nothing wakes the thread, and the read of the closed descriptor does not fail."""
        for name in ENDS:
            with self.subTest(name):
                output, status = self.explore(f"--check true --faults none --search exhaustive --seeds 1-1 {THREADS} {name}")
                self.assertEqual(status, 0, output)

    def test_run_with_the_same_seed_has_the_same_random_numbers(self):
        """And the same addresses and numbers of processes and threads."""
        results = []
        for seed in 1, 1, 2:
            output, status = self.explore(f"--check 'cp $RDMA_SIM_OUT1 out' --faults none --seeds {seed}-{seed} {RANDOM}")
            self.assertEqual(status, 0, output)
            results.append((self.directory / "out").read_text().splitlines())
        self.assertEqual(len(results[0]), 17, results[0])
        self.assertEqual(results[0], results[1])
        constant = [line.split(":")[0] for line, other in zip(results[0], results[2]) if line == other]
        self.assertEqual(constant, ["AT_RANDOM", "addresses", "gettid", "gettid", "getpid"])

    def test_mistake_is_found_and_replays_are_equal(self):
        for name, arguments, finding in WRONG:
            with self.subTest(name):
                output, status = self.explore(f"--check true --faults none --save finding {arguments}")
                self.assertIn(f"FOUND: {finding}", output)
                self.assertEqual(status, 1)
                first = self.explore("--replay finding")
                self.assertIn(f"FOUND: {finding}", first[0])
                for _ in range(19 if name.endswith(" spin") or SCHEDULES > 10 else 3):
                    self.assertEqual(self.explore("--replay finding"), first)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
