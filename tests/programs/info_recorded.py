#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The conclusions of rpma-info on recorded machines: info_recorded.py PROGRAM TABLE plain|native

PROGRAM is rpma-info over info_machine.cc. TABLE has each fact of its text and JSON below the
machines with this fact in their output. With "record" as the last argument, a plain build
replaces the table by the output of the program; then read the changes as a user of these
devices. A machine "plain:…" is only for builds of librpma without native operations; the lab
tests the others.
"""

import difflib
import json
import os
import pathlib
import re
import resource
import sys
import tempfile

sys.dont_write_bytecode = True

import harness
from harness import expect, run, test

PROGRAM, TABLE, BUILD = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
NO_MEMORY = 4  # the exit status
ROCE1, ROCE2, IB = 1, 2, 0  # rdma-core, libibverbs/verbs.h, enum ibv_gid_type
NO_ATOMICS, ATOMIC_HCA, ATOMIC_GLOB = 0, 1, 2  # enum ibv_atomic_cap; rpma_devices(7) has the drivers' values
ETHERNET, INFINIBAND = 2, 1  # IBV_LINK_LAYER_*
IP6 = "fe80::5054:ff:fe00:1"
# The headings and labels of the text, in order.
LABELS = """This|librpma|rdma-core|kernel|connection manager|locked memory|descriptors|environment|address|devices|\
Device|usable|driver|traps|vendor|node GUID|NUMA node|addresses|port|link|LID|GIDs|flush|atomic write|remote atomics|on-demand paging|\
send queue|\
receive queue|completion queue|shared receives|SGEs|SGEs of a read|SGEs, shared|inline bytes|reads and atomics|queue pairs|regions|registration|\
flush, visibility|flush, persistent|pinned|paged on demand|persistent flush|remarks|Memory|kind|size|alignment|\
MAP_SYNC|power failure|persistent|CXL region|CXL device|GPF, device|GPF, port|dirty shutdowns|poison list|\
direct write|Plan|open files|completions|queue memory|mappings|local ports|time to connect|irdma_0""".split("|")

# Limits that only the firmware determines are round numbers; all others are from Linux 7.3. Paths
# are relative to include/ or drivers/infiniband/. max_sge is the smaller limit of sends and
# receives (core/uverbs_cmd.c, copy_query_dev_fields()); max_inline_data is the maximum of a queue
# pair.
FIRMWARE = {"max_qp": 131072, "max_cq": 65536, "max_mr": 1048576, "max_cqe": 65535, "max_qp_wr": 16384,
            "max_srq_wr": 16384, "max_sge": 16, "max_sge_rd": 16, "max_srq_sge": 16,
            "max_mr_size": 2**64 - 1, "num_comp_vectors": 8, "vendor_part_id": 4119, "atomic_cap": NO_ATOMICS,
            "max_qp_init_rd_atom": 16, "max_qp_rd_atom": 32}
ROCE = {"transport": "InfiniBand", "link_layer": ETHERNET, "state": 4, "active_mtu": 3, "max_mtu": 5,
        "active_speed": 32, "node_guid": 0x5054_00ff_fe00_0001, "fw_ver": "1.2.3",
        "gid": [f"{ROCE1} {IP6}", f"{ROCE2} {IP6}", f"{ROCE1} ::ffff:192.0.2.1", f"{ROCE2} ::ffff:192.0.2.1"],
        "address": ["eth0 192.0.2.1 leads", f"eth0 {IP6} leads"], "remote": ["eth0 192.0.2.2 leads"],
        **FIRMWARE}
# core/cache.c, config_non_roce_gid_cache(): an iWARP GID also has its network device.
IWARP = {**ROCE, "transport": "iWARP", "gid": [f"{IB} 5054:1::"]}
DEVICES = {
    # An adapter on InfiniBand. hw/mlx5/main.c, mlx5_ib_query_device(): max_sge, max_srq_sge, max_mr_size;
    # linux/mlx5/device.h: MLX5_MAX_SGE_RD; hw/mlx5/odp.c, internal_fill_odp_caps()
    "mlx5": {**ROCE, "kernel": "mlx5_core", "vendor_id": 0x2c9, "atomic_cap": ATOMIC_HCA, "link_layer": INFINIBAND, "lid": 17,
             "active_mtu": 5, "gid": [f"{IB} fe80::5054:ff:fe00:1"], "max_sge": 30, "max_sge_rd": 30,
             "max_srq_sge": 31, "odp": 1, "max_inline_data": 1024, "rate": "100 Gb/sec (4X EDR)"},
    # hw/irdma/verbs.c, irdma_query_device(); hw/irdma/defs.h: IRDMA_MAX_QP_WRS(8), IRDMA_MAX_SRQ_WRS;
    # hw/irdma/user.h: IRDMA_MAX_MR_SIZE, IRDMA_MAX_WQ_FRAGMENT_COUNT, IRDMA_MAX_SGE_RD, IRDMA_MAX_INLINE_DATA_SIZE
    "irdma": {**ROCE, "kernel": "ice", "vendor_id": 0x8086, "max_qp_wr": 4063, "max_srq_wr": 32767,
              "max_sge": 13, "max_sge_rd": 13, "max_srq_sge": 13, "max_mr_size": 0x200000000000,
              "max_inline_data": 101, "rate": "200 Gb/sec (4X HDR)"},
    # sw/rxe/rxe_param.h of Linux 6.1, which has neither flush nor atomic write nor on-demand paging
    "rxe": {**ROCE, "kernel": None, "vendor_id": 0xffffff, "vendor_part_id": 0, "atomic_cap": ATOMIC_HCA,
            "max_qp_init_rd_atom": 128, "max_qp_rd_atom": 128, "fw_ver": "", "max_qp": 2**20 - 16, "max_cq": 2**20,
            "max_mr": 2**19 - 1, "max_cqe": 2**15 - 1, "max_qp_wr": 2**20, "max_srq_wr": 2**20,
            "max_sge": 32, "max_sge_rd": 32, "max_srq_sge": 27, "max_inline_data": 512, "num_comp_vectors": 2,
            "rate": "2.5 Gb/sec (1X SDR)", "active_speed": 1,
            "/sys/class/infiniband/rxe_0/parent": "eth0"},
    # sw/siw/siw.h; uapi/rdma/siw-abi.h: SIW_MAX_SGE, SIW_MAX_INLINE; sw/siw/siw_verbs.c,
    # siw_query_port(): the speed of the network device, 10 Gbit/s in the lab
    "siw": {**IWARP, "kernel": None, "vendor_id": 0x626d74, "vendor_part_id": 1,
            "max_qp_init_rd_atom": 128, "max_qp_rd_atom": 128, "fw_ver": "", "max_qp": 102400, "max_cq": 102400,
            "max_mr": 1024000, "max_cqe": 3276800, "max_qp_wr": 32768, "max_srq_wr": 327680, "max_sge": 6,
            "max_sge_rd": 1, "max_srq_sge": 6, "max_inline_data": 80, "active_speed": 8,
            "rate": "10 Gb/sec (1X FDR10)"},
}
# uapi/rdma/ib_user_verbs.h: IB_UVERBS_DEVICE_FLUSH_GLOBAL, _FLUSH_PERSISTENT, _ATOMIC_WRITE;
# sw/rxe/rxe_param.h, RXE_DEVICE_CAP_FLAGS; sw/rxe/rxe.c, rxe_init_device_param(): on-demand paging
NEW_RXE = {**DEVICES["rxe"], "device_cap_flags_ex": 7 << 38, "odp": 1}

NONE = {**DEVICES["siw"], "listed": "no", "address": []}
MODULES = "/lib/modules/7.3.0/modules.dep"
REGION = "/sys/devices/LNXSYSTM:00/ACPI0012:00/ndbus0/region0"


def fsdax(domain, map_sync=1):
    """ext4 with -o dax on a namespace of an NVDIMM; 0x200000 is STATX_ATTR_DAX."""
    place = REGION + "/pfn0.1/block/pmem0"
    return {"memory": "fsdax", "f_type": 0xef53, "stx_attributes": 0x200000, "map_sync": map_sync,
            "/sys/dev/block/259:0": "-> " + place, place + "/size": 8, REGION + "/devtype": "nd_pmem",
            REGION + "/persistence_domain": domain, os.path.dirname(REGION) + "/provider": "ACPI.NFIT"}


def devdax(place, size=2 << 20, align=4096, **files):
    return {"memory": "devdax", "align": align, "/sys/dev/char/251:0": "-> " + place, place + "/size": size,
            place + "/align": align, place + "/subsystem": "-> /sys/bus/dax",
            **{REGION + "/" + name: value for name, value in files.items()}}


def cxl():
    """The region of the lab's machine, as recorded in cxl.sysfs."""
    found = {}
    for line in (TABLE.parent / "cxl.sysfs").read_text(encoding="ascii").splitlines():
        path, kind, value = (line.split(" ", 2) + [""])[:3]
        if path.startswith("/sys") and kind in ("=", "->"):
            found[path] = value if kind == "=" else "-> " + value
    region = next(path for path in found if path.endswith("/region0/persistence_domain"))
    return {**devdax(os.path.dirname(region) + "/dax0.0/dax0.0"), **found}


