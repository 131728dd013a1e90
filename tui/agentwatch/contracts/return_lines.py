"""Reads the lines of the four sections: keys, bullets and lists, and notes every line that is written otherwise.

Whatever else Markdown allows may stand between them, and is left aside. A fence is read only where what its section
must have stands in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.markdown_source import Bullet, KeyLine, Spans, bullet, entry, heading, is_rule, unfenced
from agentwatch.contracts.return_paths import (
    BARE_PATH,
    IS_PATH,
    LIKE_NONE,
    LOOKS_LIKE_PATH,
    NO_FILES,
    append,
    is_remark,
    put_path,
    split_deliverable,
)
from agentwatch.contracts.return_sections import FILE_KEYS, LIST_KEYS, STATUS_KEYS, TEXT_KEYS
from agentwatch.text import folded

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_ATTESTED: Final = (*TEXT_KEYS, *LIST_KEYS)
_REQUIRED: Final = ("state", "summary", "retry_recommended", *TEXT_KEYS, *FILE_KEYS)
_OF_RULES: Final = ("-", "*", "_")
_SHORT_KEYS: Final = ("state", "retry_recommended", "error_code", "attempt")
_WORD_KEYS: Final = ("state", "retry_recommended")
_MARKED_WORD: Final = re.compile(r"(\*\*|__|[*_`])(\w+)\1\Z")
_KNOWN: Final = "|".join(STATUS_KEYS[:5])
_KEY_IN_SHORT: Final = re.compile(rf"[\s,;|]({_KNOWN})\s{{0,3}}:")
_KEY_IN_LONG: Final = re.compile(rf"[,;|]\s{{0,3}}({_KNOWN})\s{{0,3}}:\s")
_ANY_KEY: Final = re.compile(r"[ \t]*[A-Za-z][\w .-]{0,60}:(?:\s|\Z)")
_LABEL: Final = re.compile(r"\s*(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*\Z")


@dataclass(slots=True)
class Keys:
    """Values of keys and the index of the line of each."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def put(self, key: str, value: str, index: int, judgement: Judgement) -> bool:
        """Keep the first value of a key; another one is a finding. True where it was kept."""
        if key in self.values:
            if key in LIST_KEYS or self.values[key] != value:
                judgement.add_in("RET020", index, key=key)
            return False
        self.values[key] = value
        self.lines[key] = index
        return True


@dataclass(slots=True)
class Attested(Keys):
    """The lines of `## Runtime Attestation`: keys, and the entries of lists."""

    lists: dict[str, list[str]] = field(default_factory=dict)


def read_status(lines: list[str], spans: Spans, judgement: Judgement, *, swallowed: bool = False) -> Keys:
    """The keys of `## Status`.

    `swallowed`: the header of the next section is missing, so what stands behind an empty line is not of the status.
    """
    keys = Keys()
    after_blank = False
    for index in _with_keys(lines, spans, STATUS_KEYS):
        text = lines[index]
        if not text.strip():
            after_blank = bool(keys.values)
            continue
        told = _known(text, STATUS_KEYS)
        if told is not None:
            _judge_dress(told, index, judgement)
            _put_split(keys, told.name, told.value, index, judgement)
        elif not (_ANY_KEY.match(text) or _is_no_text(text) or (swallowed and after_blank)):
            judgement.add_in("RET019", index)
            above = next((key for key in _WORD_KEYS if keys.lines.get(key) == index - 1), None)
            if above is not None and keys.values[above] and _indent(text) > _indent(lines[index - 1]):
                # The value goes on: one word is not what it says.
                keys.values[above] += f" {text.strip()}"
    return keys


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _with_keys(lines: list[str], spans: Spans, known: tuple[str, ...]) -> list[int]:
    """The lines of a section outside of fences; inside, too, where none of its keys stands outside."""
    outside, both = unfenced(lines, spans)
    return both if len(outside) < len(both) and not any(_known(lines[index], known) for index in outside) else outside


def _with_bullets(lines: list[str], spans: Spans) -> list[int]:
    """The lines of a section outside of fences; inside, too, where nothing stands outside."""
    outside, both = unfenced(lines, spans)
    return outside if len(outside) == len(both) or any(lines[index].strip() for index in outside) else both


