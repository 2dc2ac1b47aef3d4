#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""
hpp_functions.py SOURCE: each function of librpma.h is called by librpma.hpp, or docs/cpp.md names
it as one that the header leaves to C. Deprecated functions are left out.
"""

import pathlib
import re
import sys


def main():
    source = pathlib.Path(sys.argv[1])
    header = re.sub(r"/\*.*?\*/|^#(?:[^\n]*\\\n)*[^\n]*$", "", (source / "include" / "librpma.h").read_text(),
                    flags=re.DOTALL | re.MULTILINE)
    declared = {name for statement in header.split(";") if "LIBRPMA_DEPRECATED" not in statement
                for name in re.findall(r"^(?:int|uint32_t|const char \*)\s*\*?(rpma_\w+)\(", statement, re.MULTILINE)}
    code = re.sub(r"//.*", "", (source / "programs" / "common" / "librpma.hpp").read_text())
    called = set(re.findall(r"\brpma_\w+(?=[(>,])", code))
    page = (source / "docs" / "cpp.md").read_text()
    sentence = re.search(r"The header leaves to C:(.*?)\n\n", page, re.DOTALL)
    left = set(re.findall(r"rpma_\w+", sentence.group(1))) if sentence else set()
    faults = [f"librpma.hpp calls no {name}()" for name in sorted(declared - called - left)]
    faults += [f"docs/cpp.md leaves {name}() to C, but librpma.hpp calls it, or there is none"
               for name in sorted((left & called) | (left - declared))]
    if len(declared) < 100:
        faults.append(f"{len(declared)} functions found in librpma.h: its declarations look otherwise now")
    print("\n".join(faults) or f"{len(declared)} functions, {len(left)} of them left to C")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
