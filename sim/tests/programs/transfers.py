# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Programs that move data, and what they find: devices, interfaces, files."""

import pathlib
import re
import signal

from fixture import SERVER, case, test

HERE = pathlib.Path(__file__).resolve().parent

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
UCX = "env UCX_TLS={},self UCX_NET_DEVICES={}:1 {} ucx_perftest -n 100 -t"


def ucx(transport, kind, device, interface, variables=""):
    command = f"{UCX.format(transport, interface, variables)} {kind}"
    case(f"ucx_perftest {kind} over {transport} on {device}", f"{command} :: {command} {SERVER}", r"host2: Final: +100 ",
         options=f"--device {device}", needs=["ucx_perftest"])


# rc_v is rc_verbs, which connects over ud_verbs.
for transport, kind in [("rc,ud", "tag_lat"), ("rc_v", "tag_bw"), ("rc_v", "ucp_fadd"), ("ud_verbs", "tag_lat")]:
    ucx(transport, kind, "mlx5", "mlx5_0")
for name in ["bnxt_re0", "hns_0"]:
    ucx("ud_verbs", "tag_lat", re.sub("_?0$", "", name), name)
ucx("ud_verbs", "tag_lat", "rxe", "rxe0", "UCX_UD_ETH_DGID_CHECK=n")


# Up to 1.17, UCX takes the family of a datagram from sl, which rxe does not set: github.com/openucx/ucx, 7de57ad9f9.
@test("ucx_perftest over ud_verbs on rxe", "ucx_perftest")
def ucx_loses_datagrams(fixture):
    version = fixture.run("ucx_info", "-v")
    is_old = tuple(map(int, re.search(r"Version (\d+)\.(\d+)", version).groups())) < (1, 18)
    command = f"{UCX.format('ud_verbs', 'rxe0', 'UCX_UD_TIMEOUT=1s')} tag_lat".split()
    done = fixture.sim("--device", "rxe", "--until", "host2", *command, "::", *command, SERVER)
    fixture.expect(done, 128 + signal.SIGABRT if is_old else 0, "unhandled timeout error" if is_old else r"Final: +100 ")


@test("254 hosts", "ibv_devices")
def most_hosts(fixture):
    """Their files are in memory unless TMPDIR names a directory."""
    done = fixture.sim("--hosts", "254", "@host254", "ibv_devices", environment={"TMPDIR": "", "XDG_RUNTIME_DIR": ""})
    fixture.expect(done, 0, r"rxe0\s+[0-9a-f]{16}")
