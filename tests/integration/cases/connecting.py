# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Many connections in one thread that waits for none, and requests that nobody answers."""

import json
import os
import subprocess
import time

from harness import lab
from harness.case import PORT, case, listen
from harness.side import expect

PROGRAM = os.path.join(lab.BUILD_DIR, "tests", "integration", "connecting")
# A thousand connections, and ten thousand requests, need more than the default limit.
ROOMY = ("prlimit", "--nofile=65536")
# The first of the addresses that no host of the lab's network has.
NOBODY = ".".join(lab.address("host1").split(".")[:3]) if lab.HOSTS else ""


class Program:
    """connecting on a host: lines both ways."""

    def __init__(self, test, number, *arguments, program=PROGRAM, library=None):
        self.test, self.words = test, " ".join(arguments[:1])
        self.process = subprocess.Popen(
            lab.on(lab.host(number), *ROOMY, program, *arguments), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, **({"LD_LIBRARY_PATH": library} if library else {})})
        test.undo.callback(self.end_by_force)

    def end_by_force(self):
        self.process.kill()
        self.process.wait()

    def reads(self, first):
        """The next line, which begins with this word, as a table of its other words."""
        line = self.process.stdout.readline().strip()
        self.test.transcript.append(f"{self.words}: {line}\n")
        expect(line.split(" ")[0], first, f"{self.words}: line {line!r}")
        words = line.split(" ")[1 if len(line.split(" ")) % 2 else 0:]
        return dict(zip(words[::2], words[1::2]))

    def goes_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def ends(self):
        self.process.stdin.close()
        expect(self.process.wait(), 0, f"{self.words}: exit status")


def resources(number):
    """Objects of the device of a host."""
    device = f"{lab.PROVIDER}{number}" if lab.IS_VIRTUAL else next(iter(lab.resources()))
    return lab.resources()[device]


def flood(test, address, count):
    """So many requests that never finish, without queue pairs."""
    return Program(test, 2, "flood", address, PORT, str(count))


