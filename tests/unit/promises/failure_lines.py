#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# failure_lines.py -- checks what the log says about each failure: the line of the table, which
# docs/troubleshooting.md explains, and no less than the original's own binaries log
#
#   failure_lines.py EXECUTABLE failure_lines.tsv docs/troubleshooting.md
#   failure_lines.py EXECUTABLE failure_lines.tsv original [DIRECTORY]
#
# failure_lines.tsv has a row for each failure:
#
# - the objects that exist, the provider calls that then fail with errno, the call that fails (a
#   function of failure_calls.c or failure_calls_new.c), and one that comes before everything else
# - the level of the line, and the line itself, which begins with the function that was called
# - the parts of it that say the value that was given, the limit, and what to do ("-": none)
# - whether docs/troubleshooting.md explains it
# - what the original's line has and this one lacks, with the reason ("everything": EXECUTABLE does
#   not make the failure happen over the original)
#
# A line without a provider's answer is about what the program did: it has a value and a remedy.
# With decisions_check.py, which finds the original's binaries, every value, name and error text of
# the original's line has to be in this library's. It exits with 77 without a binary.

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.dont_write_bytecode = True

import decisions_check  # noqa: E402
import troubleshooting_page  # noqa: E402

LEVELS = ['fatal', 'error', 'warning', 'notice', 'info', 'debug']
WARNING, DEBUG = LEVELS.index('warning'), LEVELS.index('debug')
# Codes that answer a question of the program.
ANSWERS = {'RPMA_E_NO_EVENT', 'RPMA_E_NO_COMPLETION', 'RPMA_E_AGAIN', 'RPMA_E_SHARED_CHANNEL',
           'RPMA_E_NOT_SHARED_CHNL'}
# Levels whose layout can be compared: the original logs nothing as fatal.
SHOWN = LEVELS[1:]
TAGS = {'error': '*ERROR*', 'warning': '*WARN*', 'notice': '*NOTE*', 'info': '*INFO*',
        'debug': '*DEBUG*'}
KEYS = ('rkey', 'lkey')
WORD = r'0x[0-9a-fA-F]+|\d+'


def end(status, message):
    print(f'failure_lines: {message}', file=sys.stderr)
    sys.exit(status)


def run(executable, argument, library=None):
    environment = dict(os.environ)
    environment.pop('RPMA_LOG', None)
    if library:
        environment['LD_LIBRARY_PATH'] = library
    return subprocess.run([executable, argument], capture_output=True, text=True, timeout=60,
                          errors='replace', env=environment)


class Failure:
    """What one library logged of one failure."""

    def __init__(self, executable, name, library=None):
        self.code, self.lines, self.values = None, [], {}
        ran = run(executable, name, library)
        for row in ran.stdout.splitlines():
            kind, *words = row.split('\t')
            if kind == 'code':
                self.code = words[0]
            elif kind == 'line':
                self.lines.append((int(words[0]), f'{words[1]}: {words[2]}'))
            elif kind in ('memory', 'posted') + KEYS:
                self.values[kind] = int(words[0], 0)
        if self.code is None:
            end(1, f'{name}: it did not happen over {library or "this library"}:\n'
                   f'{ran.stdout}{ran.stderr}')
        self.lines = [(level, self.named(text)) for level, text in self.lines]

    def named(self, text):
        """The text with names instead of addresses, even truncated ones: they differ each run."""
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

    def told(self):
        """Level and text of the worst lines, which a reader of the log sees of the failure."""
        level = min((line[0] for line in self.lines), default=None)
        return level, ' / '.join(text for at, text in self.lines if at == level)


def pieces(text):
    """Values, names and the error text in a line."""
    found = set()
    text = text.replace('={0}', '')
    for key, value in re.findall(r'([\w/]+)=([^,()\s]+)', text):
        if key not in KEYS:
            found.add(value)
    text = re.sub(r'\b(?:rkey|lkey)=\w+', '', text)
    found.update(re.findall(r'\b(?:ibv|rdma)_\w+|\b(?:RDMA|IBV)_\w+', text))
    found.update(re.findall(rf'(?<![\w=+])(?:{WORD})\b', text))
    found.update(re.findall(r'(?:failed|\)): ([^:]+)$', text))
    return found


def numbers(text):
    values = {int(word, 0) for word in re.findall(rf'(?<![\w+])(?:{WORD})\b', text)}
    return values | {value & 0xffffffff for value in values}


def contains(text, piece):
    if re.fullmatch(WORD, piece):
        return int(piece, 0) in numbers(text)
    return piece in text


def read_table(path):
    with open(path, encoding='utf-8') as file:
        head, *rows = [line.rstrip('\n').split('\t') for line in file if line[0] != '#']
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def texts(cell):
    return [text.strip() for text in cell.split(';')] if cell != '-' else []


