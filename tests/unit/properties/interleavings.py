#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Plant each mistake of interleavings.txt in a copy of src/ and compile librpma with
interleaving/atomic: unit-interleavings has to find it.

A mistake that hangs the test, or whose text is no longer in its file, is also an error.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / 'durability'))
from mistakes import plant, read_mistakes  # noqa: E402


def outcome(mistake, source, sources, test, compiler):
    """Run the test over a library with the mistake."""
    name, file, _, edits = mistake
    with tempfile.TemporaryDirectory() as temporary:
        tree = pathlib.Path(temporary) / 'src'
        shutil.copytree(source / 'src', tree)
        plant(tree, name, file, edits)
        parts = [pathlib.Path(part).resolve().relative_to(source / 'src') for part in sources]
        unit = ''.join(f'#include "{part}"\n' for part in parts)
        subprocess.run([*compiler, '-O0', '-w', '-fPIC', '-shared', '-I', HERE.parent / 'interleaving',
                        '-include', 'atomic', '-I', tree, '-I', source / 'include', '-x', 'c++', '-',
                        '-Wl,-soname,librpma.so.0', '-o', f'{temporary}/librpma.so.0'],
                       input=unit, text=True, check=True)
        environment = os.environ | {'LD_LIBRARY_PATH': temporary}
        return subprocess.run([test], env=environment, capture_output=True, text=True, timeout=120)


def main():
    split = sys.argv.index('--')
    test, source, *sources = sys.argv[1:split]
    mistakes = list(read_mistakes(HERE / 'interleavings.txt'))
    missed = 0
    for mistake in mistakes:
        run = outcome(mistake, pathlib.Path(source), sources, test, sys.argv[split + 1:])
        findings = [line for line in run.stderr.splitlines()
                    if ', order ' in line or 'exception' in line]
        missed += not findings
        verdict = findings[0] if findings else f'NOT FOUND, the test ended with {run.returncode}'
        print(f'{mistake[0]}: {verdict}', flush=True)
    print(f'{len(mistakes) - missed} of {len(mistakes)} mistakes were found')
    return 1 if missed or not mistakes else 0


if __name__ == '__main__':
    sys.exit(main())
