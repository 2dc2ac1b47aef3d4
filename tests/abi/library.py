#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the built library from outside: what it exports, what it is called, what it needs.

usage: library.py symbols LIBRARY [SYMBOLS.tsv]    exports are those of the list, no more, no less
       library.py dependencies LIBRARY             SONAME and the libraries that it needs
"""

import re
import sys

sys.dont_write_bytecode = True

import common

NEEDED = ["libc.so.6", "libibverbs.so.1", "librdmacm.so.1"]
SANITIZERS = re.compile(r"lib(asan|ubsan|tsan|lsan)\b|libclang_rt")
SYMBOL = re.compile(r"^\s*\d+:\s+[0-9a-f]+\s+\S+\s+(\S+)\s+(GLOBAL|WEAK)\s+\S+\s+(\S+)\s+(\S+)$")


def exports(library):
    """(name, node, is the default) to ELF type, of everything that the library defines."""
    found = {}
    for line in common.run(["readelf", "--wide", "--dyn-syms", library]).splitlines():
        match = SYMBOL.match(line)
        if not match or match.group(3) == "UND":
            continue
        name, _, node = match.group(4).partition("@")
        if match.group(3) == "ABS":  # a version node names itself
            node = name
        found[name, node.lstrip("@"), node.startswith("@")] = match.group(1)
    return found


def shown(name, node, default):
    return f"{name}{'@@' if default else '@'}{node}"


def check_symbols(library, table):
    wanted = {(row["symbol"], row["node"], row["default"] == "yes") for row in table}
    nodes = {(row["node"], row["node"], False) for row in table}
    found = exports(library)
    faults = [f"exported and not in the list: {shown(*key)}"
              for key in found.keys() - wanted - nodes]
    faults += [f"in the list and not exported: {shown(*key)}"
               for key in (wanted | nodes) - found.keys()]
    faults += [f"{shown(*key)} is {kind}, not FUNC" for key, kind in found.items()
               if kind != "FUNC" and key not in nodes]
    names = {row["symbol"] for row in table}
    for name in names:
        defaults = sum(1 for key in wanted if key[0] == name and key[2])
        if defaults != 1:
            faults.append(f"{name} has {defaults} default nodes in the list")
    if faults:
        raise common.Fault(common.some(faults))
    return (f"{len(wanted)} symbols at {len(nodes)} nodes, {len(names)} names with one default "
            "each, nothing else exported")


def dynamic(library, tag):
    text = common.run(["readelf", "--wide", "--dynamic", library])
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def check_dependencies(library):
    soname, needed = dynamic(library, "SONAME"), sorted(dynamic(library, "NEEDED"))
    if soname != [common.SONAME]:
        raise common.Fault(f"SONAME is {soname}, wanted {common.SONAME}")
    instrumented = [name for name in needed if SANITIZERS.search(name)]
    if instrumented:
        raise common.Missing(f"the library is built with a sanitizer and needs {instrumented[0]}")
    if needed != NEEDED:
        raise common.Fault(f"needs {' '.join(needed)}, wanted {' '.join(NEEDED)}")
    for tag in ("RPATH", "RUNPATH"):
        if dynamic(library, tag):
            raise common.Fault(f"has a {tag}: {dynamic(library, tag)[0]}")
    return f"SONAME {common.SONAME}, needs {' '.join(NEEDED)}"


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("symbols", "dependencies"):
        sys.exit(__doc__)
    library = sys.argv[2]
    if sys.argv[1] == "dependencies":
        common.finish("dependencies", [lambda: check_dependencies(library)])
    table = common.read_table(sys.argv[3]) if len(sys.argv) > 3 else common.read_symbols()
    common.finish("symbols", [lambda: check_symbols(library, table)])


if __name__ == "__main__":
    main()
