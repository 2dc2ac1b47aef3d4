# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Faults, the end of programs and of runs."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from fixture import LIMIT, SERVER, WAIT, run_when, test

REPLACE = """
import mmap, os, sys
path, way, pages = sys.argv[1], sys.argv[2], [b"A" * 4096, b"B" * 4096, b"C" * 4096]
before = os.open(path, os.O_RDWR)
former = mmap.mmap(before, 4096)
former.flush()
if way == "unlink":
    os.unlink(path)
fd = os.open(path + ".new" if way not in ("unlink", "dd") else path, os.O_RDWR | os.O_CREAT)
if way == "dd":
    assert os.system(f"mv {path} {path}.old && dd if=/dev/zero of={path} bs=4096 count=3 conv=fsync status=none") == 0
    fd = os.open(path, os.O_RDWR)
os.truncate(fd, 12288)
if way in ("rename", "link", "mv"):
    os.write(fd, pages[0])
    os.fsync(fd)
if way == "rename":
    os.rename(path + ".new", path)
elif way == "link":
    os.unlink(path)
    os.link(path + ".new", path)
elif way == "mv":
    assert os.system(f"mv {path}.new {path}") == 0
new = mmap.mmap(fd, 12288, flags=0x80003)  # MAP_SHARED_VALIDATE | MAP_SYNC
if way in ("unlink", "dd"):
    new[:4096] = pages[0]
    new.flush(0, 4096)
new[4096:] = pages[1] + pages[2]
new.flush(4096, 4096)
former[:] = b"F" * 4096
former.flush()
"""


@test("a --pmem file that a program replaces is persistent memory", "/usr/bin/python3")
def replaced(fixture):
    for way in ("unlink", "rename", "link", "mv", "dd"):
        file = fixture.work / f"pmem-{way}"
        file.write_bytes(b"old " * 1024)
        file.chmod(0o666)
        done = fixture.sim("--pmem", file, "--fault", "after host1 power-off host1", "/usr/bin/python3",
                           "-c", REPLACE, file, way)
        fixture.expect(done, 0)
        content = [(letter, content.count(letter)) for content in [file.read_bytes()] for letter in (b"A", b"B", b"\0")]
        assert content == [(b"A", 4096), (b"B", 4096), (b"\0", 4096)], (way, content)


@test("an address beyond a cut link is not resolved", "rping")
def cut(fixture):
    done = fixture.sim("--until", "host2", "--fault", "0s cut host1", *f"rping -s -a {SERVER}".split(), "::",
                       *f"rping -c -a {SERVER}".split())
    fixture.expect(done, done.returncode, "RDMA_CM_EVENT_ADDR_ERROR, error -110")


# Faults, with programs that run until a fault ends them.
ENDLESS = f"rping -s -a {SERVER} :: rping -c -a {SERVER} -v"
TRANSPORT_RETRIES, PEER = "cq completion failed status 12", "--device mlx5"


def run_until(fixture, begun, faults, *commands, options=()):
    """
    The faults begin once the output matches begun: they wait for the end of the last host's
    command, which then ends.
    """
    last = f"host{commands.count('::') + 2}"
    given = [word for each in faults for word in ("--fault", f"after {last} {each}")]
    return run_when(fixture, begun, *options, *given, *commands, "::", "sh", "-c", WAIT)


@test("mckey", "mckey")
def mckey(fixture):
    done = run_when(fixture, "joined", *"--together stdbuf -oL mckey -m 239.1.1.1 -b 10.77.0.1 :: sh -c".split(),
                    f"{WAIT}; exec mckey -m 239.1.1.1 -s -b 10.77.0.2")
    fixture.expect(done, 0, "host1: mckey: joined dgid: ::ffff:239.1.1.1 mlid", "host1: data transfers complete",
                   "host1: return status 0", "host2: return status 0")


def fault(name, faults, commands, *expected, options="", status=0, begun=None):
    @test(name, commands.split()[0])
    def function(fixture):
        given = [word for each in faults for word in ("--fault", each)]
        done = run_until(fixture, begun, faults, *commands.split(), options=options.split()) if begun else \
            fixture.sim("--prefix", *options.split(), *given, *commands.split())
        fixture.expect(done, status, *expected)


