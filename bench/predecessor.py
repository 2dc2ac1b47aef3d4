# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Unpacks Debian's librpma0 where it is needed; nothing installs it."""

import pathlib
import re
import subprocess
import sys

import measure

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "abi"))

import common
import debian


class Predecessor:
    """The library below a directory."""

    def __init__(self, directory, version):
        found = sorted(directory.glob(f"usr/lib/*/{common.SONAME}"))
        if not found:
            raise measure.Failed(f"{directory} holds no {common.SONAME} in usr/lib")
        self.library = found[0].parent
        self.version = version


def fetched(directory):
    """Debian's package, unpacked into a directory of the caller."""
    name = "librpma0"
    try:
        if not debian.cached(name):
            debian.fetch(name)
        package = debian.cached(name)[-1]
        common.run(["dpkg-deb", "--extract", package, directory])
    except (common.Missing, common.Fault, OSError, subprocess.SubprocessError) as reason:
        raise measure.Missing(f"{reason}: try apt-get update") from reason
    version = re.sub(r"^[^_]*_([^_]*)_.*$", r"\1", package.name)
    return Predecessor(pathlib.Path(directory), version)


def unpacked(directory):
    """A package that is unpacked already; the name of its directory ends with the version."""
    return Predecessor(directory, directory.name.rpartition("-")[2])
