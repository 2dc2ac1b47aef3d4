# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares contract/errors.tsv with the manuals of the original, independent of this manual: none
of their conditions is lost, and no other condition is marked as theirs."""

import re

import errors

STOP_WORDS = {"failed", "of", "or", "the"}


def words(text):
    return set(re.findall(r"\w+", text)) - STOP_WORDS


def key(row):
    """Ignores the text after a semicolon, which describes the consequence."""
    return row["function"], row["code"], row["condition"].split(";")[0]


def compare_original(rows, original):
    """A row contains each documented condition verbatim; otherwise the rows of this function and
    code, with their notes, contain all its words."""
    present, by_code = {key(row) for row in rows}, {}
    for row in rows:
        by_code.setdefault(key(row)[:2], []).append(row)
    for row in original:
        if key(row) in present:
            continue
        texts = [f"{other['condition']} {other['note']}" for other in by_code.get(key(row)[:2], [])]
        lost = words(row["condition"]) - words(" ".join(texts))
        if lost or not texts:
            yield (f"{row['function']} {row['code']} {row['condition']!r} was documented: restore "
                   f"the row, or add a note about {' '.join(sorted(lost)) or 'it'}")
    documented = {key(row) for row in original}
    for row in rows:
        literal = row["decision"] == "never" or row["decision"] == "kept" and not row["note"]
        if literal and key(row) not in documented:
            yield (f"{row['function']} {row['code']} {row['condition']!r} is {row['decision']}, "
                   "but was documented differently or not at all: add a note")
        if row["decision"] == "new" and key(row) in documented:
            yield f"{row['function']} {row['code']} {row['condition']!r} is not new"
        if row["decision"] not in ("kept", "changed", "never", "new"):
            yield f"{row['function']} {row['code']}: there is no decision {row['decision']!r}"


def check_original(book):
    """contract/errors.tsv keeps all conditions that the original's manuals document."""
    yield from compare_original(errors.read_errors(), errors.rows_of("original/errors.tsv"))
