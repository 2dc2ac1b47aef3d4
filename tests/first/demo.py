#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""tools/demo is interrupted at each of its stages, and runs where something is
missing.

Whatever ends it, it has the status that says so, and a second after its end no
process, mount or file of it is left. Speaks TAP. Prepares the lab from nothing
in a directory of its own: needs root, the network and 2 GB of disk, and takes
about 6 minutes.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
# The last message of the demo before the signal. Each run goes one stage further than the one
# before it, because a finished part of the lab stays.
STAGES = [
    "setup: installing",
    "lab: preparing the Debian",
    "lab: still preparing the Debian .* root [(]10 s",
    "lab: still preparing the Debian .* root [(]30 s",
    "lab: preparing the initramfs",
    "lab: preparing the persistent memory",
    "== Booting the lab",
    "== The machine",
]
TWICE = {2, 5, 7}  # where all signals are tried: apt works, the machine boots, the program runs
SIGNALS = {signal.SIGINT: 130, signal.SIGHUP: 129, signal.SIGTERM: 143}
PLAIN = ("setpriv", "--inh-caps", "-all", "--bounding-set",
         "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,"
         "+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap")
LIMIT = 1200
AT_ONCE = 1  # second after the end; anything left then stays


def time_to_clean():
    """Seconds from the signal to the end, which comes when everything is removed: 14,000 files of a
    root and 5,000 of a kernel take half a second of processor time, of which other programs leave
    only a share."""
    return 2 * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


class Demo:
    def __init__(self, work, checkout=CHECKOUT, wrapper=(), **environment):
        self.work, self.said = work, []
        self.mounts = mounts()
        shutil.rmtree(work / "tmp", ignore_errors=True)  # ignores the remains of another demo
        for name in ("cache", "tmp"):
            (work / name).mkdir(exist_ok=True)
        self.shared = set(pathlib.Path("/dev/shm").iterdir())
        self.process = subprocess.Popen(
            [*wrapper, checkout / "tools/demo"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "LIBRPMA_LAB_CACHE": str(work / "cache"),
                 "TMPDIR": str(work / "tmp"), **environment})
        self.session = self.process.pid

    def read_until(self, pattern):
        """Whether the demo printed this before it ended."""
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return True
        return False

    def end(self):
        """The exit status; a process that holds the output open delays it."""
        self.read_until("(?!)")
        return self.process.wait(timeout=LIMIT)

    def left(self):
        """Processes, mounts and files of the demo that still exist."""
        found = [f"process {name}" for name in self.processes()]
        found += [f"mount {line}" for line in mounts() - self.mounts]
        cache = self.work / "cache"
        for pattern in ("*.part*", "copy-*", "build-*.log"):
            found += map(str, cache.glob(pattern))
        found += map(str, (self.work / "tmp").iterdir())
        logs = {str(path) for path in set(pathlib.Path("/dev/shm").iterdir()) - self.shared
                if path.name.startswith("librpma-")}
        return found + sorted(logs - (opened() if logs else set()))

    def processes(self):
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                stat = (path / "stat").read_text(encoding="utf-8", errors="replace")
                environment = (path / "environ").read_bytes()
            except OSError:
                continue
            name, rest = stat[stat.index("("):].rsplit(")", 1)
            state, session = rest.split()[0], int(rest.split()[3])
            if state != "Z" and (session == self.session or str(self.work).encode() in environment):
                yield f"{path.name} {name})"


def opened():
    """The files that processes have open, such as those of another lab: they are not left over."""
    files = set()
    for link in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            files.add(os.readlink(link))
        except OSError:
            pass
    return files


def mounts():
    lines = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in lines}


def interrupt(work, stage, number):
    """None, or the fault."""
    demo = Demo(work)
    if not demo.read_until(stage):
        demo.end()
        return ["it never said so:", *demo.said]
    if number == signal.SIGTERM:  # a service manager sends it to one process
        os.kill(demo.process.pid, number)
    else:  # a terminal sends it to the group
        os.killpg(demo.process.pid, number)
    began = time.monotonic()
    status = demo.end()
    ended = time.monotonic()
    while demo.left() and time.monotonic() < ended + AT_ONCE:
        time.sleep(0.05)
    wrong = [f"left behind: {name}" for name in demo.left()]
    said = f"status {status} after {ended - began:.1f} s, of {time_to_clean():.0f} s that it has"
    print(f"# {said}")
    if status != SIGNALS[number] or ended - began > time_to_clean():
        wrong.append(f"{said}, wanted {SIGNALS[number]}")
    return wrong + [line for line in demo.said if re.search("unbound|unexpected|warning", line)]


