#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests rpma-check on simulated devices: rpma_check.py RDMA_SIM RPMA_CHECK OTHER_PROTOCOL SOURCE [quick|devices]

OTHER_PROTOCOL is rpma-check with another version of the protocol. With "devices", only the first test runs, for each
simulated device, otherwise for a few of different kinds; with "quick", those tests that check at most one pair."""

import concurrent.futures
import contextlib
import functools
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import harness
import reports
from harness import check_help, completed, expect, expect_one_line, run, test
from small_disk import has_small_disk, on_small_disk

RDMA_SIM, RPMA_CHECK, OTHER_PROTOCOL = (os.path.abspath(path) for path in sys.argv[1:4])
SOURCE, *PART = sys.argv[4:]
ADDRESS = "10.77.0.1"
DEVICES = {"devices": reports.simulated(), "quick": []}.get("".join(PART), ["siw", "mlx5"])
PAIRS = [(name, name) for name in DEVICES] + [("rxe", "bnxt_re")]
LIMIT = 120  # seconds of a check
USER = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups") if os.getuid() == 0 else ()
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
    "receives_in_reset": (True, "receives_in_reset"),
    "sge_error": ("EINVAL", "sge_error"),
}
TOGETHER = "has_windows has_resize_cq max_inline attr.atomic_cap has_qp_ex overrun_is_fatal checks_read_access " \
           "source_error receive_error errors_are_solicited full_queue_error receives_in_reset sge_error".split()


def pair(device, of_server, client, *options):
    """Runs both sides, client on host2; returns the process of rdma-sim."""
    return run(RDMA_SIM, "--hosts", "2", "--device", f"host1={of_server}", "--device", f"host2={device}", *options,
               RPMA_CHECK, "--once", "--server", ADDRESS, "::", *client, timeout=LIMIT)


def report_of(device, of_server):
    """(the process, the report) of a check of a device against another one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        done = pair(device, of_server, (RPMA_CHECK, "--report", path, ADDRESS))
        expect(os.listdir(folder), ["report.json"], f"files: {done.stdout}{done.stderr}")
        return done, json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


@contextlib.contextmanager
def device_of(report):
    """The path of a report, for rdma-sim --device."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "device.json")
        pathlib.Path(path).write_text(json.dumps(report), encoding="utf-8")
        yield path


def expect_no_difference(done, report, what):
    expect(report["differences"], [], f"differences of {what}")
    expect(done.returncode, 0, f"end of {what}: {done.stderr}")
    expect(len(report["answers"]) > 300 and len(report["promises"]) > 150, True, f"results of {what}")
    reports.validator().validate(report)


def expect_no_private_data(report):
    text = json.dumps(report)
    for word in (socket.gethostname(), "host1", "host2", "fd77", "sim0", *ibv_names()):
        expect(re.search(rf"\b{re.escape(word)}\b", text), None, f"{word} in the report")
    expect(re.findall(r"10\.77\.|fe80|(?:[0-9a-f]{2,4}:){3,}", text), [], "addresses, GIDs and GUIDs in the report")


@functools.cache
def ibv_names():
    """The name and the GUIDs of the simulated device, with and without colons."""
    shown = run(RDMA_SIM, "ibv_devinfo").stdout
    found = re.findall(r"(?:hca_id|node_guid|sys_image_guid):\s+(\S+)", shown)
    return [*found, *(name.replace(":", "") for name in found)]


@test("no simulated device differs from the expected results, nor does the replay of its report")
def devices():
    def check(names):
        done, report = report_of(*names)
        expect_no_difference(done, report, names)
        expect(done.stderr, "", "standard error, which is no terminal")
        expect_no_private_data(report)
        if names[0] == names[1]:
            with device_of(report) as path:
                done, again = report_of(path, names[0])
            expect_no_difference(done, again, f"the replay of {names[0]}")
            expect(again["attributes"], report["attributes"], f"attributes of the replay of {names[0]}")

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(check, PAIRS))


@test("each mistake of a profile is reported")
def planted():
    changed = {key: PLANTED[key][0] for key in TOGETHER}
    with device_of(reports.report("mlx5", attributes=reports.devices.reported("mlx5") | changed)) as path:
        done, report = report_of(path, "mlx5")
    found = {each["question"]: each for each in report["differences"]}
    missing = [key for key in TOGETHER if PLANTED[key][1] not in found]
    expect(missing, [], f"mistakes without a difference, {sorted(found)}")
    expect(done.returncode, 1, "exit status")
    expect(found["read, remote access: completion"]["severity"], "data at risk", "severity")
    expect(found["has_qp_ex"]["severity"], "the library works around it", "severity")
    expect(found["has_windows"]["severity"], "page is wrong", "severity")
    for key in ("receives_in_reset", "sge_error"):  # results that the driver of rdma-core has recorded
        expect(found[key]["source"].startswith("run "), True, f"source of {found[key]}")
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
    done = pair("rxe", "rxe", (OTHER_PROTOCOL, ADDRESS))
    lines = [line for line in done.stderr.splitlines() if "version" in line]
    expect(len(lines), 2, f"lines about the version: {done.stderr}")
    expect(all("install the same release" in line for line in lines), True, done.stderr)


def expect_end(done, words, what):
    """The client ends with status 2 and one line, which has these words; rdma-sim and the server may print others."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("rpma-check: ") and "the client has ended" not in line]
    expect((len(lines), done.returncode), (1, 2), f"{what}: lines and status: {done.stdout}{done.stderr}")
    expect(words in lines[0], True, f"{what}: {lines[0]}")


