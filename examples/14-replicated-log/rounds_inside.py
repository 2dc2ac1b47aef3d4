#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What rounds runs in the lab: rounds_inside.py SAID self-test | play SEED CUT FIRST KIND…"""

import contextlib
import os
import random
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from memory import LOG_BEGIN, LOG_SIZE, SERVERS, SPOILT, Memory  # noqa: E402

PROGRAMS = os.path.join(os.environ["LIBRPMA_BUILD_DIR"], "examples", "14-replicated-log-")
DEVICE = os.environ["LAB_DEVDAX"]
CLIENT = "host4"
PORT = "7471"
LIMIT = 120  # seconds without a record; as long as there are some, a busy machine may take its time
BURST = 30  # lines, then a pause: the log is not to be full too soon


class Failed(Exception):
    """The log did not do what it should."""


def tell(line):
    """To rounds; in one piece, because there are several threads."""
    os.write(1, line.encode())


def address(number):
    return os.environ[f"LAB_ADDR_host{number}"]


def tells_of(number, words, line):
    return f"server {address(number)} {words}" in line


def plug(number, state):
    """The cable of a host, at the bridge: the host itself does not notice."""
    subprocess.run(["ip", "link", "set", f"port{number}", state], check=True)


class Cluster:
    """The servers, the client, and all that the client has said, before this boot too."""

    def __init__(self, said):
        with open(said, encoding="utf-8") as file:
            self.said = file.read().splitlines()
        self.committed = sum(line.startswith("committed") for line in self.said)
        self.dice = random.Random()
        self.servers = {}
        self.client = None
        self.changed = threading.Condition()

    def start_server(self, number):
        server = subprocess.Popen(
            ["on", f"host{number}", PROGRAMS + "server", address(number), PORT, str(number),
             DEVICE], stdout=subprocess.PIPE, text=True)
        while "listening" not in (line := server.stdout.readline()):
            if not line:
                raise Failed(f"server {number} does not start")
        self.servers[number] = server

    def kill_server(self, number):
        self.servers[number].kill()
        self.servers.pop(number).wait()

    def start_client(self):
        servers = [word for number in SERVERS for word in (address(number), PORT)]
        self.client = subprocess.Popen(["on", CLIENT, PROGRAMS + "client", *servers], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for work in (self.feed, self.listen):
            threading.Thread(target=work, args=(self.client,), daemon=True).start()

    def feed(self, client):
        """Lines of all lengths; more short ones than long ones."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            while True:
                sizes = (min(4000, int(random.expovariate(1 / 120))) for _ in range(BURST))
                client.stdin.write("".join(
                    random.choice("abcdefghij") * size + "\n" for size in sizes))
                client.stdin.flush()
                time.sleep(0.2)
        with contextlib.suppress(BrokenPipeError):
            client.stdin.close()

    def listen(self, client):
        for line in client.stdout:
            tell(line)
            with self.changed:
                self.said.append(line.strip())
                self.committed += line.startswith("committed")
                self.changed.notify_all()
        client.wait()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, what, condition):
        with self.changed:
            committed, until = self.committed, time.monotonic() + LIMIT
            while not condition() and self.client.poll() is None:
                if self.committed > committed:
                    committed, until = self.committed, time.monotonic() + LIMIT
                if not self.changed.wait(max(0, until - time.monotonic())):
                    raise Failed(f"no record for {LIMIT} s, still waiting for: {what}")
            if not condition():
                raise Failed(f"the client ended with status {self.client.wait()}")

    def wait_for_records(self, count):
        wanted = self.committed + count
        self.wait_for(f"{count} more records", lambda: self.committed >= wanted)

    def wait_until_said(self, since, number, words):
        self.wait_for(f"server {number} {words}", lambda: any(
            tells_of(number, words, line) for line in self.said[since:]))

    def verify(self, said=None):
        """What the reader finds wrong, or nothing."""
        logs = [word for number in SERVERS for word in (DEVICE, str(number))]
        done = subprocess.run([PROGRAMS + "reader", *logs], capture_output=True, text=True,
                              input="\n".join(list(self.said) if said is None else said) + "\n")
        return "" if done.returncode == 0 else done.stderr.strip() or f"{done.returncode}"

    def begin(self):
        for number in SERVERS:
            self.start_server(number)
        self.start_client()

    def end(self):
        """Everything ends by itself and finds everything right."""
        self.client.stdin.close()
        self.wait_for("the client's end", lambda: self.client.poll() == 0)
        for number, server in self.servers.items():
            server.terminate()
            if server.wait(LIMIT) != 0:
                raise Failed(f"server {number} ended with status {server.returncode}")

    def abandon(self):
        for process in [self.client, *self.servers.values()]:
            if process and process.poll() is None:
                process.kill()


# ---- what happens in a round ------------------------------------------------------------------

def server(cluster, victim):
    since = len(cluster.said)
    cluster.kill_server(victim)
    cluster.wait_until_said(since, victim, "is lost")
    cluster.wait_for_records(20)
    cluster.start_server(victim)
    cluster.wait_until_said(since, victim, "has all")


def majority(cluster, survivor):
    """The client waits until enough servers are back, and commits nothing before that."""
    since = len(cluster.said)
    victims = [number for number in SERVERS if number != survivor]
    for number in victims:
        cluster.kill_server(number)
    for number in victims:
        cluster.wait_until_said(since, number, "is lost")
    for number in victims:
        cluster.start_server(number)
    for number in victims:
        cluster.wait_until_said(since, number, "has all")
    away = set()
    for line in cluster.said[since:]:
        for number in victims:
            if tells_of(number, "is lost", line):
                away.add(number)
            elif tells_of(number, "has all", line):
                away.discard(number)
        if line.startswith("committed") and len(away) == len(victims):
            raise Failed(f"without a majority: {line}")


def cable(cluster, victim):
    since = len(cluster.said)
    plug(victim, "down")
    cluster.wait_until_said(since, victim, "is lost")
    cluster.wait_for_records(20)
    plug(victim, "up")
    cluster.wait_until_said(since, victim, "has all")


def client(cluster, victim):
    cluster.client.kill()
    cluster.client.wait()
    cluster.start_client()


def power(cluster, victim):
    """Now and then a server is behind, or is being brought up, when the power goes."""
    state = cluster.dice.choice(("all are up", "one is behind", "one returns"))
    if state != "all are up":
        cluster.kill_server(victim)
        cluster.wait_for_records(cluster.dice.randrange(20))
    if state == "one returns":
        cluster.start_server(victim)
    time.sleep(cluster.dice.random() / 5)
    subprocess.run(["lab-kill-power"], check=False)
    raise Failed("there is still power")


HAPPENINGS = {"server": (server, "server {} was killed"),
              "majority": (majority, "all servers but {} were killed"),
              "cable": (cable, "the cable of server {} was cut"),
              "client": (client, "the client was killed"),
              "power": (power, "the power was cut")}


def verdict(number, text, found, cluster):
    result = f"FAILED: {found}" if found else f"passed, {cluster.committed} records committed"
    tell(f"round {number}: {text}: {result}\n")
    return not found


def play(cluster, cut, first, kinds):
    if cut and not verdict(cut, HAPPENINGS["power"][1], cluster.verify(), cluster):
        return 1
    if cut:
        begin_anew_when_half_full(cluster)
    if not kinds:
        return 0
    cluster.begin()
    for number, kind in enumerate(kinds, first):
        happen, text = HAPPENINGS[kind]
        victim = cluster.dice.choice(SERVERS)
        try:
            cluster.wait_for_records(cluster.dice.randrange(5, 60))
            happen(cluster, victim)
            cluster.wait_for_records(10)
            found = cluster.verify()
        except Failed as failure:
            found = str(failure)
        if not verdict(number, text.format(victim), found, cluster):
            return 1
    cluster.end()
    return 0


# ---- the memory itself ------------------------------------------------------------------------

def begin_anew_when_half_full(cluster):
    memory = Memory(DEVICE)
    if max(memory.tail(number) for number in SERVERS) > LOG_SIZE // 2:
        for number in SERVERS:
            memory.bytes[(number - 1) * LOG_SIZE:(number - 1) * LOG_SIZE + LOG_BEGIN] = bytes(64)
        cluster.said.clear()
        cluster.committed = 0
        tell("anew\n")


def self_test(cluster):
    """The reader finds nothing wrong in a good log, and each damage by its name."""
    cluster.begin()
    cluster.wait_for_records(60)
    cluster.end()
    said = [line for line in cluster.said if line.startswith("committed")]
    memory = Memory(DEVICE)
    kept = bytes(memory.bytes)
    good = True
    for spoil, wanted in {None: "^$", **SPOILT}.items():
        found = cluster.verify(spoil(memory, said) if spoil else said)
        good = good and re.search(wanted, found) is not None
        name = spoil.__name__.replace("_", " ") if spoil else "a good log"
        tell(f"round of the self-test, {name}: {found or 'all right'}\n")
        memory.bytes[:] = kept
    return 0 if good else 1


def main():
    said, what, *rest = sys.argv[1:]
    cluster = Cluster(said)
    try:
        if what == "self-test":
            return self_test(cluster)
        seed, cut, first, *kinds = rest
        cluster.dice = random.Random(f"{seed} {first}")
        return play(cluster, int(cut), int(first), kinds)
    except Failed as failure:
        print(f"rounds_inside: {failure}", file=sys.stderr)
        return 1
    finally:
        cluster.abandon()


if __name__ == "__main__":
    sys.exit(main())
