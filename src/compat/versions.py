#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Turn the list of exported symbols into a version script and the symbol aliases.

usage: versions.py SYMBOLS.tsv OUT.map OUT.hh
"""
import csv
import sys


def version_script(rows):
    """One node per old node name, everything that is not listed stays inside."""
    nodes = {}
    for row in rows:
        nodes.setdefault(row["node"], []).append(row["symbol"])
    blocks = []
    for node, names in sorted(nodes.items()):
        body = "".join(f"\t\t{name};\n" for name in names)
        rest = "\tlocal:\n\t\t*;\n" if node == max(nodes) else ""
        blocks.append(f"{node} {{\n\tglobal:\n{body}{rest}}};\n")
    return "\n".join(blocks)


def statements(row):
    """The implementation itself becomes the default; other nodes get an alias of it."""
    target, node, symbol = row["implementation"], row["node"], row["symbol"]
    if row["default"] == "yes":
        return f'asm(".symver {target}, {symbol}@@@{node}");'
    alias = f"{target}__{node.replace('.', '_')}"
    return (f'asm(".globl {alias}\\n.set {alias}, {target}\\n'
            f'.symver {alias}, {symbol}@{node}");')


def macros(rows):
    """For each implementation one macro with all the names that it has."""
    names = {}
    for row in rows:
        names.setdefault(row["implementation"], []).append(statements(row))
    lines = ["// Made from the list of exported symbols by versions.py", "#pragma once", ""]
    for name, body in sorted(names.items()):
        lines.append(" \\\n    ".join([f"#define RPMA_VERSIONS_{name}", *body]))
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(version_script(rows))
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        out.write(macros(rows))


if __name__ == "__main__":
    main()
