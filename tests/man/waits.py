# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Compares what the pages say of waits with contract/errors.tsv: a function waits if one of its errors is that
nothing can be read from a non-blocking descriptor."""

import re

import contract

READS_NOTHING = "errno in {EAGAIN"
BLOCKS = re.compile(r"(\w+)(?:\(\)| function) blocks (?:until|without a time limit)")


def waiting(source):
    """{function: (its code when there is nothing, whether a signal gives that code too)}"""
    return {name: (row["code"], "EINTR" in row["condition"])
            for name, rows in contract.documented_errors(source).items()
            for row in rows if READS_NOTHING in row["condition"]}


def items(lines):
    """(names of functions, text) of each entry of a list."""
    found = []
    for line in lines:
        if line.macro == "It":
            parts = [line.macro, *line.args]
            found.append(({name for macro, name in zip(parts, parts[1:]) if macro == "Xr"}, []))
        elif found:
            found[-1][1].append(line.text())
    return [(names, " ".join(text)) for names, text in found]


def entry(page, part, phrase):
    """The functions of the entry that has the phrase."""
    return set().union(*(names for names, text in items(page.part(part)) if phrase in text))


def check_waits(book):
    """The functions that block, and their codes, are those of the table."""
    functions = waiting(book.source)
    current = functions.keys() - contract.deprecated(book.source)
    pages = {page.name: page for page in book.pages}
    overview, limits = pages["librpma.7"], pages["rpma_limits.7"]
    rows = [line.args for line in overview.part("Blocking and non-blocking use") if line.args[:1] == ["Xr"]
            and "Ta" in line.args]
    if {row[1]: f"RPMA_E_{row[-1]}" for row in rows} != {name: functions[name][0] for name in current}:
        yield f"man/librpma.7: the table of functions that block is not that of contract/errors.tsv: {sorted(current)}"
    signalled = {name for name in current if functions[name][1]}
    for part, phrase, wanted in (("Time", "Wait without a limit", current),
                                 ("What signals do", "RPMA_E_NO_COMPLETION", signalled),
                                 ("What signals do", "RPMA_E_PROVIDER , and errno is EINTR . The log says", current - signalled)):
        if (found := entry(limits, part, phrase)) != wanted:
            yield f"man/rpma_limits.7: {part}: {phrase!r}: {sorted(found ^ wanted)}"
    said = set()
    for page in book.pages:
        text = " ".join(line.text() for line in page.section("ATTRIBUTES"))
        said |= {page.names()[0] if name == "The" else name for name in BLOCKS.findall(text)}
    for name in sorted(said ^ functions.keys()):
        yield f"ATTRIBUTES of {name}: whether it blocks is not what contract/errors.tsv says"
