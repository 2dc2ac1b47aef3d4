# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The common parts of all pages of the site: the frame, the table of contents, links from names."""

import html
import re

FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}style.css">
<script src="{root}search.js" defer></script>
</head>
<body class="{kind}" data-root="{root}">
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="home" href="{root}index.html">librpma <span class="version">{version}</span></a>
<nav aria-label="Site">
<a href="{root}librpma.7.html">Overview</a>
<a href="{root}rpma_functions.7.html">Functions</a>
<a href="{root}index.html#guides">Guides</a>
<a href="{root}index.html#examples">Examples</a>
</nav>
<form role="search" class="search" hidden>
<input type="search" aria-label="Search" placeholder="Search: press /" autocomplete="off" spellcheck="false">
<ul id="results" aria-live="polite" hidden></ul>
</form>
</header>
<div class="columns">
{contents}
<main id="content" tabindex="-1">
{body}
</main>
</div>
<footer>librpma {version}</footer>
</body>
</html>
"""
REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={target}">
<title>{name}</title></head>
<body><a href="{target}">{name}</a></body></html>
"""


# A function, a page with its section, a file of the checkout.
NAME = re.compile(r"(?<![\w./-])((?:docs|examples|programs)/[\w./-]*\w|\w+(?:-\w+)*)(?:\(\d\))?"
                  r"(?![\w./-]*\w)")


class Page:
    """One file of the site: its path, and its description on other pages."""

    def __init__(self, url, title, kind, about=""):
        self.url, self.title, self.kind, self.about = url, title, kind, about
        self.names = []      # the names in the section NAME of a manual page
        self.headings = []   # (level, anchor, text as HTML)
        self.body = ""

    @property
    def root(self):
        return "../" * self.url.count("/")

    def write(self, target, version):
        contents = contents_of(self.headings) if self.kind != "start" else ""
        text = FRAME.format(title=html.escape(self.title), root=self.root, body=self.body,
                            version=html.escape(version), contents=contents, kind=self.kind)
        path = target / self.url
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def plain(text):
    """HTML without its tags."""
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def contents_of(headings):
    """The headings as nested lists."""
    if len(headings) < 2:
        return ""
    parts, level = [], 0
    for deep, anchor, text in headings:
        deep = min(deep, level + 1)
        parts.append("<ol>" * (deep - level) if deep > level else
                     "</li>" + "</ol></li>" * (level - deep))
        parts.append(f'<li><a href="#{anchor}">{html.escape(plain(text))}</a>')
        level = deep
    parts.append("</li></ol>" * level)
    return ('<nav class="contents" aria-label="Contents"><details open><summary>Contents</summary>'
            f'{"".join(parts)}</details></nav>')


def link_names(body, url, places):
    """Links functions and pages in the text to their descriptions; places has the targets."""
    root, parts, within = "../" * url.count("/"), [], 0

    def link(match):
        place = places.get(match.group(0)) or places.get(match.group(1))
        if place is None or place.split("#")[0] == url:
            return match.group(0)
        return f'<a href="{root}{place}">{match.group(0)}</a>'

    for part in re.split(r"(<[^>]*>)", body):
        if part.startswith("<"):
            within += part.startswith(("<a ", "<h1")) - part.startswith(("</a>", "</h1>"))
        elif not within:
            part = NAME.sub(link, part)
        parts.append(part)
    return "".join(parts)
