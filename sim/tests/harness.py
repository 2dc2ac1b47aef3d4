# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Functions that the tests of the programs share: start a program, compare, report as TAP."""

import re
import subprocess
import sys
import traceback

HELP_LINES, HELP_COLUMNS = 24, 80
TESTS = []


class Skipped(Exception):
    """The test cannot run here; the text is the reason."""


def test(title):
    """Registers a function as a test."""
    def register(function):
        TESTS.append((title, function))
        return function
    return register


def expect(actual, wanted, what):
    if actual != wanted:
        raise AssertionError(f"{what}: {actual!r} instead of {wanted!r}")


def run(program, *arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([program, *arguments], stderr=subprocess.PIPE, text=True, check=False,
                          **options)


def expect_one_line(done, status, what):
    """Expects this exit status, no output, and one line with the reason."""
    expect(done.returncode, status, f"{what}: exit status")
    expect(done.stdout or "", "", f"{what}: standard output")
    lines = done.stderr.splitlines()
    expect(len(lines), 1, f"{what}: lines of the standard error: {done.stderr!r}")


def check_help(program):
    """Expects that --help fits a terminal; returns its options."""
    done = run(program, "--help")
    expect((done.returncode, done.stderr), (0, ""), "--help")
    lines = done.stdout.splitlines()
    expect(len(lines) <= HELP_LINES, True, f"--help has {len(lines)} lines")
    for line in lines:
        expect(len(line) <= HELP_COLUMNS, True, f"--help: {len(line)} columns: {line}")
    return set(re.findall(r"^ +(--[a-z-]+)", done.stdout, flags=re.M))


def options_of_page(page):
    """The options that a manual page explains: those that begin a list entry."""
    with open(page, encoding="utf-8") as file:
        return {"--" + name for name in re.findall(r"^\.It Fl Fl ([a-z-]+)", file.read(), re.M)}


def completed(completion, name, *words):
    """bash's completions of the last word."""
    script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              '"_${1//-/_}" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"; '
              '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-euc", script, "bash", completion, name, *words], check=True,
                          capture_output=True, text=True)
    return done.stdout.splitlines()


def check_lists(program, name, page, completion):
    """Expects the same options in help, manual page and completion."""
    of_help = check_help(program)
    expect(options_of_page(page), of_help, f"options of {page}, compared with --help")
    expect(set(completed(completion, name, "--")), of_help, "options of the completion")


def main():
    print(f"1..{len(TESTS)}")
    failed = 0
    for number, (title, function) in enumerate(TESTS, 1):
        try:
            function()
            print(f"ok {number} - {title}")
        except Skipped as skipped:
            print(f"ok {number} - {title} # SKIP {skipped}")
        except Exception as error:  # any exception, so that the next test runs
            failed += 1
            print(f"not ok {number} - {title}")
            print(f"# {type(error).__name__}: {error}")
            traceback.print_exc(file=sys.stderr)
    return 1 if failed else 0
