#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests the format of the reports of rpma-check: programs/check/report.schema.json"""

import json
import sys

sys.dont_write_bytecode = True

import harness
import reports
from harness import expect, test

DIFFERENCE = {"question": "cq: 0", "expected": "NULL EINVAL", "source": "conformance", "found": "made",
              "severity": "page is wrong"}
PRIVATE = ["10.77.0.1", "fe80::5054:ff:fe12:3456", "0002:c903:0001:e8f0", "fd77::1", "0002c9030001e8f0",
           "52:54:00:12:34:56", "caf\u00e9", "a\nb", "", "x" * 201]


@test("the attributes are the properties of sim/device/devices.tsv, with the types of their values")
def attributes():
    schema = json.loads(reports.SCHEMA.read_text(encoding="utf-8"))["properties"]["attributes"]["properties"]
    wanted = {key: {"$ref": f"#/definitions/{kind}"} for key, kind in reports.devices.attributes().items()}
    expect(schema, wanted, "attributes")


@test("a report of each device of the fabric is valid")
def devices():
    for name in reports.simulated():
        found = reports.report(name, answers={"cq: 0": "NULL EINVAL", "write: data": "aaaaaaaaaa aaaaaaaabb"},
                               promises={"no leak": "kept"}, differences=[DIFFERENCE])
        expect([error.message for error in reports.validator().iter_errors(found)], [], name)


@test("each object is closed, and each of its members is required unless a device may lack it")
def closed():
    def check(schema, where):
        if isinstance(schema, list):
            for each in schema:
                check(each, where)
        elif isinstance(schema, dict):
            if "properties" in schema and schema.get("type") == "object":
                expect(schema.get("additionalProperties"), False, where)
                if where != "attributes":
                    expect(set(schema["required"]), set(schema["properties"]), where)
            for key, each in schema.items():
                check(each, key)
    check(json.loads(reports.SCHEMA.read_text(encoding="utf-8")), "report")


def is_refused(**changes):
    return not reports.validator().is_valid(reports.report("mlx5", **changes))


@test("an address, a GUID, a text without a limit and an unknown member are refused everywhere")
def private():
    expect(is_refused(), False, "a valid report")
    for text in PRIVATE:
        side, link = reports.side("mlx5"), reports.side("mlx5")["link"]
        wrong = [{"program": text}, {"answers": {"cq: 0": text}}, {"answers": {text: "made"}},
                 {"promises": {"no leak": text}}, {"promises": {text: "kept"}},
                 {"attributes": {"timeout": text}}, {"attributes": {"failed_send": text}},
                 {"attributes": {"cq_error": text}}, {"attributes": {"events": text}},
                 {"device": side | {"link": link | {"transport": text}}}]
        wrong += [{"device": side | {key: text}} for key in side if key != "firmware" or text not in ("10.77.0.1", "")]
        wrong += [{"differences": [DIFFERENCE | {key: text}]} for key in DIFFERENCE]
        for each in wrong:
            expect(is_refused(**each), True, f"{each}")
    for changes in ({"host": "x"}, {"device": reports.side("mlx5") | {"name": "mlx5_0"}},
                    {"attributes": {"node_guid": 1}}, {"differences": [DIFFERENCE | {"host": "x"}]},
                    {"format": 2}, {"attributes": {"attr.max_qp": -1}}, {"attributes": {"attr.max_qp": "1"}},
                    {"server": reports.side("mlx5") | {"kernel": "6.1.0-28-customer"}}):
        expect(is_refused(**changes), True, f"{changes}")


@test("the received reports are valid, and docs/hardware.md has the table of them")
def received():
    for name, found in reports.received().items():
        expect([error.message for error in reports.validator().iter_errors(found)], [], name)
    page = (reports.SOURCE / "docs/hardware.md").read_text(encoding="utf-8")
    expect(page.partition("`sim/device/reports/`.\n\n")[2], reports.table(reports.received()), "the end of docs/hardware.md")
    example = {"mlx5-1": reports.report("mlx5", differences=[DIFFERENCE, DIFFERENCE]), "siw-1": reports.report("siw")}
    expect(reports.table(example).splitlines()[2:],
           ["| mlx5-1 | mlx5_core | 0x02c9/4125 | 1.0 | 6.1.0-28, 44.0 | RoCE, 100 Gbit/s, MTU 1024 | page is wrong: 2 |",
            "| siw-1 | siw | 0x626d74/0 | 1.0 | 6.1.0-28, 44.0 | iWARP, 100 Gbit/s, MTU 1024 | none |"], "the table")


if __name__ == "__main__":
    sys.exit(harness.main())
