# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""One side of a test: a process of the program `peer`, controlled through its standard input."""

import collections
import contextlib
import os
import select
import signal
import subprocess
import time

READ_SRC, READ_DST, WRITE_SRC, WRITE_DST = 1, 2, 4, 8
FLUSH_VISIBILITY, FLUSH_PERSISTENT, SEND, RECV = 16, 32, 64, 128
ALL_USAGES = 255
ATOMIC = 256
LOCAL_USAGES = ALL_USAGES & ~(FLUSH_VISIBILITY | FLUSH_PERSISTENT)
ON_ERROR, ALWAYS = 1, 3

OPCODES = {0: "SEND", 1: "WRITE", 2: "READ", 3: "COMP_SWAP", 4: "FETCH_ADD", 8: "FLUSH", 9: "ATOMIC_WRITE", 128: "RECV",
           129: "RECV_WITH_IMM"}
STATUSES = {0: "SUCCESS", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 4: "LOC_PROT_ERR",
            5: "WR_FLUSH_ERR", 9: "REM_INV_REQ_ERR", 10: "REM_ACCESS_ERR", 11: "REM_OP_ERR",
            12: "RETRY_EXC_ERR", 13: "RNR_RETRY_EXC_ERR"}

# status is SUCCESS or a failure's name; the opcode of a failed operation is None.
Completion = collections.namedtuple("Completion", "status opcode ctx len imm qp")


class Failed(Exception):
    """The library did not behave as the case expects."""


class Exited(Failed):
    """The process of a side ended without the command "quit"."""


def expect(actual, wanted, what):
    if actual != wanted:
        raise Failed(f"{what}: {actual!r} instead of {wanted!r}")


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def completion(text):
    status, opcode, ctx, length, imm, qp = text.split(":")
    return Completion(STATUSES.get(int(status), status),
                      None if opcode == "-" else OPCODES.get(int(opcode), opcode),
                      int(ctx), int(length), int(imm), int(qp))


class Forked:
    """The part of subprocess.Popen that a side uses, for a process that another side has forked."""

    def __init__(self, parent, errors):
        (read, write), (answers, answer) = os.pipe(), os.pipe()
        streams = {"input": read, "output": answer, "errors": errors.fileno()}
        try:
            parent("fork", **{key: f"/proc/{os.getpid()}/fd/{fd}" for key, fd in streams.items()})
        finally:
            self.stdin, self.stdout = os.fdopen(write, "wb"), os.fdopen(answers, "rb")
            os.close(read)
            os.close(answer)
        self.pid = self.returncode = None  # its first line has the PID

    def poll(self):
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout=60):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.005)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)


class Side:
    """
    side("verb", key=value, …) executes a command and returns its reply; a command that fails raises
    Failed. side.code(…) returns the error's name instead, or "ok". side.begin(…) only sends the
    command, and side.end() reads its reply.
    """

    timeout_s = 900  # seconds for a reply

    def __init__(self, name, transcript, process):
        self.name = name
        self.transcript = transcript
        self.running = None
        self.buffer = b""
        self.baseline = None
        self.checked = True
        self.device = None
        self.process = process

    @property
    def pid(self):
        return self.process.pid

    def record(self, text):
        self.transcript.append(f"{time.monotonic():10.3f} {self.name} {text}")

    def wait_for_line(self, timeout=None):
        timeout = self.timeout_s if timeout is None else timeout
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"{self.name}: no answer within {timeout} s")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise Exited(f"{self.name} ended with status {self.status()}" +
                             (f" in {self.running}" if self.running else ""))
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        self.record("< " + line.decode())
        return line.decode()

    def status(self):
        """The exit status. The process has closed its output, but may end some time later."""
        try:
            return self.process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} closed its output and does not end") from None

    def begin(self, verb, **values):
        line = " ".join([verb] + [f"{key}={value}" for key, value in values.items()])
        self.record("> " + line)
        self.running = line
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Exited(f"{self.name} ended before {line}") from None

    def read_reply(self, timeout=None):
        """(code, reply) of the command that was begun."""
        words = self.wait_for_line(timeout).split()
        if words[0] == "bad":
            raise Failed(f"{self.name}: {' '.join(words[1:])}")
        code = "ok" if words[0] == "ok" else words[1]
        pairs = words[1:] if code == "ok" else words[2:]
        return code, dict(pair.split("=", 1) for pair in pairs)

    def end(self, timeout=None):
        code, answer = self.read_reply(timeout)
        if code != "ok":
            raise Failed(f"{self.name}: {self.running}: {code} {answer or ''}")
        return answer

    def __call__(self, verb, **values):
        self.begin(verb, **values)
        return self.end()

    def execute(self, verb, **values):
        self.begin(verb, **values)
        return self.read_reply()

    def code(self, verb, **values):
        return self.execute(verb, **values)[0]

    def refuses(self, wanted, verb, errno=None, **values):
        code, answer = self.execute(verb, **values)
        expect((code, answer.get("errno") if errno else None), (wanted, errno), f"{self.name}: {verb}")

    def completions(self, count=1, **values):
        """Returns the next count completions; fewer are an error."""
        answer = self("wc", count=count, **values)
        return [completion(answer[f"wc{i}"]) for i in range(count)]

    def completion(self, status="SUCCESS", opcode=None, **values):
        """Returns the next completion, which must have this status and opcode."""
        found = self.completions(1, **values)[0]
        expect(found.status, status, f"{self.name}: completion status")
        if opcode is not None:
            expect(found.opcode, opcode, f"{self.name}: completion opcode")
        return found

    def event(self, wanted, within=60, **values):
        """Expects this event of the connection next, within this number of seconds."""
        answer = self("event", timeout=int(within * 1000), **values)
        expect(answer["event"], wanted, f"{self.name}: event")

    def blocked_in(self):
        """The descriptor of the read or write that blocks the process; None while it runs."""
        with open(f"/proc/{self.pid}/syscall", encoding="utf-8") as file:
            words = file.read().split()
        if words[0] not in ("0", "1"):  # the system calls read and write
            return None
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{int(words[1], 16)}")
        except FileNotFoundError:
            return None

    def wait_until_blocked(self, kind, timeout=30):
        """
        Waits until the command that was begun blocks in the kernel on a descriptor of this kind.
        """
        wait_until(lambda: kind in (self.blocked_in() or ""), f"{self.name}: {self.running} waits for {kind}", timeout)

    def descriptors(self):
        return sorted(os.readlink(f"/proc/{self.pid}/fd/{fd}")
                      for fd in os.listdir(f"/proc/{self.pid}/fd") if os.path.lexists(f"/proc/{self.pid}/fd/{fd}"))

    @property
    def is_alive(self):
        return self.process.poll() is None

    def kill(self):
        self.record("killed")
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def quit(self):
        self.begin("quit")
        self.wait_for_end()

    def wait_for_end(self, timeout=300):
        try:
            expect(self.process.wait(timeout), 0, f"{self.name}: exit status")
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end") from None

    def record_unread_output(self):
        """Adds unread output to the transcript: it may explain the failure of another side."""
        while select.select([self.process.stdout], [], [], 0)[0]:
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                break
            self.buffer += chunk
        for line in self.buffer.decode(errors="replace").splitlines():
            self.record(f"< {line} (unexpected output)")
        self.buffer = b""

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # unread commands are irrelevant
            self.process.stdin.close()
        self.process.stdout.close()
