# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Reads what makes a call fail: out of a condition of contract/errors.tsv, and out of the words
of a manual page. Both give a set of facts, in the words of the table; the sets must be equal.

wordings.tsv holds both languages: a text of a condition, {a} for any name in it, and a regular
expression for the words of the page, which "//" parts from what RETURN VALUES says. Provider calls, "== NULL" and what is in GLUE need no row.
"""

import functools
import pathlib
import re

import contract

HERE = pathlib.Path(__file__).resolve().parent
NAME = r"[*\w]+"
CALL = re.compile(r"\b(?:(?:ibv|rdma)_\w+|getaddrinfo)\(\)")
NULL = re.compile(rf"({NAME}) == NULL")
NULL_WORDS = re.compile(rf"((?:{NAME}, )*(?:{NAME} or )?{NAME}) is NULL")
# Words between facts, without a meaning of their own.
GLUE = re.compile(r" \|\| |, | or |; |failed| ")


@functools.cache
def wordings():
    """(text of the table as an expression, expression for the page), longest text first."""
    rows = sorted(contract.read_table(HERE / "wordings.tsv"), key=lambda row: -len(row["condition"]))
    return [(row["condition"],
             re.compile(re.escape(row["condition"]).replace(r"\{a\}", r"(?P<a>\w+)")),
             re.compile(row["page"].replace("{a}", r"(?P<a>\w+)"))) for row in rows]


def fact(text, match):
    """The text of the table with the found name in the place of {a}."""
    return text.replace("{a}", match.groupdict().get("a") or "")


@functools.cache
def facts_of_condition(condition):
    """(facts, first text that no row explains) of a row, read from left to right."""
    found, at = set(), 0
    while at < len(condition):
        for text, expression, _ in wordings():
            match = expression.match(condition, at)
            if match:
                found.add(fact(text, match))
                break
        else:
            match = NULL.match(condition, at) or CALL.match(condition, at)
            if match:
                found.add(match.group())
            else:
                match = GLUE.match(condition, at)
        if not match:
            return found, condition[at:]
        at = match.end()
    return found, ""


@functools.cache
def facts_of_words(words, effect=""):
    """The facts in the words of a page: ERRORS, and RETURN VALUES about that failure."""
    found, whole = set(), f"{words} // {effect}"
    rest = whole
    for text, _, expression in sorted(wordings(), key=lambda row: "{a}" in row[0]):
        for match in expression.finditer(rest if "{a}" in text else whole):
            found.add(fact(text, match))
            rest = rest[:match.start()] + "|" * len(match.group()) + rest[match.end():]
    rest = rest[:len(words)]
    found |= set(CALL.findall(rest))
    for match in NULL_WORDS.finditer(rest):
        found |= {f"{name} == NULL" for name in re.split(r", | or ", match.group(1))}
    return found


def facts_of_rows(rows):
    """{code: facts} of the rows of one function; and the text that could not be read."""
    facts, unread = {}, []
    for row in rows:
        found, rest = facts_of_condition(row["condition"])
        facts.setdefault(row["code"], set()).update(found)
        if rest:
            unread.append(f"{row['code']} {row['condition']!r}: tests/man/wordings.tsv has no "
                          f"words for {rest!r}")
    return facts, unread


def differences(rows, entries, effects):
    """Yields a line per difference between the rows of one function and its page's entries and
    effects."""
    table, unread = facts_of_rows(rows)
    yield from unread
    for code in sorted(table.keys() - entries.keys()):
        yield f"ERRORS lacks {code}"
    for code in sorted(entries.keys() - table.keys()):
        yield f"ERRORS has {code}, contract/errors.tsv has not"
    for code in sorted(table.keys() & entries.keys()):
        page = facts_of_words(entries[code], effects.get(code, ""))
        for each in sorted(table[code] - page):
            yield f"{code}: the page does not say {each!r}, contract/errors.tsv does"
        for each in sorted(page - table[code]):
            yield f"{code}: the page says {each!r}, contract/errors.tsv does not"
