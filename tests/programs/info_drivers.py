#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-info warns of the traps in sim/device/devices.tsv: info_drivers.py PROGRAM FOLDER"""

import json
import re
import sys

sys.dont_write_bytecode = True

import harness
from harness import expect, run, test

PROGRAM = sys.argv[1]
sys.path.append(sys.argv[2])
import devices

# (property, pattern of the value, pattern of the warning) of each trap.
TRAPS = [
    ("has_srq", r"no", r"^There is no shared receive queue"),
    ("has_send_imm", r"no", r"^Messages have no immediate data"),
    ("has_write_imm", r"no", r"^Writes have no immediate data"),
    ("max_inline", r"no", r"^Inline data is not supported"),
    ("fences_writes", r"no", r"^Writes are not fenced"),
    ("timeout", r"ignored|TCP", r"ignores rpma_conn_cfg_set_ack_timeout\(\):"),
    ("timeout", r"firmware", r"other timeouts"),
    ("timeout", r"up to 4.3 s", r"above 4.3 seconds"),
    ("retry_count", r"yes, not 7", r"of 7, the default"),
    ("joins_write_and_message", r"yes", r"one write and one message of 16 bytes"),
    ("reads_empty_list", r"yes", r"without regions ends the program"),
    ("has_native_flush", r"yes", r"A lost packet fails native flushes"),
]


def report(driver, transport):
    done = run(PROGRAM, driver, transport)
    expect((done.returncode, done.stderr), (0, ""), driver)
    return json.loads(done.stdout)


@test("rpma-info names each device, and warns of exactly its traps")
def warnings():
    for name, device in devices.read_devices().items():
        found = report(device["kernel_driver"], "iWARP" if device["transport"] == "iWARP" else "InfiniBand")
        expect(found["rpma_devices"], device["library"], name)
        traps = found["traps"]
        if device["has_rc"] == "no":
            expect(len(traps) == 1 and "cannot use it" in traps[0], True, traps)
            continue
        for key, value, words in TRAPS:
            expect(any(re.search(words, trap) for trap in traps),
                   re.fullmatch(value, devices.of_table(device[key])) is not None, f"{name}, {key}: {traps}")
        expect(len(traps) <= len(TRAPS), True, traps)


@test("a driver that the page does not have")
def unknown():
    expect(report("new", "iWARP")["rpma_devices"], None, "row")
    expect(report("new", "iWARP")["traps"], [], "traps")


sys.exit(harness.main())
