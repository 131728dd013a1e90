"""Reads Markdown line by line: blocks, keys, bullets, the sections of a return, and checklists."""

import re
from typing import NamedTuple

from agentwatch.contracts.rules import MAX_ENTRIES, Findings, shorten
from agentwatch.contracts.shapes import Todo, Todos, TodoStatus
from agentwatch.text import fold_case

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*\Z", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t](.*))?\Z", re.DOTALL)
_KEY = re.compile(
    r"[ \t]*(?:(?P<bullet>[-*+])[ \t]+)?(?P<open>\*\*|__|[*_`])?(?P<key>[A-Za-z](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?)"
    r"(?P<close>\*\*|__|[*_`])?[ \t]*:(?P<late>\*\*|__|[*_`])?(?P<value>.*)\Z",
    re.DOTALL,
)
_BULLET = re.compile(r"([ \t]*)([-*+]|\d{1,3}[.)])[ \t]+(.*)\Z", re.DOTALL)
RULE = re.compile(r"\s*([-*_])(?:[ \t]*\1){2,}\s*\Z")  # a thematic break such as `- - -`, which is no bullet
_COMMENT = "<!--"
# Matches a whole comment or a code span. Inside a code span, `<!--` opens no comment.
_COMMENT_OR_CODE = re.compile(r"(?<!`)(`++).*?(?<!`)\1(?!`)|<!--(?:-?>|.*?-->)", re.DOTALL)
_LONGEST_SEARCHED = 2_000  # only lines with fewer characters are searched for comments
_TAGS_BEFORE_HEADER = re.compile(r"(?:<[A-Za-z][^<>]*>)+(?=#{1,6} )")

STATUS = "Status"
DELIVERABLES = "Deliverables"
EVIDENCE = "Evidence"
ATTESTATION = "Runtime Attestation"
HEADERS = (STATUS, DELIVERABLES, EVIDENCE, ATTESTATION)
LEVEL = 2  # the number of `#` that each header has
STATES = ("SUCCESS", "ERROR", "PARTIAL")
_NO_LETTERS = re.compile(r"[^a-z]+")
_HEADERS_BY_LETTERS = {_NO_LETTERS.sub("", header.lower()): header for header in HEADERS}
_ANY_STATE = re.compile(
    r"^\W*(?:SUCCESS|ERROR|PARTIAL)\b(?:\W*(?:[|/,]|\bor\b)\W*(?:\b(?:SUCCESS|ERROR|PARTIAL)\b|\.\.\.|\u2026))+\W*\Z"
    r"|^(?!\W*(?:SUCCESS|ERROR|PARTIAL)\W*\Z)[`*\s]*(?:<.*>|\{.*\}|\[.*\]|\.\.\.|\u2026)[`*\s]*\Z",
    re.IGNORECASE,
)


class Fence(NamedTuple):
    """A fenced block. Its text is `lines[first:end]`. `closed` tells whether it has a closing fence."""

    first: int
    end: int
    language: str
    closed: bool = False


class Section(NamedTuple):
    """A heading, and the lines below it up to `end`. `header` is its name in the contract, or None."""

    header: str | None
    line: int
    level: int
    text: str
    end: int


# The sections of a return, by header. If a text repeats a header, the list has several sections.
Sections = dict[str, list[Section]]


class Page(NamedTuple):
    """A Markdown text as lines. `outside` tells for each line whether the line is outside fences."""

    lines: list[str]
    outside: list[bool]
    headings: list[Section]
    fences: list[Fence]


class KeyLine(NamedTuple):
    """A line of the form `key: value`. `name` is the key in the spelling of the contracts."""

    key: str
    name: str
    value: str
    bullet: bool
    decorated: bool


class Bullet(NamedTuple):
    """One line with a bullet. `marker` is `-`, `*`, `+` or a number; `indent` counts the columns before the marker."""

    text: str
    marker: str
    indent: int


