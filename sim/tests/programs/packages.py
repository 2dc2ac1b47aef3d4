#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Tries the packages of Debian that depend on libibverbs1 or librdmacm1, and programs of other languages, on the
simulated fabric. Prints TAP.

usage: packages.py RDMA-SIM BUILD [PACKAGE...]
       packages.py write    stores the versions of the installed packages in packages.tsv

packages.tsv has the result of each package, and rdma-sim(1) shows it. The cases below show that each result is still
true: a command, and what its output contains.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE))

import fixture
from fixture import SERVER, WAIT, Missing, run_when

TABLE = HERE / "packages.tsv"
# Refused by the fabric, in one line.
UMAD = "umad_open_port: management datagrams are"
XRC = "XRC is"
RSPRELOAD = "LD_PRELOAD=$(echo /usr/lib/*/rsocket/librspreload.so):$LD_PRELOAD exec"
IQN = "iqn.2026-11.sim"
DISK = f"driver=iscsi,transport=iser,portal={SERVER},target={IQN}:disk,lun=1,initiator-name={IQN}:client"
URL = f"-i {IQN}:client iser://{SERVER}/{IQN}:disk/1"
AFTER_READY = "until test -e {files}/ready; do sleep 0.05; done"
PERFTEST = "-F -n 100"
ENDED_WELL = r"host2: +#bytes"


def both(command, options="", server=SERVER):
    """A server, and a client that gets its address."""
    return f"{options} {command} :: {command} {server}"


def target_and(command):
    return f"--until host2 {HERE}/iser.sh {{files}} :: sh -c '{AFTER_READY}; {command}'"


def refused(command, feature, options=""):
    """The status is that of the program."""
    return f"{options} {command}", f"rdma-sim: {command.split()[0]}: {feature} not supported", None, None


def dapl(program, provider, options=""):
    """Each host has its own address in dat.conf. The server does not listen at once."""
    line = f"sim u2.0 nonthreadsafe default libdapl{provider}.so.2 dapl.2.0"
    where = {"ofa": ("10.77.0.1 0", "10.77.0.2 0"), "oscm": ("rxe0 1", "rxe0 1")}[provider]
    sides = [f"""sh -c 'echo "{line} \\"{place}\\" \\"\\"" >{{files}}/{number}.conf;
                 {begin} env DAT_OVERRIDE={{files}}/{number}.conf {program} -P sim {options} {end}'"""
             for number, (place, begin, end)
             in enumerate(zip(where, ("exec", "until"), ("", f"-h {SERVER}; do :; done")), 1)]
    return " :: ".join(sides)


def mpi(launcher, program, options="", device="rxe"):
    """Two ranks on two hosts: the launcher runs on host1 and starts the other rank with rsh.sh."""
    return (f"--device {device} --hosts 2 env RDMA_SIM={{sim}} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
            f"HOME={{files}} {launcher} {options} {{files}}/{program}", "rank 1 on host2: sum 1, written 0")


def open_mpi(options, device="rxe"):
    return mpi(f"mpirun.openmpi --host host1,host2 --mca plm rsh --mca plm_rsh_agent {HERE}/rsh.sh", "openmpi",
               options, device)


def mpich(transport):
    """The ranks must not have the environment of the launcher, which names host1."""
    return mpi(f"mpirun.mpich -launcher rsh -launcher-exec {HERE}/rsh.sh -hosts host1,host2 -n 2 -genvnone", "mpich",
               f"-env UCX_TLS {transport},self -env UCX_NET_DEVICES mlx5_0:1", "mlx5")


UCX = "--mca pml ucx --mca osc ucx --mca btl ^openib -x UCX_NET_DEVICES=mlx5_0:1 -x UCX_TLS="
OFI = "--mca pml cm --mca mtl ofi --mca btl ^openib --mca mtl_ofi_provider_include 'verbs;ofi_rxm'"


DEFAULTS = (None, 0)  # begun, status

