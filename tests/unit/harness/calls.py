#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Make every function of the public header callable by name, for tests driven by tables.

usage: calls.py OUT.c
"""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "contract"))

import public_header


def call(name, params):
    """Return a function that casts machine words to one prototype, and its description."""
    arguments = ", ".join(
        f"({kind})word[{i}]" for i, (kind, _) in enumerate(params))
    described = ", ".join(f'{{"{kind}", "{what}"}}' for kind, what in params)
    # The function is looked up at run time, so that an executable also runs over a library
    # without it.
    return (f"static int call_{name}(const uintptr_t *word)\n{{\n"
            f"    static _Thread_local __typeof__({name}) *found;\n"
            f"    if (!found)\n"
            f"        found = (__typeof__(found))dlsym(RTLD_DEFAULT, \"{name}\");\n"
            f"    return found ? found({arguments}) : CALLS_NO_FUNCTION;\n}}\n",
            f'    {{"{name}", call_{name}, {len(params)}, {{{described}}}}},\n')


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    calls = [call(name, [(kind.strip() + (" *" if elements else ""), parameter)
                         for kind, parameter, elements in public_header.parameters_of(prototype)])
             for name, prototype in public_header.prototypes().items() if prototype[0] == "int"]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("// Made from librpma.h by calls.py\n#include \"calls.h\"\n\n#include <dlfcn.h>\n\n")
        out.write("\n".join(body for body, _ in calls))
        out.write("\nconst struct call_by_name calls_by_name[] = {\n")
        out.write("".join(row for _, row in calls))
        out.write("    {0},\n};\n")


if __name__ == "__main__":
    main()
