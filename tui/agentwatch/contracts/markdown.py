"""Markdown by lines: headings outside fences, `key: value` lines, bullets, front matter and fenced blocks.

A contract uses so little of Markdown that a line scan reads it a hundred times faster than a parser, and keeps the
line numbers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRONT_MATTER_LINES: Final = 200
_MARKS: Final = frozenset("#`~")
_BEGINS: Final = _MARKS | {" "}
_DECORATIONS: Final = ("*", "_", "`")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*\Z", re.DOTALL)
_KEY: Final = re.compile(
    r"[ \t]*(?:(?P<bullet>[-*+])[ \t]+)?(?P<open>\*\*|__|[*_`])?(?P<key>[A-Za-z](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?)"
    r"(?P<close>\*\*|__|[*_`])?[ \t]*(?P<separator>[:=])(?P<late>\*\*|__|[*_`])?(?P<value>.*)\Z",
    re.DOTALL,
)
_BULLET: Final = re.compile(r"([ \t]*)([-*+]|\d{1,3}[.)])[ \t]+(.*)\Z", re.DOTALL)
_RULE: Final = re.compile(r"\s*([-*_])(?:[ \t]*\1){2,}\s*\Z")
_COMMENT: Final = "<!--"
# A whole comment, or a code span: what is quoted there opens none.
_CLOSED: Final = re.compile(r"(?<!`)(`++).*?(?<!`)\1(?!`)|<!--(?:-?>|.*?-->)", re.DOTALL)
_LONGEST: Final = 2_000
"""Characters of a line in which comments are looked for."""
_LOOK_AHEAD: Final = 50
"""Lines that a comment behind words may run on."""
_SHORT: Final = 40
_CACHED: Final = 500
"""Short lines that are known for the next document: nearly all returns have the same headers and keys."""

Spans = list[tuple[int, int]]
"""Where the lines of a section stand: from the first index up to, not including, the second; of a repeated one, all."""


class Heading(NamedTuple):
    """A heading outside of any fence. `line` is an index into the lines, from 0."""

    line: int
    level: int
    text: str


class Fence(NamedTuple):
    """A fenced block: its lines are `first` up to, not including, `end`; `closed` says that its end was found."""

    first: int
    end: int
    language: str
    closed: bool


class KeyLine(NamedTuple):
    """A `key: value` line. `name` is the key as a contract would spell it; `plain` is a `:` separator."""

    key: str
    name: str
    value: str
    bullet: bool
    decorated: bool
    plain: bool


class Bullet(NamedTuple):
    """One bullet line. `marker` is `-`, `*`, `+` or a number; `indent` counts the columns before it."""

    text: str
    marker: str
    indent: int


def lines_of(text: str) -> list[str]:
    """The lines as an editor numbers them: only line feeds and carriage returns end one."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def after_front_matter(lines: list[str]) -> int:
    """Index of the first line behind YAML front matter, 0 where there is none: a rule above a heading is none."""
    if lines[0].rstrip() == "---":
        for index, line in enumerate(lines[1:_FRONT_MATTER_LINES], 1):
            if re.match(r"##+[ \t]", line):
                break
            if line.rstrip() in ("---", "..."):
                return index + 1
    return 0


def _marked(lines: list[str], start: int) -> Iterator[tuple[int, str, str]]:
    """(index, fence open before it, fence open behind it) of each line that begins as a heading or a fence does."""
    fence = ""
    for index, line in enumerate(lines):
        if line[:1] in _BEGINS and line[:4] != "    " and index >= start:
            mark = line.lstrip(" ")[:1]
            if mark in _MARKS:
                before, fence = fence, fence if mark == "#" else after_fence(line, fence)
                yield index, before, fence


def headings(lines: list[str], start: int = 0) -> list[Heading]:
    """The headings outside of fences, in order."""
    if "#" not in "".join(lines):
        return []
    outside = (index for index, before, after in _marked(lines, start) if not before and not after)
    return [made for index in outside if (made := heading(lines[index], index)) is not None]


def heading(line: str, index: int = 0) -> Heading | None:
    """The heading that a line is, or None."""
    found = _short_title(line) if len(line) <= _SHORT else _title(line)
    return None if found is None else Heading(index, *found)


def _title(line: str) -> tuple[int, str] | None:
    """Level and text of a heading. Written without a pattern: it runs for every heading of every file."""
    marked = line.lstrip(" ")
    rest = marked.lstrip("#")
    level = len(marked) - len(rest)
    if not 1 <= level <= 6 or len(line) - len(marked) > 3 or (rest and rest[0] not in " \t"):
        return None
    text = rest.strip()
    opened = text.rstrip("#")
    # A closing sequence, only if a space stands before it: `## Status ##`, not `## C#`.
    return level, opened.rstrip() if not opened or opened[-1] in " \t" else text


