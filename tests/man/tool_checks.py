# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that run the tools of readers: mandoc, groff, man-db and a C compiler."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import contract
import mdoc

WIDTH = 80


class Missing(Exception):
    """The check needs a tool that is missing."""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed: run tools/setup man")


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@contextlib.contextmanager
def installed(book):
    """Yields (a temporary directory, the pages in it), as installed."""
    with tempfile.TemporaryDirectory(prefix="librpma-man-") as directory:
        root, files = pathlib.Path(directory), [f"man{page.volume}/{page.name}" for page in book.pages]
        for page, file in zip(book.pages, files):
            (root / file).parent.mkdir(exist_ok=True)
            (root / file).write_text(page.text, encoding="utf-8")
        yield root, files


def output_lines(command, root):
    """The output of a tool that must not print anything."""
    done = run(command, cwd=root)
    for line in (done.stderr + done.stdout).splitlines():
        yield line
    if done.returncode and not done.stderr + done.stdout:
        yield f"{' '.join(command)} ended with {done.returncode}"


def check_mandoc(book):
    """mandoc's linter reports no warning."""
    need("mandoc")
    with installed(book) as (root, files):
        for file in files:
            yield from output_lines(["mandoc", "-T", "lint", "-W", "warning", file], root)


def check_groff(book):
    """groff formats each page without any warning. The title does not name BSD, which is the
    default of 1.22. Since 1.23, the warning "break" reports lines that groff cannot adjust to
    the margin."""
    need("groff")
    with installed(book) as (root, files):
        for file in files:
            done = run(["groff", "-ww", "-Wbreak", "-mandoc", "-Tutf8", file], cwd=root)
            yield from done.stderr.splitlines()
            if "BSD" in done.stdout.splitlines()[0]:
                yield f"{file}: the title names BSD"


def check_displays(book):
    """A line in a display is rendered as it is written, so that readers can copy the command."""
    need("mandoc")
    with installed(book) as (root, files):
        for page, file in zip(book.pages, files):
            text = re.sub(".\b", "", run(["mandoc", "-T", "utf8", "-O", "width=200", file], cwd=root).stdout)
            text = " ".join(text.replace("’", "'").replace("‘", "`").split())
            for line in page.lines:
                wanted = " ".join(mdoc.unescape(line.raw).split()[1:])
                if line.macro in ("Dl", "D1") and wanted not in text:
                    yield f"man/{page.name}:{line.number}: not rendered as {wanted!r}"


# The tools for developers of the checkout; the programs in programs/ have tests of their own.
TOOLS = ["tools/[!R]*", "bench/perftest", "bench/run", "examples/run", "tests/newcomer/demo.py",
         "tests/integration/run.py"]


# Wrong arguments of the tools, in addition to an unknown option for each. In PATH, a failing
# program replaces those that a tool would run for preparations.
WRONG = {"bench/perftest": ["--rounds 0", "word"],
         "bench/run": ["--rounds 0", "--predecessor /proc", "--json /proc/1/no/file", "word"],
         "tests/newcomer/demo.py": ["("],
         "tools/coverage": ["word"],
         "tools/demo": ["word", "--in-lab word"],
         "tools/lab": ["word", "run", "run --build", "run --build word -- true", "run --hosts 0 -- true", "shell word",
                       "run --pmem /proc -- true", "run --devdax /no/such/file -- true", "prepare --provider word",
                       "build word", "chroot", "check word"],
         "tools/mutants": ["no-such-source", "--count -1", "--jobs 0", "--part 2/1", "--again /no/such/log"],
         "tools/package": ["word", "lab bookworm word", "rpm bookworm", "upgrade --option"],
         "tools/release": ["word", "--make word", "--rehearsal word"],
         "tools/setup": ["word", "build word", "all word"],
         "tools/test": ["word", "style word"]}
PREPARATION_PROGRAMS = ["apt-get", "meson", "ninja", "mmdebstrap", "cc", "git"]


def check_refusals(source, tool, directory):
    """A tool rejects a wrong argument in one line with status 2, before any preparation."""
    ran = directory / "ran"
    environment = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "LIBRPMA_LAB_CACHE": f"{directory}/cache"}
    for arguments in ["--no-such-option", *WRONG.get(str(tool.relative_to(source)), [])]:
        done = run([tool, *arguments.split()], env=environment, stdin=subprocess.DEVNULL, cwd=source)
        lines = done.stderr.splitlines()
        if done.returncode != 2 or done.stdout or len(lines) != 1 or not lines[0].startswith((f"{tool.name}: ", "lab: ")):
            yield f"{tool.relative_to(source)} {arguments}: status {done.returncode}: {(done.stderr + done.stdout)[:200]}"
        if ran.exists():
            yield f"{tool.relative_to(source)} {arguments}: first runs {ran.read_text().strip()}"
            ran.unlink()


