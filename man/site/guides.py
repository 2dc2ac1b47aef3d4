# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The documents in Markdown, rendered by cmark-gfm, and the sources of the examples."""

import html
import os
import pathlib
import re
import subprocess

from frame import Page, plain
from manual import headings_of

# The documents in the order of the site; a folder of an example represents all of its files.
DOCUMENTS = ["README.md", "docs/*.md", "NEWS.md", "SECURITY.md", "programs/**/*.md", "packaging/*/*.md", "CONTRIBUTING.md",
             "RELEASING.md", "src/*.md", "contract/*.md", "tools/*.md", "sim/*.md", "bench/*.md", "man/*.md",
             "tests/*.md", "tests/*/*.md"]
EXAMPLES = ["examples/README.md", "examples/*/README.md"]
SOURCES = ["examples/*/*.[ch]"]
PICTURES = ["docs/*.svg"]
NO_MARK = re.compile(r"<!--.*?-->\n?", flags=re.S)


class Guides:
    def __init__(self, source):
        self.source = source
        self.documents = self.pages_of(DOCUMENTS, "guide")
        self.examples = self.pages_of(EXAMPLES, "example")
        self.code = self.pages_of(SOURCES, "code")
        self.pictures = [str(path.relative_to(source)) for each in PICTURES
                         for path in sorted(source.glob(each))]

    def pages_of(self, patterns, kind):
        pages = {}
        for pattern in patterns:
            for path in sorted(self.source.glob(pattern)):
                name = str(path.relative_to(self.source))
                pages[name] = Page(re.sub(r"\.md$", "", name) + ".html", name, kind)
        return pages

    def all(self):
        return {**self.documents, **self.examples, **self.code}

    def places(self):
        """The page of each file, and of each folder that has a README."""
        places = {name: page.url for name, page in self.all().items() if "/" in name}
        return {**places, **{os.path.dirname(name): url for name, url in places.items()
                             if re.fullmatch(r".*/.*/README.md", name)}}

    def render(self, cmark):
        for name, page in {**self.documents, **self.examples}.items():
            text = NO_MARK.sub("", (self.source / name).read_text(encoding="utf-8"))
            body = number_headings(run_cmark(cmark, text, name))
            body = self.mend_links(wrap_lines(body), name)
            page.body = re.sub(r"(<table>.*?</table>)", r'<div class="table" tabindex="0">\1</div>',
                               body, flags=re.S)
            page.headings = headings_of(body)
            page.title, page.about = title_of(body), about_of(body)
            if page.kind == "example":
                page.body += self.list_sources(name)
        for name, page in self.code.items():
            text = (self.source / name).read_text(encoding="utf-8")
            folder = pathlib.PurePath(name).parent
            up = f'<a href="README.html">{folder}</a>' if f"{folder}/README.md" in self.examples \
                else html.escape(str(folder))
            page.title = name
            page.body = (f'<p class="where">{up}/</p><h1>{pathlib.PurePath(name).name}</h1>'
                         f'<pre>{html.escape(text)}</pre>')

    def list_sources(self, name):
        folder = str(pathlib.PurePath(name).parent)
        files = [each for each in self.code if str(pathlib.PurePath(each).parent) == folder]
        if not files:
            return ""
        items = "".join(f'<li><a href="{pathlib.PurePath(each).name}.html"><code>'
                        f'{pathlib.PurePath(each).name}</code></a></li>' for each in files)
        return f'<h2 id="sources">The sources</h2><ul class="files">{items}</ul>'

    def mend_links(self, body, name):
        """Replaces the target of a link to a file of the checkout by its page; without a page, only the text remains."""
        pages = self.all()

        def link(match):
            kind, target, text = match.group(1), html.unescape(match.group(2)), match.group(3)
            if re.match(r"[a-z]+:|#", target):
                return match.group(0)
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(name), path))
            page = pages.get(path) or pages.get(os.path.join(path, "README.md"))
            if page is None:
                return f'<span class="file">{text}</span>'
            here = os.path.dirname(name) or "."
            place = os.path.relpath(page.url, here) + (f"#{anchor}" if anchor else "")
            return f'<a{kind}href="{html.escape(place)}">{text}</a>'
        return re.sub(r'<a([^>]*? )href="([^"]*)"[^>]*>(.*?)</a>', link, body, flags=re.S)


def run_cmark(cmark, text, name):
    command = [cmark, "-e", "table", "-e", "autolink", "--validate-utf8"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"cmark-gfm cannot render {name}: {done.stderr.strip()}")
    return done.stdout


def number_headings(body):
    """Adds the anchors that GitHub adds to the headings."""
    seen = {}

    def heading(match):
        level, text = match.groups()
        slug = re.sub(r"[^\w\- ]", "", plain(text).lower()).strip().replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        anchor = f"{slug}-{seen[slug]}" if seen[slug] else slug
        if level == "1":
            return f'<h1 id="{anchor}">{text}</h1>'
        return f'<h{level} id="{anchor}"><a class="permalink" href="#{anchor}">{text}</a></h{level}>' \
            if "<a " not in text else f'<h{level} id="{anchor}">{text}</h{level}>'
    return re.sub(r"<h([1-6])>(.*?)</h\1>", heading, body, flags=re.S)


def wrap_lines(body):
    """Permits line breaks in a block of one line, which is usually a log line."""
    return re.sub(r"<pre([^>]*>(?:<code[^>]*>)?[^\n]*\n</code>)", r'<pre class="line"\1', body)


def title_of(body):
    found = re.search(r"<h1[^>]*>(.*?)</h1>", body, flags=re.S)
    return plain(found.group(1)) if found else "?"


def about_of(body):
    """The first sentence below the title."""
    found = re.search(r"</h1>.*?<p>(.*?)</p>", body, flags=re.S)
    text = " ".join(plain(found.group(1)).split()) if found else ""
    return re.split(r"(?<=[.!?]) ", text)[0]
