#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Makes one PDF of manual pages, with a table of contents, on standard output: pdf.py GROFF MACROS PAGE ..."""

import re
import subprocess
import sys

HEADINGS = {"7": "Overviews", "1": "Programs", "3": "Functions"}


def contents(pages):
    """The first page: a line for each (title, number), with a heading for each section."""
    yield from (".Dd $Mdocdate$", ".Dt CONTENTS 7", ".Os librpma", ".Sh The manual of librpma: contents", ".nf", ".ta 3mR 5m")
    section = None
    for title, number in pages:
        if title[-2] != section:
            section = title[-2]
            yield f".sp\n.ne 3v\n.Sy {HEADINGS[section]}"
        yield f"\t{number}\t{title.lower()}"


def main():
    groff, macros, *files = sys.argv[1:]
    command = [groff, "-Tpdf", "-mdoc", "-mpdf", "-P-pa4", "-dpaper=a4", macros, "-", *files]
    pages = [(file.rpartition("/")[2].replace(".", "(") + ")", 0) for file in files]
    for _ in range(2):  # the second run has the numbers that the first one reports
        done = subprocess.run(command, input="\n".join(contents(pages)).encode(), capture_output=True, check=False)
        lines = done.stderr.decode().splitlines()
        pages = [tuple(match.groups()) for line in lines if (match := re.fullmatch(r"page (\S+) (\d+)", line))]
        pages = [page for page in pages if not page[0].startswith("CONTENTS")]
    messages = [line for line in lines if not line.startswith("page ")]
    if messages:
        print("\n".join(messages), file=sys.stderr)
    sys.stdout.buffer.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
