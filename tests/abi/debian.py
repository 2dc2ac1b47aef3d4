#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares with Debian's librpma0 and librpma-dev 1.2.0, which are downloaded and never installed.

usage: debian.py abidiff BUILD           no incompatible change, by symbols and by types
       debian.py program BUILD FAKES [CC]  a program linked to Debian's library runs with this one
       debian.py build DIRECTORY         builds such a program as DIRECTORY/debian-1.2.0

The packages are kept in $XDG_CACHE_HOME/librpma, or ~/.cache/librpma. The arguments of the program
are the address of an RDMA device and optionally a file on persistent memory.
"""

import functools
import os
import pathlib
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import common
import library as elf
import released
import releases

VERSION = "1.2.0"
PACKAGES = ["librpma0", "librpma-dev"]


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(home) / "librpma" / f"debian-{VERSION}"


def cached(name):
    return sorted(cache().glob(f"{name}_{VERSION}-*.deb"))


def fetch(name):
    """Downloads to another directory, so that an incomplete download is never used as a package."""
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        os.chmod(directory, 0o755)
        done = common.run(["apt-get", "download", "-q", f"{name}={VERSION}-*"], cwd=directory,
                          check=False)
        found = list(pathlib.Path(directory).glob("*.deb"))
        if done.returncode != 0 or not found:
            lines = [line for line in done.stdout.splitlines() if line.startswith("E:")]
            raise common.Missing(f"Debian's {name} {VERSION} could not be fetched "
                                 f"({lines[0] if lines else 'apt-get download failed'}); "
                                 "apt-get update may help")
        cache().mkdir(parents=True, exist_ok=True)
        partial = cache() / f".{os.getpid()}.{found[0].name}"
        shutil.copy(found[0], partial)
        partial.rename(cache() / found[0].name)


class Debian:
    """The unpacked packages."""

    def __init__(self, directory):
        for name in PACKAGES:
            if not cached(name):
                fetch(name)
            common.run(["dpkg-deb", "--extract", cached(name)[-1], directory])
        self.root = pathlib.Path(directory)
        self.include = self.root / "usr" / "include"
        found = sorted(self.root.glob(f"usr/lib/*/{common.SONAME}"))
        if not found:
            raise common.Fault(f"Debian's packages do not contain {common.SONAME}")
        self.library = found[0]


# ---- abidiff -------------------------------------------------------------------------------


def check_symbols(debian, build):
    if not released.abidiff(debian.library, build / "src" / common.SONAME, "--no-added-syms"):
        raise common.Fault("abidiff does not mention the added symbols: it compared nothing")
    return f"abidiff: no symbol of Debian's librpma0 {VERSION} was removed or changed"


def check_original(debian):
    """contract/original/symbols.tsv lists the exports of this release's binary."""
    exported = {(node, name) for name, node, _ in elf.exports(debian.library) if name != node}
    listed = {(row["node"], row["symbol"]) for row in common.read_symbols() if VERSION in row["releases"]}
    common.expect_same(exported, listed, f"only in Debian's {VERSION}", "only in contract/original/symbols.tsv")
    return f"the {len(listed)} symbols of Debian's {VERSION} are those of contract/original"


def check_types(debian):
    text = (debian.include / "librpma.h").read_text(encoding="utf-8")
    exported = {name: node for name, node, _ in elf.exports(debian.library) if name != node}
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as name:
        today = common.HEADER.read_text(encoding="utf-8")
        before, after = (
            released.witness(pathlib.Path(name) / kind, content, exported, common.read_prototypes())
            for kind, content in (("before", text), ("after", today)))
        released.abidiff(before, after, "--fail-no-debug-info")
    return f"abidiff: no type of the {len(exported)} functions of {VERSION} was changed"


# ---- a program -----------------------------------------------------------------------------


def build_program(debian, directory, cc=("cc",)):
    """Builds like a user of Debian's librpma-dev: with its header and library, without any of ours."""
    target = directory / f"debian-{VERSION}"
    common.run([*cc, "-std=gnu11", "-O1", "-I", debian.include, "-I", releases.FAKE_HEADERS,
                *releases.PROGRAM, "-Wl,--no-as-needed", debian.library, "-Wl,-z,now", "-o", target])
    return f"{target} is ready; arguments: ADDRESS [FILE]"


def check_program(debian, build, fakes, cc="cc"):
    build_program(debian, debian.root, shlex.split(cc))
    target, library = debian.root / f"debian-{VERSION}", build / "src" / common.SONAME
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0",
                   "LD_LIBRARY_PATH": f"{library.parent}:{fakes}"}
    if str(library) not in common.run(["ldd", target], env=environment):
        raise common.Fault(f"the program does not load {library}")
    common.run([target], env=environment)
    return f"a program linked to Debian's {VERSION} runs without relinking"


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("abidiff", "program", "build"):
        sys.exit(__doc__)
    kind, where = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        debian = functools.cache(lambda: Debian(directory))
        checks = {"abidiff": [lambda: check_original(debian()), lambda: check_symbols(debian(), where),
                              lambda: check_types(debian())],
                  "program": [lambda: check_program(debian(), where, *sys.argv[3:])],
                  "build": [lambda: build_program(debian(), where)]}
        common.finish(f"debian {kind}", checks[kind])


if __name__ == "__main__":
    main()
