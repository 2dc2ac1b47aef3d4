#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares the interface with that of the last release: contract/librpma.abi, which abidw made.

usage: released.py check LIBRARY    nothing at the released version nodes has changed
       released.py write LIBRARY    the same, then replaces the file, and adds the new functions and
                                    error codes to contract/symbols.tsv and contract/types.tsv

abidw and abidiff examine a witness instead of the library: a C library with the header's prototypes
and the library's default nodes. Its debug information has the types that programs see, independent of
the compiler, the options and the native operations of a build, and one name per function.
"""

import pathlib
import sys
import tempfile
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True

import common
import library as elf

RELEASED = common.ROOT / "contract" / "librpma.abi"
# Only the parts of rdma-core that the header needs, so that its releases do not matter.
VERBS = "".join(f"struct ibv_{name};\n" for name in ("context", "pd", "mr", "qp", "cq", "wc")) + \
    "enum ibv_wc_status { IBV_WC_SUCCESS };\n"
# Without source locations and the machine.
QUIET = ["--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-architecture",
         "--no-elf-needed", "--no-parameter-names"]


def version_script(exported):
    nodes = {}
    for name, node in sorted(exported.items()):
        nodes.setdefault(node, []).append(name)
    return "".join(f"{node} {{\n global: {'; '.join(names)};\n"
                   f"{' local: *;' if node == max(nodes) else ''}\n}};\n"
                   for node, names in sorted(nodes.items()))


def witness(directory, text, exported, prototypes):
    """Builds a library with the functions {name: node} of a header, and with debug information."""
    unknown = exported.keys() - prototypes.keys()
    if unknown:
        raise common.Fault(f"exported, and not in the header: {' '.join(sorted(unknown))}")
    (directory / "infiniband").mkdir(parents=True)
    (directory / "infiniband" / "verbs.h").write_text(VERBS, encoding="utf-8")
    (directory / "librpma.h").write_text(text, encoding="utf-8")
    bodies = "".join(f"{prototypes[name][:-1]} {{\n    __builtin_trap();\n}}\n"
                     for name in sorted(exported))
    (directory / "witness.c").write_text(f'#include "librpma.h"\n{bodies}', encoding="utf-8")
    (directory / "witness.map").write_text(version_script(exported), encoding="utf-8")
    common.run(["cc", "-std=gnu11", "-g", "-shared", "-fPIC", "-I.", "-DLIBRPMA_NO_DEPRECATED",
                "witness.c", f"-Wl,-soname,{common.SONAME}", "-Wl,--version-script,witness.map",
                "-o", common.SONAME], cwd=directory)
    return directory / common.SONAME


def abidiff(before, after, *options):
    done = common.run(["abidiff", "--no-architecture", *options, before, after], check=False)
    # Bit 8 is an incompatible change, bit 4 a change; additions alone set bit 4 and print a
    # summary.
    report = [line for line in done.stdout.splitlines() if line.strip()]
    summary = [line for line in report if "summary:" in line]
    changes = [line for line in report if "summary:" not in line]
    if done.returncode & ~4 or changes:
        raise common.Fault(f"abidiff ends with {done.returncode}:\n  "
                           + "\n  ".join((changes or report)[:30]))
    return summary


def enumerators(tree):
    return {(kind.get("name"), each.get("name")): (kind, each)
            for kind in tree.iter("enum-decl") for each in kind.iter("enumerator")}


def nodes(tree):
    return {symbol.get("name"): symbol.get("version") for symbol in tree.iter("elf-symbol")}


def check_interface(before, after):
    """Additions are allowed: enumerators, and functions at a node that no release had. They are
    removed, so that abidiff can reject any other change, even of a member's name or a const."""
    old, new = xml.parse(before), xml.parse(after)
    released = nodes(old)
    faults = [f"{name}@{node}: {node} is released, its functions are fixed"
              for name, node in nodes(new).items()
              if name not in released and node in released.values()]
    if faults:
        raise common.Fault(common.summary_of(faults))
    mine = enumerators(new)
    for key in mine.keys() - enumerators(old).keys():
        kind, each = mine[key]
        kind.remove(each)
    for element in new.iter():
        element.attrib.pop("hash", None)  # of libabigail 2.6, which includes the removed parts
    new.write(after, encoding="utf-8")
    abidiff(before, after, "--no-added-syms", "--harmless")
    return len(released)


def dump(library, target):
    text = common.run(["abidw", *QUIET, library.name], cwd=library.parent)
    target.write_text(text, encoding="utf-8")


def default_nodes(library):
    return {name: node for name, node, default in elf.exports(library) if default}


def is_release():
    """Is true if the first section of NEWS.md has a date."""
    return "\nReleased on" in (common.ROOT / "NEWS.md").read_text(encoding="utf-8").split("\n## ")[1]


def check(exported, writes=False):
    """Compares with the last release. Then replaces its file, if writes is set."""
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as name:
        directory = pathlib.Path(name)
        made = witness(directory / "today", common.HEADER.read_text(encoding="utf-8"), exported,
                       common.read_prototypes())
        dump(made, directory / "today.abi")
        missing = exported.keys() - nodes(xml.parse(RELEASED)).keys()
        if missing and is_release() and not writes:
            raise common.Fault(f"NEWS.md dates this release, and {RELEASED.name} lacks {' '.join(sorted(missing))}: "
                               "tests/abi/released.py write LIBRARY")
        count = check_interface(RELEASED, directory / "today.abi")
        if writes:
            dump(made, RELEASED)
            common.write_tables(RELEASED.parent)
            return f"{len(exported)} functions in {RELEASED}"
        common.write_tables(directory)
        for table in (common.SYMBOLS, common.TYPES):
            if not missing and not (directory / table.name).read_text(encoding="utf-8").startswith(table.read_text(encoding="utf-8")):
                raise common.Fault(f"written again, {table.name} has other rows")
    return f"{count} functions of the last release: they and their types have not changed"


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    library = sys.argv[2]
    checks = {"check": [lambda: check(default_nodes(library))],
              "write": [lambda: check(default_nodes(library), writes=True)]}
    common.finish("released", checks[sys.argv[1]])


if __name__ == "__main__":
    main()