def _is_no_text(line: str) -> bool:
    """Whether a line only structures a section."""
    return is_rule(line) or heading(line, 0) is not None


def _item(line: str) -> Bullet | None:
    found = bullet(line)
    return None if found is not None and found.text[:1] in _OF_RULES and is_rule(line) else found


def _known(line: str, known: tuple[str, ...]) -> KeyLine | None:
    """The key of the contract that a line holds, however it is spelled; None where it holds none."""
    told = entry(line)
    return told if told is not None and told.name in known else None


def _judge_dress(told: KeyLine, index: int, judgement: Judgement) -> None:
    name = told.name
    if told.key == name and told.plain and not (told.bullet or told.decorated):
        return
    if told.bullet:
        judgement.add_in("RET016", index, key=name)
    if told.decorated:
        judgement.add_in("RET017", index, key=name)
    if told.key != name or not told.plain:
        rule = "RET021" if name in _REQUIRED else "RET023"
        judgement.add_in(rule, index, value=shown(told.key if told.plain else f"{told.key} ="), key=name)


def _put_split(keys: Keys, name: str, value: str, index: int, judgement: Judgement) -> None:
    """Put a value, and apart from it any further key that was written on the same line."""
    for _ in STATUS_KEYS:
        pattern = _KEY_IN_SHORT if name in _SHORT_KEYS else _KEY_IN_LONG
        match = pattern.search(value) if ":" in value else None
        if match is None:
            marked = _MARKED_WORD.match(value) if name in _WORD_KEYS else None
            if marked is not None:
                judgement.add_in("RET017", index, key=name)
            keys.put(name, marked[2] if marked else value, index, judgement)
            return
        keys.put(name, value[: match.start()].strip(" \t,;|"), index, judgement)
        judgement.add_in("RET018", index, key=match[1])
        name, value = match[1], value[match.end() :].strip()


def read_deliverables(
    lines: list[str], spans: Spans, judgement: Judgement, *, swallowed: bool = False
) -> tuple[list[dict[str, str]], bool]:
    """(deliverables with `path` and `description`, whether there was any bullet at all)."""
    found: list[dict[str, str]] = []
    any_bullet = False
    indent: int | None = None
    for index in _with_bullets(lines, spans):
        text = lines[index]
        if not text.strip():
            if swallowed and any_bullet:
                break
            continue
        item = _item(text)
        if indent is not None and text[:1] in " \t" and (item is None or item.indent > indent + 1):
            judgement.add_in("RET034", index)
        elif item is None:
            if BARE_PATH.match(text):
                judgement.add_in("RET024", index, value=shown(text.strip()))
            elif not _is_no_text(text):
                judgement.add_in("RET031", index)
        else:
            any_bullet = True
            indent = item.indent
            if NO_FILES.match(item.text):
                continue
            path, description = split_deliverable(item.text)
            if item.text.rstrip("*_").endswith(":") and not IS_PATH.match(path):
                # The label of the bullets below it.
                judgement.add_in("RET031", index)
                indent = None
                continue
            if not LOOKS_LIKE_PATH.match(path):
                judgement.add_in("RET033", index, value=shown(path))
            elif not description:
                judgement.add_in("RET032", index)
            if len(found) < MAX_ENTRIES:
                found.append({"path": path, "description": description} if description else {"path": path})
    return found, any_bullet


def read_evidence(lines: list[str], spans: Spans, judgement: Judgement) -> tuple[list[str], bool]:
    """(evidence pointers, whether there was any bullet at all). Indented lines belong to their bullet."""
    found: list[str] = []
    any_bullet = False
    for index in _with_bullets(lines, spans):
        text = lines[index]
        item = _item(text)
        if item is not None:
            any_bullet = True
            if folded(item.text) not in LIKE_NONE and len(found) < MAX_ENTRIES:
                found.append(item.text)
        elif text.strip() and not _is_no_text(text) and not (text[:1] in " \t" and found):
            judgement.add_in("RET041", index)
    return found, any_bullet


