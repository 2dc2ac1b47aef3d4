# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Runs the programs of rpma_pitfalls(7): each wrong one has to lose its data, no mended one may.

run.py SIMULATOR MODULES
"""

import re
import subprocess
import sys

LOST = "the record was safe, and is lost"
FINDINGS = {1: LOST, 2: LOST, 3: LOST, 4: "the record was called visible, and it is not",
            5: "the pointer is there, the record is not", 6: "the number 1 was safe, and 0 is found",
            7: LOST, 8: LOST, 9: LOST, 10: LOST}


def cases():
    """(entry, its form, options, the finding or an empty string)"""
    for entry, finding in FINDINGS.items():
        if entry == 2:  # one program and two tests of it, one of which notices nothing
            yield entry, "wrong", ["--exhaustive", "2", "--kinds", "kill"], ""
            yield entry, "wrong", ["--exhaustive", "1", "--kinds", "power"], finding
            continue
        yield entry, "wrong", ["--exhaustive", "1"], finding
        yield entry, "right", ["--exhaustive", "1"], ""
        yield entry, "right", ["--random", "2000"], ""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    simulator, modules = sys.argv[1:]
    missed = 0
    for entry, form, options, expected in cases():
        command = [simulator, "--modules", modules, *options, f"pitfall-{entry}-{form}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"FOUND: (?:\w+: )?(.*)", done.stdout)
        good = (found and found[1] == expected) if expected else done.returncode == 0
        missed += not good
        print(f"{'' if good else 'NOT AS EXPECTED: '}{' '.join(command[3:])}: "
              f"{(done.stdout.splitlines() or ['no output'])[-2 if found else -1]}{done.stderr}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
