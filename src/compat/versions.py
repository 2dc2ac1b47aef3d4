#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Generate the version script and the aliases from the exported symbols of contract/.

usage: versions.py OUT.map OUT.hh
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "contract"))

import symbols


def version_script(rows):
    """One node per old node name; symbols that are not listed are local."""
    nodes = {}
    for row in rows:
        nodes.setdefault(row["node"], []).append(row["symbol"])
    blocks = []
    for node, names in sorted(nodes.items()):
        body = "".join(f"\t\t{name};\n" for name in names)
        rest = "\tlocal:\n\t\t*;\n" if node == max(nodes) else ""
        blocks.append(f"{node} {{\n\tglobal:\n{body}{rest}}};\n")
    return "\n".join(blocks)


HEAD = """\
// Made from the list of exported symbols by versions.py.
//
// A function has a name at the version node of each release that had it. Each name is an alias
// of the implementation, which is renamed, because GNU ld rejects a plain name next to versioned
// ones. Link-time optimization removes an alias unless the compiler treats it as a versioned
// symbol: GCC needs the attribute symver, Clang an alias with the versioned name.

#pragma once

#include "librpma.h"
"""


def versioned(row):
    return f"{row['symbol']}{'@@' if row['default'] else '@'}{row['node']}"


def declarations(name, rows):
    """The declarations that must precede the definition of a function."""
    symvers = ",\n    ".join(f'symver("{versioned(row)}")' for row in rows)
    function = f'extern "C" decltype({name}) {name}'
    lines = [] if name == rows[0]["symbol"] else \
        [f'extern "C" decltype({rows[0]["symbol"]}) {name};']
    lines += ["#if __has_attribute(symver)",
              f'{function} __asm__("{name}.impl") __attribute__((\n    {symvers}));',
              "#else",
              f'{function} __asm__("{name}.impl");']
    for number, row in enumerate(rows):
        lines.append(f'extern "C" decltype({name}) {name}_{number} __asm__("{versioned(row)}")\n'
                     f'    __attribute__((alias("{name}.impl")));')
    return "\n".join(lines + ["#endif"]) + "\n"


def header(rows):
    names = {}
    for row in rows:
        names.setdefault(row["implementation"], []).append(row)
    return "\n".join([HEAD, *(declarations(*item) for item in sorted(names.items()))])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = symbols.read_symbols()
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(version_script(rows))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(header(rows))


if __name__ == "__main__":
    main()
