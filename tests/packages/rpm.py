#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Looks at RPM packages: what is in which, what they need and provide, and whether programs are built with them.

usage: rpm.py DIRECTORY    has librpma, librpma-devel, librpma-doc and rpma-tools, as tools/package rpm builds them
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
NAMES = ["librpma", "librpma-devel", "librpma-doc", "rpma-tools"]
VERSION = common.project_version()
PROVIDED = {"librpma": f"{common.SONAME}(LIBRPMA_1.4)(64bit)", "librpma-devel": f"pkgconfig(librpma) = {VERSION}"}
NEEDED = {"librpma": "libibverbs.so.1()(64bit)", "librpma-devel": f"librpma(x86-64) = {VERSION}-1",
          "rpma-tools": f"{common.SONAME}(LIBRPMA_1.4)(64bit)"}


class Unpacked(install.Installed):
    """The packages below a directory, with the attributes of an installed build."""

    def __init__(self, root):  # pylint: disable=super-init-not-called
        self.root, self.linked, self.sanitizer, self.version = root, "shared", "none", VERSION
        self.libdir, self.includedir = (pathlib.Path(root + directory) for directory in (LIBDIR, "/usr/include"))
        self.directories = ["lib64", "include"]
        self.cmake_prefix = f"{self.libdir};{root}/usr"  # Debian's CMake looks into no lib64 by itself
        self.pkgconfig = {**os.environ, "PKG_CONFIG_PATH": str(self.libdir / "pkgconfig"),
                          "PKG_CONFIG_SYSROOT_DIR": root}


def query(package, *options):
    return common.run(["rpm", "--query", "--package", *options, package]).splitlines()


def manual():
    """The pages of sections 3 and 7 in this tree, as rpmbuild compresses them."""
    functions = {row["symbol"] for row in common.read_symbols() if row["symbol"].startswith("rpma_")}
    topics = [page.name for page in (common.ROOT / "man").glob("*.7")]
    return ({f"/usr/share/man/man3/{name}.3.gz" for name in functions}
            | {f"/usr/share/man/man7/{name}.gz" for name in topics})


def wanted_files(name):
    if name == "librpma":
        return {f"{LIBDIR}/{common.SONAME}"}
    if name == "librpma-devel":
        directory = f"{LIBDIR}/librpma"
        config = {f"{directory}/cmake/librpma-config{end}.cmake" for end in ("", "-version")}
        return manual() | config | {directory, f"{directory}/cmake", "/usr/include/librpma.h", f"{LIBDIR}/librpma.so",
                                    f"{LIBDIR}/pkgconfig/librpma.pc"}
    if name == "librpma-doc":
        return set()
    programs = ["rpma-info", "rpma-perf"]
    return {"/usr/share/librpma"}.union(*(
        {f"/usr/bin/{program}", f"/usr/share/bash-completion/completions/{program}",
         f"/usr/share/librpma/{program}.schema.json", f"/usr/share/man/man1/{program}.1.gz"} for program in programs))


def check_files(name, package):
    besides = ("/usr/lib/.build-id", "/usr/share/licenses/", "/usr/share/doc/")
    found = {path for path in query(package, "--list") if not path.startswith(besides)}
    wanted = wanted_files(name)
    faults = [f"in the package and not wanted: {path}" for path in found - wanted]
    faults += [f"wanted and not in the package: {path}" for path in wanted - found]
    if faults:
        raise common.Fault(f"{name}: {common.some(faults)}")
    return f"{name}: {len(wanted)} files besides documents, as wanted"


def check_documents(packages):
    """The packages hold the licence; librpma-doc also holds the documents and examples."""
    documents = set(query(packages["librpma-doc"], "--list", "--docfiles"))
    source = {f"/usr/share/doc/librpma-doc/docs/{path.name}" for path in (common.ROOT / "docs").iterdir()}
    source |= {f"/usr/share/doc/librpma-doc/examples/{path.relative_to(common.ROOT / 'examples')}"
               for path in (common.ROOT / "examples").rglob("*.c")}
    faults = [f"librpma-doc lacks {path}" for path in source - documents]
    # The development package requires the library's package, which holds the licence.
    faults += [f"{name} has no licence" for name in ("librpma", "librpma-doc", "rpma-tools")
               if not any(path.endswith("/LICENSE") for path in query(packages[name], "--licensefiles"))]
    if faults:
        raise common.Fault(common.some(faults))
    return f"librpma-doc has the {len(source)} documents and sources of examples"


def check_link(unpacked):
    link = unpacked.libdir / "librpma.so"
    if not link.is_symlink() or os.readlink(link) != common.SONAME or (unpacked.libdir / common.SONAME).is_symlink():
        raise common.Fault(f"librpma.so is no link to the file {common.SONAME}")
    return f"librpma.so of librpma-devel is a link to the {common.SONAME} of librpma"


def check_relations(packages):
    faults = [f"{name} does not {option[2:-1]} {wanted}" for option, table in (("--provides", PROVIDED),
                                                                              ("--requires", NEEDED))
              for name, wanted in table.items() if wanted not in query(packages[name], option)]
    if faults:
        raise common.Fault(common.some(faults))
    return f"{len(PROVIDED)} packages provide and {len(NEEDED)} require what they should"


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
            *(lambda name=name: check_files(name, packages[name]) for name in NAMES),
            lambda: check_documents(packages),
            lambda: check_relations(packages),
            lambda: check_link(unpacked),
            lambda: install.check_package_fields(unpacked),
            lambda: install.check_pkg_config(unpacked),
            lambda: install.check_cmake(unpacked),
            lambda: library.check_symbols(object_file, common.read_symbols()),
            lambda: library.check_dependencies(object_file),
        ])


if __name__ == "__main__":
    main()
