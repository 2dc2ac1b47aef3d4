#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers

"""Checks the includes and the words of the sources of rdma-sim: sources.py [SIM]

A folder includes only files of itself and of the folders that its row of FOLDERS names. So there is no cycle, no file
outside this project is included, and no code is both in programs and in the server, but that of device/ and protocol/.
No file names a project that uses this one. Exit status: 0, or 1 with one line per fault.
"""

import pathlib
import re
import sys

SIM = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
SIM = SIM if SIM.is_dir() else SIM.parents[1]
# In order: a folder includes files of folders above it only.
BOTH = {"device": (), "protocol": ("device",)}
PROGRAM = {"client": ("device", "protocol"), "client/preload": ("protocol", "client")}
SERVER = {"model": ("device", "protocol"), "server": ("protocol", "model"), "run": ("protocol", "model", "server"),
          "explore": ("device", "protocol", "model", "server", "run"), "cli": ("run", "explore")}
TOGETHER = {"direct": ("client", "explore", "model", "server")}  # the fabric in the process of a program
FOLDERS = BOTH | PROGRAM | SERVER | TOGETHER
FREE = ("examples", "tests")
# Files that have the name of the command before 1.6.
OLD_NAME = re.compile(r"\brpma-sim(\.1)?\b|\bRPMA_SIM_\w*")


def files():
    for path in sorted(SIM.rglob("*")):
        parts = path.relative_to(SIM).parts
        if path.is_file() and not any(part.startswith((".", "build", "__pycache__")) for part in parts):
            yield path, "/".join(parts), "/".join(parts[:-1])


def check_includes(path, name, folder, text):
    if path.suffix not in (".c", ".h", ".cc", ".hh"):
        return
    if folder not in FOLDERS and folder.split("/")[0] not in FREE:
        yield f"{name}: {folder} has no row in FOLDERS of tests/sources.py"
        return
    for file in re.findall(r'^ *# *include "([^"]+)"', text, flags=re.M):
        included = (path.parent / file).resolve()
        if not included.is_relative_to(SIM):
            yield f"{name} includes {file}, which is outside this project"
        elif included.is_file() and folder in FOLDERS:
            other = str(included.parent.relative_to(SIM))
            if other != folder and other not in FOLDERS[folder]:
                yield f"{name} includes {file}: {folder} must not use {other}"


def check_order():
    order = list(FOLDERS)
    for folder, used in FOLDERS.items():
        for other in used:
            if order.index(other) >= order.index(folder):
                yield f"FOLDERS: {folder} uses {other}, which is not above it"
            if (folder in PROGRAM and other in SERVER) or (folder in SERVER and other in PROGRAM):
                yield f"FOLDERS: {folder} uses {other}: one is in programs, the other in the server"


def main():
    faults = list(check_order())
    for path, name, folder in files():
        text = path.read_text(encoding="utf-8", errors="replace")
        faults += check_includes(path, name, folder, text)
        if name == "tests/sources.py":
            continue
        for number, line in enumerate(OLD_NAME.sub("", text).splitlines(), 1):
            if re.search("rpma", line, flags=re.I):
                faults.append(f"{name}:{number} names another project: {line.strip()[:80]}")
    print("\n".join(faults) if faults else f"sources: {len(FOLDERS)} folders, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
