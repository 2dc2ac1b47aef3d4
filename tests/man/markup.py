# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks macros that mandoc and groff format without a warning, but differently from what the source shows."""

import re

CLOSING = set(".,:;)]?!")
QUOTES = ("Ql", "Dq", "Sq", "Qq")
MACROS = {"Sy", "Em", "Dv", "Er", "Va", "Vt", "Ev", "Pa", "Cm", "Ar", "Li", "Fa", "Nm", "No", "Ns"}
AROUND = {"Fn": ("", "()"), "Ql": ("'", "'"), "Dq": ('"', '"'), "Pq": ("(", ")"), "Fl": ("-", "")}


def check_punctuation(book):
    """mdoc moves punctuation at the end of a display out of it, and a quotation continues after punctuation."""
    for page in book.pages:
        for line in page.lines:
            words = line.raw[1:].split() if line.macro else []
            where = f"man/{page.name}:{line.number}"
            if line.macro in ("Dl", "D1") and words[-1] in CLOSING:
                yield f"{where}: the last word is printed without the space before it: write \\&{words[-1]}"
            quote = min((words.index(each) for each in QUOTES if each in words), default=len(words))
            inner = [at for at, word in enumerate(words) if at > quote + 1 and word in CLOSING]
            if inner and any(word not in CLOSING for word in words[inner[0]:]):
                yield f"{where}: the text after {words[inner[0]]!r} is inside the quotation: begin a new line"


def shown(words):
    """The displayed text of a cell."""
    text, after = [], ""
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("Xr", "Fn", "Ql", "Fl") and words:
            before, end = AROUND.get(word, ("", ""))
            text.append(before + words.pop(0) + (f"({words.pop(0)})" if word == "Xr" and words else end))
        elif word in AROUND:
            text.append(AROUND[word][0])
            after = AROUND[word][1] + after
        elif word in CLOSING and text:
            text[-1] += word
        elif word not in MACROS:
            text.append(word)
    return " ".join(text).replace("( ", "(") + after


def tables(page):
    """(line, widths, rows of cells) of each table; a cell may continue on the next lines."""
    table = None
    for line in page.lines:
        if line.macro == "Bl" and "-column" in line.args:
            table = line, line.args[line.args.index("-column") + 1:], []
        elif line.macro == "El" and table:
            yield table
            table = None
        elif table and line.macro == "It":
            cells = [[]]
            for word in line.args:
                cells.append([]) if word == "Ta" else cells[-1].append(word)
            table[2].append(cells)
        elif table and line.macro != "Pp":
            words = ([line.macro, *line.args] if line.macro else line.text().split())
            for word in words:
                table[2][-1].append([]) if word == "Ta" else table[2][-1][-1].append(word)


def check_columns(book):
    """Each cell but the last of a row fits the width of its column. From six columns on, the gap is a single space."""
    for page in book.pages:
        for line, widths, rows in tables(page):
            gap = 1 if len(widths) > 5 else 0
            for column, width in enumerate(widths):
                cells = [shown(row[column]) for row in rows if column < len(row) - 1]
                widest = max(cells, key=len, default="")
                if len(widest) + gap > len(width):
                    yield f"man/{page.name}:{line.number}: column {column + 1}: {widest!r} needs {len(widest) + gap} " \
                          f"characters, the width has {len(width)}"


def check_titles(book):
    """rpma_functions(7), whose entries are made of titles of subsections, keeps the capitals of abbreviations."""
    for page in book.pages:
        if page.name == "rpma_functions.7":
            for line in page.lines:
                if not line.macro and re.match(r"[a-z][A-Z]", line.raw):
                    yield f"man/{page.name}: {line.raw!r} begins with an abbreviation without its first capital"