MEMORIES = {
    "page cache": {"memory": "file", "f_type": 0xef53},
    "tmpfs": {"memory": "tmpfs", "f_type": 0x01021994},
    "huge pages": {"memory": "hugetlbfs", "f_type": 0x958458f6},
    "fsdax": fsdax("memory_controller"),
    "fsdax, eADR": fsdax("cpu_cache"),
    "fsdax without MAP_SYNC": fsdax("memory_controller", map_sync=0),
    "devdax": devdax(REGION + "/dax0.0/dax0.0", devtype="nd_pmem", persistence_domain="memory_controller"),
    "devdax of DRAM": devdax("/sys/devices/platform/hmem.0/dax0.0", size=5 << 20, align=2 << 20),
    "devdax, legacy": devdax(REGION + "/dax0.0/dax0.0", devtype="nd_volatile"),
    "cxl": cxl(),
    "disabled": devdax(REGION + "/dax0.0/dax0.0", size=0),
    "unaligned": devdax(REGION + "/dax0.0/dax0.0", align=0),
    "not mapped": {**devdax(REGION + "/dax0.0/dax0.0"), "mmap_error": 11},
}
MACHINES = {
    **{name: (settings, None, {}) for name, settings in DEVICES.items()},
    "mlx5, page cache": (DEVICES["mlx5"], "page cache", {}),
    "mlx5, fsdax": (DEVICES["mlx5"], "fsdax", {}),
    "mlx5, fsdax, eADR": (DEVICES["mlx5"], "fsdax, eADR", {}),
    "mlx5, cxl": (DEVICES["mlx5"], "cxl", {}),
    "irdma, fsdax": (DEVICES["irdma"], "fsdax", {}),
    "irdma, fsdax without MAP_SYNC": (DEVICES["irdma"], "fsdax without MAP_SYNC", {}),
    "irdma, tmpfs": (DEVICES["irdma"], "tmpfs", {}),
    "irdma, devdax": (DEVICES["irdma"], "devdax", {}),
    "siw, devdax of DRAM": (DEVICES["siw"], "devdax of DRAM", {}),
    "irdma, devdax, legacy": (DEVICES["irdma"], "devdax, legacy", {}),
    "irdma, huge pages": (DEVICES["irdma"], "huge pages", {}),
    "siw, devdax": (DEVICES["siw"], "devdax", {}),
    "siw, cxl": (DEVICES["siw"], "cxl", {}),
    "plain:rxe, fsdax": (NEW_RXE, "fsdax", {}),
    "plain:rxe, devdax": (NEW_RXE, "devdax", {}),
    "plain:rxe, served, devdax": (NEW_RXE, "devdax", {"served": 1}),
    "plain:rxe, served, fsdax": (NEW_RXE, "fsdax", {"served": 1}),
    "plain:rxe, served, tmpfs": (NEW_RXE, "tmpfs", {"served": 1}),
    "plain:rxe, served, emulated": (NEW_RXE, "devdax", {"served": 1, "RPMA_FLUSH": "emulated"}),
    "irdma, tmpfs, little memory": (DEVICES["irdma"], "tmpfs",
                                    {"/proc/self/status": "CapEff:\t0", "reg_error": 12}),
    "irdma, tmpfs, no memory": (DEVICES["irdma"], "tmpfs", {"reg_error": 12}),
    "irdma, disabled": (DEVICES["irdma"], "disabled", {}),
    "irdma, unaligned": (DEVICES["irdma"], "unaligned", {}),
    "irdma, not mapped": (DEVICES["irdma"], "not mapped", {}),
    "none, no module": (NONE, None, {MODULES: "kernel/a.ko: kernel/rdma_rxe.ko"}),
    "none, module": (NONE, None, {MODULES: "kernel/a.ko:\nkernel/rdma_rxe.ko.xz: kernel/a.ko"}),
    "none, module is loaded": (NONE, None, {"/sys/module/rdma_rxe": "-> /sys/module/rdma_rxe.ko"}),
    "none, no verbs": (NONE, None, {"/sys/class/infiniband": "-> /sys/class/nothing",
                                    "arguments": ["--device", "mlx5_0"],
                                    "/sys/class/infiniband_verbs/abi_version": None}),
    "mlx5, port down": (DEVICES["mlx5"], None, {"state": 1, "lid": 0}),
    "irdma, port down": (DEVICES["irdma"], None, {"state": 1}),
    "irdma, no address": (DEVICES["irdma"], None, {"address": ["eth0 192.0.2.1"]}),
    "siw, no address": (DEVICES["siw"], None, {"address": ["eth0 192.0.2.1"], "max_inline_data": 0}),
    "irdma, other namespace": (DEVICES["irdma"], None, {"address": ["lo 127.0.0.1"]}),
    "irdma, rdma_cm is missing": (DEVICES["irdma"], None, {"address": [], "/dev/infiniband/rdma_cm": None}),
    "irdma, closed": (DEVICES["irdma"], None, {"open_error": 16}),
    "irdma, container": (DEVICES["irdma"], None, {"open_error": 1}),
    "irdma, rdma cgroup": (DEVICES["irdma"], None, {"open_error": 11}),
    "irdma, no file of the device": (DEVICES["irdma"], None, {"open_error": 2, "/dev/infiniband/uverbs0": None}),
    "irdma, files of the process": (DEVICES["irdma"], None, {"open_error": 24}),
    "irdma, files of the machine": (DEVICES["irdma"], None, {"open_error": 23}),
    "irdma, rdma_cm is closed": (DEVICES["irdma"], None, {"address": [], "closed": "/dev/infiniband/rdma_cm"}),
    "irdma, no permission": (DEVICES["irdma"], None, {"open_error": 13, "closed": "/dev/infiniband/uverbs0"}),
    "irdma, not listed": (DEVICES["irdma"], None, {"listed": "no"}),
    "irdma, no queue pair": (DEVICES["irdma"], None, {"no_rc": 1}),
    "irdma, little memory": (DEVICES["irdma"], None, {"/proc/self/status": "CapEff:\t000001ffffffbfff"}),
    "irdma, by address": (DEVICES["irdma"], None, {"arguments": ["192.0.2.2"]}),
    "irdma, by own address": (DEVICES["irdma"], None, {"arguments": ["192.0.2.1"]}),
    "irdma, strange address": (DEVICES["irdma"], None, {"arguments": ["192.0.2.9"]}),
    "irdma, another device": (DEVICES["irdma"], None, {"arguments": ["--device", "mlx5_0"]}),
    "irdma, plan": (DEVICES["irdma"], None, {"arguments": ["--plan", "500000,64"]}),
    "irdma, long queues": (DEVICES["irdma"], None, {"arguments": ["--plan", "5,20000"]}),
    "irdma, no peer": (DEVICES["irdma"], None, {"query_error": 5}),
    "irdma, addresses fail": (DEVICES["irdma"], None, {"address": ["fails"]}),
    # core/sysfs.c, rate_show(): SDR if a driver reports no speed. One of two flush capabilities, a
    # limit above INT_MAX, and three ports.
    "new driver": ({**DEVICES["irdma"], "kernel": "brand_new", "node_guid": 0, "active_speed": 0,
                    "rate": "2.5 Gb/sec (1X SDR)", "ports": 3,
                    "/sys/class/infiniband/new_0/ports/3/rate": "10 Gb/sec (1X FDR10)", "max_mr": -1,
                    "atomic_cap": ATOMIC_GLOB, "numa_node": -1, "max_inline_data": 2**32 - 1,
                    "device_cap_flags_ex": 1 << 38,
                    "gid": [*ROCE["gid"], f"{ROCE1} ::ffff:192.0.2.3 3"],
                    "address": [*ROCE["address"], "lo none", "eth1 unknown"]}, None, {}),
}


