#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Counts what the steps of tools/test tested: results.py SINCE STEP:STATUS…

Reads the logs that "meson test --logbase testlog-step_STEP" wrote after the file SINCE. A test
counts as many times as it says that it has parts (CMocka tests, TAP). A step that writes no log
counts once. Names each skipped test with its reason, and last each that failed, why, and the log. A
skip is an error, unless LIBRPMA_MAY_SKIP names what this machine lacks, or the lab has a device that
cannot do what the test needs. Ends with 0, or 1 when something failed or was skipped in error.
"""

import json
import os
import pathlib
import re
import sys
from collections import Counter

BUILDS = pathlib.Path(__file__).resolve().parent.parent.parent / 'build'
# The values of LIBRPMA_MAY_SKIP, and the reasons for skips that each value permits.
LACKS = {
    'network': r'could not be fetched|no librpma0 to compare with',
    'hardware': r'virtual machine|no \S* ?DAX here|no librpma \S+ here',
    'compiler': r'the budget is for|the figures are for',
}
# Skips that a case of the integration tests declares for a device of the lab are no errors.
DECLARED = r'^(siw on Linux \S+|rxe on Linux 6\.12\S*) has no '
CMOCKA = {
    'passed': r'^\[  PASSED  \] (\d+) test',
    'failed': r'^\[  FAILED  \].* (\d+) test\(s\), listed below',
    'skipped': r'^\[  SKIPPED \].* (\d+) test\(s\), listed below',
}
TAP = re.compile(r'^(ok|not ok)\b *\d* *-? *([^#\n]*)(?:# SKIP *(.*))?', re.M)
MESON = {'OK': 'passed', 'EXPECTEDFAIL': 'passed', 'SKIP': 'skipped'}


# The line of a failed test that has the reason; without such a line, the last line is used.
WHY = re.compile(r'^(\[  ERROR   \] --- |.*\b(error|FAILED|FAULT|AssertionError)\b)', re.I)
SKIP = re.compile('.*skip', re.I)


def why(lines, pattern=WHY):
    said = [line.strip('# \t') for line in lines if line.strip('# \t')]
    return next((line for line in said if pattern.match(line)), (said or ['it does not say why'])[-1])


def tap_parts(output):
    for found in TAP.finditer(output):
        verdict, name, reason = found.groups()
        remarks = re.match(r'[^\n]*((?:\n#[^\n]*)*)', output[found.end():])[1].splitlines()
        result = 'failed' if verdict != 'ok' else 'skipped' if reason else 'passed'
        yield result, name.strip(), 1, [reason] if result == 'skipped' else remarks


def cmocka_parts(name, output):
    for result, pattern in CMOCKA.items():
        for number in re.findall(pattern, output, re.M):
            yield result, name, int(number), ['CMocka'] if result == 'skipped' else output.splitlines()


def parts_of(test):
    """(result, name, how many, the lines that say why) of the parts of one test of Meson, which failed
    at least once when Meson says so."""
    output = test.get('stdout', '') + '\n' + test.get('stderr', '')
    name, result = test['name'], MESON.get(test['result'], 'failed')
    if result == 'skipped':
        parts = []
    elif re.search(r'^1\.\.\d+', output, re.M):
        parts = list(tap_parts(test['stdout']))
    else:
        parts = list(cmocka_parts(name, output))
    if not parts or result == 'failed' and 'failed' not in [part[0] for part in parts]:
        parts.append((result, name, 1, output.splitlines()))
    return parts


class Results:
    def __init__(self):
        self.counts, self.skips, self.failures = Counter(), [], []

    def add(self, parts, step, log):
        for result, name, number, lines in parts:
            self.counts[result] += number
            if result == 'failed':
                self.failures.append(f'{step}: {name}: {why(lines)} (log: {log})')
            elif result == 'skipped':
                self.skips += [(name, why(lines, SKIP))] * number


def logs(step, since):
    for path in BUILDS.glob(f'**/meson-logs/testlog-step_{step}*.json'):
        if re.search(f'_{step}(-[^/]*)?[.]json$', str(path)) and path.stat().st_mtime > since:
            for line in path.read_text(encoding='utf-8').splitlines():
                yield path.with_suffix('.txt'), json.loads(line)


def count(since, steps):
    results = Results()
    for step, status in (step.split(':') for step in steps):
        before, log = results.counts.copy(), BUILDS / f'{step}.log'
        for path, test in logs(step, since):
            results.add(parts_of(test), step, path)
        if status != '0' and results.counts['failed'] == before['failed']:
            said = log.read_text(encoding='utf-8', errors='replace').splitlines() if log.exists() else []
            results.add([('failed', 'the step itself', 1, said)], step, log)
        elif results.counts == before:
            results.counts['passed'] += 1
    return results


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    may_skip = os.environ.get('LIBRPMA_MAY_SKIP', '').split()
    results = count(os.stat(sys.argv[1]).st_mtime, sys.argv[2:])
    errors = 0
    for name, reason in results.skips:
        if re.search(DECLARED, reason):
            print(f'skipped: {name}: {reason}')
            continue
        lack = next((lack for lack, pattern in LACKS.items() if re.search(pattern, reason)), None)
        errors += lack not in may_skip
        hint = ('' if lack in may_skip else
                f' (an error, unless LIBRPMA_MAY_SKIP={lack} says that this machine lacks it)'
                if lack else ' (an error)')
        print(f'skipped: {name}: {reason}{hint}')
    for failure in results.failures:
        print(f'failed: {failure}')
    print(', '.join(f'{results.counts[result]} {result}' for result in CMOCKA))
    sys.exit(bool(errors or results.counts['failed']))


if __name__ == '__main__':
    main()
