#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Migrates a guest of QEMU over RDMA, and prints the last event: migrate.py ADDRESS of the other QEMU [CAPABILITY]"""

import json
import subprocess
import sys

GUEST = "qemu-system-x86_64 -accel tcg -m 64 -nodefaults -display none -machine pc -qmp stdio"


def read(qemu):
    """QEMU also prints lines about the RDMA device."""
    while line := qemu.stdout.readline():
        if line.startswith("{"):
            return json.loads(line)
    sys.exit("QEMU has ended")


def execute(qemu, name, **arguments):
    qemu.stdin.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
    qemu.stdin.flush()
    while "return" not in (answer := read(qemu)):
        if "error" in answer:
            sys.exit(f"{name}: {answer['error']['desc']}")
    return answer["return"]


def main():
    with subprocess.Popen(GUEST.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as qemu:
        execute(qemu, "qmp_capabilities")
        execute(qemu, "migrate-set-capabilities",
                capabilities=[{"capability": name, "state": True} for name in ["events", *sys.argv[2:]]])
        execute(qemu, "migrate", uri=f"rdma:{sys.argv[1]}:4444")
        ends = ("completed", "failed")
        while (event := read(qemu)).get("event") != "MIGRATION" or event["data"]["status"] not in ends:
            pass
        state = execute(qemu, "query-migrate")
        print(f"{state['status']}, {state['ram']['transferred']} bytes", flush=True)
        execute(qemu, "quit")


main()
