#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""Tests rdma-sim --device FILE, a report of a device: report.py RDMA_SIM REPORT_TEST CONFORMANCE EXCHANGE"""

import contextlib
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import harness
import device_reports as reports
from harness import expect, expect_one_line, run, test

RDMA_SIM, REPORT_TEST, CONFORMANCE, EXCHANGE = sys.argv[1:]
DIFFERENCE = {"expected": "made", "source": "conformance", "found": "made", "severity": "page is wrong"}


@contextlib.contextmanager
def files(*contents):
    """Paths of files that have these reports, or bytes."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, content in enumerate(contents):
            path = pathlib.Path(folder) / f"report{number}.json"
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            paths.append(str(path))
        yield paths


def results(device, program, *words):
    """{question: result} of a program of tests/conformance."""
    done = run(RDMA_SIM, "--device", device, program, "10.77.0.1", *words, timeout=100)
    return dict(line.split("\t") for line in done.stdout.splitlines())


def expect_results(found, wanted, what):
    questions = [question for question in found | wanted if found.get(question) != wanted.get(question)]
    expect({question: found.get(question) for question in questions},
           {question: wanted.get(question) for question in questions}, what)


def sim(device, *arguments, command=("true",)):
    return run(RDMA_SIM, "--device", device, *arguments, *command)


@test("the attributes of each device make each other device equal to it")
def attributes():
    names = reports.simulated()
    pairs = [(base, name) for base in names for name in names]
    with files(*[reports.report(name, device=reports.side(base)) for base, name in pairs]) as paths:
        done = run(REPORT_TEST, *[word for path, (_, name) in zip(paths, pairs) for word in (path, name)])
    expect((done.returncode, done.stdout), (0, ""), "differences")
    named = {word for line in done.stderr.splitlines() for word in line.split(": not replayed: ")[1].split()[::2]}
    expect(named <= set(reports.devices.FIXED), True, done.stderr)


@test("a report without attributes and answers is the device of its driver and transport")
def base():
    names = reports.simulated()
    with files(*[reports.report(name, attributes={}) for name in names]) as paths:
        done = run(REPORT_TEST, *[word for pair in zip(paths, names) for word in pair])
        expect((done.returncode, done.stdout, done.stderr), (0, "", ""), "differences")
        for path, name in list(zip(paths, names))[:3]:
            devinfo = [sim(device, command=("ibv_devinfo", "-v")).stdout for device in (path, name)]
            expect(devinfo[0], devinfo[1], f"ibv_devinfo of {name}")


@test("each device behaves like the report of another one with its transport, in all questions of its attributes")
def behaviour():
    # ionic sizes its queues as rxe does.
    for name, base in (("rxe", "ionic"), ("ionic", "rxe")):
        with files(reports.report(name, device=reports.side(base))) as (path,):
            for program in (CONFORMANCE, EXCHANGE):
                wanted, found = results(name, program), results(path, program)
                expect(len(found) > 50, True, f"{program}: {found}")
                expect_results(found, wanted, f"{program} on the report of {name}, based on {base}")


def rows():
    """{question: {result: value}} of device/answers.tsv; the form of the results instead, if they have no values."""
    found = {}
    for line in (reports.SIM / "device/answers.tsv").read_text(encoding="utf-8").splitlines()[3:]:
        _, question, words = line.split("\t")
        found[question] = dict(word.rsplit("=", 1) for word in words.split(" | ")) if "=" in words else words
    return found


def other(words, result):
    """A result that differs from that of the base."""
    if isinstance(words, dict):
        return next(word for word, value in words.items() if value != words[result])
    if words == "NUMBER":
        return str(int(result) - 1)
    return {"ERROR": "EBADF", "NULL ERROR": "NULL EBADF", "STATUS": "fatal error"}[words]


@test("each answer of device/answers.tsv changes the answer of the device to it")
def answers():
    table, changed = rows(), set()
    for base, without in (("rxe", {"srq: 10"}), ("siw", {"srq: 10"}), ("rxe", set(table) - {"srq: 10"})):
        before = results(base, CONFORMANCE) | results(base, EXCHANGE)
        wanted = {question: other(words, before[question]) for question, words in table.items()
                  if question not in without and before[question] != "not asked"}
        with files(reports.report(base, attributes={}, answers=wanted)) as (path,):
            found = results(path, CONFORMANCE, "each") | results(path, EXCHANGE, "each")
        for question, result in wanted.items():
            words = table[question]
            same = words.get if isinstance(words, dict) else str
            expect(same(found.get(question, "")), same(result), f"{question} on {base}, which had {before[question]}")
        changed |= set(wanted)
    expect(set(table) - changed, set(), "questions without a test")


@test("what the fabric cannot express is named in one line, and the rest is replayed")
def missing():
    changes = {"attributes": {"attr.phys_port_cnt": 2, "attr.max_sge": 5000, "has_rc": True, "timeout": "of the moon",
                              "attr.max_qp_wr": 77, "events": "PORT_ERR NO_EVENT"},
               "answers": {"cq: 0": "NULL EBUSY", "cq: 10, entries": "77", "write: data": "x", "srq: query": "0"},
               "differences": [DIFFERENCE | {"question": question}
                               for question in ("cq: 0", "cq: 10, entries", "srq: query", "a promise")]}
    with files(reports.report("mlx5", **changes)) as (path,):
        done = sim(path, command=("ibv_devinfo", "-v"))
        line = (f"rdma-sim: --device {path}: not replayed: attr.max_sge 5000, attr.phys_port_cnt 2, "
                'events "PORT_ERR NO_EVENT", timeout "of the moon", "cq: 0", "cq: 10, entries"\n')
        expect((done.returncode, done.stderr), (0, line), "the line")
        expect("max_qp_wr:\t\t\t77\n" in done.stdout, True, done.stdout)
        expect("fw_ver:\t\t\t\t1.0\n" in done.stdout, True, done.stdout)


@test("rdma-sim reads each received report")
def received():
    with files(*reports.received().values()) as paths:
        for name, path in zip(reports.received(), paths):
            expect(sim(path).returncode, 0, name)


def broken():
    """(what, content of the file, words of the line)"""
    good = reports.report("mlx5")
    without = [({key: value for key, value in good.items() if key != name}, name)
               for name in ("device", "attributes", "answers", "differences")]
    yield "an empty file", b"", "not JSON: byte 1"
    yield "no JSON", b"device: mlx5\n", "not JSON: byte 1"
    yield "a part of a report", json.dumps(good).encode()[:500], "not JSON: byte"
    yield "invalid UTF-8", b'{"format": 1, "program": "\xff\xfe"}', "not JSON: byte"
    yield "zeros", bytes(100), "not JSON"
    yield "a deep array", b'{"format": ' + b"[" * 1000000, "is not a report"
    yield "a large file", b" " * (5 << 20), "larger than a report"
    yield "another format", good | {"format": 2}, "the report has format 2; this rdma-sim reads 1"
    yield "a format that is no number", good | {"format": {"a": 1}}, 'has format {"a":1}'
    for content in (b"1", b"null", b"[]", b"{}", b'"text"', json.dumps([good]).encode()):
        yield f"{content[:20]}", content, "it is not a report of a device"
    for content, name in without:
        yield f"no {name}", content, f"'{name}' is missing or wrong"
        yield f"another {name}", good | {name: 1}, f"'{name}' is missing or wrong"
    for name in ("driver", "firmware", "link"):
        yield f"no {name}", good | {"device": good["device"] | {name: None}}, f"'{name}' is missing or wrong"
    for driver, transport in (("none", "RoCE"), ("mlx5_core", "iWARP"), ("", "RoCE"), ("idpf", "RoCE")):
        device = good["device"] | {"driver": driver, "link": {"transport": transport}}
        yield driver, good | {"device": device}, f"no device with the driver '{driver}' and the transport '{transport}'"
    yield "an unknown attribute", good | {"attributes": {"attr.max_ee": 1}}, "there is no attribute 'attr.max_ee'"
    for key, kind in reports.devices.attributes().items():
        wrong = {"number": [-1, 1 << 64, 1.5, "1", None], "yes_no": ["yes", 1, None], "error": ["EXYZ", 12, "", "-2"],
                 "constant": [1, None], "bits": [-1, 1.5, None, []], "behaviour": [1, None]}[kind]
        for value in wrong:
            yield f"{key} {value}", good | {"attributes": {key: value}}, f"{key} is "
    yield "a large number", good | {"attributes": {"attr.max_qp": 1 << 31}}, "attr.max_qp is a number from 0 to 2147483647, not"
    yield "an answer that is no text", good | {"answers": {"cq: 0": 1}}, "the answer to 'cq: 0' is a text, not 1"
    yield "a difference without a question", good | {"differences": [{}]}, "'question' is missing or wrong"
    yield "a difference that is no object", good | {"differences": [1]}, "'question' is missing or wrong"


@test("a file that is no report of a device is refused by one line, and nothing starts")
def refused():
    cases = list(broken())
    expect(len(cases) > 300, True, f"{len(cases)} cases")
    with files(*[content for _, content, _ in cases]) as paths:
        for path, (what, _, words) in zip(paths, cases):
            done = sim(path, command=("echo", "started"))
            expect_one_line(done, 2, what)
            expect(done.stderr.startswith(f"rdma-sim: --device {path}: ") and words in done.stderr, True,
                   f"{what}: {done.stderr}")
    for path, words in (("/none/report.json", "No such file"), ("none.json", "No such file"), ("/", "Is a directory"),
                        ("./none\n.json", "No such file"), ("host9=./x.json", "No such file")):
        done = sim(path, command=("echo", "started"))
        expect_one_line(done, 2, path)
        expect(words in done.stderr, True, done.stderr)


@test("a report is the device of one host, and of an exploration")
def hosts():
    with files(reports.report("mlx5", attributes={"attr.max_qp_wr": 77}), reports.report("siw")) as (path, other):
        done = run(RDMA_SIM, "-d", f"host2={path}", "-d", f"host1={other}", "-l", "ibv_devinfo", "-v", "::", "ibv_devinfo", "-v")
        found = [line for line in done.stdout.splitlines() if "max_qp_wr:" in line]
        expect([line.split()[0] for line in found if line.split()[-1] == "77"], ["host2:"], done.stdout + done.stderr)
        done = run(RDMA_SIM, "explore", "--device", path, "--check", "true", "--seeds", "1-2", "ibv_devinfo")
        expect((done.returncode, done.stderr), (0, ""), "explore")


if __name__ == "__main__":
    sys.exit(harness.main())
