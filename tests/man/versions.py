# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks that statements about releases of Linux and rdma-core name sources of these releases."""

import re

import mdoc
from sources import COMMIT, SOURCE_FORMAT, SourceReference, number, texts

STATEMENT = re.compile(r"\b(Linux|rdma-core) (?:from |before |since |up to )?(?:release )?(\d+(?:\.\d+)?)(?![\d.]*\d)")
RELEASE = re.compile(r"\brelease (\d+\.\d+)\b(?!\.\d)")
RANGE = re.compile(r"\b(?:[Bb]efore|[Ss]ince|[Ff]rom|[Uu]p to|[Uu]ntil|later|needs headers of)\b")
# Sentences about releases that ran here, not about their sources.
RAN = re.compile(r"\bthe sources of\b|\brecorded from\b|\bDebian 1\d \(|\bruns? \b|`--kernel old")


def statements(sentence):
    """(linux or rdma-core, release) of each release that a sentence names."""
    found = {(kind.lower(), release) for kind, release in STATEMENT.findall(sentence)}
    return found | {("linux", release) for release in RELEASE.findall(sentence) if "Linux" in sentence}


def paragraphs(name, text):
    """(text, comments) of each paragraph of a page or document. Comments before a paragraph belong to it."""
    parts, comments, is_page = [], [], not name.endswith(".md")
    for raw in [*text.splitlines(), ".Pp"]:
        if raw.startswith(('.\\"', "<!--")):
            comments.append(raw)
            continue
        line = mdoc.Line(0, raw) if is_page else None
        ends = line.macro in ("Pp", "It", "Ss", "Sh", "Bl", "El", "Bd", "Ed") if is_page else not raw
        if ends and parts:
            # The comments after the last line of the text belong to the next paragraph.
            yield mdoc.joined(part for part in parts if isinstance(part, str)), [
                part for part in parts if not isinstance(part, str)]
            parts = []
        parts += [(comment,) for comment in comments]
        comments = []
        if not ends:
            parts.append(line.text() if is_page else raw)


def check_versions(book):
    """
    A statement about a release of Linux or rdma-core names the range of releases for which it holds. The comments of
    its paragraph name a source of that release, or sources of an older and of a newer one; then the release is the
    next one of rdma-core, or a comment names the commit of Linux.
    """
    for path in texts(book.source):
        where = path.relative_to(book.source)
        for text, comments in paragraphs(path.name, path.read_text(encoding="utf-8")):
            matches = [SOURCE_FORMAT.fullmatch(line) for line, in comments]
            named_here = [SourceReference(where, match) for match in matches if match]
            commits = {match[1] for line, in comments if (match := COMMIT.match(line))}
            for sentence in re.split(r"(?<=[.:;?])\s", text):
                for kind, release in sorted(statements(sentence)) if not RAN.search(sentence) else ():
                    known = {each.release for each in named_here if each.kind == kind}
                    yield from version_faults(where, sentence, (kind, release), known, release in commits)


def version_faults(where, sentence, statement, known, has_commit):
    kind, release = statement
    older, newer = ([each for each in known if (each < number(release)) == is_older] for is_older in (True, False))
    if not RANGE.search(sentence):
        yield f"{where}: name the range of releases: {sentence}"
    elif number(release) in known and (not older or kind == "linux"):
        return
    elif not (older and newer):
        yield f"{where}: comments must name a source of {kind} {release}, or of releases before and after it: {sentence}"
    elif kind == "rdma-core" and (max(older)[0] + 1, ) != number(release):
        yield f"{where}: comments must name a source of rdma-core {int(release) - 1}: {sentence}"
    elif kind == "linux" and not has_commit:
        yield f"{where}: a comment must name the commit of Linux {release}: {sentence}"
