#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Builds the programs of a release with its header, and runs them with the current library.

libibverbs and librdmacm are fakes. RELEASE may be "today": the same sources with include/librpma.h,
linked to the library itself. With --into the programs are only built, for a run on an RDMA device.
"""

import argparse
import functools
import os
import pathlib
import shlex
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import common
import view

PROGRAMS = common.HERE / "programs"
PROGRAM = [PROGRAMS / name for name in ("release.c", "session.c", "loopback.c")]
FAKE_HEADERS = common.ROOT / "tests" / "unit" / "fakes"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="directory of librpma.so.0")
    parser.add_argument("--fakes", type=pathlib.Path, help="directory of the fakes")
    parser.add_argument("--into", type=pathlib.Path, metavar="DIRECTORY",
                        help="only build the programs there, to run them elsewhere")
    parser.add_argument("--cc", default="cc", help="compiler with its options")
    parser.add_argument("releases", nargs="+", metavar="RELEASE", help='"all" means each')
    options = parser.parse_args()
    if not options.fakes and not options.into:
        parser.error("--fakes or --into is needed")
    if options.releases == ["all"]:
        options.releases = common.original_releases() + ["today"]
    return options


def number_of(release):
    """The value of RELEASE in release.c. 1.0.0 to 1.3.0, which have the same functions, and today's are 100."""
    if release == "today":
        return 100
    return min(100 * common.version(release)[0] + common.version(release)[1], 100)


def table_source(functions):
    """Takes the address of every function of a release: -z now binds them all at the start, so the
    loader must find each at its version node in the library of the release."""
    names = "".join(f"    (void (*)(void)){name},\n" for name in functions)
    return ("#include <librpma.h>\n"
            "extern void (*const every_function[])(void);\n"
            f"void (*const every_function[])(void) = {{\n{names}}};\n")


class Build:
    """The header and the library for building the programs of one release."""

    def __init__(self, release, options, directory):
        self.options, self.directory, self.release = options, directory, release
        self.today = release == "today"
        self.functions, self.node = self.symbols()
        self.cc = shlex.split(options.cc)
        if self.today:
            self.include = common.ROOT / "include"
            self.link = [options.library / common.SONAME]
        else:
            view.write(release, directory)
            self.include = directory / "include"
            self.link = [directory / common.SONAME]
            common.run([*self.cc, "-fno-sanitize=all", "-shared", "-fPIC", "-nostdlib",
                        directory / "stub.c", f"-Wl,-soname,{common.SONAME}",
                        f"-Wl,--version-script,{directory / 'stub.map'}", "-o", self.link[0]])
        (directory / "table.c").write_text(table_source(self.functions), encoding="utf-8")

    def symbols(self):
        """The functions, and their common version node, which "today" lacks."""
        table = common.read_symbols()
        if self.today:
            return sorted({row["symbol"] for row in table}), None
        return common.symbols_of(self.release, table)

    def program(self, number):
        """Compiles as a user of the release did, and links to the library of the release and to the
        fakes, if any."""
        target = self.directory / f"program-{number}"
        fakes = ([self.options.fakes / "libibverbs.so.1", self.options.fakes / "librdmacm.so.1"]
                 if self.options.fakes else [])
        common.run([*self.cc, "-std=gnu11", "-O1", "-pie", "-fPIE", *WARNINGS, f"-DRELEASE={number}",
                    "-DLIBRPMA_NO_DEPRECATED", "-I", self.include, "-I", FAKE_HEADERS, *PROGRAM,
                    self.directory / "table.c", "-Wl,--no-as-needed", *self.link, *fakes, "-Wl,-z,now",
                    "-o", target])
        return target


def check_release(release, options):
    """Runs the program of a release. For "today" it runs the programs of all releases with the current header."""
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        build = Build(release, options, pathlib.Path(directory))
        releases = common.original_releases() if build.today else [release]
        numbers = sorted({number_of(each) for each in releases})
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{options.library}:{options.fakes}",
                       "ASAN_OPTIONS": "detect_leaks=0"}
        for number in numbers:
            common.run([build.program(number)], env=environment)
        return (f"{release}: {len(numbers)} programs ran, {len(build.functions)} functions bound at "
                f"{build.node or 'their default nodes'}")


def build_into(release, options):
    """Builds the program under its release's name. Its arguments are an address and optionally a
    memory file."""
    target = options.into / f"program-{release}"
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        build = Build(release, options, pathlib.Path(directory))
        shutil.copy(build.program(number_of(release)), target)
    return f"{target} is ready"


def main():
    options = parse()
    work = build_into if options.into else check_release
    options.library = options.library.resolve()
    options.fakes = options.fakes and options.fakes.resolve()
    common.finish("programs", [functools.partial(work, release, options)
                               for release in options.releases])


if __name__ == "__main__":
    main()