_short_title: Final = lru_cache(_CACHED)(_title)


def after_fence(line: str, fence: str) -> str:
    """The fence that is open behind this line: its marker, or "" where none is."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    marker = match[1]
    if not fence:
        return marker
    return "" if marker[0] == fence[0] and len(marker) >= len(fence) and not match[2] else fence


def _may_fence(lines: list[str]) -> bool:
    """A cheap look that turns away nearly all lines without the mark of a fence."""
    text = "".join(lines)
    return "```" in text or "~~~" in text


def fences(lines: list[str], start: int = 0, limit: int = 200) -> list[Fence]:
    """The first `limit` fenced blocks."""
    return list(islice(_fences(lines, start), limit)) if _may_fence(lines) else []


def _fences(lines: list[str], start: int) -> Iterator[Fence]:
    opening, language = -1, ""
    for index, before, after in _marked(lines, start):
        if after and not before:
            match = _FENCE.match(lines[index])
            opening, language = index, match[2].lower() if match else ""
        elif before and not after:
            yield Fence(opening + 1, index, language, closed=True)
            opening = -1
    if opening >= 0:
        yield Fence(opening + 1, len(lines), language, closed=False)


def entry(line: str) -> KeyLine | None:
    """The `key: value` that a line holds, or None."""
    if ":" not in line and "=" not in line:
        return None
    return _short_entry(line) if len(line) <= _SHORT else _entry(line)


def _entry(line: str) -> KeyLine | None:
    key, colon, value = line.partition(":")
    if colon and key.isidentifier() and key.isascii() and key[0] != "_" != key[-1] and value[:1] not in _DECORATIONS:
        # As the contracts write it, and nearly every line is: the pattern would say the same in three times the time.
        return KeyLine(key, key.lower(), value.strip(), False, False, True)
    match = _KEY.match(line)
    if match is None:
        return None
    value, opened = match["value"].strip(), match["open"]
    if opened and not (match["close"] or match["late"]) and value.endswith(opened):
        # The whole line is emphasised: **state: SUCCESS**
        value = value[: -len(opened)].rstrip()
    name = match["key"].lower().replace(" ", "_").replace("-", "_")
    is_plain = match["separator"] == ":"
    return KeyLine(match["key"], name, value, match["bullet"] is not None, opened is not None, is_plain)


_short_entry: Final = lru_cache(_CACHED)(_entry)


def bullet(line: str) -> Bullet | None:
    """The bullet that a line is, or None."""
    if line[:2] == "- ":
        # As the contracts write it: the pattern would say the same.
        return Bullet(line[2:].strip(), "-", 0)
    match = _BULLET.match(line)
    return Bullet(match[3].strip(), match[2], len(match[1].expandtabs(4))) if match else None


def is_rule(line: str) -> bool:
    """Whether a line is a thematic break such as `---` or `* * *`, which looks like a bullet."""
    return _RULE.match(line) is not None


def unfenced(lines: list[str], spans: Spans) -> tuple[list[int], list[int]]:
    """(indices of the lines outside of fences, those and the lines inside), both without the marks of fences.

    Unlike elsewhere a fence may be indented at will, for it may stand below a bullet.
    """
    indices = [index for first, end in spans for index in range(first, end)]
    if not _may_fence([lines[index] for index in indices]):
        return indices, indices
    outside: list[int] = []
    both: list[int] = []
    for first, end in spans:
        fence = ""
        for index in range(first, end):
            after = after_fence(lines[index].lstrip(), fence)
            if after == fence:
                both.append(index)
                outside += [] if fence else [index]
            fence = after
    return outside, both


def uncommented(lines: list[str]) -> list[str]:
    """The lines without the HTML comments outside of fences, which no reader of Markdown sees. Their number stays."""
    if _COMMENT not in "".join(lines):
        return lines
    seen: list[str] = []
    fence = ""
    in_comment = False
    for index, written in enumerate(lines):
        line = written
        if in_comment:
            _, end, line = written.partition("-->")
            in_comment = not end
        if not in_comment:
            fence = after_fence(line, fence)
            if not fence and _COMMENT in line and len(line) < _LONGEST:
                line = _CLOSED.sub(lambda match: match[0] if match[1] else "", line)
                at = _CLOSED.sub(lambda match: " " * len(match[0]), line).find(_COMMENT)
                in_comment = at >= 0 and (not line[:at].strip() or _is_closed_below(lines, index))
                line = line[:at] if in_comment else line
        seen.append(line)
    return seen


def _is_closed_below(lines: list[str], index: int) -> bool:
    """Whether a comment that begins behind words of this line ends in its paragraph."""
    for line in lines[index + 1 : index + _LOOK_AHEAD]:
        if not line.strip() or "-->" in line:
            return bool(line.strip())
    return False
