#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Checks that each function of the C library that waits or reads the clock has a row: replaced, or why it is not.

usage: libc.py PRELOADED    PRELOADED is librdma-sim-explore.so; nm(1) lists the functions of both libraries
"""

import ctypes
import re
import subprocess
import sys

# Functions whose names contain these words may wait, read the clock, or return what differs between runs.
WORDS = re.compile("wait|sleep|poll|select|time|clock|lock|join|alarm|pause|recv|accept|barrier|once|yield|sigsuspend|futex"
                   "|getrandom|entropy|arc4|gettid|affinity|^te?mp(nam|file)|mk[a-z]*temp")
# (names, why explore does not replace them)
OTHERS = (
    (r"\w*_unlocked(_chk)?|_IO_\w*|__fsetlocking|f(try)?(un)?lockfile|unlockpt|clearerr_\w+",
     "locks of stdio, which no thread keeps while it waits for its turn"),
    (r"__(xpg_)?\w+", "called by the C library itself, or an old name that no header declares"),
    (r"pthread_\w+attr_\w+|pthread_(rwlock|barrier)_(init|destroy)|timespec_getres|clock_get(res|cpuclockid)|pthread_getcpuclockid",
     "neither waits nor reads a clock"),
    (r"pthread_(rwlock_try\w+|spin_trylock)|sem_trywait", "does not wait"),
    (r"\w*(gmtime|localtime|mktime|ctime|asctime|strftime|strptime|timegm|timelocal|difftime)\w*|timezone|wcsftime\w*",
     "converts a time"),
    (r"\w*utimes?|futime\w+|lutimes|utimensat", "sets the times of a file"),
    (r"m(un)?lock(2|all)?|epoll_c\w+|xdr_\w+|svc_\w+|sigblock", "does not wait, in spite of its name"),
    (r"clock_settime|clock_adjtime|settimeofday|stime|adjtimex?|ntp_\w+", "needs the rights to set the clock"),
    (r"sigpause|rtime", "old: not controlled"),
    (r"recvmmsg", "replaced by librdma-sim-preload.so, which calls recvmsg()"),
    (r"getitimer", "rarely used"),
    (r"te?mpnam\w*|mktemp", "unsafe: the linker warns of them"),
    (r"tmpfile(64)?", "the file has no name"),
    (r"pthread_attr_getaffinity_np", "of a thread that is not created yet"),
    (r"times|vtimes|ftime|pthread_yield", "old, or the time of the processor"),
)


def functions(path):
    done = subprocess.run(["nm", "-D", "--defined-only", path], text=True, stdout=subprocess.PIPE, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()[-2] in "TWi"}


def path_of_libc():
    ctypes.CDLL("libc.so.6")
    with open("/proc/self/maps", encoding="ascii") as maps:
        return next(line.split()[-1] for line in maps if re.search(r"/libc(\.so\.6|-2\.\d+\.so)$", line.rstrip()))


def main():
    found = {name for name in functions(path_of_libc()) if WORDS.search(name)}
    replaced = functions(sys.argv[1])
    missing = sorted(name for name in found - replaced if not any(re.fullmatch(names, name) for names, _ in OTHERS))
    twice = sorted(name for name in found & replaced
                   if any(re.fullmatch(names, name) for names, _ in OTHERS if not names.startswith("__")))
    if len(found & replaced) < 50 or missing or twice:
        sys.exit(f"no row: {missing}; replaced, but with a row: {twice}; {len(found & replaced)} replaced")
    print(f"{len(found & replaced)} functions are replaced, {len(found - replaced)} have a row")


if __name__ == "__main__":
    main()
