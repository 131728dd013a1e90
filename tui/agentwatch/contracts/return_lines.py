"""Reads the lines of the four sections: keys, bullets and lists, and notes every line that is written otherwise."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.markdown_source import Bullet, Entry, bullet, entry
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.return_sections import FILE_KEYS, LIST_KEYS, STATUS_KEYS, TEXT_KEYS

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_ATTESTED: Final = (*TEXT_KEYS, *LIST_KEYS)
_NONE: Final = "(none)"
_LIKE_NONE: Final = frozenset({_NONE, "none", "(none).", "none.", "n/a", "(n/a)", "-", "[]", "(empty)"})
_SHORT_KEYS: Final = ("state", "retry_recommended", "error_code", "attempt")
_KNOWN: Final = "|".join(STATUS_KEYS[:5])
_KEY_IN_SHORT: Final = re.compile(rf"[\s,;|]({_KNOWN})\s{{0,3}}:")
_KEY_IN_LONG: Final = re.compile(rf"[,;|]\s{{0,3}}({_KNOWN})\s{{0,3}}:\s")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_TICKED: Final = re.compile(r"`([^`]+)`(.*)\Z", re.DOTALL)
_LINK: Final = r"\[[^\]]*\]\(<?([^()<>]+)>?\)(.*)\Z"
_QUOTED: Final = r"[\"\u201c]([^\"\u201d]+)[\"\u201d](.*)\Z"
_LOOKS_LIKE_PATH: Final = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.-]*[./][A-Za-z0-9_./-]*\Z")
_IS_PATH: Final = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
_MORE_THAN_A_PATH: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")


@dataclass(slots=True)
class Keys:
    """Values of keys and the 1-based line of each."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def put(self, key: str, value: str, line: int, judgement: Judgement) -> bool:
        """Keep the first value of a key; a second one is a finding. True where it was kept."""
        if key in self.values:
            judgement.add_at("RET020", line, key=key)
            return False
        self.values[key] = value
        self.lines[key] = line
        return True


@dataclass(slots=True)
class Attested:
    """The lines of `## Runtime Attestation`: text keys, and lists with the line of each entry."""

    keys: Keys = field(default_factory=Keys)
    lists: dict[str, list[tuple[str, int]]] = field(default_factory=dict)


def read_status(
    lines: list[str], first: int, behind: int, judgement: Judgement, *, first_line: int, swallowed: bool = False
) -> Keys:
    """The keys of `## Status`.

    `swallowed`: the header of the next section is missing, so what stands behind an empty line is not of the status.
    """
    keys = Keys()
    after_blank = False
    for index in range(first, behind):
        text = lines[index]
        if not text.strip():
            after_blank = bool(keys.values)
            continue
        line = first_line + index
        found = entry(text)
        name = _known(found, STATUS_KEYS) if found is not None else None
        if found is None or (name is None and not (_PLAIN_KEY.match(found.key) and found.plain and not found.bullet)):
            if not (swallowed and after_blank):
                judgement.add_at("RET019", line)
            continue
        if name is None:
            continue
        _judge_dress(found, name, line, judgement)
        _put_split(keys, name, found.value, line, judgement)
    return keys


def _known(found: Entry, known: tuple[str, ...]) -> str | None:
    """The contract's key that this one means, None where it is another key."""
    if found.key in known:
        return found.key
    name = found.key.lower().replace(" ", "_").replace("-", "_")
    return name if name in known else None


def _judge_dress(found: Entry, name: str, line: int, judgement: Judgement) -> None:
    if found.bullet:
        judgement.add_at("RET016", line, key=name)
    if found.decorated:
        judgement.add_at("RET017", line, key=name)
    if found.key != name:
        judgement.add_at("RET021", line, value=shown(found.key), key=name)
    if not found.plain:
        judgement.add_at("RET019", line)


def _put_split(keys: Keys, name: str, value: str, line: int, judgement: Judgement) -> None:
    """Put a value, and apart from it any further key that was written on the same line."""
    for _ in STATUS_KEYS:
        pattern = _KEY_IN_SHORT if name in _SHORT_KEYS else _KEY_IN_LONG
        match = pattern.search(value)
        if match is None:
            keys.put(name, value, line, judgement)
            return
        keys.put(name, value[: match.start()].strip(" \t,;|"), line, judgement)
        judgement.add_at("RET018", line, key=match[1])
        name, value = match[1], value[match.end() :].strip()


def read_deliverables(
    lines: list[str], first: int, behind: int, judgement: Judgement, *, first_line: int, swallowed: bool = False
) -> tuple[list[dict[str, str]], bool]:
    """(deliverables with `path` and `description`, whether there was any bullet or line at all)."""
    found: list[dict[str, str]] = []
    any_line = False
    for index in range(first, behind):
        text = lines[index]
        if not text.strip():
            if swallowed and any_line:
                break
            continue
        any_line = True
        line = first_line + index
        item = bullet(text)
        if item is None or item.indent > 1:
            judgement.add_at("RET034" if text[:1] in " \t" and found else "RET031", line)
            continue
        if item.text.casefold() == _NONE:
            continue
        path, description = _split_deliverable(item.text)
        if not _LOOKS_LIKE_PATH.match(path):
            judgement.add_at("RET033", line, value=shown(path))
        elif not description:
            judgement.add_at("RET032", line)
        if len(found) < MAX_ENTRIES:
            found.append({"path": path, "description": description} if description else {"path": path})
    return found, any_line


