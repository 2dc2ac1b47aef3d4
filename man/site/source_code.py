# SPDX-License-Identifier: BSD-3-Clause
# Copyright 2026, the librpma developers

"""Source code with its comments, keywords and literals marked, by Pygments."""

import pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound


def highlight(text, language="c"):
    """HTML for the inside of a pre element."""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        lexer = get_lexer_by_name("text", stripnl=False)
    return pygments.highlight(text, lexer, HtmlFormatter(nowrap=True))
