# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The examples on the simulated fabric: unexpected clients, and inputs and outputs that are closed or full."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from harness import Skipped, expect, main, test

SIM, BUILD, STRANGER = sys.argv[1:4]
PROGRAMS = os.path.join(BUILD, "..", "programs")
PERF = f"{PROGRAMS}/perf/rpma-perf"
ADDRESS = "10.77.0.1"
PORTS = 7400  # the server of example N listens on port 7400 + N
# The clients of these examples try to connect until they are stopped.
ENDLESS = ("14", "15")
# The other programs of a number of connections serve one.
NUMBERED = {"server": ("06", "13", "14", "16"), "client": ("06", "13", "15", "16")}
LIMIT = 60


def examples():
    names = {name.removesuffix("-server") for name in os.listdir(BUILD) if name.endswith("-server")}
    return {name[:2]: name for name in sorted(names) if name[:2].isdigit()}


def command(side, number, port=None):
    """The program of an example, or rpma-perf; a client may connect to a server of another one."""
    if number == "perf":
        return [PERF, *(["--server"] if side == "server" else ["-n", "100"]), "-p", str(port), ADDRESS]
    return [f"{BUILD}/{examples()[number]}-{side}", ADDRESS, str(port or PORTS + int(number)),
            *["1"] * (number in NUMBERED[side])]


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def wait_until_listening(output):
    until = time.monotonic() + LIMIT
    while "listening" not in read(output):
        if time.monotonic() > until:
            raise TimeoutError(f"a server does not listen: {read(output)}")
        time.sleep(0.05)


def wait_for_end(directory, server):
    until = time.monotonic() + LIMIT
    while not read(f"{directory}/{server}.status") and time.monotonic() < until:
        time.sleep(0.05)


def run_client(words, limit=LIMIT):
    """Runs a client to its end; one that does not end by itself is killed, as by a crash."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=limit,
                              check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as expired:
        return "killed", (expired.stdout or b"").decode() + (expired.stderr or b"").decode()


def visit(directory, server):
    """Each client of another example, then the right one."""
    wait_until_listening(f"{directory}/{server}")
    return server, {client: run_client(command("client", client, PORTS + int(server)),
                                       1 if client in ENDLESS and client != server else LIMIT)
                    for client in sorted(examples(), key=lambda client: (client == server, client))}


def run_closed(directory, name):
    """The client of a pair of closed_descriptors()."""
    number, variant = name.split(".")
    server, client = PAIRS[int(variant)]
    if server not in LOST_OUTPUTS:
        wait_until_listening(f"{directory}/{name}")
    words = ["sh", "-c", f"exec {' '.join(command('client', number, port_of(name)))} {client}"]
    until = time.monotonic() + LIMIT
    status, text = run_client(words)
    while server in LOST_OUTPUTS and status != 0 and time.monotonic() < until:  # it may not listen yet
        status, text = run_client(words)
    return name, [status, text]


def untrusted_client(what, server, number=None):
    """A client with the private data of an example, by default of the server's."""
    number = number or (1 if server == "perf" else int(server[:2]))
    return [STRANGER, ADDRESS, str(port_of_hostile(server)), str(number), what]


def begin_silent(server):
    """A client that does nothing after it is connected; one of rpma-perf is stopped while it measures."""
    words = [PERF, "-D", "100", "--interval", "0.1", "-p", str(port_of_hostile(server)), ADDRESS]
    process = subprocess.Popen(words if server == "perf" else untrusted_client("silent", server), stdout=subprocess.PIPE, text=True)
    begun = "operation" if server == "perf" else "untrusted_client: silent"
    lines = iter(process.stdout.readline, "")
    expect(any(line.startswith(begun) for line in lines), True, f"a silent client of {server}")
    if server == "perf":
        os.kill(process.pid, signal.SIGSTOP)
    return process


def end_silent(process):
    process.kill()
    process.wait()
    process.stdout.close()


def run_hostile(directory, server):
    """Strangers, then clients of the server's example. Returns the results of the latter."""
    wait_until_listening(f"{directory}/{server}")
    if server.endswith(".silent"):  # has one client
        end_silent(begin_silent(server))
        wait_for_end(directory, server)
        return server, []
    flood = (0, "untrusted_client: flood\n")
    expect(run_client(untrusted_client("flood", server, 255)), flood, f"a flood of wrong requests for {server}")
    pid = int(read(f"{directory}/{server}.pid"))
    for _ in range(3):  # the server finds the request of a client that is gone
        os.kill(pid, signal.SIGSTOP)
        expect(run_client(untrusted_client("die", server))[0], -signal.SIGKILL, f"a killed client of {server}")
        os.kill(pid, signal.SIGCONT)
    expect(run_client(untrusted_client("vanish", server))[0], -signal.SIGKILL, f"a vanishing client of {server}")
    silent = begin_silent(server) if server in (*SHARED, *UNTIL_STOPPED) else None
    if silent:
        expect(run_client(untrusted_client("flood", server)), flood, f"a flood of requests for {server}")
    words = command("client", server, port_of_hostile(server))
    results = [run_client(words[:1] + ["--new"] * (server == "14") + words[1:])
               for _ in range(PLACES if server in SHARED else 1)]
    if silent:
        end_silent(silent)
    if server not in UNTIL_STOPPED:
        wait_for_end(directory, server)
    return server, results


