#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""What rpma-perf says to arguments and about its options. Each check prints its faults, or that
there is none.

usage: perf_words.py --program PROGRAM --source DIR CHECK...
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROWS, COLUMNS = 24, 80
USAGE = 2
OPERATIONS = ["write", "read", "flush-visibility", "flush-persistent", "atomic-write", "send",
              "ping-pong", "ping-pong-rcq", "fetch-add", "compare-swap", "connect"]
# Arguments that are refused, and a part of the error message.
REFUSED = [
    ([], "ADDRESS"),
    (["--server"], "ADDRESS"),
    (["host", "other"], "only one ADDRESS"),
    (["--no-such-option", "host"], "no-such-option"),
    (["-k", "host"], "'-k'"),
    (["--size"], "size"),
    (["--poll=1", "host"], "poll"),
    (["--operation", "fetch", "host"], "fetch"),
    (["--operation", "", "host"], '""'),
    (["--operation", "write,", "host"], '""'),
    (["--operation", "all,write,read", "host"], "more operations than there are"),
    (["--size", "64,", "host"], "--size"),
    (["--size", "0", "host"], "--size"),
    (["--size", "-1", "host"], "--size"),
    (["--size", "64kb", "host"], "--size"),
    (["--size", "k", "host"], "--size"),
    (["--size", "64T", "host"], "--size"),
    (["--size", "2G", "host"], "--size"),
    (["--size", "1048577K", "host"], "--size"),
    (["--size", "18014398509481985K", "host"], "--size"),
    (["--size", "64:32", "host"], "--size"),
    (["--size", ":", "host"], "--size"),
    (["--size", "1073741825", "host"], "--size"),
    (["--size", ",".join(["8"] * 65), "host"], "at most 64 sizes"),
    (["--depth", "0", "host"], "--depth"),
    (["--depth", "4097", "host"], "--depth"),
    (["--depth", "6", "--batch", "4", "host"], "multiple of the batch"),
    (["--batch", "0", "host"], "--batch"),
    (["--prepared", "host"], "batch"),
    (["--elements", "33", "host"], "--elements"),
    (["--elements", "3", "--size", "2", "host"], "byte for each element"),
    (["--elements", "2", "--operation", "atomic-write", "host"], "one element"),
    (["--inline", "4097", "host"], "--inline"),
    (["--connections", "1025", "host"], "--connections"),
    (["--threads", "2", "--connections", "1", "host"], "each thread"),
    (["--threads", "65", "host"], "--threads"),
    (["--duration", "0", "host"], "--duration"),
    (["--duration", "nan", "host"], "--duration"),
    (["--duration", "1s", "host"], "--duration"),
    (["--duration", "1", "--count", "1", "host"], "exclude"),
    (["--count", "0", "host"], "--count"),
    (["--warmup", "x", "host"], "--warmup"),
    (["--port", "65536", "host"], "--port"),
    (["--port", "http", "host"], "--port"),
    (["--operation", "connect", "--depth", "2", "host"], "one at a time"),
    (["--operation", "fetch-add", "--elements", "2", "host"], "one element"),
    (["--operation", "compare-swap", "--region", "1M", "host"], "of reads and writes"),
    (["--reconnect", "--count", "9", "host"], "--reconnect measures for a --duration"),
    (["--reconnect", "--verify", "host"], "--reconnect measures for a --duration"),
    (["--reconnect", "--both", "host"], "--reconnect measures for a --duration"),
    (["--reconnect", "--ledger", "file", "host"], "--reconnect measures for a --duration"),
    (["--size", "1073741824", "--depth", "4096", "host"], "tebibyte"),
    (["--operation", "atomic-write", "--batch", "2", "--prepared", "--verify", "host"],
     "nothing to verify"),
    (["--memory", "/dev/null", "host"], "is for the server"),
    (["--once", "host"], "is for the server"),
    (["--direct-write", "host"], "is for the server"),
    (["--ring", "64", "host"], "is for --ledger"),
    (["--random", "host"], "takes a --region"),
    (["--region", "63", "host"], "smaller than one operation"),
    (["--region", "1M", "--operation", "send", "host"], "of reads and writes"),
    (["--region", "1M", "--verify", "host"], "nothing is verified"),
    (["--region", "3G", "--connections", "1024", "--threads", "2", "host"], "tebibyte"),
    (["--reads", "101", "host"], "--reads"),
    (["--reads", "50", "--operation", "read", "host"], "into writes alone"),
    (["--reads", "50", "--operation", "flush-visibility", "host"], "into writes alone"),
    (["--reads", "50", "--batch", "2", "--prepared", "host"], "nothing is verified or prepared"),
    (["--rate", "1000000001", "host"], "--rate"),
    (["--both", "--operation", "send", "host"], "--both is of writes"),
    (["--both", "--operation", "flush-persistent", "host"], "--both is of writes"),
    (["--both", "--verify", "host"], "--both is of writes"),
    (["--interval", "0", "host"], "--interval"),
    (["--interval", "x", "host"], "--interval takes seconds"),
    (["--ledger", "file", "--plot", "file", "host"], "--plot is for measurements"),
    (["--ledger", "file", "--interval", "1", "host"], "--interval is for measurements"),
    # what users of perftest try
    (["-q", "4", "host"], "-q is -c, --connections here"),
    (["-l", "4", "host"], "-l is --batch here"),
    (["-I64", "host"], "-I is -i, --inline here"),
    (["-a", "host"], "--size 2:8388608"),
    (["-R", "host"], "connection manager is always used"),
    (["-b", "host"], "perftest's -b"),
    (["-d", "mlx5_0", "host"], "ADDRESS chooses the device"),
    (["-c", "RC", "host"], "-q is -c here"),
    (["-t", "128", "host"], "-t is -d, --depth here"),
    (["-s", "65536", "host"], "-s is -b, --size here"),
    (["--ledger", "file", "--ring", "0", "host"], "--ring takes a number from 4"),
    (["--ledger", "file", "--ring", "63", "--depth", "16", "host"], "four times as many"),
    (["--ledger", "file", "--ring", "16777217", "host"], "--ring"),
    (["--ledger", "file", "--size", "127", "host"], "at least 128 bytes"),
    (["--ledger", "file", "--size", "128,256", "host"], "one operation and one size"),
    (["--ledger", "file", "--operation", "write,flush-persistent", "host"], "one operation"),
    (["--ledger", "file", "--operation", "read", "host"], "a ledger is of writes"),
    (["--ledger", "file", "--operation", "send", "host"], "a ledger is of writes"),
    (["--ledger", "file", "--batch", "2", "--prepared", "host"], "no --prepared"),
    (["--ledger", "file", "--json", "host"], "--json is for measurements"),
    (["--ledger", "file", "--memory", "file", "host"], "is for the server"),
    (["--ledger", "file", "--verify"], "give --memory"),
    (["--ledger", "file", "--verify", "--memory", "file", "host"], "no ADDRESS"),
    (["--ledger", "file", "--verify", "--memory", "file", "--depth", "2"], "--depth does not go"),
    (["--ledger", "file", "--verify", "--memory", "file", "--server"], "--server does not go"),
    (["--server", "--direct-write", "host"], "give --memory"),
    (["--limit", "8192", "host"], "is for the server"),
    (["--server", "--limit", "4095", "host"], "--limit"),
    (["--server", "--limit", "1099511627777", "host"], "--limit"),
    (["--server", "--limit", "8192", "--memory", "file", "host"], "--limit is for DRAM"),
    *((["--server", *option, "host"], "is for the client") for option in
      (["--operation", "write"], ["--size", "8"], ["--depth", "2"], ["--batch", "2"],
       ["--prepared"], ["--elements", "2"], ["--inline", "8"], ["--connections", "2"],
       ["--threads", "2"], ["--duration", "1"], ["--count", "1"], ["--warmup", "1"], ["--poll"],
       ["--verify"], ["--ledger", "file"], ["--ring", "64"], ["--region", "1M"], ["--random"],
       ["--reads", "1"], ["--both"], ["--rate", "1"], ["--interval", "1"], ["--plot", "file"], ["--reconnect"],
       ["--json"])),
]


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=600)


