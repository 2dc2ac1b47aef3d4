#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that a reader finds each exported function: ctags sees its definition in src/."""

import pathlib
import sys

sys.dont_write_bytecode = True

import common

SOURCE = common.ROOT / "src"
OPTIONS = common.ROOT / ".ctags.d" / "exports.ctags"


def functions():
    """{name: files} of all functions that ctags finds with the options of this tree alone."""
    files = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".cc", ".hh"))
    if "Universal Ctags" not in common.run(["ctags", "--version"]):
        raise common.Missing("ctags is not Universal Ctags (tools/setup abi installs it)")
    found = {}
    for line in common.run(["ctags", "--quiet", "--options=NONE", f"--options={OPTIONS}",
                            "--fields=k", "-f", "-", *files]).splitlines():
        name, path, *_, kind = line.split("\t")
        if kind == "f":
            found.setdefault(name, []).append(pathlib.Path(path).relative_to(SOURCE))
    return found


def check_tags():
    table = common.read_symbols()
    wanted = {row[column] for row in table for column in ("symbol", "implementation")}
    found = functions()
    faults = [f"{name}: ctags finds no definition of the function" for name in
              wanted - found.keys()]
    faults += [f"{name}: ctags finds {len(found[name])} definitions: "
               f"{', '.join(map(str, found[name]))}" for name in wanted & found.keys()
               if len(found[name]) != 1]
    if faults:
        raise common.Fault(common.some(faults))
    return f"ctags finds all {len(wanted)} exported functions"


if __name__ == "__main__":
    common.finish("tags", [check_tags])