# The side that has sent a message detects the cut.
fault("cut", ["200ms cut host1 host2"], ENDLESS, f"host[12]: {TRANSPORT_RETRIES}",
      options=f"{PEER} --until first", status=255)
fault("port-down", ["200ms port-down host2"], ENDLESS, f"host[12]: {TRANSPORT_RETRIES}",
      options=f"{PEER} --until first", status=255)


@test("ip link after port-down", "ip")
def link_down(fixture):
    done = fixture.sim("--fault", "0s port-down host1", "sh", "-c", "until ip link show sim0 | grep DOWN; do :; done")
    fixture.expect(done, 0, "2: sim0: <NO-CARRIER,BROADCAST,MULTICAST,UP> .*state DOWN")


fault("flap", ["50ms flap host1 host2 30ms"], f"rping -s -a {SERVER} -C 2000 :: rping -c -a {SERVER} -C 2000 -v",
      "host2: ping data: rdma-ping-1999", options=PEER)
fault("join", ["50ms cut host1", "150ms join host1"],
      f"rping -s -a {SERVER} -C 2000 :: rping -c -a {SERVER} -C 2000 -v", "host2: ping data: rdma-ping-1999",
      options=PEER)
# rping ends with the error number of a failed send, and with -1 if a receive is rejected.
PING, DISCONNECTED = "host2: ping data", (0, 255)
fault("refuse", ["refuse host2 3 ENOSPC"], ENDLESS, "host2: post (recv|send) error:? 28", status=(28, 255), begun=PING)
fault("doorbell", ["doorbell host2"], ENDLESS, "host2: post send error:? 5", status=(5, 255), begun=PING)
fault("remove", ["remove host2"], ENDLESS, "host2: cma detected device removal", options="--until host2", status=255,
      begun=PING)
fault("a killed server disconnects its client", ["kill host1"], ENDLESS, "host2: .*DISCONNECT EVENT", status=DISCONNECTED,
      begun=PING)
fault("addr-change", ["addr-change host2", "100ms kill host1"], ENDLESS,
      "host2: unhandled event: RDMA_CM_EVENT_ADDR_CHANGE, ignoring", status=DISCONNECTED, begun=PING)
fault("asynchronous events", ["port-down host1", "100ms port-up host1", "200ms event host1 gid-change", "300ms kill host1"],
      "ibv_asyncwatch", "host1:   event_type IBV_EVENT_PORT_ERR", "host1:   event_type IBV_EVENT_PORT_ACTIVE",
      "host1:   event_type IBV_EVENT_GID_CHANGE", options="--together", begun="async event FD")
fault("delay", ["0ms delay host1 host2 2ms"], f"ibv_rc_pingpong -n 100 -g 1 :: ibv_rc_pingpong -n 100 -g 1 {SERVER}",
      r"host2: 100 iters in \d+\.\d+ seconds = (?:[4-9]\d|\d{3,})\d\d\.")
# By call: the second post of the client, with whatever its time is.
fault("kill at a call", ["host2:ibv_post_send:2 kill for 100ms"], f"rping -s -P -a {SERVER} :: rping -c -a {SERVER} -C 2",
      options="-v --until host2", status=0)


@test("faults at calls", "rping")
def at_calls(fixture):
    done = fixture.sim("--until", "host2", "--fault", "host2:ibv_reg_mr:2 fail", *f"rping -s -P -a {SERVER}".split(), "::",
                       *f"rping -c -a {SERVER} -C 2".split())
    fixture.expect(done, 12, "^rping_setup_buffers failed: 12$")
    done = fixture.sim("--fault", "host1:ibv_reg_mr:2 kill", "true")
    fixture.expect(done, 0, r"^rdma-sim: --fault 'host1:ibv_reg_mr:2 kill' did not occur: host1 has called ibv_reg_mr\(\) "
                   "0 times$")
    # A removed device comes back.
    done = fixture.sim("--fault", "host1:ibv_open_device remove for 50ms", "sh", "-c",
                       "ibv_devinfo; until ibv_devinfo | grep hca_id; do sleep 0.01; done")
    fixture.expect(done, 0, "^hca_id:\trxe0$")


