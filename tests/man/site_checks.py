# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Checks of the HTML site: its contents, and the targets of its links."""

import contextlib
import html
import pathlib
import posixpath
import re
import sys
import tempfile

import contract
from tool_checks import need, run

LINK = re.compile(r'\b(?:href|src)="([^"]*)"')
# References that load from another site; none are allowed.
FOREIGN = re.compile(r'<(?:link|script|img)[^>]*="(?:https?:)?//|@import|url\(')

@contextlib.contextmanager
def site_of(book):
    """Builds the site into a temporary directory. Yields (directory, {path: text of the file}, error output)."""
    need("mandoc", "cmark-gfm")
    with tempfile.TemporaryDirectory(prefix="librpma-html-") as directory:
        root = pathlib.Path(directory)
        done = run([sys.executable, str(book.source / "man/site.py"), str(book.source), directory])
        files = {str(path.relative_to(root)): path.read_text(encoding="utf-8", errors="replace")
                 for path in root.rglob("*") if path.is_file()}
        yield root, files, (done.stderr or done.stdout).strip() if done.returncode else ""


def site_files(source):
    """The file of every page, document and example in the site."""
    yield from (f"{path.name}.html" for folder in ("man", "sim/man") for path in sorted(source.glob(f"{folder}/*.[1-9]")))
    for pattern in ("*.md", "docs/*.md", "examples/*/README.md", "sim/README.md", "sim/examples/README.md"):
        for path in sorted(source.glob(pattern)):
            if path.name not in ("ADDING.md", "CONTRIBUTING.md", "RELEASING.md"):
                yield f"{path.relative_to(source).with_suffix('.html')}"


def link_target(name, link):
    """The file and the anchor that a link in the file refers to."""
    file, _, anchor = html.unescape(link).partition("#")
    return (posixpath.normpath(posixpath.join(posixpath.dirname(name), file)) if file else name,
            anchor)


def check_html(book):
    """The start page links to every page, and every link has a target."""
    with site_of(book) as (root, files, error):
        if error:
            yield error
            return
        yield from check_start(book, files)
        places = {name: set(re.findall(r' id="([^"]+)"', text)) for name, text in files.items()}
        for name, text in sorted(files.items()):
            if name.endswith((".html", ".css")) and FOREIGN.search(text):
                yield f"HTML: {name} loads a file of another site"
            for link in sorted(set(LINK.findall(text)) if name.endswith(".html") else ()):
                if re.match(r"https?:|mailto:|data:,$", link):
                    continue
                file, anchor = link_target(name, link)
                if file not in files or anchor and anchor not in places[file]:
                    yield f"HTML: {name} links to {link}, which does not exist"


def check_start(book, files):
    """The start page links to every page, document and example."""
    linked = {link_target("index.html", link)[0] for link in LINK.findall(files.get("index.html", ""))}
    for file in site_files(book.source):
        if file not in files:
            yield f"HTML: {file} is missing"
        elif file not in linked:
            yield f"HTML: the start page does not link to {file}"
    start = files.get("index.html", "")
    for line in re.findall(r">([^<>]+)</a>: *</li>", start):
        yield f"HTML: the start page does not describe {line}"
    if not 0 < start.find("rpma_tutorial(7)</a>") < start.find("rpma_batches(7)</a>"):
        yield "HTML: the overviews of the start page do not have the order of librpma(7)"
    for name in contract.exported_functions(book.source):
        if f"{name}.3.html" not in files:
            yield f"HTML: {name}.3.html is missing"
