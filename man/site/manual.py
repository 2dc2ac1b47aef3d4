# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The manual pages, rendered by mandoc."""

import re
import subprocess

import generate
from frame import Page, plain

ONE_LINE = 72   # a longer prototype has a line for each parameter
PARAMETER = (r'<span class="parameter"><var class="Vt">\1</var>'
             r'<var class="Fa">\2</var></span>')


class Manual:
    """The finished pages, with the names that each describes."""

    def __init__(self, source):
        self.sources, self.pages, self.aliases = dict(sorted(generate.pages(source).items())), {}, {}
        for name, text in self.sources.items():
            head, _, about = text.partition("\n.Nd ")
            stem, _, section = name.rpartition(".")
            page = Page(f"{name}.html", f"{stem}({section})", f"section{section}", about.split("\n")[0])
            page.names = re.findall(r"^\.Nm (\S+)", head, flags=re.M)
            self.pages[name] = page
            self.aliases.update((f"{alias}.{section}", name) for alias in page.names[1:])

    def places(self):
        """{name: its page}; a name is 'name(section)', and also 'name' for functions and programs."""
        places = {}
        for name in [*self.pages, *self.aliases]:
            stem, _, section = name.rpartition(".")
            url = f"{name}.html" if name in self.pages else f"{self.aliases[name]}.html#{stem}"
            places[f"{stem}({section})"] = url
            if section in "123":
                places[stem] = url
        return places

    def render(self, mandoc):
        places = self.places()
        for name, page in self.pages.items():
            body = run_mandoc(mandoc, name, self.sources[name])
            body = re.sub(r'<(table|div) class="(?:head|foot)".*?</\1>', "", body, flags=re.S)
            body = level_headings(frame_prototypes(body))
            page.body = (f"<h1>{page.title}</h1>" + mend_links(body, places))
            page.headings = headings_of(page.body)


def run_mandoc(mandoc, name, text):
    command = [mandoc, "-T", "html", "-O", "fragment,man=%N.%S.html"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode or "manual-text" not in done.stdout:
        raise RuntimeError(f"mandoc cannot render {name}: {done.stderr.strip()}")
    return done.stdout


def mend_links(body, places):
    """Links a cross reference to its page; without a page on the site, only the text remains."""
    def link(match):
        name, section, text = match.groups()
        place = places.get(f"{name}({section})")
        if place is None:
            return f'<span class="Xr">{text}</span>'
        return f'<a class="Xr" href="{place}">{text}</a>'
    return re.sub(r'<a class="Xr" href="([^"]*)\.(\w+)\.html"[^>]*>(.*?)</a>', link, body,
                  flags=re.S)


def frame_prototypes(body):
    """Makes a box with an anchor of each prototype in SYNOPSIS; a long prototype has several lines."""
    def box(match):
        result, name, parameters = (" ".join(part.split()) for part in match.groups())
        parameters = re.sub(r'<var class="Fa">([^<]*?[ *])(\w+)</var>', PARAMETER, parameters)
        if len(plain(f"{result} {name}({parameters});")) > ONE_LINE:
            parameters = "<br>" + parameters.replace("</span>, ", "</span>,<br>")
        return (f'<p class="proto" id="{name}">{result} <code class="Fn">{name}</code>'
                f'(<span class="parameters">{parameters}</span>);</p>')
    parts = re.split(r'(id="SYNOPSIS".*?</section>)', body, maxsplit=1, flags=re.S)
    if len(parts) < 3:
        return body
    head, synopsis, rest = parts
    synopsis = re.sub(r'<p class="Pp">\s*(?:<br/>\s*)?(<var class="Ft">[^<]*</var>)\s*<br/>\s*'
                      r'<code class="Fn"[^>]*>(\w+)</code>\((.*?)\);</p>', box, synopsis,
                      flags=re.S)
    for name in re.findall(r'class="proto" id="(\w+)"', synopsis):
        rest = rest.replace(f' id="{name}"', "")
    return head + synopsis + rest


def level_headings(body):
    """Changes sections to the second level, below the page's title; mandoc's levels vary."""
    for kind, level in (("Sh", "2"), ("Ss", "3")):
        body = re.sub(rf'<h\d class="{kind}"(.*?)</h\d>', rf'<h{level} class="{kind}"\1</h{level}>',
                      body, flags=re.S)
    return body


def headings_of(body):
    found = re.findall(r'<h([234])[^>]* id="([^"]+)"[^>]*>(.*?)</h\1>', body, flags=re.S)
    return [(int(level) - 1, anchor, " ".join(text.split())) for level, anchor, text in found]
