#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that a reader finds each exported function: ctags sees its definition in src/.

usage: tags.py [SOURCE]     by default the src/ of this tree
"""

import pathlib
import sys

sys.dont_write_bytecode = True

import common

OPTIONS = common.ROOT / ".ctags.d" / "exports.ctags"


def functions(source):
    """{name: files} of all functions that ctags finds with the options of this tree alone."""
    files = sorted(path for path in source.rglob("*") if path.suffix in (".cc", ".hh"))
    if "Universal Ctags" not in common.run(["ctags", "--version"]):
        raise common.Missing("ctags is not Universal Ctags (tools/setup abi installs it)")
    found = {}
    for line in common.run(["ctags", "--quiet", "--options=NONE", f"--options={OPTIONS}",
                            "--fields=k", "-f", "-", *files]).splitlines():
        name, path, *_, kind = line.split("\t")
        if kind == "f":
            found.setdefault(name, []).append(pathlib.Path(path).relative_to(source))
    return found


def check_tags(source, table):
    wanted = {row[column] for row in table for column in ("symbol", "implementation")}
    found = functions(source)
    faults = [f"{name}: ctags finds no definition of the function" for name in
              wanted - found.keys()]
    faults += [f"{name}: ctags finds {len(found[name])} definitions: "
               f"{', '.join(map(str, found[name]))}" for name in wanted & found.keys()
               if len(found[name]) != 1]
    if faults:
        raise common.Fault(common.some(faults))
    return f"ctags finds all {len(wanted)} exported functions"


def main():
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else common.ROOT / "src"
    common.finish("tags", [lambda: check_tags(source.resolve(), common.read_symbols())])


if __name__ == "__main__":
    main()
