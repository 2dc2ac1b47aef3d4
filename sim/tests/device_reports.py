# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Reports of devices, made of the rows of device/devices.tsv."""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
SIM = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SIM / "device"))

import devices


def simulated():
    return [name for name, device in devices.read_devices().items() if device["simulated"] == "yes"]


def side(name):
    """What a report has about a device of device/devices.tsv."""
    device = devices.read_devices()[name]
    vendor, part = (devices.number(device[f"attr.vendor_{key}"]) for key in ("id", "part_id"))
    return {"driver": device["kernel_driver"], "model": f"0x{vendor:04x}/{part}", "firmware": "1.0",
            "kernel": "6.1.0-28", "rdma_core": "44.0",
            "link": {"transport": device["transport"], "rate_gbps": 100, "mtu": 1024}}


def report(name, **changes):
    """The report of a device that has no differences."""
    return {"format": 1, "program": "device_reports.py 1", "device": side(name), "server": side(name),
            "attributes": devices.reported(name), "answers": {}, "promises": {}, "differences": []} | changes


def received():
    """{name: report} of the reports that users have sent."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted((SIM / "device/reports").glob("*.json"))}
