# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""What the tests of "rdma-sim explore" share that run wrong and corrected programs: weak.py and distributed.py."""

import os
import pathlib
import subprocess
import tempfile
import unittest


def run(*arguments):
    """Return the output and the status of a program."""
    done = subprocess.run(arguments, text=True, timeout=1000, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout, done.returncode


class InDirectory(unittest.TestCase):
    """Run the programs in a directory with the file "memory"."""

    MEMORY = 1 << 16  # bytes of the file

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="rdma-sim-explored-")
        self.addCleanup(directory.cleanup)
        self.addCleanup(os.chdir, "/")
        os.chdir(directory.name)
        pathlib.Path("memory").write_bytes(bytes(self.MEMORY))
