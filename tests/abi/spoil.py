#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Spoils copies of what the ABI checks look at, one way after the other: each check must notice.

usage: spoil.py BUILD FAKES [CC]    CC: compiler with its options
"""

import pathlib
import shutil
import sys
import tempfile
import types

sys.dont_write_bytecode = True

import common
import header
import install
import library
import mutants
import released
import releases
import tags


def expect(what, check, complaint):
    """The check must raise a fault that names the spoiled part."""
    try:
        check()
    except common.Fault as fault:
        if complaint in str(fault):
            return 1
        raise common.Fault(f"{what}: noticed, but complains otherwise: {fault}") from fault
    raise common.Fault(f"{what}: nobody noticed")


def replaced(text, old, new):
    if text.count(old) < 1:
        raise common.Fault(f"nothing to spoil: {old!r} is gone, choose another place")
    return text.replace(old, new, 1)


# ---- the exported list and the dependencies ------------------------------------------------


def spoil_symbols(built):
    table = common.read_symbols()
    row = table[0]
    old = {**row, "default": "yes" if row["default"] == "no" else "no"}
    new = {**row, "symbol": "rpma_never"}
    kinds = {
        "a row less": (table[1:], "exported and not in the list: " + row["symbol"]),
        "a row more": ([*table, new], "in the list and not exported: rpma_never"),
        "another node": ([{**row, "node": "LIBRPMA_2.0"}, *table[1:]], "@LIBRPMA_2.0"),
        "another default": ([old, *table[1:]], "exported and not in the list: " + row["symbol"]),
    }
    return sum(expect(f"symbols, {kind}", lambda spoiled=spoiled: library.check_symbols(
        built, spoiled), complaint) for kind, (spoiled, complaint) in kinds.items())


def spoil_original():
    """Each row of the list in turn is lost, or has one wrong field."""
    table, original = common.read_symbols(), common.read_original()
    prototypes = common.read_prototypes()
    count = 0
    for at, row in enumerate(table):
        other = table[at - 20]["symbol"]
        kinds = {
            "a row less": [],
            "a row twice": [row, row],
            "another symbol": [{**row, "symbol": other}],
            "another node": [{**row, "node": "LIBRPMA_0.9"}],
            "another default": [{**row, "default": "no" if row["default"] == "yes" else "yes"}],
            "another implementation": [{**row, "implementation": other}],
        }
        releases_of = row["releases"].split()
        for release in releases_of:
            kinds[f"without {release}"] = [
                {**row, "releases": " ".join(set(releases_of) - {release})}]
        for kind, rows in kinds.items():
            count += expect(f"{row['symbol']}@{row['node']}, {kind}",
                            lambda rows=rows: library.check_original(
                                [*table[:at], *rows, *table[at + 1:]], original, prototypes),
                            "")
    return count


def spoil_addresses(built):
    """Each symbol in turn leads to the function of another name; then each whole name does."""
    found = library.definitions(built)
    functions = [key for key, (kind, _) in found.items() if kind == "FUNC"]
    names = sorted({name for name, _, _ in functions})
    count = 0
    for key in functions:
        stranger = next(found[other] for other in functions if other[0] != key[0])
        count += expect(f"{key[0]}@{key[1]} with another function", lambda: library.check_addresses(
            {**found, key: stranger}), key[0])
    for name, other in zip(names, names[1:] + names[:1]):
        default = {key[0]: found[key] for key in functions if key[2]}
        moved = {key: default[other] if key[0] == name else value for key, value in found.items()}
        count += expect(f"{name} with the function of {other}",
                        lambda: library.check_addresses(moved), name)
    return count


def spoil_dependencies(directory):
    source = directory / "empty.c"
    source.write_text("int empty;\n", encoding="utf-8")
    good = ["-Wl,--no-as-needed", "-libverbs", "-lrdmacm", f"-Wl,-soname,{common.SONAME}"]
    kinds = {"another library": (["-lm"], "libm.so.6"),
             "another SONAME": (["-Wl,-soname,librpma.so.1"], "librpma.so.1"),
             "a run path": (["-Wl,-rpath,/nowhere"], "/nowhere")}
    count = 0
    for kind, (options, complaint) in kinds.items():
        target = directory / "spoiled.so"
        common.run(["cc", "-shared", "-fPIC", source, *good, *options, "-o", target])
        count += expect(f"dependencies, {kind}",
                        lambda: library.check_dependencies(target), complaint)
    return count


# ---- the header ----------------------------------------------------------------------------

HEADER = [
    ("alone", "#include <infiniband/verbs.h>\n", "", "ibv_context"),
    ("alone", "#define RPMA_E_UNKNOWN",
     "#define RPMA_W_WAIT_FOR_COMPLETION 2\n#define RPMA_E_UNKNOWN", "redefined"),
    ("macros", "#define RPMA_E_NOSUPP (-100001)", "#define RPMA_E_NOSUPP (-100011)",
     "RPMA_E_NOSUPP"),
    ("macros", "#define RPMA_DEFAULT_TIMEOUT_MS 1000", "#define RPMA_DEFAULT_TIMEOUT_MS 1000u",
     "RPMA_DEFAULT_TIMEOUT_MS"),
    ("macros", "#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)",
     "#define RPMA_LOG_USE_DEFAULT_FUNCTION 0", "RPMA_LOG_USE_DEFAULT_FUNCTION"),
    ("names", "struct rpma_peer;", "struct rpma_peer;\nint rpma_new(void);", "rpma_new"),
    ("names", "int rpma_batch_reset(struct rpma_batch *batch);", "", "rpma_batch_reset"),
    ("names", "#define RPMA_W_WAIT_FOR_COMPLETION (1)", "", "RPMA_W_WAIT_FOR_COMPLETION"),
    ("names", "    RPMA_LOG_LEVEL_DEBUG", "    RPMA_LOG_LEVEL_DEBUG, RPMA_LOG_LEVEL_ALL",
     "RPMA_LOG_LEVEL_ALL"),
    ("prototypes", "int rpma_cq_wait(struct rpma_cq *cq);",
     "int rpma_cq_wait(const struct rpma_cq *cq);", "rpma_cq_wait"),
    ("prototypes", 'extern "C" {', 'extern "C++" {', "linkage"),
    ("deprecated", ' LIBRPMA_DEPRECATED("use rpma_atomic_write")', "", "rpma_write_atomic"),
    ("deprecated", "int rpma_cq_wait(struct rpma_cq *cq)",
     'int rpma_cq_wait(struct rpma_cq *cq) LIBRPMA_DEPRECATED("?")', "rpma_cq_wait"),
    ("deprecated", "defined(LIBRPMA_NO_DEPRECATED)", "defined(LIBRPMA_SILENT)",
     "in spite of LIBRPMA_NO_DEPRECATED"),
]


def spoil_header(directory):
    shutil.copytree(common.ROOT / "contract", directory / "contract")
    (directory / "include").mkdir()
    text = (common.ROOT / "include" / "librpma.h").read_text(encoding="utf-8")
    for name, old, new, complaint in HEADER:
        (directory / "include" / "librpma.h").write_text(replaced(text, old, new),
                                                         encoding="utf-8")
        expect(f"header {name}, {new or 'without ' + old}",
               lambda name=name: header.CHECKS[name](header.Header(directory)), complaint)
    return len(HEADER)


# ---- the released interface ----------------------------------------------------------------

# The header and prototypes.h change alike, as somebody would do it who wants the change.
INTERFACE = [
    ("    RPMA_CONN_LOST,", "    RPMA_CONN_SPARE, RPMA_CONN_LOST,", "RPMA_CONN_LOST"),
    ("    RPMA_WORK_READ = 1,", "    RPMA_WORK_READ = 8,", "from value '1' to '8'"),
    ("    RPMA_FLUSH_MODE_NATIVE ", "    RPMA_FLUSH_MODE_REAL ", "1 enumerator deletion"),
    ("    uint8_t len;", "    uint16_t len;", "len"),
    ("    unsigned flags; ", "    int flags; ", "flags"),
    ("    enum rpma_op op; ", "    uint32_t spare; enum rpma_op op; ", "spare"),
    ("    size_t offset;\n    size_t len;", "    size_t len;\n    size_t offset;", "rpma_sge"),
    ("    size_t remote_offset; /* of an atomic write a multiple of 8 */\n"
     "    struct rpma_sge local;\n", "    struct rpma_sge local;\n    size_t remote_offset;\n",
     "rpma_work"),
    ("    uint64_t reserved[2];", "    uint64_t reserved[3];", "reserved"),
    ("    uint64_t value; ", "    uint64_t number; ", "rpma_work::value"),
    ("struct rpma_peer;", "struct rpma_peer { int open; };", "struct rpma_peer"),
    ("int rpma_cq_wait(struct rpma_cq *cq);", "int rpma_cq_wait(const struct rpma_cq *cq);",
     "rpma_cq_wait"),
    ("int rpma_cq_wait(struct rpma_cq *cq);", "void rpma_cq_wait(struct rpma_cq *cq);",
     "rpma_cq_wait"),
    ("int rpma_batch_delete(struct rpma_batch **batch_ptr)",
     "int rpma_batch_delete(struct rpma_batch **batch_ptr, int flags)", "rpma_batch_delete"),
    ("const char *message_format, ...)", "char *message_format, ...)", "rpma_log_function"),
]


def spoil_interface(built):
    exported = released.default_nodes(built)
    header_text = released.HEADER.read_text(encoding="utf-8")
    listed = "\n".join(common.read_prototypes().values())

    def prototypes(text):
        return {each.split("(")[0].split()[-1].lstrip("*"): each for each in text.splitlines()}

    for old, new, complaint in INTERFACE:
        expect(f"released, {new}", lambda old=old, new=new: released.check(
            exported, replaced(header_text, old, new), prototypes(listed.replace(old, new))),
            complaint)
    moved = {**exported, "rpma_post": "LIBRPMA_1.5"}
    without = {name: node for name, node in exported.items() if name != "rpma_post"}
    expect("a symbol at another node", lambda: released.check(moved), "rpma_post")
    expect("a symbol less", lambda: released.check(without), "rpma_post")
    # A later release adds to an enumeration, and functions at a node of its own.
    more = (replaced(header_text, "    RPMA_WORK_SEND_WITH_IMM ",
                     "    RPMA_WORK_SEND_WITH_IMM, RPMA_WORK_FETCH_ADD "),
            prototypes(f"{listed}\nint rpma_never(struct rpma_work *work);"))
    expect("a symbol more at a released node", lambda: released.check(
        {**exported, "rpma_never": "LIBRPMA_1.4"}, *more), "rpma_never@LIBRPMA_1.4")
    released.check({**exported, "rpma_never": "LIBRPMA_1.5"}, *more)
    return len(INTERFACE) + 3


def spoil_table(built):
    """contract/types.tsv changes, and the header does not."""
    exported, rows = released.default_nodes(built), common.read_types()
    kinds = [("enumerator", "value", "77"), ("member", "type_or_expression", "char"),
             ("typedef", "type_or_expression", "int (void)")]
    for kind, field, value in kinds:
        at = next(at for at, row in enumerate(rows) if row["kind"] == kind)
        spoiled = [*rows[:at], {**rows[at], field: value}, *rows[at + 1:]]
        expect(f"types.tsv, {kind}", lambda spoiled=spoiled: released.check_table(
            exported, spoiled), rows[at]["name"])
    return len(kinds)


# ---- the definitions that a reader finds -------------------------------------------------


# A definition that is missing or hidden behind a macro, and one that exists twice.
TAGS = [
    ("api/cq.cc", "RPMA_GETTER(rpma_cq_get_fd,", "RPMA_GETTER(cq_get_fd,",
     "rpma_cq_get_fd: ctags finds no"),
    ("api/cq.cc", "int rpma_cq_wait(struct rpma_cq *cq) {",
     "EXPORT(int, rpma_cq_wait, struct rpma_cq *cq) {", "rpma_cq_wait: ctags finds no"),
    ("api/ep.cc", "RPMA_GETTER(rpma_ep_get_fd,", "RPMA_GETTER(rpma_cq_get_fd,",
     "finds 2 definitions"),
]


def spoil_tags(directory):
    for number, (file, old, new, complaint) in enumerate(TAGS):
        source = directory / str(number)
        shutil.copytree(common.ROOT / "src", source)
        text = (source / file).read_text(encoding="utf-8")
        (source / file).write_text(replaced(text, old, new), encoding="utf-8")
        expect(f"tags, {new}", lambda source=source: tags.check_tags(
            source, common.read_symbols()), complaint)
    return len(TAGS)


# ---- the installed files -----------------------------------------------------------------


def spoil_install(build, directory):
    installed = install.install_shared(build, str(directory))
    install.check_files(installed)
    fields = installed.libdir / "pkgconfig" / "librpma.pc"
    text = fields.read_text(encoding="utf-8")
    fields.write_text(replaced(text, "-lrdmacm", ""), encoding="utf-8")
    count = expect("librpma.pc, a library less",
                   lambda: install.check_package_fields(installed), "Libs")
    fields.write_text(text + "Requires: libibverbs\n", encoding="utf-8")
    count += expect("librpma.pc, a field more",
                    lambda: install.check_package_fields(installed), "Requires")
    fields.write_text(text, encoding="utf-8")

    more = installed.prefix / "include" / "more.h"
    more.touch()
    count += expect("a file more", lambda: install.check_files(installed), "more.h")
    more.unlink()
    link = installed.libdir / "librpma.so"
    link.unlink()
    count += expect("no link", lambda: install.check_files(installed), "librpma.so")
    shutil.copy(installed.libdir / common.SONAME, link)
    return count + expect("a copy for a link", lambda: install.check_files(installed), "no link")


# ---- programs ------------------------------------------------------------------------------


def spoil_bindings():
    right = {"rpma_a": "LIBRPMA_0.10"}
    return (expect("another node", lambda: releases.compare_bindings(
                {"rpma_a": "LIBRPMA_1.0"}, right), "rpma_a@LIBRPMA_0.10") +
            expect("not bound", lambda: releases.compare_bindings({}, right), "nothing") +
            expect("too much", lambda: releases.compare_bindings(
                {**right, "rpma_b": "LIBRPMA_0.10"}, right), "rpma_b"))


def spoil_behaviour(build, fakes, compiler, directory):
    """The library does one thing differently: the program of that release must fail."""
    for number, (release, program, old, new) in enumerate(mutants.MUTANTS):
        where = directory / str(number)
        (where / "program").mkdir(parents=True)
        mutants.make(build, where, old, new, compiler)
        options = types.SimpleNamespace(library=where, fakes=fakes, cc=compiler,
                                        table=common.read_symbols())
        made = releases.Build(release, options, where / "program")
        source = releases.PROGRAMS / f"{program}.c"
        expect(f"{release} {program}: {new}",
               lambda made=made, source=source: releases.run_program(made, source), "status 1")
    return len(mutants.MUTANTS)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, fakes = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    compiler = sys.argv[3] if len(sys.argv) > 3 else "cc"
    with tempfile.TemporaryDirectory(prefix="librpma-abi-") as name:
        root = pathlib.Path(name)

        def step(what, function, *arguments):
            def run():
                (root / what).mkdir()
                return f"{what}: {function(*arguments)} spoiled copies noticed"
            return run

        common.finish("spoiled", [
            step("symbols", spoil_symbols, build / "src" / common.SONAME),
            step("original", spoil_original),
            step("addresses", spoil_addresses, build / "src" / common.SONAME),
            step("dependencies", spoil_dependencies, root / "dependencies"),
            step("header", spoil_header, root / "header"),
            step("interface", spoil_interface, build / "src" / common.SONAME),
            step("table", spoil_table, build / "src" / common.SONAME),
            step("tags", spoil_tags, root / "tags"),
            step("install", spoil_install, build, root / "install"),
            step("bindings", spoil_bindings),
            step("behaviour", spoil_behaviour, build, fakes, compiler, root / "behaviour")])


if __name__ == "__main__":
    main()