fault("power-on", ["200ms power-off host1", "300ms power-on host1", "600ms kill host1"],
      "sh -c echo${IFS}begun;exec${IFS}sleep${IFS}1000", "host1: begun\nhost1: begun")


@test("sysfs shows the state of the port and of the device")
def sysfs(fixture):
    state = "/sys/class/infiniband/rxe0/ports/1/state"
    done = fixture.sim("--fault", "0ms port-down host1", "sh", "-c", f"until grep DOWN {state}; do sleep 0.01; done")
    fixture.expect(done, 0, "1: DOWN")
    done = fixture.sim("--fault", "0ms port-down host1", "--fault", "100ms port-up host1", "sh", "-c",
                       f"sleep 0.2; until grep ACTIVE {state}; do sleep 0.01; done")
    fixture.expect(done, 0, "4: ACTIVE")
    done = fixture.sim("--fault", "0ms remove host1", "sh", "-c",
                       "while ls /sys/class/infiniband | grep rxe0; do sleep 0.01; done; ls /sys/class/infiniband_verbs")
    fixture.expect(done, 0, "abi_version\n")


@test("overrun", "cc")
def overrun(fixture):
    source, program = fixture.work / "queue.c", fixture.work / "queue"
    source.write_text("#include <infiniband/verbs.h>\n#include <stdio.h>\nint main(void) {\n"
                      "struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);\n"
                      "struct ibv_async_event event;\n"
                      "if (!ibv_create_cq(context, 1, NULL, NULL, 0)) return 1;\n"
                      "puts(\"has a queue\"); fflush(stdout);\n"
                      "if (ibv_get_async_event(context, &event)) return 2;\n"
                      "puts(ibv_event_type_str(event.event_type)); }\n", encoding="utf-8")
    fixture.run("cc", source, "-o", program, "-libverbs")
    fixture.expect(run_until(fixture, "has a queue", ["overrun host1"], program, options=["--together"]), 0,
                   "host1: CQ error")


@test("the others end by SIGTERM, or by SIGKILL")
def until(fixture):
    for action, expected in [("echo ended; exit 5", "host1: ended"), (":", "host1: begun")]:
        done = run_until(fixture, "host1: begun", [], "sh", "-c",
                         f"trap '{action}' TERM; echo begun; while :; do sleep 0.01; done",
                         options=["--until", "first", "--together"])
        fixture.expect(done, 0, expected)


@test("all COMMANDs of a host have ended only if none starts later")
def all_commands(fixture):
    fixture.expect(fixture.sim("--until", "host1", "@host1", "true", "::", "@host1", "sh", "-c", "sleep 0.2; echo done"),
                   0, "^done$")
    # The fault waits for the second COMMAND, which ends after that of host2.
    done = fixture.sim("--together", "--fault", "after host1 kill host2", "@host1", "true", "::", "@host2", "sh", "-c",
                       "sleep 0.2; echo done", "::", "@host1", "sleep", "0.4")
    fixture.expect(done, 0, "^done$")
    # A host whose COMMANDs start again has not ended.
    done = fixture.sim("--until", "host1", "--fault", "200ms power-off host1", "--fault", "300ms power-on host1",
                       "sh", "-c", "echo begun; sleep 0.4; echo done")
    fixture.expect(done, 0, "^begun\nbegun\ndone$")
    done = fixture.sim("--until", "first", "echo", "one", "::", "echo", "two")
    fixture.expect(done, 0, r"\Aone\n\Z")


