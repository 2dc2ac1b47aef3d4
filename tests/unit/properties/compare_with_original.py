#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# compare_with_original.py -- compares the results of this library with two tables and with those of the original's
# own binaries show
#
#   compare_with_original.py unit-script SOURCE_ROOT                          this library
#   compare_with_original.py unit-script SOURCE_ROOT original [DIRECTORY]     both
#
# script.c explains the steps of both tables. failure_lines.tsv has a row for each failure: the level
# of the line that is logged, the line, the cause in the contract that the row shows, for exercised.py,
# whether docs/troubleshooting.md explains it, and what the
# original's line has and this one lacks, with the reason ("everything": the original is not asked).
# Every other value, name and error text of the original's line has to be in this library's.
#
# decisions.tsv says, for each id of NEWS.md, what this library and each release of the original
# show ("*" stands for any text, "unseen: why": the same as this library).
#
# The original is Debian's binary packages: those that are unpacked in DIRECTORY/librpma-VERSION (by
# default /opt, where tools/lab has them), otherwise the one that apt-get downloads here, into a
# cache. Nothing is installed. It exits with 77 without a binary.

import csv
import errno
import glob
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))

import troubleshooting_page  # noqa: E402

SKIPPED = 77
LEVELS = ['fatal', 'error', 'warning', 'notice', 'info', 'debug']
WARNING, NOTICE, DEBUG = (LEVELS.index(name) for name in ('warning', 'notice', 'debug'))
TAGS = {'error': '*ERROR*', 'warning': '*WARN*', 'notice': '*NOTE*', 'info': '*INFO*',
        'debug': '*DEBUG*'}
KEYS = ('rkey', 'lkey')
WORD = r'0x[0-9a-fA-F]+|\d+'


def end(status, message):
    print(f'beside: {message}', file=sys.stderr)
    sys.exit(status)


def read_table(name):
    with open(os.path.join(HERE, name), encoding='utf-8') as file:
        head, *rows = [line.rstrip('\n').split('\t') for line in file if line[0] != '#']
    return [dict(zip(head, row, strict=True)) for row in rows]


class Seen:
    """What was printed behind one line of steps."""

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
        self.shown['line'] = self.told()[1]
        self.shown['log'] = ' / '.join(text for _, text in self.lines)
        self.shown['warnings'] = str(sum(level == WARNING for level, _ in self.lines))
        self.shown.setdefault('code', self.shown.get('end'))  # it crashed

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


def take(executable, every, library=None):
    """What is seen behind each line of steps, over this library or the one in that directory."""
    environment = dict(os.environ)
    environment.pop('RPMA_LOG', None)
    if library:
        environment['LD_LIBRARY_PATH'] = library
    ran = subprocess.run([executable], input='\n'.join(every), capture_output=True, text=True,
                         errors='replace', env=environment)
    blocks = re.findall(r'(.*?)^(end\t[^\n]*)$', ran.stdout, re.MULTILINE | re.DOTALL)
    if ran.returncode or len(blocks) != len(every):
        end(1, f'{executable} ends early: {ran.stdout}{ran.stderr}')
    seen = [Seen(steps, [*text.splitlines(), last])
            for steps, (text, last) in zip(every, blocks, strict=True)]
    for one in seen:
        if not library and 'memory' not in one.values:
            end(1, f'this library did not come to the end of: {one.steps}\n' + '\n'.join(one.block))
    return seen


# ---- the lines of failures -----------------------------------------------------------------------

def faults_of(ours, row):
    """What is wrong with the lines that this library logs, as sentences."""
    level, text = ours.told()
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
            yield f'tells a key: {line}'


def faults_of_cause(ours, row, contract, notes):
    """Whether the call fails as the contract says of the cause, which is noted then."""
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


def faults_unread(unread):
    """For lines below every threshold, nothing is formatted."""
    if unread.shown['texts'] != '0':
        yield 'costs something, although nobody reads the line'


def faults_of_page(path, table):
    """What the page has and the table does not, or the reverse, as sentences."""
    with open(path, encoding='utf-8') as file:
        page = file.read()
    yield from troubleshooting_page.faults_of(page)
    # Lines of libibverbs itself do not come from this library.
    entries = {entry.name: entry for entry in troubleshooting_page.lines_of(page)
               if entry.line[0] == '*'}
    explained = {row['failure']: f'{TAGS[row["level"]]} {row["line"]}'
                 for row in table if row['page'] == 'yes'}
    for name in sorted(set(explained) ^ set(entries)):
        yield f'only the {"table" if name in explained else "page"} has {name}'
    for name in sorted(set(explained) & set(entries)):
        if not entries[name].is_said([explained[name]]):
            yield f'{name}: the page has\n  {entries[name].line}\nfor\n  {explained[name]}'


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


def less_than(theirs, ours, row):
    """Pieces of the original's line that ours lacks, except those that the table allows."""
    their_level, their_text = theirs.told()
    level, text = ours.told()
    if their_level is None or their_level > NOTICE:
        return
    allowed = {piece.strip() for piece in row['lacks'].split(';')} - {'-'}
    lacking = {piece for piece in pieces(their_text) if not contains(text, piece)}
    if level is None or level > their_level:
        lacking.add('level')
    for piece in sorted(lacking - allowed):
        yield f'lacks "{piece}" of "{their_text}"'
    for piece in sorted(allowed - lacking):
        yield f'lacks no "{piece}", correct the table'


