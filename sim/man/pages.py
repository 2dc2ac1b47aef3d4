#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the rdma-sim developers

"""Completes the manual pages of rdma-sim: pages.py TARGET

Adds the title, the version and the date of the page to each page; the tables, values and lists of devices.tsv; faults of
model/faults.cc that a page does not describe; the checks of client/preload/strict_checks.hh; the packages of tests/programs/packages.tsv to rdma-sim(1); and the addresses in the file contact to the pages of section 1.
"""

import datetime
import pathlib
import re
import sys

sys.dont_write_bytecode = True
SIM = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(SIM / "device"))

import devices

MACROS = [(r"(?P<a>[\w-]+)\((?P<b>\d)\)", "Xr {a} {b}"), (r"(?P<a>\w+)\(\)", "Fn {a}"),
          (r"§(?P<a>.+)", "Sx {a}"), (r"`errno`", "Va errno"), (r"`(?P<a>\w+ \w+)`", 'Vt "{a}"'),
          (r"`\*(?P<a>\w+)`", "Pf * Fa {a}"), (r"`(?P<a>\w+)`", "Fa {a}"),
          (r"(?P<a>[A-Z]+_E_\w+|E[A-Z]{3,})", "Er {a}"), (r"(?P<a>[A-Z]\w*_\w+|NULL)", "Dv {a}")]
WORD = re.compile(r"(?P<before>\(?)(?P<core>`[^`]+`|[\w§-]+\(\d?\)|.*?)(?P<after>[.,:;)]*)")
WIDTH = 78
# Without the first string, groff 1.22 prints the volume of BSD. The spaces of the
# next two separate them from long names. A hyphen would split names that readers search.
HEAD = """.Dd {date}
.ds doc-volume-operating-system
.ds doc-volume-ds-3 \\ \\ Library Functions Manual\\ \\ \\&
.ds doc-volume-ds-7 \\ \\ Miscellaneous Information Manual\\ \\ \\&
.nr doc-hyphen-flags 0
.Dt {title}
.Os "{project} {version}"
"""
PROGRAMS = """.Ss Programs of Debian 12
Each package of Debian 12 that depends on libibverbs1 or librdmacm1 was tried, and programs in
Go and Rust.
"""
BUGS = """.Sh BUGS
Report bugs at
.Lk {issues} ,
and vulnerabilities by mail to
.Mt {mail} .
"""


def joined(names):
    return " and ".join(", ".join(names).rsplit(", ", 1))


def macro(core):
    """The mdoc macro of a word, or None for plain text."""
    for pattern, form in MACROS:
        if match := re.fullmatch(pattern, core):
            return form.format(**match.groupdict())
    return None


def mdoc(words):
    """The lines of a text, in which `name` is an argument."""
    lines, text = [], ""
    for word in re.findall(r"(?:`[^`]*`|\S)+", words):
        match = WORD.fullmatch(word)
        call = macro(match["core"])
        if call or len(text) + len(word) > WIDTH:
            lines += [text] if text else []
            text = ""
        if call:
            call, after = (f"Pq {call}", match["after"][1:]) if match["before"] else (call, match["after"])
            lines.append(" ".join([f".{call}", *after]))
        else:
            text = f"{text} {word}".lstrip()
            if word.endswith("."):
                lines, text = [*lines, text], ""
    return lines + [text] * bool(text)


def quoted(words):
    return f'"{words}"' if " " in words else words


def before(text, section, part):
    return text.replace(f"\n.Sh {section}\n", f"\n{part}.Sh {section}\n", 1)


def of_cell(value):
    """The value without an example; that of a feature which the device lacks is a dash."""
    value = devices.of_table(value)
    return r"\(en" if value == "no" else value


def with_devices(text):
    """The text with rows of tables, values and lists of drivers from devices.tsv: contract/README.md."""
    def rows(match):
        columns = [devices.cells(key) for key in match[1].split()]
        return "".join(f".It {' Ta '.join(map(quoted, (name, *(column[name] for column in columns))))}\n"
                       for name in columns[0]).replace("Ta no", r"Ta \(en")

    def profiles(match):
        return "".join(f".It {' Ta '.join(map(quoted, (name, *(of_cell(device[key]) for key in match[1].split()))))}\n"
                       for name, device in simulated.items())

    simulated = {name: device for name, device in devices.read_devices().items() if device["simulated"] == "yes"}
    text = re.sub(r'^\.\\" devices: (.*)\n', rows, text, flags=re.M)
    text = re.sub(r'^\.\\" profiles: (.*)\n', profiles, text, flags=re.M)
    text = text.replace("@longest_name@", max(simulated, key=len))
    text = text.replace("@kernel_drivers@", joined(devices.kernel_drivers()))
    text = re.sub(r"@([\w-]+):([\w.]+)@", lambda match: devices.read_devices()[match[1]][match[2]], text)
    return re.sub(r"@([\w.]+=\w+)@", lambda match: joined(devices.drivers_with(match[1])), text)


