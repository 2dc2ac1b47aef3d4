#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compiles the programs of rpma_tutorial(7) and runs them by the command of the page, which shows their output:

tutorial.py SOURCE LIBRARY RDMA_SIM COMPILER...
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent.parent / folder) for folder in ("contract", "sim/device", "man")]

import mdoc


def main():
    (source, library, rdma_sim), compiler = (pathlib.Path(each).resolve() for each in sys.argv[1:4]), sys.argv[4:]
    page = mdoc.Page("rpma_tutorial.7", (source / "man/rpma_tutorial.7").read_text(encoding="utf-8"))
    programs = [code for _, code in page.literal_blocks() if re.search(r"^main\(", code, re.M)]
    session = next(text for _, text in page.literal_blocks() if text.startswith("$ rdma-sim "))
    command, *wanted = session.splitlines()
    with tempfile.TemporaryDirectory(prefix="librpma-tutorial-") as folder:
        for name, code in zip(("server", "client"), programs, strict=True):
            (pathlib.Path(folder) / f"{name}.c").write_text(code, encoding="utf-8")
            subprocess.run([*compiler, f"-I{source}/include", "-o", name, f"{name}.c", str(library)], cwd=folder, check=True)
        path = f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        done = subprocess.run([rdma_sim, *command.split()[2:]], cwd=folder, capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": path})
    if done.returncode or sorted(done.stdout.splitlines()) != sorted(wanted):
        sys.exit(f"tutorial: status {done.returncode}, wanted {wanted}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
