#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks the manual. Run as: check.py all, or one or more names of checks.

Exit status: 0, 1 (one line per fault) or 77 (a tool is missing, so nothing was checked).
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent.parent / folder) for folder in ("contract", "sim/device", "man")]

import generate
import markup
import mdoc
import original
import pitfalls
import site_checks
import sources
import text_checks
import tool_checks
import versions
import waits

SKIPPED = 77
CHECKS = {
    "pages": text_checks.check_pages,
    "topics": text_checks.check_topics,
    "head": text_checks.check_head,
    "synopsis": text_checks.check_synopsis,
    "types": text_checks.check_types,
    "original": original.check_original,
    "waits": waits.check_waits,
    "addresses": waits.check_addresses,
    "codes": waits.check_codes,
    "since": text_checks.check_since,
    "posts": text_checks.check_posts,
    "news": text_checks.check_news,
    "repeated": text_checks.check_repeated,
    "versions": versions.check_versions,
    "guides": text_checks.check_guides,
    "homes": text_checks.check_homes,
    "rules": text_checks.check_rules,
    "references": text_checks.check_references,
    "punctuation": markup.check_punctuation,
    "columns": markup.check_columns,
    "titles": markup.check_titles,
    "sources": sources.check_form,
    "pitfalls": pitfalls.check_pitfalls,
    "mandoc": tool_checks.check_mandoc,
    "displays": tool_checks.check_displays,
    "groff": tool_checks.check_groff,
    "width": tool_checks.check_width,
    "whatis": tool_checks.check_whatis,
    "examples": tool_checks.check_examples,
    "html": site_checks.check_html,
}


class Book:
    """The finished pages, and the files that they are compared with."""

    def __init__(self, source):
        self.source, self.foreign = source, HERE / "foreign-pages.txt"
        self.pages = [mdoc.Page(name, text) for name, text in sorted(generate.pages(source).items())]


def run_check(name, book):
    """Runs one check. Prints its faults or a success, and returns its exit status."""
    try:
        faults = list(CHECKS[name](book))
    except tool_checks.Missing as missing:
        print(f"man {name}: SKIPPED, {missing}: nothing was checked")
        return SKIPPED
    for fault in faults:
        print(f"man {name}: {fault}")
    if not faults:
        print(f"man {name}: {len(book.pages)} pages, no fault")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser(description="check the manual of librpma")
    parser.add_argument("checks", nargs="+", choices=[*CHECKS, "all"], metavar="CHECK",
                        help=f"all, or of: {', '.join(CHECKS)}")
    options = parser.parse_args()
    names = list(CHECKS) if "all" in options.checks else options.checks
    book = Book(HERE.parent.parent)
    results = [run_check(name, book) for name in names]
    if 1 in results:
        return 1
    return SKIPPED if SKIPPED in results else 0


if __name__ == "__main__":
    sys.exit(main())