def check_lines(executable, root, table):
    """The findings about this library."""
    wrong = list(faults_of_page(os.path.join(root, 'docs', 'troubleshooting.md'), table))
    with open(os.path.join(root, 'contract', 'errors.tsv'), encoding='utf-8') as file:
        contract = list(csv.DictReader(file, delimiter='\t', quoting=csv.QUOTE_NONE))
    notes = []
    seen = take(executable, [row['steps'] for row in table])
    unread = take(executable, ['unread; ' + row['steps'] for row in table])
    for row, ours, silent in zip(table, seen, unread, strict=True):
        print(f'{row["failure"]}: {ours.shown["code"]}\n    {ours.told()[1]}')
        wrong += [f'{row["failure"]} {fault}\n    {ours.told()[1]}'
                  for fault in [*faults_of(ours, row), *faults_unread(silent),
                                *faults_of_cause(ours, row, contract, notes)]]
    with open(os.path.join(os.path.dirname(executable), 'exercised', 'script.tsv'), 'w',
              encoding='utf-8') as file:
        print(*notes, 'complete', sep='\n', file=file)
    return wrong


def check_lines_beside(executable, table, version, library):
    wrong = []
    asked = [row for row in table if row['lacks'] != 'everything']
    steps = [row['steps'] for row in asked]
    for row, ours, theirs in zip(asked, take(executable, steps),
                                 take(executable, steps, library), strict=True):
        print(f'{row["failure"]}\n    {version}: {theirs.told()[1] or "nothing"}')
        wrong += [f'{row["failure"]} {fault}' for fault in less_than(theirs, ours, row)]
    return wrong


# ---- decisions -----------------------------------------------------------------------------------

def news_ids(root):
    """The ids: in parentheses at the end of an entry, or in the last cell of a table row."""
    label = r'([A-Z]\d+(?:, [A-Z]\d+)*|resources)'
    with open(os.path.join(root, 'NEWS.md'), encoding='utf-8') as file:
        groups = re.findall(rf'(?:\({label}\)|^\|.*\| {label} \|)$', file.read(), re.M)
    return [name for group in groups for name in ''.join(group).split(', ')]


def check_decisions(executable, table, column, library=None):
    """The findings about one library. Rows without steps show nothing anywhere."""
    rows = [row for row in table if row['steps'] != '-']
    wrong = []
    for row, seen in zip(rows, take(executable, [row['steps'] for row in rows], library), strict=True):
        wanted = row['here'] if row[column].startswith('unseen: ') else row[column]
        shown = seen.shown.get(row['shows'], '')
        if not re.fullmatch(re.escape(wanted).replace(r'\*', '.*'), shown):
            wrong.append(f'{row["id"]}, {column}: {row["shows"]} is "{shown}" instead of "{wanted}": '
                         f'{row["steps"]}')
        print(f'{row["id"]} {column}: {row["shows"]}: {shown}')
    return wrong


def check_ids(table, root):
    news, tested = news_ids(root), {row['id'] for row in table}
    for name in sorted({*news, *tested}):
        if news.count(name) != 1 or name not in tested:
            yield f'{name} is in NEWS.md {news.count(name)} times, in decisions.tsv: {name in tested}'
    for row in table:
        theirs = [row['1.2.0'], row['1.3.0']]
        if all(cell == row['here'] for cell in theirs) and row['steps'] != '-':
            yield f'{row["id"]}: nothing that the original does not do: {row["steps"]}'


# ---- the original --------------------------------------------------------------------------------

def download():
    """The directory of one version, with Debian's package unpacked in it."""
    cache = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'),
                         'librpma-predecessor')
    os.makedirs(cache, exist_ok=True)
    why = ''
    if not glob.glob(os.path.join(cache, 'librpma0_*.deb')):
        try:
            got = subprocess.run(['apt-get', '-q', 'download', 'librpma0'], cwd=cache, timeout=60,
                                 capture_output=True, text=True)
            why = (got.stderr.strip().splitlines() or [''])[0]
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
    packages = sorted(glob.glob(os.path.join(cache, 'librpma0_*.deb')))
    if not packages:
        end(SKIPPED, f'skipped, no librpma0 to compare with: {why} (try: apt-get update)')
    directory = os.path.join(cache, 'librpma-' + os.path.basename(packages[-1]).split('_')[1].split('-')[0])
    subprocess.run(['dpkg-deb', '--extract', packages[-1], directory], check=True)
    return directory


def originals(directory, known):
    """Version and library directory of each binary there is."""
    for root in sorted(glob.glob(os.path.join(directory, 'librpma-*'))) or [download()]:
        libraries = glob.glob(os.path.join(root, 'usr/lib/*/librpma.so.0'))
        version = root.rpartition('-')[2]
        if libraries and version in known:
            yield version, os.path.dirname(libraries[0])
        elif libraries:
            print(f'librpma {version} is skipped: decisions.tsv has no column for it')


def main():
    if len(sys.argv) < 3:
        end(2, 'usage: see the first lines of this file')
    executable, root, *rest = sys.argv[1:]
    lines, decisions = read_table('failure_lines.tsv'), read_table('decisions.tsv')
    wrong, compared = [], 0
    if not rest:
        wrong = [*check_lines(executable, root, lines), *check_ids(decisions, root),
                 *check_decisions(executable, decisions, 'here')]
    else:
        for version, library in originals(rest[1] if rest[1:] else '/opt', decisions[0]):
            wrong += check_lines_beside(executable, lines, version, library)
            wrong += check_decisions(executable, decisions, version, library)
            compared += 1
        if not compared:
            end(SKIPPED, 'skipped, no release of the original that decisions.tsv knows')
    for fault in wrong:
        print(f'WRONG: {fault}')
    if wrong:
        end(1, f'{len(wrong)} findings: mend the library, or correct the tables and the page')
    print(f'{len(lines)} failures, {len(decisions)} rows of decisions')


if __name__ == '__main__':
    main()
