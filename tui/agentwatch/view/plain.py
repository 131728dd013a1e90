"""Foreign text for one line, as people read it: safe, and without the marks of Markdown."""

from __future__ import annotations

import re
from typing import Final

from agentwatch.text import LINE_LIMIT, clean

# Variation selectors change the width of the character before them, and terminals do not agree how.
_SELECTORS: Final = dict.fromkeys(range(0xFE00, 0xFE10))

# Only what can be nothing else: the asterisks of a glob stand beside a slash, a dot or a letter, and underscores belong
# to names. No part can hold the character that ends it, so a failed match looks at each character twice at most.
_MARKS: Final = (
    r"(?<!`)(`{1,3})([^`]+)\1(?!`)"
    r"""|(?<![^\s(\["':;,\u0080-\U0010ffff])"""
    r"""(\*{2,3}|\*(?=[^*]*[^*\s/.]\*))(?=[\w"'“‘(\[`$#@])([^*]*[^*\s/])\3(?![0-9A-Za-z_*/])"""
)
_HEADING: Final = r"(?m)^[ \t]*#{1,6}[ \t]+"


def shown(text: str, limit: int = 200) -> str:
    """Foreign text for one line of the screen: safe, and of a width that terminals agree on."""
    return clean(text, limit).translate(_SELECTORS)


def summary(text: str, limit: int = 200) -> str:
    """The same for words that an agent may have written as Markdown: without its marks of emphasis, code and headings.

    For summaries of one line (titles, asks, hints); a name that must be exact, such as an id, is `shown`.
    """
    text = text[: LINE_LIMIT + 1]
    if "*" in text or "`" in text or "#" in text:
        text = _unmarked(re.sub(_HEADING, "", text))
    return shown(text, limit)


def _unmarked(text: str) -> str:
    return re.sub(_MARKS, lambda mark: (mark[2] or _unmarked(mark[4])).strip(" "), text)
