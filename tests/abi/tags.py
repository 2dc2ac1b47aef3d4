#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that a reader finds each exported function: ctags sees its definition in src/."""

import collections
import sys

sys.dont_write_bytecode = True

import common

OPTIONS = common.ROOT / ".ctags.d" / "exports.ctags"


def check_tags():
    """With the options of this tree alone."""
    if "Universal Ctags" not in common.run(["ctags", "--version"]):
        raise common.Missing("ctags is not Universal Ctags (tools/setup abi installs it)")
    files = sorted(path for path in (common.ROOT / "src").rglob("*") if path.suffix in (".cc", ".hh"))
    lines = common.run(["ctags", "--quiet", "--options=NONE", f"--options={OPTIONS}", "--fields=k", "-f", "-",
                        *files]).splitlines()
    found = collections.Counter(line.split("\t")[0] for line in lines if line.endswith("\tf"))
    wanted = {row[column] for row in common.read_symbols() for column in ("symbol", "implementation")}
    faults = [f"{name}: ctags finds {found[name]} definitions of the function" for name in wanted if found[name] != 1]
    if faults:
        raise common.Fault(common.some(faults))
    return f"ctags finds all {len(wanted)} exported functions"


if __name__ == "__main__":
    common.finish("tags", [check_tags])
