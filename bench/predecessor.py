# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Debian's librpma0, unpacked where it is needed and never installed."""

import pathlib
import re
import subprocess
import sys

import measure

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "abi"))

import common
import debian


class Predecessor:
    """The library of the package, in a directory of the caller."""

    def __init__(self, directory):
        name = "librpma0"
        try:
            if not debian.cached(name):
                debian.fetch(name)
            package = debian.cached(name)[-1]
            common.run(["dpkg-deb", "--extract", package, directory])
        except (common.Missing, common.Fault, OSError, subprocess.SubprocessError) as reason:
            raise measure.Missing(f"{reason}: try apt-get update") from reason
        found = sorted(pathlib.Path(directory).glob(f"usr/lib/*/{common.SONAME}"))
        if not found:
            raise measure.Failed(f"{package.name} holds no {common.SONAME}")
        self.library = found[0].parent
        self.version = re.sub(r"^[^_]*_([^_]*)_.*$", r"\1", package.name)