# The cases of a package: arguments of rdma-sim, what its output contains, and optionally the output after which a
# command with WAIT continues, and the status (None: any). {files} is a directory.
PACKAGES = {
    "ceph-mon": [(f"--until host2 {HERE}/ceph.sh {{files}} :: sh -c 'until timeout 5 ceph -c {{files}}/ceph.conf -s; "
                  "do sleep 0.1; done'", "host2: +mon: 1 daemons, quorum a")],
    "dapl2-utils": [
        (dapl("dtest", "ofa", "-b 4096 -B 10"), "host2: .*DAPL Test Complete. PASSED"),
        (dapl("dtest", "oscm", "-b 4096 -B 10"), "host2: .*DAPL Test Complete. PASSED"),
        (dapl("dtestx", "ofa"), "host1: +IB extension test - immed/atomic test PASSED"),
        (dapl("dtestsrq", "ofa"), "host2: +DAPL RC SRQ Test Complete"),
        (dapl("dtestcm", "ofa"), r"host2: +Connections: +[\d.]+ usec")],
    "dpdk": [("--device mlx5 dpdk-testpmd --no-huge -m 512 -l 0,1 --no-telemetry -a ffff:ff:1f.7 -- "
              "--total-num-mbufs=2048",
              "host1: testpmd: No probed ethernet devices")],
    "fio": [("fio --name=s --ioengine=rdma --port=7777 --bs=4k --size=4m --rw=read :: fio --name=c --ioengine=rdma "
             f"--port=7777 --bs=4k --size=4m --hostname={SERVER} --verb=write --rw=write", "host2: c: .*err= 0")],
    "golang-go": [
        *((f"sh -c 'HOME={{files}} go build -ldflags \"-X main.mistake={mistake}\" -o {{files}}/{name} {HERE}/read.go'", "")
          for name, mistake in (("read", ""), ("wrong-read", "yes"))),
        (both("{files}/read"), "host2: read texts by Go"),
        (f"explore --seeds 1-100 --until host2 --check 'test $RDMA_SIM_STATUS2 != 3' {both('{files}/read')}",
         r"\A100 schedules, [1-9]\d with faults: nothing found"),
        (f"explore --faults none --save {{files}}/finding --until host2 --check true {both('{files}/wrong-read')}",
         "^again: rdma-sim explore --replay .*finding", None, 1),
        *[("explore --replay {files}/finding", r'FOUND: host2 ends with status 3: wrong: "" instead of "text 2 of the server"\n\Z',
           None, 1)] * 3],
    "ibacm": [("--device mlx5-ib --until host2 --together sh -c 'printf \"log_file {files}/log\\n\" >{files}/options; "
               "printf \"lock_file {files}/lock\\nserver_mode unix\\n\" >>{files}/options; "
               f"exec ibacm -P -O {{files}}/options' :: sh -c '{WAIT}'",
               f"rdma-sim: ibacm: {UMAD} not supported", "not supported")],
    "ibverbs-utils": [
        ("ibv_devices", "host1: +rxe0"), ("ibv_devinfo -v", "host1: hca_id:\trxe0"),
        *((both(f"ibv_{name}_pingpong -g 1"), r"host2: \d+ bytes in [\d.]+ seconds")
          for name in ("rc", "srq", "uc", "ud")),
        (both("ibv_xsrq_pingpong -g 1", "--device mlx5"), "host2: success"),
        refused("ibv_xsrq_pingpong -g 1", f"ibv_open_xrcd: {XRC}")],
    "infiniband-diags": [("ibstat", "host1: CA 'rxe0'"), ("ibstatus", "host1: .*state:.*ACTIVE"),
                         refused("iblinkinfo", UMAD, "--device mlx5-ib"),
                         refused("ibping -S", UMAD, "--device mlx5-ib")],
    "libfabric-bin": [
        ("fi_info -p verbs", "host1: +type: FI_EP_MSG"), (both("fi_pingpong -p verbs -e msg"), r"host2: 1m +10 +=10 "),
        (both("fi_pingpong -p verbs -e dgram"), r"host2: 1k +10 +=10 "),
        (both("fi_pingpong -p verbs;ofi_rxm -e rdm", "--device mlx5"), r"host2: 1m +10 +=10 "),
        (both("env FI_UNIVERSE_SIZE=4 fi_pingpong -p verbs;ofi_rxm -e rdm"), r"host2: 1m +10 +=10 "),
        (both("env FI_OFI_RXM_USE_SRX=1 fi_pingpong -p verbs;ofi_rxm -e rdm", "--device mlx5"), r"host2: 1m +10 +=10 "),
        (both("fi_pingpong -p verbs;ofi_rxd -e rdm"), r"host2: 1m +10 +=10 ")],
    "libgloo-dev": [
        (f"g++ -O1 -std=c++17 {HERE}/allreduce.cc -o {{files}}/allreduce -lgloo -libverbs", ""),
        ("--together sh -c 'mkdir -p {files}/store; exec {files}/allreduce rxe0 0 {files}/store' :: "
         "sh -c 'mkdir -p {files}/store; exec {files}/allreduce rxe0 1 {files}/store'",
         "host2: rank 1: each number is 3")],
    "libiscsi-bin": [
        (target_and(f"iscsi-inq {URL} && iscsi-readcapacity16 {URL}"), "host2: Total size:16777216"),
        (target_and(f"iscsi-perf -t 1 {URL}"), r"iops average [1-9]")],
    "mstflint": [("--device mlx5 mstflint -d mlx5_0 q", "host1: -E- Cannot open Device: mlx5_0", None, 1)],
    "mpich": [(f"mpicc.mpich {HERE}/ring.c -o {{files}}/mpich", ""), mpich("rc_v"), mpich("ud_verbs")],
    "openmpi-bin": [
        (f"mpicc.openmpi {HERE}/ring.c -o {{files}}/openmpi", ""),
        *(open_mpi(f"{UCX}{transport},self", "mlx5") for transport in ("rc_v", "ud_verbs")),
        open_mpi("--mca pml ob1 --mca btl tcp,self --mca osc pt2pt"), open_mpi(OFI, "mlx5"), open_mpi(f"{OFI} -x FI_UNIVERSE_SIZE=2"),
        open_mpi("--mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1", "mlx5-ib")],
    "opa-basic-tools": [("opainfo", "host1: opainfo: No HFIs found", None, 1)],
    "opensm": [("--device mlx5-ib env OSM_CACHE_DIR={files} OSM_TMP_DIR={files} opensm -o -f {files}/log",
                f"rdma-sim: opensm: {UMAD} not supported", None, None)],
    "perftest": [
        *((both(f"ib_{verb}_{figure} {PERFTEST}"), ENDED_WELL)
          for verb in ("send", "write", "read", "atomic") for figure in ("bw", "lat")),
        *((both(f"{program} {PERFTEST} {options}"), ENDED_WELL) for program, options in
          [("ib_send_bw", "-c UC"), ("ib_write_bw", "-c UC"), ("ib_send_bw", "-c UD"), ("ib_send_bw", "-c UD -R"),
           ("ib_send_bw", "--use-srq"), ("ib_send_bw", "-c UD -g -x 2"), ("ib_send_lat", "-e")]),
        *((both(f"{program} {PERFTEST} -c XRC", "--device mlx5"), ENDED_WELL)
          for program in ("ib_send_bw -b -q 4", "ib_send_lat", "ib_write_bw", "ib_read_lat", "ib_atomic_bw")),
        (both(f"ib_send_bw {PERFTEST} -c XRC"), "Couldn't create XRC resources", None, None),
        refused(both(f"ib_send_bw {PERFTEST} -c UD -g"), UMAD, "--device mlx5-ib"),
        refused("raw_ethernet_bw -F --client -E 02:00:00:00:00:01 -B 02:00:00:00:00:02",
                "ibv_create_qp: raw packets are")],
    "python3-pyverbs": [("/usr/bin/python3 -c 'import pyverbs.device as d; print(d.get_device_list()[0].name)'",
                         "rxe0")],
    "qemu-system-x86": [
        ("--until host2 qemu-system-x86_64 -accel tcg -m 64 -nodefaults -display none -machine pc "
         f"-incoming rdma:{SERVER}:4444 :: {HERE}/migrate.py {SERVER} {capability}",
         r"host2: completed, [1-9]\d+ bytes")
        for capability in ("", "rdma-pin-all")],
    "qemu-block-extra": [
        (target_and(f'qemu-io --image-opts -c "write -P 90 4k 64k" -c "read -P 90 4k 64k" {DISK}'),
         "host2: read 65536/65536 bytes")],
    "qperf": [(f"--until host2 --device mlx5-ib {both('qperf')} -t 1 {name}", rf"host2: +{figure} += +[\d.]+")
              for name, figure in [("rc_bw", "bw"), ("rc_lat", "latency"), ("rc_rdma_read_bw", "bw"),
                                   ("rc_fetch_add_mr", "msg_rate"), ("ver_rc_compare_swap", "msg_rate"),
                                   ("uc_bw", "send_bw"), ("uc_rdma_write_lat", "latency"), ("ud_bw", "send_bw")]],
    "rdmacm-utils": [
        (f"rping -s -C 5 -v :: rping -c -a {SERVER} -C 5 -v", "host2: ping data: rdma-ping-4: EFGHIJ"),
        (f"ucmatose :: ucmatose -s {SERVER}", "host2: return status 0"),
        (f"udaddy :: udaddy -s {SERVER}", "host2: return status 0"),
        (f"--until host2 cmtime :: cmtime -s {SERVER} -c 10", "host2: connect +: +[0-9.]+"),
        (f"rdma_server :: rdma_client -s {SERVER}", "host2: rdma_client: end 0"),
        (f"rdma_xserver :: rdma_xclient -s {SERVER}", "host2: rdma_xclient: end 0"),
        *((f"--device {device} --together stdbuf -oL mckey -m 239.1.1.1 -b {SERVER} :: "
           f"sh -c '{WAIT}; exec mckey -m 239.1.1.1 -s -b 10.77.0.2'", "host1: data transfers complete", "joined")
          for device in ("rxe", "mlx5-ib")),
        (f"--device mlx5 rdma_xserver -c x :: rdma_xclient -c x -s {SERVER}", "host2: rdma_xclient: end 0"),
        (f"--until host2 rdma_xserver -c x :: rdma_xclient -c x -s {SERVER}", f"ibv_create_qp: {XRC} not supported",
         None, None),
        *((f"--device {device} {program} -S 4096 -C 100 :: {program} -s {SERVER} -S 4096 -C 100",
           "host2: custom +4k +100 ")
          for program, device in (("rstream", "rxe"), ("rstream", "siw"), ("riostream", "rxe"))),
        (f"--device mlx5-ib --until host2 udpong -b {SERVER} -S 1024 -C 100 :: "
         f"udpong -s {SERVER} -b 10.77.0.2 -S 1024 -C 100", "host2: custom +1k +100 "),
        (f"--until host2 rcopy :: rcopy /etc/services {SERVER}:{{files}}/copy", r"host2: \d+ bytes in "),
        ("cmp /etc/services {files}/copy", ""),
        (f"gcc {HERE}/tcp.c -o {{files}}/tcp", ""),
        (f"sh -c '{RSPRELOAD} {{files}}/tcp' :: sh -c '{RSPRELOAD} {{files}}/tcp {SERVER}'",
         r"host1: sent by TCP\nhost1: [1-9]")],
    "rustc": [(f"rustc --edition 2021 -O {HERE}/devices.rs -o {{files}}/devices", ""),
              (both("{files}/devices", "--until host2"), "host2: connect: Connection refused")],
    "srptools": [refused("ibsrpdm", UMAD, "--device mlx5-ib")],
    "ucx-utils": [("ucx_info -d", "host1: .*Device: rxe0:1"),
                  (both("env UCX_TLS=rc,ud,self UCX_NET_DEVICES=mlx5_0:1 ucx_perftest -t tag_lat -n 100", "--device mlx5"),
                   r"host2: Final: +100 ")],
    "tgt": [(target_and(f"iscsi-inq {URL}"), "host2: Product:VIRTUAL-DISK")],
}


