#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""
Runs rdma-core's own tests, which Debian's python3-pyverbs installs, and prints a line per test: its
name, a tab, its result.

usage: rdma_core.py run SUITE DEVICE [GID]   SUITE is the result of "unpack", GID an index
       rdma_core.py unpack SUITE             copies the installed tests to the new folder SUITE
       rdma_core.py lab rxe|siw LAB [root]   runs them by "LAB run" in a machine that has the device, as an ordinary user
                                             or as root
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INSTALLED = pathlib.Path("/usr/share/doc/rdma-core/tests")
PYTHON = "/usr/bin/python3"  # Debian's, which has pyverbs
HERE = pathlib.Path(__file__).resolve()

# The packages of a root in which the tests run; apt-cache adds those on which they depend.
PACKAGES = ["python3-pyverbs", "rdma-core", "ibverbs-providers", "iproute2", "coreutils"]
IN_ROOT = re.compile(r"/(bin|sbin|lib|lib64|usr/bin|usr/sbin|usr/lib|usr/lib64|etc/libibverbs\.d)/.")
# GID 0 of rxe is that of a link-local address, which the lab's interface does not have.
LAB_ARGUMENTS = {"rxe": "rxe1 1", "siw": "siw1 0"}
IN_LAB = """
for part in dev proc sys; do mount --rbind /$part "$1/$part"; done
uname -r | sed 's/^/# Linux /'
exec chroot --userspec={user}:{user} "$1" {python} /rdma_core.py run /suite {arguments}
"""
NOBODY = 65534


def version():
    """Returns the version of the installed pyverbs, or None."""
    if not shutil.which("dpkg-query"):
        return None
    done = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", "python3-pyverbs"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout if done.returncode == 0 and (INSTALLED / "run_tests.py").exists() else None


def unpack(suite):
    """Debian compresses the larger files of the suite."""
    suite.mkdir()
    for path in INSTALLED.iterdir():
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        (suite / path.name.removesuffix(".gz")).write_bytes(content)


def skip(reason):
    print(f"rdma_core.py: skipped: {reason}", file=sys.stderr)
    return 77


def run(suite, device, *gid):
    """Does what the suite's run_tests.py does, but with a result that records each test."""
    # pylint: disable=import-error,import-outside-toplevel
    try:
        import pyverbs.device
    except ImportError:
        return skip("no pyverbs here: tools/setup unchanged")
    if not (suite / "run_tests.py").exists():
        return skip(f"no tests of rdma-core in {suite}: unpack them")
    if device not in [each.name.decode() for each in pyverbs.device.get_device_list()]:
        return skip(f"there is no device {device}: ibv_devices lists them")
    import random
    import unittest
    from importlib.machinery import SourceFileLoader
    sys.path.insert(0, str(suite))
    sys.dont_write_bytecode = True
    from args_parser import parser

    class Result(unittest.TestResult):
        def row(self, case, result):
            print(case.id().removeprefix("tests."), result.replace(device, "DEVICE"), sep="\t", file=table, flush=True)

        def startTest(self, test):
            super().startTest(test)
            random.seed(0)  # tests choose sizes at random

        def addSuccess(self, test):
            self.row(test, "ok")

        def addSkip(self, test, reason):
            self.row(test, f"skipped: {reason}")

        def addError(self, test, err):
            super().addError(test, err)
            self.row(test, "failed: " + (" ".join(str(err[1]).split()) or err[0].__name__))
            print(self.errors[-1][1], file=sys.stderr)

        addFailure = addError

    class Runner:
        @staticmethod
        def run(cases):
            return cases.run(Result())

    # Processes of tests print to standard output as well.
    table = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.argv[1:] = ["--dev", device, *(["--gid", *gid] if gid else [])]
    parser.parse_args()
    tests = SourceFileLoader("tests", str(suite / "__init__.py")).load_module()
    unittest.main(module=tests, testRunner=Runner, exit=False)
    return 0


def make_root(root):
    """Copies the files of installed packages, because the lab's root has another release of rdma-core."""
    depends = subprocess.run(["apt-cache", "depends", "--recurse", "--installed", "--important", *PACKAGES],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    packages = {word for word in depends.split() if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", word)}
    files = subprocess.run(["dpkg-query", "-L", *packages], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, check=False).stdout.splitlines()
    for name in ["dev", "proc", "sys", "tmp", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64"]:
        (root / name).mkdir(parents=True)
    for name in ["bin", "sbin", "lib", "lib64"]:
        (root / name).symlink_to("usr/" + name)
    (root / "tmp").chmod(0o1777)
    for name in filter(IN_ROOT.match, files):
        source, target = pathlib.Path(name), root / name[1:]
        if (source.is_file() or source.is_symlink()) and not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def lab(provider, lab_command, user):
    with tempfile.TemporaryDirectory(prefix="rdma-core-") as name:
        root = pathlib.Path(name)
        root.chmod(0o755)
        make_root(root)
        unpack(root / "suite")
        shutil.copy2(__file__, root)
        print(f"# rdma-core {version()}, {provider}, {'as an ordinary user' if user else 'as root'}", flush=True)
        return subprocess.run([lab_command, "run", "--provider", provider, "--cpus", "1", "--share", root, "--no-build", "--",
                               "bash", "-ec", IN_LAB.format(python=PYTHON, arguments=LAB_ARGUMENTS[provider], user=user), "bash", root],
                              check=False).returncode


def main():
    match sys.argv[1:]:
        case ["run", suite, device, *gid] if len(gid) < 2:
            return run(pathlib.Path(suite), device, *gid)
        case ["unpack", suite]:
            return unpack(pathlib.Path(suite))
        case ["lab", "rxe" | "siw" as provider, command, *user] if user in ([], ["root"]):
            if not version():
                return skip("no tests of rdma-core here: tools/setup unchanged")
            return lab(provider, command, 0 if user else NOBODY)
        case ["lab", provider, *_] if provider not in LAB_ARGUMENTS:
            return skip(f"the lab has no {provider}: it has {' and '.join(LAB_ARGUMENTS)}")
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
