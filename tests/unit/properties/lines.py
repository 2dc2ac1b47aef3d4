#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# lines.py UNIT-SCRIPT SOURCE_ROOT -- compares the log lines and results of this library with two tables
#
# script.c explains the steps of both tables. failure_lines.tsv has a row for each failure: the level of the
# log line, the line, the cause of a row of the contract (for exercised.py), and whether
# rpma_troubleshooting(7) explains the line. The columns "lacks" and "why" are a record: the content of the
# line of the original 1.3.0 that is missing in this one, and the reason.
#
# decisions.tsv has the results of each id of NEWS.md: of this library ("*" matches any text), and of the
# releases 1.2.0 and 1.3.0 of the original ("unseen: why": the steps do not show the difference).

import errno
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, *folders) for folders in (['..', '..'], ['..', '..', '..', 'contract'])]

import troubleshooting_page  # noqa: E402
from errors import read_errors  # noqa: E402

LEVELS = ['fatal', 'error', 'warning', 'notice', 'info', 'debug']
WARNING, DEBUG = (LEVELS.index(name) for name in ('warning', 'debug'))
TAGS = {'error': '*ERROR*', 'warning': '*WARN*', 'notice': '*NOTE*', 'info': '*INFO*',
        'debug': '*DEBUG*'}
KEYS = ('rkey', 'lkey')
WORD = r'0x[0-9a-fA-F]+|\d+'


def end(status, message):
    print(f'lines: {message}', file=sys.stderr)
    sys.exit(status)


