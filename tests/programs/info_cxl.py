#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""The report of rpma-info about CXL memory, from a recorded sysfs: info_cxl.py PROGRAM RECORD

"info_cxl.py record" prints the record of the machine on which it runs, as root.
"""

import glob
import json
import os
import pathlib
import struct
import sys
import tempfile

sys.dont_write_bytecode = True

import harness
from harness import expect, run, test

ND, CXL = "/sys/bus/nd/devices/", "/sys/bus/cxl/devices/"
LINKS = [CXL + kind + "[0-9]*" for kind in ("mem", "pmem", "region")]
FILES = [ND + "ndbus*/provider", ND + "nmem*/cxl/*", CXL + "mem*/serial", CXL + "mem*/*/size",
         *(ND + "region*/" + name for name in ("persistence_domain", "devtype", "mapping*")),
         CXL + "region*/mode", CXL + "region*/size", CXL + "mem*/trigger_poison_list"]
LINE = 16


def record():
    for link in (path for pattern in LINKS for path in glob.glob(pattern)):
        print(link, "->", os.path.realpath(link))
    for path in (path for pattern in FILES for path in glob.glob(pattern)):
        write_only = path.endswith("_list")
        print(os.path.realpath(path), "=", "" if write_only else pathlib.Path(path).read_text().strip())
    for link in glob.glob(LINKS[0]):
        device = pathlib.Path(link).resolve().parent
        for config in (device / "config", device.parent / "config"):
            content = config.read_bytes()
            for place in range(0, len(content), LINE):
                if any(content[place:place + LINE]):
                    print(config, f"@{place:03x}", content[place:place + LINE].hex())


def recorded():
    """{path: (kind of line, value)}. The value of a PCI configuration is its whole content."""
    found = {}
    for line in RECORD.read_text(encoding="ascii").splitlines():
        path, kind, value = (line.split(" ", 2) + [""])[:3]
        if kind.startswith("@"):
            content = found.get(path, ("@", bytes(4096)))[1]
            place = int(kind[1:], 16)
            kind, value = "@", content[:place] + bytes.fromhex(value) + content[place + LINE:]
        if not line.startswith("#"):
            found[path] = kind, value
    return found


def report(**changes):
    """
    Returns the report about the first region. A change replaces the content of each file with its
    name; None removes the file.
    """
    tree = recorded()
    region = next(path for path in tree if path.endswith("/region0/persistence_domain"))
    for path in [path for path in tree if path.endswith(("/cxl/provider", "/mapping0"))]:
        tree[path.replace("provider", "dirty_shutdown").replace("mapping0", "mapping1")] = "=", None
    with tempfile.TemporaryDirectory() as directory:
        for path, (kind, value) in tree.items():
            value = changes.get(path.rsplit("/", 1)[1], value)
            place = pathlib.Path(directory + path)
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "->":
                os.symlink(directory + value, place)
                pathlib.Path(directory + value).mkdir(parents=True, exist_ok=True)
            elif kind == "@":
                place.write_bytes(value)
            elif value is not None:
                place.write_text(value + "\n", encoding="ascii")
        done = run(PROGRAM, os.path.dirname(region) + "/dax0.0/dax0.0",
                   env={**os.environ, "MACHINE": directory})
    expect((done.returncode, done.stderr), (0, ""), "end")
    return json.loads(done.stdout)["cxl"]


@test("the region and the device of the lab's machine")
def regions_of_lab():
    found = report()
    device, = found["devices"]
    expect([found["region"], found["mode"], found["size"]], ["region0", "pmem", 256 << 20], "region")
    expect([device["serial"], device["persistent_size"], device["volatile_size"]],
           ["0x1", 256 << 20, 0], "device")
    expect([device["dirty_shutdowns"], device["poison_list"]], [None, True], "failures")
    expect([device["flush_of_device"]["is"], device["flush_of_port"]["is"]], [True, True], "GPF")
    expect([found["direct_write"]["is"], "rpma_pmem(7)" in found["direct_write"]["help"]],
           [None, True], "direct write")


@test("memory of another bus is not CXL memory")
def other_bus():
    expect(report(provider="ACPI.NFIT"), None, "cxl")


@test("a region of two devices has both, without one that is of another bus")
def two():
    for second, serials in (("nmem1", ["0x1", "0x2"]), ("nmem9", ["0x1"])):
        devices = report(mappings="2", mapping1=second + ",0,268435456,1")["devices"]
        expect(sorted(device["serial"] for device in devices), serials, "devices")


@test("a count of dirty shutdowns is reported, and so is a missing poison list")
def failures():
    for count in (0, 3):
        expect(report(dirty_shutdown=str(count))["devices"][0]["dirty_shutdowns"], count, "count")
    expect(report(trigger_poison_list=None)["devices"][0]["poison_list"], False, "list")


def capability(place, identity, vendor, dvsec, following):
    """A PCI configuration with one extended capability after the first one."""
    content = bytearray(4096)
    struct.pack_into("<I", content, 0x100, 1 | 1 << 16 | place << 20)
    struct.pack_into("<IIH", content, place, identity | 1 << 16 | following << 20, vendor | 1 << 16, dvsec)
    return bytes(content)


@test("Global Persistent Flush is reported from the PCI configuration")
def flush():
    for config, wanted in (
            (capability(0x200, 0x23, 0x1e98, 5, 0), [True, False]),
            (capability(0xff0, 0x23, 0x1e98, 4, 0), [False, True]),
            (capability(0xff4, 0x23, 0x1e98, 4, 0), [False, True]),
            (capability(0x200, 0x0b, 0x1e98, 5, 0), [False, False]),
            (capability(0x200, 0x23, 0x8086, 5, 0), [False, False]),
            (capability(0x200, 0x23, 0x1e98, 3, 0x200), [False, False]),  # a loop
            (capability(0x200, 0x23, 0x1e98, 5, 0)[:256], [None, None]),  # no extended capabilities
            (capability(0x200, 0x23, 0x1e98, 5, 0)[:64], [None, None])):  # without root, a user reads only this part
        device, = report(config=config)["devices"]
        expect([device["flush_of_device"]["is"], device["flush_of_port"]["is"]], wanted, "GPF")


if sys.argv[1:] == ["record"]:
    record()
else:
    PROGRAM, RECORD = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.exit(harness.main())
