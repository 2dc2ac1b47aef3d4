#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks what RPM packages require and provide, and builds programs with them. rpmbuild compares their files with the
spec.

usage: rpm.py DIRECTORY    with librpma, librpma-devel, librpma-doc, rdma-sim, rdma-sim-devel and rpma-tools, as tools/package rpm builds them
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))

import common
import install
import library

LIBDIR = "/usr/lib64"
NAMES = ["librpma", "librpma-devel", "librpma-doc", "rdma-sim", "rdma-sim-devel", "rpma-tools"]
VERSION = common.project_version()
PROVIDED = {"librpma": f"{common.SONAME}(LIBRPMA_1.4)(64bit)", "librpma-devel": f"pkgconfig(librpma) = {VERSION}"}
NEEDED = {"librpma": "libibverbs.so.1()(64bit)", "librpma-devel": f"librpma(x86-64) = {VERSION}-1",
          "rpma-tools": f"{common.SONAME}(LIBRPMA_1.4)(64bit)"}


class Unpacked(install.Installed):
    """The packages below a directory, with the attributes of an installation."""

    def __init__(self, root):  # pylint: disable=super-init-not-called
        self.root, self.linked, self.sanitizer, self.version = root, "shared", "none", VERSION
        self.libdir, self.includedir = (pathlib.Path(root + directory) for directory in (LIBDIR, "/usr/include"))
        self.directories = ["lib64", "include"]
        self.cmake_prefix = f"{self.libdir};{root}/usr"  # Debian's CMake does not search lib64
        self.pkgconfig = {**os.environ, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig"),
                          "PKG_CONFIG_SYSROOT_DIR": root}


def check_relations(packages):
    faults = [f"{name} does not {option[2:-1]} {wanted}" for option, table in (("--provides", PROVIDED),
                                                                              ("--requires", NEEDED))
              for name, wanted in table.items()
              if wanted not in common.run(["rpm", "--query", "--package", option, packages[name]]).splitlines()]
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"{len(PROVIDED)} packages provide and {len(NEEDED)} require the expected names"


def check_private(packages):
    """The package manager must not install rdma-sim as the libibverbs or librdmacm of other packages."""
    faults = [f"{option[2:]} {line}" for option in ("--provides", "--requires")
              for line in common.run(["rpm", "--query", "--package", option, packages["rdma-sim"]]).splitlines()
              if line.startswith(("libibverbs", "librdmacm", "librpma"))]
    if faults:
        raise common.Fault("rdma-sim " + common.summary_of(faults))
    return "the libraries of rdma-sim are private"


def unpack(packages, root):
    for package in packages.values():
        archive = subprocess.run(["rpm2cpio", package], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["cpio", "--extract", "--quiet", "--make-directories"], input=archive, cwd=root, check=True)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    packages = {}
    for name in NAMES:
        packages[name], = [path for path in directory.glob(f"{name}-{VERSION}-*.rpm") if ".src." not in path.name]
    with tempfile.TemporaryDirectory(prefix="librpma-packages-") as root:
        unpack(packages, root)
        unpacked = Unpacked(root)
        object_file = unpacked.libdir / common.SONAME
        common.finish("rpm", [
            lambda: check_relations(packages),
            lambda: check_private(packages),
            lambda: install.check_package_fields(unpacked),
            lambda: install.check_pkg_config(unpacked),
            lambda: install.check_cmake(unpacked),
            lambda: library.check_symbols(object_file, common.read_symbols()),
            lambda: library.check_dependencies(object_file),
        ])


if __name__ == "__main__":
    main()