def read_table(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        head, *rows = [line.rstrip('\n').split('\t') for line in file if line[0] != '#']
    return [dict(zip(head, row, strict=True)) for row in rows]


class Seen:
    """The results of one line of steps."""

    def __init__(self, steps, block):
        self.steps, self.block = steps, block
        self.lines, self.shown, self.values = [], {}, {}
        for row in block:
            kind, *words = row.split('\t')
            if kind == 'line':
                self.lines.append((int(words[0]), words[1]))
            elif kind in ('memory', 'posted') + KEYS:
                self.values[kind] = int(words[0], 0)
            elif words:
                self.shown[kind] = '\t'.join(words)
        self.lines = [(level, self.named(text)) for level, text in self.lines]
        self.shown['line'] = self.logged_line()[1]
        self.shown['log'] = ' / '.join(text for _, text in self.lines)
        self.shown['warnings'] = str(sum(level == WARNING for level, _ in self.lines))

    def named(self, text):
        """Replace addresses, also truncated ones, by names: they differ in each run."""
        def name(match):
            value = int(match[0], 0)
            for base, size in (('memory', 4096), ('posted', 1)):
                start = self.values.get(base)
                if start is not None and value > 1 << 20:
                    for mask in ((1 << 64) - 1, (1 << 32) - 1):
                        if 0 <= value - (start & mask) < size:
                            return f'{base}+{value - (start & mask)}'
            return match[0]
        return re.sub(r'0x[0-9a-f]+', name, text)

    def logged_line(self):
        """Return level and text of the most severe lines of the failure."""
        level = min((line[0] for line in self.lines), default=None)
        return level, ' / '.join(text for at, text in self.lines if at == level)


def take(executable, every):
    """Execute the lines of steps, and return the results of each."""
    environment = dict(os.environ)
    environment.pop('RPMA_LOG', None)
    ran = subprocess.run([executable], input='\n'.join(every), capture_output=True, text=True,
                         errors='replace', env=environment)
    blocks = re.findall(r'(.*?)^(end\t[^\n]*)$', ran.stdout, re.MULTILINE | re.DOTALL)
    if ran.returncode or len(blocks) != len(every):
        end(1, f'{executable} ends early: {ran.stdout}{ran.stderr}')
    seen = [Seen(steps, [*text.splitlines(), last])
            for steps, (text, last) in zip(every, blocks, strict=True)]
    for one in seen:
        if 'memory' not in one.values:
            end(1, f'this library did not execute: {one.steps}\n' + '\n'.join(one.block))
    return seen


# ---- the lines of failures -----------------------------------------------------------------------

def faults_of(ours, row):
    """Return the faults of the logged lines, as predicates of sentences."""
    level, text = ours.logged_line()
    wanted = LEVELS.index(row['level'])
    if level != wanted:
        yield f'is logged as {LEVELS[level] if level else "nothing"}, not as {row["level"]}'
    if wanted <= WARNING and sum(line[0] <= WARNING for line in ours.lines) != 1:
        yield 'has more than one line of a failure'
    if text != row['line']:
        yield f'is not "{row["line"]}"'
    for at, line in ours.lines:
        if at < DEBUG and (re.search('key', line) or
                           ours.values['rkey'] in numbers(line) - {0}):
            yield f'contains a key: {line}'


def faults_of_cause(ours, row, contract, notes):
    """Check the failure against the row of the contract for its cause, and note the row."""
    if row['cause'] == '-':
        return
    key = row['line'].split(':')[0], ours.shown['code']
    conditions = [line['condition'] for line in contract
                  if (line['function'], line['code']) == key and row['cause'] in line['condition']]
    number = re.search(r' failed: .* \((\d+)\)', row['line'])
    error = errno.errorcode[int(number[1])] if number else ''
    if len(conditions) != 1:
        yield f'is {len(conditions)} rows of contract/errors.tsv: {" ".join(key)}'
    if ours.shown['outputs'] != 'untouched':
        yield 'writes outputs'
    if error not in ('', ours.shown['errno']):
        yield f'leaves errno = {ours.shown["errno"]}'
    notes += ['\t'.join([*key, condition, row['cause'], error]) for condition in conditions]


def faults_unread(unread, logged):
    """Check that a line that is not logged is not formatted, and that the call fails in the same way."""
    for result in ('code', 'errno'):
        if unread.shown[result] != logged.shown[result]:
            yield f'has {result} {unread.shown[result]} with the log off'
    if unread.shown['texts'] != '0':
        yield 'formats a text, although the line is not logged'


def faults_of_page(page, table):
    """Return the differences between the page and the table, as sentences."""
    yield from troubleshooting_page.faults_of(page)
    # The library does not log the lines of libibverbs.
    entries = {entry.name: entry for entry in troubleshooting_page.lines_of(page)
               if entry.line[0] == '*'}
    explained = {row['failure']: f'{TAGS[row["level"]]} {row["line"]}'
                 for row in table if row['page'] == 'yes'}
    for name in sorted(set(explained) ^ set(entries)):
        yield f'only the {"table" if name in explained else "page"} has {name}'
    for name in sorted(set(explained) & set(entries)):
        if not entries[name].is_in([explained[name]]):
            yield f'{name}: the page has\n  {entries[name].line}\nfor\n  {explained[name]}'


def faults_of_reasons(executable, page):
    """Compare the lines of all reject reasons with the page, which also has reasons that Linux does not know."""
    reasons = troubleshooting_page.reasons_of(page)
    known = {str(number) for number in range(1, 36)} - {'34'}
    for reason in sorted(known - set(reasons)):
        yield f'the page has no reject reason {reason}'
    every = [f'connection; event RDMA_CM_EVENT_REJECTED {number}; rpma_conn_next_event' for number in range(1, 257)]
    for number, seen in enumerate(take(executable, every), 1):
        meaning, remedy = reasons.get(str(number), reasons['others'])
        head = f'rpma_conn_next_event: Connection rejected (RDMA_CM_EVENT_REJECTED): {meaning} (reject reason {number}); '
        line = seen.shown['line']
        if not line.startswith(head) or not remedy.startswith(line[len(head):]) or line == head:
            yield f'the page has "{meaning}" and "{remedy}" for reject reason {number}:\n  {line}'


# The errors of each event of a connection; the rejections of InfiniBand and RoCE are reject reasons.
STATUSES = {'UNREACHABLE': [errno.ETIMEDOUT], 'CONNECT_ERROR': [errno.ECONNABORTED], 'DEVICE_REMOVAL': [0],
            'MULTICAST_JOIN': [0], 'DISCONNECTED': [0], 'ESTABLISHED': [0]}
DEVICES = {'InfiniBand': ('infiniband=1', {}), 'RoCE': ('infiniband=0', {}),
           'iWARP': ('transport=SIM_IWARP', {'REJECTED': [errno.ECONNREFUSED, errno.ECONNRESET]})}


def faults_of_events(executable, page):
    """Return the warnings and errors about an event of a connection that the page lacks."""
    entries = troubleshooting_page.lines_of(page)
    every = [f'device {device}; {state}; event RDMA_CM_EVENT_{event} {-status}; rpma_conn_next_event'
             for device, more in DEVICES.values()
             for state in ('connection', 'request; rpma_conn_req_connect')
             for event, statuses in (STATUSES | more).items() for status in statuses]
    for seen in take(executable, every):
        level, line = seen.logged_line()
        if level <= WARNING and not any(entry.is_in([f'{TAGS[LEVELS[level]]} {line}']) for entry in entries):
            yield f'the page has no line of an event:\n  {line}'


def numbers(text):
    values = {int(word, 0) for word in re.findall(rf'(?<![\w+])(?:{WORD})\b', text)}
    return values | {value & 0xffffffff for value in values}


def check_lines(executable, root, table):
    """Return all faults of the lines of this library."""
    page = troubleshooting_page.text_of(root)
    wrong = [*faults_of_page(page, table), *faults_of_reasons(executable, page), *faults_of_events(executable, page)]
    contract = read_errors()
    notes = []
    seen = take(executable, [row['steps'] for row in table])
    unread = take(executable, ['log off; ' + row['steps'] for row in table])
    for row, ours, silent in zip(table, seen, unread, strict=True):
        print(f'{row["failure"]}: {ours.shown["code"]}\n    {ours.logged_line()[1]}')
        wrong += [f'{row["failure"]} {fault}\n    {ours.logged_line()[1]}'
                  for fault in [*faults_of(ours, row), *faults_unread(silent, ours),
                                *faults_of_cause(ours, row, contract, notes)]]
    with open(os.path.join(os.path.dirname(executable), 'exercised', 'script.tsv'), 'w',
              encoding='utf-8') as file:
        print(*notes, 'complete', sep='\n', file=file)
    return wrong


# ---- decisions -----------------------------------------------------------------------------------

def news_ids(root):
    """Return the ids: in parentheses at the end of an entry, or in the last cell of a table row."""
    label = r'([A-Z]\d+(?:, [A-Z]\d+)*|resources)'
    with open(os.path.join(root, 'NEWS.md'), encoding='utf-8') as file:
        groups = re.findall(rf'(?:\({label}\)|^\|.*\| {label} \|)$', file.read(), re.M)
    return [name for group in groups for name in ''.join(group).split(', ')]


def check_decisions(executable, table):
    """Compare the results of all rows with steps."""
    rows = [row for row in table if row['steps'] != '-']
    for row, seen in zip(rows, take(executable, [row['steps'] for row in rows]), strict=True):
        shown = seen.shown.get(row['shows'], '')
        if not re.fullmatch(re.escape(row['here']).replace(r'\*', '.*'), shown):
            yield f'{row["id"]}: {row["shows"]} is "{shown}" instead of "{row["here"]}": {row["steps"]}'
        print(f'{row["id"]}: {row["shows"]}: {shown}')


def check_ids(table, root):
    news, tested = news_ids(root), {row['id'] for row in table}
    for name in sorted({*news, *tested}):
        if name not in news or name not in tested:
            yield f'{name} is in NEWS.md: {name in news}, in decisions.tsv: {name in tested}'
    for row in table:
        theirs = [row['1.2.0'], row['1.3.0']]
        if all(cell == row['here'] for cell in theirs) and row['steps'] != '-':
            yield f'{row["id"]}: nothing that the original does not do: {row["steps"]}'


def main():
    if len(sys.argv) != 3:
        end(2, 'usage: see the first lines of this file')
    executable, root = sys.argv[1:]
    lines, decisions = read_table('failure_lines.tsv'), read_table('decisions.tsv')
    wrong = [*check_lines(executable, root, lines), *check_ids(decisions, root), *check_decisions(executable, decisions)]
    for fault in wrong:
        print(f'WRONG: {fault}')
    if wrong:
        end(1, f'{len(wrong)} findings: mend the library, or correct the tables and the page')
    print(f'{len(lines)} failures, {len(decisions)} rows of decisions')


if __name__ == '__main__':
    main()
