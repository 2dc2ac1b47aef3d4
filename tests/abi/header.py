#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks include/librpma.h with every C and C++ compiler of this machine.

usage: header.py alone|macros|names|prototypes|deprecated [SOURCE]

alone       compiles by itself under each language standard, without a warning
macros      have the values of contract/types.tsv, and the types of int and of NULL
names       declares what the tables list and nothing else
prototypes  agrees with prototypes.h, in C++; released.py compiles both in C
deprecated  warns of the five dropped functions and of no other; LIBRPMA_NO_DEPRECATED switches off
"""

import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import common

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C_STANDARDS = ["c99", "c11", "c17"]
CXX_STANDARDS = ["c++11", "c++14", "c++17", "c++20"]
INCLUDE = "#include <librpma.h>\n"


def dropped_functions(symbols):
    """The functions that releases before 1.0 had and later ones lacked."""
    alive = {row["symbol"] for row in symbols
             if common.version(row["releases"].split()[-1]) >= (1, 0, 0)}
    return {row["symbol"] for row in symbols} - alive


def compilers(names):
    found = [name for name in names if shutil.which(name)]
    if not found:
        raise common.Missing(f"none of {', '.join(names)} is installed")
    return found


def c_compilers():
    return compilers(["gcc", "clang"])


def cxx_compilers():
    return compilers(["g++", "clang++"])


class Header:
    """Compiles pieces of text with the header of a source tree."""

    def __init__(self, source):
        self.source = source
        self.text = (source / "include" / "librpma.h").read_text(encoding="utf-8")

    def compile(self, compiler, standard, text, options=(), check=True):
        suffix = ".cc" if standard.startswith("c++") else ".c"
        with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
            unit = pathlib.Path(directory) / f"unit{suffix}"
            unit.write_text(text, encoding="utf-8")
            return common.run([compiler, f"-std={standard}", *WARNINGS, *options, "-fsyntax-only",
                               "-I", self.source / "include", unit], check=check)


def check_alone(header):
    count = 0
    for names, standards in ((c_compilers(), C_STANDARDS), (cxx_compilers(), CXX_STANDARDS)):
        for name in names:
            for standard in standards:
                header.compile(name, standard, INCLUDE + INCLUDE)
                count += 1
    for name in cxx_compilers():  # users of 0.9.0 did so, whose header did not mention C++
        header.compile(name, "c++11",
                       f'#include <infiniband/verbs.h>\nextern "C" {{\n{INCLUDE}}}\n')
    return (f"alone, twice, without a warning: {count} times "
            f"({', '.join(c_compilers() + cxx_compilers())})")


def assertions(row):
    name, value, text = row["name"], row["value"], row["type_or_expression"]
    conditions = [f"__builtin_types_compatible_p(__typeof__({text}), __typeof__({name}))"]
    if value != "NULL":
        conditions += [f"({name}) == ({value})", f"({name}) == ({text})"]
    return "".join(f'_Static_assert({condition}, "{condition}");\n' for condition in conditions)


def check_macros(header):
    """Debug information has types, enumerators and prototypes (released.py), but no macros."""
    rows = [row for row in common.read_types(header.source)
            if row["kind"] == "macro" and row["value"] and row["name"] != "LIBRPMA_H"]
    for name in c_compilers():
        header.compile(name, "gnu11", INCLUDE + "".join(map(assertions, rows)))
    return f"{len(rows)} macros have their values ({', '.join(c_compilers())})"


def defined_macros(header):
    text = header.compile(c_compilers()[0], "gnu11", INCLUDE, ["-dM", "-E"])
    return set(re.findall(r"^#define ((?:LIB)?RPMA_\w+)", text, re.M))


def check_names(header):
    """Compares in both directions, so that every addition needs its row."""
    types = common.read_types(header.source)
    functions = {row["symbol"] for row in common.read_symbols(header.source)}
    listed = {"rpma_log_function"} | functions
    listed |= {row["name"] for row in types if row["kind"] in ("enum", "struct", "opaque struct")}
    listed |= {row["member"] for row in types if row["kind"] == "enumerator"}
    macros = {row["name"] for row in types if row["kind"] == "macro"}
    body = re.sub(r"^\s*#.*$", "", common.without_comments(header.text).replace("\\\n", " "),
                  flags=re.M)
    declared = set(re.findall(r"\bRPMA_\w+|\brpma_\w+", body)) - macros
    # LIBRPMA_DEPRECATED is this library's own; LIBRPMA_H is in the table.
    defined = defined_macros(header) - {"LIBRPMA_DEPRECATED"}
    faults = [f"in the header and not in the tables: {name}"
              for name in (declared - listed) | (defined - macros)]
    faults += [f"in the tables and not in the header: {name}"
               for name in (listed - declared) | (macros - defined)]
    if faults:
        raise common.Fault(common.some(faults))
    return f"{len(functions)} functions, {len(listed)} names and {len(macros)} macros, no other"


def check_prototypes(header):
    prototypes = common.read_prototypes()
    functions = {row["symbol"] for row in common.read_symbols(header.source)}
    if functions != set(prototypes):
        raise common.Fault("prototypes.h and symbols.tsv differ: "
                           f"{' '.join(sorted(functions ^ set(prototypes)))}")
    again = "\n".join(prototypes.values())
    # C++ would take another parameter list for an overload; C linkage makes it an error.
    for name in cxx_compilers():
        header.compile(name, "c++20", f'{INCLUDE}extern "C" {{\n{again}\n}}\n')
    return f"{len(prototypes)} prototypes agree in C++"


def deprecated_functions(header, compiler, options=()):
    """The functions whose use makes a compiler warn."""
    names = sorted({row["symbol"] for row in common.read_symbols(header.source)})
    uses = "".join(f"    (any *){name},\n" for name in names)
    text = (f"{INCLUDE}typedef void any(void);\nextern any *const every[];\n"
            f"any *const every[] = {{\n{uses}}};\n")
    # -Wcast-function-type would complain of the table, which is never called.
    output = header.compile(compiler, "gnu11", text, [*options, "-Wno-cast-function-type",
                                                      "-Wno-error=deprecated-declarations"])
    return set(re.findall(r"['‘](rpma_\w+)['’] is deprecated", output))


def check_deprecated(header):
    dropped = dropped_functions(common.read_symbols(header.source))
    for compiler in c_compilers():
        found = deprecated_functions(header, compiler)
        if found != dropped:
            raise common.Fault(f"{compiler}: deprecated or not, against the wish: "
                               f"{' '.join(sorted(found ^ dropped))}")
        found = deprecated_functions(header, compiler, ["-DLIBRPMA_NO_DEPRECATED"])
        if found:
            raise common.Fault(f"{compiler}: deprecated in spite of LIBRPMA_NO_DEPRECATED: "
                               f"{' '.join(sorted(found))}")
    return f"{len(dropped)} functions are deprecated, until LIBRPMA_NO_DEPRECATED says otherwise"


CHECKS = {"alone": check_alone, "macros": check_macros, "names": check_names,
          "prototypes": check_prototypes, "deprecated": check_deprecated}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else common.ROOT
    common.finish(f"header {sys.argv[1]}", [lambda: CHECKS[sys.argv[1]](Header(source))])


if __name__ == "__main__":
    main()