def _split_deliverable(text: str) -> tuple[str, str]:
    ticked = _TICKED.match(text)
    if ticked is not None:
        return ticked[1].strip(), _SEPARATOR.sub("", ticked[2], count=1).strip(" \t:\u2014\u2013-")
    match = _SEPARATOR.search(text)
    if match is None:
        # The contract names no separator: `src/api.py (the API)` has a path and a description.
        path, _, rest = text.partition(" ")
        return (path.rstrip(":"), rest.strip(" \t:\u2014\u2013-")) if _IS_PATH.match(path) else (text.rstrip(":"), "")
    return text[: match.start()].strip("*_ "), text[match.end() :].strip()


def read_evidence(
    lines: list[str], first: int, behind: int, judgement: Judgement, *, first_line: int
) -> tuple[list[str], bool]:
    """(evidence pointers, whether there was any bullet or line at all). Indented lines belong to their bullet."""
    found: list[str] = []
    any_line = False
    fenced = False
    for index in range(first, behind):
        text = lines[index]
        stripped = text.strip()
        if stripped.startswith(("```", "~~~")):
            # Proof-like output may be quoted below its bullet.
            fenced = not fenced
            continue
        if fenced or not stripped:
            continue
        any_line = True
        item = bullet(text)
        if item is not None:
            if item.text.casefold() != _NONE and len(found) < MAX_ENTRIES:
                found.append(item.text)
        elif not (text[:1] in " \t" and found):
            judgement.add_at("RET041", first_line + index)
    return found, any_line


def read_attestation(lines: list[str], first: int, behind: int, judgement: Judgement, *, first_line: int) -> Attested:
    """The keys and lists of `## Runtime Attestation`."""
    attested = Attested()
    current: str | None = None
    for index in range(first, behind):
        text = lines[index]
        if not text.strip():
            continue
        line = first_line + index
        found = entry(text)
        name = _known(found, _ATTESTED) if found is not None else None
        if found is not None and name is not None:
            _judge_dress(found, name, line, judgement)
            current = _put_attested(attested, name, found.value, line, judgement)
            continue
        item = bullet(text)
        if item is not None and current is not None:
            if current in FILE_KEYS:
                _put_path(attested.lists[current], current, item, line, judgement)
            elif current in attested.lists and item.text.casefold() != _NONE:
                _append(attested.lists[current], item.text, line)
        elif found is not None and item is None and found.plain and _PLAIN_KEY.match(found.key):
            # Another key, and perhaps a list below it: not of the contract.
            current = "" if not found.value else None
        elif current in FILE_KEYS:
            # A path without its bullet is meant as the list's; a sentence or a `(none)` is an entry without a path.
            judgement.add_at("RET061", line)
            bare = text.strip()
            attested.lists[current].append((bare if _IS_PATH.match(bare) else "", line))
        elif not (current and text[:1] in " \t"):
            judgement.add_at("RET061", line)
    for key in FILE_KEYS:
        if key in attested.lists and not attested.lists[key] and not attested.keys.values.get(key):
            judgement.add_at("RET057", attested.keys.lines[key], key=key)
    for entries in attested.lists.values():
        entries[:] = [(path, line) for path, line in entries if path]
    return attested


def _put_attested(attested: Attested, name: str, value: str, line: int, judgement: Judgement) -> str | None:
    """Put a key of the attestation; the key whose list begins here, or None."""
    kept = attested.keys.put(name, value, line, judgement)
    if name in TEXT_KEYS:
        return None
    if not kept:
        # The entries of a repeated list are not mixed into the first.
        return ""
    attested.lists[name] = []
    if value:
        if name in FILE_KEYS:
            judgement.add_at("RET056", line, key=name)
            if value.casefold() not in _LIKE_NONE:
                for part in re.split(r"\s*[,;]\s*", value.strip("[]")):
                    _append(attested.lists[name], part.strip("`'\" "), line)
        else:
            judgement.add_at("RET062", line)
            _append(attested.lists[name], value, line)
    return name


def _put_path(entries: list[tuple[str, int]], key: str, item: Bullet, line: int, judgement: Judgement) -> None:
    text = item.text
    if text.casefold() in _LIKE_NONE:
        # An entry all the same, so that the list does not count as empty.
        entries.append(("", line))
        if text.casefold() != _NONE:
            judgement.add_at("RET060", line, key=key)
        return
    if item.marker == "-" and _PLAIN_PATH.match(text) and not why_not_relative(text):
        _append(entries, text, line)
        return
    path = text
    ticked = _TICKED.match(text) or re.match(_LINK, text) or re.match(_QUOTED, text)
    more = _MORE_THAN_A_PATH.search(text)
    if ticked is not None:
        path = ticked[1].strip()
        more = re.search(r"\S", ticked[2])
    elif more is not None:
        path = text[: more.start()]
    if more is not None:
        judgement.add_at("RET058", line, key=key, value=shown(text))
    elif ticked is not None or item.marker != "-":
        judgement.add_at("RET060", line, key=key)
    reason = why_not_relative(path)
    if reason is not None:
        judgement.add_at("RET059", line, key=key, value=shown(path), reason=reason)
    _append(entries, path, line)


def _append(entries: list[tuple[str, int]], text: str, line: int) -> None:
    if len(entries) < MAX_ENTRIES:
        entries.append((text, line))
