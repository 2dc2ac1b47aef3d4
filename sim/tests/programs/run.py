#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Runs unchanged programs of Debian on the simulated fabric, as an ordinary user if one can
access the build directory. Prints TAP.

usage: run.py RDMA-SIM [CASE...]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import rdma_core
from fixture import LIMIT, OBJECTS, SERVER, WAIT, Missing, case, main, run_when, test

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "conformance"))
import compare  # noqa: E402

ROOT = HERE.parents[1]  # sim/

PERFTEST = "-F -n 1000 -x 1"


def perftest(program, options, figure, name=None):
    case(name or program, f"{program} {PERFTEST} {options} :: {program} {PERFTEST} {options} {SERVER}",
         f"host2: +#bytes.*{figure}", r"host2: +\d+ +1000 +[\d.]+ +[\d.]+")


# rping sends "rdma-ping-N: " and letters; each side prints the received text.
case("rping", f"rping -s -a {SERVER} -C 5 -v :: rping -c -a {SERVER} -C 5 -v",
     "host1: server ping data: rdma-ping-0: ABCDEF", "host1: server ping data: rdma-ping-4: EFGHIJ",
     "host2: ping data: rdma-ping-4: EFGHIJ")
case("rping on IPv6", "rping -s -a fd77::1 -C 2 -v :: rping -c -a fd77::1 -C 2 -v",
     "host2: ping data: rdma-ping-1: BCDEFG")
case("rping on iWARP", f"rping -s -a {SERVER} -C 5 -v :: rping -c -a {SERVER} -C 5 -v",
     "host2: ping data: rdma-ping-4: EFGHIJ", options="--device siw")
for method, moved in [("thread", "by threads of the programs"), ("direct", "directly")]:
    case(f"rping --memory {method}", f"rping -s -a {SERVER} -C 5 -v :: rping -c -a {SERVER} -C 5 -v",
         "host2: ping data: rdma-ping-4: EFGHIJ", f"^rdma-sim: .*data was moved {moved}$",
         options=f"--verbose --memory {method}")
PINGPONG = r"host2: 8192000 bytes in [\d.]+ seconds", r"host2: 1000 iters in [\d.]+ seconds"
case("ibv_rc_pingpong", f"ibv_rc_pingpong -g 1 :: ibv_rc_pingpong -g 1 {SERVER}", *PINGPONG)
case("ibv_rc_pingpong -e", f"ibv_rc_pingpong -e -g 1 :: ibv_rc_pingpong -e -g 1 {SERVER}", *PINGPONG)
case("ibv_rc_pingpong on InfiniBand", f"ibv_rc_pingpong :: ibv_rc_pingpong {SERVER}", *PINGPONG,
     options="--device mlx5-ib")
case("ibv_uc_pingpong", f"ibv_uc_pingpong -g 1 :: ibv_uc_pingpong -g 1 {SERVER}", *PINGPONG)
case("ibv_srq_pingpong", f"ibv_srq_pingpong -g 1 :: ibv_srq_pingpong -g 1 {SERVER}",
     r"host2: 8192000 bytes in [\d.]+ seconds")
# Limits of rxe: linux sw/rxe/rxe_param.h and the lab's device.
case("ibv_devinfo", "ibv_devinfo -v", r"hca_id:\trxe0", r"transport:\t+InfiniBand \(0\)",
     r"max_qp_wr:\t+1048576", r"max_sge:\t+32", r"max_cqe:\t+32767", r"state:\t+PORT_ACTIVE \(4\)",
     r"link_layer:\t+Ethernet", r"GID\[ *1\]:\t+::ffff:10\.77\.0\.1")
case("ibv_devinfo of InfiniBand", "ibv_devinfo", r"hca_id:\tmlx5_0", r"link_layer:\t+InfiniBand",
     options="--device mlx5-ib")
case("ibv_devinfo of iWARP", "ibv_devinfo", r"hca_id:\tsiw0", r"transport:\t+iWARP \(1\)",
     options="--device siw")
case("ibv_devices", "ibv_devices", r"host1: +rxe0\s+[0-9a-f]{16}")
case("rdma_server", f"rdma_server :: rdma_client -s {SERVER}", "host1: rdma_server: end 0",
     "host2: rdma_client: end 0")
case("ucmatose", f"ucmatose -C 10 -S 4096 :: ucmatose -C 10 -S 4096 -s {SERVER}",
     "host2: receiving data transfers", "host2: test complete", "host2: return status 0")
perftest("ib_write_bw", "", r"BW average\[MB/sec\]")
perftest("ib_write_bw", "-R", r"BW average\[MB/sec\]", "ib_write_bw with the connection manager")
perftest("ib_read_lat", "", r"t_typical\[usec\]")
perftest("ib_send_bw", "", r"BW average\[MB/sec\]")
perftest("ib_atomic_bw", "", r"BW average\[MB/sec\]")
JOB = "--ioengine=rdma --port=7777 --bs=4k --size=4m"
case("fio", f"fio --name=server {JOB} --rw=read :: "
     f"fio --name=client {JOB} --hostname={SERVER} --verb=write --rw=write --iodepth=16",
     r"host2: client: \(groupid=0, jobs=1\): err= 0", r"host2: .*WRITE: .*io=4096KiB \(4194kB\)")
case("qperf", f"qperf :: qperf {SERVER} -t 1 rc_bw", r"host2: rc_bw:",
     r"host2:     bw  =  [\d.]+ [KMG]B/sec", options="--device mlx5-ib --until host2")
