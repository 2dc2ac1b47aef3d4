# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""The start page: where to begin, and everything there is, by purpose."""

import html

LEAD = ("Remote Persistent Memory Access: C programs read, write and flush the memory of another "
        "machine over RDMA.")

PICTURE = ("A client writes into the persistent memory of a server and flushes it; the completion of the "
           "flush says that the data is persistent. The server's program is idle meanwhile.")


def cards(pages):
    yield '<ul class="cards">'
    for page in pages:
        about = f"<span>{html.escape(page.about)}</span>" if page.about else ""
        yield f'<li><a href="{page.url}">{html.escape(page.title)}</a>{about}</li>'
    yield "</ul>"


def body(manual, guides, version):
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
              '<a href="rpma_functions.7.html">Functions by purpose</a>'
              '<a href="examples/README.html">Examples</a></p>',
              '<h2 id="overviews">Overviews</h2>', *cards(overviews)]
    if programs:
        parts += ['<h2 id="programs">Programs</h2>', *cards(programs)]
    parts += ['<h2 id="guides">Guides</h2>', *cards(first),
              '<h2 id="examples">Examples</h2>', *cards(guides.examples.values()),
              '<h2 id="inside">For developers of librpma</h2>', *cards(inner)]
    return "\n".join(parts)
