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
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.return_sections import FILE_KEYS, LIST_KEYS, STATUS_KEYS, TEXT_KEYS
from agentwatch.text import folded

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_ATTESTED: Final = (*TEXT_KEYS, *LIST_KEYS)
_REQUIRED: Final = ("state", "summary", "retry_recommended", *TEXT_KEYS, *FILE_KEYS)
_OF_RULES: Final = ("-", "*", "_")
_NONE: Final = "(none)"
_LIKE_NONE: Final = frozenset({_NONE, "none", "(none).", "none.", "n/a", "n/a.", "(n/a)", "-", "[]", "(empty)"})
_NO_FILES: Final = re.compile(
    r"(?=\W{0,2}(?:there (?:are|is|was|were) )?(?:no|none|nothing|n/a|not applicable)(?:[\s.,:;)]|\Z))"
    r"(?!.*(?:[\\/](?!a\b)|\w\.\w|\b(?:apart|besides?|but|except|only|other)\b))",
    re.IGNORECASE,
)
"""A sentence that there are no files; one that names a file, or an exception, is none."""
_SHORT_KEYS: Final = ("state", "retry_recommended", "error_code", "attempt")
_WORD_KEYS: Final = ("state", "retry_recommended")
_MARKED_WORD: Final = re.compile(r"(\*\*|__|[*_`])(\w+)\1\Z")
_KNOWN: Final = "|".join(STATUS_KEYS[:5])
_KEY_IN_SHORT: Final = re.compile(rf"[\s,;|]({_KNOWN})\s{{0,3}}:")
_KEY_IN_LONG: Final = re.compile(rf"[,;|]\s{{0,3}}({_KNOWN})\s{{0,3}}:\s")
_ANY_KEY: Final = re.compile(r"[ \t]*[A-Za-z][\w .-]{0,60}:(?:\s|\Z)")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_LABEL: Final = re.compile(r"\s*(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*\Z")
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_DRESS: Final = re.compile(r"(?:\[[ xX-]\][ \t]+)?(?:(\*\*|\*)(?=[^*\s])(.+?)\1(?!\*))?", re.DOTALL)
_TICKED: Final = re.compile(r"`([^`]+)`(.*)\Z", re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(<?([^()<>]+)>?\)(.*)\Z", re.DOTALL)
_QUOTED: Final = re.compile(r"(?:[\"\u201c]([^\"\u201d]+)[\"\u201d]|'([^']+)')(.*)\Z", re.DOTALL)
_LOOKS_LIKE_PATH: Final = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.-]*[./][A-Za-z0-9_./-]*\Z")
_IS_PATH: Final = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
_BARE_PATH: Final = re.compile(
    r"\s*`?(?!</?\w|\w+://)[^\s`>|]*(?:[/\\]|\.[A-Za-z0-9])[^\s`]*`?(?:\s+(?:\u2014|\u2013|--?|\u2192|=>)\s|\s*\Z)"
)
_MORE_THAN_A_PATH: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")


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
            if _BARE_PATH.match(text):
                judgement.add_in("RET024", index, value=shown(text.strip()))
            elif not _is_no_text(text):
                judgement.add_in("RET031", index)
        else:
            any_bullet = True
            indent = item.indent
            if _NO_FILES.match(item.text):
                continue
            path, description = _split_deliverable(item.text)
            if item.text.rstrip("*_").endswith(":") and not _IS_PATH.match(path):
                # The label of the bullets below it.
                judgement.add_in("RET031", index)
                indent = None
                continue
            if not _LOOKS_LIKE_PATH.match(path):
                judgement.add_in("RET033", index, value=shown(path))
            elif not description:
                judgement.add_in("RET032", index)
            if len(found) < MAX_ENTRIES:
                found.append({"path": path, "description": description} if description else {"path": path})
    return found, any_bullet


def _undressed(text: str) -> str:
    """A bullet's text without a checkbox and the emphasis of its first words."""
    match = _DRESS.match(text) if text[:1] in "[*" else None
    return (match[2] or "") + text[match.end() :] if match else text


