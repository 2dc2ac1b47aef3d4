# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Functions that the ABI checks share: tables of the contract, commands, and the end of a check."""

import csv
import pathlib
import re
import shlex
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADER = ROOT / "include" / "librpma.h"
SKIPPED = 77
SONAME = "librpma.so.0"
sys.path.append(str(ROOT / "contract"))

import public_header  # noqa: E402
from symbols import newest_release, original_releases, read_later, read_symbols, version  # noqa: E402, F401


# Meson ends a test with SIGTERM; a normal exit also removes the temporary files.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Fault(Exception):
    """The check has found a fault; the text describes it."""


class Missing(Exception):
    """The check cannot run here; the text names the missing part."""


def read_table(path):
    with open(path, encoding="utf-8") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


TYPES, SYMBOLS = ROOT / "contract" / "types.tsv", ROOT / "contract" / "symbols.tsv"


def read_types():
    """The rows of types.tsv, and those of error codes that it lacks until the next release."""
    rows = read_table(TYPES)
    listed = {row["name"] for row in rows}
    return rows + [{"kind": "macro", "name": code["name"], "member": "", "type_or_expression": f"({code['value']})",
                    "value": code["value"], "first_release": newest_release(), "last_release": ""}
                   for code in public_header.read_codes() if code["name"] not in listed]


def write_tables(folder):
    """Writes symbols.tsv and types.tsv with the functions and error codes of a new release."""
    for path, rows in ((SYMBOLS, read_later()), (TYPES, read_types())):
        with open(folder / path.name, "w", encoding="utf-8", newline="") as table:
            writer = csv.DictWriter(table, rows[0], delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
            writer.writeheader()
            writer.writerows(rows)


def project_version():
    text = (ROOT / "meson.build").read_text(encoding="utf-8")
    return re.search(r"^  version: '([0-9.]+)',$", text, re.M).group(1)


def symbols_of(release, symbols):
    """The functions of a release and their common version node."""
    rows = [row for row in symbols if release in row["releases"]]
    nodes = {row["node"] for row in rows}
    if len(nodes) != 1:
        raise Fault(f"release {release}: {len(nodes)} version nodes in symbols.tsv, wanted one")
    return sorted(row["symbol"] for row in rows), nodes.pop()


def read_prototypes():
    """{name: prototype} of the header, each prototype on one line. released.py compares them with
    the released interfaces, which abidw has written."""
    return {name: f"{result}{'' if result.endswith('*') else ' '}{name}({', '.join(parameters)});"
            for name, (result, parameters) in public_header.prototypes().items()}


def summary_of(faults, limit=12):
    """The first of many faults, one per line."""
    rest = [f"… and {len(faults) - limit} more"] if len(faults) > limit else []
    return "\n  ".join(sorted(faults)[:limit] + rest)


def expect_same(found, wanted, more, less):
    """Raises a fault for each name that one of the sets lacks."""
    faults = [f"{more}: {name}" for name in found - wanted] + [f"{less}: {name}" for name in wanted - found]
    if faults:
        raise Fault(summary_of(faults))


def run(command, env=None, cwd=None, check=True):
    """Returns the output of a command; a failure is a fault with the first lines of the output."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, env=env, cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1800,
                              check=False)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # by the folders of PATH
        raise Missing(f"{command[0]} is not installed (tools/setup abi does that)") from None
    except subprocess.TimeoutExpired:
        raise Fault(f"no end after 1800 s: {shlex.join(command)}") from None
    if check and done.returncode != 0:
        text = "\n  ".join(done.stdout.strip().splitlines()[:12])
        raise Fault(f"status {done.returncode}: {shlex.join(command)}\n  {text}")
    return done if not check else done.stdout


def finish(name, checks):
    """Runs the checks, prints each fault, and ends the program with the overall status.

    A check is a function that returns a summary, raises Fault or raises Missing.
    """
    status = 0
    for check in checks:
        try:
            print(f"{name}: {check()}", flush=True)
        except Fault as fault:
            print(f"{name}: FAULT: {fault}", flush=True)
            status = 1
        except Missing as missing:
            print(f"{name}: SKIPPED: {missing}: this was not checked", flush=True)
            status = status or SKIPPED
    sys.exit(status)
