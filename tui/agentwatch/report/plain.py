"""Foreign text in Markdown: it reads as it is, and is never a link, an image, markup, a mention or a reference.

GitHub turns mentions, issue numbers and commit ids into links after it has rendered the Markdown, in every piece of
text outside code. So escaping is not enough: what they begin with stands in an element of its own.
"""

from __future__ import annotations

import re
from typing import Final

from agentwatch.text import clean

_SPECIAL: Final = re.compile(
    r"""
    (?P<commit>(?<![0-9A-Za-z])[0-9a-fA-F]{7,64}(?![0-9A-Za-z]))
  | (?P<linking>[@\#$]                          # mention, e-mail; issue; mathematics
      | :(?://)?(?=\S)                          # a scheme, :emoji:
      | (?<=[wW]{3})\.                          # www.
      | (?<=[A-Za-z])-(?=\d)                    # GH-1, and the keys that a repository links elsewhere
    )
  | (?P<markup>[&<>\\`*_\[\]{}|~] | (?<=/)/ | (?<=\S)\.(?=[^\W\d_]))
    """,
    re.VERBOSE,
)
_CODE: Final = re.compile(r"[^`|\\]*[^`|\\\s][^`|\\]*\Z")


def inline(foreign: str, limit: int | None = None) -> str:
    """Foreign text on one line, for anywhere but the beginning of a line: a paragraph, a table, HTML."""
    return _SPECIAL.sub(_harmless, clean(foreign, limit).strip()) or "-"


def code(foreign: str, limit: int = 200) -> str:
    """Foreign text as code: ids, paths. For Markdown, not for the inside of HTML."""
    shown = clean(foreign, limit)
    return f"`{shown}`" if _CODE.match(shown) else f"<code>{inline(foreign, limit)}</code>"


def _harmless(match: re.Match[str]) -> str:
    found = match.group()
    if match["commit"]:
        return f"<code>{found}</code>"
    if match["linking"]:
        return f"<span>{found}</span>"
    # A character reference is text to Markdown and to HTML alike; a backslash is so to one of them only.
    return f"&#{ord(found)};"
