#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Counts what the steps of tools/test tested: results.py SINCE STEP:STATUS…

Reads the logs that "meson test --logbase testlog-step_STEP" wrote after the file SINCE. A test
counts as many times as it says that it has parts (CMocka tests, TAP). A step that writes no log
counts once. Names each skipped test with its reason, and last each that failed, why, and the log. A skip is an error, unless LIBRPMA_MAY_SKIP
names what this machine lacks, or the lab has a device that cannot do what the test needs. Ends with
0, or 1 when something failed or was skipped in error.
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


def why(lines):
    said = [line.strip('# \t') for line in lines if line.strip('# \t')]
    return next((line for line in said if WHY.match(line)), (said or ['it does not say why'])[-1])


class Results:
    def __init__(self):
        self.counts, self.skips, self.failures = Counter(), [], []
        self.step, self.log = '', None  # of the next results

    def fail(self, name, lines):
        self.counts['failed'] += 1
        self.name_failure(name, lines)

    def name_failure(self, name, lines):
        self.failures.append(f'{self.step}: {name}: {why(lines)} (log: {self.log})')

    def skip(self, name, reason):
        self.counts['skipped'] += 1
        self.skips.append((name, reason))

    def add_tap(self, output):
        for found in TAP.finditer(output):
            verdict, name, reason = found.groups()
            if reason and verdict == 'ok':
                self.skip(name.strip(), reason)
            elif verdict == 'ok':
                self.counts['passed'] += 1
            else:
                remarks = re.match(r'[^\n]*((?:\n#[^\n]*)*)', output[found.end():])
                self.fail(name.strip(), remarks.group(1).splitlines())

    def add_cmocka(self, name, output):
        for result, pattern in CMOCKA.items():
            for number in map(int, re.findall(pattern, output, re.M)):
                if result != 'skipped':
                    self.counts[result] += number
                if result == 'failed':
                    self.name_failure(name, output.splitlines())
                for _ in range(number if result == 'skipped' else 0):
                    self.skip(name, 'CMocka')

    def add(self, test):
        """One test of Meson; it failed at least once when Meson says so."""
        output = test.get('stdout', '') + '\n' + test.get('stderr', '')
        result, before = MESON.get(test['result'], 'failed'), self.counts.copy()
        if test['name'].endswith('summary') and self.counts['failed']:
            return  # summary of the integration tests, which only repeats the failures
        if result == 'skipped':
            lines = [line for line in output.splitlines() if line.strip()]
            self.skip(test['name'], next((line for line in lines if 'skip' in line.lower()),
                                         (lines or ['it does not say why'])[-1]))
            return
        if re.search(r'^1\.\.\d+', output, re.M):
            self.add_tap(test['stdout'])
        else:
            self.add_cmocka(test['name'], output)
        if result == 'failed' and self.counts['failed'] == before['failed']:
            self.fail(test['name'], output.splitlines())
        elif self.counts == before:
            self.counts[result] += 1


def logs(step, since):
    for path in BUILDS.glob(f'**/meson-logs/testlog-step_{step}*.json'):
        if re.search(f'_{step}(-[^/]*)?[.]json$', str(path)) and path.stat().st_mtime > since:
            for line in path.read_text(encoding='utf-8').splitlines():
                yield path.with_suffix('.txt'), json.loads(line)


def count(since, steps):
    results = Results()
    for step, status in (step.split(':') for step in steps):
        before, results.step = results.counts.copy(), step
        results.log = BUILDS / f'{step}.log'
        for results.log, test in logs(step, since):
            results.add(test)
        if status != '0' and results.counts['failed'] == before['failed']:
            results.log = BUILDS / f'{step}.log'
            results.fail('the step itself', results.log.read_text(encoding='utf-8', errors='replace').splitlines()
                         if results.log.exists() else [])
        elif results.counts == before:
            results.counts['passed'] += 1
    return results


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    may_skip = os.environ.get('LIBRPMA_MAY_SKIP', '').split()
    if set(may_skip) - set(LACKS):
        sys.exit(f'test: LIBRPMA_MAY_SKIP is {" ".join(may_skip)!r}: it may name {", ".join(LACKS)}')
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
