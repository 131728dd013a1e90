"""Paths in the bullets of a return, however they are dressed: in backticks, a link or quotes, with words behind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.text import folded

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement
    from agentwatch.contracts.markdown_source import Bullet

_NONE: Final = "(none)"
LIKE_NONE: Final = frozenset({_NONE, "none", "(none).", "none.", "n/a", "n/a.", "(n/a)", "-", "[]", "(empty)"})
NO_FILES: Final = re.compile(
    r"(?=\W{0,2}(?:there (?:are|is|was|were) )?(?:no|none|nothing|n/a|not applicable)(?:[\s.,:;)]|\Z))"
    r"(?!.*(?:[\\/](?!a\b)|\w\.\w|\b(?:apart|besides?|but|except|only|other)\b))",
    re.IGNORECASE,
)
"""A sentence that there are no files; one that names a file, or an exception, is none."""
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_DRESS: Final = re.compile(r"(?:\[[ xX-]\][ \t]+)?(?:(\*\*|\*)(?=[^*\s])(.+?)\1(?!\*))?", re.DOTALL)
_TICKED: Final = re.compile(r"`([^`]+)`(.*)\Z", re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(<?([^()<>]+)>?\)(.*)\Z", re.DOTALL)
_QUOTED: Final = re.compile(r"(?:[\"\u201c]([^\"\u201d]+)[\"\u201d]|'([^']+)')(.*)\Z", re.DOTALL)
LOOKS_LIKE_PATH: Final = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.-]*[./][A-Za-z0-9_./-]*\Z")
IS_PATH: Final = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
BARE_PATH: Final = re.compile(
    r"\s*`?(?!</?\w|\w+://)[^\s`>|]*(?:[/\\]|\.[A-Za-z0-9])[^\s`]*`?(?:\s+(?:\u2014|\u2013|--?|\u2192|=>)\s|\s*\Z)"
)
_MORE_THAN_A_PATH: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")


def _undressed(text: str) -> str:
    """A bullet's text without a checkbox and the emphasis of its first words."""
    match = _DRESS.match(text) if text[:1] in "[*" else None
    return (match[2] or "") + text[match.end() :] if match else text


def split_deliverable(text: str) -> tuple[str, str]:
    """(path, description) of a deliverable; "" where there is none."""
    text = _undressed(text)
    marked = (_TICKED.match(text) or _LINK.match(text)) if text[:1] in "`[" else None
    if marked is not None:
        return marked[1].strip(), _SEPARATOR.sub("", marked[2], count=1).strip(" \t:\u2014\u2013-")
    match = _SEPARATOR.search(text)
    if match is None:
        # The contract names no separator: `src/api.py (the API)` has a path and a description.
        path, _, rest = text.partition(" ")
        return (path.rstrip(":"), rest.strip(" \t:\u2014\u2013-")) if IS_PATH.match(path) else (text.rstrip(":"), "")
    return text[: match.start()].strip(" "), text[match.end() :].strip()


def is_remark(text: str, below: bool) -> bool:
    """Whether a bullet behind the words of a list, or `below` another bullet, is no entry of that list."""
    if folded(text) in LIKE_NONE:
        return False
    text = _undressed(text)
    marked = _marked_path(text)
    if marked is not None:
        return bool(marked[1].strip())
    words = text.split() or [""]
    if below:
        return IS_PATH.match(text) is None
    return len(words) > 1 and not (IS_PATH.match(words[0]) and IS_PATH.match(words[-1]))


def _marked_path(text: str) -> tuple[str, str] | None:
    """(the path in backticks, a link or quotes with which a text begins, the rest); None where it begins otherwise."""
    match = _TICKED.match(text) or _LINK.match(text) or _QUOTED.match(text)
    if match is None:
        return None
    return next(filter(None, match.groups()[:-1])).strip(), match.groups()[-1]


def put_path(entries: list[str], key: str, item: Bullet, index: int, judgement: Judgement) -> None:
    """Put the path of a bullet below a list key of the attestation, and note how else it is written."""
    text = item.text
    if folded(text) in LIKE_NONE or NO_FILES.match(text):
        # An entry all the same, so that the list does not count as empty.
        entries.append("")
        if folded(text) != _NONE:
            judgement.add_in("RET060", index, key=key)
        return
    if item.marker == "-" and _PLAIN_PATH.match(text) and not why_not_relative(text):
        append(entries, text)
        return
    path = _undressed(text)
    marked = _marked_path(path)
    more = _MORE_THAN_A_PATH.search(path)
    dressed = path != text or marked is not None or item.marker != "-"
    if marked is not None:
        path, more = marked[0], re.search(r"\S", marked[1])
    elif more is not None:
        path = path[: more.start()]
    if more is not None:
        judgement.add_in("RET058", index, key=key, value=shown(text))
    elif dressed:
        judgement.add_in("RET060", index, key=key)
    reason = why_not_relative(path)
    if reason is not None:
        judgement.add_in("RET059", index, key=key, value=shown(path), reason=reason)
    append(entries, path)


def append(entries: list[str], text: str) -> None:
    """Put an entry, while they are not too many."""
    if len(entries) < MAX_ENTRIES:
        entries.append(text)
