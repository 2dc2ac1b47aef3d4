# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""rpma_pitfalls(7) shows exactly the lines of its programs, which a test runs."""

import re

PAGE, PROGRAMS = "rpma_pitfalls.7", "tests/durability/pitfalls"


def shown_lines(page):
    """{(number, "Wrong" or "Right"): the lines of code} and the numbers of the headings."""
    found, numbers, form = {}, [], None
    for line in page.section("DESCRIPTION"):
        if line.macro == "Ss":
            numbers.append(int(line.args[0].rstrip(".")))
        elif not line.macro and (label := re.match(r"(Wrong|Right)\b.*:$", line.raw)):
            form = label[1]
        elif line.macro == "Dl" and line.args[0] != "$":
            code = line.raw.removeprefix(".Dl ").replace(r"\&", "").replace(r"\(dq", '"')
            found.setdefault((numbers[-1], form), []).append(code)
    return found, numbers


def program_lines(folder):
    """{(number, form): the lines of code} of the programs: "// N." begins an entry, "if (wrong)" or
    "if (!wrong)" a form, which has the lines with a deeper indentation."""
    found = {}
    for path in sorted(folder.glob("*.c")):
        entry = form = depth = None
        for line in path.read_text(encoding="utf-8").splitlines():
            indentation = len(line) - len(line.lstrip())
            if begin := re.search(r"// (\d+)\.", line):
                entry = int(begin[1])
            if branch := re.match(r" *if \((!?)wrong\)", line):
                form, depth = ("Right" if branch[1] else "Wrong"), indentation
            elif form and indentation == depth and re.match(r" *(\} )?else\b", line):
                form = "Right"
            elif form and indentation > depth:
                found.setdefault((entry, form), []).append(line.strip())
            else:
                form = None
    return found


def check_pitfalls(book):
    """Each entry shows the source of its programs, line by line."""
    shown, numbers = shown_lines(next(page for page in book.pages if page.name == PAGE))
    programs = program_lines(book.source / PROGRAMS)
    if numbers != list(range(1, 11)):
        yield f"man/{PAGE} must have the entries 1 to 10, in order"
    for key in sorted(shown.keys() | programs.keys()):
        if shown.get(key) != programs.get(key):
            yield (f"man/{PAGE}: entry {key[0]}, {key[1]}: the page shows {shown.get(key)}, "
                   f"{PROGRAMS} has {programs.get(key)}")
