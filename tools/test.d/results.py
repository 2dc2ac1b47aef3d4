#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Counts the tests of the steps of tools/test: results.py SINCE STEP:STATUS…

Reads the JUnit files that "meson test --logbase testlog-step_STEP" wrote after the file SINCE. Names each skipped
test with its reason, and each failed test with its reason and log. A skip is an error, unless LIBRPMA_MAY_SKIP
names the feature that this machine lacks, or the device of the lab does not support the test.
"""

import os
import pathlib
import re
import sys
from xml.etree import ElementTree

BUILDS = pathlib.Path(__file__).resolve().parent.parent.parent / 'build'
# The values of LIBRPMA_MAY_SKIP, and the reasons for skips that each value permits.
LACKS = {
    'network': r'could not be fetched|no librpma0 to compare with',
    'hardware': r'virtual machine|no \S* ?DAX here|no librpma \S+ here',
    'compiler': r'the budget is for|the figures are for',
}
# Skips that an integration test declares for a device of the lab are not errors.
DECLARED = r'^(siw on Linux \S+|rxe on Linux 6\.12\S*) has no '
# Matches the line of a failed test that has the reason; the default is the last line.
WHY = re.compile(r'^(\[  ERROR   \] --- |.*\b(error|FAILED|FAULT|AssertionError)\b)', re.I)
SKIP = re.compile('.*skip', re.I)


def reason_in(text, pattern):
    lines = [line.strip('# \t') for line in text.splitlines() if line.strip('# \t')]
    return next((line for line in lines if pattern.match(line)), (lines or ['no reason is given'])[-1])


def outputs(element):
    return '\n'.join(out.text or '' for out in element if out.tag.startswith('system-'))


def remarks(tap, name):
    """The comment lines after the result of a TAP test; its name begins with its number."""
    found = re.search(rf'^not ok {name.split()[0]}\b.*((?:\n#.*)*)', tap, re.M)
    return found[1] if found else ''


def cases(step, since):
    """(name, result, output, log) of each test, and of each part of a test that prints TAP."""
    for path in BUILDS.glob(f'**/meson-logs/testlog-step_{step}*.junit.xml'):
        # The name of a wrapper may follow that of the step.
        if not re.search(rf'_{step}(-[^/]*)?[.]junit[.]xml$', str(path)) or path.stat().st_mtime <= since:
            continue
        root = ElementTree.parse(path).getroot()
        for suite, case in ((suite, case) for suite in root for case in suite.iter('testcase')):
            output = outputs(case) or remarks(outputs(suite), case.get('name'))
            failed = case.find('failure') is not None or case.find('error') is not None
            skipped = case.find('skipped') is not None or re.search(r'^\[  SKIPPED \]', output, re.M)
            result = 'failed' if failed else 'skipped' if skipped else 'passed'
            yield case.get('name'), result, output, path.with_name(path.name.replace('.junit.xml', '.txt'))


def skip_is_allowed(name, reason):
    lack = next((lack for lack, pattern in LACKS.items() if re.search(pattern, reason)), None)
    allowed = re.search(DECLARED, reason) or lack in os.environ.get('LIBRPMA_MAY_SKIP', '').split()
    hint = f', unless LIBRPMA_MAY_SKIP={lack} declares that this machine lacks it' if lack else ''
    print(f'skipped: {name}: {reason}' + ('' if allowed else f' (an error{hint})'))
    return allowed


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    since = os.stat(sys.argv[1]).st_mtime
    counts, skips_are_allowed, failures = {'passed': 0, 'failed': 0, 'skipped': 0}, True, []
    for step, status in (word.split(':') for word in sys.argv[2:]):
        before = counts.copy()
        for name, result, output, log in cases(step, since):
            counts[result] += 1
            if result == 'skipped':
                skips_are_allowed &= bool(skip_is_allowed(name, reason_in(output, SKIP)))
            elif result == 'failed':
                failures.append(f'{step}: {name}: {reason_in(output, WHY)} (log: {log})')
        if status != '0' and counts['failed'] == before['failed']:
            log = BUILDS / f'{step}.log'
            failures.append(f'{step}: {reason_in(log.read_text(errors="replace"), WHY)} (log: {log})')
            counts['failed'] += 1
        elif counts == before:
            counts['passed'] += 1
    for failure in failures:
        print(f'failed: {failure}')
    print(', '.join(f'{number} {result}' for result, number in counts.items()))
    sys.exit(bool(failures or not skips_are_allowed))


if __name__ == '__main__':
    main()
