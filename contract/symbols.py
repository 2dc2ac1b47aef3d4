# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The exported symbols: of the original's releases (original/symbols.tsv), of later releases (symbols.tsv), and of the
next release, which are the other functions of the header."""

import csv
import pathlib
import re

import public_header

HERE = pathlib.Path(__file__).resolve().parent
# The only name with two functions: a completion has 24 bytes in programs of 0.9.0, 32 in later ones.
TWO_FUNCTIONS, OLD_NODE, OLD_FUNCTION = "rpma_conn_completion_get", "LIBRPMA_1.0", "rpma_conn_completion_get_0_9"
NEW_NODE = "LIBRPMA_0.10"


def read_table(name):
    with open(HERE / name, encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table, delimiter="\t"))


def version(release):
    return tuple(map(int, release.split(".")))


def node_of(release):
    """The version node of a release of the original: 0.9.0 has the same node as 1.0.0 and later releases."""
    return OLD_NODE if version(release)[:2] == (0, 9) or version(release) >= (1,) else f"LIBRPMA_{release[:-2]}"


def original_releases():
    return sorted({release for row in read_table("original/symbols.tsv") for release in row["releases"].split()}, key=version)


def newest_release():
    """The first release in NEWS.md, which may be the next one."""
    return re.search(r"^## (\d+\.\d+\.\d+)$", (HERE.parent / "NEWS.md").read_text(encoding="utf-8"), flags=re.M)[1]


def read_later():
    """The rows of symbols.tsv, and those that it lacks until the next release."""
    rows = read_table("symbols.tsv")
    listed = {row["symbol"] for row in rows + read_table("original/symbols.tsv")}
    node = "LIBRPMA_" + newest_release().rpartition(".")[0]
    return rows + [{"symbol": name, "node": node} for name in public_header.prototypes() if name not in listed]


def read_symbols():
    """A row for each symbol at each node: its releases, whether new programs link to it, its function."""
    releases, newest = {}, {}
    for row in read_table("original/symbols.tsv"):
        for release in row["releases"].split():
            releases.setdefault((row["symbol"], node_of(release)), set()).add(release)
    for row in read_later():
        releases[row["symbol"], row["node"]] = {row["node"].removeprefix("LIBRPMA_") + ".0"}
    for symbol, node in releases:
        newest[symbol] = max(newest.get(symbol, node), node, key=lambda each: version(each.removeprefix("LIBRPMA_")))
    newest[TWO_FUNCTIONS] = NEW_NODE
    return [{"symbol": symbol, "node": node, "default": newest[symbol] == node,
             "releases": sorted(its, key=version),
             "implementation": OLD_FUNCTION if (symbol, node) == (TWO_FUNCTIONS, OLD_NODE) else symbol}
            for (symbol, node), its in sorted(releases.items())]


def first_releases():
    """{function: its first release}"""
    found = {}
    for row in read_symbols():
        found[row["symbol"]] = min(found.get(row["symbol"], row["releases"][0]), row["releases"][0], key=version)
    return found
