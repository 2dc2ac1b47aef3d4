# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The start page: where to begin, and everything there is, by purpose."""

import html
import re

SECTION = re.compile(r"^/\* ---- (.*?)(?:: (.*?)|, (.*?))? -+ \*/$", flags=re.M)
LAST = ("version", "return codes", "logging", "what only releases before 1.0 had")
LEAD = ("Remote Persistent Memory Access: C programs read, write and flush the memory of another "
        "machine over RDMA.")

PICTURE = ("A client writes into the persistent memory of a server and flushes it; the completion of the "
           "flush says that the data is persistent. The server's program is idle meanwhile.")


def purposes(source):
    """The functions of the header by its sections: [(title, remark, names)], in its order."""
    parts = SECTION.split((source / "include/librpma.h").read_text(encoding="utf-8"))
    found = []
    for title, remark, other, text in zip(*(iter(parts[1:]),) * 4):
        names = re.findall(r"^[a-z].*?\b(rpma_\w+)\(", text, flags=re.M)
        names += re.findall(r"^\w[^;{}()]*\*(rpma_\w+)\(", text, flags=re.M)
        if names:
            found.append((title, remark or other or "", list(dict.fromkeys(names))))
    return sorted(found, key=lambda group: LAST.index(group[0]) if group[0] in LAST else -1)


def functions(manual, source):
    """A section for each purpose; what no section of the header has comes at the end."""
    places, rest = manual.places(), {}
    for page in manual.pages.values():
        if page.kind == "section3":
            rest.update((name, page) for name in page.names)
    groups = [(title, remark, [name for name in names if rest.get(name)])
              for title, remark, names in purposes(source)]
    listed = {name for _, _, names in groups for name in names}
    groups.append(("others", "", [name for name in rest if name not in listed]))
    for title, remark, names in groups:
        if not names:
            continue
        note = f"<p>{html.escape(remark[0].upper() + remark[1:])}</p>" if remark else ""
        yield (f'<section class="group"><h3 id="{title.replace(" ", "-")}">'
               f"{title[0].upper() + title[1:]}</h3>{note}<dl>")
        shown = set()
        for name in names:
            page = rest[name]
            if page.url in shown:
                continue
            shown.add(page.url)
            beside = [each for each in names if rest[each] is page]
            yield "".join(f'<dt><a href="{places[each]}"><code>{each}</code></a></dt>'
                          for each in beside) + f"<dd>{page.about}</dd>"
        yield "</dl></section>"


def cards(pages):
    yield '<ul class="cards">'
    for page in pages:
        about = f"<span>{html.escape(page.about)}</span>" if page.about else ""
        yield f'<li><a href="{page.url}">{html.escape(page.title)}</a>{about}</li>'
    yield "</ul>"


def body(manual, guides, source, version):
    pages = list(manual.pages.values())
    programs = [page for page in pages if page.kind not in ("section3", "section7")]
    overviews = sorted((page for page in pages if page.kind == "section7"),
                       key=lambda page: page.title != "librpma(7)")
    first = [page for name, page in guides.documents.items() if name.count("/") == 0 or
             name.startswith(("docs/", "programs/"))]
    inner = [page for page in guides.documents.values() if page not in first]
    parts = [f"<h1>librpma {html.escape(version)}</h1>", f'<p class="lead">{LEAD}</p>']
    if "docs/how-it-works.svg" in guides.pictures:
        parts.append(f'<p><img src="docs/how-it-works.svg" alt="{PICTURE}"></p>')
    parts += ['<p class="starts"><a href="README.html">What it is</a>'
              '<a href="librpma.7.html">Overview: librpma(7)</a>'
              '<a href="examples/README.html">Examples</a></p>',
              '<h2 id="overviews">Overviews</h2>', *cards(overviews)]
    if programs:
        parts += ['<h2 id="programs">Programs</h2>', *cards(programs)]
    parts += ['<h2 id="functions">Functions by purpose</h2>', '<div class="groups">',
              *functions(manual, source), "</div>",
              '<h2 id="guides">Guides</h2>', *cards(first),
              '<h2 id="examples">Examples</h2>', *cards(guides.examples.values()),
              '<h2 id="inside">For developers of librpma</h2>', *cards(inner)]
    return "\n".join(parts)
