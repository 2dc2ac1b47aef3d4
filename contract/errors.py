# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The errors of each function."""

import csv
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def read_errors():
    """A row for each function of each row of errors.tsv, with its words."""
    with open(HERE / "errors.tsv", encoding="utf-8", newline="") as table:
        rows = [{**row, "function": function}
                for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE) for function in row["functions"].split()]
    first = {}
    for row in rows:
        row["words"] = row["words"] or first.get(row["condition"], "")
        first.setdefault(row["condition"], row["words"])
    return rows
