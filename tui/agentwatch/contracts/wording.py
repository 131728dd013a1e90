"""How long a text is: tokens and sentences, counted the same way everywhere.

The subagent-return document equates 100 tokens with about 400 characters. There is no tokenizer that every model
shares, so a token is four characters here, and "about" leaves a quarter more before it surely is too long.
"""

from __future__ import annotations

import re
from sys import intern
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS_A_TOKEN: Final = 4
MAX_TOKENS: Final = 100
"""What a summary may have."""
FAR_TOO_LONG: Final = 500
"""Characters of a summary above which no count of tokens makes it short enough."""

_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|dr|mr|ms|st)|\b[A-Za-z]|^\d+)\.\Z", re.IGNORECASE
)
# A full stop ends a sentence before a space and anything but a small letter: not in `a.md`, `3.5` or `e.g. this`.
_END: Final = re.compile(r"[.!?…]+[\"'”’)\]*`_]*(?=\s+[^\sa-z]|\s*\Z)")
_WORD: Final = re.compile(r"\w")
_MAX_LOOKED_AT: Final = 1_000


_NEXT_STEP: Final = re.compile(
    r"\b(?:after|again|ask|before|complete|continue|defer\w*|finish|follow\w*|later|left|must|need\w*|next|once|open"
    r"|outstanding|pending|please|postpone\w*|remain\w*|resume|retry|run|should|still|then|todo|to be|until|wait\w*"
    r"|when|will)\b",
    re.IGNORECASE,
)

BRIEF: Final = 2_000
"""Characters of a free text that the summary of a document keeps; the full text is in the full model."""


def brief(text: str | None) -> str | None:
    """A free text for a summary, cut where it is a dump; None and empty texts become None."""
    if not text:
        return None
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "\u2026"


def briefs(texts: Iterable[str]) -> tuple[str, ...]:
    """`brief` of each text that is not empty."""
    return tuple([short for text in texts if (short := brief(text))])


def shared(word: str | None) -> str | None:
    """A word that many documents have, as one object for all of them; None and the empty word become None."""
    return intern(word) if word else None


def tells_a_next_step(text: str) -> bool:
    """Whether a text speaks of what is to come, as far as its words tell."""
    return _NEXT_STEP.search(text[:_MAX_LOOKED_AT]) is not None


def tokens(text: str) -> int:
    """Tokens of a text: its characters divided by four, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def sentences(text: str) -> int:
    """Sentences of a text; 0 where there is no word in it. Only the first 1,000 characters are looked at."""
    text = text[:_MAX_LOOKED_AT].strip()
    count = 0
    start = 0
    for match in _END.finditer(text):
        behind = match.end()
        if behind < len(text) and _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start() + 1]):
            continue
        if _WORD.search(text, start, behind):
            count += 1
        start = behind
    return count + (_WORD.search(text, start) is not None)
