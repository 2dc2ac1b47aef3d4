#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Installs into a separate directory and builds a program with the installed files.

usage: install.py shared SOURCE BUILD    installs BUILD below a DESTDIR
       install.py static SOURCE BUILD    configures and builds an archive first; installs it with
                                         libraries and headers outside of the prefix
       install.py both SOURCE BUILD      the same with the shared library and the archive

Each checks the installed files, the fields of librpma.pc, and that programs run that were linked with
--no-undefined through pkg-config and find_package(librpma). CMake finds the library by its prefix, by
its own directory, through a symbolic link and after a move, while another prefix has an older release.
With an archive, a program is also linked with -static.
"""

import copy
import functools
import json
import os
import pathlib
import shlex
import shutil
import stat
import sys
import tempfile

sys.dont_write_bytecode = True

import common

PROGRAM = common.HERE / "package" / "program.c"
CXX_PROGRAM = PROGRAM.with_suffix(".cc")
CMAKE_PROJECT = common.HERE / "package"
LIBS = "-lrpma -libverbs -lrdmacm"
PACKAGES = "librdmacm libibverbs"


class Installed:
    """The directories of an installation; root is the DESTDIR, or empty."""

    def __init__(self, build, root, linked):
        self.root, self.linked = root, linked
        options = {option["name"]: option["value"] for option in
                   json.loads(common.run(["meson", "introspect", "--buildoptions", build]))}
        self.version = json.loads(
            common.run(["meson", "introspect", "--projectinfo", build]))["version"]
        self.prefix, self.libdir, self.includedir = (
            pathlib.Path(f"{root}{pathlib.PurePath(options['prefix'], directory)}")
            for directory in ("", options["libdir"], options["includedir"]))
        self.directories = [options["libdir"], options["includedir"]]
        self.cmake_prefix = self.prefix if self.libdir.is_relative_to(self.prefix) else self.libdir
        self.sanitizer = options["b_sanitize"]
        self.pkgconfig = {**os.environ, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig"),
                          **({"PKG_CONFIG_SYSROOT_DIR": root} if root else {})}

    def field(self, *options):
        return common.run(["pkg-config", *options, "librpma"], env=self.pkgconfig).strip()

    def archive(self):
        """The same installation for a program that links the archive."""
        other = copy.copy(self)
        other.linked = "static"
        return other


def check_files(installed):
    library = (installed.linked != "shared") * ["librpma.a"]
    library += (installed.linked != "static") * ["librpma.so", "librpma.so.0"]
    wanted = {installed.includedir / name for name in ("librpma.h", "librpma.hpp", "librpma_coroutine.hpp")}
    wanted |= {installed.libdir / name for name in [
        *library, "pkgconfig/librpma.pc", "librpma/cmake/librpma-config.cmake",
        "librpma/cmake/librpma-config-version.cmake"]}
    found = {path for directory in (installed.prefix, installed.libdir, installed.includedir)
             for path in directory.rglob("*") if path.is_symlink() or path.is_file()}
    besides = [installed.prefix / name for name in (
        "share/man", "share/doc", "share/librpma", "share/rpma-tools", "share/bash-completion/completions")]
    besides += [installed.libdir / "rdma-sim", installed.libdir / "pkgconfig/rdma-sim.pc", installed.includedir / "rdma-sim.h"]
    outside = {path for path in found if not any(map(path.is_relative_to, besides))
               and not path.match("bin/rpma-*") and path.name != "rdma-sim" and path.parent.name != "rpma"}
    common.expect_same(outside, wanted, "unexpected file", "missing file")
    if installed.linked != "static":
        link, real = installed.libdir / "librpma.so", installed.libdir / common.SONAME
        if not link.is_symlink() or os.readlink(link) != common.SONAME:
            raise common.Fault(f"librpma.so is not a link to {common.SONAME}")
        if not stat.S_ISREG(real.lstat().st_mode):
            raise common.Fault(f"{common.SONAME} is not a regular file")
    return f"{len(outside)} files besides the manual and the programs, as wanted"


def check_package_fields(installed):
    libdir, includedir = (path if os.path.isabs(path) else f"${{prefix}}/{path}"
                          for path in installed.directories)
    wanted = {f"libdir={libdir}", f"includedir={includedir}", "Name: librpma", f"Version: {installed.version}",
              "Cflags: -I${includedir}", f"Libs: -L${{libdir}} {LIBS}", f"Requires.private: {PACKAGES}"}
    text = (installed.libdir / "pkgconfig" / "librpma.pc").read_text(encoding="utf-8")
    found = {line for line in text.splitlines() if "dir=" in line or ": " in line and "Description" not in line}
    if found != wanted:
        raise common.Fault(f"librpma.pc has {sorted(found)}, wanted {sorted(wanted)}")
    return f"librpma.pc of version {installed.version}, Libs {LIBS}"


def run_program(installed, target, libdir=None):
    """The program must load this library at run time, or none if it contains the archive."""
    libdir = libdir or installed.libdir
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libdir), "ASAN_OPTIONS": "detect_leaks=0"}
    loaded = common.run(["ldd", target], env=environment)
    shared = [line for line in loaded.splitlines() if common.SONAME in line]
    if installed.linked == "static" and shared:
        raise common.Fault(f"linked to {shared[0].strip()}, wanted the archive")
    if installed.linked != "static" and (not shared or str(libdir) not in shared[0]):
        raise common.Fault(f"{target.name} does not load {libdir / common.SONAME}")
    if "libstdc++" in loaded and installed.sanitizer == "none" and "cpp" not in target.name:
        raise common.Fault(f"{target.name} loads libstdc++")
    common.run([target], env=environment)


def sanitizing(installed):
    return [] if installed.sanitizer == "none" else [f"-fsanitize={installed.sanitizer}"]


def check_pkg_config(installed):
    flags = shlex.split(installed.field("--cflags", "--libs"))
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        for compiler, program in (["cc"], PROGRAM), (["c++", "-std=c++20"], CXX_PROGRAM):
            target = pathlib.Path(directory) / ("program" if program == PROGRAM else "program-cpp")
            common.run([*compiler, *sanitizing(installed), program, *flags, "-Wl,--no-undefined",
                        "-o", target])
            run_program(installed, target)
    return f"programs in C and C++ linked with {' '.join(flags)} run"


def check_archive(installed):
    """A shared object that links the archive exports only the functions of the header. Weak
    templates of the C++ library stay visible."""
    symbols = [line.split() for line in
               common.run(["readelf", "--wide", "--syms", installed.libdir / "librpma.a"]).splitlines()]
    visible = {words[7] for words in symbols if len(words) == 8 and words[4:6] == ["GLOBAL", "DEFAULT"]
               and words[6] != "UND"}
    wanted = {row["symbol"] for row in common.read_symbols()}
    common.expect_same(visible, wanted, "visible and not in the list", "in the list and not visible")
    return f"{len(wanted)} functions in the archive, nothing else visible"


def check_static(installed):
    """
    The link flags name all libraries that libibverbs and librdmacm need, so that the program needs
    no dynamic linker.
    """
    flags = shlex.split(installed.field("--cflags", "--static", "--libs"))
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        target = pathlib.Path(directory) / "program"
        common.run(["cc", "-static", PROGRAM, *flags, "-o", target])
        if "INTERP" in common.run(["readelf", "--program-headers", target]):
            raise common.Fault("a program linked with -static has a dynamic linker")
        common.run([target])
    return f"a program linked with -static and {' '.join(flags)} runs"


def older_release(prefix):
    """Creates a prefix with an older release that breaks every program that uses it."""
    texts = {"include/librpma.h": "#error the header of the older release",
             "lib/librpma/cmake/librpma-config-version.cmake": "set(PACKAGE_VERSION 1.2.0)",
             "lib/librpma/cmake/librpma-config.cmake": "set(librpma_FOUND TRUE)"}
    for name, text in texts.items():
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / name).write_text(text + "\n", encoding="utf-8")
    common.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", prefix / "lib" / "librpma.so"])
    common.run(["ar", "rc", prefix / "lib" / "librpma.a"])
    return prefix


def search_configurations(installed, work):
    """Yields each search configuration: arguments of CMake, and the expected directories of library and header."""
    older = older_release(work / "older")
    cmake = "librpma/cmake"
    here = installed.libdir, installed.includedir
    yield [f"-DCMAKE_PREFIX_PATH={installed.cmake_prefix}"], *here
    yield [f"-DCMAKE_PREFIX_PATH={older};{installed.cmake_prefix}"], *here
    (work / "link").symlink_to(installed.libdir)
    yield [f"-Dlibrpma_DIR={work}/link/{cmake}", f"-DCMAKE_PREFIX_PATH={older}"], work / "link", here[1]
    # Moves all outputs together, so that nothing remains in the configured directory.
    top = pathlib.Path(os.path.commonpath(here))
    shutil.move(top, work / "moved")
    there = [work / "moved" / path.relative_to(top) for path in here]
    yield [f"-Dlibrpma_DIR={there[0] / cmake}", f"-DCMAKE_PREFIX_PATH={older}"], *there
    shutil.move(work / "moved", top)
    # Last, because the build directory is reused: CMake must not use a cached location.
    yield [f"-Dlibrpma_DIR={installed.libdir / cmake}", f"-DCMAKE_PREFIX_PATH={older}"], *here


def check_cmake(installed, *suffixes):
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        work = pathlib.Path(directory)
        for count, (arguments, libdir, includedir) in enumerate(search_configurations(installed, work), 1):
            common.run(["cmake", "-G", "Ninja", "-S", CMAKE_PROJECT, "-B", work / "build", *arguments, *suffixes,
                        f"-DEXPECTED_LIBDIR={libdir}", f"-DEXPECTED_INCLUDEDIR={includedir}",
                        f"-DEXPECTED_VERSION={installed.version}",
                        *(f"-DCMAKE_{language}_FLAGS={' '.join(sanitizing(installed))}" for language in ("C", "CXX"))])
            common.run(["cmake", "--build", work / "build"])
            for name in ("by-target", "by-target-cpp", "by-variables"):
                run_program(installed, work / "build" / name, libdir)
    return f"programs of find_package(librpma) run, by target and by variables, found in {count} ways"


def install_shared(build, directory):
    common.run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", directory])
    return Installed(build, directory, "shared")


def install_built(source, directory, kind):
    """Installs into one directory per output, as distributions like Nix and Guix do."""
    build = pathlib.Path(directory) / "build"
    # Newer Meson defines this macro itself; the library must not need libstdc++ because of it.
    common.run(["meson", "setup", build, source, f"-Ddefault_library={kind}", "-Doptimization=0",
                "-Dcpp_args=-D_GLIBCXX_ASSERTIONS=1", "-Dtests=disabled", "-Dexamples=disabled",
                "-Dman=disabled", "-Dprograms=disabled", "-Dsim=disabled", "-Dbench=disabled",
                f"--prefix={directory}/outputs/program", f"--libdir={directory}/outputs/library/lib",
                f"--includedir={directory}/outputs/header/include"])
    common.run(["meson", "install", "-C", build])
    return Installed(build, "", kind)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("shared", "static", "both"):
        sys.exit(__doc__)
    kind, source, build = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        try:
            installed = (install_shared(build, directory) if kind == "shared"
                         else install_built(source, directory, kind))
        except common.Fault as fault:
            sys.exit(f"install {kind}: FAULT: {fault}")
        checks = [(check, installed) for check in (
            check_files, check_package_fields, check_pkg_config, check_cmake)]
        if kind != "shared":
            checks += [(check_archive, installed), (check_static, installed)]
        if kind == "both":
            checks.append((check_cmake, installed.archive(), "-DSUFFIXES=.a"))
        common.finish(f"install {kind}", [functools.partial(*check) for check in checks])


if __name__ == "__main__":
    main()