@test("a fault after the end of a host occurs once")
def after_once(fixture):
    for faults, count in [(["200ms power-off host1", "after host1 100ms power-on host1"], 2),
                          (["after host1 power-on host1"], 2),
                          (["after host1 power-on host1", "after host1 power-on host1"], 2),
                          (["after host1 power-on host2", "after host2 100ms power-on host1"], 3)]:
        given = [word for each in faults for word in ("--fault", each)]
        commands = ["sh", "-c", "echo run; sleep 0.4", "::", "echo", "run"]
        done = fixture.sim("--together", *given, *commands[:None if count == 3 else 3])
        assert (done.returncode, done.stdout) == (0, count * "run\n"), (faults, done)
    # power-on starts only COMMANDs that do not run.
    done = fixture.sim("--fault", "100ms power-on host1", "sh", "-c", "echo run; sleep 0.3")
    fixture.expect(done, 0, r"\Arun\n\Z")


@test("a failure ends programs that wait for ever, unless --until all is given")
def failure_ends(fixture):
    waiting = ["sh", "-c", "trap 'echo ended; exit 7' TERM; sleep 6.5 & wait; echo waited"]
    runs = [fixture.start(*options, *waiting, "::", "sh", "-c", "exit 3") for options in ([], ["--until", "all"])]
    ends, waits = (run.communicate(timeout=LIMIT)[0] for run in runs)
    assert [run.returncode for run in runs] == [3, 3], (ends, waits)
    assert ends == ("rdma-sim: host2: sh ended with status 3, and no program has made a call for 5 s: "
                    "the others are ended; --until all waits for them\nended\n"), ends
    assert waits == "waited\n", waits