def run_clients(kind, directory):
    """On the host of the clients."""
    run, jobs = {"visit": (visit, examples), "closed": (run_closed, closed_pairs),
                 "hostile": (run_hostile, hostile_servers)}[kind]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = dict(pool.map(lambda job: run(directory, job), jobs()))
    with open(f"{directory}/results", "w", encoding="utf-8") as file:
        json.dump(results, file)


def on_fabric(server, client):
    """Runs a command for the servers, and one for the clients, until the latter has ended."""
    return subprocess.run([SIM, "--until", "host2", *server, "::", *client], text=True, check=False,
                          timeout=3 * LIMIT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run_all(kind, directory, servers):
    """Runs servers, whose outputs go to files with their names, and the clients. Returns the results of the clients."""
    script = "".join(f"(({words}) >{directory}/{name} 2>&1; echo $? >{directory}/{name}.status) & "
                     for name, words in servers.items())
    done = on_fabric(["sh", "-c", script + "wait"], [sys.executable, __file__, SIM, BUILD, STRANGER, kind, directory])
    expect(done.returncode, 0, f"clients: {done.stdout}")
    return json.loads(read(f"{directory}/results"))


def own_lines(output):
    """The lines of a program without those of the library's log."""
    return [line for line in output.splitlines() if "*WARN*" not in line and "*ERROR*" not in line]


@test("each server refuses the clients of all other examples, and serves its own afterwards")
def unexpected_clients():
    with tempfile.TemporaryDirectory() as directory:
        servers = {number: f"exec {' '.join(command('server', number))}" for number in examples()}
        results = run_all("visit", directory, servers)
        for server, clients in results.items():
            for client, (status, text) in clients.items():
                what = f"client {client} of server {server}: {text}"
                if client == server and server != "14":  # a log in plain memory needs --new
                    expect(status, 0, what)
                elif client in ENDLESS:
                    expect(status in (1, "killed"), True, what)
                else:
                    expect((status, len(own_lines(text))), (1, 1), what)
            expect(read(f"{directory}/{server}.status"), "" if server in ENDLESS else "0\n",
                   f"server {server}: {read(f'{directory}/{server}')}")


# These serve a given number of clients, also while another one is silent.
SHARED = ("06", "13", "16")
PLACES = 2
UNTIL_STOPPED = (*ENDLESS, "perf")


def hostile_servers():
    return [*examples(), "perf", *(f"{number}.silent" for number in examples() if number not in (*SHARED, *ENDLESS))]


def port_of_hostile(server):
    return PORTS + 200 + hostile_servers().index(server)


@test("each server survives floods of requests, silent clients, and clients that are killed while they connect")
def hostile_clients():
    with tempfile.TemporaryDirectory() as directory:
        servers = {}
        for server in hostile_servers():
            words = command("server", server.split(".")[0], port_of_hostile(server))
            words[-1] = str(PLACES) if server in SHARED else words[-1]
            servers[server] = f"exec sh -c 'echo $$ >{directory}/{server}.pid; exec {' '.join(words)}'"
        for server, results in run_all("hostile", directory, servers).items():
            output = read(f"{directory}/{server}")
            for status, text in results:
                expect(status, 0, f"a client of {server}: {text}; {output}")
            # The server of a silent client ends with it. It may report the loss.
            statuses = ("",) if server in UNTIL_STOPPED else ("0\n", "1\n") if server.endswith(".silent") else ("0\n",)
            expect(read(f"{directory}/{server}.status") in statuses, True, f"the status of server {server}: {output}")


# What the server of a pair has closed, and what its client. The client waits for the line of the server, or tries
# again until it succeeds.
PAIRS = (("<&-", "<&- >&- 2>&-"), (">&-", "2>&-"), ("2>&-", ">&-"), ("<&- >&- 2>&-", "<&-"))
LOST_OUTPUTS = (">&-", "<&- >&- 2>&-")


def closed_pairs():
    return [f"{number}.{variant}" for number in examples() if number != "14" for variant in range(len(PAIRS))]


def port_of(name):
    return PORTS + 100 + closed_pairs().index(name)


@test("each program works with closed standard descriptors, and fails if its output was lost")
def closed_descriptors():
    with tempfile.TemporaryDirectory() as directory:
        servers = {}
        for name in closed_pairs():
            number, variant = name.split(".")
            servers[name] = f"exec {' '.join(command('server', number, port_of(name)))} {PAIRS[int(variant)][0]}"
        for name, (status, text) in run_all("closed", directory, servers).items():
            server, client = PAIRS[int(name.split(".")[1])]
            expect(status, int(client in LOST_OUTPUTS), f"client {client} of {name}: {text}")
            if not name.startswith(ENDLESS):
                expect(read(f"{directory}/{name}.status"), f"{int(server in LOST_OUTPUTS)}\n",
                       f"server {server} of {name}: {read(f'{directory}/{name}')}")


@test("rpma-perf and rpma-info work with closed standard descriptors, and fail if their output was lost")
def closed_descriptors_of_programs():
    info = f"{PROGRAMS}/info/rpma-info"
    for server, client in PAIRS:
        shell = f"exec {PERF} -n 100 {ADDRESS} {client}"
        retry = f"i=0; until sh -c '{shell}'; do [ $((i = i + 1)) -lt 20 ] || exit 7; sleep 0.1; done"
        done = on_fabric(["sh", "-c", f"exec {PERF} --server {ADDRESS} {server}"], ["sh", "-c", retry])
        expect(done.returncode, 7 if client in LOST_OUTPUTS else 0, f"{server} {client}: {done.stdout}")
        expect("keepalive" in done.stdout or "Protocol" in done.stdout, False, done.stdout)
    for options in ("", "--json"):
        done = subprocess.run([SIM, "sh", "-c", f"exec {info} {options} >&-"], text=True, stderr=subprocess.PIPE,
                              check=False)
        expect((done.returncode, done.stderr), (1, "rpma-info: cannot write the report\n"), "rpma-info")


def append(data, log, outputs=""):
    """Appends data to the log of example 14, on one server."""
    new = [] if os.path.exists(log) else ["--new"]
    server, client = command("server", "14"), command("client", "14")
    with open(f"{log}.input", "wb") as file:
        file.write(data)
    return subprocess.run([SIM, "--pmem", log, "--until", "host2", server[0], "--direct-write", *new, *server[1:], log,
                           "::", "sh", "-c", f"exec {' '.join([client[0], *new, *client[1:]])} <{log}.input {outputs}"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=LIMIT)


def committed(done):
    return sum(line.startswith(b"committed ") for line in done.stdout.splitlines())


@test("example 14 keeps each byte of a line, refuses a line that is too long, and checks input and output")
def lines_of_log():
    if "14" not in examples():
        raise Skipped("example 14 is not built, because libisal is missing")
    longest = 64 << 10
    table = [  # the input, its records, the status
        (b"first\0second\n", [b"first\0second"], 0),
        (b"x" * 5000 + b"\nlast line", [b"x" * 5000, b"last line"], 0),
        (b"y" * longest + b"\n", [b"y" * longest], 0),
        (b"kept\n" + b"z" * (longest + 1) + b"\n", [b"kept"], 1),
        (b"", [], 0),
        (b"\n\0\n", [b"", b"\0"], 0),
    ]
    for data, records, status in table:
        with tempfile.TemporaryDirectory() as directory:
            log = f"{directory}/log"
            done = append(data, log)
            what = f"{data[:20]!r}: {done.stderr!r}"
            expect((done.returncode, committed(done)), (status, len(records) + 1), what)
            with open(log, "rb") as file:
                content = file.read()
            for record in records:
                expect(record in content, True, what)
            expect(b"z" * 100 in content, False, what)
            reader = [f"{BUILD}/{examples()['14']}-reader", log, "1"]
            for text, wanted in ((done.stdout, 0), (b"committed 0 f5f92b1\n", 1), (b"committed 0 zz\n", 1)):
                read_log = subprocess.run(reader, input=text, capture_output=True, check=False)
                expect(read_log.returncode, wanted, f"the reader: {text[:40]!r}: {read_log.stderr!r}")
            for wrong in ("0", "1x", "-1", "2", "18446744073709551617"):
                expect(subprocess.run([*reader[:2], wrong], stdin=subprocess.DEVNULL, capture_output=True,
                                      check=False).returncode, 1, f"the reader: log {wrong}")
            expect(subprocess.run(["sh", "-c", f"exec {' '.join(reader)} <&-"], capture_output=True,
                                  check=False).returncode, 1, "the reader without an input")
    with tempfile.TemporaryDirectory() as directory:
        expect(append(b"line\n", f"{directory}/1", ">/dev/full").returncode, 1, "a full output")
        expect(append(b"", f"{directory}/2", "<&-").returncode, 1, "a closed input")


@test("a FILE that is not persistent memory keeps its size, and is not left behind")
def files_that_cannot_be_used():
    with tempfile.TemporaryDirectory() as directory:
        small = f"{directory}/small"
        with open(small, "wb") as file:
            file.write(b"content")
        for path in (small, f"{directory}/new"):
            done = on_fabric([*command("server", "05"), path], ["sleep", "0.5"])
            expect("server: listening" in done.stdout, False, done.stdout)
        expect(os.listdir(directory), ["small"], "files")
        with open(small, "rb") as file:
            expect(file.read(), b"content", "its content")


if __name__ == "__main__":
    if len(sys.argv) > 4:
        run_clients(*sys.argv[4:])
    else:
        sys.exit(main())
