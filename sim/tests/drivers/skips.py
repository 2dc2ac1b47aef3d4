#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers
"""A driver that cannot be compared is skipped by name, with the reason in one line."""

import pathlib
import subprocess
import sys
import tempfile

ASK = pathlib.Path(__file__).with_name("ask.py")
SKIPPED = 77
NONE = "is none of the "
# (arguments, the file name of libibverbs, whether the driver is next to it, status, words of the line)
CASES = [
    (("driver", "mlx5"), "libibverbs.so.1.14.44.0", False, SKIPPED, "skipped: mlx5: rdma-core 44 has no such driver"),
    (("driver", "mlx5"), "libibverbs.so.1.14.99.0", True, SKIPPED, "skipped: mlx5: no results of rdma-core 99"),
    (("driver", "mlx5"), "libibverbs.so.1", True, SKIPPED, "skipped: mlx5: "),
    (("driver", "mlx5"), "libibverbs.so.1.14.56.1", False, SKIPPED, "skipped: mlx5: rdma-core 56 has no such driver"),
    (("library", "irdma"), "libibverbs.so.1.14.99.0", True, SKIPPED, "skipped: irdma: no results of rdma-core 99"),
    (("driver", "mlx6"), "libibverbs.so.1.14.44.0", True, 1, f"\"mlx6\" {NONE}drivers"),
    (("profile", "mlx6"), "libibverbs.so.1.14.44.0", True, 1, f"\"mlx6\" {NONE}profiles"),
]


def main():
    wrong = []
    for arguments, library, has_driver, status, words in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            program = root / "questions"  # with another libibverbs
            program.write_text(f"#!/bin/sh\necho '# {root / library}'\n", encoding="utf-8")
            program.chmod(0o755)
            if has_driver:
                (root / "libibverbs").mkdir()
                (root / f"libibverbs/lib{arguments[1]}-rdmav34.so").touch()
            done = subprocess.run([sys.executable, ASK, *arguments, program, program], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode != status or len(lines) != 1 or words not in lines[0]:
            wrong.append(f"{arguments}, {library}: status {done.returncode}, {lines}")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
