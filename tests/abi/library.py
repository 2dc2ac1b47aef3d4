#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the built library from outside: its exports, its name, its dependencies.

usage: library.py symbols LIBRARY         the exports equal contract/symbols.tsv
       library.py addresses LIBRARY       all nodes of a name have the address of one function
       library.py tags                    ctags finds the definition of each export in src/
       library.py dependencies LIBRARY    the SONAME and the needed libraries
"""

import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True

import common

NEEDED = ["libc.so.6", "libibverbs.so.1", "librdmacm.so.1"]
SANITIZERS = re.compile(r"lib(asan|ubsan|tsan|lsan)\b|libclang_rt")
SYMBOL = re.compile(r"^\s*\d+:\s+([0-9a-f]+)\s+\S+\s+(\S+)\s+(?:GLOBAL|WEAK)\s+\S+"
                    r"\s+(\S+)\s+(\S+)$")


def definitions(library):
    """{(name, node, is the default): (ELF type, address)} of the library's definitions."""
    found = {}
    for line in common.run(["readelf", "--wide", "--dyn-syms", library]).splitlines():
        match = SYMBOL.match(line)
        if not match or match.group(3) == "UND":
            continue
        name, _, node = match.group(4).partition("@")
        if match.group(3) == "ABS":  # the symbol of a version node
            node = name
        found[name, node.lstrip("@"), node.startswith("@")] = match.group(2), match.group(1)
    return found


def exports(library):
    """{(name, node, is the default): ELF type} of the library's definitions."""
    return {key: kind for key, (kind, _) in definitions(library).items()}


def shown(name, node, default):
    return f"{name}{'@@' if default else '@'}{node}"


def check_symbols(library, table):
    wanted = {(row["symbol"], row["node"], row["default"]) for row in table}
    nodes = {(row["node"], row["node"], False) for row in table}  # lld does not export these symbols
    found = exports(library)
    common.expect_same({f"{shown(*key)} {kind}" for key, kind in found.items() if key not in nodes},
                       {f"{shown(*key)} FUNC" for key in wanted}, "exported and not in the list",
                       "in the list and not exported")
    return f"{len(wanted)} symbols at {len(nodes)} nodes, nothing else exported"


def check_version_script(library):
    """Only for a library in its build directory, not for an installed one."""
    target = pathlib.Path(library).resolve()
    inputs = common.run(["ninja", "-C", target.parent.parent, "-t", "query", f"src/{target.name}"])
    if not re.search(r"^ +[|] src/librpma[.]map$", inputs, re.M):  # two bars would be an order-only dependency
        raise common.Fault("a change of librpma.map does not link the library again")
    return "a change of the version script links the library again"


def check_addresses(library, table):
    """Names and nodes share an address if and only if their rows have the same implementation."""
    found, functions = definitions(library), {}
    for row in table:
        key = row["symbol"], row["node"], row["default"]
        functions.setdefault(row["implementation"], {})[found.get(key, "nothing")] = shown(*key)
    faults = [f"{function} has {len(places)} functions at its nodes: {' '.join(places.values())}"
              for function, places in functions.items() if len(places) != 1]
    owners = {}
    for function, places in functions.items():
        for place in places:
            owners.setdefault(place, []).append(function)
    faults += [f"one function with several names: {' '.join(names)}"
               for names in owners.values() if len(names) > 1]
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"{len(functions)} functions, each at all nodes of its name and of no other"


def check_tags():
    """Runs ctags without options, as editors do."""
    if "Universal Ctags" not in common.run(["ctags", "--version"]):
        raise common.Missing("ctags is not Universal Ctags (tools/setup abi installs it)")
    files = sorted(path for path in (common.ROOT / "src").rglob("*") if path.suffix in (".cc", ".hh"))
    lines = common.run(["ctags", "--quiet", "--options=NONE", "--fields=k", "-f", "-",
                        *files]).splitlines()
    found = collections.Counter(line.split("\t")[0] for line in lines if line.endswith("\tf"))
    wanted = {row[column] for row in common.read_symbols() for column in ("symbol", "implementation")}
    faults = [f"{name}: ctags finds {found[name]} definitions of the function" for name in wanted if found[name] != 1]
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"ctags finds all {len(wanted)} exported functions"


def dynamic(library, tag):
    text = common.run(["readelf", "--wide", "--dynamic", library])
    return re.findall(rf"\({tag}\).*\[(.*)\]", text)


def check_dependencies(library):
    soname = dynamic(library, "SONAME")
    # The dynamic linker, a part of libc, locates thread-local storage.
    needed = sorted(name for name in dynamic(library, "NEEDED") if not name.startswith("ld-linux"))
    if soname != [common.SONAME]:
        raise common.Fault(f"SONAME is {soname}, wanted {common.SONAME}")
    instrumented = [name for name in needed if SANITIZERS.search(name)]
    if instrumented:
        raise common.Missing(f"the library is built with a sanitizer and needs {instrumented[0]}")
    if needed != NEEDED:
        raise common.Fault(f"needs {' '.join(needed)}, wanted {' '.join(NEEDED)}")
    defined = common.run(["nm", "--defined-only", library]).split()
    if "_ZSt9terminatev" in defined:
        raise common.Fault("contains libstdc++")
    for tag in ("RPATH", "RUNPATH"):
        if dynamic(library, tag):
            raise common.Fault(f"has a {tag}: {dynamic(library, tag)[0]}")
    return f"SONAME {common.SONAME}, needs {' '.join(NEEDED)}"


def main():
    if len(sys.argv) < 3 and sys.argv[1:] != ["tags"]:
        sys.exit(__doc__)
    kind, path = (sys.argv[1:] + [""])[:2]
    checks = {
        "symbols": [lambda: check_symbols(path, common.read_symbols()), lambda: check_version_script(path)],
        "addresses": [lambda: check_addresses(path, common.read_symbols())],
        "tags": [check_tags],
        "dependencies": [lambda: check_dependencies(path)],
    }
    if kind not in checks:
        sys.exit(__doc__)
    common.finish(kind, checks[kind])


if __name__ == "__main__":
    main()
