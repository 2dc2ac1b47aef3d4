#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# troubleshooting.py -- the lines in docs/troubleshooting.md are those that the library logs
#
#   troubleshooting.py EXECUTABLE docs/troubleshooting.md
#
# EXECUTABLE is unit-failure-lines, which makes a failure happen by its name. On the page the name
# stands in a comment before the line; <...> in the line stands for what differs.

import os
import re
import subprocess
import sys

TAGS = ['*FATAL*', '*ERROR*', '*WARN*', '*NOTE*', '*INFO*', '*DEBUG*']
BLOCK = re.compile(r'^```\n(\*[A-Z]+\*[^\n]*)\n```$', re.MULTILINE)
NAMED = re.compile(r'^<!-- failure: (.+) -->\n' + BLOCK.pattern[1:], re.MULTILINE)


def expression(line):
    """What a line of the page stands for; "<number>" is one, any other "<...>" a short text."""
    parts = re.split(r'(<[^<>]+>)', line)
    return ''.join(r'(?:0x[0-9a-f]+|\d+)' if part == '<number>' else
                   r'[^;]+?' if part.startswith('<') else
                   re.escape(part) for part in parts)


def logged(executable, name):
    """The lines of a failure, as the page writes them."""
    environment = {key: value for key, value in os.environ.items() if key != 'RPMA_LOG'}
    ran = subprocess.run([executable, name], capture_output=True, text=True, timeout=60,
                         errors='replace', env=environment, check=False)
    rows = [row.split('\t') for row in ran.stdout.splitlines() if row.startswith('line\t')]
    if ran.returncode != 0 or not rows:
        sys.exit(f'troubleshooting: {executable} does not make this failure: {name}\n'
                 f'{ran.stdout}{ran.stderr}')
    return [f'{TAGS[int(level)]} {function}: {message}' for _, level, function, message in rows]


def main():
    if len(sys.argv) != 3:
        sys.exit('usage: troubleshooting.py EXECUTABLE docs/troubleshooting.md')
    executable, page = sys.argv[1:]
    with open(page, encoding='utf-8') as file:
        text = file.read()
    named, faults = NAMED.findall(text), []
    for line in BLOCK.findall(text):
        if line not in [claimed for _, claimed in named]:
            faults.append(f'no comment says which failure gives this line:\n  {line}')
    for name, line in named:
        lines = logged(executable, name)
        if not any(re.fullmatch(expression(line), other) for other in lines):
            faults.append(f'{name}: the page has\n  {line}\nbut logged is\n  ' +
                          '\n  '.join(lines))
    if len(named) < text.count('<!-- failure:') or not named:
        faults.append('a comment that names a failure has no line behind it')
    for fault in faults:
        print(f'troubleshooting: {page}: {fault}', file=sys.stderr)
    if faults:
        sys.exit('troubleshooting: write the lines as they are logged, <...> for what differs')
    print(f'troubleshooting: {len(named)} lines are logged as the page says')


main()
