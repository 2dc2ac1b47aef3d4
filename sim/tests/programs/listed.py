# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""What rdma of iproute2 and sysfs show of programs, and malformed requests of netlink."""

import json

from fixture import OBJECTS, SERVER, test
from transfers import PERFTEST


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


# A request that has less than its operation. EPROTO is 71.
SHORT_REQUEST = """
import os, socket, time
one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
one.connect(os.environ["RDMA_SIM_SOCKET"])
one.setblocking(False)
one.send(bytes([5]))
for _ in range(1000):
    time.sleep(0.01)
    try:
        print(int.from_bytes(one.recv(4096)[:4], "little"), flush=True)
        break
    except BlockingIOError:
        pass
"""


@test("a short request of an explored program is refused", "/usr/bin/python3")
def short_request(fixture):
    fixture.expect(fixture.sim("explore", "--seeds", "1-1", "--faults", "none", "--check", "grep '^71$' $RDMA_SIM_OUT1",
                               "/usr/bin/python3", "-c", SHORT_REQUEST), 0, "nothing found")
