# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-perf and rpma-check on the hosts: their processes, and their expected ends."""

import contextlib
import os
import signal
import subprocess
import tempfile

from . import lab
from .side import Failed, expect, wait_until

PERF, CHECK = (os.path.join(lab.BUILD_DIR, "programs", name, "rpma-" + name) for name in ("perf", "check"))
TIMEOUT = 300  # seconds for a program to end by itself
SIZE = 16 << 20  # bytes of a server's memory


class Process:
    """A program on one of the hosts, with its output in files."""

    def __init__(self, test, number, *arguments, wrapper=(), environment=None, program=PERF):
        self.test, self.command = test, " ".join((os.path.basename(program), *arguments))
        self.files = [test.undo.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        self.process = subprocess.Popen(
            lab.on(lab.host(number), *wrapper, program, *arguments), stdout=self.files[0],
            stderr=self.files[1], stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})})
        test.undo.callback(self.kill)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.test.transcript.append(f"{self.command}: {self.process.returncode}\n{self.stdout()}"
                                    f"{self.stderr()}")

    def text(self, file):
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode()

    def stdout(self):
        return self.text(self.files[0])

    def stderr(self):
        return self.text(self.files[1])

    def wait_until(self, is_reached, what):
        def reached():
            if not is_reached() and self.process.poll() is not None:
                raise Failed(f"{self.command} ended: {self.stderr()}")
            return is_reached()

        wait_until(reached, f"{self.command}: {what}", TIMEOUT)

    def threads(self):
        with contextlib.suppress(FileNotFoundError):
            return len(os.listdir(f"/proc/{self.process.pid}/task"))
        return 0

    def wait_for_threads(self, count):
        self.wait_until(lambda: self.threads() == count, f"{count} threads")

    def end(self, status=0, line=None):
        """Expects the end of the program with this status. line: part of the one line that it prints."""
        try:
            found = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.command} does not end") from None
        lines = self.stderr().splitlines()
        expect(found, status, f"{self.command}: exit status ({lines})")
        expect(len(lines), 0 if line is None else 1, f"{self.command}: lines {lines}")
        if line is not None:
            expect(line in lines[0], True, f"{line!r} in {lines[0]!r}")
        return self.stdout()

    def signal(self, number):
        self.process.send_signal(number)


def serve(test, *arguments, **values):
    """Starts a server on host 1 and waits until it listens."""
    server = Process(test, 1, "--server", *arguments, lab.address(lab.host(1)), **values)
    server.wait_until(lambda: "listening on" in server.stdout(), "listening")
    return server


def measure(test, *arguments, **values):
    return Process(test, 2, *arguments, lab.address(lab.host(1)), **values)


def flushed_records(ledger):
    """The records of each stream that are flushed, according to the ledger of rpma-check --power-cut."""
    done = {}
    with contextlib.suppress(FileNotFoundError), open(ledger, encoding="ascii") as file:
        for line in list(file)[1:]:
            if line.endswith("\n"):
                done[line.split()[0]] = int(line.split()[1])
    return min(done.values(), default=0)


def start_power_cut(test, path, ledger, *options, port="7206", environment=None):
    """Starts rpma-check --power-cut on both hosts, and waits until the client has filled some places twice."""
    common = {"program": CHECK, "environment": environment}
    to = ("--port", port, lab.address(lab.host(1)))
    server = Process(test, 1, "--server", "--power-cut", path, *to, **common)
    server.wait_until(lambda: "is overwritten" in server.stdout(), "listening")
    client = Process(test, 2, "--power-cut", ledger, *options, *to, **common)
    client.wait_until(lambda: flushed_records(ledger) >= 512, "512 records of each stream")
    return server, client


def verify_records(test, ledger, path, status):
    return Process(test, 1, "--verify", ledger, "--memory", path, program=CHECK).end(status)


def expect_no_leak(test):
    test.wait_until_equal(lab.resources, test.before, "remaining kernel objects")


def stop(test, server):
    server.signal(signal.SIGTERM)
    server.end()
    expect_no_leak(test)


def stop_after_failure(test, server, reasons):
    """Expects one line of the server about the client, serves another client and ends the server."""
    server.wait_until(lambda: server.stderr().count("\n") == 1, "line about the client")
    expect(any(reason in server.stderr() for reason in reasons.split("|")), True,
           f"{reasons} in {server.stderr()}")
    measure(test, "-n", "20", "--verify").end()
    server.signal(signal.SIGTERM)
    expect(server.process.wait(TIMEOUT), 0, "exit status of the server")
    expect_no_leak(test)


def new_file(test, directory):
    file = test.undo.enter_context(tempfile.NamedTemporaryFile(dir=directory))
    return new_file_at(file.name)


def new_file_at(path, size=SIZE):
    """Creates a file of this size with all its blocks allocated. The end of the test does not remove it."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        os.fsync(file.fileno())
    return path