@test("what cannot be written ends with one line: before the check if possible, otherwise at its end")
def unwritable():
    limited = ("sh", "-c", 'trap "" XFSZ; ulimit -f 4; exec "$@"', "sh")  # as on a full disk
    full = ("sh", "-c", 'exec "$@" >/dev/full', "sh")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        for wrong in (os.path.join(folder, "no", "report.json"), folder, path):  # there is no server
            expect_one_line(run(RDMA_SIM, RPMA_CHECK, "--report", wrong, ADDRESS), 2, wrong)
        closed = os.path.join(folder, "closed")
        os.mkdir(closed, 0o555)
        os.chmod(folder, 0o755)
        done = run(*USER, RDMA_SIM, RPMA_CHECK, "--report", os.path.join(closed, "report.json"), ADDRESS)
        expect_one_line(done, 2, closed)
        expect("Permission denied" in done.stderr, True, done.stderr)
        os.rmdir(closed)
        pathlib.Path(path).write_text("old", encoding="utf-8")
        cases = (((*limited, RPMA_CHECK, "--report", path, ADDRESS), "cannot write"),
                 ((RPMA_CHECK, "--report", "/dev/full", ADDRESS), "cannot write /dev/full: No space left"),
                 ((*full, RPMA_CHECK, ADDRESS), "cannot write to the standard output"))
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            for (command, words), done in zip(cases, pool.map(lambda case: pair("siw", "siw", case[0]), cases)):
                expect_end(done, words, f"{command}")
        expect((os.listdir(folder), pathlib.Path(path).read_text(encoding="utf-8")), (["report.json"], "old"), "files")
    if has_small_disk():
        done = run(*on_small_disk("8k", "true"), RDMA_SIM, "--device", "siw", "--hosts", "2", RPMA_CHECK, "--once", "--server", ADDRESS,
                   "::", RPMA_CHECK, "--report", "report.json", ADDRESS, timeout=LIMIT)
        expect(done.stdout.endswith("status 2, files: \n"), True, f"a small disk: {done}")
        expect("rpma-check: cannot write report.json: No space left on device\n" in done.stderr, True, f"a small disk: {done}")


