# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The errors of each function."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def rows_of(name):
    """The rows of a table, repeated for each of their functions."""
    with open(HERE / name, encoding="utf-8", newline="") as table:
        return [{**row, "function": function}
                for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE) for function in row["functions"].split()]


def read_errors():
    """The rows of errors.tsv; empty words are those of the first row with the same condition."""
    rows, first = rows_of("errors.tsv"), {}
    for row in rows:
        row["words"] = row["words"] or first.get(row["condition"], "")
        first.setdefault(row["condition"], row["words"])
    return rows
