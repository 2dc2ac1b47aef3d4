#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
#
# decisions_check.py -- compares three lists of decisions: those in NEWS.md, those that are tested,
# and those whose tests the original's own binaries fail.
#
#   decisions_check.py ids EXECUTABLE NEWS.md decisions.tsv
#   decisions_check.py original EXECUTABLE decisions.tsv [DIRECTORY]
#
# decisions.tsv has, for each release, the output with which its library fails a test ("unseen: why"
# where it cannot fail). original takes Debian's binary packages: those that are unpacked in
# DIRECTORY/librpma-VERSION (by default /opt, where tools/lab has them), otherwise the one that
# apt-get downloads here, into a cache. Nothing is installed. It exits with 77 without a binary.

import glob
import os
import re
import resource
import subprocess
import sys

SKIPPED = 77
TIME_LIMIT = 20  # seconds for one test
UNSEEN = 'unseen: '


def end(status, message):
    print(f'decisions_check: {message}', file=sys.stderr)
    sys.exit(status)


def output_of(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def tested_ids(executable):
    return output_of(executable, '--list', check=True).stdout.split()


def read_table(path):
    with open(path, encoding='utf-8') as file:
        head, *rows = [line.rstrip('\n').split('\t') for line in file]
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def news_ids(path):
    """The ids: in parentheses at the end of an entry, or in the last cell of a table row."""
    label = r'([A-Z]\d+(?:, [A-Z]\d+)*|resources)'
    with open(path, encoding='utf-8') as file:
        groups = re.findall(rf'(?:\({label}\)|^\|.*\| {label} \|)$', file.read(), re.M)
    return [name for group in groups for name in ''.join(group).split(', ')]


def check_ids(executable, news, table):
    lists = {'NEWS.md': news_ids(news), 'the tests': tested_ids(executable),
             'decisions.tsv': list(read_table(table))}
    every = sorted(set().union(*lists.values()))
    for name, ids in lists.items():
        for one in every:
            if ids.count(one) != 1:
                end(1, f'{name} has decision {one} {ids.count(one)} times: '
                       'NEWS.md, the tests and decisions.tsv have each one once')
    print(f'{len(every)} decisions in {", ".join(lists)}: {" ".join(every)}')


# ---- the original --------------------------------------------------------------------------------

def fetch(cache):
    """The package in the cache, brought there by apt if need be, and why it is not there."""
    why = ''
    if not glob.glob(os.path.join(cache, 'librpma0_*.deb')):
        try:
            got = output_of('apt-get', '-q', 'download', 'librpma0', cwd=cache, timeout=60)
            why = (got.stderr.strip().splitlines() or [''])[0]
        except (OSError, subprocess.TimeoutExpired) as error:
            why = str(error)
    return (sorted(glob.glob(os.path.join(cache, 'librpma0_*.deb'))) or [None])[-1], why


def download():
    """The directory of one version, with Debian's package unpacked in it."""
    cache = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'),
                         'librpma-predecessor')
    os.makedirs(cache, exist_ok=True)
    package, why = fetch(cache)
    if not package:
        end(SKIPPED, f'skipped, no librpma0 to compare with: {why} (try: apt-get update)')
    version = output_of('dpkg-deb', '--field', package, 'Version', check=True).stdout
    directory = os.path.join(cache, 'librpma-' + version.strip().split('-')[0])
    output_of('dpkg-deb', '--extract', package, directory, check=True)
    return directory


def originals(directory):
    """Version and library directory of each binary there is."""
    roots = sorted(glob.glob(os.path.join(directory, 'librpma-*'))) or [download()]
    for root in roots:
        libraries = glob.glob(os.path.join(root, 'usr/lib/*/librpma.so.0'))
        if libraries:
            yield root.rpartition('-')[2], os.path.dirname(libraries[0])


def run(executable, name, library):
    """The output of one test over that library; '' if it passes. It may crash or hang."""
    environment = dict(os.environ, LD_LIBRARY_PATH=library, CMOCKA_MESSAGE_OUTPUT='STDOUT')
    try:
        ran = output_of(executable, name, env=environment, timeout=TIME_LIMIT, errors='replace')
    except subprocess.TimeoutExpired:
        return f'it hangs: more than {TIME_LIMIT} s'
    if ran.returncode == 0:
        return ''
    said = ran.stdout + ran.stderr
    return said + ('Segmentation fault' if ran.returncode == -11 else '') or 'no word'


def judge(finding, said):
    """The fault of a test's output; '' when it is what the table says."""
    if finding.startswith(UNSEEN):
        return said and 'fails, which is not in decisions.tsv:\n' + said
    if not said:
        return f'passes; decisions.tsv says it fails with "{finding}"'
    return '' if finding in said else f'fails, but not with "{finding}":\n{said}'


def check_original(executable, path, directory='/opt'):
    table = read_table(path)
    wrong = compared = 0
    for version, library in originals(directory):
        column = {name: row.get(version) for name, row in table.items()}
        if None in column.values():
            print(f'librpma {version} is skipped: decisions.tsv has no column for it')
            continue
        compared += 1
        for name, finding in column.items():
            verdict = judge(finding, run(executable, name, library))
            wrong += bool(verdict)
            print(f'{version} {name}: {verdict or finding}')
        failed = [name for name, finding in column.items() if not finding.startswith(UNSEEN)]
        unseen = [name for name in column if name not in failed]
        print(f'librpma {version} fails {len(failed)} of {len(column)} decisions; '
              f'unseen there: {" ".join(unseen)}')
    if not compared:
        end(SKIPPED, 'skipped, no release of the original that decisions.tsv knows')
    if wrong:
        end(1, f'{wrong} findings differ: correct decisions.tsv, or the tests')


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    checks = {'ids': check_ids, 'original': check_original}
    if len(sys.argv) < 4 or sys.argv[1] not in checks:
        end(2, 'usage: see the first lines of this file')
    checks[sys.argv[1]](*sys.argv[2:])


if __name__ == '__main__':
    main()