FAULT = re.compile(r'\{\.name = "(?P<name>[a-z-]+)",(?P<row>(?:(?!\{\.name).)*)', re.S)


def with_faults(text):
    """The text with those faults of model/faults.cc that a list does not describe, before the comment at its end."""
    def missing(match):
        rows, table = "", (SIM / "model/faults.cc").read_text(encoding="utf-8")
        for fault in FAULT.finditer(table):
            members = {key: "".join(re.findall(r'"([^"]*)"', value))
                       for key, value in re.findall(r'\.(arguments|text|explored) = ((?:"[^"]*"\s*)+)', fault["row"])}
            if re.search(rf"^\.It Cm {fault['name']}\b(?!-)", text, flags=re.M) or match[1] and "explored" not in members:
                continue
            words = [f"Op Ar {word.strip('[]')}" if "[" in word else f"Ar {word}" for word in members["arguments"].split()]
            rows += f".It {' '.join(['Cm ' + fault['name'], *([] if match[1] else words)])}\n{members['text'][0].upper()}{members['text'][1:]}.\n"
        return rows

    return re.sub(r'^\.\\" faults(: explored)?\n', missing, text, flags=re.M)


CHECK = re.compile(r'CHECK\(\w+, "([a-z-]+)", "([^"]+)",[ \\\n]+"([^"]+)"\)')


def with_checks(text):
    """The text with the checks of --strict before the end of their list."""
    table = (SIM / "client/preload/strict_checks.hh").read_text(encoding="utf-8")
    rows = "".join(f".It Cm {name}\n" + "\n".join(mdoc(f"{what[0].upper()}{what[1:]}: {remedy}.")) + "\n"
                   for name, what, remedy in CHECK.findall(table))
    return text.replace('.\\" checks\n', rows)


def head(source, project, date):
    """The first lines of each page of a project, without its title."""
    build = (source / "meson.build").read_text(encoding="utf-8")
    version = re.search(r"\bversion: '(.+)'", build)[1]
    return HEAD.replace("{project}", project).replace("{version}", version).replace("{date}", f"{date:%B} {date.day}, {date.year}")


def programs():
    """The packages that were tried, with those that the same result covers."""
    lines = [".Bl -tag -width Ds"]
    for row in (SIM / "tests/programs/packages.tsv").read_text(encoding="utf-8").splitlines():
        if row.startswith("#"):
            continue
        package, version, others, runs, fails = row.split("\t")
        lines.append(f".It {joined([f'{package} {version}', *others.replace('-', '', others == '-').split()])}")
        lines += mdoc(f"Runs: {runs}.") * (runs != "-") + mdoc(f"Does not run: {fails}.") * (fails != "-")
    return PROGRAMS + "\n".join([*lines, ".El"]) + "\n"


def bugs(source):
    """The section BUGS, with the addresses in the file contact."""
    lines = (source / "contact").read_text(encoding="utf-8").splitlines()
    return BUGS.format(**dict(line.split(" ", 1) for line in lines if not line.startswith("#")))


def pages():
    """{name: text} of all pages. The first line of a source is its date."""
    made = {}
    for path in sorted((SIM / "man").glob("*.[17]")):
        date, _, text = path.read_text(encoding="utf-8").partition("\n")
        text = with_checks(with_faults(with_devices(text)))
        if path.suffix == ".1":
            text += bugs(SIM)
        if path.name == "rdma-sim.1":
            text = before(text, "ENVIRONMENT", programs())
        start = head(SIM, "rdma-sim", datetime.datetime.strptime(date, '.Dd %B %d, %Y'))
        made[path.name] = start.replace("{title}", path.name.upper().replace(".", " ")) + text
    return made


def main():
    target = pathlib.Path(sys.argv[1])
    for name, text in pages().items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