def check_arguments(program, _):
    """Each is refused with one line and the exit status 2, before anything is done."""
    for arguments, part in REFUSED:
        done = run(program, *arguments)
        what = f"rpma-perf {' '.join(arguments)}"[:80]
        if done.returncode != USAGE:
            yield f"{what}: exit status {done.returncode}"
        if done.stdout:
            yield f"{what}: prints {done.stdout!r}"
        if done.stderr.count("\n") != 1 or not done.stderr.startswith("rpma-perf: "):
            yield f"{what}: not one line: {done.stderr!r}"
        if part not in done.stderr:
            yield f"{what}: says {done.stderr!r}, nothing about {part}"


def help_of(program):
    return run(program, "--help").stdout


def options_of_help(program):
    return set(re.findall(r"(?<![\w-])--?[A-Za-z0-9][\w-]*", help_of(program)))


def check_help(program, _):
    """--help fits a terminal and goes to the standard output, and so does --version."""
    done = run(program, "--help")
    lines = done.stdout.splitlines()
    if done.returncode or done.stderr:
        yield f"--help: exit status {done.returncode}, {done.stderr!r}"
    if not 0 < len(lines) <= ROWS:
        yield f"--help has {len(lines)} lines, not {ROWS} at most"
    yield from (f"--help: longer than {COLUMNS}: {line}" for line in lines if len(line) > COLUMNS)
    yield from (f"--help does not name {name}" for name in OPERATIONS
                if not re.search(rf"[ (]{name}[, ]", done.stdout))
    if run(program, "-h").stdout != done.stdout:
        yield "-h and --help differ"
    done = run(program, "--version")
    if done.returncode or not re.fullmatch(r"rpma-perf \d+\.\d+\.\d+, librpma \d+\.\d+\.\d+\n",
                                           done.stdout):
        yield f"--version prints {done.stdout!r}"


