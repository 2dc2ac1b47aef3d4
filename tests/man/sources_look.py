#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Shows that sources.py notices a missing text, in a file of a made-up package."""

import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True

import sources

TEXT = "#define LIMIT\t(216)\nint once(void) { return FENCE; }\nint twice = twice();\n"
HOLDS = ["once", "FENCE", "one once", "LIMIT = 216", "no fence", "no FENC", "twice = twice"]
GONE = ["gone", "no once", "one twice", "one gone", "LIMIT = 21", "LIMIT = 217", "FENC"]


def faults(folder, comment):
    return list(sources.Named("here", sources.NAMED.fullmatch(comment)).faults(folder))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = folder / "linux/drivers/infiniband/hw/x/main.c"
        file.parent.mkdir(parents=True)
        file.write_text(TEXT, encoding="utf-8")
        for path in ("hw/x/main.c", "hw/x/", "hw/ but y/", "/drivers/"):
            for items, wanted in ((HOLDS, 0), (GONE, len(GONE))):
                found = faults(folder, f'.\\" linux {path}: {", ".join(items)}')
                assert len(found) == wanted, (path, found)
        for path in ("hw/x/other.c", "hw/x/main", "hw/ but x/"):
            found = faults(folder, f'.\\" linux {path}: no once')
            assert len(found) == 1 and " has no " in found[0], (path, found)


main()
