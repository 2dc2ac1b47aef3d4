# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-info, compared with other programs and with registrations of the test itself."""

import glob
import hashlib
import ipaddress
import json
import os
import re
import stat
import subprocess

import jsonschema

from harness import lab
from harness.case import BOTH_BUILDS, PORT, case
from harness.side import ALL_USAGES, FLUSH_PERSISTENT, FLUSH_VISIBILITY, LOCAL_USAGES, expect

from .limits import as_user
from .threads import MEMCHECK

PROGRAM = os.path.join(lab.BUILD_DIR, "programs", "info", "rpma-info")
SOURCE = os.path.join(os.path.dirname(__file__), "..", "..", "..")
NO_DEVICE, NOT_REGISTERED = 3, 5
SIZE = 1 << 20
LITTLE = 32768


def ask(test, *arguments, number=1, wrapper=()):
    """The answers of a run on a host, checked against the schema."""
    command = lab.on(lab.host(number), *wrapper, PROGRAM, *arguments)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    test.transcript.append(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    expect(done.stderr, "", "standard error")
    found = json.loads(done.stdout)
    with open(os.path.join(SOURCE, "programs/info/rpma-info.schema.json"), encoding="utf-8") as file:
        jsonschema.Draft7Validator(json.load(file)).validate(found)
    expect(done.returncode, found["exit_status"], "exit status")
    return found


def check_text(test, found, *arguments):
    """The text output has the same sentences as the JSON, and fits a terminal."""
    done = subprocess.run(lab.on(lab.host(1), PROGRAM, *arguments), capture_output=True, text=True)
    test.transcript.append(done.stdout)
    expect([done.returncode, done.stderr], [found["exit_status"], ""], "end")
    expect([line for line in done.stdout.splitlines() if len(line) > 80], [], "wide lines")
    words = " ".join(done.stdout.split())
    expect([sentence for sentence in sentences(found) if sentence not in words], [], "not in the text")


def sentences(found):
    """Texts "why" and "help" of each negative answer; the summary repeats the question itself."""
    for key, value in found.items() if isinstance(found, dict) else enumerate(found):
        if isinstance(value, (dict, list)) and key != "asked":
            yield from sentences(value)
        elif key in ("why", "help"):
            yield " ".join(value.split())
    yield from (found.get("traps", []) if isinstance(found, dict) else [])


def device_of(found, name):
    return next(device for device in found["devices"] if device["name"] == name)


def own_device(test, number=1):
    """The name of the device of a host, as a program of its own finds it."""
    return test.side(number).device


def devinfo(name):
    """What ibv_devinfo says: {key: value}."""
    return dict(re.findall(r"^\s+(\w+):\s+(\S+)", lab.run("ibv_devinfo", "-v", "-d", name),
                           flags=re.M))


def gids(name):
    """The addresses in the device's table, as the kernel shows them, without empty places."""
    shown = {ipaddress.IPv6Address(gid.strip()) for gid in lab.gids(name)}
    return shown - {ipaddress.IPv6Address(0)}


@case("info", "devices, ports and limits are those that ibv_devinfo and rdma show")
def devices(test):
    found = ask(test)
    shown = {row["ifname"]: row for row in json.loads(lab.run("rdma", "-j", "link", "show"))}
    expect({device["name"] for device in found["devices"]}, set(shown), "devices")
    for device in found["devices"]:
        wanted = devinfo(device["name"])
        limits, port = device["limits"], device["ports"][0]
        for key, name in (("cq_size", "max_cqe"), ("sq_size", "max_qp_wr"), ("rq_size", "max_qp_wr"),
                          ("srq_size", "max_srq_wr"), ("max_sge", "max_sge"),
                          ("max_read_sge", "max_sge_rd"), ("max_srq_sge", "max_srq_sge"),
                          ("queue_pairs", "max_qp"), ("completion_queues", "max_cq"),
                          ("completion_vectors", "num_comp_vectors"),
                          ("regions", "max_mr"), ("region_size", "max_mr_size")):
            expect(limits[key], int(wanted[name], 0), name)
        expect("PORT_" + port["state"].upper(), wanted["state"], "state")
        expect(port["state"].upper(), shown[device["name"]]["state"], "state of rdma")
        expect([port["active_mtu"], port["max_mtu"], port["link_layer"]],
               [int(wanted["active_mtu"]), int(wanted["max_mtu"]), wanted["link_layer"]], "port")
        expect({ipaddress.IPv6Address(gid["gid"]) for gid in port["gids"]}, gids(device["name"]), "GIDs")
        expect([device["transport"], device["firmware"]], [wanted["transport"], wanted["fw_ver"]],
               "device")
        expect([device["node_guid"], port["lid"] or 0],
               [wanted["node_guid"] if wanted["node_guid"].strip("0:") else None, int(wanted["port_lid"])], "GUID, LID")
        check_link(port, wanted, device["name"])
    if lab.IS_VIRTUAL:
        expect({device["driver"] for device in found["devices"]},
               {{"rxe": "rdma_rxe"}.get(lab.PROVIDER, lab.PROVIDER)}, "drivers")
        expect({device["rpma_devices"] for device in found["devices"]}, {lab.PROVIDER}, "their names")
    check_text(test, found)


def check_link(port, wanted, name):
    """Width and speed are those of ibv_devinfo: "4X (2)", "25.0 Gbps (32)"; the kernel rounds their product."""
    if not re.fullmatch(r"[\d.]+", wanted["active_speed"]) or port["state"] != "active":
        expect([port["rate_gbit"], port["width"], port["speed"]], [None] * 3, "link of unknown speed")
        return
    expect(f"{port['width']}X", wanted["active_width"], "width")
    rate = port["width"] * float(wanted["active_speed"])
    expect(abs(port["rate_gbit"] - rate) <= rate / 10, True, f"{port['rate_gbit']} Gbit/s of {name}")


@case("info", "the addresses of a device are those of its network device in this namespace")
def addresses(test):
    name = own_device(test)
    found = ask(test)
    device = device_of(found, name)
    links = json.loads(lab.run(*lab.on(lab.host(1), "rdma", "-j", "link", "show")))
    netdev = next(row["netdev"] for row in links if row["ifname"] == name)
    shown = json.loads(lab.run(*lab.on(lab.host(1), "ip", "-j", "address", "show", "dev", netdev)))[0]
    wanted = {entry["local"] for entry in shown["addr_info"]}
    expect({entry["address"].split("%")[0] for entry in device["addresses"]}, wanted, "addresses")
    expect({(entry["netdev"], entry["netdev_mtu"]) for entry in device["addresses"]},
           {(netdev, shown["mtu"])}, "network device")
    expect(device["usable"], {"is": True}, "usable")
    others = [device for device in found["devices"] if device["name"] != name]
    if lab.IS_VIRTUAL:
        expect([(other["addresses"], other["usable"]["is"]) for other in others],
               [([], False)] * len(others), "devices of other namespaces")


@case("info", "an address of this machine or of another leads to the device of this one")
def by_address(test):
    name = own_device(test)
    for number, remote in ((1, False), (2, True)):
        if remote and lab.host(2) == lab.host(1):
            continue
        found = ask(test, lab.address(lab.host(number)))
        expect([found["asked"]["behind"], found["asked"]["remote"], found["exit_status"]],
               [name, remote, 0], lab.host(number))
        expect([device["name"] for device in found["devices"]], [name], "devices")
    # The lab has no route to the address. 127.0.0.1 would not do: rdma_rxe serves it.
    unreachable = [["192.0.2.1"]] if lab.IS_VIRTUAL else []
    for wrong in (*unreachable, ["--device", "no-such-device"]):
        found = ask(test, *wrong)
        expect([found["devices"], found["exit_status"]], [[], NO_DEVICE], wrong)


@case("info", "operations and inline bytes are those that the library uses and takes",
      builds=BOTH_BUILDS)
def operations(test):
    side = test.side(1, environment={"RPMA_LOG": "info"})
    side("peer")
    said = re.search(r"native atomic write: (\w+), native flush: (\w+), on-demand paging: (\w+)",
                     test.said()).groups()
    device = device_of(ask(test), side.device)
    told = [device["operations"][key]["is"]
            for key in ("native_atomic_write", "native_flush", "on_demand_paging")]
    expect(told, [word == "yes" for word in said], "operations")
    expect(told[2], not lab.lacks(lab.ON_DEMAND_PAGING), "on-demand paging beside ibv_devinfo")
    if lab.IS_VIRTUAL:
        expect(told[:2], [lab.PROVIDER == "rxe" and test.build == "native"] * 2, "native operations")
    most = device["limits"]["inline_size"]
    side("cfg", cfg=0, inline=most)
    side("req-new", req=0, addr=side.address, port=PORT, cfg=0)
    side("cfg", cfg=1, inline=most + 1)
    side.refuses("RPMA_E_PROVIDER", "req-new", req=1, addr=side.address, port=PORT, cfg=1)
    emulated = device_of(ask(test, wrapper=("env", "RPMA_FLUSH=emulated")), side.device)
    expect(emulated["operations"]["native_flush"]["is"], False, "with RPMA_FLUSH=emulated")


@case("info", "a port that is down: the device cannot be used, and its network device is named")
def port_down(test):
    lab.need_virtual("a network device that can be taken down")
    name = own_device(test)
    up = lab.on(lab.host(1), "ip", "link", "set", "veth0", "up")
    test.undo.callback(wait_until_usable, test, name)
    test.undo.callback(lab.run, *up)
    lab.run(*lab.on(lab.host(1), "ip", "link", "set", "veth0", "down"))
    found = ask(test, "--device", name)
    device = found["devices"][0]
    expect([found["exit_status"], device["usable"]["is"]], [NO_DEVICE, False], "with the port down")
    expect([device["ports"][0]["active"]["is"], "PORT_" + device["ports"][0]["state"].upper()],
           [False, devinfo(name)["state"]], "port")
    expect("veth0 up" in device["usable"]["help"], True, device["usable"]["help"])


def wait_until_usable(test, name):
    test.wait_until_equal(lambda: ask(test, "--device", name)["exit_status"], 0, "port of the device")


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def where(kind):
    """(path, what rpma-info has to call it)."""
    if kind == "device DAX":
        return lab.need(lab.DEVDAX, "device DAX")
    directory = lab.FSDAX if kind == "FS-DAX" else "/var/tmp"
    return os.path.join(lab.need(directory, "FS-DAX file system"), "rpma-info")


def registers(side, number, path, usage, is_sync):
    """Whether rpma_mr_reg() takes as much memory in the peer program as rpma-info tries."""
    side("memory", mr=number, size=SIZE, file=path, sync=is_sync)
    return side.code("reg", mr=number, usage=usage) == "ok"


@case("info", "--memory with {kind}: kind and registrations are as another program finds them",
      [{"kind": kind} for kind in ("device DAX", "FS-DAX", "file")])
def memory(test, kind):
    path = where(kind)
    side = test.side(1)
    side("peer")
    if kind != "device DAX":
        test.undo.callback(os.remove, path)
        with open(path, "wb") as file:
            file.write(os.urandom(SIZE))
        before = digest(path)
    found = ask(test, "--device", side.device, "--memory", path)
    if kind != "device DAX":
        expect(digest(path), before, "content")
    told, on_device = found["memory"], found["devices"][0]["registration"]
    system = lab.run("stat", "-f", "-c", "%T", path).strip()
    expect(told["kind"], "tmpfs" if kind == "file" and system == "tmpfs" else kind, f"kind on {system}")
    is_dax = kind in ("device DAX", "FS-DAX")
    expect([told["persistent"]["is"], told["map_sync"]],
           [is_dax, {"device DAX": None, "FS-DAX": True}.get(kind, False)], "memory")
    usages = {"usage_plain": LOCAL_USAGES, "usage_visibility": LOCAL_USAGES | FLUSH_VISIBILITY,
              "usage_persistent": LOCAL_USAGES | FLUSH_PERSISTENT}
    for number, (key, usage) in enumerate(usages.items()):
        expect(on_device[key]["is"], registers(side, number, path, usage, int(kind == "FS-DAX")), key)
    expect(found["exit_status"], 0 if on_device["usage_plain"]["is"] else NOT_REGISTERED, "status")
    check_flush(test, kind, told, on_device)
    check_cxl(kind, told["cxl"])
    check_text(test, found, "--device", side.device, "--memory", path)


def check_cxl(kind, told):
    """rpma-info and cxl-list(1) agree about the device behind the memory."""
    place = {"FS-DAX": 0, "device DAX": 1}.get(kind)
    if not lab.BEHIND_CXL or place is None:
        expect(told, None, "memory behind CXL")
        return
    device, = told["devices"]
    shown, = json.loads(lab.run("cxl", "list", "-M", "-m", device["memdev"]))
    expect([device["persistent_size"], int(device["serial"], 0)],
           [shown["pmem_size"], shown["serial"]], "cxl list -M")
    # tools/lab.d/vm.sh numbers the devices.
    expect(shown["serial"], place + 1, f"device of {kind}")
    shown, = json.loads(lab.run("cxl", "list", "-R", "-r", told["region"]))
    expect([told["mode"], told["size"]], [shown["type"], shown["size"]], "cxl list -R")


@case("info", "FS-DAX and device DAX of each host: behind CXL one device, port and bridge each, otherwise shared")
def memory_of_hosts(test):
    found = set()
    for number in range(1, len(lab.HOSTS) + 1):
        for kind, name in (("FSDAX", "/rpma-info"), ("DEVDAX", "")):
            path = lab.need(lab.memory_of(kind, number), f"{kind} of {lab.host(number)}") + name
            if name and not os.path.exists(path):
                test.undo.callback(os.remove, path)
                with open(path, "wb") as file:
                    file.truncate(SIZE)
            found.add(root_port(ask(test, "--memory", path, number=number)["memory"]["cxl"]))
    expect(len(found), 2 * len(lab.HOSTS) if lab.BEHIND_CXL else 1, f"places in {found}")


def root_port(cxl):
    """The host bridge and the root port of the only device of a region; None without CXL."""
    if not cxl:
        return None
    device, = cxl["devices"]
    *_, bridge, port, _, _ = os.path.realpath(f"/sys/bus/cxl/devices/{device['memdev']}").split("/")
    return bridge, port


def check_flush(test, kind, told, on_device):
    """
    docs/lab.md: a persistent flush works on DAX where it registers and flush is native, not on
    DRAM.
    """
    is_dax = kind in ("device DAX", "FS-DAX")
    survives_in_caches = told["persistence_domain"] == "cpu_cache"
    if lab.IS_VIRTUAL:
        wanted = is_dax and on_device["usage_persistent"]["is"] and (test.is_native or survives_in_caches)
        # Nobody knows what a power failure spares of memory behind CXL.
        known = None if wanted and lab.BEHIND_CXL else wanted
        expect(on_device["persistent_flush"]["is"], known, "persistent flush")
        expect(on_device["native_persistent_flush"], wanted and test.is_native, "of the device")
        paged = on_device["usage_plain"]["is"] and not on_device["pinned"]["is"]
        expect([kind == "FS-DAX" and not lab.lacks(lab.ON_DEMAND_PAGING),
                any("4,096" in remark for remark in on_device["remarks"])],
               [paged, paged and lab.PROVIDER == "rxe"], "on-demand paging")


@case("info", "a user with little memory to lock: what does not register, and why")
def memlock(test):
    # With so little memory libibverbs writes a warning, which rpma-info suppresses.
    wrapper = as_user("prlimit", f"--memlock={LITTLE}:{LITTLE}")
    path = where("tmpfs")
    test.undo.callback(os.remove, path)
    with open(path, "wb") as file:
        file.truncate(SIZE)
    os.chmod(path, 0o666)
    side = test.start(1, "user", wrapper=wrapper)
    test.prepare(side)("peer")
    side("memory", mr=0, size=SIZE)
    side.begin("reg", mr=0, usage=ALL_USAGES)
    errno = side.take()[1]["errno"]
    found = ask(test, "--device", side.device, "--memory", path, wrapper=wrapper)
    refused = found["devices"][0]["registration"]["usage_plain"]
    expect([refused["is"], f"({errno})" in refused["why"], "ulimit -l" in refused["help"]],
           [False, True, True], refused)
    limit = found["limits"]["locked_memory"]
    expect([limit["soft"], limit["unlimited"]["is"], found["exit_status"]],
           [LITTLE, False, NOT_REGISTERED], "limit")


@case("info", "a user that may not open {nodes} reads so",
      [{"nodes": "/dev/infiniband/uverbs*"}, {"nodes": "/dev/infiniband/rdma_cm"}])
def closed(test, nodes):
    wrapper = as_user()
    for node in glob.glob(nodes):
        test.undo.callback(os.chmod, node, stat.S_IMODE(os.stat(node).st_mode))
        os.chmod(node, 0o600)
    found = ask(test, wrapper=wrapper)
    expect([found["exit_status"], found["connection_manager"]["is"]],
           [NO_DEVICE, nodes.endswith("*")], "answer")
    for device in found["devices"]:
        expect(device["usable"]["is"], False, device["name"])
        if nodes.endswith("*"):
            expect(device["node"] + ": Permission denied" in device["usable"]["why"], True,
                   device["usable"]["why"])


@case("info", "memcheck finds nothing", limit=300)
def memcheck(test):
    path = lab.need(lab.DEVDAX, "device DAX")
    done = subprocess.run(lab.on(lab.host(1), *MEMCHECK, PROGRAM, "--memory", path),
                          capture_output=True, text=True)
    expect([done.returncode, done.stderr], [0, ""], "rpma-info in valgrind")