def faults_of(ours, row):
    """Faults of the lines that this library logs, as sentences."""
    level, text = ours.told()
    wanted = LEVELS.index(row['level'])
    if level != wanted:
        yield f'is logged as {LEVELS[level] if level else "nothing"}, not as {row["level"]}'
    if ours.code in ANSWERS and wanted != DEBUG:
        yield 'is an answer, which only debugging shows'
    if wanted <= WARNING and sum(line[0] <= WARNING for line in ours.lines) != 1:
        yield 'has more than one line of a failure'
    if text != row['line']:
        yield f'is not "{row["line"]}"'
    for part in ('value', 'limit', 'remedy'):
        if row[part] != '-' and row[part] not in row['line']:
            yield f'has no {part} "{row[part]}"'
    is_own = row['level'] == 'error' and ours.code != 'RPMA_E_NOMEM' and ' failed' not in text
    if is_own and ' == NULL' not in text and '-' in (row['value'], row['remedy']):
        yield 'is about what the program did, and has no value or no remedy'
    for at, line in ours.lines:
        if at < DEBUG and (re.search('key', line) or
                           ours.values['rkey'] in numbers(line) - {0}):
            yield f'tells a key: {line}'


def faults_of_page(path, table):
    """What the page has and the table does not, or the reverse, as sentences."""
    with open(path, encoding='utf-8') as file:
        page = file.read()
    yield from troubleshooting_page.faults_of(page)
    # Lines of libibverbs itself do not come from this library.
    entries = {entry.name: entry for entry in troubleshooting_page.lines_of(page)
               if entry.line[0] == '*'}
    explained = {name for name, row in table.items() if row['page'] == 'yes'}
    for name in sorted(explained ^ set(entries)):
        yield f'only the {"table" if name in explained else "page"} has {name}'
    for name in sorted(explained & set(entries)):
        line = f'{TAGS[table[name]["level"]]} {table[name]["line"]}'
        if not entries[name].is_said([line]):
            yield f'{name}: the page has\n  {entries[name].line}\nfor\n  {line}'


def less_than(theirs, ours, row):
    """Pieces of the original's line that ours lacks, except those that the table allows."""
    their_level, their_text = theirs.told()
    level, text = ours.told()
    allowed = texts(row['lacks'])
    if their_level is None or their_level > LEVELS.index('notice'):
        return
    lacking = {piece for piece in pieces(their_text) if not contains(text, piece)}
    if level is None or level > their_level:
        lacking.add('level')
    for piece in sorted(lacking - set(allowed)):
        yield f'lacks "{piece}" of "{their_text}"'
    for piece in sorted(set(allowed) - lacking):
        yield f'lacks no "{piece}", correct the table'


def layout(executable, library=None):
    """Lines of the default log function, without the parts that differ from run to run."""
    ran = run(executable, '--layout', library)
    syslog = [line[len('syslog\t'):] for line in ran.stdout.splitlines()
              if line.startswith('syslog\t')]
    stderr = [line for line in ran.stderr.splitlines() if re.search(r'\] \*[A-Z]', line)]
    shapes = {}
    for where, lines in (('syslog', syslog), ('stderr', stderr)):
        for line in lines:
            shape = re.sub(r'[A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d\.\d{6}', 'TIME', line)
            shape = re.sub(r'\[\d+\]', '[THREAD]', shape)
            shape = re.sub(r'\b\w+\.cc?: ( \d\d|  \d|\d{3,}): rpma_\w+: .+$',
                           'FILE: LINE: FUNCTION: MESSAGE', shape)
            tag = re.search(r'\*[A-Z]+\* *', shape)
            shapes[where, tag and tag[0]] = shape
    return shapes


def check(executable, table, version=None, library=None):
    """Prints the table, failure by failure; returns the number of findings."""
    wrong = 0
    for name, row in table.items():
        ours = Failure(executable, name)
        findings = list(faults_of(ours, row))
        print(f'{name}: {ours.code}\n    ours: {ours.told()[1]}')
        if library:
            theirs = Failure(executable, name, library)
            findings += less_than(theirs, ours, row)
            print(f'    {version}: {theirs.told()[1] or "nothing"}')
        for finding in findings:
            print(f'    WRONG: {finding}')
        wrong += len(findings)
    if library:
        ours, theirs = layout(executable), layout(executable, library)
        for place in sorted(theirs, key=str):
            same = ours.get(place) == theirs[place]
            wrong += not same
            print(f'layout {place}: {theirs[place]}' +
                  ('' if same else f'\n    WRONG: ours is {ours.get(place)}'))
        if len(theirs) != 2 * len(SHOWN):
            end(1, f'the original does not write a line of each level to compare: {theirs}')
    return wrong


def main():
    if len(sys.argv) < 4:
        end(2, 'usage: see the first lines of this file')
    executable, table = sys.argv[1], read_table(sys.argv[2])
    is_original = sys.argv[3] == 'original'
    if is_original:
        table = {name: row for name, row in table.items() if row['lacks'] != 'everything'}
    names = run(executable, '--list').stdout.splitlines()
    if names != list(table):
        end(1, f'{sys.argv[2]} and {executable} have different failures, or in another order: '
               f'{sorted(set(names) ^ set(table))}')
    if not is_original:
        wrong = check(executable, table)
        for fault in faults_of_page(sys.argv[3], table):
            print(f'    WRONG: {sys.argv[3]}: {fault}')
            wrong += 1
    else:
        wrong = sum(check(executable, table, version, library) for version, library in
                    decisions_check.originals(*(sys.argv[4:] or ['/opt'])))
    if wrong:
        end(1, f'{wrong} findings: mend the lines, or correct {sys.argv[2]} and the page')
    print(f'{len(table)} failures')


main()
