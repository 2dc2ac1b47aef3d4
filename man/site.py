#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Makes the HTML site: site.py SOURCE TARGET, as the Meson target `html` does.

mandoc renders the manual pages, cmark-gfm the documents; the start page lists them. Pages of other packages are links
to those of Debian.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent

import generate

DOCUMENTS = ["README.md", "NEWS.md", "SECURITY.md", "docs/*.md", "examples/**/*.md", "sim/README.md", "sim/examples/README.md"]
FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1.0">
<title>{title}</title><link rel="stylesheet" href="{root}style.css"></head>
<body>{home}{body}</body></html>
"""
HOME = '<p class="home"><a href="{root}index.html">librpma</a></p>'


def stop(message):
    print(f"html: {message}", file=sys.stderr)
    sys.exit(1)


def plain(text):
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def convert(command, text, name, directory=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=directory)
    if done.returncode:
        stop(f"{command[0]} cannot render {name}: {done.stderr.strip()}")
    return done.stdout


def write(target, name, title, body, home=HOME):
    path, root = target / name, "../" * name.count("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FRAME.format(title=html.escape(title), root=root, home=home.format(root=root), body=body), encoding="utf-8")


def write_pages(source, target, mandoc):
    """{title: (name, first line)} of the manual pages. Each name that a page describes has a file."""
    listed = {}
    with tempfile.TemporaryDirectory() as known:  # mandoc looks there for pages of this site
        pages = generate.pages(source)
        names = {page: re.findall(r"^\.Nm (\S+)", text.partition("\n.Nd ")[0], flags=re.M) for page, text in pages.items()}
        for page, others in names.items():
            for name in others:
                (pathlib.Path(known) / f"{name}{pathlib.Path(page).suffix}").touch()
        options = "fragment,toc,man=%N.%S.html;https://manpages.debian.org/%N.%S"
        for page, text in pages.items():
            body = convert([mandoc, "-T", "html", "-O", options], text, page, known)
            stem, _, section = page.rpartition(".")
            for name in {stem, *names[page]}:
                write(target, f"{name}.{section}.html", f"{name}({section})", body)
            listed[f"{stem}({section})"] = (f"{page}.html", re.search(r"^\.Nd (.*)", text, flags=re.M)[1])
    return listed


def with_anchors(body):
    """Headings with the anchors that GitHub adds."""
    def anchor(match):
        slug = re.sub(r"[^\w\- ]", "", plain(match[2]).lower()).strip().replace(" ", "-")
        return f'<h{match[1]} id="{slug}">{match[2]}</h{match[1]}>'
    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchor, body, flags=re.S)


def write_documents(source, target, cmark):
    """{title: (name, first sentence)} of the documents. A link to another file of the checkout becomes text."""
    paths = [str(path.relative_to(source)) for each in DOCUMENTS for path in sorted(source.glob(each))]
    listed = {}
    for name in paths:
        def link(match, folder=os.path.dirname(name)):
            file, _, anchor = match[1].partition("#")
            path = os.path.normpath(os.path.join(folder, file)) if file else ""
            path = path if path in paths else os.path.join(path, "README.md")
            if re.match(r"\w+:|#", match[1]):
                return match[0]
            page = os.path.relpath(re.sub(r"\.md$", ".html", path), folder or ".")
            return f'<a href="{page}{"#" * bool(anchor)}{anchor}">{match[2]}</a>' if path in paths else match[2]
        body = convert([cmark, "-e", "table", "-e", "autolink"], (source / name).read_text(encoding="utf-8"), name)
        body = re.sub(r'<a href="([^"]*)">(.*?)</a>', link, with_anchors(body), flags=re.S)
        title, about = (plain(match[1]) if (match := re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", body, flags=re.S)) else ""
                        for tag in ("h1", "p"))
        page = re.sub(r"\.md$", ".html", name)
        write(target, page, title, body)
        listed[f"{title} ({name})"] = (page, re.split(r"(?<=[.!?:])\s", about)[0].rstrip(":"))
        for picture in re.findall(r'<img src="([^":]*)"', body):
            picture = os.path.join(os.path.dirname(name), picture)
            (target / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / picture, target / picture)
    return listed


def start(pages, documents, overview):
    """The start page. The overviews have the order of the list in librpma(7)."""
    order = ["librpma(7)", *re.findall(r"rpma_\w+\(7\)", overview)]
    sections = {"Overviews": sorted((title for title in pages if title.endswith("(7)")),
                                    key=lambda title: order.index(title) if title in order else len(order)),
                "Programs": [title for title in pages if title.endswith("(1)")], "Documents": list(documents),
                "Functions": [title for title in pages if title.endswith("(3)")]}
    for heading, titles in sections.items():
        yield f"<h2>{heading}</h2><ul>"
        for title in titles:
            page, about = {**pages, **documents}[title]
            yield f'<li><a href="{page}">{html.escape(title)}</a>: {html.escape(about)}</li>'
        yield "</ul>"


def main():
    if len(sys.argv) != 3:
        stop("usage: site.py SOURCE TARGET")
    source, target = (pathlib.Path(each).resolve() for each in sys.argv[1:])
    tools = [shutil.which(tool) or stop(f"{tool} is not installed: run tools/setup man") for tool in ("mandoc", "cmark-gfm")]
    target.mkdir(parents=True, exist_ok=True)
    pages = write_pages(source, target, tools[0])
    documents = write_documents(source, target, tools[1])
    overview = plain((target / "librpma.7.html").read_text(encoding="utf-8"))
    write(target, "index.html", "librpma", "<h1>librpma</h1>" + "\n".join(start(pages, documents, overview)), home="")
    shutil.copy(HERE / "site.css", target / "style.css")
    print(f"{len(pages)} manual pages, {len(documents)} documents: {target / 'index.html'}")


if __name__ == "__main__":
    main()
