#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Spoils each row of contract/errors.tsv in every way that one can think of: it is lost, has
another code or decision, or one word, sign or part of its condition is another or missing. The
checks of the table against the manual and the original's manuals must notice each."""

import re
import sys

sys.dont_write_bytecode = True

import check
import conditions
import contract
import original
import text_checks

SIGNS = {"==": "!=", "!=": "==", "<": ">", ">": "<", ">=": "<", "||": "&&", "&&": "||", "%": "/"}


def other_word(word):
    if word.isdigit():
        return str(int(word) + 1)
    return {"NULL": "0", "EAGAIN": "EBUSY"}.get(word, word[:-1] or "x")


def other_conditions(text):
    """Yields the condition with one part changed, or missing."""
    for match in re.finditer(r"\w+", text):
        yield text[:match.start()] + other_word(match.group()) + text[match.end():]
    for match in re.finditer(r"(?<= )(?:==|!=|<|>|>=|\|\||&&|%)(?= )", text):
        yield text[:match.start()] + SIGNS[match.group()] + text[match.end():]
    for separator in (" || ", " && ", "; ", ", ", " or "):
        parts = text.split(separator)
        for at in range(len(parts) if len(parts) > 1 else 0):
            yield separator.join(parts[:at] + parts[at + 1:])


def spoiled(row, codes):
    """(the fault, the rows in the place of this one)."""
    yield "the row is lost", []
    for code in codes - {row["code"]}:
        yield f"code {code}", [{**row, "code": code}]
    for condition in other_conditions(row["condition"]):
        yield f"condition {condition!r}", [{**row, "condition": condition}]
    yield "another decision", [{**row, "decision": "kept" if row["decision"] == "never"
                                else "never"}]
    if row["decision"] == "new" or (row["decision"] == "kept" and not row["note"]):
        other = "kept" if row["decision"] == "new" else "new"
        yield f"decision {other}", [{**row, "decision": other}]


def noticing(book):
    """A function that says whether the two checks notice these rows of a function."""
    documented = contract.read_table(book.source / "contract/original/errors.tsv")
    pages = {name: (entries, page.error_effects(name)) for page in text_checks.functions_pages(book)
             for name, entries in page.errors().items()}

    def notice(name, rows):
        happen = [row for row in rows if row["decision"] != "never"]
        return (any(conditions.differences(happen, *pages.get(name, ({}, {})))) or any(
            original.compare_original(rows, [row for row in documented if row["function"] == name])))
    return notice


def main():
    book = check.Book(check.HERE.parent.parent)
    notice, by_function = noticing(book), {}
    for row in contract.read_table(book.source / "contract/errors.tsv"):
        by_function.setdefault(row["function"], []).append(row)
    codes = {row["code"] for rows in by_function.values() for row in rows}
    tried = missed = 0
    for name, rows in by_function.items():
        if notice(name, rows):
            sys.exit(f"{name} has faults before it is spoiled: see check.py errors original")
        for at, row in enumerate(rows):
            rest = rows[:at] + rows[at + 1:]
            cause, _, effect = row["condition"].partition("; ")
            # A page says once per code what happens besides, so that one row alone may lose it.
            shared = effect and any(other["code"] == row["code"] and other["condition"].endswith(effect) for other in rest)
            for what, instead in spoiled(row, codes):
                if shared and instead and instead[0]["condition"] == cause:
                    continue
                tried += 1
                if not notice(name, instead + rest):
                    missed += 1
                    print(f"NOT NOTICED: {name} {row['code']} {row['condition']!r}: {what}")
    print(f"{sum(map(len, by_function.values()))} rows, {tried} spoiled tables, {missed} not noticed")
    if missed:
        sys.exit("let wordings.tsv or contract/original/errors.tsv pin what is named above")


if __name__ == "__main__":
    main()