def files_of(settings):
    device = "/sys/class/infiniband/" + settings["name"]
    common = {"/sys/class/infiniband_verbs/abi_version": 6, "/dev/infiniband/rdma_cm": "",
              "/proc/self/status": "CapEff:\t000001ffffffffff",
              **{key: value for key, value in settings.items() if key.startswith("/")}}
    if settings["name"].startswith("none"):
        return common
    files = {device + "/ports/1/rate": settings["rate"],
             "/sys/class/net/eth0/mtu": 1500, "/dev/infiniband/uverbs0": "",
             **{f"{device}/ports/1/gid_attrs/ndevs/{i}": "eth0" for i in range(len(settings["gid"]))
                if settings["link_layer"] == ETHERNET}}
    if settings["kernel"] is not None:
        adapter = "/sys/devices/pci0000:3a/0000:3b:00.0"
        files.update({device + "/device": "-> " + adapter, adapter + "/net/eth0/mtu": 1500,
                      adapter + "/driver": "-> /sys/bus/pci/drivers/" + settings["kernel"],
                      adapter + "/numa_node": settings.get("numa_node", 1)})
    return {**files, **common}


def make(root, settings):
    for path, value in files_of(settings).items():
        place = pathlib.Path(root + path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if str(value).startswith("-> "):
            target = pathlib.Path(root + value[3:])
            target.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        elif value is not None:
            place.write_text(f"{value}\n", encoding="ascii")
    lines = []
    for key, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            lines.append(f"{key} {each}\n")
    pathlib.Path(root, "machine").write_text("".join(lines), encoding="ascii")


def limit():
    os.close(0)  # so that the next open() returns 0
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (8 << 20, 8 << 20))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))


