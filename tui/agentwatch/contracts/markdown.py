"""Markdown by lines: its blocks and keys, the sections of a return-format text, and checklists."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise, takewhile
from typing import Final, NamedTuple

from agentwatch.contracts.rules import MAX_ENTRIES, Findings, shorten
from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.text import folded

_FRONT_MATTER_LINES: Final = 200
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*\Z", re.DOTALL)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t](.*))?\Z", re.DOTALL)
_KEY: Final = re.compile(
    r"[ \t]*(?:(?P<bullet>[-*+])[ \t]+)?(?P<open>\*\*|__|[*_`])?(?P<key>[A-Za-z](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?)"
    r"(?P<close>\*\*|__|[*_`])?[ \t]*:(?P<late>\*\*|__|[*_`])?(?P<value>.*)\Z",
    re.DOTALL,
)
_BULLET: Final = re.compile(r"([ \t]*)([-*+]|\d{1,3}[.)])[ \t]+(.*)\Z", re.DOTALL)
_RULE: Final = re.compile(r"\s*([-*_])(?:[ \t]*\1){2,}\s*\Z")
_COMMENT: Final = "<!--"
# A whole comment, or a code span: what is quoted there opens none.
_CLOSED: Final = re.compile(r"(?<!`)(`++).*?(?<!`)\1(?!`)|<!--(?:-?>|.*?-->)", re.DOTALL)
_LONGEST: Final = 2_000  # characters of a line in which comments are looked for
_LOOK_AHEAD: Final = 50  # lines that a comment behind words may run on
_TAGS_BEFORE_HEADER: Final = re.compile(r"(?:<[A-Za-z][^<>]*>)+(?=#{1,6} )")

Spans = list[tuple[int, int]]
"""Where the lines of a section stand: from the first index up to, not including, the second; of a repeated one, all."""


class Fence(NamedTuple):
    """A fenced block: its lines are `first` up to, not including, `end`; `closed` says that its end was found."""

    first: int
    end: int
    language: str
    closed: bool


class KeyLine(NamedTuple):
    """A `key: value` line. `name` is the key as a contract would spell it."""

    key: str
    name: str
    value: str
    bullet: bool
    decorated: bool


class Bullet(NamedTuple):
    """One bullet line. `marker` is `-`, `*`, `+` or a number; `indent` counts the columns before it."""

    text: str
    marker: str
    indent: int


class Section(NamedTuple):
    """A heading outside of fences, which of the headers it means, and the index behind the last line below it."""

    header: str | None
    line: int
    level: int
    text: str
    end: int

    def body(self, lines: list[str]) -> list[str]:
        return lines[self.line + 1 : self.end]


def lines_of(text: str) -> list[str]:
    """The lines as an editor numbers them: only line feeds and carriage returns end one."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def after_front_matter(lines: list[str]) -> int:
    """Index of the first line behind YAML front matter, 0 where there is none: a rule above a heading is none."""
    if lines[0].rstrip() == "---":
        for index, line in enumerate(lines[1:_FRONT_MATTER_LINES], 1):
            if re.match(r"##+[ \t]", line):
                break
            if line.rstrip() in ("---", "..."):
                return index + 1
    return 0


def blocks(lines: list[str], start: int = 0) -> tuple[list[Section], list[Fence]]:
    """The headings outside of fences, each with what stands below it up to the next, and the fenced blocks."""
    headings: list[tuple[int, int, str]] = []
    fences: list[Fence] = []
    for index, (before, fence) in enumerate(pairwise(accumulate(lines[start:], after_fence, initial="")), start):
        if fence and not before:
            opened = _FENCE.match(lines[index])
            fences.append(Fence(index + 1, len(lines), opened[2].lower() if opened else "", closed=False))
        elif before and not fence:
            fences[-1] = fences[-1]._replace(end=index, closed=True)
        elif not fence and (made := heading(lines[index])):
            headings.append((index, *made))
    ends = (*(line for line, _, _ in headings[1:]), len(lines))
    return [Section(header_of(one[2]), *one, end) for one, end in zip(headings, ends, strict=False)], fences


def heading(line: str) -> tuple[int, str] | None:
    """Level and text of the heading that a line is, or None."""
    match = _HEADING.match(line)
    if match is None:
        return None
    text = (match[2] or "").strip()
    opened = text.rstrip("#")
    # A closing sequence, only if a space stands before it: `## Status ##`, not `## C#`.
    return len(match[1]), opened.rstrip() if not opened or opened[-1] in " \t" else text


