"""Checks that contracts share: how long a text is, and whether a path stays inside the repository."""

from __future__ import annotations

import re
from sys import intern
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

CHARACTERS_A_TOKEN: Final = 4
"""As the document of subagent-return counts: models share no tokenizer."""
MAX_TOKENS: Final = 100
"""What a summary may have."""
BRIEF: Final = 2_000
"""Characters of a free text that a document keeps."""

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
_SCHEME_OR_DRIVE: Final = re.compile(
    r"[A-Z]:|[a-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://|(?i:data|file|ftp|git|https?|mailto|repo|ssh|urn|vscode):"
)
# As shells write them; a file may well be called `$slug.tsx`.
_VARIABLE: Final = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*(?![A-Za-z0-9.])|\{|\(|env:)|%[A-Za-z_][A-Za-z0-9_()]*%")
# Nearly every path is one of these, and needs no closer look.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-][A-Za-z0-9_./-]*\Z")
_LONGEST: Final = 4_096


def brief(text: str | None) -> str | None:
    """A free text, cut where it is a dump; None and empty texts become None."""
    if not text:
        return None
    return text if len(text) <= BRIEF else text[: BRIEF - 1] + "\u2026"


def briefs(texts: Iterable[str | None] | None) -> tuple[str, ...]:
    """`brief` of each text that is not empty."""
    return tuple([short for text in texts or () if (short := brief(text))])


def shared(word: str | None) -> str | None:
    """A word that many documents have, as one object for all of them; the empty word becomes None."""
    return intern(word) if word else None


def is_blank(value: object) -> bool:
    """Whether a value is a string without a word in it."""
    return isinstance(value, str) and not value.strip()


def tells_a_next_step(text: str) -> bool:
    """Whether a text speaks of what is to come, as far as its words tell."""
    return _NEXT_STEP.search(text[:_MAX_LOOKED_AT]) is not None


def tokens(text: str) -> int:
    """Tokens of a text: its characters divided by four, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def sentences(text: str) -> int:
    """Sentences of a text; 0 where there is no word in it. Only the first 1,000 characters are looked at."""
    text = text[:_MAX_LOOKED_AT].strip()
    count = start = 0
    for match in _END.finditer(text):
        end = match.end()
        if end < len(text) and _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start() + 1]):
            continue
        count += _WORD.search(text, start, end) is not None
        start = end
    return count + (_WORD.search(text, start) is not None)


def why_not_relative(path: str) -> str | None:
    """Why a path is not repo-relative, as half a sentence for a message; None where it is."""
    if len(path) > _LONGEST:
        return "it is longer than a path can be"
    if ".." not in path and _PLAIN.match(path):
        return None
    path = path.strip()
    if not path:
        return "it is empty"
    if path[0] in "/\\":
        return "it is absolute"
    if path[0] == "~":
        return "it starts in a home directory"
    if _SCHEME_OR_DRIVE.match(path):
        return "it names a drive or a scheme"
    if _VARIABLE.match(path):
        return "it starts with a variable"
    if "\0" in path:
        return "it holds a NUL character"
    depth = 0
    for part in re.split(r"[\\/]", path):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return "it leaves the repository by `..`"
    return None


def judge_paths(rule: str, key: str, top: dict[str, Any], findings: Findings) -> None:
    """Note each `path` in the list of objects at `key` that is not repo-relative; an empty one breaks another rule."""
    entries = top.get(key)
    for index, entry in enumerate(entries[:MAX_ENTRIES] if isinstance(entries, list) else ()):
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and path.strip() and (reason := why_not_relative(path)):
            findings.add(rule, (key, index, "path"), value=shown(path), reason=reason)
