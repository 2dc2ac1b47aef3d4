#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Runs the integration tests inside the lab and prints TAP; --help says how."""

import argparse
import os
import platform
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
import cases  # noqa: E402,F401
from harness import lab, report  # noqa: E402
from harness.case import TABLE, Test  # noqa: E402


def too_slow(*_):
    raise TimeoutError


def run_case(case, build, log_directory):
    """(result, reason, seconds) of one case; its log is kept."""
    began = time.monotonic()
    result, reason, test = "passed", "", None
    signal.signal(signal.SIGALRM, too_slow)
    signal.alarm(case.limit)
    try:
        test = Test(build)
        case.function(test, **case.values)
        test.finish()
    except lab.Skipped as skipped:
        result, reason = "skipped", str(skipped)
    except TimeoutError:
        result, reason = "failed", f"not done after {case.limit} s"
    except Exception as error:  # whatever it is, the next case runs
        result, reason = "failed", f"{type(error).__name__}: {error}"
    signal.alarm(0)
    if test is not None:
        test.abandon()
        report.keep(log_directory, case.file_name, test.log() + "\n" + reason + "\n")
    return result, reason, time.monotonic() - began


def selected(arguments):
    for case in TABLE:
        wanted = not arguments.group or case.group in arguments.group
        if wanted and re.search(arguments.pattern, case.name):
            yield case


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, choices=("native", "plain"),
                        help="which build LIBRPMA_BUILD_DIR holds")
    parser.add_argument("--group", action="append", help="only cases of this group (repeatable)")
    parser.add_argument("--logs", default=os.path.join(lab.BUILD_DIR, "integration-logs"),
                        help="directory for logs; what it holds is removed")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("pattern", nargs="?", default="",
                        help="only cases whose names have this regular expression")
    return parser.parse_args()


def main():
    arguments = parse()
    chosen = list(selected(arguments))
    if arguments.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not lab.HOSTS:
        sys.exit("run.py: this is not the lab: start it with tools/lab run --hosts 2 -- …")
    if not chosen:
        sys.exit("run.py: no case matches")
    tap = report.Tap(arguments.build, len(chosen), arguments.logs)
    for case in chosen:
        if arguments.build not in case.builds:
            tap.add(case.name, "skipped", f"shown by the {case.builds[0]} build", 0)
            continue
        tap.add(case.name, *run_case(case, arguments.build, tap.directory))
    devices = ", ".join(sorted(lab.resources()))
    return tap.end(f"{devices}, Linux {platform.release()}")


if __name__ == "__main__":
    sys.exit(main())
