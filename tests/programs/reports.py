# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Reports of rpma-check: those of sim/tests/device_reports.py, and their table."""

import functools
import json
import pathlib
import sys

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "sim/tests"))

from device_reports import devices, received, side, simulated  # noqa: F401  pylint: disable=unused-import
import device_reports
from harness import Skipped

SCHEMA = SOURCE / "programs/check/report.schema.json"


def report(name, **changes):
    return device_reports.report(name, **({"program": "rpma-check 1.6.0"} | changes))


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