case("fi_pingpong", f"fi_pingpong -p verbs -e msg :: fi_pingpong -p verbs -e msg {SERVER}",
     r"host2: 64 +10 +=10 ", r"host2: 1m +10 +=10 ")


@test("fi_info", "fi_info")
def fi_info(fixture):
    fixture.expect(fixture.sim("fi_info", "-p", "verbs", "-t", "FI_EP_MSG"), 0, "provider: verbs",
                   "domain: rxe0", "type: FI_EP_MSG")


@test("a thousand connections, forks and clients that die while they connect", "cc")
def connections(fixture):
    program = fixture.work / "connect"
    fixture.run("cc", HERE.parent / "cli" / "connect.c", "-o", program, "-lrdmacm", "-libverbs")
    for device in ["rxe", "siw"]:
        for server, client, status in [("serve 1000", f"open {SERVER} 1000", 0), ("fork 3", f"talk {SERVER} 3", 0),
                                       ("refuse", f"die {SERVER}", 128 + signal.SIGKILL)]:
            fixture.expect(fixture.sim("--device", device, program, *server.split(), "::", program, *client.split()),
                           status)
    fixture.expect(fixture.sim(program, "cancel"), 0)


case("the status is that of the first failure", "sh -c exit${IFS}3 :: sh -c exit${IFS}4",
     r"^rdma-sim: \d+\.\d{3} s: host1 starts sh \(process \d+\)$",
     r"^rdma-sim: \d+\.\d{3} s: host2: sh ended with status 4$", options="--verbose", status=3)
case("the environment of a program", "sh -c echo${IFS}$RDMA_SIM_HOST,$RDMA_SIM_ADDR,$RDMA_SIM_ADDR_host2 :: true",
     r"^host1: 1,10\.77\.0\.1,10\.77\.0\.2$")


# ---- faults and remains ----------------------------------------------------------------------


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


# ---- rdma of iproute2, and counters ----
# Creates five queue pairs and three regions, prints its number, and executes its argument.
def with_objects(fixture, *commands, options=()):
    """Returns the number of a process with the objects, and the parsed output of commands that it executes."""
    source, program = fixture.work / "objects.c", fixture.work / "objects"
    source.write_text(OBJECTS, encoding="utf-8")
    fixture.run("cc", source, "-o", program, "-libverbs")
    done = fixture.sim(*options, program, " && ".join(commands))
    fixture.expect(done, 0)
    pid, *replies = done.stdout.splitlines()
    return int(pid), [json.loads(reply) for reply in replies]


@test("rdma lists the objects of a program", "rdma", "cc")
def rdma_objects(fixture):
    pid, replies = with_objects(fixture, *(f"rdma -j -d resource show {kind}" for kind in ["qp", "mr", "pd", "cq", "ctx"]),
                                "rdma -j resource show")
    # ib_core has a PD, a CQ and a QP of its own on each device with management datagrams.
    pairs, regions, domains, queues, contexts = ([row for row in rows if row.get("pid") == pid] for rows in replies[:5])
    assert [(row["type"], row["state"], row["comm"]) for row in pairs] == [("RC", "RESET", "objects")] * 5, replies
    assert len({row["lqpn"] for row in pairs}) == 5, pairs
    assert [row["mrlen"] for row in regions] == [4096, 8192, 12288], regions
    assert len(domains) == len(queues) == len(contexts) == 1, replies
    assert {row["pdn"] for row in pairs + regions} == {domains[0]["pdn"]}, replies
    assert domains[0]["users"] == 5 + 3 and queues[0]["users"] == 2 * 5 and queues[0]["cqe"] >= 100, replies
    assert domains[0]["ctxn"] == queues[0]["ctxn"] == contexts[0]["ctxn"], replies
    summary = {name: replies[5][0][name] for name in ["pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"]}
    assert summary == {"pd": 2, "cq": 2, "qp": 6, "cm_id": 0, "mr": 3, "ctx": 1, "srq": 0}, summary
    _, replies = with_objects(fixture, "rdma -j resource show", options=["--device", "siw"])
    assert (replies[0][0]["pd"], replies[0][0]["qp"]) == (1, 5), replies


@test("rdma shows devices and ports", "rdma")
def rdma_devices(fixture):
    wait = "until rdma link | grep -q DOWN; do sleep 0.01; done; "
    done = fixture.sim("--fault", "0ms port-down host1", "sh", "-c", wait + "rdma link")
    fixture.expect(done, 0, "^link rxe0/1 state DOWN physical_state DISABLED netdev sim0 $")
    done = fixture.sim("--fault", "0ms remove host1", "sh", "-c",
                       "while rdma dev | grep -q rxe0; do sleep 0.01; done; rdma -j link; rdma -j resource")
    fixture.expect(done, 0, r"^\[\]$\n^\[\]$")
    done = fixture.sim("--device", "mlx5-ib", "sh", "-c", "rdma link; rdma dev; rdma system")
    fixture.expect(done, 0, "^link mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 17 sm_lid 1 lmc 0 state ACTIVE "
                   "physical_state LINK_UP $", "^0: mlx5_0: node_type ca fw 1.0 node_guid 0277:00ff:fe00:0100",
                   "^netns shared copy-on-fork on$")


