#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Runs the integration tests inside the lab and prints TAP; see --help."""

import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(os.path.dirname(sys.path[0]), "..", "tools", "test.d"))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import cases  # noqa: E402,F401
from arguments import Parser  # noqa: E402
from harness import lab, page, report  # noqa: E402
from harness.case import ON_REQUEST, TABLE, Test, spawner  # noqa: E402


# The time limits allow for a busy machine, which is slower by this factor.
SLOW_FACTOR = 10
# After this number of cases that did not end, the remaining cases are not run.
TOO_MANY = 3


class TooSlow(BaseException):
    """The time limit of a case has passed; no Exception, so that no case catches it accidentally."""


def too_slow(*_):
    raise TooSlow


class Run:
    """The run of one case."""

    def __init__(self, case, build):
        self.case, self.build = case, build
        self.test = self.outcome = None
        self.seconds, self.was_slow = 0, False

    def guarded(self, action):
        """Runs one part of a case within its time limit; the first failure is the outcome."""
        began = time.monotonic()
        outcome, limit = None, SLOW_FACTOR * self.case.limit
        signal.signal(signal.SIGALRM, too_slow)
        try:
            try:
                signal.alarm(limit)
                action()
            finally:
                signal.alarm(0)  # in the outer block, because the alarm may arrive at this moment
        except lab.Skipped as skipped:
            outcome = "skipped", str(skipped)
        except TooSlow:
            outcome, self.was_slow = ("failed", f"not done after {limit} s"), True
        except Exception as error:  # any exception, so that the next case runs
            outcome = "failed", f"{type(error).__name__}: {error}"
        self.outcome = self.outcome or outcome
        self.seconds += time.monotonic() - began

    def run(self):
        self.test = Test(self.build)
        self.case.function(self.test, **self.case.values)
        page.check(self.case.shows, self.test.stderr(), self.test.transcript)
        self.test.finish()

    def end(self, tap):
        """Reports the result and keeps the log."""
        if self.outcome is None:
            self.guarded(self.run)
        if self.test is not None:
            self.guarded(self.test.abandon)
        result, reason = self.outcome or ("passed", "")
        if self.test is not None:
            tap.keep(self.case.file_name, f"{self.test.log()}\n{reason}\n")
            self.test.close()
        tap.add(self.case.name, result, reason, self.seconds)


def selected(arguments):
    """Yields the selected cases of this build. Other cases would repeat the results of the other build."""
    for case in TABLE:
        # Cases that show the absence of a feature, and large ones, run only on request.
        groups = {case.group} | ({"troubleshooting"} if case.shows else set())
        of_group = groups & set(arguments.group) if arguments.group else not case.lacks and not groups & ON_REQUEST
        is_here = case.fabric if lab.ON_FABRIC else (
            arguments.build in case.builds and (not case.fabric or arguments.group or arguments.all))
        if of_group and is_here and re.search(arguments.pattern, case.name):
            yield case


def parse():
    parser = Parser("tests/integration/run.py", __doc__)
    parser.add_argument("--build", default="plain", choices=("native", "plain"),
                        help="the build in LIBRPMA_BUILD_DIR (default: plain)")
    parser.add_argument("--group", action="append",
                        help="only cases of this group (repeatable); troubleshooting includes the "
                             "cases of other groups that show an entry of rpma_troubleshooting(7)")
    parser.add_argument("--all", action="store_true", help="include the cases that --fabric runs")
    parser.add_argument("--fabric", metavar="RDMA-SIM", help="run the cases that need no kernel on its hosts")
    parser.add_argument("--logs", default=os.path.join(lab.BUILD_DIR, "integration-logs"),
                        help="directory for logs; its previous content is removed")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("pattern", nargs="?", default="",
                        help="only cases whose names match this regular expression")
    return parser.parse_args()


def on_fabric(program):
    """Runs this program again on hosts of rdma-sim, with another command "on"."""
    build = os.path.abspath(os.path.join(os.path.dirname(program), "..", ".."))
    with tempfile.TemporaryDirectory() as directory:
        on = os.path.join(directory, "on")
        with open(on, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nhost=$1\nshift\nexec {shlex.quote(os.path.abspath(program))} --join "" '
                         '--host "$host" "$@"\n')
        os.chmod(on, 0o755)
        hosts = [f"host{number}" for number in range(1, 5)]
        environment = {"PATH": directory + ":" + os.environ["PATH"], "LAB_HOSTS": " ".join(hosts), "LAB_RDMA": "rxe",
                       "LIBRPMA_BUILD_DIR": build, "LD_LIBRARY_PATH": os.path.join(build, "src"),
                       **{f"LAB_ADDR_{host}": f"10.77.0.{host[4:]}" for host in hosts}}
        return subprocess.run([program, "--hosts", str(len(hosts)), *sys.argv],
                              env={**os.environ, **environment}).returncode


def main():
    arguments = parse()
    if arguments.fabric and not lab.ON_FABRIC:
        return on_fabric(arguments.fabric)
    chosen = list(selected(arguments))
    if arguments.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not lab.HOSTS:
        sys.exit("run.py: this is not the lab: start it with tools/lab run --hosts 2 -- …")
    if not chosen:
        sys.exit("run.py: no case matches")
    tap = report.Tap(arguments.build, len(chosen), arguments.logs)
    for host in lab.HOSTS:
        spawner(host)

    def descriptors():
        """The open descriptors, without the input and output of each spawner."""
        return len(os.listdir("/proc/self/fd")) - 2 * spawner.cache_info().currsize

    before = descriptors()
    runs = [Run(case, arguments.build) for case in chosen]
    for run in runs:
        if reason := run.case.skip_reason():
            run.outcome = "skipped", reason
    for run in runs:
        if sum(other.was_slow for other in runs) >= TOO_MANY:
            run.outcome = run.outcome or (
                "failed", f"not run, because {TOO_MANY} earlier cases did not end")
        run.end(tap)
    if (left := descriptors() - before) > 0:
        sys.exit(f"run.py: the cases left {left} descriptors open in this program")
    devices = ", ".join(sorted(lab.resources())) or "the simulated fabric"
    return tap.end(f"{devices}, Linux {platform.release()}")


if __name__ == "__main__":
    sys.exit(main())
