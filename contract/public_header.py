#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The functions and error codes that include/librpma.h declares, which is the only list of the codes.

usage: public_header.py OUT.h         writes them as the macro RPMA_ERROR_CODES, for C and C++
       public_header.py TEMPLATE OUT  repeats each line of the template that contains @name@ for each code
"""

import pathlib
import re
import sys

HEADER = pathlib.Path(__file__).resolve().parent.parent / "include" / "librpma.h"
CODE = re.compile(r"^#define (?P<name>RPMA_E_\w+) \((?P<value>-\d+)\) +/\* (?P<text>[^:*]+?)(?:: (?P<detail>[^*]+))? \*/$", re.M)
MACRO = """\
// Made from librpma.h by public_header.py.
#ifndef RPMA_ERROR_CODES
// X(code, text, is_failure) for each error code.
#define RPMA_ERROR_CODES(X) \\
{rows}
#endif
"""


def read_codes():
    """The error codes in the order of the header: name, value, text, detail (or None), is_failure."""
    failures, _, others = HEADER.read_text(encoding="utf-8").partition("/* Would-block results")
    codes = [match.groupdict() | {"is_failure": is_failure}
             for is_failure, part in ((True, failures), (False, others)) for match in CODE.finditer(part)]
    if len(codes) != len(re.findall(r"^#define RPMA_E_", failures + others, flags=re.M)):
        sys.exit(f"{HEADER}: an RPMA_E_* is not of the form: #define NAME (VALUE) /* TEXT: DETAIL */")
    return codes


def without_comments(text):
    """Without preprocessor lines, too."""
    return re.sub(r"/\*.*?\*/|^ *#(?:[^\n]*\\\n)*[^\n]*$", " ", text, flags=re.S | re.M)


def prototypes():
    """{function: (result, parameters)}, the parameters as in "const char *addr"."""
    found = re.findall(r"^(\w[\w ]*?[ *]+)(rpma_\w+)\(([^()]*)\)[^;{}]*;",
                       without_comments(HEADER.read_text(encoding="utf-8")), flags=re.M)
    return {name: (result.strip(), [" ".join(each.split()) for each in parameters.split(",")])
            for result, name, parameters in found if not result.startswith("typedef ")}


def parameters_of(prototype):
    """(type, name, "" or "[elements]") of each parameter."""
    return [re.fullmatch(r"(.*?[ *])(\w+)((?:\[\d+\])?)", parameter).groups() for parameter in prototype[1] if parameter != "void"]


def completed(template):
    """The template with a line for each code in place of one with @name@."""
    def repeated(match):
        return "".join(re.sub(r"@(\w+)@", lambda key: str(code.get(key[1], key[0])), match[0]) for code in read_codes())
    return re.sub(r"^.*@name@.*\n", repeated, template, flags=re.M)


def main():
    if len(sys.argv) == 2:
        rows = " \\\n".join(f'    X({code["name"]}, "{code["text"]}", {str(code["is_failure"]).lower()})' for code in read_codes())
        text = MACRO.replace("{rows}", rows)
    elif len(sys.argv) == 3:
        text = completed(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    else:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[-1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
