#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers
"""Show that exercised.py finds gaps: give it a contract with more than the tests exercise.

usage: exercised_check.py exercised.py ARGUMENTS OF exercised.py...
"""
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

# A row that no test knows, and rows with one cause or errno more than happened.
CHANGES = [
    ("rpma_peer_delete\tRPMA_E_INVAL\tpeer_ptr == NULL",
     "rpma_peer_delete\tRPMA_E_INVAL\tpeer_ptr == &peer_ptr", "no test made it happen"),
    ("rpma_recv\tRPMA_E_PROVIDER\tibv_post_recv() failed",
     "rpma_recv\tRPMA_E_PROVIDER\tibv_post_recv() or ibv_poll_recv() failed",
     "no test made it happen"),
]
GAPS_OF_A_ROW = [
    ("RPMA_E_INVAL\tconn == NULL || conn == 1", ("conn == NULL", ""), "not by conn == 1"),
    ("RPMA_E_PROVIDER\tibv_a() or ibv_b() failed", ("ibv_a()", "EIO"), "not by ibv_b()"),
    ("RPMA_E_NO_EVENT\terrno in {EAGAIN, ENODATA}", ("x", "EAGAIN"), "not with errno ENODATA"),
    ("RPMA_E_PROVIDER\terrno not in {EAGAIN}", ("x", "EAGAIN"), "not with an errno other than"),
]


def main():
    script, arguments = sys.argv[1], sys.argv[2:]
    errors = next(i for i, word in enumerate(arguments) if word.endswith("errors.tsv"))
    with open(arguments[errors], encoding="utf-8") as table:
        text = table.read()
    for old, new, _ in CHANGES:
        if old not in text:
            sys.exit(f"the contract has no longer the row {old!r}: choose another in {__file__}")
        text = text.replace(old, new)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as doctored:
        doctored.write(text)
        doctored.flush()
        arguments[errors] = doctored.name
        run = subprocess.run([sys.executable, script, *arguments], capture_output=True,
                             text=True, check=False)
    found = [line for line in run.stdout.splitlines() if line.startswith("not exercised")]
    if run.returncode == 0 or len(found) != len(CHANGES):
        sys.exit(f"{len(CHANGES)} gaps were made, {len(found)} found: repair exercised.py\n"
                 + run.stdout + run.stderr)

    sys.path.insert(0, script.rsplit("/", 1)[0])
    import exercised  # pylint: disable=import-outside-toplevel
    for row, note, gap in GAPS_OF_A_ROW:
        code, condition = row.split("\t")
        lacking, _ = exercised.missing({"code": code, "condition": condition}, {note}, False)
        if len(lacking) != 1 or not lacking[0].startswith(gap):
            sys.exit(f"{row!r} gives {lacking} instead of {gap!r}: repair exercised.py")
    print(f"{len(CHANGES) + len(GAPS_OF_A_ROW)} gaps found")


if __name__ == "__main__":
    main()