def check_help(source):
    """The --help of each tool fits a terminal and ends successfully, or fails if it cannot be written."""
    tools = [tool for pattern in TOOLS for tool in sorted(source.glob(pattern)) if tool.is_file()]
    with tempfile.TemporaryDirectory(prefix="librpma-man-") as directory:
        for name in PREPARATION_PROGRAMS:
            program = pathlib.Path(directory) / name
            program.write_text(f"#!/bin/sh\necho {name} >>{directory}/ran\nexit 1\n")
            program.chmod(0o755)
        for tool in tools:
            if tool.relative_to(source).parts[0] in ("tools", "bench"):
                yield from check_refusals(source, tool, pathlib.Path(directory))
    for tool in tools:
        with open("/dev/full", "w") as full:
            done = subprocess.run([tool, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
        if not done.returncode or not done.stderr:
            yield f"{tool.relative_to(source)} --help >/dev/full: status {done.returncode}, {len(done.stderr)} bytes on stderr"
        name = tool.relative_to(source)
        done = run([tool, "--help"], env={**os.environ, "COLUMNS": str(WIDTH), "LC_ALL": "C.UTF-8"})
        if done.returncode or done.stderr or not done.stdout.startswith("usage: "):
            yield f"{name} --help: status {done.returncode}: {done.stderr or done.stdout[:40]}"
        for line in done.stdout.splitlines():
            if len(line) > WIDTH:
                yield f"{name} --help: {len(line)} columns: {line.strip()}"


def check_width(book):
    """No line of a rendered page, or of a tool's help, is wider than a terminal."""
    yield from check_help(book.source)
    need("mandoc", "groff")
    # groff 1.23, of Debian 13, indents the text by two columns more than 1.22.
    narrow = ["-rLL=76n"] if " 1.22" in run(["groff", "--version"]).stdout else []
    with installed(book) as (root, files):
        for file in files:
            for tool in (["mandoc", "-T", "utf8", file],
                         ["groff", "-mandoc", "-Tutf8", *narrow, "-P-cbou", file]):
                text = run(tool, cwd=root).stdout
                text = re.sub(".\b", "", text)  # overstrikes of bold and underlined characters
                if len(text.splitlines()) < 10:
                    yield f"{file}: {tool[0]} renders fewer than 10 lines"
                for line in text.splitlines():
                    if len(line) > WIDTH:
                        yield f"{file}: {tool[0]} renders {len(line)} columns: {line.strip()}"


def check_whatis(book):
    """man-db finds each name in NAME, so that apropos lists it."""
    need("lexgrog")
    with installed(book) as (root, files):
        output = run(["lexgrog", *files], cwd=root).stdout
    lines = re.findall(r': "((\S+) - .+)"$', output, flags=re.M)
    listed = {name for _, name in lines}
    for word, page in APROPOS_WORDS.items():
        if page not in {name for line, name in lines if word in line}:
            yield f"man -k '{word}' would not find {page}"
    for name in [*contract.exported_functions(book.source), *contract.programs(book.source), "librpma"]:
        if name not in listed:
            yield f"whatis would not find {name}: no page has it in NAME"


# Words that readers pass to man -k, and the page that must be found.
APROPOS_WORDS = {
    "reconnect": "rpma_failures", "failover": "rpma_failures", "dead peer": "rpma_failures",
    "poison": "rpma_failures", "statistics": "rpma_network", "tracing": "rpma_tracing", "latency": "rpma_tracing", "bond": "rpma_network", "GPU": "rpma_devices",
    "timeout": "rpma_conn_cfg_set_timeout", "retry": "rpma_conn_cfg_set_retry_count", "queue": "rpma_cq_new",
    "remote atomics": "rpma_post", "rolling upgrade": "rpma_upgrading", "soft-RoCE": "rpma_soft_devices",
    "C++": "rpma_cpp", "signals": "rpma_limits", "huge pages": "rpma_limits", "status": "rpma_errors", "multi-rail": "rpma_network",
    "Kubernetes": "rpma_processes", "systemd": "rpma_processes", "cancel": "rpma_failures",
    "byte order": "rpma_memory_model", "libfabric": "rpma_memory_model", "hang": "rpma_hangs", "memlock": "rpma_limits",
    "Docker": "rpma_processes", "CXL": "rpma_pmem", "encryption": "rpma_security", "fence": "rpma_security",
    "replica": "rpma_failures", "power": "rpma_pmem", "CI": "rpma_testing", "sanitizer": "rpma_testing",
    "firewall": "rpma_troubleshooting", "sizing": "rpma_limits", "NUMA": "rpma_scaling", "SR-IOV": "rpma_network",
    "PFC": "rpma_network", "IPv6": "rpma_network", "authentication": "rpma_security", "rkey": "rpma_security",
    "memory windows": "rpma_security", "dma-buf": "rpma_devices", "Optane": "rpma_pmem", "benchmark": "rpma-perf",
    "percentiles": "rpma-perf", "valgrind": "rpma_testing", "io_uring": "rpma_tutorial", "epoll": "rpma_tutorial",
    "static linking": "rpma_upgrading", "musl": "rpma_upgrading", "support": "rpma_upgrading", "pod": "rpma_processes",
    "crash consistency": "rpma_memory_model", "threads": "rpma_processes", "coroutines": "rpma_cpp", "index": "rpma_index",
    "UCX": "librpma", "EFA": "rpma_devices", "battery": "rpma_pmem", "counters": "rpma_network", "DSCP": "rpma_network",
    "Rust": "rpma_processes", "Go": "rpma_processes", "gtest": "rpma_testing", "unit test": "rdma-sim-test",
    "vulnerability": "rpma_security", "keepalive": "rpma_failures", "quorum": "rpma_failures", "cloud": "rpma_devices",
    "QoS": "rpma_network", "kernel versions": "rpma_upgrading", "Python": "rpma_python", "on-demand paging": "rpma_utils_ibv_context_is_odp_capable", "completion queue": "rpma_cq_new",
}


def compilers():
    named = os.environ.get("CC")
    found = [named.split()] if named else []
    found += [[each] for each in ("gcc", "clang") if shutil.which(each)]
    if not found:
        raise Missing("no C compiler (gcc or clang) is installed: run tools/setup build")
    return found


def check_examples(book):
    """The C code of the pages and documents is complete and compiles without a warning."""
    flags = ["-x", "c", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
             f"-I{book.source / 'include'}", "-c", "-o", os.devnull, "-"]
    tools = compilers()
    probe = run(tools[0] + flags, input="#include <infiniband/verbs.h>\n")
    if probe.returncode:
        raise Missing("infiniband/verbs.h is not installed: run tools/setup library")
    shown = 0
    for page in book.pages:
        for number, code in page.literal_blocks():
            if code.startswith(("#include", "#define")):
                shown += 1
                yield from compile_block(tools, flags, f"man/{page.name}", number, code)
            elif re.search(r";$|\brpma_\w+\(", code, flags=re.M):
                yield (f"man/{page.name}:{number}: incomplete code: "
                       "it must begin with #include or #define")
    for place, number, code in document_blocks(book.source):
        shown += 1
        yield from compile_block(tools, flags, place, number, code)
    print(f"{shown} examples compiled with {', '.join(' '.join(each) for each in tools)}")
    if shown == 0:
        yield "no page shows code"


def document_blocks(source):
    """(file, line, code) of the C in documents; each block is a complete unit."""
    for path in sorted([*source.glob("*.md"), *source.glob("docs/*.md")]):
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```c\n(.*?)^```$", text, flags=re.M | re.S):
            yield path.relative_to(source), text.count("\n", 0, match.start(1)) + 1, match.group(1)


def compile_block(tools, flags, place, number, code):
    if re.search("#include <librpma.*hpp>", code):
        compilers = {"gcc": "g++", "clang": "clang++"}
        tools = [[compilers[tool[0]], *tool[1:]] for tool in tools if tool[0] in compilers]
        flags = [{"c": "c++", "-std=c99": "-std=c++20"}.get(flag, flag) for flag in flags]
    for tool in tools:
        text = f'#line {number} "{place}"\n{code}'
        # gcc finds some faults only when it optimizes; clang finds all of its own before.
        done = run([*tool, *flags, *(["-fsyntax-only"] if tool[0].startswith("clang") else [])], input=text)
        if done.returncode:
            fault = [line for line in done.stderr.splitlines() if "error:" in line]
            yield f"{tool[0]}: {(fault or [done.stderr])[0]}"
