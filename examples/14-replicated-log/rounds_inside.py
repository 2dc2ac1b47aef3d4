#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""What rounds runs in the lab: rounds_inside.py SAID play|go-on SEED"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from memory import SERVERS, SPOILT, Log  # noqa: E402

PROGRAMS = os.path.join(os.environ["LIBRPMA_BUILD_DIR"], "examples", "14-replicated-log-")
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


def device(number):
    """Behind CXL each host has its own; otherwise the logs are one after the other on the same."""
    return os.environ[f"LAB_DEVDAX_host{number}"]


def tells_of(number, words, line):
    return f"server {address(number)} {words}" in line


def plug(number, state):
    """The cable of a host, at the bridge: the host itself does not notice."""
    subprocess.run(["ip", "link", "set", f"port{number}", state], check=True)


class Client:
    """A client at work, and what it has said."""

    def __init__(self, cluster, *options):
        servers = [word for number in SERVERS for word in (address(number), PORT)]
        self.cluster = cluster
        self.said = []
        self.process = subprocess.Popen(
            ["on", CLIENT, PROGRAMS + "client", *options, *servers], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for work in (self.feed, self.listen):
            threading.Thread(target=work, daemon=True).start()

    def feed(self):
        """Lines of all lengths; more short ones than long ones."""
        stdin = self.process.stdin
        with contextlib.suppress(BrokenPipeError, ValueError):
            while True:
                sizes = (min(4000, int(random.expovariate(1 / 120))) for _ in range(BURST))
                stdin.write("".join(random.choice("abcdefghij") * size + "\n" for size in sizes))
                stdin.flush()
                time.sleep(0.2)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()

    def listen(self):
        for line in self.process.stdout:
            tell(line)
            with self.cluster.changed:
                self.said.append(line.strip())
                self.cluster.said.append(line.strip())
                self.cluster.committed += line.startswith("committed")
                self.cluster.changed.notify_all()
        self.process.wait()
        with self.cluster.changed:
            self.cluster.changed.notify_all()

    def ended(self):
        return self.process.poll() is not None

    def kill(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """The servers, the clients, and all that these have said, before this boot too."""

    def __init__(self, said, seed):
        with open(said, encoding="utf-8") as file:
            self.said = file.read().splitlines()
        self.committed = sum(line.startswith("committed") for line in self.said)
        self.dice = random.Random(seed)
        self.servers = {}
        self.client = None  # the one that has the log, or should
        self.older = []     # clients that should not
        self.changed = threading.Condition()

    def start_server(self, number, *options):
        server = subprocess.Popen(
            ["on", f"host{number}", PROGRAMS + "server", "--direct-write", *options,
             address(number), PORT, str(number), device(number)], stdout=subprocess.PIPE, text=True)
        while "listening" not in (line := server.stdout.readline()):
            if not line:
                raise Failed(f"server {number} does not start")
        self.servers[number] = server

    def kill_server(self, number):
        self.servers[number].kill()
        self.servers.pop(number).wait()

    def start_client(self, *options):
        if self.client:
            self.older.append(self.client)
        self.client = Client(self, *options)

    def wait_for(self, what, condition):
        with self.changed:
            committed, until = self.committed, time.monotonic() + LIMIT
            while not condition() and not self.client.ended():
                if self.committed > committed:
                    committed, until = self.committed, time.monotonic() + LIMIT
                if not self.changed.wait(max(0, until - time.monotonic())):
                    raise Failed(f"no record for {LIMIT} s, still waiting for: {what}")
            if not condition():
                raise Failed(f"the client ended with status {self.client.process.wait()}")

    def wait_for_records(self, count):
        """Of the client that has the log."""
        said = self.client.said
        wanted = count + sum(line.startswith("committed") for line in said)
        self.wait_for(f"{count} more records", lambda: sum(
            line.startswith("committed") for line in said) >= wanted)

    def wait_until_said(self, since, number, words):
        self.wait_for(f"server {number} {words}", lambda: any(
            tells_of(number, words, line) for line in self.client.said[since:]))

    def wait_for_older_clients(self):
        """They find out that the log is not theirs any more, and end."""
        for client in self.older:
            self.wait_for("the end of an older client", client.ended)
            if client.process.returncode == 0:
                raise Failed("a client that lost the log ended as if it had it")
        self.older.clear()

    def verify(self, said=None):
        """What the reader finds wrong, or nothing."""
        logs = [word for number in SERVERS for word in (device(number), str(number))]
        done = subprocess.run([PROGRAMS + "reader", *logs], capture_output=True, text=True,
                              input="\n".join(list(self.said) if said is None else said) + "\n")
        return "" if done.returncode == 0 else done.stderr.strip() or f"{done.returncode}"

    def begin(self, *options):
        for number in SERVERS:
            self.start_server(number, *options)
        self.start_client(*options)

    def end(self):
        """Everything ends by itself and finds everything right."""
        self.client.process.stdin.close()
        self.wait_for("the client's end", lambda: self.client.process.poll() == 0)
        for number, server in self.servers.items():
            server.terminate()
            if server.wait(LIMIT) != 0:
                raise Failed(f"server {number} ended with status {server.returncode}")

    def abandon(self):
        for process in [*(client.process for client in [self.client, *self.older] if client),
                        *self.servers.values()]:
            if process.poll() is None:
                process.kill()


# ---- what happens in a round ------------------------------------------------------------------

def server(cluster, victim):
    since = len(cluster.client.said)
    cluster.kill_server(victim)
    cluster.wait_until_said(since, victim, "is lost")
    cluster.wait_for_records(20)
    cluster.start_server(victim)
    cluster.wait_until_said(since, victim, "has all")


def majority(cluster, survivor):
    """The client waits until enough servers are back, and commits nothing before that."""
    since = len(cluster.client.said)
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
    for line in cluster.client.said[since:]:
        for number in victims:
            if tells_of(number, "is lost", line):
                away.add(number)
            elif tells_of(number, "has all", line):
                away.discard(number)
        if line.startswith("committed") and len(away) == len(victims):
            raise Failed(f"without a majority: {line}")


def cable(cluster, victim):
    since = len(cluster.client.said)
    plug(victim, "down")
    cluster.wait_until_said(since, victim, "is lost")
    cluster.wait_for_records(20)
    plug(victim, "up")
    cluster.wait_until_said(since, victim, "has all")


def client(cluster, victim):
    cluster.client.kill()
    cluster.client = None
    cluster.start_client()


def takeover(cluster, victim):
    """Two clients live; now and then a server returns just then."""
    restart = cluster.dice.random() < 0.5
    if restart:
        cluster.kill_server(victim)
    cluster.start_client()
    if restart:
        time.sleep(cluster.dice.random())
        cluster.start_server(victim)
    cluster.wait_for_records(20)
    cluster.wait_for_older_clients()


def sleeper(cluster, victim):
    """The older client stands still, and goes on when another one has the log."""
    older = cluster.client.process
    older.send_signal(signal.SIGSTOP)
    cluster.start_client()
    cluster.wait_for_records(cluster.dice.randrange(1, 20))
    older.send_signal(signal.SIGCONT)
    cluster.wait_for_records(20)
    cluster.wait_for_older_clients()


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


# In the order of the rounds: after the last one the next boot goes on.
HAPPENINGS = {"server {} was killed": server,
              "all servers but {} were killed": majority,
              "the cable of server {} was cut": cable,
              "the client was killed": client,
              "a second client took over": takeover,
              "a second client took over while the first stood still": sleeper,
              "the power was cut": power}


def judge(what, found, cluster):
    """Tells the verdict of a round; the first bad one ends all."""
    tell(f"round: {what}: {f'FAILED: {found}' if found else f'passed, {cluster.committed} records committed'}\n")
    if found:
        raise Failed(what)


def play(cluster):
    cluster.begin("--new")
    for text, happen in HAPPENINGS.items():
        victim = cluster.dice.choice(SERVERS)
        cluster.wait_for_records(cluster.dice.randrange(5, 60))
        happen(cluster, victim)
        cluster.wait_for_records(10)
        judge(text.format(victim), cluster.verify(), cluster)


def go_on(cluster):
    """The log that the power cut has left is right and goes on; then each damage is found."""
    judge(list(HAPPENINGS)[-1], cluster.verify(), cluster)
    cluster.begin()
    cluster.wait_for_records(10)
    cluster.end()
    judge("the log went on", cluster.verify(), cluster)
    said = [line for line in cluster.said if line.startswith("committed")]
    logs = {number: Log(device(number), number) for number in SERVERS}
    kept = {number: bytes(log.bytes) for number, log in logs.items()}
    for what, (spoil, wanted) in SPOILT.items():
        spoil(logs)
        notice(cluster, what, said, wanted)
        for number, log in logs.items():
            log.bytes[:] = kept[number]
    number, crc = said[-1].split()[1:]
    said[-1] = f"committed {number} {int(crc, 16) ^ 1:08x}"
    notice(cluster, "another record than was reported", said, "only 0 of 3")


def notice(cluster, what, said, wanted):
    found = cluster.verify(said)
    judge(f"{what}: the reader says '{found}'", "" if re.search(wanted, found) else f"'{wanted}' is missing", cluster)


def main():
    said, what, seed = sys.argv[1:]
    cluster = Cluster(said, seed + what)
    try:
        {"play": play, "go-on": go_on}[what](cluster)
    except Failed as failure:
        sys.exit(f"rounds_inside: {failure}")
    finally:
        cluster.abandon()


if __name__ == "__main__":
    main()
