#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares the interface with those of the releases: contract/librpma-*.abi, which abidw made.

usage: released.py check LIBRARY    nothing at the released version nodes has changed
       released.py write LIBRARY    writes the file of this version, unless that has a tag

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

CONTRACT = common.ROOT / "contract"
# Only the parts of rdma-core that the header needs, so that its releases do not matter.
VERBS = "".join(f"struct ibv_{name};\n" for name in ("context", "pd", "mr", "qp", "cq", "wc")) + \
    "enum ibv_wc_status { IBV_WC_SUCCESS };\n"
# Reserved words of a released structure that a later release has named: (structure, member) -> the
# replacing uint64_t members. Programs of the older release set them to zero, as documented.
NAMED = {("rpma_work", "reserved"): ("compare", "reserved1")}
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


def members(tree, structure):
    """(XML element of a structure, {name: its data-member}), which the caller may modify."""
    kind = next(kind for kind in tree.iter("class-decl") if kind.get("name") == structure)
    return kind, {each.find("var-decl").get("name"): each for each in kind.findall("data-member")}


def take_back_names(old, new):
    """Removes named reserved words from both trees, after checking that their offsets are the same."""
    sizes, types = ({each.get("id"): each.get(what) for each in tree.iter() if each.get(what)}
                    for what, tree in (("size-in-bits", old), ("name", new)))
    for (structure, reserved), names in NAMED.items():
        (before, had), (after, has) = members(old, structure), members(new, structure)
        if reserved not in had:
            continue
        begin = int(had[reserved].get("layout-offset-in-bits"))
        size = int(sizes[had[reserved].find("var-decl").get("type-id")])
        places = [(int(has[name].get("layout-offset-in-bits")),
                   types.get(has[name].find("var-decl").get("type-id"))) for name in names]
        if size != 64 * len(names) or \
                places != [(begin + 64 * i, "uint64_t") for i in range(len(names))]:
            raise common.Fault(f"{structure}: {' and '.join(names)} are not where {reserved} was")
        before.remove(had[reserved])
        for name in names:
            after.remove(has[name])


def check_interface(before, after):
    """Additions are allowed: enumerators, names of reserved words, and functions at a node that no
    release had. They are removed, so that abidiff can reject any other change, even of a
    member's name or a const."""
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
    count = len(released)
    take_back_names(old, new)
    new.write(after, encoding="utf-8")
    seen = after.with_name(before.name)
    old.write(seen, encoding="utf-8")
    abidiff(seen, after, "--no-added-syms", "--harmless")
    return count


def dump(library, target):
    text = common.run(["abidw", *QUIET, library.name], cwd=library.parent)
    target.write_text(text, encoding="utf-8")


def default_nodes(library):
    return {name: node for name, node, default in elf.exports(library) if default}


def released():
    """{release: its interface}."""
    found = {path.stem.removeprefix("librpma-"): path for path in CONTRACT.glob("librpma-*.abi")}
    if "1.4.0" not in found:
        raise common.Fault("contract/librpma-1.4.0.abi is missing")
    return found


def check(exported, target=None):
    """Compares with all releases. With a target, compares with the other releases and writes it."""
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as name:
        directory = pathlib.Path(name)
        made = witness(directory / "today", common.HEADER.read_text(encoding="utf-8"), exported,
                       common.read_prototypes())
        done = []
        for release, before in sorted(released().items()):
            if before == target:
                continue
            dump(made, directory / "today.abi")
            try:
                count = check_interface(before, directory / "today.abi")
            except common.Fault as fault:
                raise common.Fault(f"{before.name}: {fault}\n  Until that release has its tag, "
                                   "tests/abi/released.py write LIBRARY replaces the file") from None
            done.append(f"{count} functions of {release}")
        if target:
            dump(made, target)
            return f"{len(exported)} functions in {target}"
    return f"{', '.join(done)}: they and their types have not changed"


def write(library):
    version = common.project_version()
    target = CONTRACT / f"librpma-{version}.abi"
    tags = common.run(["git", "-C", common.ROOT, "tag", "--list", f"v{version}"], check=False).stdout
    if tags.strip():
        raise common.Fault(f"{target.name} is not changed, because git has the tag {tags.strip()}; a change needs a "
                           "new version in meson.build")
    return check(default_nodes(library), target)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    library = sys.argv[2]
    checks = {"check": [lambda: check(default_nodes(library))],
              "write": [lambda: write(library)]}
    common.finish("released", checks[sys.argv[1]])


if __name__ == "__main__":
    main()
