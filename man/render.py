#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Renders the manual to HTML: render.py SOURCE TARGET, as the Meson target `html` does.

mandoc renders each page; this adds the frame (viewport, navigation), an index by object, and
links to where a function is described when it shares its page with others.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body class="{kind}">
<nav class="top"><a class="home" href="index.html">librpma</a>
<a href="librpma.7.html">Overview</a>
<a href="index.html#functions">Functions</a></nav>
<main>
{body}
</main>
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
ONE_LINE = 72   # a longer prototype gets a line for each parameter
LONG_PAGE = 4   # subsections that make a list of contents worth while
# Order and titles of the index; the first prefix that fits takes the function.
GROUPS = [
    ("Devices", ("rpma_utils_get", "rpma_utils_ibv")),
    ("Peer", ("rpma_peer_new", "rpma_peer_delete", "rpma_peer_get_ibv")),
    ("Peer configuration", ("rpma_peer_cfg",)),
    ("Memory regions", ("rpma_mr",)),
    ("Endpoint", ("rpma_ep",)),
    ("Connection configuration", ("rpma_conn_cfg",)),
    ("Connection requests", ("rpma_conn_req",)),
    ("Of old releases", ("rpma_conn_completion", "rpma_conn_get_completion",
                         "rpma_cq_get_completion", "rpma_write_atomic")),
    ("Connection", ("rpma_conn", "rpma_utils_conn")),
    ("Remote memory access", ("rpma_read", "rpma_write", "rpma_atomic", "rpma_flush")),
    ("Messages", ("rpma_send", "rpma_recv")),
    ("Batches", ("rpma_batch",)),
    ("Completions", ("rpma_cq",)),
    ("Shared receive queue configuration", ("rpma_srq_cfg",)),
    ("Shared receive queue", ("rpma_srq",)),
    ("Logging", ("rpma_log",)),
    ("Return codes and version", ("rpma_err", "rpma_version")),
]
INDEX_ORDER = [title for title, _ in GROUPS if title != "Of old releases"] + ["Of old releases"]


def stop(message):
    print(f"html: {message}", file=sys.stderr)
    sys.exit(1)


class Manual:
    """The sources: which page describes which name, and in what words."""

    def __init__(self, source):
        self.pages, self.aliases, self.names, self.about = [], {}, {}, {}
        for path in sorted(source.glob("*.[37]")):
            text = path.read_text(encoding="utf-8")
            alias = re.search(r"^\.so man3/(\S+)$", text, flags=re.M)
            if alias:
                self.aliases[path.name] = alias.group(1)
                continue
            self.pages.append(path)
            head, _, about = text.partition("\n.Nd ")
            self.names[path.name] = re.findall(r"^\.Nm (\w+)", head, flags=re.M)
            self.about[path.name] = about.split("\n")[0]
        if not self.pages:
            stop(f"{source} holds no manual pages")

    def place(self, page):
        """The file, and the anchor for an alias, that describes page ('name.section')."""
        if page in self.aliases:
            return f"{self.aliases[page]}.html#{page.rsplit('.', 1)[0]}"
        return f"{page}.html" if page in self.names else None


