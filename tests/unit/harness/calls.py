#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Make every function of the public header callable by name, for tests driven by tables.

usage: calls.py librpma.h OUT.c
"""
import re
import sys

PROTOTYPE = re.compile(r"^(int|const char \*)\s*(rpma_\w+)\(([^;{}]*?)\)\s*"
                       r"(?:LIBRPMA_DEPRECATED\(\"[^\"]*\"\))?;", re.MULTILINE)
PARAMETER = re.compile(r"^(?P<type>.*?[\s*])(?P<name>\w+)(?P<array>\[\d+\])?$")


def parameters(text):
    """Return (type, name) for each parameter; arrays are pointers."""
    result = []
    for parameter in re.sub(r"\s+", " ", text).split(", "):
        match = PARAMETER.match(parameter.strip())
        if not match:
            sys.exit(f"calls.py: not understood: {parameter!r}: simplify the prototype")
        kind = match["type"].strip() + (" *" if match["array"] else "")
        result.append((kind.replace("* *", "**"), match["name"]))
    return result


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
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as header:
        text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.DOTALL)
    found = [(name, parameters(params)) for kind, name, params in PROTOTYPE.findall(text)
             if kind == "int"]
    if len(found) < 80:
        sys.exit(f"calls.py: only {len(found)} prototypes found: adapt PROTOTYPE to the header")
    calls = [call(name, params) for name, params in found]
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("// Made from librpma.h by calls.py\n#include \"calls.h\"\n\n#include <dlfcn.h>\n\n")
        out.write("\n".join(body for body, _ in calls))
        out.write("\nconst struct call_by_name calls_by_name[] = {\n")
        out.write("".join(row for _, row in calls))
        out.write("    {0},\n};\n")


if __name__ == "__main__":
    main()
