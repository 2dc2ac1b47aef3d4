#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs in the lab: connecting without waiting, and going on after an outage, by three libraries.

usage: connecting_guest.py STAGE CONNECTIONS DEAD REQUESTS
       STAGE is the directory that bench/peers/run has filled

Prints a line of JSON for each scene of each library.
"""

import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

ARCHITECTURE = "x86_64-linux-gnu"
PORT = "7206"
OUTAGE = 2  # seconds
LIMIT = 60  # seconds, for a block behind an outage
BUILD = pathlib.Path(os.environ["LIBRPMA_BUILD_DIR"])
STAGE = pathlib.Path(sys.argv[1])
SERVER = os.environ["LAB_ADDR_host1"]
PROVIDER = os.environ["LAB_RDMA"]
ORIGINAL = pathlib.Path(f"/opt/librpma-1.3.0/usr/lib/{ARCHITECTURE}")


class Program:
    """A program on a host: lines both ways."""

    def __init__(self, host, library, program, *arguments):
        self.process = subprocess.Popen(
            ["on", f"host{host}", "env", f"LD_LIBRARY_PATH={library}", "prlimit", "--nofile=65536",
             program, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line.split())
        self.lines.put([])

    def reads(self, *firsts, seconds=None):
        """The next line that begins with one of these words, or nothing after so many seconds."""
        until = time.monotonic() + (seconds or 0)
        while True:
            try:
                words = self.lines.get(timeout=max(0.0, until - time.monotonic()) if seconds else None)
            except queue.Empty:
                return None
            if not words:
                sys.exit(f"beside: {self.process.args} ended before it said {' or '.join(firsts)}")
            if words[0] in firsts:
                return words

    def goes_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def pairs(words):
    return dict(zip(words[::2], words[1::2]))


def objects():
    """Objects of the server's device."""
    shown = subprocess.run(["rdma", "resource", "show", f"{PROVIDER}1"], stdout=subprocess.PIPE,
                           text=True, check=True).stdout
    return {kind: int(count) for kind, count in re.findall(r"\b(qp|cq|cm_id) (\d+)", shown)}


def addresses(count, dead):
    """So many addresses, of which some belong to nobody."""
    every = count // dead
    network = SERVER.rpartition(".")[0]
    return [f"{network}.{150 + i // every}" if i % every == every - 1 else SERVER for i in range(count)]


def connect(library, program, count, dead):
    with Program(1, library, program, "server", SERVER, PORT) as server:
        server.reads("listening")
        with Program(2, library, program, "clients", PORT, *addresses(count, dead)) as clients:
            return pairs(clients.reads("established"))


def hold(library, program, count):
    with Program(1, library, program, "hold", SERVER, PORT, 0, count) as server:
        def stage(name):
            return pairs(server.reads(name)[1:]) | objects()
        seen = {"listening": stage("listening")}
        with Program(2, BUILD / "src", STAGE / "connecting", "flood", SERVER, PORT, count):
            server.goes_on()
            if program.name != "fabric":
                server.reads("taken")  # what had come when it asked first
                server.goes_on()
            seen["held"] = stage("held")
        server.goes_on()
        seen["deleted"] = stage("deleted")
        for _ in range(20):  # requests that were under way
            time.sleep(0.1)
            server.goes_on()
            seen["deleted"] = stage("deleted")
        return seen


def cut(host, what, state):
    """The host's own link, the other end of its cable, or the network behind that end."""
    if what == "link":
        subprocess.run(["on", f"host{host}", "ip", "link", "set", "veth0", state], check=True)
    elif what == "cable":
        subprocess.run(["ip", "link", "set", f"port{host}", state], check=True)
    else:
        subprocess.run(["ip", "link", "set", f"port{host}", *({"down": ["nomaster"]}.get(
            state, ["master", "bridge0"]))], check=True)


def lost_its_messages(host):
    """soft-RoCE, when a message about a connection met the port that was down: README.md of example 15."""
    found = subprocess.run(["rdma", "resource", "show", "qp"], check=True, stdout=subprocess.PIPE, text=True)
    return bool(re.search(rf"rxe{host}/1 lqpn 1 .*state ERR", found.stdout))


def replace_device(host):
    for change in (["delete"], ["add"]):
        subprocess.run(["on", f"host{host}", "rdma", "link", *change, f"{PROVIDER}{host}",
                        *(["type", PROVIDER, "netdev", "veth0"] if change == ["add"] else [])], check=True)


def go_on(library, program, what):
    """Milliseconds from the network on until a block is read again, over the old connection or a new one."""
    with Program(1, library, program, "server", SERVER, PORT) as server:
        server.reads("listening")
        with Program(2, library, program, "reader", SERVER, PORT) as reader:
            if not reader.reads("block", seconds=LIMIT):
                return {"ms": "no block before the outage"}
            cut(2, what, "down")
            time.sleep(OUTAGE)
            began = time.monotonic() * 1000
            cut(2, what, "up")
            while words := reader.reads("block", "late", seconds=LIMIT):
                if float(words[2]) > began:
                    return {"ms": round(float(words[2]) - began),
                            "connection": "new" if words[0] == "block" else "old"}
            return {"ms": f"more than {LIMIT * 1000}", "lost its messages": lost_its_messages(2)}


def main():
    count, dead, requests = map(int, sys.argv[2:])
    ways = {"in steps": (BUILD / "src", STAGE / "connecting", None),
            "at once, librpma0 1.3.0": (ORIGINAL, STAGE / "connecting-at-once", STAGE / "rpma"),
            "libfabric": (f"/usr/lib/{ARCHITECTURE}", STAGE / "fabric", STAGE / "fabric")}
    for name, (library, program, reader) in ways.items():
        def told(scene, figures, name=name):
            print(json.dumps({"library": name, "scene": scene, "provider": PROVIDER} | figures), flush=True)
        if count:
            told("connect", connect(library, program, count, dead))
        if requests:
            told("hold", hold(library, program, requests))
        for what in ("link", "cable", "network"):
            if reader:
                told(f"{what} away", go_on(library, reader, what))
                if PROVIDER == "rxe" and lost_its_messages(2):
                    replace_device(2)


if __name__ == "__main__":
    main()
