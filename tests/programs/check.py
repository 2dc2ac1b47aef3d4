#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests rpma-check on simulated devices: check.py RDMA_SIM RPMA_CHECK OTHER_PROTOCOL SOURCE [all]

OTHER_PROTOCOL is rpma-check with another version of the protocol. With "all", each simulated device is checked,
otherwise a few of different kinds."""

import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
import harness
import reports
from harness import check_help, completed, expect, expect_one_line, run, test

RDMA_SIM, RPMA_CHECK, OTHER_PROTOCOL, SOURCE, *ALL = sys.argv[1:]
ADDRESS = "10.77.0.1"
DEVICES = reports.simulated() if ALL else ["siw", "mlx5"]
PAIRS = [(name, name) for name in DEVICES] + [("rxe", "bnxt_re")]
# Mistakes of a profile of mlx5, and a question that shows each of them.
PLANTED = {
    "has_srq": (False, "has_srq"),
    "max_inline": (100, "max_inline"),
    "attr.atomic_cap": ("NONE", "add: post"),
    "has_resize_cq": (False, "has_resize_cq"),
    "early_error": ("0", "qp: post a send"),
    "checks_read_access": (False, "read, remote access: completion"),
    "source_error": ("LOC_QP_OP_ERR", "write, local key: completion"),
    "receive_error": ("GENERAL_ERR", "send, key of the receive: receive"),
    "errors_are_solicited": (False, "notify of solicited, errors: of a"),
    "full_queue_error": ("EINVAL", "qp: send queue full"),
    "has_qp_ex": (False, "has_qp_ex"),
    "overrun_is_fatal": (False, "send CQ overrun: next"),
    "has_windows": (False, "has_windows"),
}
TOGETHER = "has_windows has_resize_cq max_inline attr.atomic_cap has_qp_ex overrun_is_fatal checks_read_access " \
           "source_error receive_error errors_are_solicited full_queue_error".split()


def check(device, of_server, *options, command=None):
    """Runs both sides, the client on host2; returns the process of rdma-sim."""
    return run(RDMA_SIM, "--hosts", "2", "--device", f"host1={of_server}", "--device", f"host2={device}",
               RPMA_CHECK, "--once", "--server", ADDRESS, "::", *(command or (RPMA_CHECK, *options, ADDRESS)),
               timeout=150)


def report_of(pair):
    """(what happened, the report) of a check of a device against another one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        done = check(*pair, "--report", path)
        with open(path, encoding="utf-8") as file:
            return done, json.load(file)


@test("no simulated device differs from the expected results")
def devices():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for pair, (done, report) in zip(PAIRS, pool.map(report_of, PAIRS)):
            expect(report["differences"], [], f"differences of {pair}")
            expect(done.returncode, 0, f"exit status of {pair}: {done.stdout}{done.stderr}")
            expect(len(report["answers"]) > 300 and len(report["promises"]) > 150, True, f"results of {pair}")
            reports.validator().validate(report)


@test("each mistake of a profile is reported")
def planted():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "planted.json")
        changed = {key: PLANTED[key][0] for key in TOGETHER}
        content = reports.report("mlx5", attributes=reports.devices.reported("mlx5") | changed)
        pathlib.Path(path).write_text(json.dumps(content), encoding="utf-8")
        done, report = report_of((path, "mlx5"))
    found = {each["question"]: each for each in report["differences"]}
    missing = [key for key in TOGETHER if PLANTED[key][1] not in found]
    expect(missing, [], f"mistakes without a difference, {sorted(found)}")
    expect(done.returncode, 1, "exit status")
    expect(found["read, remote access: completion"]["severity"], "data at risk", "severity")
    expect(found["has_qp_ex"]["severity"], "the library works around it", "severity")
    expect(found["has_windows"]["severity"], "page is wrong", "severity")
    reports.validator().validate(report)


@test("wrong arguments and addresses end with one line")
def arguments():
    for words in ([], ["--nonsense", ADDRESS], ["a", "b"], ["--port", "0", ADDRESS], ["--once", ADDRESS],
                  ["--server", "--json", ADDRESS], ["--report"]):
        expect_one_line(run(RPMA_CHECK, *words), 2, f"{words}")
    for address in ("192.0.2.1", "no.such.name.invalid", "10.77.0.1"):
        expect_one_line(run(RDMA_SIM, RPMA_CHECK, "--port", "7300", address), 2, address)
    expect_one_line(run(RDMA_SIM, RPMA_CHECK, "--server", "192.0.2.1"), 2, "server of a foreign address")


@test("help, manual page and completion have the same options")
def lists():
    check_help(RPMA_CHECK)
    of_help = set(re.findall(r"--[a-z-]+", run(RPMA_CHECK, "--help").stdout))
    page = pathlib.Path(SOURCE, "man/rpma-check.1").read_text(encoding="utf-8")
    expect({f"--{name}" for name in re.findall(r"^\.It .*Fl Fl ([a-z-]+)", page, re.M)}, of_help, "options of the page")
    completion = os.path.join(SOURCE, "programs/completion/rpma-check")
    expect(set(completed(completion, "rpma-check", "--")), of_help, "options of the completion")


@test("another version on the other side is named by both sides")
def versions():
    done = check("rxe", "rxe", command=(OTHER_PROTOCOL, ADDRESS))
    lines = [line for line in done.stderr.splitlines() if "version" in line]
    expect(len(lines), 2, f"lines about the version: {done.stderr}")
    expect(all("install the same release" in line for line in lines), True, done.stderr)


@test("a report that cannot be written fails before the check, or at its end")
def full_disk():
    with tempfile.TemporaryDirectory() as folder:
        missing = os.path.join(folder, "no", "report.json")
        expect_one_line(run(RDMA_SIM, RPMA_CHECK, "--report", missing, ADDRESS), 2, missing)
    done = run(RDMA_SIM, RPMA_CHECK, "--report", "/dev/full", ADDRESS)
    expect_one_line(done, 2, "no server")


@test("an interrupted check and a server that vanishes leave no file and no process")
def interrupted():
    for victim, line in (("client", "interrupted"), ("server", "the other side")):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            ends = f'trap "" TERM; {RPMA_CHECK} --report {path} {ADDRESS} & sleep 1.5; kill -INT $!; wait $!'
            command = ("sh", "-c", ends) if victim == "client" else (RPMA_CHECK, "--report", path, ADDRESS)
            server = [RPMA_CHECK, "--once", "--server", ADDRESS]
            if victim == "server":
                server = ["timeout", "-s", "KILL", "2", *server]
            done = run(RDMA_SIM, *server, "::", *command, timeout=60)
            lines = [each for each in done.stderr.splitlines() if each.startswith("rpma-check: ") and line in each]
            expect(len(lines), 1, f"lines of the {victim}: {done.stderr}")
            expect(os.listdir(folder), [], f"files after the {victim}")


if __name__ == "__main__":
    sys.exit(harness.main())
