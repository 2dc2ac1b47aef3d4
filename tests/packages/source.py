#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Builds the source like users without a checkout. Needs no network.

usage: source.py tarball DIRECTORY [TARBALL]    TARBALL, or one that meson dist creates there, builds and passes
                                                the suites unit, abi and man
       source.py subproject [TARBALL]           another project builds librpma as its subproject: from
                                                the working tree, or from TARBALL by a wrap file as tools/release
                                                writes it
"""

import json
import pathlib
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))

import common

PROGRAM = common.ROOT / "tests" / "abi" / "package" / "program.c"
WRAP = common.ROOT / "tools" / "release.d" / "wrap"
USER = """project('user', 'c')
librpma = dependency('librpma', version: '>=1.4', fallback: 'librpma')
if librpma.type_name() != 'internal'
  error('librpma is not the subproject')
endif
executable('program', 'program.c', dependencies: librpma)
"""


def make_tarball(directory):
    build = directory / "build"
    common.run(["meson", "setup", build, common.ROOT, "-Dexamples=disabled", "-Dbench=disabled"])
    common.run(["meson", "dist", "-C", build, "--no-tests", "--allow-dirty"])
    tarball, = (build / "meson-dist").glob("librpma-*.tar.xz")
    return tarball


def check_tarball(directory, tarball=None):
    tarball = tarball or make_tarball(directory)
    common.run(["tar", "-xf", tarball, "-C", directory])
    source = directory / tarball.name.removesuffix(".tar.xz")
    alone = directory / "alone"
    common.run(["meson", "setup", alone, source, "-Dtests=enabled", "-Dwerror=true", "-Dbench=disabled"])
    common.run(["ninja", "-C", alone])
    common.run(["meson", "test", "-C", alone, "--no-rebuild", "--print-errorlogs",
                "--suite", "unit", "--suite", "abi", "--suite", "man", "--no-suite", "network"])
    log, = (alone / "meson-logs").glob("testlog*.json")
    results = [json.loads(line)["result"] for line in log.read_text(encoding="utf-8").splitlines()]
    if "OK" not in results:
        raise common.Fault("the tarball ran no test")
    return (f"{tarball.name} builds alone; {results.count('OK')} of {len(results)} tests passed, "
            f"{results.count('SKIP')} skipped")


def lay_out(project, tarball):
    """Writes a user's project, with the source where Meson searches for a subproject."""
    (project / "meson.build").write_text(USER, encoding="utf-8")
    shutil.copy(PROGRAM, project)
    subprojects = project / "subprojects"
    if tarball:
        (subprojects / "packagefiles").mkdir(parents=True)
        shutil.copy(tarball, subprojects / "packagefiles")
        wrap = common.run([WRAP, tarball])
        (subprojects / "librpma.wrap").write_text(wrap, encoding="utf-8")
    else:
        subprojects.mkdir()
        (subprojects / "librpma").symlink_to(common.ROOT)


def check_subproject(tarball=None):
    with tempfile.TemporaryDirectory(prefix="librpma-packages-") as directory:
        project = pathlib.Path(directory)
        lay_out(project, tarball)
        build = project / "build"
        common.run(["meson", "setup", "--wrap-mode=nodownload", "--force-fallback-for=librpma", build, project])
        common.run(["ninja", "-C", build])
        common.run([build / "program"])
        needed = common.run(["ldd", build / "program"])
        if str(build / "subprojects") not in needed or "libstdc++" in needed:
            raise common.Fault(f"the program loads unexpected libraries:\n  {needed}")
        targets = json.loads(common.run(["meson", "introspect", "--targets", build]))
        names = sorted(target["name"] for target in targets)
        if names != ["error-codes", "program", "rpma", "symbol-versions"]:
            raise common.Fault(f"a project with librpma as its subproject builds {' '.join(names)}")
    return f"a program with librpma as subproject{f' from {tarball.name}' if tarball else ''} builds and runs"


def main():
    kind, *rest = sys.argv[1:] or [""]
    if kind == "subproject" and len(rest) <= 1:
        tarball = pathlib.Path(rest[0]).resolve() if rest else None
        common.finish("source", [lambda: check_subproject(tarball)])
    elif kind == "tarball" and 1 <= len(rest) <= 2:
        directory, *given = (pathlib.Path(path).resolve() for path in rest)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        common.finish("source", [lambda: check_tarball(directory, *given)])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
