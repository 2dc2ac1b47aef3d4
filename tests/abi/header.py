#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks include/librpma.h with every C and C++ compiler of this machine.

usage: header.py alone|macros|names|deprecated|cpp

alone       the header compiles by itself under each language standard, without a warning
macros      macros have the values of contract/types.tsv and the type of int or NULL; enumerators have
            the values
names       the header declares exactly the names of the tables, and functions and error codes of the next release
deprecated  compilers report exactly the five dropped functions, and none with LIBRPMA_NO_DEPRECATED
cpp         librpma.hpp and librpma_coroutine.hpp compile with the warnings of their users; the former
            calls each function, except those that rpma_cpp(7) leaves to C, and has each error code
"""

import functools
import pathlib
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

import common
import public_header

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C_STANDARDS = ["c99", "c11", "c17"]
CXX_STANDARDS = ["c++11", "c++14", "c++17", "c++20"]
CXX_HEADER = common.HEADER.with_suffix(".hpp")
INCLUDE = "#include <librpma.h>\n"


def dropped_functions(symbols):
    """The functions of releases before 1.0 that later releases lacked."""
    alive = {row["symbol"] for row in symbols
             if common.version(row["releases"][-1]) >= (1, 0, 0)}
    return {row["symbol"] for row in symbols} - alive


def compilers(names):
    found = [name for name in names if shutil.which(name)]
    if not found:
        raise common.Missing(f"none of {', '.join(names)} is installed: run tools/setup build")
    return found


c_compilers = functools.partial(compilers, ["gcc", "clang"])
cxx_compilers = functools.partial(compilers, ["g++", "clang++"])


def compiled(compiler, standard, text, options=(), check=True):
    """Returns the output of a compiler for a source that includes the header."""
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as directory:
        unit = pathlib.Path(directory) / f"unit{'.cc' if standard.startswith('c++') else '.c'}"
        unit.write_text(text, encoding="utf-8")
        return common.run([compiler, f"-std={standard}", *WARNINGS, *options, "-fsyntax-only",
                           "-I", common.HEADER.parent, unit], check=check)


def check_alone():
    count = 0
    for names, standards in ((c_compilers(), C_STANDARDS), (cxx_compilers(), CXX_STANDARDS)):
        for name in names:
            for standard in standards:
                compiled(name, standard, INCLUDE + INCLUDE)
                count += 1
    for name in cxx_compilers():  # as users of 0.9.0 did, whose header did not mention C++
        compiled(name, "c++11",
                       f'#include <infiniband/verbs.h>\nextern "C" {{\n{INCLUDE}}}\n')
    return (f"alone, twice, without a warning: {count} times "
            f"({', '.join(c_compilers() + cxx_compilers())})")


def assertions(row):
    name, value, text = row["name"], row["value"], row["type_or_expression"]
    conditions = [f"__builtin_types_compatible_p(__typeof__({text}), __typeof__({name}))"]
    if value != "NULL":
        conditions += [f"({name}) == ({value})", f"({name}) == ({text})"]
    return "".join(f'_Static_assert({condition}, "{condition}");\n' for condition in conditions)


def check_macros():
    """released.py compares types and prototypes with those of the releases, but not macros."""
    types = common.read_types()
    rows = [row for row in types if row["kind"] == "macro" and row["value"] and row["name"] != "LIBRPMA_H"]
    enumerators = [f'_Static_assert({row["member"]} == {row["value"]}, "{row["member"]}");\n'
                   for row in types if row["kind"] == "enumerator"]
    for name in c_compilers():
        compiled(name, "gnu11", INCLUDE + "".join([*map(assertions, rows), *enumerators]))
    return f"{len(rows)} macros and {len(enumerators)} enumerators have their values ({', '.join(c_compilers())})"


def defined_macros():
    text = compiled(c_compilers()[0], "gnu11", INCLUDE, ["-dM", "-E"])
    return set(re.findall(r"^#define ((?:LIB)?RPMA_\w+)", text, re.M))


def check_names():
    """Compares in both directions, so that every addition needs its row."""
    types = common.read_types()
    functions = {row["symbol"] for row in common.read_symbols()}
    listed = {"rpma_log_function"} | functions
    listed |= {row["name"] for row in types if row["kind"] in ("enum", "struct", "opaque struct")}
    listed |= {row["member"] for row in types if row["kind"] == "enumerator"}
    macros = {row["name"] for row in types if row["kind"] == "macro"}
    body = public_header.without_comments(common.HEADER.read_text(encoding="utf-8"))
    declared = set(re.findall(r"\bRPMA_\w+|\brpma_\w+", body)) - macros
    # LIBRPMA_DEPRECATED is this library's own; LIBRPMA_H is in the table.
    defined = defined_macros() - {"LIBRPMA_DEPRECATED"}
    for found, wanted in ((declared, listed), (defined, macros)):
        common.expect_same(found, wanted, "in the header and not in the tables", "in the tables and not in the header")
    return f"{len(functions)} functions, {len(listed)} names and {len(macros)} macros, no other"


def deprecated_functions(compiler, options):
    """The functions that a compiler reports as deprecated."""
    names = sorted({row["symbol"] for row in common.read_symbols()})
    uses = "".join(f"    (any *){name},\n" for name in names)
    text = (f"{INCLUDE}typedef void any(void);\nextern any *const every[];\n"
            f"any *const every[] = {{\n{uses}}};\n")
    # Without -Wcast-function-type, because the table is never called.
    output = compiled(compiler, "gnu11", text, [*options, "-Wno-cast-function-type",
                                                      "-Wno-error=deprecated-declarations"])
    return set(re.findall(r"['‘](rpma_\w+)['’] is deprecated", output))


def check_deprecated():
    dropped = dropped_functions(common.read_symbols())
    for compiler in c_compilers():
        for options, wanted in ([], dropped), (["-DLIBRPMA_NO_DEPRECATED"], set()):
            found = deprecated_functions(compiler, options)
            if found != wanted:
                raise common.Fault(f"{compiler}{' '.join(['', *options])}: wrongly deprecated or missing: "
                                   f"{' '.join(sorted(found ^ wanted))}")
    return f"{len(dropped)} functions are deprecated, unless LIBRPMA_NO_DEPRECATED is defined"


def check_cpp():
    """An operation with the members of its type causes no warning; one without remote memory does."""
    text = """#include <librpma_coroutine.hpp>