def read_attestation(lines: list[str], spans: Spans, judgement: Judgement) -> Attested:
    """The keys and lists of `## Runtime Attestation`.

    Below a label, a remark or another bullet (`apart`) only what can be nothing but a path is an entry of a list.
    """
    attested = Attested()
    current: str | None = None
    indent: int | None = None
    after_blank = apart = False
    texts: dict[str, tuple[str, int]] = {}
    for index in _with_lists(lines, spans):
        text = lines[index]
        if not text.strip():
            after_blank = True
            continue
        told = _known(text, _ATTESTED)
        item = _item(text) if told is None else None
        if told is not None:
            _judge_dress(told, index, judgement)
            current = _put_attested(attested, told.name, told.value, index, judgement)
            indent, apart = None, False
        elif item is not None and current is not None:
            indent = item.indent if indent is None else min(item.indent, indent)
            below = item.indent > indent + 1
            if current in FILE_KEYS and (below or (apart and attested.lists[current])) and is_remark(item.text, below):
                judgement.add_in("RET061", index)
            elif current in FILE_KEYS:
                put_path(attested.lists[current], current, item, index, judgement)
            elif current in attested.lists and not below and folded(item.text) not in LIKE_NONE:
                append(attested.lists[current], item.text)
        elif _is_no_text(text) or _LABEL.match(text):
            apart = apart or not is_rule(text)
        elif item is None and _ANY_KEY.match(text):
            # Another key, not of the contract, and with it the list that begins here.
            apart = True
            current = "" if text.rstrip().endswith(":") else current
        elif current in FILE_KEYS and BARE_PATH.match(text) and not (after_blank and attested.lists[current]):
            judgement.add_in("RET024", index, value=shown(text.strip()))
            append(attested.lists[current], text.strip().strip("`"))
        else:
            if current in FILE_KEYS and not attested.lists[current]:
                texts.setdefault(current, (text.strip(), index))
            elif not (current and text[:1] in " \t"):
                judgement.add_in("RET061", index)
            apart = apart or after_blank
        after_blank = False
    _judge_lists(attested, texts, judgement)
    return attested


def _judge_lists(attested: Attested, texts: dict[str, tuple[str, int]], judgement: Judgement) -> None:
    for key in FILE_KEYS:
        if attested.lists.get(key) == [] and not attested.values.get(key):
            if key in texts:
                # Words where the list should be; above a list they would introduce it.
                judgement.add_in("RET024", texts[key][1], value=shown(texts[key][0]))
            else:
                judgement.add_in("RET057", attested.lines[key], key=key)
    for entries in attested.lists.values():
        entries[:] = filter(None, entries)


def _with_lists(lines: list[str], spans: Spans) -> list[int]:
    """The lines of the attestation outside of fences; inside, too, where all keys, or a list's bullets, stand there."""
    outside, both = unfenced(lines, spans)
    if len(outside) == len(both):
        return outside
    chosen = _with_keys(lines, spans, _ATTESTED)
    kept = set(chosen)
    bare: int | None = None
    for index in [*chosen, len(lines)]:
        told = _known(lines[index], _ATTESTED) if index < len(lines) else None
        if told is not None or index == len(lines):
            if bare is not None:
                kept |= {each for each in both if bare < each < index}
            bare = index if told is not None and not told.value and told.name in LIST_KEYS else None
        elif _item(lines[index]) is not None:
            bare = None
    return [index for index in both if index in kept]


def _put_attested(attested: Attested, name: str, value: str, index: int, judgement: Judgement) -> str | None:
    """Put a key of the attestation; the key whose list begins here, or None."""
    kept = attested.put(name, value, index, judgement)
    if name in TEXT_KEYS:
        return None
    if not kept:
        # The entries of a repeated list are not mixed into the first.
        return ""
    attested.lists[name] = []
    if value:
        if name in FILE_KEYS:
            judgement.add_in("RET056", index, key=name)
            if folded(value) not in LIKE_NONE:
                for part in re.split(r"\s*[,;]\s*", value.strip("[]")):
                    append(attested.lists[name], part.strip("`'\" "))
        else:
            judgement.add_in("RET062", index)
            append(attested.lists[name], value)
    return name
