# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Parses the mdoc(7) sources of the manual, as far as the pages use the language."""

import re
import shlex

import generate

ESCAPES = {r"\e": "\\", r"\&": "", r"\-": "-", r"\(aq": "'", r"\(dq": '"', r"\(rs": "\\",
           r"\ ": " ", r"\(ha": "^", r"\(ti": "~"}


def unescape(text):
    """Replaces the roff escapes that the pages may use by the displayed characters."""
    return re.sub(r"\\(\(..|.)", lambda m: ESCAPES.get(m.group(0), m.group(0)), text)


def words(text):
    """Splits the arguments of a macro like roff: double quotes group."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.quotes = True, '"'
    lexer.commenters = lexer.escape = ""
    return [unescape(word) for word in lexer]


class Line:
    """One source line: a macro with arguments, or text with an empty macro."""

    def __init__(self, number, raw):
        self.number, self.raw, self.macro, self.args = number, raw, "", []
        if raw.startswith("."):
            parts = words(raw[1:])
            self.macro, self.args = (parts[0], parts[1:]) if parts else ("", [])

    def text(self):
        """The displayed text, as far as the checks need it."""
        if not self.macro:
            return unescape(self.raw)
        if self.macro in ("Xr", "Fn"):
            end = 2 if self.macro == "Xr" else 1
            return " ".join([self.args[0] + "()", *self.args[end:]])
        return " ".join(self.args).replace("Pf * Fa ", "*").replace("* Fa ", "*")


def joined(parts):
    """Words of several lines as one text, without space before punctuation."""
    return re.sub(r" (?=[.,:;])", "", " ".join(part for part in parts if part))


class Page:
    """A page: its lines by section."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.stem, _, self.volume = name.rpartition(".")
        # Line numbers are those of the source, which lacks the generated title.
        self.lines = [Line(number, raw) for number, raw in enumerate(text.splitlines(), 1 - generate.HEAD.count("\n"))
                      if not raw.startswith('.\\"')]
        self.sections, current = {}, []
        for line in self.lines:
            if line.macro == "Sh":
                current = self.sections.setdefault(" ".join(line.args), [])
            else:
                current.append(line)

    def section(self, title):
        return self.sections.get(title, [])

    def titles(self):
        return {" ".join(line.args) for line in self.lines if line.macro in ("Sh", "Ss")}

    def part(self, title):
        """The lines of a subsection."""
        found, inside = [], False
        for line in self.lines:
            if line.macro in ("Sh", "Ss"):
                inside = " ".join(line.args) == title
            elif inside:
                found.append(line)
        return found

    def names(self):
        return [line.args[0] for line in self.section("NAME") if line.macro == "Nm"]

    def about(self):
        return joined(line.text() for line in self.section("NAME") if line.macro == "Nd")

    def first_sentence(self):
        """The first sentence of DESCRIPTION."""
        text = joined(line.text() for line in self.section("DESCRIPTION"))
        return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]

    def entries(self, section):
        """(names, text) of each list entry whose head refers to pages of the section."""
        found, inside = [], False
        for line in self.lines:
            if line.macro == "It":
                inside = True
                found.append(([name for macro, name, at
                               in zip(line.args, line.args[1:], line.args[2:])
                               if macro == "Xr" and at == section], []))
            elif line.macro:
                inside = False
            elif inside:
                found[-1][1].append(line.text())
        return [(names, joined(text)) for names, text in found if names]

    def prototypes(self):
        """The functions of SYNOPSIS in order: (name, return type, list of parameters)."""
        found, result, name, args = [], "", None, []
        for line in self.section("SYNOPSIS"):
            if line.macro == "Ft":
                result = " ".join(line.args)
            elif line.macro == "Fo":
                name, args = line.args[0], []
            elif line.macro == "Fa":
                args += line.args
            elif line.macro == "Fc":
                found.append((name, result, [] if args == ["void"] else args))
            elif line.macro == "Fn":
                found.append((line.args[0], result, line.args[1:]))
        return found

    def references(self, lines=None):
        """(line, name, section) of each cross reference, including those inside other macros."""
        found = []
        for line in self.lines if lines is None else lines:
            parts = [line.macro] + line.args
            for at, part in enumerate(parts):
                if part == "Xr":
                    name, section = (parts[at + 1:at + 3] + ["", ""])[:2]
                    found.append((line.number, name, section))
        return found

    def literal_blocks(self, title=None):
        """(first line, text) of each literal display of a section; by default of all but
        SYNOPSIS."""
        synopsis = self.section("SYNOPSIS")
        lines = self.section(title) if title else [line for line in self.lines
                                                   if line not in synopsis]
        found, inside = [], None
        for line in lines:
            if line.macro == "Bd" and "-literal" in line.args:
                inside = (line.number + 1, [])
            elif line.macro == "Ed" and inside:
                found.append((inside[0], "\n".join(inside[1]) + "\n"))
                inside = None
            elif inside:
                inside[1].append(unescape(line.raw))
        return found
