#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compiles the programs of rpma_tutorial(7), which examples/tutorial has, and runs them by the commands of the page, which
shows their output:

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
    sessions = [text for _, text in page.literal_blocks() if text.startswith("$ ") and "rdma-sim" in text]
    with tempfile.TemporaryDirectory(prefix="librpma-tutorial-") as folder:
        for name, code in zip(("server", "client"), programs, strict=True):
            file = source / f"examples/tutorial/{name}.c"
            if not file.read_text(encoding="utf-8").endswith(code):
                sys.exit(f"tutorial: {file} is not the program of the page")
            subprocess.run([*compiler, f"-I{source}/include", "-o", name, file, str(library)], cwd=folder, check=True)
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{library.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":"),
                       "PATH": f"{rdma_sim.parent}:{os.environ['PATH']}"}
        for session in sessions:
            # A line that begins with "$ " is a command, up to the first line that does not end with a backslash.
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", session, re.M)
            wanted = re.sub(r"^\$ (?:.*\\\n)*.*\n", "", session, flags=re.M)
            done = subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=folder, capture_output=True, text=True, check=False,
                                  env=environment)
            if done.returncode or sorted(done.stdout.splitlines()) != sorted(wanted.splitlines()):
                sys.exit(f"tutorial: {commands}: status {done.returncode}, wanted {wanted}: {done.stdout}{done.stderr}")
    if len(sessions) != 3:
        sys.exit("tutorial: the page must run the programs once, lose the data without a flush, and keep it with one")


if __name__ == "__main__":
    main()