def after_fence(fence: str, line: str) -> str:
    """The fence that is open behind a line, its marker, or "" where none is; `fence` is the one before."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    return "" if match[1].startswith(fence) and not match[2] else fence


def entry(line: str) -> KeyLine | None:
    """The `key: value` that a line holds, or None."""
    match = _KEY.match(line)
    if match is None:
        return None
    value, opened = match["value"].strip(), match["open"]
    if opened and not (match["close"] or match["late"]) and value.endswith(opened):
        # The whole line is emphasised: **state: SUCCESS**
        value = value[: -len(opened)].rstrip()
    name = match["key"].lower().replace(" ", "_").replace("-", "_")
    return KeyLine(match["key"], name, value, match["bullet"] is not None, opened is not None)


def bullet(line: str) -> Bullet | None:
    """The bullet that a line is, or None."""
    match = _BULLET.match(line)
    return None if match is None or is_rule(line) else Bullet(match[3].strip(), match[2], len(match[1].expandtabs(4)))


def is_rule(line: str) -> bool:
    """Whether a line is a thematic break such as `---` or `* * *`, which looks like a bullet."""
    return _RULE.match(line) is not None


def unfenced(lines: list[str], spans: Spans) -> tuple[list[int], list[int]]:
    """(lines outside of fences, those and the lines inside), without the marks of fences, however indented."""
    outside: list[int] = []
    both: list[int] = []
    for first, end in spans:
        states = accumulate((line.lstrip() for line in lines[first:end]), after_fence, initial="")
        for index, (before, fence) in enumerate(pairwise(states), first):
            if before == fence:
                both.append(index)
                outside += [] if fence else [index]
    return outside, both


def visible(lines: list[str]) -> list[str]:
    """The lines without tags before a header, and without HTML comments outside of fences. Their number stays."""
    seen: list[str] = []
    fence, in_comment = "", False
    for number, written in enumerate(lines, 1):
        line = written
        if in_comment:
            _, end, line = line.partition("-->")
            in_comment = not end
        elif not (fence := after_fence(fence, line)) and "<" in line and len(line) < _LONGEST:
            line = _CLOSED.sub(lambda match: match[0] if match[1] else "", _TAGS_BEFORE_HEADER.sub("", line))
            before, mark, _ = line.partition(_COMMENT)
            # One that begins behind words ends in its paragraph, or is none.
            paragraph = takewhile(str.strip, lines[number : number + _LOOK_AHEAD])
            in_comment = bool(mark) and (not before.strip() or any("-->" in one for one in paragraph))
            line = before if in_comment else line
        seen.append(line)
    return seen


# The sections of a return

STATUS: Final = "Status"
DELIVERABLES: Final = "Deliverables"
EVIDENCE: Final = "Evidence"
ATTESTATION: Final = "Runtime Attestation"
HEADERS: Final = (STATUS, DELIVERABLES, EVIDENCE, ATTESTATION)
LEVEL: Final = 2  # how many `#` each of the headers has
STATES: Final = ("SUCCESS", "ERROR", "PARTIAL")
_MEANT: Final = {re.sub(r"[^a-z]", "", header.lower()): header for header in HEADERS}
_MAX_HEADING: Final = 60
_ANY_STATE: Final = re.compile(
    r"^\W*(?:SUCCESS|ERROR|PARTIAL)\b(?:\W*(?:[|/,]|\bor\b)\W*(?:\b(?:SUCCESS|ERROR|PARTIAL)\b|\.\.\.|\u2026))+\W*\Z"
    r"|^(?!\W*(?:SUCCESS|ERROR|PARTIAL)\W*\Z)[`*\s]*(?:<.*>|\{.*\}|\[.*\]|\.\.\.|\u2026)[`*\s]*\Z",
    re.IGNORECASE,
)
_MAX_STATE: Final = 200

Sections = dict[str, list[Section]]
"""The sections of a return by their headers, in the order of the first of each; further ones repeat it."""


def header_of(text: str) -> str | None:
    """Which of the four headers a heading means, however it is spelled; None for any other heading."""
    return None if len(text) > _MAX_HEADING or "`" in text else _MEANT.get(re.sub(r"[^a-z]", "", folded(text)))


def open_returns(lines: list[str]) -> list[int]:
    """Lines where the returns of a text begin: each `## Status` with a `state`; the first may begin with the text."""
    headed = [each for each in blocks(lines, after_front_matter(lines))[0] if each.header]
    starts = [each.line for each in headed if each.header == STATUS and _state(each.body(lines)) is not None]
    return starts if starts and headed[0].header == STATUS else [0, *starts[1:]] if headed else []


def find_sections(lines: list[str], *, loose: bool = False, by_name: bool = False) -> Sections | None:
    """The sections of a return, None where the text is none: a file must begin with them, and not be about the format.

    `loose`, in the text of a subagent or a file called a return, anything may stand before. `by_name`: one section is
    enough.
    """
    headed, _ = blocks(lines, after_front_matter(lines))
    known = {each.header for each in headed if each.level == LEVEL}
    for index, each in enumerate(headed):
        # What is called so inside a section is a part of it, unless it tells a state.
        if each.level > LEVEL and each.header in known and (each.header != STATUS or _state(each.body(lines)) is None):
            headed[index] = each._replace(header=None)
    found: Sections = {}
    for index, each in enumerate(headed):
        if each.header is not None:
            behind = (other.line for other in headed[index + 1 :] if other.header or other.level <= each.level)
            found.setdefault(each.header, []).append(each._replace(end=next(behind, len(lines))))
    if not found or by_name:
        return found or None
    first = next(iter(found.values()))[0]
    state = _state(found[STATUS][0].body(lines)) if STATUS in found else None
    # As `SUCCESS | ERROR | PARTIAL`, or `<state>`, no return has it.
    is_template = state and state not in STATES and _ANY_STATE.search(state[:_MAX_STATE])
    if not loose and (
        is_template or any(not each.header and each.level > 1 and each.line < first.line for each in headed)
    ):
        return None
    if state is not None and (loose or first.header == STATUS or len(found) > 2):
        # With no other section there, `state` must be one of ours, or cut off in one, or have a summary beside it.
        is_known = any(folded(known).startswith(folded(state)) for known in STATES)
        if len(found) > 1 or is_known or _value(found[STATUS][0].body(lines), "summary") is not None:
            return found
    return found if len(found) > 2 else None


def _value(lines: list[str], key: str) -> str | None:
    """The value of a key, None where there is none."""
    told = (entry(line) for line in lines if key in line.lower())
    return next((each.value for each in told if each is not None and each.name == key), None)


def _state(lines: list[str]) -> str | None:
    return _value(lines, "state")


# Checklists: `- [ ]` pending, `- [-]` in progress, `- [x]` done, in execution order.

_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[^\]\[]{0,2})\](?!\()[ \t]*(?P<text>.*)\Z",
    re.DOTALL,
)
_NEARLY: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])?[ \t]*\[[ xX~.*\u2713\u2714-]{0,2}\](?!\()")
_SECOND: Final = re.compile(r"(?:^|\s)[-*+][ \t]+\[[ xX-]\]")
_PHASE: Final = re.compile(r"([A-Z][A-Z0-9]*(?:[ _/-][A-Z0-9]+)*):[ \t]+(?=\S)")
_STATUSES: Final = {" ": TodoStatus.PENDING, "-": TodoStatus.IN_PROGRESS, "x": TodoStatus.DONE, "X": TodoStatus.DONE}


def first_item(lines: list[str], *, alone: bool = False) -> int | None:
    """Index of the first item, or of what is meant as one, such as any bullet of a list `alone` in its file."""
    for index, line in enumerate(lines):
        if ("[" in line and (_ITEM.match(line) or _NEARLY.match(line))) or (alone and _BULLET.match(line)):
            return index
        alone = alone and (not line.strip() or _HEADING.match(line) is not None)
    return None


def opened(lines: list[str]) -> list[str]:
    """The lines without comments, rules and the marks of fences; their number stays."""
    lines = visible(lines)
    inside = set(unfenced(lines, [(0, len(lines))])[1])
    return [line if index in inside and not is_rule(line) else "" for index, line in enumerate(lines)]


def read_checklist(lines: list[str], findings: Findings, *, alone: bool) -> tuple[Todo, ...]:
    """The items of a checklist, which ends at a heading or text behind an empty line; `alone`, every line is judged.

    What continues an item and other words are notes, and so are the bullets behind them.
    """
    found: list[Todo] = []
    pending_before = out_of_order = noted = after_blank = False
    in_list = alone
    for index, text in enumerate(lines):
        if not text.strip():
            after_blank = True
            continue
        match = _ITEM.match(text) if "[" in text else None
        if match is not None:
            if len(found) == MAX_ENTRIES:
                findings.add_in("DOC009", index, key="The checklist", limit=MAX_ENTRIES)
                break
            item = _item(match, index, findings)
            if item.status is TodoStatus.DONE and pending_before and not out_of_order:
                out_of_order = True
                findings.add_in("TOD006", index)
            pending_before = pending_before or item.status is TodoStatus.PENDING
            found.append(item)
            in_list, noted = True, False
        elif _HEADING.match(text):
            in_list = alone
        elif _NEARLY.match(text) or (in_list and not noted and _BULLET.match(text) and text[:1] not in " \t"):
            findings.add_in("TOD001", index)
            in_list = True
        elif alone or (in_list and (not after_blank or _BULLET.match(text))):
            findings.add_in("TOD009", index)
            noted = noted or (text[:1] not in " \t" and bool(found))
        else:
            in_list = False
        after_blank = False
    return tuple(found)


def _item(match: re.Match[str], index: int, findings: Findings) -> Todo:
    mark, text = match["mark"], match["text"].strip()
    if mark not in _STATUSES:
        findings.add_in("TOD002", index, mark=mark if mark.isprintable() else "?")
    elif mark == "X":
        findings.add_in("TOD003", index)
    if not text:
        findings.add_in("TOD004", index)
    elif _SECOND.search(text):
        findings.add_in("TOD005", index)
    if match["indent"]:
        findings.add_in("TOD007", index)
    if match["marker"] != "-":
        findings.add_in("TOD008", index, marker=match["marker"])
    phase = _PHASE.match(text)
    text = text[phase.end() :] if phase else text
    status = _STATUSES.get(mark, TodoStatus.PENDING)
    return Todo(shorten(text) or "", status, phase[1] if phase else None, findings.first_line + index)