def text_facts(lines):
    """Returns a fact for each sentence below a label; checks the layout and the order of the labels."""
    facts, label, place, before = [], "", 0, ""
    for line in lines:
        is_head, has_label, words = line[:1] > " ", line[:3].strip() != "", line[22:]
        expect((len(line) <= 80, is_head), (True, not before and line != ""), f"layout at {line!r}")
        if has_label:
            label = line if is_head else line[2:22].rstrip()
            # Each port restarts the order.
            place = LABELS.index(label.split(" ")[0] if is_head else label, 0 if label == "port" else place)
        if is_head:
            facts.append(line)
        # A word begins a line if it does not fit the previous line or begins a sentence.
        elif not has_label and (words.startswith("-> ") or len(before) + 1 + len(words.split(" ")[0]) > 80):
            facts[-1] += " " + words
        elif line:
            facts.append(f"{label}: {words}")
        before = line
    return facts


def json_facts(value, path=""):
    """
    Yields a fact for each value. An answer with its reason and help is one value, and so is a flat
    item of a list.
    """
    if isinstance(value, dict) and "is" in value:
        yield path + " = " + json.dumps(value["is"]) + "".join(
            sign + value[key] for key, sign in (("why", ": "), ("help", " -> ")) if key in value)
        expect(list(value), ["is", "why", "help"][:len(value)], path)
    elif value and (isinstance(value, list) or isinstance(value, dict) and not is_item(path, value)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from json_facts(each, f"{path}.{key}" if path else key)
    else:
        yield f"{path} = {json.dumps(value, ensure_ascii=False)}"


def is_item(path, value):
    return path[-1:].isdigit() and not any(isinstance(each, (dict, list)) for each in value.values())


def facts_of(name):
    """Returns the output of the program on a machine, in text and in JSON, without data of this machine."""
    device, memory, changes = MACHINES[name]
    named = {"name": re.match(r"\w*", name.split(":")[-1])[0] + "_0"}
    settings = {**named, **device, **MEMORIES.get(memory, {}), **changes}
    with tempfile.TemporaryDirectory() as root:
        arguments = settings.pop("arguments", [])
        if memory:
            path = pathlib.Path(root, "mémoire")
            path.write_bytes(bytes(2 << 20))
            arguments = ["--memory", str(path)]
        make(root, settings)
        environment = {**os.environ, "MACHINE": root}
        environment.pop("RPMA_FLUSH", None)
        if "RPMA_FLUSH" in settings:
            environment["RPMA_FLUSH"] = settings["RPMA_FLUSH"]

        def output_of(*options):
            done = run(PROGRAM, *options, *arguments, preexec_fn=limit, env=environment)
            expect(done.stderr != "", done.returncode == NO_MEMORY, f"{name}: standard error {done.stderr!r}")
            return (done.stderr or done.stdout).replace(root, "/machine"), done.returncode
        (text, status), (report, json_status) = output_of(), output_of("--json")
    if status == NO_MEMORY:
        return [text.rstrip("\n")]
    text = re.sub(r"^(  (librpma|rdma-core) +).*\n( {22}.*\n)*", r"\1…\n", text, flags=re.M)
    report = re.sub(r'("(librpma|rdma_core|libibverbs)": )(".*"|null)', r'\1"…"', report)
    parsed = json.loads(report)
    expect(json.dumps(parsed, indent=2, ensure_ascii=False) + "\n", re.sub(r"\[\n +\]", "[]", report), "layout")
    expect("[]" in report, False, "an empty list in one line")
    expect((json_status, parsed["exit_status"]), (status, status), "exit status")
    text_lines, values = text_facts(text.splitlines()), list(json_facts(parsed))
    # The text has each reason and trap of the JSON verbatim.
    sentences = {fact.partition(": ")[2] for fact in values if re.match(r"[\w.]+ = \w+: ", fact)}
    sentences.update(trap for device in parsed["devices"] for trap in device.get("traps", []))
    for sentence in sentences:
        expect([sentence] if not any(fact.endswith(": " + sentence) for fact in text_lines) else [], [], "sentences without a place")
    return [*(fact for fact in text_lines if not fact.endswith(tuple(": " + sentence for sentence in sentences))), *values]


def machines():
    return [name for name in MACHINES if not name.startswith("plain:") or BUILD == "plain"]


def rows():
    """(set of machines, fact) for each fact of the table."""
    names = set()
    for row in TABLE.read_text(encoding="utf-8").splitlines():
        if row.startswith("@"):
            chosen = set(row.removeprefix("@all").removeprefix("@").removeprefix(" but ").split("; "))
            names = set(MACHINES) - chosen if row.startswith("@all") else chosen
        elif not row.startswith("#"):
            yield names, row


def record():
    found = {}  # {fact: machines}
    for name in MACHINES:
        for fact in facts_of(name):
            found.setdefault(fact, []).append(name)
    groups = {}
    for fact, names in found.items():
        groups.setdefault(tuple(names), []).append(fact)
    with TABLE.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        for names, facts in groups.items():
            without = [name for name in MACHINES if name not in names]
            listed, begin = (without, "@all but ") if len(without) < len(names) else (names, "@")
            file.write("\n".join([begin + "; ".join(listed) if without else "@all", *facts, ""]))


HEAD = """# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
# The output of rpma-info on the machines of info_recorded.py, made by its "record": "member = value" in its JSON, where
# an answer that is not yes has its reason and its help, and "label: sentence" in its text if the JSON lacks the sentence.
# "@" begins the names of the machines that have the facts below.
"""


def check(name):
    differ = difflib.unified_diff(sorted(fact for names, fact in rows() if name in names),
                                  sorted(facts_of(name)), "the table", name, lineterm="", n=0)
    expect("\n".join(differ), "", "differences")


if BUILD == "record":
    record()
else:
    expect({name for names, _ in rows() for name in names} - set(MACHINES), set(), "unknown machines in the table")
    for machine in machines():
        test(machine)(lambda machine=machine: check(machine))
    sys.exit(harness.main())