def render(mandoc, path):
    command = [mandoc, "-T", "html", "-O", "fragment,man=%N.%S.html", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or "manual-text" not in done.stdout:
        stop(f"mandoc cannot render {path}: {done.stderr.strip()}")
    return done.stdout


def mend_links(body, manual):
    """Cross references go to the right place; those to pages of others become plain text."""
    def link(match):
        place = manual.place(match.group(1))
        if place is None:
            return f'<span class="Xr">{match.group(2)}</span>'
        return f'<a class="Xr" href="{place}">{match.group(2)}</a>'
    return re.sub(r'<a class="Xr" href="([^"]*)\.html"[^>]*>(.*?)</a>', link, body, flags=re.S)


def frame_prototypes(body):
    """Each prototype of SYNOPSIS becomes a box that can be linked to; long ones get lines."""
    def box(match):
        result, name, parameters = (" ".join(part.split()) for part in match.groups())
        one_line = re.sub(r"<[^>]*>", "", f"{result} {name}({parameters});")
        if len(one_line) > ONE_LINE:
            parameters = "<br>" + parameters.replace("</var>, ", "</var>,<br>")
        return (f'<p class="proto" id="{name}">{result} <code class="Fn">{name}</code>'
                f'(<span class="parameters">{parameters}</span>);</p>')
    if 'id="SYNOPSIS"' not in body:
        return body
    head, synopsis, rest = re.split(r'(id="SYNOPSIS".*?</section>)', body, maxsplit=1,
                                    flags=re.S)
    synopsis = re.sub(r'<p class="Pp">(<var class="Ft">[^<]*</var>)\s*<br/>\s*'
                      r'<code class="Fn"[^>]*>(\w+)</code>\((.*?)\);</p>', box, synopsis,
                      flags=re.S)
    for name in re.findall(r'class="proto" id="(\w+)"', synopsis):
        rest = rest.replace(f' id="{name}"', "")
    return head + synopsis + rest


def add_contents(body):
    """A page with subsections begins with a list of them."""
    found = re.findall(r'<h([12]) class="S[hs]" id="([^"]+)"><a[^>]*>(.*?)</a>', body,
                       flags=re.S)
    if sum(level == "2" for level, _, _ in found) < LONG_PAGE:
        return body
    items = "".join(f'<li class="level{level}"><a href="#{anchor}">{title}</a></li>'
                    for level, anchor, title in found)
    contents = ('<details class="toc" open><summary>Contents</summary>'
                f"<ul>{items}</ul></details>")
    text = '<div class="manual-text">'
    return body.replace(text, contents + text, 1)


def link_functions(body, page, manual):
    """Functions that the text names lead to their pages."""
    def link(match):
        place = manual.place(f"{match.group(1)}.3")
        if place is None or place.split(".html")[0] == page:
            return match.group(0)
        return f'<a href="{place}">{match.group(0)}</a>'
    return re.sub(r'<code class="Fn">(\w+)</code>', link, body)


def group_of(name):
    for title, prefixes in GROUPS:
        if name.startswith(prefixes):
            return title
    return stop(f"{name} fits no group of the index: extend GROUPS in man/render.py")


def index(manual, version):
    groups = {title: [] for title in INDEX_ORDER}
    for page in manual.pages:
        if page.suffix == ".3":
            groups[group_of(page.stem)].append(page.name)
    parts = ['<h1>librpma</h1>',
             '<p class="lead">Remote Persistent Memory Access: read, write and flush the '
             f'memory of another machine over RDMA. This is the manual of release {version}.</p>',
             '<p><a class="start" href="librpma.7.html">Start with the overview, '
             'librpma(7)</a></p>', '<h2 id="functions">Functions</h2>', '<div class="groups">']
    for title, pages in groups.items():
        if not pages:
            continue
        parts.append(f'<section class="group"><h3>{title}</h3><dl>')
        for page in pages:
            names = "".join(f'<dt><a href="{manual.place(name + ".3")}"><code>{name}</code></a>'
                            "</dt>" for name in manual.names[page])
            parts.append(f"{names}<dd>{manual.about[page]}</dd>")
        parts.append("</dl></section>")
    return "\n".join(parts + ["</div>"])


def write_all(manual, options):
    options.target.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.style, options.target / "style.css")

    def write(name, title, body):
        kind = "index" if name == "index.html" else "page"
        text = FRAME.format(title=title, body=body, version=options.version, kind=kind)
        (options.target / name).write_text(text, encoding="utf-8")

    for path in manual.pages:
        body = add_contents(frame_prototypes(render(options.mandoc, path)))
        body = link_functions(mend_links(body, manual), path.name, manual)
        write(f"{path.name}.html", f"{path.stem}({path.suffix[1:]})", body)
    for alias in manual.aliases:
        text = REDIRECT.format(target=manual.place(alias), name=alias.rsplit(".", 1)[0])
        (options.target / f"{alias}.html").write_text(text, encoding="utf-8")
    write("index.html", "librpma: manual", index(manual, options.version))


def main():
    parser = argparse.ArgumentParser(description="render the manual of librpma to HTML")
    parser.add_argument("--mandoc", default="mandoc")
    parser.add_argument("--style", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name("style.css"))
    parser.add_argument("--version", default="")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("target", type=pathlib.Path)
    options = parser.parse_args()
    if not shutil.which(options.mandoc):
        stop("mandoc is not installed")
    manual = Manual(options.source)
    write_all(manual, options)
    print(f"{len(manual.pages)} pages, {len(manual.aliases)} further names: "
          f"{options.target / 'index.html'}")


if __name__ == "__main__":
    main()
