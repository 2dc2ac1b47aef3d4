# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Reports of rpma-check, made of the rows of sim/device/devices.tsv."""

import functools
import json
import pathlib
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "sim" / "device"))

import devices
from harness import Skipped

SCHEMA = SOURCE / "programs/check/report.schema.json"


def simulated():
    return [name for name, device in devices.read_devices().items() if device["simulated"] == "yes"]


def side(name):
    """What a report has about a device of sim/device/devices.tsv."""
    device = devices.read_devices()[name]
    vendor, part = (devices.number(device[f"attr.vendor_{key}"]) for key in ("id", "part_id"))
    return {"driver": device["kernel_driver"], "model": f"0x{vendor:04x}/{part}", "firmware": "1.0",
            "kernel": "6.1.0-28", "rdma_core": "44.0",
            "link": {"transport": device["transport"], "rate_gbps": 100, "mtu": 1024}}


def report(name, **changes):
    """The report of a device that has no differences."""
    return {"format": 1, "program": "rpma-check 1.6.0", "device": side(name), "server": side(name),
            "attributes": devices.reported(name), "answers": {}, "promises": {}, "differences": []} | changes


def received():
    """{name: report} of the reports that users have sent."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted((SOURCE / "sim/device/reports").glob("*.json"))}


def table(reports):
    """The table of docs/hardware.md."""
    if not reports:
        return "No report has been received yet.\n"
    lines = ["| report | driver | model | firmware | kernel, rdma-core | link | differences |", "| --- |" + " --- |" * 6]
    for name, report in reports.items():
        of, link = report["device"], report["device"]["link"]
        counts = {each["severity"]: 0 for each in report["differences"]}
        for each in report["differences"]:
            counts[each["severity"]] += 1
        lines.append(f"| {name} | {of['driver']} | {of['model']} | {of['firmware']} | {of['kernel']}, {of['rdma_core']} | "
                     f"{link['transport']}, {link['rate_gbps']} Gbit/s, MTU {link['mtu']} | "
                     f"{', '.join(f'{key}: {count}' for key, count in sorted(counts.items())) or 'none'} |")
    return "\n".join(lines) + "\n"


@functools.cache
def validator():
    try:
        import jsonschema
    except ImportError:
        raise Skipped("python3-jsonschema is not installed: tools/setup programs") from None
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)
