# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The scripts of rpma-trace over real connections; tests/programs/trace.py compares them with the library."""

import os
import re
import shutil
import signal
import subprocess

from harness import lab
from harness.case import PORT, case, connect, disconnect, listening
from harness.side import ALWAYS, expect, wait_until

from .data import send_until_full

PROGRAM = os.path.join(lab.BUILD_DIR, "programs", "trace", "rpma-trace")
LIBRARY = os.path.join(lab.BUILD_DIR, "src", "librpma.so.0")
# Seconds: on an emulated machine bpftrace needs long to compile a script.
SLOW = 600
BREAKPOINT = b"\xcc"
# The first and the last function of the script: once both are traced, all functions between them
# are.
TRACED = ("rpma_write", "rpma_flush")


def is_traced(side, function):
    """True if the process has a breakpoint at the beginning of the function."""
    offset = int(re.search(rf"^(\w+) T {function}@", lab.run("nm", "--dynamic", LIBRARY), re.M)[1], 16)
    with open(f"/proc/{side.process.pid}/maps", encoding="ascii") as maps:
        start = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith("/src/librpma.so.0"))
    with open(f"/proc/{side.process.pid}/mem", "rb") as memory:
        memory.seek(start + offset)
        return memory.read(1) == BREAKPOINT


class Trace:
    """Runs rpma-trace with one script and collects its output."""

    def __init__(self, test, script, *options):
        self.path = os.path.join(test.directory(), script)
        with open(self.path, "wb") as file:
            self.process = subprocess.Popen([PROGRAM, *options, script], stdout=file, stderr=subprocess.STDOUT)
        test.undo.callback(lambda: test.transcript.append(self.text()))
        test.undo.callback(self.process.wait)
        test.undo.callback(self.process.kill)

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def shows(self, *words):
        expect(self.process.poll(), None, "rpma-trace runs: " + self.text())
        return all(word in self.text() for word in words)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        expect(self.process.wait(), 0, "exit status of rpma-trace")
        return self.text()


def use(server, client):
    """Connects, writes, fills the send queue, and disconnects; returns the QP of the client."""
    connect(server, client, server_cfg=0, client_cfg=0)
    client("apply-pcfg", desc=server("pcfg", direct=1)["desc"])
    client("write", mr=0, rmr=0, len=100, flags=ALWAYS)
    qp = client.completion(opcode="WRITE").qp
    posted = send_until_full(client, mr=0, len=8)
    server("recv", mr=0, len=8, count=posted)
    client.completions(posted)
    server.completions(posted)
    disconnect(client, server)
    for side in (client, server):
        side("conn-delete", conn=0)
    return qp


@case("tracing", "the scripts of rpma-trace show failures, connections, flush methods and latencies",
      needs=(lab.WAITING_MESSAGES,), limit=120)
def scripts(test):
    if not lab.IS_VIRTUAL and not shutil.which("bpftrace"):
        raise lab.Skipped("bpftrace is not installed: apt install bpftrace")
    server, client = listening(test)
    for side in (server, client):
        side("cfg", cq=1000, sq=4, rq=500)
    pid = client.process.pid
    latency = Trace(test, "latency", "--library", LIBRARY, "--pid", str(pid))
    wait_until(lambda: latency.shows("tracing") and all(is_traced(client, function) for function in TRACED),
               "the functions are traced", SLOW)
    qp = use(server, client)
    found = latency.end()
    expect(set(re.findall(r"@microseconds\[(\d+), (\d+)\]", found)), {(str(pid), str(qp))}, "connections with latencies")

    failures, connections, methods = (Trace(test, script, "--library", LIBRARY)
                                      for script in ("failures", "connections", "flush-methods"))
    wait_until(lambda: use(server, client) and failures.shows("ibv_post_send(") and
               connections.shows("request of a client", "deleted after") and methods.shows("connection"),
               "each script shows a connection", SLOW)
    use(server, client)  # a whole connection, because the scripts may have missed the beginning of the previous ones
    found = failures.end()
    for wanted in (rf"\d\d:\d\d:\d\d {pid} rpma_send RPMA_E_PROVIDER errno 12\n +ibv_post_send\(opcode=IBV_WR_SEND",
                   r"@failures\[rpma_send, RPMA_E_PROVIDER, 12\]: \d+\n",
                   r"@refused_posts_by_opcode_and_result\[rpma_send, 2, 12\]: \d+\n"):
        expect(bool(re.search(wanted, found)), True, wanted)
    found = connections.end()
    for wanted in (rf"{pid} connection (0x\w+), QP \d+, connects to {re.escape(server.address)} port {PORT}\n"
                   rf"(?:.*\n)*?.* {pid} connection \1, QP \d+, established \(event 9 of librdmacm, status 0\)\n"
                   rf"(?:.*\n)*?.* {pid} connection \1, this side disconnects\n"
                   rf"(?:.*\n)*?.* {pid} connection \1, QP \d+, closed \(event 10 of librdmacm, status 0\)\n"
                   rf"(?:.*\n)*?.* {pid} connection \1, deleted after \d+ ms\n",
                   rf"{server.process.pid} connection 0x\w+, QP \d+, accepts {re.escape(client.address)} port \d+\n",
                   r"@events\[closed, 0\]: \d+\n", r"@events\[established, 0\]: \d+\n", r"@requests: \d+\n"):
        expect(bool(re.search(wanted, found)), True, wanted)
    found = methods.end()
    mode = "native" if test.is_native else "emulated"
    # before and after apply-pcfg, which adds no other capability
    for types in ("visibility", "persistence and visibility"):
        wanted = rf"@flush_methods\[{mode}, {types}, unknown\]: \d+\n"
        expect(bool(re.search(wanted, found)), True, wanted)
