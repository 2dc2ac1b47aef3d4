# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The texts that the manual must agree with: the header, the exported symbols, the table of errors."""

import csv
import re

import errors
import symbols


def read_table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def exported_functions(source):
    """Names of all exported functions, including those of old releases."""
    return sorted({row["symbol"] for row in symbols.read_symbols()})


def programs(source):
    """Names of the programs that are installed with the library."""
    texts = [path.read_text(encoding="utf-8") for path in [*source.glob("programs/*/meson.build"), source / "sim/meson.build"]]
    return sorted(re.findall(r"(?:executable|install_data)\('((?:rpma|rdma)-[\w-]+)'", "".join(texts)))


def documented_errors():
    """The rows of each function with an error that can happen."""
    rows = {}
    for row in errors.read_errors():
        if row["decision"] != "never":
            rows.setdefault(row["function"], []).append(row)
    return rows


def first_releases(source):
    """{function, macro or enumerator: its first release}, as numbers."""
    found = symbols.first_releases()
    found.update((row["member"] or row["name"], row["first_release"]) for row in read_table(source / "contract/types.tsv"))
    return {name: symbols.version(release) for name, release in found.items()}


def normalise(text):
    """One spelling per type: spaces only between words."""
    text = " ".join(text.split())
    return re.sub(r" ?([*\[\](),{};=]) ?", r"\1", text)


def header(source):
    """The header without comments."""
    text = (source / "include/librpma.h").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def types(source):
    """{name: text} of the types that a page must show, as in SYNOPSIS, normalised. Enumerators have
    the values of contract/types.tsv."""
    text, values = header(source), {}
    for row in read_table(source / "contract/types.tsv"):
        if row["kind"] == "enumerator":
            values.setdefault(row["name"], []).append(f"{row['member']} = {row['value']}")
    found = {f"enum {name}": normalise(f"enum {name} {{{', '.join(members)}}};")
             for name, members in values.items()}
    for name, body in re.findall(r"^(struct rpma_\w+) (\{[^}]*\};)", text, flags=re.M):
        found[name] = normalise(f"{name} {body}")
    for whole, name in re.findall(r"^(typedef [^;]*?\b(rpma_\w+)\([^;]*\);)", text, flags=re.M):
        found[name] = normalise(whole)
    return found


def macros(source):
    """The macros of the header, as it defines them."""
    return {" ".join(line.split()) for line in re.findall(r"^#define .*[^\\\n]$", header(source),
                                                           flags=re.M)}


def deprecated(source):
    """The functions that the header marks as deprecated."""
    return set(re.findall(r"\b(rpma_\w+)\([^()]*\)\s*LIBRPMA_DEPRECATED", header(source)))