def rows():
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def installed(package):
    """The version of an installed package without the parts that Debian adds, or None."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${source:Upstream-Version}", package],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    status, _, version = done.stdout.partition(" ")
    return re.split("[+~]", version)[0] if status == "installed" else None


def try_package(fixture, package, cases):
    if not installed(package):
        raise Missing(f"no package {package} here: tools/setup debian")
    files = fixture.work / "tmp" / "test-files"
    files.mkdir()
    files.chmod(0o777)
    for arguments, pattern, *rest in cases:
        begun, status = [*rest, *DEFAULTS[len(rest):]]
        words = shlex.split(arguments.replace("{files}", str(files)).replace("{sim}", fixture.program))
        for old in files.iterdir():
            if old.name in ("ready", "disk", "mon"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        prefix = [] if words[0] == "explore" else ["--prefix"]
        done = run_when(fixture, begun, *words) if begun else fixture.sim(*prefix, *words)
        fixture.expect(done, tuple(range(256)) if status is None else status, pattern)
        print(f"# {shlex.join(words)}", flush=True)


# Packages that tests of another project try.
ELSEWHERE = set(os.environ.get("TRIED_ELSEWHERE", "").split())


def check_list():
    """Debian has no other package that depends on the two libraries."""
    done = subprocess.run(["apt-cache", "rdepends", "libibverbs1", "librdmacm1"], text=True, stdout=subprocess.PIPE,
                          check=False)
    found = {line.strip(" |") for line in done.stdout.splitlines() if line.startswith(" ")}
    covered = {name for row in rows() for name in [row[0], *row[2].split()]} | ELSEWHERE | {"libibverbs1", "librdmacm1"}
    if missing := found - covered:
        sys.exit(f"packages.tsv lacks packages that depend on libibverbs1 or librdmacm1: {sorted(missing)}")


def write():
    """Stores the versions of this machine."""
    text = TABLE.read_text(encoding="utf-8")
    for package, version, *_ in rows():
        text = text.replace(f"\n{package}\t{version}\t", f"\n{package}\t{installed(package) or version}\t")
    TABLE.write_text(text, encoding="utf-8")


def main():
    if sys.argv[1:] == ["write"]:
        return write()
    tried, listed = set(PACKAGES), {row[0] for row in rows()}
    if tried != listed:
        sys.exit(f"packages.tsv and the cases differ: {sorted(tried ^ listed)}")
    check_list()
    for name in PACKAGES:
        fixture.test(name)(lambda on, name=name: try_package(on, name, PACKAGES[name]))
    return fixture.main(__doc__)


if __name__ == "__main__":
    main()