@test("counters are those of the requests", "rdma", "rping", "ib_write_bw")
def counters(fixture):
    show = "; cd /sys/class/infiniband/*/ports/1/hw_counters && rdma -j statistic show && grep . * && stat -c %a%s *s"
    done = fixture.sim("--until", "all", "rping", "-s", "-C", "3", "::", "sh", "-c",
                       f"rping -c -a {SERVER} -C 3 >/dev/null" + show)
    # rping.c: in each round, a side sends two messages and receives two.
    fixture.expect(done, 0, "^rdma_sends:6$", "^rdma_recvs:6$", "^lifespan:10$", "^4444096$")
    line, = [line for line in done.stdout.splitlines() if line.startswith("[{")]
    statistics = json.loads(line)[0]
    assert (statistics["rdma_sends"], statistics["rdma_recvs"]) == (6, 6) and len(statistics) == 2 + 15, statistics
    # Six messages; six acknowledgements of messages, three of writes, three responses of reads; the connection.
    assert 6 + 12 + 2 <= statistics["sent_pkts"] <= 6 + 12 + 4, statistics
    done = fixture.sim("--device", "mlx5", "sh", "-c", f"ib_write_bw -R {PERFTEST} >/dev/null" + show + "; cat ../counters/port_rcv_packets",
                       "::", "sh", "-c", f"ib_write_bw -R {PERFTEST} {SERVER} >/dev/null")
    fixture.expect(done, 0, "^rx_write_requests:1000$", '"rx_write_requests":1000,')
    assert int(done.stdout.splitlines()[-1]) >= 1000 * 65536 / 1024, done.stdout


# A socket that a program fills with arbitrary bytes; its last request is valid.
REQUESTS = """
import random, socket, struct
random.seed(1)
one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 20)
one.setblocking(False)
def drain():
    try:
        while one.recv(1 << 16):
            pass
    except BlockingIOError:
        pass
for i in range(2000):
    size = random.randrange(64)
    kind = 5 << 10 | random.randrange(32)
    one.send(struct.pack("=IHHII", random.choice([16 + size, size, 0, 1 << 31]), kind, random.choice([1, 5, 0x301]), 1, 0)
             + random.randbytes(size))
    drain()
one.send(struct.pack("=IHHII", 16, 5 << 10 | 1, 0x301, 7, 0))
print(b"rxe0" in one.recv(1 << 16))
"""


@test("malformed netlink requests", "/usr/bin/python3")
def malformed_requests(fixture):
    fixture.expect(fixture.sim("/usr/bin/python3", "-c", REQUESTS), 0, "^True$")


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


EXPLORED = ("rping -s -C 2 :: rping -c -a 10.77.0.1 -C 2", "ucmatose :: ucmatose -s 10.77.0.1",
            *(f"{program} :: {program} 10.77.0.1" for program in (
                "ibv_rc_pingpong -g 1 -n 20", "ibv_rc_pingpong -e -g 1 -n 20",
                "ib_write_bw -F -n 20", "ib_write_lat -F -n 20")))


@test("explore runs programs with threads, sockets and loops in memory", "rping", "ibv_rc_pingpong", "ib_write_bw")
def explored(fixture):
    for programs in EXPLORED:
        fixture.expect(fixture.sim("explore", "--seeds", "1-3", "--faults", "none", "--check", "true", *programs.split()),
                       0, "3 schedules, 0 with faults: nothing found")


@test("replays of programs with threads and sockets are equal", "rping", "ucmatose", "gcc")
def explored_again(fixture):
    finding, tcp = fixture.work / "finding", fixture.work / "tcp"
    fixture.run("gcc", str(pathlib.Path(__file__).parent / "tcp.c"), "-o", str(tcp))
    for programs in (EXPLORED[0], EXPLORED[1], f"{tcp} :: {tcp} 10.77.0.1"):
        fixture.expect(fixture.sim("explore", "--seeds", "3", "--check", "false", "--save", str(finding),
                                   *programs.split()), 1, "FOUND")
        first = fixture.sim("explore", "--replay", str(finding))
        fixture.expect(first, 1, "FOUND: the check fails")
        for _ in range(3):
            again = fixture.sim("explore", "--replay", str(finding))
            assert again.stdout == first.stdout, again.stdout


case("the files below /dev/infiniband are character devices",
     "stat -c %n,%F,%a,%t:%T /dev/infiniband/uverbs0 /dev/infiniband/rdma_cm",
     "host1: /dev/infiniband/uverbs0,character special file,666,e7:c0$",
     "host1: /dev/infiniband/rdma_cm,character special file,666,a:7a$")
case("a program tests an open device", "sh -c test${IFS}-c${IFS}/dev/stdin</dev/infiniband/uverbs0")
case("ucx_info", "ucx_info -d", "host1: .*Device: rxe0:1", "host1: .*Device: sim0$")
case("ip addr", "ip -o addr", r"host1: 1: lo +inet 127\.0\.0\.1/8 scope host lo",
     r"host1: 2: sim0 +inet 10\.77\.0\.1/16 brd 10\.77\.255\.255 scope global sim0", "host1: 2: sim0 +inet6 fd77::1/64 scope global")
case("ip addr of InfiniBand", "ip -j addr show sim0", '"ifname":"sim0".*"mtu":2044.*"operstate":"UP".*"link_type":"infiniband"',
     options="--device mlx5-ib")