def differences(wanted, found, where):
    yield from (f"{where} does not name {option}" for option in sorted(wanted - found))
    yield from (f"{where} names {option}, which --help does not know"
                for option in sorted(found - wanted))


def check_completion(program, source):
    """bash offers all options, long and short, and all operations, and nothing else."""
    file = source / "programs" / "completion" / "rpma-perf"
    script = ('. "$1"; COMP_WORDS=(rpma-perf "${@:2}"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
              '_rpma_perf rpma-perf "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
              'printf "%s\\n" "${COMPREPLY[@]}"')

    def offered(*words):
        done = subprocess.run(["bash", "-c", script, "bash", file, *words], capture_output=True,
                              text=True, check=True, timeout=600)
        return set(done.stdout.split())

    yield from differences(options_of_help(program), offered("-"), file.name)
    long = {option for option in options_of_help(program) if option.startswith("--s")}
    yield from differences(long, offered("--s"), f"{file.name}, after --s,")
    yield from differences({*OPERATIONS, "all"}, offered("-o", ""), f"{file.name}, behind -o,")
    if "write,read" not in offered("--operation", "write,r"):
        yield f"{file.name} does not go on with a list of operations"


def check_manual(program, source):
    """The page describes each option, and no other, and each operation."""
    page = (source / "man" / "rpma-perf.1").read_text(encoding="utf-8")
    found = {("--" if long else "-") + name
             for item in re.findall(r"^\.It (Fl .*)$", page, re.MULTILINE)
             for long, name in re.findall(r"Fl (Fl )?(?!Fl)(\S+)", item)}
    yield from differences(options_of_help(program), found, "rpma-perf.1")
    yield from (f"rpma-perf.1 does not describe {name}" for name in OPERATIONS
                if not re.search(rf"^\.It Cm {name}$", page, re.MULTILINE))


CHECKS = {"arguments": check_arguments, "help": check_help, "completion": check_completion,
          "manual": check_manual}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("checks", nargs="+", choices=CHECKS)
    arguments = parser.parse_args()
    faults = [fault for check in arguments.checks
              for fault in CHECKS[check](arguments.program, arguments.source)]
    print("\n".join(faults) or f"rpma-perf: {', '.join(arguments.checks)}: no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
