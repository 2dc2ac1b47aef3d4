# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
The entries of rpma_troubleshooting(7), for the tests that provoke them: over the fakes
(unit/properties/lines.py) and on soft-RoCE (integration/harness/page.py).

An entry of the page is one of these:

- A line of a log: a display of one line. The comment before it names the failure, and is
  marked if soft-RoCE cannot cause it: .\\" failure: NAME or .\\" failure: NAME; not on soft-RoCE
- A completion, ".It Dv IBV_WC_STATUS No (NUMBER): OPERATION"; its text has "not on soft-RoCE".
- A subsection after DESCRIPTION without either, named by its heading.
"""

import os
import re

PAGE = 'man/rpma_troubleshooting.7'
ELSEWHERE = 'not on soft-RoCE'
DISPLAY = re.compile(r'^\.Bd -ragged -offset indent\n(.+)\n\.Ed$', re.MULTILINE)
FAILURE = re.compile(r'^\.\\" failure: (.+?)(; ' + ELSEWHERE + r')?\n' + DISPLAY.pattern[1:], re.MULTILINE)
COMPLETION = re.compile(r'^\.It Dv IBV_WC_(\w+) No \((\d+)[^)]*\): (.+)\n((?:(?!\.It |\.El).*\n)+)', re.MULTILINE)
REASON = re.compile(r'^\.It (\d+|others), (.+)\n(.+)$', re.MULTILINE)
SECTION = re.compile(r'^\.Ss ([^\n]+)\n(.*?)(?=^\.S[sh] |\Z)', re.MULTILINE | re.DOTALL)


def text_of(root):
    """The page, with plain characters for the escapes of roff."""
    with open(os.path.join(root, PAGE), encoding='utf-8') as file:
        return file.read().replace(r'\(aq', "'").replace(r'\(dq', '"').replace(r'\e', '\\')


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
    """The list of reject reasons: a dictionary, number or "others" -> (text, remedy)."""
    return {reason: (meaning, remedy) for reason, meaning, remedy in REASON.findall(text)}


def faults_of(text):
    """Yields defects of the page that would hide entries from the tests."""
    entries = lines_of(text)
    named = {entry.line for entry in entries}
    for line in DISPLAY.findall(text):
        if line not in named:
            yield f'no comment names the failure of this line:\n  {line}'
    if len(entries) < text.count('.\\" failure:') or not entries:
        yield 'a comment that names a failure has no line after it'
    rows = re.findall(r'^\.It Dv IBV_WC_', text, re.MULTILINE)
    if len(COMPLETION.findall(text)) < len(rows) or not rows:
        yield 'a completion is not ".It Dv STATUS No (NUMBER): OPERATION"'
    if len(entries_of(text)) < len(entries) + len(rows):
        yield 'two entries have one name'