case("ip route", f"@host2 ip route get {SERVER}", rf"host2: {re.escape(SERVER)} dev sim0 src 10\.77\.0\.2 ", needs=["ip"])
case("ip neigh", "--hosts 2 ip neigh", r"host1: 10\.77\.0\.2 dev sim0 lladdr 00:77:00:00:02:00 REACHABLE", needs=["ip"])
case("ip of an unknown interface", "ip link show eth9", 'Device "eth9" does not exist', status=1)
UCX = "env UCX_TLS={},self UCX_NET_DEVICES=rxe0:1 ucx_perftest -n 100 -t"

# Reasons of skipped tests that depend on the machine, not on the device.
OF_MACHINE = re.compile("skipped: (There are no huge pages|Allocating dmabuf|cuda-python)")


SUITE_ON = "rdma-core's own tests on "


def need_version(record):
    recorded = re.match("# rdma-core ([0-9.]+)", record.read_text(encoding="utf-8")).group(1)
    if rdma_core.version() != recorded:
        raise Missing(f"no tests of rdma-core {recorded} here: tools/setup unchanged")


def run_rdma_core(fixture, device, *arguments):
    """Returns the results of the tests by their names."""
    if device not in fixture.sim("--device", "help").stdout.split():
        raise Missing(f"rdma-sim has no device {device}")
    suite = fixture.work / "tests"
    if not suite.exists():
        rdma_core.unpack(suite)
    lines = fixture.work / "errors"
    with open(lines, "w", encoding="utf-8") as errors:
        done = fixture.sim("--device", device, rdma_core.PYTHON, str(HERE / "rdma_core.py"), "run", str(suite),
                           *arguments, errors=errors)
    if done.returncode == 77:
        raise Missing(lines.read_text(encoding="utf-8").strip())
    assert done.returncode == 0, f"{done}: {lines.read_text(encoding='utf-8')[-4096:]}"
    return compare.table(done.stdout, "the output")


def rdma_core_suite(device, records, *arguments):
    """Compares the results with those of the records, each of which has what differs in it."""
    @test(SUITE_ON + device)
    def function(fixture):
        first, *others = [HERE / f"rdma-core_{record}.tsv" for record in records]
        need_version(first)
        is_root = os.getuid() == 0 and not fixture.user
        expected = compare.overlay(compare.read(first), HERE / "rdma-core_root.tsv" if is_root else None)
        for record in others:
            expected = compare.overlay(expected, record)
        got = run_rdma_core(fixture, device, *arguments)
        # Other devices may have features for root alone.
        expected = {name: result for name, result in expected.items()
                    if not OF_MACHINE.match(result) and not (is_root and "by root" in result)}
        wrong = list(compare.differences(expected, {name: got[name] for name in got if name in expected}))
        assert not wrong, "\n".join(wrong)


# GID 0 of RoCE is that of a link-local address, which the lab's interface does not have.
rdma_core_suite("rxe", ["rxe", "sim-rxe"], "rxe0", "1")
rdma_core_suite("siw", ["siw"], "siw0", "0")
rdma_core_suite("mlx5", ["rxe", "sim-mlx5"], "mlx5_0", "1")
rdma_core_suite("mlx5-ib", ["rxe", "sim-mlx5", "sim-mlx5-ib"], "mlx5_0", "0")
rdma_core_suite("irdma-roce", ["rxe", "sim-irdma-roce"], "irdma0", "1")
rdma_core_suite("irdma-iwarp", ["siw", "sim-irdma-iwarp"], "irdma0", "0")
rdma_core_suite("bnxt_re", ["rxe", "sim-bnxt_re"], "bnxt_re0", "1")


