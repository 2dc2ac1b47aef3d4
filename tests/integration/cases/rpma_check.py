# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""rpma-check on the devices of the lab, whose results are recorded in programs/check/recorded.tsv."""

import json
import os
import subprocess

from harness import lab
from harness.case import case
from harness.network import cables, cut, mend
from harness.program import expect_no_leak, new_file
from harness.side import expect, wait_until

PROGRAM = os.path.join(lab.BUILD_DIR, "programs", "check", "rpma-check")
# What an unprivileged user of a container has: no capability outside of its own namespaces.
CONTAINER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
             "unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--ipc", "--uts")


def start(test, number, *arguments, wrapper=()):
    """Starts rpma-check on a host, with its standard error in a file."""
    errors = open(os.path.join(test.directory(), "errors"), "w+", encoding="utf-8")  # pylint: disable=consider-using-with
    test.undo.callback(errors.close)
    process = subprocess.Popen(lab.on(lab.host(number), *wrapper, PROGRAM, *arguments), stdout=subprocess.PIPE,
                               stderr=errors, text=True)
    test.undo.callback(process.stdout.close)
    test.undo.callback(process.kill)
    return process, lambda: open(errors.name, encoding="utf-8").read()


def check(test, number, *options, memory=(), wrapper=(), during=lambda errors: None):
    """Checks the device of a host against host 1, and returns the report without differences."""
    address = lab.address(lab.host(1))
    server, server_errors = start(test, 1, "--once", "--server", *memory, address, wrapper=wrapper)
    expect(server.stdout.readline().startswith("rpma-check serves on "), True, server_errors())
    client, errors = start(test, number, "--json", *options, address, wrapper=wrapper)
    during(errors)
    report = json.loads(client.communicate()[0] or "{}")
    test.transcript.append(f"{json.dumps(report, indent=1)}\n{errors()}")
    expect(report.get("differences"), [], f"differences ({errors()})")
    expect(client.returncode, 0, "exit status")
    server.communicate()
    return report, server_errors()


def expect_path(report):
    found = {name: result for name, result in report["answers"].items() if name.startswith("path: ")}
    expect(found, {"path: registered": "yes", "path: persistent flush": "ok", "path: data": "yes"}, "path")


@case("check", "two hosts, in containers, with device DAX", limit=120, builds=("native",))
def two_hosts(test):
    memory = ("--memory", lab.DEVDAX) if lab.DEVDAX else ()
    if memory:
        os.chmod(lab.DEVDAX, 0o666)
    report, errors = check(test, 2, memory=memory, wrapper=CONTAINER)
    expect(errors, "", "standard error of the server")
    expect(report["device"]["driver"], {"rxe": "rdma_rxe"}.get(lab.PROVIDER, lab.PROVIDER), "driver")
    if memory:
        expect_path(report)
    expect_no_leak(test)


@case("hardware", "a device is checked against itself", limit=120, builds=("native",))
def loopback(test):
    report, errors = check(test, 1)
    expect(errors, "", "standard error of the server")
    expect(report["device"], report["server"], "devices")
    expect_no_leak(test)


@case("hardware", "a file on FS-DAX", limit=120, builds=("native",), needs=(lab.ON_DEMAND_PAGING,))
def file(test):
    report, _ = check(test, 2, memory=("--memory", new_file(test, lab.need(lab.FSDAX, "FS-DAX memory"))))
    expect_path(report)
    expect_no_leak(test)


@case("hardware", "the user disconnects the cable", limit=240, builds=("native",))
def port_down(test):
    cable = cables(test)[1]

    def disconnect(errors):
        wait_until(lambda: "disconnect the cable" in errors(), "request to disconnect", 600)
        cut(cable)
        wait_until(lambda: "connect the cable again" in errors(), "request to connect", 600)
        mend(cable)

    report, _ = check(test, 2, "--port-down", during=disconnect)
    # The end of the connection may be noticed before the write has failed. TCP retries for minutes.
    wanted = ["no completion"] if lab.PROVIDER == "siw" else ["transport retry counter exceeded", "Work Request Flushed Error"]
    expect(report["answers"]["port down: status of a write"] in wanted, True, "failure of a write")
    expect_no_leak(test)
