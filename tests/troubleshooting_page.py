# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
The entries of docs/troubleshooting.md, for the tests that provoke them: over the fakes
(unit/properties/lines.py) and on soft-RoCE (integration/harness/page.py).

An entry of the page is one of these:

- A line of a log: a code block of one line. The comment before it names the failure, and is
  marked if soft-RoCE cannot cause it: <!-- failure: NAME --> or <!-- failure: NAME; not on soft-RoCE -->
- A row of the table of completions, "STATUS: OPERATION"; its last cell has "not on soft-RoCE".
- A section without either, named by its heading.
"""

import re

ELSEWHERE = 'not on soft-RoCE'
BLOCK = re.compile(r'^```\n((?:\*[A-Z]+\*|libibverbs: )[^\n]*)\n```$', re.MULTILINE)
FAILURE = re.compile(r'^<!-- failure: (.+?)(; ' + ELSEWHERE + r')? -->\n' + BLOCK.pattern[1:],
                     re.MULTILINE)
COMPLETION = re.compile(r'^\| `IBV_WC_(\w+)` \((\d+)\)[^|]*\| ([^|]+) \| ([^|]+) \|$', re.MULTILINE)
REASON = re.compile(r'^\| (\d+|others) \| ([^|]+) \| ([^|]+) \|$', re.MULTILINE)
SECTION = re.compile(r'^### ([^\n]+)\n(.*?)(?=^##|\Z)', re.MULTILINE | re.DOTALL)


class Entry:
    def __init__(self, name, elsewhere, line=None, status=None):
        self.name, self.elsewhere = name, elsewhere
        self.line, self.status = line, status

    def is_in(self, lines):
        """True if one of these lines matches the entry."""
        return any(re.fullmatch(expression(self.line), line) for line in lines)


def expression(line):
    """The regular expression of a line of the page. "<number>" matches a number, any other "<...>" a short text."""
    parts = re.split(r'(<[^<>]+>)', line)
    return ''.join(r'(?:0x[0-9a-f]+|\d+)' if part == '<number>' else
                   r'[^;]+?' if part.startswith('<') else
                   re.escape(part) for part in parts)


def lines_of(text):
    return [Entry(name, bool(elsewhere), line=line)
            for name, elsewhere, line in FAILURE.findall(text)]


def entries_of(text):
    """All entries of the page, by name."""
    entries = lines_of(text)
    entries += [Entry(f'{status}: {operation}', ELSEWHERE in cause, status=int(number))
                for status, number, operation, cause in COMPLETION.findall(text)]
    entries += [Entry(heading, False) for heading, body in SECTION.findall(text)
                if not FAILURE.search(body)]
    return {entry.name: entry for entry in entries}


def reasons_of(text):
    """The rows of the table of reject reasons: a dictionary, number or "others" -> (text, remedy)."""
    return {reason: (meaning, remedy) for reason, meaning, remedy in REASON.findall(text)}


def faults_of(text):
    """Yields defects of the page that would hide entries from the tests."""
    entries = lines_of(text)
    named = {entry.line for entry in entries}
    for line in BLOCK.findall(text):
        if line not in named:
            yield f'no comment names the failure of this line:\n  {line}'
    if len(entries) < text.count('<!-- failure:') or not entries:
        yield 'a comment that names a failure has no line after it'
    rows = re.findall(r'^\| `IBV_WC_', text, re.MULTILINE)
    if len(COMPLETION.findall(text)) < len(rows) or not rows:
        yield 'a row of the table of completions is not "| `STATUS` (number) | operation | cause |"'
    if len(entries_of(text)) < len(entries) + len(rows):
        yield 'two entries have one name'
