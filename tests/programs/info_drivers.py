#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-info warns of the traps in the tables of rpma_devices(7): info_drivers.py PROGRAM PAGE"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import harness
from harness import expect, run, test

PROGRAM, PAGE = sys.argv[1], pathlib.Path(sys.argv[2])
# The driver and transport in sysfs of each device, and its row in the page, which names the
# sources.
FACTS = [
    ("mlx5_core", "InfiniBand", "mlx5"), ("mlx4_core", "InfiniBand", "mlx4"),
    ("ice", "InfiniBand", "irdma, RoCE"), ("ice", "iWARP", "irdma, iWARP"),
    ("i40e", "iWARP", "irdma, iWARP"), ("idpf", "InfiniBand", "irdma, RoCE"),
    ("bnxt_en", "InfiniBand", "bnxt_re"), ("cxgb4", "iWARP", "cxgb4"),
    ("hns3", "InfiniBand", "hns"), ("erdma", "InfiniBand", "erdma"), ("erdma", "iWARP", "erdma"),
    ("mana", "InfiniBand", "mana"), ("ionic", "InfiniBand", "ionic"),
    ("qede", "InfiniBand", "qedr"), ("qede", "iWARP", "qedr"),
    ("efa", "InfiniBand", "efa"), ("rdma_rxe", "InfiniBand", "rxe"), ("siw", "iWARP", "siw"),
]
# (column, cell of the page, pattern of the warning) of each trap.
TRAPS = [
    ("SRQ", r"–", r"^There is no shared receive queue"),
    ("Send", r"–", r"^Messages have no immediate data"),
    ("Write", r"–", r"^Writes have no immediate data"),
    ("Inline", r"–", r"^Inline data is not supported"),
    ("Fence", r"–", r"^Writes are not fenced"),
    ("Timeout", r"ignored|TCP", r"ignores rpma_conn_cfg_set_ack_timeout\(\):"),
    ("Timeout", r"firmware", r"other timeouts"),
    ("Timeout", r"up to 4.3 s", r"above 4.3 seconds"),
    ("Count", r"yes, not 7", r"of 7, the default"),
]


def rows():
    """{row of the page: {column: cell}}, of both tables."""
    found, head = {}, None
    for line in PAGE.read_text(encoding="utf-8").replace(r"\(en", "–").splitlines():
        if line.startswith(".It Sy Driver Ta"):
            head = re.findall(r"Sy (\w[\w-]*)", line)
        elif line.startswith(".El"):
            head = None
        elif head and line.startswith(".It "):
            cells = [cell.strip('" ') for cell in line[4:].split(" Ta ")]
            found.setdefault(cells[0], {}).update(zip(head, cells))
    return found


def report(driver, transport):
    done = run(PROGRAM, driver, transport)
    expect((done.returncode, done.stderr), (0, ""), driver)
    return json.loads(done.stdout)


@test("each row of the page belongs to a device")
def complete():
    expect(set(rows()), {row for _, _, row in FACTS}, "rows")


@test("rpma-info names the row of each device")
def named():
    for driver, transport, row in FACTS:
        expect(report(driver, transport)["rpma_devices"], row.split(",")[0], driver)


@test("rpma-info warns of exactly the traps in the tables")
def warnings():
    page = rows()
    for driver, transport, row in FACTS:
        traps = report(driver, transport)["traps"]
        if row == "efa":
            expect(len(traps) == 1 and "cannot use it" in traps[0], True, traps)
            continue
        for column, cell, words in TRAPS:
            found = page[row][column]
            wanted = re.fullmatch(cell, found) is not None or (found == "gen. 3" and driver != "idpf")
            if column == "Timeout" and cell.startswith("ignored"):
                wanted = wanted or transport == "iWARP"  # the text below the table describes TCP
            expect(any(re.search(words, trap) for trap in traps), wanted,
                   f"{driver}, {transport}, {column}: {traps}")


@test("a driver that the page does not have")
def unknown():
    expect(report("new", "iWARP")["rpma_devices"], None, "row")
    expect(report("new", "iWARP")["traps"], [], "traps")


sys.exit(harness.main())
