#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Works for a long time and fails when memory, descriptors or RDMA objects grow; in the lab:

tools/lab run --hosts 2 --build plain --timeout 9000 -- tests/integration/soak.py --minutes 60

A server, a resident client and clients that come and go perform mixed operations and check their data; every third
client is killed. Each minute everything pauses, and a line says how much the processes hold. The build has no native
operations, because rdma_rxe repeats them wrongly after a lost packet (rpma_devices(7)).
"""

import argparse
import collections
import os
import random
import re
import signal
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

# pylint: disable=wrong-import-position
from harness import lab  # noqa: E402
from harness.case import PORT, Test  # noqa: E402
from harness.side import Died, Failed, expect  # noqa: E402
from cases.crowd import make_client, make_server  # noqa: E402

CLIENTS = 256  # connections that the server has room for; dead clients keep theirs for a while
CROWD = 6  # connections of one client, at most
VISITORS = 3  # clients that come, work and go at the same time
WORK = 1000  # milliseconds of one visit's work
PATIENCE = 180  # seconds for an answer to any command
# The heap is counted exactly; the size of a process grows in steps that the library does not cause.
HEAP_GROWTH, SIZE_GROWTH = 32 << 10, 1 << 20

Sample = collections.namedtuple("Sample", "size heap descriptors")


class Soak:
    """
    A server and a resident client live all the time; visitors come and go, and some are killed.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.failures = []
        self.test = Test(os.environ.get("LIBRPMA_BUILD_DIR", "").rpartition("-")[2])
        self.test.transcript = collections.deque(maxlen=400)
        self.server = self.process(1, "server")
        make_server(self.server, CLIENTS)
        self.resident = self.process(2, "resident client")
        make_client(self.resident)
        self.server.begin("serve")
        self.stay()
        self.settle()
        self.objects = lab.resources()

    def process(self, host, name):
        with self.lock:
            side = self.test.side(host, name)
        side.patience = PATIENCE
        return side

    def draw(self, low, high):
        with self.lock:
            return self.random.randint(low, high)

    def crowd(self, client):
        client("crowd", count=self.draw(1, CROWD), addr=self.server.address, port=PORT,
               seed=self.draw(0, 1 << 20))

    def work_and_leave(self, client):
        client("crowd-greet")
        done = client("crowd-work", ms=WORK)["done"]
        with self.lock:
            self.counts["operations"] += int(done)
        client("crowd-end")

    def visit(self):
        """One visitor's life; every third visitor is killed at a random moment."""
        client = self.process(2, "visitor")
        make_client(client)
        if self.draw(0, 2) == 0:
            killer = threading.Timer(self.draw(0, 2 * WORK) / 1000, client.process.send_signal, [signal.SIGKILL])
            killer.start()
            try:
                while True:
                    self.crowd(client)
                    self.work_and_leave(client)
            except Died:
                expect(client.status(), -signal.SIGKILL, "end of a visitor")
                with self.lock:
                    self.counts["killed"] += 1
            finally:
                killer.cancel()
        else:
            self.crowd(client)
            self.work_and_leave(client)
            client("release")
            client.quit()
        self.forget(client)

    def forget(self, client):
        client.close()
        with self.lock:
            place = self.test.sides.index(client)
            del self.test.sides[place]
            self.test.errors.pop(place)[1].close()

    def stay(self):
        self.crowd(self.resident)
        self.work_and_leave(self.resident)

    def repeat(self, action, deadline):
        """A thread's work; the first failure ends the run."""
        try:
            while time.monotonic() < deadline and not self.failures:
                action()
        except Exception:  # any exception is the verdict
            self.failures.append(traceback.format_exc())

    def shift(self, seconds):
        """Everyone works for so long and then finishes."""
        self.server.begin("serve")
        deadline = time.monotonic() + seconds
        actions = [self.visit] * VISITORS + [self.stay]
        threads = [threading.Thread(target=self.repeat, args=(action, deadline))
                   for action in actions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise Failed(self.failures[0])

    def settle(self):
        """
        Waits until the server has noticed the end of every client; returns what is in use then.
        """
        deadline = time.monotonic() + 120
        while True:
            self.server.begin("heap")
            served, heap = self.server.end(), self.server.end()["bytes"]
            if served["present"] == "0":
                break
            if time.monotonic() > deadline:
                raise Failed(f"{served['present']} connections stay after their clients' end")
            self.server.begin("serve")
            time.sleep(0.2)
        for name in ("accepted", "failed", "echoed"):
            self.counts[name] = int(served[name])
        samples = {"server": self.sample(self.server, heap),
                   "client": self.sample(self.resident, self.resident("heap")["bytes"])}
        for _, errors in self.test.errors:
            errors.seek(0)
            errors.truncate()
        return samples

    def scene(self):
        """The activity of all processes, for a failure."""
        doing = [f"{side.name} ({side.pid}): {side.running}; waits in {self.wait_of(side)}"
                 for side in self.test.sides if side.is_alive]
        return "\n".join([*self.test.transcript, lab.owners(), self.test.said()[-8000:], *doing])

    @staticmethod
    def wait_of(side):
        with open(f"/proc/{side.pid}/wchan", encoding="ascii") as file:
            return file.read()

    @staticmethod
    def sample(side, heap):
        with open(f"/proc/{side.pid}/status", encoding="ascii") as file:
            size = int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) << 10
        return Sample(size, int(heap), len(side.descriptors()))


def differences(first, now):
    """Names the values that grew between two samples of all processes."""
    for name, before in first.items():
        after = now[name]
        for what, limit in (("heap", HEAP_GROWTH), ("size", SIZE_GROWTH), ("descriptors", 0)):
            growth = getattr(after, what) - getattr(before, what)
            if growth > limit:
                yield f"{name}: {what} grew by {growth} (limit {limit})"


def soak(shifts, seconds, seed):
    """Returns a text for each fault; the first shift warms up."""
    run = Soak(seed)
    first = None
    try:
        for number in range(shifts + 1):
            run.shift(seconds)
            now = run.settle()
            first = first or now
            print(line(number, run.counts, now), flush=True)
            run.test.wait_until_equal(lab.resources, run.objects, "RDMA objects", seconds=30)
            found = list(differences(first, now))
            if found:
                return found
        run.test.finish()
    except Failed as failure:
        print(run.scene(), file=sys.stderr)
        return [str(failure)]
    finally:
        run.test.abandon()
    return []


def line(number, counts, samples):
    """Counts cover the whole time, sizes the present."""
    sizes = "; ".join(f"{name} {sample.size >> 10} KiB, heap {sample.heap}, "
                      f"{sample.descriptors} descriptors" for name, sample in samples.items())
    return (f"{number}: {counts['accepted']} connections, {counts['failed']} failed, "
            f"{counts['killed']} clients killed, {counts['operations']} operations, "
            f"{counts['echoed']} messages; {sizes}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=10, help="how long it works (default 10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all random choices")
    arguments = parser.parse_args()
    if len(lab.HOSTS) < 2:
        sys.exit("soak.py: this is not the lab: start it with tools/lab run --hosts 2 -- …")
    print(f"soak: {arguments.minutes} minutes after one to warm up, seed {arguments.seed}",
          flush=True)
    found = soak(arguments.minutes, 60, arguments.seed)
    print("soak: " + ("; ".join(found) if found else "passed: nothing grew"), flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