def processes_of(mark):
    """The command lines of the processes whose environment has MARK."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"MARK={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text(encoding="utf-8", errors="replace"))
    return found


@test("an interrupted check and a reader that ends leave no file and no process")
def interrupted():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with tempfile.TemporaryDirectory() as folder:
            # The signal arrives when the check has opened its file.
            script = (f"env --default-signal {RPMA_CHECK} --report {folder}/report.json {ADDRESS} & "
                      f"until [ \"$(ls {folder})\" ]; do sleep 0.01; done; sleep 0.2; kill -{number.value} $!; wait $!")
            os.environ["MARK"] = folder
            expect_end(pair("mlx5", "mlx5", ("sh", "-c", script)), "interrupted", number.name)
            expect((os.listdir(folder), processes_of(folder)), ([], []), f"files and processes after {number.name}")
    for number in (signal.SIGINT, signal.SIGTERM):
        with tempfile.TemporaryDirectory() as folder:
            # The same for the server, in the middle of the check.
            server = (f"env --default-signal {RPMA_CHECK} --server {ADDRESS} & until [ \"$(ls {folder})\" ]; do sleep 0.01; done; "
                      f"sleep 0.2; kill -{number.value} $!; wait $!; echo server $?")
            done = run(RDMA_SIM, "--hosts", "2", "--device", "mlx5", "--until", "host2", "sh", "-c", server, "::",
                       RPMA_CHECK, "--report", f"{folder}/report.json", ADDRESS, env=os.environ | {"MARK": folder}, timeout=LIMIT)
            expect_end(done, "", f"{number.name} of the server")
            expect("server 0\n" in done.stdout, True, f"the server after {number.name}: {done}")
            expect((os.listdir(folder), processes_of(folder)), ([], []), f"files and processes after {number.name}")
    script = f"{RPMA_CHECK} {ADDRESS} | true; exit ${{PIPESTATUS[0]}}"
    expect_end(pair("siw", "siw", ("bash", "-c", script)), "cannot write to the standard output", "SIGPIPE")


@test("a server that vanishes at any stage ends the check with one line, and leaves no file")
def vanished():
    stages = [("ibv_post_send", 1), ("ibv_post_send", 3), ("ibv_post_send", 25), ("ibv_post_send", 60), ("rdma_accept", 1),
              ("rdma_accept", 2), ("rdma_accept", 9), ("ibv_post_recv", 6), ("rdma_disconnect", 2)]

    def vanish(stage):
        with tempfile.TemporaryDirectory() as folder:
            done = pair("rxe", "rxe", (RPMA_CHECK, "--report", f"{folder}/report.json", ADDRESS), "--fault",
                        f"host1:{stage[0]}:{stage[1]} kill host1", "--until", "host2")
            expect_end(done, "", stage)
            expect(os.listdir(folder), [], f"files after {stage}")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(vanish, stages))


@test("a machine without a device prints one line")
def no_device():
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        return
    for options in ((), ("--server",)):
        done = run(RPMA_CHECK, *options, "127.0.0.1")
        expect_one_line(done, 2, "no device")
        expect("this machine has no RDMA device" in done.stderr, True, done.stderr)


@test("a terminal shows the progress, which the end removes")
def progress():
    ours, terminal = pty.openpty()
    with subprocess.Popen([RDMA_SIM, "--device", "siw", "--hosts", "2", RPMA_CHECK, "--once", "--server", ADDRESS, "::",
                           RPMA_CHECK, ADDRESS], stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 4096):
                text += part
        process.communicate()
    os.close(ours)
    words = re.findall(r"\r\x1b\[Krpma-check: \d+ s: ([a-z -]+)", text.decode())
    expect({"attributes", "refusal", "silent peer"} <= {word.strip() for word in words}, True, f"{words}")
    expect(text.endswith(b"\r\x1b[K"), True, f"end of {text[-80:]}")


@test("--memory checks a file and a device DAX, and --port-down a link that goes down")
def memory():
    def check(device, kind):
        with tempfile.TemporaryDirectory() as folder:
            path, errors, written = (os.path.join(folder, name) for name in ("memory", "errors", "report.json"))
            pathlib.Path(path).write_bytes(bytes(1 << 20))
            client = f"exec {RPMA_CHECK} --port-down --report {written} {ADDRESS} 2>{errors}"
            done = run(RDMA_SIM, "--device", device, "--pmem", f"host1={path}", "--dax", kind, "--until", "host2", "--fault",
                       "after host3 port-down host2 for 3s", RPMA_CHECK, "--once", "--server", "--memory", path, ADDRESS,
                       "::", "sh", "-c", client,
                       "::", "sh", "-c", f"until grep -q 'disconnect the cable' {errors}; do sleep 0.05; done", timeout=LIMIT)
            report = json.loads(pathlib.Path(written).read_text(encoding="utf-8"))
            expect((done.returncode, report["differences"]), (0, []), f"{device}: {done.stdout}{done.stderr}")
            found = {key: value for key, value in report["answers"].items() if key.startswith(("path:", "port down:"))}
            expect(found, {"path: registered": "yes", "path: persistent flush": "ok", "path: data": "yes",
                           "port down: status of a write": "transport retry counter exceeded"}, device)
            lines = pathlib.Path(errors).read_text(encoding="utf-8").splitlines()
            expect(len(lines), 2, f"lines for the user: {lines}")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(check, ("mlx5", "rxe"), ("device", "fs")))
    with tempfile.NamedTemporaryFile() as other:
        other.write(bytes(1 << 16))
        other.flush()
        for path, words in (("/none/memory", "the file does not exist"), (other.name, "is not persistent memory")):
            done = run(RDMA_SIM, RPMA_CHECK, "--server", "--memory", path, ADDRESS)
            expect_one_line(done, 2, path)
            expect(words in done.stderr, True, done.stderr)


@test("rpma-check runs in containers")
def containers():
    """An unprivileged user, whose programs have namespaces of their own, if this machine permits it."""
    container = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--ipc",
                 "--uts")
    if run(*USER, *container, "true").returncode != 0:
        print("# this machine permits a user no namespaces: without them")
        container = ()
    fabric, server, client = ((RDMA_SIM, "--device", "siw"), (RPMA_CHECK, "--once", "--server", ADDRESS), (RPMA_CHECK, ADDRESS))
    # The fabric and both programs in one container, and each program in a container of its own.
    words = ((*USER, *container, *fabric, *server, "::", *client),
             (*USER, *fabric, *container, *server, "::", *container, *client))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in pool.map(lambda each: run(*each, timeout=LIMIT, env=os.environ | {"HOME": "/nonexistent"}), words):
            expect((done.returncode, "results, 0 differences" in done.stdout), (0, True), f"{done.args}: {done.stdout}{done.stderr}")


@test("the schema refuses addresses and serial numbers in each text, and the program reports none")
def private_data():
    validator, good = reports.validator(), reports.report("mlx5", answers={"cq: 0": "made"})
    validator.validate(good)
    addresses = ("192.0.2.17", "fe80::1:2", "00:11:22:33:44:55", "0x506b4b0300c1d2e4", "506b4b0300c1d2e4")
    for secret in (*addresses, "node17.example.com", "6.1.0-28-node17"):
        for changes in ({"device": good["device"] | {"host": secret}}, {"attributes": {"attr.max_qp": secret}}, {"host": secret},
                        *({"device": good["device"] | {text: secret}} for text in ("driver", "model", "kernel", "rdma_core")),
                        {"device": good["device"] | {"link": good["device"]["link"] | {"transport": secret}}}):
            expect(validator.is_valid(good | changes), False, f"{changes}")
    for secret in addresses:
        for changes in ({"answers": {"cq: 0": secret}}, {"answers": {secret: "made"}}, {"promises": {secret: "none"}}):
            expect(validator.is_valid(good | changes), False, f"{changes}")
    expect(validator.is_valid(good | {"device": good["device"] | {"firmware": addresses[-1]}}), False, "firmware")
    with device_of(reports.report("siw", device=reports.side("siw") | {"firmware": addresses[-1]})) as path:
        _, report = report_of(path, "siw")
    expect(report["device"]["firmware"], "", "firmware that is a serial number")
    validator.validate(report)


if __name__ == "__main__":
    tests = {"devices": (devices,), "quick": (devices, arguments, lists, versions, no_device, private_data)}
    harness.TESTS[:] = [test for test in harness.TESTS if not PART or test[1] in tests[PART[0]]]
    sys.exit(harness.main())