def wait_until(reached, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not so after {seconds} s: {what}")
        time.sleep(0.01)


def held(test, count, figures, **options):
    """A server takes requests and answers none, then deletes them. Returns the stages."""
    server = Program(test, 1, "hold", lab.address("host1"), PORT, "0", str(count), **options)
    stages = {}

    def note(stage):
        stages[stage] = {**server.reads(stage), **resources(1), "rss": resident(server)}
        print(f"# {figures}: {stage}: {json.dumps(stages[stage])}", flush=True)

    note("listening")
    requests = flood(test, lab.address("host1"), count)
    server.goes_on()
    server.reads("at-once")
    server.reads("taken")
    server.goes_on()
    note("held")
    stages["held"]["taken"] = server.reads("taken")["taken"]
    requests.end_by_force()  # otherwise some requests are repeated
    server.goes_on()
    deadline = time.monotonic() + 60
    note("deleted")
    while stages["deleted"]["cm_id"] != stages["listening"]["cm_id"]:
        if time.monotonic() > deadline:
            break
        server.goes_on()
        note("deleted")
    server.ends()
    return stages


def resident(program):
    """Pages of a program that are in memory, in KiB."""
    pid = program.process.pid
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4


WITHOUT_END = "{count} requests that never finish: no queue pair, and nothing stays"


@case("large", WITHOUT_END, [{"count": 10000}], limit=600, needs=(lab.BARE_REQUESTS,))
@case("scale", WITHOUT_END, [{"count": 1000}], limit=120, needs=(lab.BARE_REQUESTS,))
def requests_without_end(test, count):
    lab.need_virtual("a network for a flood of requests")
    stages = held(test, count, "in steps")
    before, most, after = (stages[name] for name in ("listening", "held", "deleted"))
    expect(int(most["taken"]), count, "requests taken")
    for kind in ("qp", "cq", "mr"):
        expect(most[kind], before[kind], f"{kind} while the requests are held")
    expect(int(most["descriptors"]), int(before["descriptors"]) + count, "descriptors")
    for kind in ("descriptors", "qp", "cm_id"):
        expect(after[kind], before[kind], f"{kind} behind the requests")
    # librdmacm keeps the table of its numbers, 8 bytes for each, and adds whole blocks to it (indexer.c, idm_grow()).
    # Together with a lost allocation per request, 32 bytes at least, this would be more.
    expect(int(after["heap"]) < int(before["heap"]) + 16 * count + 16384, True,
           f"{after['heap']} bytes behind the requests, {before['heap']} before")


def addresses(count, dead):
    """So many addresses, of which every tenth belongs to nobody."""
    nobody = (f"{NOBODY}.{number}" for number in range(250 - dead, 250))
    every = count // dead
    return [next(nobody) if i % every == every - 1 else lab.address("host1")
            for i in range(count)]


def connect_to(test, count, dead, **options):
    """One thread connects to all; returns its figures."""
    server = Program(test, 1, "server", lab.address("host1"), PORT, **options)
    server.reads("listening")
    clients = Program(test, 2, "clients", PORT, *addresses(count, dead), **options)
    figures = clients.reads("established")
    clients.goes_on()
    clients.reads("gone")
    clients.ends()
    wait_until(lambda: resources(1)["qp"] == test.before[f"{lab.PROVIDER}1"]["qp"],
               "the server has deleted its connections")
    server.ends()
    return figures


@case("scale", "many connections in one thread, a tenth of them to addresses that nobody has: none "
      "waits for another", limit=120)
def none_waits_for_another(test):
    lab.need_virtual("addresses that nobody has")
    count, dead = (40, 4) if lab.lacks(lab.MANY_CONNECTIONS) else (1000, 100)
    figures = connect_to(test, count, dead)
    print(f"# in steps: {count} with {dead}: {json.dumps(figures)}", flush=True)
    expect(int(figures["established"]), count - dead, "established")
    expect(int(figures["failed"]), dead, "failed")
    # One after another the dead ones would take the timeout of one second each.
    expect(float(figures["last-failed"]) < dead * 1000 / 2, True,
           f"{figures['last-failed']} ms until the last dead address was told")
    expect(float(figures["longest-call"]) < 1000, True,
           f"{figures['longest-call']} ms in one call")


@case("establish", "a refusal says why")
def refused_with_a_reason(test):
    server = Program(test, 1, "server", lab.address("host1"), PORT, "no-room")
    server.reads("listening")
    clients = Program(test, 2, "clients", PORT, lab.address("host1"))
    line = clients.process.stdout.readline().strip()
    expect(line, "rejected: no-room", "what the client reads")
    expect(clients.reads("established")["failed"], "1", "failed")
    clients.goes_on()
    clients.reads("gone")
    clients.ends()
    server.ends()


def received(kind):
    """How many requests, or refusals, have come in over the device of host 1."""
    path = f"/sys/class/infiniband/rxe1/ports/1/cm_rx_msgs/{kind}"
    with open(path, encoding="ascii") as file:
        return int(file.read())


@case("establish", "a backlog of {backlog} holds {backlog} of {count} requests; the others are "
      "repeated", [{"backlog": 3, "count": 8}], needs=(lab.BARE_REQUESTS,))
def backlog_is_kept(test, backlog, count):
    lab.need_virtual("a network without other requests")
    server = Program(test, 1, "hold", lab.address("host1"), PORT, str(backlog), str(count))
    server.reads("listening")
    before = received("req")
    requests = flood(test, lab.address("host1"), count)
    requests.reads("asked")
    wait_until(lambda: received("req") >= before + count, f"{count} requests came in")
    server.goes_on()
    server.reads("at-once")
    expect(int(server.reads("taken")["taken"]), backlog, "requests that waited")
    server.goes_on()
    server.reads("held")
    expect(int(server.reads("taken")["taken"]), count, "requests taken in the end")
    requests.process.kill()
    server.goes_on()
    server.reads("deleted")
    server.ends()


@case("establish", "a client gives up while the server decides: the queue pair cannot be made",
      needs=(lab.BARE_REQUESTS,))
def client_gives_up(test):
    lab.need_virtual("a network without other requests")
    server, client = test.peers()
    listen(server)
    before = received("rej")
    client("req-new", addr=server.address, port=PORT)
    client("connect")
    server("next-incoming")
    client("conn-delete")
    wait_until(lambda: received("rej") > before, "the server's device has heard it")
    server("req-resolve")
    server.refuses("RPMA_E_PROVIDER", "req-setup")
    server.refuses("RPMA_E_PROVIDER", "req-delete")  # there is nobody to be rejected
