#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Tests rpma-trace, its scripts and the probes of the library: trace.py SOURCE BUILD LIBRARY HAS_PROBES

The lab runs the scripts (tests/integration/cases/tracing.py); this test compares their probes
with the library.
"""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import harness
from harness import Skipped, expect, expect_one_line, run, test

SOURCE, LIBRARY, HAS_PROBES = pathlib.Path(sys.argv[1]).resolve(), os.path.realpath(sys.argv[3]), sys.argv[4] == "true"
SCRIPTS = pathlib.Path(sys.argv[2]).resolve() / "programs/trace"
PROGRAM = str(SCRIPTS / "rpma-trace")
PAGE = SOURCE / "man/rpma_tracing.7"
# The size of an argument in bytes, as in the description of a probe: negative if it is signed.
SIZES = {"int": -4, "uint32_t": 4, "uint64_t": 8, "bool": 1}
PROBE = re.compile(r"(usdt|uprobe|uretprobe):\S+?:(?:librpma:)?(\w+)\b,?")


def probes():
    """The set of (name, argument sizes) of the probes in the library."""
    notes = run("readelf", "--notes", LIBRARY, env={**os.environ, "LC_ALL": "C"}).stdout
    found = re.findall(r"Provider: (\w+)\n +Name: (\w+)\n.*\n +Arguments:(.*)", notes)
    expect({provider for provider, *_ in found} - {"librpma"}, set(), "other providers")
    return {(name, tuple(map(int, re.findall(r"(-?\d+)@", arguments)))) for _, name, arguments in found}


def documented():
    """The set of (name, argument sizes) of the probes in the page."""
    entries = re.findall(r"^\.It Fn (\w+) (.*)", PAGE.read_text(encoding="utf-8"), re.M)
    arguments = {name: [argument.rpartition(" ") for argument in re.findall(r'"(.*?)"', rest)]
                 for name, rest in entries}
    return {(name, tuple(8 if last.startswith("*") else SIZES[kind] for kind, _, last in listed))
            for name, listed in arguments.items()}


def check_uses(where, text):
    """Each probe in a bpftrace program exists and has the arguments that the program uses."""
    counts = {name: len(sizes) for name, sizes in probes()}
    exported = set(re.findall(r" T (\w+)@", run("nm", "--dynamic", LIBRARY).stdout))
    uses = list(PROBE.finditer(text))
    expect(bool(uses), True, f"{where} uses probes")
    for number, use in enumerate(uses):
        kind, name = use.groups()
        expect(name in (counts if kind == "usdt" else exported), True, f"{where}: {use.group()} exists")
        end = uses[number + 1].start() if number + 1 < len(uses) else len(text)
        for argument in re.findall(r"\barg(\d)\b", text[use.end():end]) if kind == "usdt" else ():
            expect(int(argument) < counts[name], True, f"{where}: {name} has the argument {argument}")


@test("help, manual page and completion have the same options and scripts")
def lists():
    completion = SOURCE / "programs/completion/rpma-trace"
    page = SOURCE / "man/rpma-trace.1"
    harness.check_lists(PROGRAM, "rpma-trace", page, completion)
    names = {path.stem for path in SCRIPTS.glob("*.bt")}
    shown = run(PROGRAM, "--help").stdout.split("options\n")[0]
    expect(set(re.findall(r"^  ([a-z-]+)", shown, re.M)), names, "scripts of --help")
    expect(set(re.findall(r"^\.It Cm (\S+)", page.read_text(encoding="utf-8"), re.M)), names, "scripts of the page")
    expect(set(harness.completed(completion, "rpma-trace", "")) & names, names, "scripts of the completion")
    expect(set(re.findall(r"rpma-trace ([a-z]\S+) Ta", PAGE.read_text(encoding="utf-8"))), names, "scripts of rpma_tracing")


@test("the version, and an output that cannot be written")
def version():
    number = re.search(r"version: '([^']+)'", (SOURCE / "meson.build").read_text(encoding="utf-8")).group(1)
    expect(run(PROGRAM, "--version").stdout, f"rpma-trace {number}\n", "--version")
    for option in ("--version", "--help"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            expect_one_line(run(PROGRAM, option, stdout=full), 1, f"{option} to a full device")


@contextlib.contextmanager
def commands(**scripts):
    """An environment whose PATH begins with these commands."""
    with tempfile.TemporaryDirectory() as directory:
        for name, script in scripts.items():
            path = pathlib.Path(directory, name)
            path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            path.chmod(0o755)
        yield {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"}


WRONG = {
    2: [[], ["nothing"], ["latency", "failures"], ["../trace/latency"], ["--what", "latency"], ["latency", "--pid"],
        ["--pid", "0", "latency"], ["--pid", "1 2", "latency"], ["--pid", "1$(id)", "latency"], ["--pid", "", "x"]],
    1: [["--pid", "999999999", "latency"], ["--library", "/there/is/none", "latency"], ["--library", "", "latency"],
        ["--pid", str(os.getpid()), "failures"]],
}


@test("an invalid argument or a missing program: one line")
def wrong_arguments():
    with commands(ldconfig="echo none") as environment:
        for status, rows in WRONG.items():
            for arguments in rows:
                expect_one_line(run(PROGRAM, *arguments, env=environment), status, arguments)
        expect_one_line(run(PROGRAM, "latency", env=environment), 1, "no library")
    used = {name: f'exec {shutil.which(name)} "$@"' for name in ("dirname", "readlink", "getopt")}
    with commands(**used) as environment:
        environment["PATH"] = environment["PATH"].split(":")[0]
        done = run(PROGRAM, "--library", LIBRARY, "latency", env=environment)
        expect_one_line(done, 1, "no bpftrace")
        expect("install the package bpftrace" in done.stderr, True, f"the package is named: {done.stderr}")


@test("bpftrace runs the script over the library of the process, the named one or the installed one")
def runs():
    installed = f"echo '	librpma.so.0 (libc6,x86-64) => {LIBRARY}'; echo '	librpma.so.0 (libc6) => /32'"
    with commands(bpftrace='for each; do echo "$each"; done', ldconfig=installed) as environment:
        script = str(SCRIPTS / "failures.bt")
        for arguments in ([], ["--library", LIBRARY]):
            done = run(PROGRAM, *arguments, "failures", env=environment)
            expect((done.stdout.split("\n"), done.stderr), (["-q", "--no-warnings", script, LIBRARY, ""], ""), arguments)
        # Mapped, not loaded: Python cannot load a library that has a sanitizer.
        user = [sys.executable, "-c", "import mmap, sys; file = open(sys.argv[1]); "
                "view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); print(flush=True); sys.stdin.read()", LIBRARY]
        with subprocess.Popen(user, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            done = run(PROGRAM, "failures", "--pid", str(process.pid), env=environment)
            process.stdin.close()
        expect((done.stdout.split("\n"), done.stderr),
               (["-q", "--no-warnings", script, f"/proc/{process.pid}/root{LIBRARY}", str(process.pid), ""], ""), "--pid")


@test("failures.bt names each error code of the header")
def failures_names_codes():
    declared = re.findall(r"^#define (RPMA_E_\w+) \((-\d+)\)", (SOURCE / "include/librpma.h").read_text(encoding="utf-8"), re.M)
    named = re.findall(r'^\t@code\[(-\d+)\] = "(\w+)";$', (SCRIPTS / "failures.bt").read_text(encoding="utf-8"), re.M)
    expect(bool(named), True, "names")
    expect(sorted(named), sorted((value, name) for name, value in declared), "codes and names")


@test("the library has the probes of the page, and the scripts and the page use only those")
def probes_agree():
    if not HAS_PROBES:
        expect(probes(), set(), "probes of a library without tracing")
        raise Skipped("the library was built without probes")
    expect(probes(), documented(), "probes")
    for path in [*SCRIPTS.glob("*.bt"), PAGE]:
        check_uses(path.name, path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(harness.main())
