# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The errors of each function."""

import csv
import pathlib

TABLE = pathlib.Path(__file__).resolve().parent / "errors.tsv"


def read_errors():
    """A row for each function of each row of errors.tsv, with its words."""
    first, rows = {}, []
    with open(TABLE, encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE):
            row["words"] = row["words"] or first.get(row["condition"], "")
            first.setdefault(row["condition"], row["words"])
            rows += [{**row, "function": name} for name in row.pop("functions").split()]
    return rows
