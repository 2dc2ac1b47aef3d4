#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Writes what librpma.h declares, and the completion of libibverbs, as tables of Python.

usage: declarations.py OUT COMPILER...
COMPILER... compiles C, and finds <infiniband/verbs.h>.
"""

import pathlib
import pprint
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "contract"))

import public_header

MODULE = '''\
"""The declarations of librpma.h. Made by declarations.py."""

VERSION = {version!r}
# The codes that are failures; the others are results, which the last failure does not describe.
FAILURES = {failures}
CONSTANTS = {constants}
# The members of each structure: type, name, number of elements (None: no array).
STRUCTURES = {structures}
# The result of each function, and the type and name of each parameter.
FUNCTIONS = {functions}
'''
# From <infiniband/verbs.h>: rpma_cq_get_wc() writes these.
OF_VERBS = {"ibv_wc", "ibv_wc_status", "ibv_wc_opcode", "ibv_wc_flags"}


def declared(text, words):
    """(name, body) of each enumeration or structure with a body."""
    return re.findall(rf"^(?:{words}) (\w*) ?\{{((?:[^{{}}]|\{{[^{{}}]*\}})*)\}};", text, flags=re.M)


def enumerators(body, known):
    following = 0
    for name, value in re.findall(r"(\w+)(?:\s*=\s*([^,]+))?\s*(?:,|$)", body.strip()):
        following = evaluate(value, known) if value else following
        known[name] = following
        following += 1


def evaluate(expression, known):
    """The value of a constant expression of C that is one of Python, too."""
    return eval(" ".join(expression.split()), {"__builtins__": {}}, known)  # pylint: disable=eval-used # of our own header


def constants(header, verbs):
    known = {}
    for name, value in re.findall(r"^#define ((?:RPMA)_\w+) +(.*?)(?: +/\*.*)?$", header, flags=re.M):
        if re.fullmatch(r"\(?[-\w <|]+\)?", value) and value != "(NULL)":
            known[name] = evaluate(value, known)
    for _, body in declared(public_header.without_comments(header), "enum"):
        enumerators(body, known)
    for name, body in declared(verbs, "enum"):
        if name in OF_VERBS or "IBV_WC_IP_CSUM" in body:
            enumerators(body, known)
    return known


def members(body):
    # Both members of the union in struct ibv_wc are 32 bits.
    body = re.sub(r"union \{\s*(.*?;)[^{}]*\};", r"\1", body, flags=re.S)
    return [(" ".join(kind.split()).replace(" *", "*"), name, int(elements) if elements else None)
            for kind, name, elements in re.findall(r"([\w ]+?[ *]+)(\w+)(?:\[(\d+)\])?;", body)]


def structures(header, verbs):
    found = declared(public_header.without_comments(header), "struct") + [row for row in declared(verbs, "struct") if row[0] in OF_VERBS]
    return {name: members(body) for name, body in found}


def functions():
    return {name: (prototype[0].replace(" *", "*"), [(kind.strip().replace(" *", "*") + elements, parameter)
                                                     for kind, parameter, elements in public_header.parameters_of(prototype)])
            for name, prototype in public_header.prototypes().items()}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    header = public_header.HEADER.read_text(encoding="utf-8")
    verbs = subprocess.run([*sys.argv[2:], "-E", "-P", "-x", "c", "-"], input="#include <infiniband/verbs.h>\n", check=True,
                           stdout=subprocess.PIPE, text=True).stdout
    verbs = re.sub(r"\s*\n\s*(?=\{)", " ", verbs)
    known = constants(header, verbs)
    failures = {int(code["value"]) for code in public_header.read_codes() if code["is_failure"]}
    tables = {"failures": failures, "constants": known, "structures": structures(header, verbs), "functions": functions()}
    version = ".".join(str(known[f"RPMA_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH"))
    text = MODULE.format(version=version, **{name: pprint.pformat(table, width=120, sort_dicts=False)
                                            for name, table in tables.items()})
    pathlib.Path(sys.argv[1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
