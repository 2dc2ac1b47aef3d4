# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Unpacks Debian's librpma0 into a directory, without installing it."""

import pathlib
import subprocess
import sys

import measure

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "abi"))

import common
import debian


def fetch(directory):
    """The folder of the library in Debian's package, unpacked into a directory of the caller, and its version."""
    try:
        package = debian.Debian(directory)
    except (common.Missing, common.Fault, OSError, subprocess.SubprocessError) as reason:
        raise measure.Missing(f"{reason}: try apt-get update") from reason
    return package.library.parent, debian.cached("librpma0")[-1].name.split("_")[1]


def find_unpacked(directory):
    """The same for a package that is already unpacked; the name of its directory ends with the version."""
    found = sorted(directory.glob(f"usr/lib/*/{common.SONAME}"))
    if not found:
        raise measure.Failed(f"{directory} has no {common.SONAME} in usr/lib")
    return found[0].parent, directory.name.rpartition("-")[2]
