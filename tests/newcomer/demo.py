#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Interrupts tools/demo and tools/demo --soft-roce at each of their stages, and
tools/setup while dpkg configures packages. Runs them on machines where
something is missing.

The exit status must show the reason of the end, and a second later no process,
mount or file of the program may remain. Prints TAP. Prepares the lab from
scratch in a separate directory: needs root, the network, 2 GB of disk and about
6 minutes.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.append(str(CHECKOUT / "tools" / "test.d"))
from arguments import Parser  # noqa: E402

# The last message of the demo before the signal. Each run reaches one stage more than the previous
# one, because a completed part of the lab remains.
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
ALL_SIGNALS = {2, 5, 7}  # stages with all signals: apt works, the machine boots, the program runs
SIGNALS = {signal.SIGINT: 130, signal.SIGHUP: 129, signal.SIGTERM: 143}
CONTAINER = ("setpriv", "--inh-caps", "-all", "--bounding-set",
             "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,"
             "+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap")
LIMIT = 1200
CLEANUP_S = 1  # second after the end; anything that exists later remains


def time_to_clean():
    """Seconds from the signal to the end of the program, which first removes 14,000 files of a root
    and 5,000 of a kernel: half a second of processor time, divided among the running programs."""
    return 2 * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


class Demo:
    def __init__(self, work, checkout=CHECKOUT, wrapper=(), options=("--soft-roce",), **environment):
        self.work, self.output = work, []
        self.mounts = mounts()
        shutil.rmtree(work / "tmp", ignore_errors=True)  # ignores the remains of another demo
        for name in ("cache", "tmp"):
            (work / name).mkdir(exist_ok=True)
            (work / name).chmod(0o1777)  # for another user
        self.shared = set(pathlib.Path("/dev/shm").iterdir())
        self.process = subprocess.Popen(
            [*wrapper, checkout / "tools/demo", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "LIBRPMA_LAB_CACHE": str(work / "cache"),
                 "TMPDIR": str(work / "tmp"), **environment})
        self.session = self.process.pid

    def read_until(self, pattern):
        """Returns True once the demo has printed this, False if it ended before."""
        for line in self.process.stdout:
            self.output.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return True
        return False

    def end(self):
        """Returns the exit status, after all processes have closed the output."""
        self.read_until("(?!)")
        return self.process.wait(timeout=LIMIT)

    def left(self):
        """Processes, mounts and files of the demo that still exist."""
        found = [f"process {name}" for name in self.processes()]
        found += [f"mount {line}" for line in mounts() - self.mounts if str(self.work) in line]  # not those of other labs
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
    """The files that processes have open, such as those of another lab: these are no remains."""
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


def interrupt(work, stage, number, checkout=CHECKOUT, options=("--soft-roce",)):
    """Returns the faults, an empty list without one."""
    demo = Demo(work, checkout, options=options)
    if not demo.read_until(stage):
        demo.end()
        return ["the line did not appear:", *demo.output]
    if number == signal.SIGTERM:  # a service manager sends it to one process
        os.kill(demo.process.pid, number)
    else:  # a terminal sends it to the group
        os.killpg(demo.process.pid, number)
    began = time.monotonic()
    status = demo.end()
    ended = time.monotonic()
    while demo.left() and time.monotonic() < ended + CLEANUP_S:
        time.sleep(0.05)
    wrong = [f"not removed: {name}" for name in demo.left()]
    output = f"status {status} after {ended - began:.1f} s, of {time_to_clean():.0f} s that it has"
    print(f"# {output}")
    if status != SIGNALS[number] or ended - began > time_to_clean():
        wrong.append(f"{output}, wanted {SIGNALS[number]}")
    return wrong + [line for line in demo.output if re.search("unbound|unexpected|warning", line)]


# A function that sends the signal, and the expected exit status of tools/setup.
INTERRUPTS = {
    "SIGINT to the process group": (lambda setup: os.killpg(setup.pid, signal.SIGINT), 130),
    "SIGTERM to the process group": (lambda setup: os.killpg(setup.pid, signal.SIGTERM), 143),
    "SIGINT at a terminal": (lambda setup: os.write(setup.terminal, b"\x03"), 130),
    "SIGHUP of a terminal": (lambda setup: os.close(setup.terminal), 129),
}


