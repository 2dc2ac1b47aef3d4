#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# troubleshooting.py -- the lines in docs/troubleshooting.md are those that the library logs
#
#   troubleshooting.py EXECUTABLE docs/troubleshooting.md
#
# EXECUTABLE is unit-failure-lines, which makes a failure happen by its name. The page gives that
# name in a comment before the line; ../troubleshooting_page.py says how it is written.

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True

import troubleshooting_page  # noqa: E402

TAGS = ['*FATAL*', '*ERROR*', '*WARN*', '*NOTE*', '*INFO*', '*DEBUG*']


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
    faults = list(troubleshooting_page.faults_of(text))
    # Lines of libibverbs itself do not come from this library.
    own = [entry for entry in troubleshooting_page.lines_of(text) if entry.line[0] == '*']
    for entry in own:
        lines = logged(executable, entry.name)
        if not entry.is_said(lines):
            faults.append(f'{entry.name}: the page has\n  {entry.line}\nbut logged is\n  ' +
                          '\n  '.join(lines))
    for fault in faults:
        print(f'troubleshooting: {page}: {fault}', file=sys.stderr)
    if faults:
        sys.exit('troubleshooting: write the lines as they are logged, <...> for what differs')
    print(f'troubleshooting: {len(own)} lines are logged as the page says')


main()