rpma_work some(const rpma::mr_remote &remote);
rpma_work some(const rpma::mr_remote &remote) { return rpma::write{.remote = remote, .flags = 1}; }
"""
    options = ["-Wconversion", "-Wshadow", "-Wcast-qual"]
    for compiler in cxx_compilers():
        compiled(compiler, "c++20", text, options)
        for header in "librpma.hpp", "librpma_coroutine.hpp":
            done = compiled(compiler, "c++17", f"#include <{header}>\n", check=False)
            errors = re.findall(r"error: .*", done.stdout)
            if len(errors) != 1 or "needs C++20" not in errors[0]:
                raise common.Fault(f"{compiler} without C++20 reports of {header}: {errors}")
        if compiler != "g++":  # clang does not warn about designated initializers
            continue
        incomplete = compiled(compiler, "c++20", text.replace(".remote = remote, ", ""),
                              [*options, "-Wno-error"])
        if "missing" not in incomplete:
            raise common.Fault(f"{compiler} does not warn of an operation without remote memory")
    header = re.sub(r"//.*", "", CXX_HEADER.read_text(encoding="utf-8"))
    called = set(re.findall(r"\brpma_\w+(?=[(>,])", header))
    page = (common.ROOT / "man" / "rpma_cpp.7").read_text(encoding="utf-8")
    sentence = re.search(r"call them as in C:(.*?)deprecated", page, re.S)
    left = set(re.findall(r"rpma_\w+", sentence.group(1)))
    symbols = common.read_symbols()
    wanted = {row["symbol"] for row in symbols} - dropped_functions(symbols)
    faults = [f"librpma.hpp calls no {name}()" for name in wanted - called - left]
    faults += [f"rpma_cpp(7) leaves {name}() to C, but librpma.hpp calls it, or it does not exist"
               for name in left & called | left - wanted]
    codes = {row["name"] for row in common.read_types() if row["name"].startswith("RPMA_E_")}
    enumerators = dict(re.findall(r"(\w+) = (RPMA_E_\w+)", header))
    faults += [f"rpma::status has no enumerator of {code}" for code in codes
               if enumerators.get(code.removeprefix("RPMA_E_").lower()) != code]
    if faults:
        raise common.Fault(common.summary_of(faults))
    return f"{len(called & wanted)} functions, {len(left)} left to C, {len(codes)} codes ({', '.join(cxx_compilers())})"


CHECKS = {"cpp": check_cpp, "alone": check_alone, "macros": check_macros, "names": check_names,
          "deprecated": check_deprecated}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    common.finish(f"header {sys.argv[1]}", [CHECKS[sys.argv[1]]])


if __name__ == "__main__":
    main()