class Setup:
    """tools/setup in its own session with a terminal. It installs tiny packages by this machine's
    apt and dpkg, with archive, database and root below a directory. The configuration of each
    package blocks."""

    # The packages of a purpose whose list does not begin with that of another purpose.
    NAMES = re.search(r"\[style\]='(.*)'", (CHECKOUT / "tools/setup").read_text(encoding="utf-8"))[1].split()

    def __init__(self, work, archive=None):
        shutil.rmtree(work, ignore_errors=True)
        for name in ("archive", "root", "dpkg/info", "dpkg/updates", "state/lists/partial", "cache/archives/partial", "etc"):
            (work / name).mkdir(parents=True)
        (work / "dpkg/status").touch()
        (work / "etc/sources.list").write_text(f"deb [trusted=yes] {archive or f'file:{work}/archive'} ./\n", encoding="utf-8")
        (work / "apt.conf").write_text(f"""Dir "{work}/"; Dir::State "state"; Dir::Cache "cache"; Dir::Etc "etc";
            Dir::State::status "{work}/dpkg/status"; APT::Sandbox::User "root"; Dir::Log "{work}";
            DPkg::Options {{ "--admindir={work}/dpkg"; "--instdir={work}/root"; "--force-script-chrootless"; }};""",
            encoding="utf-8")
        (work / "archive/Packages").write_text("\n".join(self.package(work, name) for name in self.NAMES), encoding="utf-8")
        self.output, self.status = b"", None
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(CHECKOUT / "tools/setup", ["tools/setup", "style"], {
                **os.environ, "APT_CONFIG": f"{work}/apt.conf", "DPKG_ADMINDIR": f"{work}/dpkg", "TMPDIR": str(work)})

    @staticmethod
    def package(work, name):
        tree = work / name
        (tree / "DEBIAN").mkdir(parents=True)
        control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@invalid>\nDescription: tiny\n"
        (tree / "DEBIAN/control").write_text(control, encoding="utf-8")
        script = tree / "DEBIAN/postinst"
        script.write_text(f"#!/bin/sh\ntouch {work}/configuring\nwhile ! [ -e {work}/go ]; do sleep 0.05; done\n", encoding="utf-8")
        script.chmod(0o755)
        deb = work / "archive" / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", tree, deb], check=True, stdout=subprocess.DEVNULL)
        digest = hashlib.sha256(deb.read_bytes()).hexdigest()
        return f"{control}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"

    def has_ended(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def wait_for(self, condition):
        """Waits until the condition holds or tools/setup has ended; reads the terminal meanwhile."""
        deadline = time.monotonic() + LIMIT
        while not condition() and not self.has_ended() and time.monotonic() < deadline:
            try:
                if select.select([self.terminal], [], [], 0.05)[0]:
                    self.output += os.read(self.terminal, 4096)
            except OSError:  # closed, by either side
                time.sleep(0.05)


def interrupt_setup(work, send, status):
    setup = Setup(work)
    setup.wait_for((work / "configuring").exists)
    if setup.has_ended():
        return ["no package was configured", *setup.output.decode().splitlines()]
    send(setup)
    wrong = ["tools/setup ended while apt worked"] if setup.has_ended() else []
    (work / "go").touch()
    setup.wait_for(setup.has_ended)
    if setup.status != status:
        wrong.append(f"status {setup.status}, wanted {status}")
    database = ["--admindir", work / "dpkg"]
    states = subprocess.run(["dpkg-query", *database, "--show", "--showformat", "${Package} ${db:Status-Status}\n"],
                            capture_output=True, text=True, check=False).stdout.split("\n")
    audit = subprocess.run(["dpkg", *database, "--audit"], capture_output=True, text=True, check=False).stdout
    if audit or sorted(states) != ["", *(f"{name} installed" for name in sorted(setup.NAMES))]:
        wrong += ["the database of dpkg is damaged", *audit.splitlines(), *states]
    return wrong and wrong + setup.output.decode().splitlines()


def install_without_archive(work):
    """One line names the file that apt could not fetch, with apt's reason, which ends with a colon."""
    setup = Setup(work, "http://127.0.0.1:9")
    setup.wait_for(setup.has_ended)
    output = setup.output.decode().splitlines()
    wanted = r"setup: apt-get install failed: apt cannot fetch http://127[.]0[.]0[.]1:9/\S+: .*[^: ]: is there a network[?]"
    return [] if setup.status == 1 and len(output) == 2 and re.fullmatch(wanted, output[1]) else [f"status {setup.status}", *output]


def children_of(parent):
    """The names of the child processes."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = stat.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)
            if int(rest.split()[1]) == parent:
                yield name.split("(", 1)[1]


def terminate_parts():
    """SIGTERM to a tool alone ends its parts that still run, although another part has ended."""
    script = '. "$0"/tools/lab.d/common.sh; start_job true; start_job sh -c \'echo $$; exec sleep 1000\'; wait_for_jobs'
    with subprocess.Popen(["bash", "-euc", script, CHECKOUT], stdout=subprocess.PIPE, text=True, start_new_session=True) as tool:
        part = int(tool.stdout.readline())
        while set(children_of(tool.pid)) != {"sleep"}:  # the tool itself also sleeps
            time.sleep(0.05)
        tool.terminate()
        status = tool.wait()
    try:
        os.kill(part, signal.SIGKILL)
    except ProcessLookupError:
        return status != 143 and [f"status {status}, wanted 143"]
    return ["a part still runs", f"status {status}"]


def copy_checkout(work, broken_file=None):
    """Copies the checkout for all users, or one that does not compile."""
    copy = work / ("broken" if broken_file else "readable")
    if not copy.exists():
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns("build", ".git"))
    if broken_file:
        with open(copy / broken_file, "a", encoding="utf-8") as file:
            file.write("#error broken\n")
    return copy


# The defect of the machine; the folder of the cache; the checkout; the wrapper; the environment;
# the status; the last message.
CONDITIONS = [
    ("no root rights", ".", copy_checkout, ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
     {}, 1, "lab: the lab needs root: run it with sudo"),
    ("KVM where there is none", ".", None, ("unshare", "--mount", "sh", "-c",
     '[ ! -e /dev/kvm ] || mount --bind /etc/passwd /dev/kvm; exec "$@"', "-"),
     {"LIBRPMA_LAB_ACCEL": "kvm"}, 1,
     "lab: LIBRPMA_LAB_ACCEL requires KVM, but /dev/kvm is not writable: unset it"),
    ("a library that does not build", ".", lambda work: copy_checkout(work, "src/exports.cc"), (), {}, 1,
     "lab: librpma .* does not build"),
    ("no network", "fresh", None, ("unshare", "--net"), {}, 1,
     "lab: could not prepare .*apt cannot fetch .*: is there a network[?].*"),
    ("no right to mount, as in a plain container", ".", None, CONTAINER, {}, 0, "== Success .*"),
]


def run_condition(work, folder, checkout, wrapper, environment, status, last):
    (work / folder).mkdir(exist_ok=True)
    demo = Demo(work / folder, checkout(work) if checkout else CHECKOUT, wrapper, **environment)
    return check_end(demo, status, last)


def on_fabric(work):
    """Runs as an ordinary user in a fresh copy, twice."""
    copy = work / "fabric"
    shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns("build", ".git"))
    subprocess.run([CHECKOUT / "tools/setup", "demo"], check=True)
    wrong = interrupt(work, "== Building", signal.SIGINT, copy, ())
    for path in [copy, *copy.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    for limit in (None, 5):
        began = time.monotonic()
        wrong = wrong or check_end(Demo(work, copy, user, (), HOME=str(copy)), 0, "Over real soft-RoCE.* tools/demo --soft-roce")
        taken = time.monotonic() - began
        if limit and taken > limit * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0))):
            wrong = wrong or [f"{taken:.1f} s when repeated, of {limit} s"]
    return wrong


def with_full_disk(work, size, last):
    """Uses a cache in a file system that is too small from the start, or becomes full."""
    cache = work / "small" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", cache], check=True)
    try:
        demo = Demo(work / "small")
        if demo.read_until("preparing the Debian"):
            subprocess.run(["mount", "-o", "remount,size=200m", cache], check=True)
        return check_end(demo, 1, last)
    finally:
        subprocess.run(["umount", cache], check=True)  # no process uses it any more


def check_end(demo, status, last):
    ended = demo.end()
    wrong = [f"not removed: {name}" for name in demo.left()]
    if ended != status or not re.fullmatch(last, demo.output[-1]):
        wrong.append(f"status {ended}, wanted {status}, and as the last line {last}")
    if sum("could not prepare" in line for line in demo.output) > 1:
        wrong.append("two parts failed, and both reported it")
    return wrong and wrong + demo.output


def cases(work):
    """Yields name and function of each test; each one uses files of the earlier ones."""
    for name, (send, status) in INTERRUPTS.items():
        yield f"{name} while dpkg configures", lambda s=send, e=status: interrupt_setup(work / "setup", s, e)
    yield "no archive for apt", lambda: install_without_archive(work / "setup")
    yield "SIGTERM to a tool with two parts", terminate_parts
    yield "on the simulated fabric, as an ordinary user", lambda: on_fabric(work)
    qemu = subprocess.run(["dpkg-query", "--show", "qemu-system-x86"], capture_output=True)
    for place, stage in enumerate(STAGES):
        if stage == STAGES[0] and qemu.returncode == 0:
            print("# apt has nothing to install here, so nothing interrupts it")
            continue
        for number in SIGNALS if place in ALL_SIGNALS else list(SIGNALS)[:1]:
            yield f"{number.name} at '{stage}'", lambda s=stage, n=number: interrupt(work, s, n)
    for row in CONDITIONS:
        yield row[0], lambda r=row: run_condition(work, *r[1:])
    yield "no room", lambda: with_full_disk(
        work, 300, "lab: the lab needs .* MB of disk, and .* MB are free in .*")
    yield "a disk that fills up", lambda: with_full_disk(
        work, 2000, "lab: could not prepare .*: the disk of .* is full: make room .*")


def expression(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


def parse():
    parser = Parser("tests/newcomer/demo.py", __doc__)
    parser.add_argument("--keep", help="a directory for cache and logs, which is not removed")
    parser.add_argument("pattern", nargs="?", default="", type=expression, help="only the tests with matching names")
    return parser.parse_args()


def main():
    arguments = parse()
    # A background job of a shell ignores SIGINT, and one of nohup SIGHUP; children would inherit
    # this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
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