def _split_deliverable(text: str) -> tuple[str, str]:
    text = _undressed(text)
    marked = (_TICKED.match(text) or _LINK.match(text)) if text[:1] in "`[" else None
    if marked is not None:
        return marked[1].strip(), _SEPARATOR.sub("", marked[2], count=1).strip(" \t:\u2014\u2013-")
    match = _SEPARATOR.search(text)
    if match is None:
        # The contract names no separator: `src/api.py (the API)` has a path and a description.
        path, _, rest = text.partition(" ")
        return (path.rstrip(":"), rest.strip(" \t:\u2014\u2013-")) if _IS_PATH.match(path) else (text.rstrip(":"), "")
    return text[: match.start()].strip(" "), text[match.end() :].strip()


def read_evidence(lines: list[str], spans: Spans, judgement: Judgement) -> tuple[list[str], bool]:
    """(evidence pointers, whether there was any bullet at all). Indented lines belong to their bullet."""
    found: list[str] = []
    any_bullet = False
    for index in _with_bullets(lines, spans):
        text = lines[index]
        item = _item(text)
        if item is not None:
            any_bullet = True
            if folded(item.text) not in _LIKE_NONE and len(found) < MAX_ENTRIES:
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
            if current in FILE_KEYS and (below or (apart and attested.lists[current])) and _is_remark(item.text, below):
                judgement.add_in("RET061", index)
            elif current in FILE_KEYS:
                _put_path(attested.lists[current], current, item, index, judgement)
            elif current in attested.lists and not below and folded(item.text) not in _LIKE_NONE:
                _append(attested.lists[current], item.text)
        elif _is_no_text(text) or _LABEL.match(text):
            apart = apart or not is_rule(text)
        elif item is None and _ANY_KEY.match(text):
            # Another key, not of the contract, and with it the list that begins here.
            apart = True
            current = "" if text.rstrip().endswith(":") else current
        elif current in FILE_KEYS and _BARE_PATH.match(text) and not (after_blank and attested.lists[current]):
            judgement.add_in("RET024", index, value=shown(text.strip()))
            _append(attested.lists[current], text.strip().strip("`"))
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
            if folded(value) not in _LIKE_NONE:
                for part in re.split(r"\s*[,;]\s*", value.strip("[]")):
                    _append(attested.lists[name], part.strip("`'\" "))
        else:
            judgement.add_in("RET062", index)
            _append(attested.lists[name], value)
    return name


def _is_remark(text: str, below: bool) -> bool:
    """Whether a bullet behind the words of a list, or `below` another bullet, is no entry of that list."""
    if folded(text) in _LIKE_NONE:
        return False
    text = _undressed(text)
    marked = _marked_path(text)
    if marked is not None:
        return bool(marked[1].strip())
    words = text.split() or [""]
    if below:
        return _IS_PATH.match(text) is None
    return len(words) > 1 and not (_IS_PATH.match(words[0]) and _IS_PATH.match(words[-1]))


def _marked_path(text: str) -> tuple[str, str] | None:
    """(the path in backticks, a link or quotes with which a text begins, the rest); None where it begins otherwise."""
    match = _TICKED.match(text) or _LINK.match(text) or _QUOTED.match(text)
    if match is None:
        return None
    return next(filter(None, match.groups()[:-1])).strip(), match.groups()[-1]


def _put_path(entries: list[str], key: str, item: Bullet, index: int, judgement: Judgement) -> None:
    text = item.text
    if folded(text) in _LIKE_NONE or _NO_FILES.match(text):
        # An entry all the same, so that the list does not count as empty.
        entries.append("")
        if folded(text) != _NONE:
            judgement.add_in("RET060", index, key=key)
        return
    if item.marker == "-" and _PLAIN_PATH.match(text) and not why_not_relative(text):
        _append(entries, text)
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
    _append(entries, path)


def _append(entries: list[str], text: str) -> None:
    if len(entries) < MAX_ENTRIES:
        entries.append(text)
