# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-info, compared with other programs and with registrations by the test itself."""

import ipaddress
import json
import os
import re
import subprocess

import jsonschema

from harness import lab
from harness.case import BOTH_BUILDS, PORT, case
from harness.side import FLUSH_PERSISTENT, FLUSH_VISIBILITY, LOCAL_USAGES, expect

PROGRAM = os.path.join(lab.BUILD_DIR, "programs", "info", "rpma-info")
NO_DEVICE, NOT_REGISTERED = 3, 5
SIZE = 1 << 20


def run_info(test, *arguments, number=1, wrapper=()):
    """Runs rpma-info on a host. Returns its output, checked against the schema."""
    command = lab.on(lab.host(number), *wrapper, PROGRAM, *arguments)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    test.transcript.append(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    expect(done.stderr, "", "standard error")
    found = json.loads(done.stdout)
    with open(os.path.join(lab.CHECKOUT, "programs/info/rpma-info.schema.json"), encoding="utf-8") as file:
        jsonschema.Draft7Validator(json.load(file)).validate(found)
    expect(done.returncode, found["exit_status"], "exit status")
    return found


def device_of(found, name):
    return next(device for device in found["devices"] if device["name"] == name)


def devinfo(name):
    """The output of ibv_devinfo: {key: value}, with numbers as int."""
    shown = re.findall(r"^\s+(\w+):\s+(\S+)", lab.run("ibv_devinfo", "-v", "-d", name), flags=re.M)
    return {key: int(value, 0) if re.fullmatch("0x[0-9a-f]+|0|[1-9][0-9]*", value) else value for key, value in shown}


# rpma-info's limits and their names in ibv_devinfo.
LIMITS = {"cq_size": "max_cqe", "sq_size": "max_qp_wr", "rq_size": "max_qp_wr", "srq_size": "max_srq_wr",
          "max_sge": "max_sge", "max_read_sge": "max_sge_rd", "max_srq_sge": "max_srq_sge", "queue_pairs": "max_qp",
          "max_qp_init_rd_atom": "max_qp_init_rd_atom", "max_qp_rd_atom": "max_qp_rd_atom",
          "completion_queues": "max_cq", "completion_vectors": "num_comp_vectors", "regions": "max_mr",
          "region_size": "max_mr_size"}


@case("info", "devices, ports, limits and addresses equal those of ibv_devinfo, rdma and ip")
def devices(test):
    found = run_info(test)
    links = {row["ifname"]: row for row in json.loads(lab.run("rdma", "-j", "link", "show"))}
    expect({device["name"] for device in found["devices"]}, set(links), "devices")
    for device in found["devices"]:
        port = device["ports"][0]
        reported = {**{name: device["limits"][key] for key, name in LIMITS.items()},
                    **{key: port[key] for key in ("active_mtu", "max_mtu", "link_layer")},
                    "port_lid": port["lid"] or 0, "state": "PORT_" + port["state"].upper(),
                    "transport": device["transport"], "fw_ver": device["firmware"],
                    "vendor_id": device["vendor_id"], "vendor_part_id": device["vendor_part_id"],
                    "atomic_cap": {None: "ATOMIC_NONE", "device": "ATOMIC_HCA", "machine": "ATOMIC_GLOB"}[
                    device["operations"]["atomic_with"]]}
        wanted = devinfo(device["name"])
        expect(reported, {name: wanted[name] for name in reported}, device["name"])
        gids = {ipaddress.IPv6Address(gid.strip()) for gid in lab.gids(device["name"])}
        expect({ipaddress.IPv6Address(gid["gid"]) for gid in port["gids"]}, gids - {ipaddress.IPv6Address(0)}, "GIDs")
        if lab.IS_VIRTUAL:
            expect([device["driver"], device["rpma_devices"]],
                   [{"rxe": "rdma_rxe"}.get(lab.PROVIDER, lab.PROVIDER), lab.PROVIDER], "driver")
    check_addresses(found, test.side(1).device)


def check_addresses(found, name):
    """
    Expects the addresses of the device's network device in this namespace. Devices of other
    namespaces have none here.
    """
    device = device_of(found, name)
    links = json.loads(lab.run(*lab.on(lab.host(1), "rdma", "-j", "link", "show")))
    netdev = next(row["netdev"] for row in links if row["ifname"] == name)
    shown = json.loads(lab.run(*lab.on(lab.host(1), "ip", "-j", "address", "show", "dev", netdev)))[0]
    expect({(entry["address"].split("%")[0], entry["netdev"], entry["netdev_mtu"]) for entry in device["addresses"]},
           {(entry["local"], netdev, shown["mtu"]) for entry in shown["addr_info"]}, "addresses")
    expect(device["usable"], {"is": True}, "usable")
    others = [device for device in found["devices"] if device["name"] != name]
    if lab.IS_VIRTUAL:
        expect([(other["addresses"], other["usable"]["is"]) for other in others],
               [([], False)] * len(others), "devices of other namespaces")


@case("info", "an address of this machine or of another selects the local device")
def by_address(test):
    name = test.side(1).device
    for number, remote in ((1, False), (2, True)):
        if remote and lab.host(2) == lab.host(1):
            continue
        found = run_info(test, lab.address(lab.host(number)))
        expect([found["asked"]["behind"], found["asked"]["remote"], found["exit_status"]],
               [name, remote, 0], lab.host(number))
        expect([device["name"] for device in found["devices"]], [name], "devices")
    # The lab has no route to this address. 127.0.0.1 is unsuitable, because rdma_rxe serves it.
    unreachable = [["192.0.2.1"]] if lab.IS_VIRTUAL else []
    for wrong in (*unreachable, ["--device", "no-such-device"]):
        found = run_info(test, *wrong)
        expect([found["devices"], found["exit_status"]], [[], NO_DEVICE], wrong)


@case("info", "operations and inline bytes equal those that the library uses",
      builds=BOTH_BUILDS)
def operations(test):
    side = test.side(1, environment={"RPMA_LOG": "info"})
    logged = re.search(r"native atomic write: (\w+), native flush: (\w+), on-demand paging: (\w+)",
                       test.stderr()).groups()
    device = device_of(run_info(test), side.device)
    reported = [device["operations"][key]["is"]
                for key in ("native_atomic_write", "native_flush", "on_demand_paging")]
    expect(reported, [word == "yes" for word in logged], "operations")
    expect(reported[2], not lab.lacks(lab.ON_DEMAND_PAGING), "on-demand paging, compared with ibv_devinfo")
    if lab.IS_VIRTUAL:
        expect(reported[:2], [lab.PROVIDER == "rxe" and test.build == "native"] * 2, "native operations")
    most = device["limits"]["inline_size"]
    side("cfg", cfg=0, inline=most)
    side("req-new", req=0, addr=side.address, port=PORT, cfg=0)
    side("cfg", cfg=1, inline=most + 1)
    side.refuses("RPMA_E_PROVIDER", "req-new", req=1, addr=side.address, port=PORT, cfg=1)
    emulated = device_of(run_info(test, wrapper=("env", "RPMA_FLUSH=emulated")), side.device)
    expect(emulated["operations"]["native_flush"]["is"], False, "with RPMA_FLUSH=emulated")


def memory_path(kind):
    """(path, the kind that rpma-info must report)."""
    if kind == "device DAX":
        return lab.need(lab.DEVDAX, "device DAX")
    directory = lab.FSDAX if kind == "FS-DAX" else "/var/tmp"
    return os.path.join(lab.need(directory, "FS-DAX file system"), "rpma-info")


def registers(side, number, path, usage, is_sync):
    """True if the peer program can register as much memory as rpma-info tries."""
    return side.code("reg", mr=number, size=SIZE, file=path, sync=is_sync, usage=usage) == "ok"


@case("info", "--memory with {kind}: kind and registrations equal those of another program",
      [{"kind": kind} for kind in ("device DAX", "FS-DAX", "file")])
def memory(test, kind):
    path = memory_path(kind)
    side = test.side(1)
    if kind != "device DAX":
        test.undo.callback(os.remove, path)
        with open(path, "wb") as file:
            file.write(content := os.urandom(SIZE))
    found = run_info(test, "--device", side.device, "--memory", path)
    if kind != "device DAX":
        with open(path, "rb") as file:
            expect(file.read() == content, True, "unchanged content")
    reported, on_device = found["memory"], found["devices"][0]["registration"]
    system = lab.run("stat", "-f", "-c", "%T", path).strip()
    expect(reported["kind"], "tmpfs" if kind == "file" and system == "tmpfs" else kind, f"kind on {system}")
    is_dax = kind in ("device DAX", "FS-DAX")
    expect([reported["persistent"]["is"], reported["map_sync"]],
           [is_dax, {"device DAX": None, "FS-DAX": True}.get(kind, False)], "memory")
    usages = {"usage_plain": LOCAL_USAGES, "usage_visibility": LOCAL_USAGES | FLUSH_VISIBILITY,
              "usage_persistent": LOCAL_USAGES | FLUSH_PERSISTENT}
    for number, (key, usage) in enumerate(usages.items()):
        expect(on_device[key]["is"], registers(side, number, path, usage, int(kind == "FS-DAX")), key)
    expect(found["exit_status"], 0 if on_device["usage_plain"]["is"] else NOT_REGISTERED, "status")
    check_flush(test, kind, reported, on_device)
    check_cxl(kind, reported["cxl"])


def check_cxl(kind, reported):
    """rpma-info and cxl-list(1) agree about the device that has the memory."""
    place = {"FS-DAX": 0, "device DAX": 1}.get(kind)
    if not lab.ON_CXL or place is None:
        expect(reported, None, "CXL memory")
        return
    device, = reported["devices"]
    shown, = json.loads(lab.run("cxl", "list", "-M", "-m", device["memdev"]))
    expect([device["persistent_size"], int(device["serial"], 0)],
           [shown["pmem_size"], shown["serial"]], "cxl list -M")
    # tools/lab.d/vm.sh numbers the devices.
    expect(shown["serial"], place + 1, f"device of {kind}")
    shown, = json.loads(lab.run("cxl", "list", "-R", "-r", reported["region"]))
    expect([reported["mode"], reported["size"]], [shown["type"], shown["size"]], "cxl list -R")


def check_flush(test, kind, reported, on_device):
    """
    docs/lab.md: a persistent flush works on DAX that can be registered and with native flush, but
    not on DRAM.
    """
    is_dax = kind in ("device DAX", "FS-DAX")
    survives_in_caches = reported["persistence_domain"] == "cpu_cache"
    if lab.IS_VIRTUAL:
        wanted = is_dax and on_device["usage_persistent"]["is"] and (test.is_native or survives_in_caches)
        # It is unknown which data in CXL memory survives a power failure.
        known = None if wanted and lab.ON_CXL else wanted
        expect(on_device["persistent_flush"]["is"], known, "persistent flush")
        expect(on_device["native_persistent_flush"], wanted and test.is_native, "of the device")
        paged = on_device["usage_plain"]["is"] and not on_device["pinned"]["is"]
        expect([kind == "FS-DAX" and not lab.lacks(lab.ON_DEMAND_PAGING),
                any("4,096" in remark for remark in on_device["remarks"])],
               [paged, paged and lab.PROVIDER == "rxe"], "on-demand paging")
