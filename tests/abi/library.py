#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the built library from outside: what it exports, what it is called, what it needs.

usage: library.py symbols LIBRARY         exports are those of contract/symbols.tsv, no more, no less
       library.py addresses LIBRARY       all nodes of a name lead to its one function
       library.py original                that list is that of all releases
       library.py dependencies LIBRARY    SONAME and the libraries that it needs
"""

import re
import sys

sys.dont_write_bytecode = True

import common

NEEDED = ["libc.so.6", "libibverbs.so.1", "librdmacm.so.1"]
SANITIZERS = re.compile(r"lib(asan|ubsan|tsan|lsan)\b|libclang_rt")
SYMBOL = re.compile(r"^\s*\d+:\s+([0-9a-f]+)\s+\S+\s+(\S+)\s+(?:GLOBAL|WEAK)\s+\S+"
                    r"\s+(\S+)\s+(\S+)$")
# The only name with two functions: a completion has 24 bytes in programs of 0.9.0, 32 in later
# ones.
TWO_FUNCTIONS = ("rpma_conn_completion_get", "LIBRPMA_1.0", "LIBRPMA_0.10")
# The releases of this library that added functions, and the node of each.
OWN_NODES = {"1.4.0": "LIBRPMA_1.4", "1.5.0": "LIBRPMA_1.5"}


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
    wanted = {(row["symbol"], row["node"], row["default"] == "yes") for row in table}
    nodes = {(row["node"], row["node"], False) for row in table}  # lld does not export these
    found = exports(library)
    faults = [f"exported and not in the list: {shown(*key)}"
              for key in found.keys() - wanted - nodes]
    faults += [f"in the list and not exported: {shown(*key)}"
               for key in wanted - found.keys()]
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


def check_addresses(found):
    """Examines the library's definitions alone, so that a wrong list cannot hide a fault."""
    name, first, later = TWO_FUNCTIONS
    owners, faults = {}, []
    for (symbol, node, _), (kind, address) in found.items():
        if kind == "FUNC":
            function = f"{symbol}@{first}" if (symbol, node) == (name, first) else symbol
            owners.setdefault(function, {}).setdefault(address, []).append(f"{symbol}@{node}")
    for function, addresses in owners.items():
        if len(addresses) > 1:
            strangers = min(addresses.values(), key=len)
            faults.append(f"{function} has {len(addresses)} functions behind its nodes: see "
                          + " ".join(strangers))
    by_address = {}
    for function, addresses in owners.items():
        for address in addresses:
            by_address.setdefault(address, set()).add(function)
    faults += [f"one function behind several names: {' '.join(sorted(functions))}"
               for functions in by_address.values() if len(functions) > 1]
    missing = {f"{name}@{first}", name} - owners.keys()
    faults += [f"{function} is not exported" for function in missing]
    if faults:
        raise common.Fault(common.some(faults))
    return f"{len(owners)} functions, each behind all nodes of its name and of no other"


def faults_of_releases(table, had):
    """The list has the functions of the ten releases; its other functions are of releases of this
    library, each with its own node, and with names that no release had before."""
    listed = {(release, row["node"], row["symbol"])
              for row in table for release in row["releases"].split()}
    ours = {key for key in listed - had if OWN_NODES.get(key[0]) == key[1]}
    for release, node, symbol in had - listed:
        yield f"{symbol}@{node} of {release} is not in the list"
    for release, node, symbol in listed - had - ours:
        yield f"{symbol}@{node} is in the list, release {release} had no such symbol"
    old = {symbol for _, _, symbol in had}
    for release, node, symbol in ours:
        if symbol in old:
            yield f"{symbol}@{node} is no new symbol of {release}"
    for row in table:
        if not row["releases"]:
            yield f"{row['symbol']}@{row['node']} is of no release"


def check_original(table, original):
    """The list has the functions of the ten releases and those that this library added. New
    programs link to LIBRPMA_1.0 where it has the name, and the function of a name implements it."""
    had = {(row["release"], row["node"], row["symbol"]) for row in original}
    faults = list(faults_of_releases(table, had))
    name, first, later = TWO_FUNCTIONS
    newest = {}
    for node, symbol in {(row["node"], row["symbol"]) for row in table
                         if row["node"] in OWN_NODES.values()} | {key[1:] for key in had}:
        newest[symbol] = max(newest.get(symbol, ""), node)
    newest[name] = later
    for row in table:
        symbol, node = row["symbol"], row["node"]
        default = "yes" if newest.get(symbol) == node else "no"
        if row["default"] != default:
            faults.append(f"{symbol}@{node}: default must be {default}")
        if (symbol, node) == (name, first):
            if row["implementation"] in newest:
                faults.append(f"{symbol}@{node} must have a function of its own")
        elif row["implementation"] != symbol:
            faults.append(f"{symbol}@{node} must be implemented by {symbol}")
    if len({(row["symbol"], row["node"]) for row in table}) != len(table):
        faults.append("two rows are for one symbol at one node")
    if faults:
        raise common.Fault(common.some(faults))
    added = sum(row["node"] in OWN_NODES.values() for row in table)
    return (f"{len(table)} rows are the {len(had)} symbols of ten releases and the {added} that "
            "this library added")


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
    if len(sys.argv) < 3 and sys.argv[1:] != ["original"]:
        sys.exit(__doc__)
    kind, path = (sys.argv[1:] + [""])[:2]
    checks = {
        "symbols": lambda: check_symbols(path, common.read_symbols()),
        "addresses": lambda: check_addresses(definitions(path)),
        "original": lambda: check_original(common.read_symbols(), common.read_original()),
        "dependencies": lambda: check_dependencies(path),
    }
    if kind not in checks:
        sys.exit(__doc__)
    common.finish(kind, [checks[kind]])


if __name__ == "__main__":
    main()
