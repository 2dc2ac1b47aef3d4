#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Builds the HTML site: build.py SOURCE TARGET, as the Meson target `html` does.

mandoc renders the manual pages, cmark-gfm the documents. The start page lists all of them; search.js searches
search-index.js, without a server. mandoc alone makes no index and no search, and its links do not reach the functions
that share a page.
"""

import argparse
import html
import json
import pathlib
import re
import shutil
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))


def stop(message):
    print(f"html: {message}", file=sys.stderr)
    sys.exit(1)


from frame import REDIRECT, Page, link_names, plain
from guides import Guides
from manual import Manual


def words_of(page):
    """Each word of a page once, in the form that search.js searches."""
    words = set(re.findall(r"\w[\w.-]*\w", plain(page.body).lower()))
    return " " + " ".join(sorted(words))


def entry(title, url, kind, about, words=""):
    found = re.fullmatch(r".*\((\d)\)", title)
    return {"title": title, "url": url, "kind": kind, "about": about, "words": words,
            "section": found.group(1) if found else ""}


KINDS = {"section1": "program", "section3": "function", "section7": "overview"}


def index_of(manual, guides):
    """The entries of the search box: functions, pages, and the sections of the longer texts."""
    places, entries = manual.places(), []
    for page in manual.pages.values():
        kind = KINDS.get(page.kind, "page")
        names = page.names if page.kind == "section3" else [page.title]
        for name in names:
            entries.append(entry(name, places.get(name, page.url), kind, page.about, words_of(page)))
    for page in guides.all().values():
        entries.append(entry(page.title, page.url, page.kind, page.about, words_of(page)))
    for page in [*manual.pages.values(), *guides.documents.values()]:
        for level, anchor, text in page.headings:
            if page.kind != "section3" and (level > 1 or page.kind == "guide"):
                entries.append(entry(plain(text), f"{page.url}#{anchor}", "section", page.title))
    return entries


def contents(manual, guides):
    """The start page: all pages, by purpose. The overviews have the order of the list in librpma(7)."""
    first = next(page for page in manual.pages.values() if page.title == "librpma(7)")
    order = ["librpma(7)", *re.findall(r"rpma_\w+\(7\)", plain(first.body))]
    pages = sorted(manual.pages.values(), key=lambda page: order.index(page.title) if page.title in order else len(order))
    groups = {"Overviews": [page for page in pages if page.kind == "section7"],
              "Programs": [page for page in pages if page.kind == "section1"],
              "Guides": guides.documents.values(), "Examples": guides.examples.values()}
    yield "<h1>librpma</h1>"
    for title, listed in groups.items():
        yield f'<h2 id="{title.lower()}">{title}</h2><ul>'
        for page in listed:
            yield f'<li><a href="{page.url}">{html.escape(page.title)}</a>: {html.escape(page.about)}</li>'
        yield "</ul>"


def write_site(manual, guides, options):
    first = Page("index.html", "librpma", "start")
    first.body = "\n".join(contents(manual, guides))
    places = {**manual.places(), **guides.places()}
    for page in [first, *manual.pages.values(), *guides.all().values()]:
        page.body = link_names(page.body, page.url, places)
        page.write(options.target, options.version)
    for alias in manual.aliases:
        name, _, section = alias.rpartition(".")
        text = REDIRECT.format(target=places[f"{name}({section})"], name=name)
        (options.target / f"{alias}.html").write_text(text, encoding="utf-8")
    for file in guides.pictures:
        (options.target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(options.source / file, options.target / file)
    for file in ("style.css", "search.js"):
        shutil.copy(HERE / file, options.target / file)
    index = json.dumps(index_of(manual, guides), ensure_ascii=False, indent=0)
    (options.target / "search-index.js").write_text(f"var SEARCH = {index};\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="build the HTML site of librpma")
    parser.add_argument("--mandoc", default="mandoc")
    parser.add_argument("--cmark", default="cmark-gfm")
    parser.add_argument("--version", default="")
    parser.add_argument("source", type=pathlib.Path, help="the checkout")
    parser.add_argument("target", type=pathlib.Path)
    options = parser.parse_args()
    for tool in (options.mandoc, options.cmark):
        if not shutil.which(tool):
            stop(f"{tool} is not installed: run tools/setup man")
    manual, guides = Manual(options.source), Guides(options.source)
    if not manual.pages:
        stop(f"{options.source} holds no manual pages")
    try:
        manual.render(options.mandoc)
        guides.render(options.cmark)
    except RuntimeError as error:
        stop(error)
    options.target.mkdir(parents=True, exist_ok=True)
    write_site(manual, guides, options)
    print(f"{len(manual.pages)} manual pages, {len(manual.aliases)} further names, "
          f"{len(guides.all())} documents and sources: {options.target / 'index.html'}")


if __name__ == "__main__":
    main()
