#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Completes the manual pages from contract/: generate.py SOURCE TARGET

Adds the title, the version and the date to each page; the library, the prototypes, the sections ATTRIBUTES, RETURN
VALUES and ERRORS and the first release of each function to a page of functions; the functions that return each rarer code to rpma_errors(7); all
functions, by the sections of the header, to rpma_functions(7); the tables, values and lists of devices.tsv to the pages
about devices; the error codes of the header to rpma_err_2str(3); the addresses in the file contact to librpma(7) and to
the pages of programs. sim/man/pages.py has what the pages of rdma-sim need as well.
"""

import datetime
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path += [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("contract", "sim/man")]

import errors
import pages as sim_pages
import public_header
import sections
import symbols
from pages import HEAD, before, bugs, head, joined, mdoc, quoted, with_devices

NULL = re.compile(r"(\*?\w+) == NULL")
SHARED = 5  # functions with at least this many common entries share a list
FEW = 10    # rpma_errors(7) lists the functions of a code if there are at most this many
LIBRARY = ".Sh LIBRARY\nRemote Persistent Memory Access library (librpma, \\-lrpma)\n"
LAST = ("logging", "return codes", "version", "declarations of releases before 1.0, for their sources")


def read_entries():
    """{function: [(code, words of an entry), ...]} without repetitions."""
    entries = {}
    for row in errors.read_errors():
        if row["decision"] == "never":
            continue
        if not (words := row["words"] or null_words(row["condition"])):
            sys.exit(f"contract/errors.tsv: {row['function']} {row['code']}: {row['condition']!r} has no words")
        found = entries.setdefault(row["function"], [])
        found += [each for text in words.split(" | ") if (each := (row["code"], text)) not in found]
    return entries


def null_words(condition):
    """The words of a condition about NULL arguments only."""
    matches = [NULL.fullmatch(term) for term in condition.split(" || ")]
    return all(matches) and f"{joined([f'`{match[1]}`' for match in matches]).replace(' and ', ' or ')} is NULL."


def named(functions):
    """The lines that name functions before a verb."""
    *others, last = functions
    return [f".Fn {name} ," for name in others[:-1]] + [f".Fn {name}\nand" for name in others[-1:]] + [f".Fn {last}"]


def groups(functions, entries):
    """(functions, their entries) in the order of the page: common ones first, then those of each."""
    owners = {}
    for name in functions:
        for each in entries.get(name, ()):
            owners.setdefault(each, []).append(name)
    common = {}
    for each, names in owners.items():
        if len(names) > 1:
            common.setdefault(tuple(names), []).append(each)
    common = {names: shared for names, shared in common.items() if len(shared) >= SHARED}
    taken = {(name, each) for names, shared in common.items() for name in names for each in shared}
    rest = {}
    for name in functions:
        own = tuple(each for each in entries.get(name, ()) if (name, each) not in taken)
        if own or not entries.get(name):
            rest.setdefault(own, []).append(name)
    return [*common.items(), *((names, own) for own, names in rest.items())]


def errors_section(functions, entries):
    lines, seen = [".Sh ERRORS"], set()
    for names, listed in groups(functions, entries):
        lines += [".Pp"] * (len(lines) > 1) + named(names)
        if not listed:
            lines.append("cannot fail.")
            continue
        lines += [f"{'fail' if len(names) > 1 else 'fails'}{' also' * (names[0] in seen)} with:", ".Bl -tag -width Er"]
        for code, words in listed:
            lines += [f".It Er {code}", *mdoc(words)]
        lines.append(".El")
        seen.update(names)
    if seen:
        lines += [".Pp", ".Xr rpma_errors 7", "lists the remedy for each code."]
    return "\n".join(lines) + "\n"


def with_reference(text, name, section):
    """Adds a page to SEE ALSO, which is sorted by section and name."""
    start, title, also = text.partition(".Sh SEE ALSO\n")
    also, more, rest = also.partition(".Sh ")
    entries = {(int(number), page) for page, number in re.findall(r"^\.Xr (\S+) (\d)", also, flags=re.M)}
    listed = [f".Xr {page} {number}" for number, page in sorted(entries | {(section, name)})]
    return start + title + " ,\n".join(listed) + "\n" + more + rest


def history(functions, releases):
    """The releases that added the functions. The release of most of them is last, without their names."""
    groups = {}
    for name in functions:
        groups.setdefault(releases[name], []).append(name)
    if len(groups) == 1:
        subject = {1: "The function", 2: "Both functions"}.get(len(functions), "The functions")
        return f"{subject} first appeared in release {releases[functions[0]]}.\n"
    most = max(groups, key=lambda release: len(groups[release]))
    most = most if len(groups[most]) > 2 else None
    lines, verb = [], "first appeared in release"
    for release in sorted(groups, key=lambda each: (each == most, symbols.version(each))):
        names = groups[release]
        shown = [name for name in names if name == (setter := name.replace("_get_", "_set_")) or setter not in names]
        if release == most:
            lines.append(f"the other functions {verb} {release},")
        else:
            getters = f" ,\nwith {'their getters' if len(shown) > 1 else 'its getter'}, " if shown != names else "\n"
            lines += [*named(shown)[:-1], f".Fn {shown[-1]}{getters}{verb} {release},"]
        verb = "in release"
    return "\n".join(lines)[:-1] + ".\n"


def names_of(text):
    """The functions of a page; the function of its file name is the first."""
    return re.findall(r"^\.Nm (\w+)", text.partition("\n.Nd ")[0], flags=re.M)


def synopsis(functions, declared):
    lines = []
    for name in functions:
        result, parameters = declared[name]
        lines += [f".Ft {quoted(result)}", f".Fo {name}", *(f".Fa {quoted(each)}" for each in parameters), ".Fc"]
    return "\n".join(lines) + "\n"


def with_functions(text, entries, header):
    """rpma_errors(7): each rarer code with the current functions that return it."""
    old = re.findall(r"\b(rpma_\w+)\([^()]*\)\s*LIBRPMA_DEPRECATED", header)

    def extend(match):
        names = sorted(name for name in entries if name not in old and match[2] in dict(entries[name]))
        if not 0 < len(names) <= FEW:
            return match[0]
        return match[0] + "\n".join(["Returned by", *mdoc(f"{joined([f'{name}(3)' for name in names])}.")]) + "\n"

    return re.sub(r"(^\.It Er (RPMA_E_\w+)\n(?:(?!\.It |\.El).*\n)*)", extend, text, flags=re.M)


def purposes(header):
    """The functions by the sections of the header: [(title, names)]."""
    parts = re.split(r"^/\* ---- (.*?) -+ \*/$", header, flags=re.M)[1:]
    plain = [re.sub(r"/\*.*?\*/|^ *(?:#|typedef).*?[^\\]$", "", text, flags=re.S | re.M) for text in parts[1::2]]
    found = [(title, names) for title, text in zip(parts[::2], plain)
             if (names := re.findall(r"^\w[\w *]*?\b(rpma_\w+)\(", text, flags=re.M))]
    return sorted(found, key=lambda section: LAST.index(section[0]) if section[0] in LAST else -1)


def subjects(text):
    """{function of a page: the title of the subsection with a sentence that begins with it, or the page's .Nd}"""
    names, about = names_of(text), re.search(r"^\.Nd (.*)", text, flags=re.M)[1]
    start, *parts = re.split(r"^\.Ss ", text.partition(".Sh DESCRIPTION\n")[2].partition("\n.Sh ")[0], flags=re.M)
    found = dict.fromkeys(re.findall(r"\bFn (\w+)", start), about)
    for part in parts:
        title, _, body = part.partition("\n")
        for sentence in re.findall(r"(?:\A|[.:]\n|\.Pp\n)((?:\.Fn \w+(?: ,)?\n(?:and\n)?)+)", body):
            for name in re.findall(r"Fn (\w+)", sentence):
                found.setdefault(name, re.sub(r"^[A-Z](?=[a-z]+\b)", lambda first: first[0].lower(), title))
    return {name: found.get(name) or found.get(name.replace("_get_", "_set_")) or about for name in names}


def by_purpose(texts, header):
    """The subsections of rpma_functions(7): functions with the same subject share a line."""
    subject = {name: (page, about) for page, text in texts.items() if page.endswith(".3")
               for name, about in subjects(text).items()}
    lines = []
    for title, names in purposes(header):
        lines += [f".Ss {title[0].upper()}{title[1:]}", ".Bl -tag -width Ds -compact"]
        shown = {}
        for name in names:
            shown.setdefault(subject[name], []).append(f"Xr {name} 3")
        for (_, about), links in shown.items():
            lines += [f".It {' , '.join(links)}", about]
        lines.append(".El")
    return "\n".join(lines) + "\n"


def release_date(source):
    """That of the latest release in NEWS.md."""
    news = (source / "NEWS.md").read_text(encoding="utf-8")
    return datetime.date.fromisoformat(re.search(r"^Released on ([\d-]+)", news, flags=re.M)[1])


def own_pages(source):
    """{name: text} of the pages of this folder."""
    entries = read_entries()
    header = (source / "include/librpma.h").read_text(encoding="utf-8")
    texts = {path.name: with_devices(public_header.completed(path.read_text(encoding="utf-8"))) for path in sorted(source.glob("man/*.[137]"))}
    declared, made, start = public_header.prototypes(), {}, head(source, "librpma", release_date(source))
    releases, rows = symbols.first_releases(), sections.read_attributes()
    for name, text in texts.items():
        if name.endswith(".3"):
            functions = names_of(text)
            for section, part in (("SYNOPSIS", LIBRARY), ("DESCRIPTION", synopsis(functions, declared)),
                                  ("SEE ALSO", errors_section(functions, entries))):
                text = before(text, section, part)
            text = sections.with_sections(text, functions, declared, rows)
            start_of, _, rest = text.partition(".Sh HISTORY\n")
            made[name] = f"{start_of}.Sh HISTORY\n{history(functions, releases)}{rest}"
            if ".Xr rpma_errors 7\n" in made[name]:
                made[name] = with_reference(made[name], "rpma_errors", 7)
    for name in ("librpma.7", *(name for name in texts if name.endswith(".1"))):
        made[name] = texts[name] + bugs(source)
    made["rpma_errors.7"] = with_functions(texts["rpma_errors.7"], entries, header)
    made["rpma_functions.7"] = before(texts["rpma_functions.7"], "SEE ALSO", by_purpose(texts, header))
    return {name: start.replace("{title}", name.upper().replace(".", " ")) + text for name, text in (texts | made).items()}


def pages(source):
    """{name: text} of all pages, with those of rdma-sim."""
    return own_pages(source) | sim_pages.pages()


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    for name, text in own_pages(source).items():
        (target / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