@test("rdma-core's own tests are skipped without their device, version or package")
def rdma_core_missing(fixture):
    if not rdma_core.version():
        raise Missing("no tests of rdma-core here: tools/setup unchanged")
    script, other = str(HERE / "rdma_core.py"), fixture.work / "other.tsv"
    other.write_text("# rdma-core 0.1, rxe, as an ordinary user\n", encoding="utf-8")
    for function, reason in [
            (lambda: need_version(other), "no tests of rdma-core 0.1 here: tools/setup unchanged"),
            (lambda: run_rdma_core(fixture, "mlx6", "mlx6_0"), "rdma-sim has no device mlx6"),
            (lambda: run_rdma_core(fixture, "rxe", "rxe1"),
             "rdma_core.py: skipped: there is no device rxe1: ibv_devices lists them")]:
        try:
            function()
            raise AssertionError(f"not skipped: {reason}")
        except Missing as missing:
            assert str(missing) == reason, missing
    for arguments, reason in [
            (["lab", "rxe", "/nonexistent"], "no tests of rdma-core here: tools/setup unchanged"),
            (["lab", "mlx5", "/nonexistent"], "the lab has no mlx5: it has rxe and siw"),
            (["run", "/nonexistent", "rxe0"], "no tests of rdma-core in /nonexistent: unpack them")]:
        done = subprocess.run([rdma_core.PYTHON, script, *arguments], env={"PATH": "/nonexistent"}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (77, "", f"rdma_core.py: skipped: {reason}\n"), done


# rc_v is rc_verbs, which connects over ud_verbs.
for transport, kind in [("rc,ud", "tag_lat"), ("rc_v", "tag_bw"), ("rc_v", "ucp_fadd"), ("ud_verbs", "tag_lat")]:
    ucx = f"{UCX.format(transport)} {kind}"
    case(f"ucx_perftest {kind} over {transport}", f"{ucx} :: {ucx} {SERVER}", r"host2: Final: +100 ", needs=["ucx_perftest"])


@test("254 hosts", "ibv_devices")
def most_hosts(fixture):
    """Their files are in memory unless TMPDIR names a directory."""
    done = fixture.sim("--hosts", "254", "@host254", "ibv_devices", environment={"TMPDIR": "", "XDG_RUNTIME_DIR": ""})
    fixture.expect(done, 0, r"rxe0\s+[0-9a-f]{16}")


MAKE_MANY = """
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void) {
    struct rlimit limit = {1, 1};
    struct ibv_context *context = ibv_open_device(ibv_get_device_list(NULL)[0]);
    if (prlimit(getppid(), RLIMIT_AS, &limit, NULL)) return 1;
    while (ibv_alloc_pd(context));
    return 0;
}
"""


@test("rdma-sim ends with one line and its own status if no memory is left", "cc")
def no_memory(fixture):
    source, program = fixture.work / "many.c", fixture.work / "many"
    source.write_text(MAKE_MANY, encoding="utf-8")
    fixture.run("cc", source, "-D_GNU_SOURCE", "-o", program, "-libverbs")
    fixture.expect(fixture.sim(program), 125, r"\Ardma-sim: no memory is left\n\Z")


@test("connections of programs with a limit of 1024 files", "cc")
def file_limit(fixture):
    program = fixture.work / "connect"
    fixture.run("cc", HERE.parent / "cli" / "connect.c", "-o", program, "-lrdmacm", "-libverbs")
    script = f"ulimit -Sn 1024; exec {fixture.program} {program} serve 200 :: {program} open {SERVER} 200"
    fixture.program = "sh"  # rdma-sim needs a descriptor for each channel of both programs
    fixture.expect(fixture.sim("-c", script), 0)
    fixture.expect(fixture.sim("-c", f"ulimit -n 80; exec {script.split('exec ')[1]}"), (1, 2),
                   "^rdma-sim: rdma-sim itself may open 80 files.*ulimit -Hn")


@test("a program is linked on the fabric", "cc")
def links(fixture):
    """The linker combines librdmacm.so.1 of the fabric with libibverbs.so of the system."""
    source, program, library = (fixture.work / name for name in ("program.c", "program", "libuser.so"))
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    fixture.run("cc", "-shared", "-o", library, "-Wl,--no-as-needed", "-lrdmacm")
    done = fixture.sim("cc", source, "-o", program, f"-L{fixture.work}", "-Wl,--no-as-needed", "-luser", "-libverbs")
    fixture.expect(done, 0)
    assert program.exists()


# ---- programs that cannot run ----------------------------------------------------------------


def build_outside(fixture):
    """Programs into which the linker does not load the fabric's libraries, and the problems that rdma-sim names."""
    source, names = fixture.work / "program.c", ["static", "setuid", "other-machine", "other-class", "other-libc"]
    source.write_text('#include <stdio.h>\nint main(void) { return puts("runs") < 0; }\n', encoding="utf-8")
    static, setuid, machine, bits, libc = programs = [fixture.work / name for name in names]
    for program, options in zip(programs, (["-static"], [], [], [], ["-Wl,--dynamic-linker=/lib/ld-other.so.1"])):
        fixture.run("cc", source, "-o", program, *options)
    for program, offset, value in ((machine, 18, (0xF3 if machine.read_bytes()[18] != 0xF3 else 0x3E, 0)),  # RISC-V
                                   (bits, 4, (1,))):  # ELFCLASS32
        image = bytearray(program.read_bytes())
        image[offset:offset + len(value)] = value
        program.write_bytes(image)
    setuid.chmod(0o4755)
    return [(static, "linked statically.*link it dynamically"), (setuid, "setuid.*run a copy without"),
            (machine, "built for another architecture"), (bits, "built for another architecture"),
            (libc, "built for another C library")]


@test("a program that cannot run is rejected in one line", "cc")
def refused(fixture):
    source = fixture.work / "program.c"
    links = ["-Wl,--no-as-needed", "-l:libibverbs.so.1"]
    outside = build_outside(fixture)

    def build(name, *options):
        program = fixture.work / name
        fixture.run("cc", source, "-o", program, *options)
        return program

    other = fixture.work / "other"
    other.mkdir()
    (other / "libibverbs.so.1").symlink_to(fixture.path_of("libibverbs.so.1"))
    not_executable = build("not-executable")
    not_executable.chmod(0o644)
    text = fixture.work / "text"
    text.write_text("nothing\n", encoding="utf-8")
    text.chmod(0o755)
    for program, pattern in [
            *outside,
            (not_executable, "not executable: use chmod"),
            (build("rpath", "-Wl,--disable-new-dtags", f"-Wl,-rpath,{other}", *links),
             "loads another libibverbs.so.1 .*RPATH"),
            (text, "neither a program nor a script"),
            (fixture.work / "missing", "No such file"),
            (fixture.work / "new\nline", r"/new\\x0aline: No such file"),
            ("no-such-program", "not found in PATH"),
            (fixture.work, "not a file that can be executed")]:
        done = fixture.sim("touch", fixture.work / "started", "::", program)
        fixture.expect(done, 2, f"^rdma-sim: .*{pattern}.*\n$")
        assert not (fixture.work / "started").exists()
    preloaded = fixture.sim("ibv_devices", environment={"LD_PRELOAD": fixture.path_of("libibverbs.so.1")})
    fixture.expect(preloaded, 2, "^rdma-sim: .*loads another libibverbs.so.1 .*LD_PRELOAD.*\n$")


@test("a program of a wrapper that is not on the fabric ends with one line", "ibv_devices", "rping",
      "/usr/bin/python3")
def wrapped(fixture):
    other = pathlib.Path(fixture.path_of("libibverbs.so.1")).parent
    devices = ("import ctypes; n = ctypes.c_int(); "
               "ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(ctypes.byref(n)); print(n)")
    for script, pattern in [
            (f"LD_LIBRARY_PATH={other} exec rping -s -a {SERVER} -C 1", "rping: loads another libibverbs.so.1 .*begin with /"),
            (f"LD_LIBRARY_PATH={other}:$LD_LIBRARY_PATH ibv_devices", "ibv_devices: loads another libibverbs.so.1 "),
            ("unset LD_LIBRARY_PATH; env ibv_devices", "ibv_devices: loads another libibverbs.so.1 "),
            (f"LD_PRELOAD={other}/libm.so.6 ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            ("unset LD_PRELOAD; ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            ("env -u LD_PRELOAD -u LD_LIBRARY_PATH ibv_devices", "ibv_devices: librdma-sim-preload.so is not loaded"),
            (f"env -i {shutil.which('ibv_devices')}", "/\\S+ibv_devices: librdma-sim-preload.so is not loaded"),
            ("env -i nice sh -c 'setsid -w ibv_devices'", "ibv_devices: librdma-sim-preload.so is not loaded")]:
        # The run ends, whatever becomes of the program's status and output.
        done = fixture.sim("sh", "-c", f"({script}) >/dev/null 2>&1; exit 0")
        fixture.expect(done, 125, rf"\Ardma-sim: {pattern}.*\n\Z")
    for script in ("LD_LIBRARY_PATH=/no/such/directory:$LD_LIBRARY_PATH ibv_devices",
                   f"LD_LIBRARY_PATH={other} exec /usr/bin/python3 -c \"{devices}\""):
        fixture.expect(fixture.sim("sh", "-c", script), 0, r"rxe0|c_int\(1\)")


# Programs that execute PROGRAM: each by another function of the C library. Their status and output are lost.
EXECUTE = """
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wordexp.h>
extern char **environ;
int main(int argc, char *argv[]) {
    char *const none[] = {NULL}, *const name = argv[2], *const list[] = {name, NULL};
    pid_t pid;
    wordexp_t words;
    char command[4096];
    snprintf(command, sizeof(command), "$(%s)", name);
    if (argc != 3) return 1;
    #define CASE(function, call) if (!strcmp(argv[1], #function)) return (int)(call);
    CASE(execl, execl(name, name, "x", NULL))
    CASE(execle, execle(name, name, NULL, none))
    CASE(execlp, execlp(name, name, "x", "y", NULL))
    CASE(execv, execv(name, list))
    CASE(execve, execve(name, list, none))
    CASE(execveat, execveat(AT_FDCWD, name, list, none, 0))
    CASE(execvp, execvp(name, list))
    CASE(execvpe, execvpe(name, list, none))
    CASE(fexecve, fexecve(open(name, O_PATH), list, none))
    CASE(popen, getc(popen(name, "r")))
    CASE(posix_spawn, posix_spawn(&pid, name, NULL, NULL, list, none))
    CASE(posix_spawnp, posix_spawnp(&pid, name, NULL, NULL, list, environ))
    CASE(system, system(name))
    CASE(wordexp, wordexp(command, &words, 0))
    return 2;
}
"""
# Of the same form, but they execute no file of this machine.
OTHERS = r"posix_spawn(_file_actions|attr)_.*|re_exec|regexec|rexec(_af)?|svcerr_systemerr|__libc_system|_IO_popen"


@test("a program outside the fabric ends the run with one line, whatever executes it", "cc")
def executed(fixture):
    outside = build_outside(fixture)
    static = outside[0][0]
    source, program = fixture.work / "execute.c", fixture.work / "execute"
    source.write_text(EXECUTE, encoding="utf-8")
    fixture.run("cc", "-D_GNU_SOURCE", source, "-o", program)
    symbols = fixture.run("nm", "--dynamic", "--defined-only", fixture.path_of("libc.so.6"))
    functions = set(re.findall(r"^\S+ [TW] (\w*(?:exec|spawn|popen|system)\w*|wordexp)@", symbols, re.M))
    functions = sorted(each for each in functions if not re.fullmatch(OTHERS, each))
    assert functions == re.findall(r"^    CASE\((\w+), ", EXECUTE, re.M), functions
    script = fixture.work / "script"
    script.write_text(f"#!{static} option\n", encoding="utf-8")
    script.chmod(0o755)
    for command, path, problem in [
            *[((program, function, static), static, outside[0][1]) for function in functions],
            *[(("sh", "-c", f"{path} >/dev/null 2>&1; exit 0"), path, problem) for path, problem in outside],
            *[((*wrapper.split(), static), static, outside[0][1]) for wrapper in
              ("nice", "timeout 9", "setsid -w", "stdbuf -o0", "env -i", "nohup", "xargs -a /etc/hostname")],
            (("script", "-qc", static, "/dev/null"), static, outside[0][1]),
            (("sh", "-c", str(script)), static, outside[0][1]),
            (("sh", "-c", f"PATH={fixture.work} static"), static, outside[0][1])]:
        done = fixture.sim(*command)
        fixture.expect(done, 125, rf"\Ardma-sim: \S*{re.escape(str(path))}, which \S+ executes: .*{problem}.*\n\Z")
    done = fixture.sim("--prefix", "sh", "-c", f"printf 'two\nlines'; {static}; echo more")
    fixture.expect(done, 125, r"\Ahost1: two\nhost1: lines\nrdma-sim: .*\n\Z")
    done = fixture.sim("explore", "--seeds", "1-2", "--check", "true", "sh", "-c", f"exec {static}")
    fixture.expect(done, 125, r"\Ardma-sim: .*linked statically.*\n\Z")


@test("helpers that are linked statically run", "ibv_devices", "/usr/bin/python3")
def helpers(fixture):
    """The dynamic linker, ldconfig and valgrind's tools."""
    linker = re.search(r"interpreter: (\S+)\]", fixture.run("readelf", "-lW", shutil.which("ibv_devices"))).group(1)
    find = "import ctypes.util; print(ctypes.util.find_library('ibverbs'))"
    for words, pattern in [((linker, shutil.which("ibv_devices")), "rxe0"),
                           (("/usr/bin/python3", "-c", find), "libibverbs.so.1"),
                           (("env", "-i", "sh", "-c", "uname"), "Linux"),
                           *[(("valgrind", "-q", "ibv_devices"), "rxe0")] * bool(shutil.which("valgrind"))]:
        fixture.expect(fixture.sim("sh", "-c", 'exec "$@"', "sh", *words), 0, pattern)
    fixture.expect(fixture.sim(linker, shutil.which("ibv_devices")), 0, "rxe0")
    done = fixture.sim("explore", "--seeds", "1-2", "--check", "true", "sh", "-c", "exec ibv_devices")
    fixture.expect(done, 0, "nothing found")


@test("direct verbs are refused in one line", "cc")
def direct_verbs(fixture):
    source = fixture.work / "direct.c"
    source.write_text("#include <infiniband/mlx5dv.h>\n#include <stdio.h>\nint main(void) {\n"
                      "struct ibv_device **list = ibv_get_device_list(NULL);\n"
                      "struct mlx5dv_context_attr attr = {0};\n"
                      "printf(\"%d\\n\", mlx5dv_is_supported(list[0]));\n"
                      "return mlx5dv_open_device(list[0], &attr) != NULL; }\n", encoding="utf-8")
    program = fixture.work / "direct"
    fixture.run("cc", source, "-o", program, "-lmlx5", "-libverbs")
    fixture.expect(fixture.sim("--device", "mlx5", program), 0, "^0$",
                   "rdma-sim: direct: mlx5dv_open_device: direct verbs are not supported: see Limits in")


NULL_PATH = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for call in ("statx(0, None, 0, 0, None)", "open(None, 0)", "openat(0, None, 0)", "access(None, 0)", "stat(None, None)",
             "lstat(None, None)", "chdir(None)", "readlink(None, None, 1)"):
    eval("libc." + call)
    assert ctypes.get_errno() == errno.EFAULT, (call, ctypes.get_errno())
"""


@test("a path may be NULL", "/usr/bin/python3")
def null_path(fixture):
    """Rust tests by such a call whether the kernel has statx()."""
    fixture.expect(fixture.sim("/usr/bin/python3", "-c", NULL_PATH), 0)


@test("wrong arguments are refused in one line")
def arguments(fixture):
    for line, pattern in [
            ("--hosts 0 true", "--hosts takes a number from 1 to 254, not '0'"),
            ("--hosts 1 true :: true", "there is no host2, only 1 hosts"),
            ("--device mlx6 true", "there is no device 'mlx6'"),
            ("--device host3=rxe true", "there is no host3"),
            ("--platform cpu true", "--platform takes cpu-flush or direct-write"),
            ("--until host0 true", "--until takes a host"),
            ("--join no-such-fabric true", "no fabric 'no-such-fabric' runs"),
            ("--pmem /no/such/file true", "--pmem /no/such/file: No such file"),
            ("true ::", "a COMMAND is missing"),
            ("@host0 true", "@ takes a host"),
            ("--hosts 255 true", "--hosts takes a number from 1 to 254"),
            ("--hosts 2x true", "--hosts takes a number from 1 to 254"),
            ("--seed -1 true", "--seed takes a number from 0 to 18446744073709551615"),
            ("--lose some true", "--lose takes all or random, not 'some'"),
            ("--memory shared true", "--memory takes direct or thread, not 'shared'"),
            ("--name a/b", "--name takes a name of at most 40 characters without '/'"),
            (f"--name {41 * 'a'}", "--name takes a name of at most 40 characters"),
            ("--host host0 true", "--host takes a host"),
            ("--pmem host2=/no/such/file true", "--pmem: there is no host2"),
            ("--until host2 true", "--until: there is no host2"),
            ("--hosts 2 --until host2 true", "--until: host2 has no COMMAND that could end"),
            ("--name lab --until host1", "--until: host1 has no COMMAND that could end"),
            ("--hosts 1 @host2 true", "@HOST: there is no host2"),
            ("--join fabric true :: true", "--join takes one COMMAND"),
            ("--join= true", "--join '' is for programs that run on a fabric already"),
            ("--check true true", "--check is for rdma-sim explore"),
            ("", "a COMMAND is missing")]:
        fixture.expect(fixture.sim(*line.split()), 2, f"^rdma-sim: .*{re.escape(pattern)}.*\n$")
    for fault, pattern in [
            ("cut host1", "it begins with a time"), ("2s", "the action is missing"),
            ("2s melt host1", "there is no action 'melt'"), ("2s cut", "a host is missing"),
            ("2s delay host1", "a time is missing"), ("2s refuse host1 x", "there is no error 'x'"),
            ("2s event host1 party", "there is no event 'party'"),
            ("2s kill host1 host1", "unexpected 'host1'"), ("after cut host1", "followed by a host"),
            ("2s kill host7", "there is no host7"), ("after host7 kill host1", "there is no host7"),
            ("2x kill host1", "it begins with a time"), ("-1s kill host1", "it begins with a time"),
            ("1000000000s kill host1", "it begins with a time"), ("at 2s", "the action is missing"),
            ("after host1", "the action is missing"), ("2s cut host0", "there is no host 'host0'"),
            ("2s delay host1 0s", "a time is missing"), ("2s refuse host1 0", "a count is missing"),
            ("2s refuse host1 4294967296", "a count is missing"), ("2s refuse host1 3x", "a count is missing"),
            ("2s refuse host1 3 EFAIL", "there is no error 'EFAIL'"),
            ("2s doorbell host1 3", "there is no error '3'"), ("2s doorbell host1 EIO EIO", "unexpected 'EIO'"),
            ("host2:ibv_post_send:3 kill", "there is no host2"), ("host1:ibv_fly kill", "there is no call 'ibv_fly'"),
            ("host1:ibv_post_send:x kill", "the number of the call is missing"),
            ("1s fail host1 ibv_poll_cq", "there is no call 'ibv_poll_cq'"),
            ("1s cut-one-way host1", "two hosts are missing"), ("1s overrun host1 for 1s", "overrun does not last"),
            ("2s event host1 qp-fatal", "the device rxe of host1 cannot have this fault: use one of mlx5, "),
            ("2s event host1 sm-change", "cannot have this fault, nor can another one")]:
        fixture.expect(fixture.sim("--fault", fault, "true"), 2, f"^rdma-sim: --fault.*{re.escape(pattern)}.*\n$")
    iwarp = "irdma-iwarp cxgb4 erdma qedr-iwarp siw"
    for action, devices in [("overrun", "mana qedr-iwarp"), ("remove", "cxgb4 qedr qedr-iwarp siw"),
                            ("insert", "cxgb4 qedr qedr-iwarp siw"), ("drop-datagram", f"{iwarp} erdma-roce mana qedr"),
                            ("repeat-datagram", f"{iwarp} erdma-roce mana qedr"), ("drop-cm", iwarp),
                            ("event qp-req-err", "erdma erdma-roce mana qedr-iwarp rxe")]:
        for device in devices.split():
            fixture.expect(fixture.sim("--device", device, "--fault", f"host1:ibv_post_send {action}", "true"), 2,
                           rf"\A.*: the device {device} of host1 cannot have this fault: use one of .*\n\Z")
    for device in re.findall(r"^\S+", fixture.sim("--device", "help").stdout, re.M):
        done = fixture.sim("--device", f"host2={device}", "--fault", "0s doorbell host2", "true", "::", "true")
        if device in ("rxe", "siw"):
            fixture.expect(done, 0)
        else:
            fixture.expect(done, 2, f"the device {device} of host2 cannot have this fault: use one of rxe, siw\n")


@test("help that cannot be written")
def full_output(fixture):
    for options in ["--help", "--version", "--device help", "--fault help"]:
        done = subprocess.run(f"exec {fixture.program} {options} >/dev/full", shell=True, text=True,
                              stderr=subprocess.PIPE, check=False)
        assert (done.returncode, done.stderr) == (1, "rdma-sim: standard output: No space left on device\n"), done


@test("--help, the page and the completion have the same options and faults; other help")
def texts(fixture):
    page, explore = ((ROOT / "man" / f"{name}.1").read_text(encoding="utf-8") for name in ("rdma-sim", "rdma-sim-explore"))
    completion = (ROOT / "cli" / "completion").read_text(encoding="utf-8")
    usage = fixture.sim("--help").stdout
    options = set(re.findall(r"^ .*?--([a-z-]+)", usage, re.M))
    assert len(options) > 15 and options == set(
        re.findall(r"^\.It .*?Fl Fl ([a-z-]+)", page + explore, re.M)), options
    assert options == set(re.findall(r" --([a-z-]+)\b", completion.split("compgen -W '-n", 1)[1])), options
    fixture.expect(fixture.sim("--version"), 0, r"\Ardma-sim \d+\.\d+\.\d+\n\Z")
    fixture.expect(fixture.sim("--device", "help"), 0, "^rxe +RoCE$", "^siw +iWARP$", "^mlx5-ib +InfiniBand$")
    faults = set(re.findall(r"^  ([a-z-]+) ", fixture.sim("--fault", "help").stdout, re.M))
    assert faults == set(re.findall(r"\.It Cm ([a-z-]+)\b", page[page.index(".Ss Faults"):page.index(".Ss Weaknesses")])), faults


if __name__ == "__main__":
    # Other tests of meson run the suite of rdma-core, which waits most of its time.
    main(__doc__, needs_name=SUITE_ON)