def copy_of(work, spoil=None):
    """A checkout that everybody may read, or one that does not compile."""
    copy = work / ("spoiled" if spoil else "readable")
    if not copy.exists():
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns("build", ".git"))
    if spoil:
        with open(copy / spoil, "a", encoding="utf-8") as file:
            file.write("#error spoiled\n")
    return copy


# A fault of the machine; the folder of its cache; the checkout; the wrapper; the environment; the
# status; the last message.
CONDITIONS = [
    ("no root rights", ".", copy_of, ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
     {}, 1, "lab: the lab needs root: run it with sudo"),
    ("KVM where there is none", ".", None, ("unshare", "--mount", "sh", "-c",
     '[ ! -e /dev/kvm ] || mount --bind /etc/passwd /dev/kvm; exec "$@"', "-"),
     {"LIBRPMA_LAB_ACCEL": "kvm"}, 1,
     "lab: LIBRPMA_LAB_ACCEL asks for KVM, but there is no /dev/kvm to write to: unset it"),
    ("a library that does not build", ".", lambda work: copy_of(work, "src/exports.cc"), (), {}, 1,
     "lab: librpma .* does not build"),
    ("no network", "fresh", None, ("unshare", "--net"), {}, 1,
     "lab: could not prepare .*apt cannot fetch .*: is there a network[?].*"),
    ("no right to mount, as in a plain container", ".", None, PLAIN, {}, 0, "== Success .*"),
]


def under(work, folder, checkout, wrapper, environment, status, last):
    (work / folder).mkdir(exist_ok=True)
    demo = Demo(work / folder, checkout(work) if checkout else CHECKOUT, wrapper, **environment)
    return judge(demo, status, last)


def without_room(work, size, last):
    """A cache in a file system that is too small from the start, or fills up on the way."""
    cache = work / "small" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", cache], check=True)
    try:
        demo = Demo(work / "small")
        if demo.read_until("preparing the Debian"):
            subprocess.run(["mount", "-o", "remount,size=200m", cache], check=True)
        return judge(demo, 1, last)
    finally:
        subprocess.run(["umount", cache], check=True)  # no process uses it any more


def judge(demo, status, last):
    ended = demo.end()
    wrong = [f"left behind: {name}" for name in demo.left()]
    if ended != status or not re.fullmatch(last, demo.said[-1]):
        wrong.append(f"status {ended}, wanted {status}, and as the last line {last}")
    if sum("could not prepare" in line for line in demo.said) > 1:
        wrong.append("two parts failed, and both said so")
    return wrong and wrong + demo.said


def cases(work):
    """Yields name and function of each test; each one uses files of the earlier ones."""
    qemu = subprocess.run(["dpkg-query", "--show", "qemu-system-x86"], capture_output=True)
    for place, stage in enumerate(STAGES):
        if stage == STAGES[0] and qemu.returncode == 0:
            print("# apt has nothing to install here, so nothing interrupts it")
            continue
        for number in SIGNALS if place in TWICE else list(SIGNALS)[:1]:
            yield f"{number.name} at '{stage}'", lambda s=stage, n=number: interrupt(work, s, n)
    for row in CONDITIONS:
        yield row[0], lambda r=row: under(work, *r[1:])
    yield "no room", lambda: without_room(
        work, 300, "lab: the lab needs .* MB of disk, and .* MB are free in .*")
    yield "a disk that fills up", lambda: without_room(
        work, 2000, "lab: could not prepare .*: the disk of .* is full: make room .*")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", help="a directory for cache and logs, which stays afterwards")
    parser.add_argument("pattern", nargs="?", default="", help="only what has this in its name")
    return parser.parse_args()


def main():
    arguments = parse()
    with tempfile.TemporaryDirectory(prefix="librpma-first-") as directory:
        work = pathlib.Path(arguments.keep or directory).resolve()
        work.mkdir(exist_ok=True)
        work.chmod(0o755)
        chosen = [(name, run) for name, run in cases(work) if re.search(arguments.pattern, name)]
        print(f"1..{len(chosen)}", flush=True)
        failed = 0
        for count, (name, run) in enumerate(chosen, 1):
            began = time.monotonic()
            wrong = run()
            failed += bool(wrong)
            print("\n".join(f"# {line}" for line in wrong or []) + "\n" * bool(wrong)
                  + f"{'not ok' if wrong else 'ok'} {count} - {name} # {time.monotonic() - began:.0f} s",
                  flush=True)
        return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