@test("--prefix keeps every byte, and reports an output that cannot be written", "ibv_devices")
def prefix(fixture):
    sim = f"{fixture.program} --prefix"
    for command, expected in [(r"printf 'a\0b\n'", b"host1: a\0b\n"), ("printf a", b"host1: a\n"),
                              (r"printf '\n\n'", b"host1: \nhost1: \n"), (":", b""),
                              ("head -c 3000000 /dev/zero", b"host1: " + bytes(3000000) + b"\n"),
                              ("yes | head -c 4000000", 2000000 * b"host1: y\n"),
                              (r"printf 'a\n' >&2", b"host1: a\n")]:
        done = subprocess.run([*sim.split(), "sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT, check=False)
        assert (done.returncode, done.stdout) == (0, expected), (command, done.returncode, done.stdout[:100])
    # Both outputs are one pipe.
    done = subprocess.run([*sim.split(), "sh", "-c", "yes a | head -c 200000 & yes b | head -c 200000 >&2; wait"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
    assert sorted(done.stdout.splitlines()) == 100000 * ["host1: a"] + 100000 * ["host1: b"]
    full, closed = "rdma-sim: standard output: No space left on device\n", "rdma-sim: standard output: Bad file descriptor\n"
    for command, status, expected in [
            (f"{sim} echo hi >/dev/full", 1, full), (f"{sim} yes >/dev/full", 1, full),
            (f"{sim} echo hi >&-", 1, closed), (f"{fixture.program} --help >&-", 1, closed),
            (f"{sim} sh -c 'echo hi >&2' 2>/dev/full", 1, ""), (f"{sim} true >&-", 0, ""),
            (f"set -o pipefail; {sim} yes | head -1 >/dev/null", 128 + signal.SIGPIPE, "")]:
        done = subprocess.run(["bash", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT, check=False)
        assert (done.returncode, done.stderr) == (status, expected), (command, done)
    # The output is not read: rdma-sim still serves the fabric and signals.
    served = fixture.work / "served"
    process = fixture.start("--prefix", "yes", "::", "sh", "-c", f"ibv_devices; sleep 0.5; ibv_devices; touch {served}")
    while not served.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    assert process.wait(timeout=LIMIT) == 128 + signal.SIGTERM
    process.stdout.close()


@test("a frozen program does not run")
def frozen(fixture):
    done = fixture.sim("--fault", "200ms freeze host1", "--fault", "900ms thaw host1", "--fault", "1200ms kill host1",
                       "sh", "-c", "while cat /proc/uptime; do sleep 0.02; done")
    times = [float(line.split()[0]) for line in done.stdout.splitlines()]
    gaps = [after - before for before, after in zip(times, times[1:])]
    assert max(gaps) > 0.5, gaps


@test("a crashing program affects no other", "rping")
def crash(fixture):
    crashing = "kill -SEGV $$"
    done = fixture.sim("--prefix", "--together", "sh", "-c", crashing, "::", "@host2",
                       *"rping -s -a 10.77.0.2 -C 3 -v".split(), "::", "@host3",
                       *"sh -c".split(), "sleep 0.5; exec rping -c -a 10.77.0.2 -C 3 -v")
    fixture.expect(done, 128 + signal.SIGSEGV, "host3: ping data: rdma-ping-2")


@test("no process and no file remains", "rping")
def left(fixture):
    """Includes programs that leave their process group, and each signal."""
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        process = fixture.start("--prefix", "sh", "-c", "setsid sleep 1000 & echo begun; exec sleep 1000", "::",
                                "rping", "-s")
        while "begun" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(timeout=LIMIT) == 128 + number
        process.stdout.close()
        fixture.check_left()


@test("programs join a running fabric", "rping")
def joins(fixture):
    name = f"test-{os.getpid()}"
    process = fixture.start("--name", name, "--hosts", "2", "sh", "-c", "echo begun; exec sleep 1000")
    while "begun" not in process.stdout.readline():
        assert process.poll() is None
    server = fixture.start("--join", name, *f"rping -s -a {SERVER} -C 3".split())
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        done = fixture.sim("--join", name, "--host", "host2", *f"rping -c -a {SERVER} -C 3 -v".split())
        if "ping data: rdma-ping-2" in done.stdout:
            break
    fixture.expect(done, 0, "ping data: rdma-ping-2")
    assert server.wait(timeout=LIMIT) == 0
    # A program outside the fabric ends alone.
    fixture.expect(fixture.sim("--join", name, "env", "-i", shutil.which("rping"), "-s"), 125, r"\Ardma-sim: .*LD_PRELOAD")
    fixture.expect(fixture.sim("--join", name, "--host", "host3", "true"), 2, "there is no host3, only 2 hosts")
    fixture.expect(fixture.sim("--name", name), 2, f"a fabric {name} runs already")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=LIMIT)
    for each in (process, server):
        each.stdout.close()


PLUGIN = """
#include <rdma/rdma_cma.h>
#include <stdio.h>
int listens(void) {
    struct rdma_cm_id *id;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = 4711};
    if (rdma_create_id(rdma_create_event_channel(), &id, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 1)) return 1;
    puts("listens");
    return getchar() != EOF;
}
"""
HOST = """
#include <dlfcn.h>
int main(int argc, char *argv[]) {
    void *const plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
    return plugin ? ((int (*)(void))dlsym(plugin, "listens"))() : 2;
}
"""


@test("a plugin loads librdmacm", "cc")
def plugin(fixture):
    for name, text, options in [("plugin", PLUGIN, ["-shared", "-fPIC", "-lrdmacm"]), ("host", HOST, ["-ldl"])]:
        (fixture.work / f"{name}.c").write_text(text, encoding="utf-8")
        fixture.run("cc", fixture.work / f"{name}.c", "-o", fixture.work / name, *options)
    fixture.expect(fixture.sim(fixture.work / "host", fixture.work / "plugin"), 0, "^listens$")


@test("programs with the address sanitizer", "cc")
def sanitizer(fixture):
    source, program = fixture.work / "devices.c", fixture.work / "devices"
    source.write_text("#include <infiniband/verbs.h>\n#include <stdio.h>\nint main(void) {\n"
                      "struct ibv_device **list = ibv_get_device_list(NULL);\n"
                      "puts(ibv_get_device_name(list[0])); ibv_free_device_list(list); }\n", encoding="utf-8")
    fixture.run("cc", "-fsanitize=address", source, "-o", program, "-libverbs")
    fixture.expect(fixture.sim(program), 0, "^rxe0$")
    fixture.expect(fixture.sim(program, environment={"ASAN_OPTIONS": "help=1"}), 0, "^rxe0$", "Available flags")
    fixture.expect(fixture.sim("explore", "--seeds", "1-2", "--faults", "none", "--check", "true", program), 0,
                   "nothing found")