def split_lines(text: str) -> list[str]:
    """Return the lines of a text as an editor numbers them. Only line feeds and carriage returns end a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def scan_blocks(lines: list[str]) -> Page:
    """Find the headings and fences of a text. Replace front matter, comments and fence marks by blank lines."""
    seen, outside, fences = list[str](), list[bool](), list[Fence]()
    found: list[tuple[str | None, int, int, str]] = []
    fence, in_comment, end = "", False, len(lines)
    front = 0
    if lines and lines[0].rstrip() == "---":
        # Front matter ends with a second `---`. A text with a heading before that line has no front matter.
        for index, line in enumerate(lines[1:200], 1):
            if re.match(r"##+[ \t]", line):
                break
            if line.rstrip() in ("---", "..."):
                front = index + 1
                break
    for index, original in enumerate(lines):
        line = "" if index < front else original
        if in_comment:
            _, closed, line = line.partition("-->")
            in_comment = not closed
        elif not fence and "<" in line and len(line) < _LONGEST_SEARCHED:
            line = _COMMENT_OR_CODE.sub(lambda match: match[0] if match[1] else "", _TAGS_BEFORE_HEADER.sub("", line))
            before, mark, _ = line.partition(_COMMENT)
            # After text, `<!--` begins a comment only if the comment ends on the same line.
            in_comment = bool(mark) and not before.strip()
            line = before if in_comment else line
        match = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if match and not fence:
            fence, line = match[1], ""
            fences.append(Fence(index + 1, end, match[2].lower()))
        elif match and match[1].startswith(fence) and not match[2]:
            fence, line = "", ""
            fences[-1] = fences[-1]._replace(end=index, closed=True)
        elif not fence and "#" in line and (match := _HEADING.match(line)):
            text = (match[2] or "").strip()
            is_other = len(text) > 60 or "`" in text
            header = None if is_other else _HEADERS_BY_LETTERS.get(_NO_LETTERS.sub("", fold_case(text)))
            found.append((header, index, len(match[1]), text))
        seen.append(line)
        outside.append(not fence)
    ends = (*(line for _, line, _, _ in found[1:]), end)
    return Page(seen, outside, [Section(*one, end) for one, end in zip(found, ends, strict=False)], fences)


def read_key(line: str) -> KeyLine | None:
    """Return the key and value of a line `key: value`. Return None for any other line."""
    match = _KEY.match(line) if ":" in line else None
    if not match:
        return None
    mark, opened, key, closed, late, value = match.groups()
    value = value.strip()
    if opened and not (closed or late) and value.endswith(opened):
        # The whole line is emphasised, such as `**state: SUCCESS**`.
        value = value[: -len(opened)].rstrip()
    return KeyLine(key, key.lower().replace(" ", "_").replace("-", "_"), value, mark is not None, opened is not None)


def read_bullet(line: str) -> Bullet | None:
    """Return the bullet of a line, or None if the line has no bullet."""
    match = _BULLET.match(line)
    return None if not match or RULE.match(line) else Bullet(match[3].strip(), match[2], len(match[1].expandtabs(4)))


# The sections of a return


def find_value(page: Page, section: Section, key: str) -> str | None:
    """Return the first value of a key in a section, or None."""
    keys = (read_key(line) for line in page.lines[section.line + 1 : section.end] if key in line.lower())
    return next((each.value for each in keys if each and each.name == key), None)


def find_sections(page: Page, *, loose: bool, by_name: bool) -> Sections | None:
    """Return the sections of a return, or None if the text is no return. With `by_name`, one section is enough.
    With `loose`, the return may be below other headings, and may be an unfilled template."""
    known = {each.header for each in page.headings if each.level == LEVEL}
    found: Sections = {}
    current: Section | None = None
    is_below_another = False
    for each in page.headings:
        header = each.header
        if each.level > LEVEL and header in known and (header != STATUS or find_value(page, each, "state") is None):
            # A deeper heading with the name of a section is part of the section above, unless it has a state.
            header = None
        if current and current.header and (header or each.level <= current.level):
            found[current.header][-1] = current._replace(end=each.line)
            current = None
        if header:
            current = each._replace(header=header, end=len(page.lines))
            found.setdefault(header, []).append(current)
        is_below_another = is_below_another or (each.level > 1 and not found)
    if not found or by_name:
        return found or None
    first = next(iter(found.values()))[0]
    state = find_value(page, found[STATUS][0], "state") if STATUS in found else None
    # If the state is `SUCCESS | ERROR | PARTIAL` or `<state>`, the text is only a template.
    is_template = state and state not in STATES and _ANY_STATE.search(state[:200])
    if not loose and (is_template or is_below_another):
        return None
    if state is not None and (loose or first.header == STATUS or len(found) > 2):
        # A lone Status section needs a summary or a known state. The end of the state may be cut off.
        is_known = any(fold_case(known).startswith(fold_case(state)) for known in STATES)
        if len(found) > 1 or is_known or find_value(page, found[STATUS][0], "summary") is not None:
            return found
    return found if len(found) > 2 else None


# Checklists: `- [ ]` is pending, `- [-]` in progress, and `- [x]` done. The items should be done in their order.

_ITEM = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[^\]\[]{0,2})\](?!\()[ \t]*(?P<text>.*)\Z",
    re.DOTALL,
)
_ALMOST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])?[ \t]*\[[ xX~.*\u2713\u2714-]{0,2}\](?!\()")
_SECOND_ITEM = re.compile(r"(?:^|\s)[-*+][ \t]+\[[ xX-]\]")
_PHASE = re.compile(r"([A-Z][A-Z0-9]*(?:[ _/-][A-Z0-9]+)*):[ \t]+(?=\S)")
_STATUSES = {" ": TodoStatus.PENDING, "-": TodoStatus.IN_PROGRESS, "x": TodoStatus.DONE, "X": TodoStatus.DONE}


def has_checklist_item(lines: list[str], *, alone: bool = False) -> bool:
    """Tell whether any line is or resembles a checklist item. With `alone`, a bullet on the first line is enough."""
    first = next((line for line in lines if line.strip() and not (RULE.match(line) or _HEADING.match(line))), "")
    return (alone and _BULLET.match(first) is not None) or any(
        "[" in line and (_ITEM.match(line) or _ALMOST_ITEM.match(line)) for line in lines
    )


def read_checklist(lines: list[str], findings: Findings, *, alone: bool) -> Todos:
    """Return the items of a checklist, and report its wrong lines. With `alone`, all lines belong to the checklist."""
    found: list[Todo] = []
    pending_before = out_of_order = noted = after_blank = False
    in_list = alone
    for index, text in enumerate(lines):
        if not text.strip() or RULE.match(text):
            after_blank = True
            continue
        match = _ITEM.match(text) if "[" in text else None
        if match:
            if len(found) == MAX_ENTRIES:
                findings.add("DOC009", index, key="The checklist", limit=MAX_ENTRIES)
                break
            item = _read_item(match, index, findings)
            if item.status is TodoStatus.DONE and pending_before and not out_of_order:
                out_of_order = True
                findings.add("TOD006", index)
            pending_before = pending_before or item.status is TodoStatus.PENDING
            found.append(item)
            in_list, noted = True, False
        elif _HEADING.match(text):
            in_list = alone
        elif _ALMOST_ITEM.match(text) or (in_list and not noted and _BULLET.match(text) and text[:1] not in " \t"):
            findings.add("TOD001", index)
            in_list = True
        elif alone or (in_list and (not after_blank or _BULLET.match(text))):
            findings.add("TOD009", index)
            noted = noted or (text[:1] not in " \t" and bool(found))
        else:
            in_list = False
        after_blank = False
    return tuple(found)


def _read_item(match: re.Match[str], index: int, findings: Findings) -> Todo:
    mark, text = match["mark"], match["text"].strip()
    if mark not in _STATUSES:
        findings.add("TOD002", index, mark=mark if mark.isprintable() else "?")
    elif mark == "X":
        findings.add("TOD003", index)
    if not text:
        findings.add("TOD004", index)
    elif _SECOND_ITEM.search(text):
        findings.add("TOD005", index)
    if match["indent"]:
        findings.add("TOD007", index)
    if match["marker"] != "-":
        findings.add("TOD008", index, marker=match["marker"])
    phase = _PHASE.match(text)
    text = text[phase.end() :] if phase else text
    status = _STATUSES.get(mark, TodoStatus.PENDING)
    return Todo(shorten(text) or "", status, phase[1] if phase else None, findings.first_line + index)
