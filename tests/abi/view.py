# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Generates the header of a release, and a stub library that has only its symbols.

The header is generated from contract/types.tsv and contract/symbols.tsv, so that programs of old
releases do not use types of the current header. Prototypes never changed; contract/librpma.abi has them.
"""

import common


def exists_in(row, release):
    at = common.version(release)
    return (common.version(row["first_release"]) <= at and
            (not row["last_release"] or at <= common.version(row["last_release"])))


def block(rows, head, kind, name, line):
    """An enum or a struct with the members of the release."""
    body = "".join(f"    {line(row)}\n" for row in rows
                   if row["kind"] == kind and row["name"] == name)
    return f"{head} {{\n{body}}};\n"


def enumeration(rows, row):
    return block(rows, f"enum {row['name']}", "enumerator", row["name"],
                 lambda member: f"{member['member']} = {member['value']},")


def member(row):
    kind, bracket, length = row["type_or_expression"].partition("[")
    return f"{kind} {row['member']}{bracket}{length};"


def structure(rows, row):
    return block(rows, f"struct {row['name']}", "member", row["name"], member)


def declaration(rows, row):
    """One row of the table as C; a structure includes its members."""
    name, text = row["name"], row["type_or_expression"]
    if row["kind"] == "macro" and text != "include guard":
        return f"#define {name} {text}\n"
    if row["kind"] == "typedef":
        return "typedef " + text.replace("(", f"{name}(", 1) + ";\n"
    if row["kind"] == "opaque struct":
        return f"struct {name};\n"
    return {"enum": enumeration, "struct": structure}.get(row["kind"], lambda *_: "")(rows, row)


def text(release, rows, prototypes):
    includes = [row["name"] for row in rows if row["kind"] == "include"]
    guarded = any(row["kind"] == "linkage" for row in rows)
    parts = [f"/* librpma.h as release {release} had it */\n",
             "#ifndef LIBRPMA_H\n#define LIBRPMA_H 1\n",
             *(f"#include {name}\n" for name in includes)]
    if guarded:
        parts.append('#ifdef __cplusplus\nextern "C" {\n#endif\n')
    parts += [declaration(rows, row) for row in rows]
    parts += [prototype + "\n" for prototype in prototypes]
    if guarded:
        parts.append("#ifdef __cplusplus\n}\n#endif\n")
    return "".join(parts) + "#endif\n"


def write(release, directory):
    """Writes DIRECTORY/include/librpma.h, and stub.c and stub.map of a library for linking, which
    programs must never call."""
    functions, node = common.symbols_of(release, common.read_symbols())
    prototypes = common.read_prototypes()
    (directory / "include").mkdir()
    (directory / "include" / "librpma.h").write_text(
        text(release, [row for row in common.read_types() if exists_in(row, release)],
             [prototypes[name] for name in functions]), encoding="utf-8")
    (directory / "stub.c").write_text(
        "".join(f"void {name}(void) {{\n    __builtin_trap();\n}}\n" for name in functions), encoding="utf-8")
    names = "".join(f"        {name};\n" for name in functions)
    (directory / "stub.map").write_text(f"{node} {{\n    global:\n{names}    local:\n        *;\n}};\n",
                                        encoding="utf-8")
