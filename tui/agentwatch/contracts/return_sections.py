"""The four sections of a return-format text: where they are, and whether a text is such a return at all."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final, NamedTuple

from agentwatch.contracts.markdown import (
    after_fence,
    after_front_matter,
    bullet,
    entry,
    heading,
    headings,
)
from agentwatch.text import folded

STATUS: Final = "Status"
DELIVERABLES: Final = "Deliverables"
EVIDENCE: Final = "Evidence"
ATTESTATION: Final = "Runtime Attestation"
HEADERS: Final = (STATUS, DELIVERABLES, EVIDENCE, ATTESTATION)

STATES: Final = ("SUCCESS", "ERROR", "PARTIAL")
STATUS_KEYS: Final = ("state", "summary", "error_code", "retry_recommended", "retry_hint", "task_id", "attempt")
TEXT_KEYS: Final = ("runtime_model_reported", "runtime_mode_reported")
FILE_KEYS: Final = ("files_created", "files_modified")
LIST_KEYS: Final = (*FILE_KEYS, "limitations")
_ATTESTED: Final = (*TEXT_KEYS, *LIST_KEYS)

_LETTERS: Final = {re.sub(r"[^a-z]", "", header.lower()): header for header in HEADERS}
# Spelled so that a person knows what was meant; a text is never recognised by these alone.
_NEARLY: Final = {
    "deliverable": DELIVERABLES,
    "evidences": EVIDENCE,
    "attestation": ATTESTATION,
    "attestations": ATTESTATION,
    "runtimeattestations": ATTESTATION,
    "runtimeattestion": ATTESTATION,
}
_MARKED_LINE: Final = re.compile(r"\n( {0,3}(?:#|```|~~~)[^\n]*)")
_TAG: Final = re.compile(r"\s*</?[A-Za-z][\w-]*(?:\s[^<>]*)?>")
_TAGS_BEFORE_HEADER: Final = re.compile(r"(?:<[A-Za-z][^<>]*>)+(?=#{1,6} )")
_NOT_LETTERS: Final = re.compile(r"[^a-z]")
LEVEL: Final = 2
"""How many `#` each of the headers has."""
_MAX_HEADING: Final = 60
_ANY_STATE: Final = re.compile(
    r"^\W*(?:SUCCESS|ERROR|PARTIAL)\b(?:\W*(?:[|/,]|\bor\b)\W*(?:\b(?:SUCCESS|ERROR|PARTIAL)\b|\.\.\.|\u2026))+\W*\Z"
    r"|^(?!\W*(?:SUCCESS|ERROR|PARTIAL)\W*\Z)[`*\s]*(?:<.*>|\{.*\}|\[.*\]|\.\.\.|\u2026)[`*\s]*\Z",
    re.IGNORECASE,
)
_MAX_STATE: Final = 200


class Section(NamedTuple):
    """A heading outside of fences, which of the headers it means, and the index behind the last line below it."""

    header: str | None
    line: int
    level: int
    text: str
    end: int

    @property
    def first(self) -> int:
        """Index of the first line below the heading."""
        return self.line + 1

    def body(self, lines: list[str]) -> list[str]:
        return lines[self.first : self.end]


class Sections(NamedTuple):
    """The sections of a text, in their order. `start` is the index of the first line of the return; `repeated` are
    further ones. `preamble`: text or other headings stand before the first."""

    start: int
    by_header: dict[str, Section]
    repeated: tuple[Section, ...]
    preamble: bool

    def spans(self, header: str) -> list[tuple[int, int]]:
        """The lines of a section that is there, and of its repetitions."""
        sections = (*self.by_header.values(), *self.repeated)
        return [(each.first, each.end) for each in sections if each.header == header]

    @property
    def first(self) -> int:
        """Index of the first header; there must be one."""
        return next(iter(self.by_header.values())).line


def header_of(text: str) -> str | None:
    """Which of the four headers a heading means, however it is spelled; None for any other heading."""
    if text in HEADERS:
        return text
    if len(text) > _MAX_HEADING or "`" in text:
        return None
    letters = _NOT_LETTERS.sub("", folded(text))
    return _LETTERS.get(letters) or _NEARLY.get(letters)


def may_be_return(text: str) -> bool:
    """A cheap look that turns away nearly every other Markdown text: its first heading is none of the four.

    It lets through what `find_sections` has to decide.
    """
    if "#" not in text:
        return False
    if "runtime_" in text or "RUNTIME_" in text:
        return True
    if "\r" in text:
        text = text.replace("\r", "\n")
    fenced = ""
    for match in _MARKED_LINE.finditer("\n" + text):
        line = match[1]
        mark = line.lstrip(" ")[0]
        if mark != "#":
            fenced = after_fence(line, fenced)
        elif not fenced:
            found = heading(line)
            if found is not None and (found.level > 1 or header_of(found.text) is not None):
                return header_of(found.text) is not None
    return False


def _headings(lines: list[str], start: int = 0) -> list[Section]:
    """All headings, each of which ends at the next."""
    found = headings(lines, start)
    ends = (*(each.line for each in found[1:]), len(lines))
    return [Section(header_of(each.text), *each, end) for each, end in zip(found, ends, strict=False)]


def open_returns(lines: list[str]) -> list[int]:
    """Indices of the lines where the returns of a text begin: each at its `## Status`, told by the `state` below it.

    One that begins with another section, or tells no state, begins with the text. Nothing where there is no section.
    """
    headed = [each for each in _headings(lines, after_front_matter(lines)) if each.header]
    if not headed:
        return []
    starts = [each.line for each in headed if each.header == STATUS and _state(each.body(lines)) is not None]
    return starts if starts and headed[0].header == STATUS else [0, *starts[1:]]


def tail_of(lines: list[str], first: int, end: int) -> int:
    """Index of the last header of the return in these lines; `end` where output may be quoted below it."""
    last = next((each for each in reversed(_headings(lines[first:end])) if each.header), None)
    return first + last.line if last and last.header in (STATUS, ATTESTATION) else end


def find_sections(
    lines: list[str], *, embedded: bool = False, named: bool = False, by_name: bool = False
) -> Sections | None:
    """The sections of a return, None where the text is none.

    A file must begin with them; in the text that a subagent returned (`embedded`), or in a file that is `named` as a
    return is, anything may stand before. In any other a state that stands for all is that of a document about the
    format. `by_name`: one section is enough, for the name says that the file is a return.
    """
    found = _headings(lines, after_front_matter(lines))
    known = {each.header for each in found if each.level == LEVEL}
    # What is called so inside a section is a part of it, unless it has the keys of the other.
    headed = [
        each
        if each.level <= LEVEL or each.header not in known or _has_its_keys(lines, each)
        else each._replace(header=None)
        for each in found
    ]
    if not any(each.header for each in headed):
        return None
    sections = _arranged(lines, headed)
    if by_name:
        return sections
    if embedded:
        sections = _without_frame(lines, sections)
    status = sections.by_header.get(STATUS)
    state = None if status is None else _state(status.body(lines))
    # As `SUCCESS | ERROR | PARTIAL`, or `<state>`, no return has it.
    is_template = state and state not in STATES and _ANY_STATE.search(state[:_MAX_STATE])
    if is_template and not (embedded or named):
        return None
    return sections if _is_return(lines, headed, sections, state, embedded=embedded or named) else None


def _has_its_keys(lines: list[str], section: Section) -> bool:
    if section.header == STATUS:
        return _state(section.body(lines)) is not None
    return section.header == ATTESTATION and any(map(is_attestation_key, section.body(lines)))


def _arranged(lines: list[str], headed: list[Section]) -> Sections:
    by_header: dict[str, Section] = {}
    repeated: list[Section] = []
    for index, each in enumerate(headed):
        if each.header is not None:
            end = len(lines)
            for other in headed[index + 1 :]:
                if other.header is not None or other.level <= each.level:
                    end = other.line
                    break
            section = each if end == each.end else each._replace(end=end)
            if by_header.setdefault(each.header, section) is not section:
                repeated.append(section)
    start = after_front_matter(lines)
    while start < len(lines) - 1 and not lines[start].strip():
        start += 1
    first = next(iter(by_header.values())).line
    titles = [line.startswith("# ") for line in lines[start:first] if line.strip()]
    return Sections(start, by_header, tuple(repeated), preamble=len(titles) > 1 or not all(titles))


def _without_frame(lines: list[str], sections: Sections) -> Sections:
    """The sections without what an agent's program wrote behind them: closing tags, and a remark after a gap."""
    last = max(sections.by_header.values(), key=lambda section: section.first)
    end = last.end
    if last.header == ATTESTATION:
        keys = (index for index in range(last.first, last.end) if is_attestation_key(lines[index]))
        after_blank = False
        for index in range(max(keys, default=last.first), last.end):
            line = lines[index]
            remark = after_blank and bullet(line) is None and not _is_key(line) and heading(line) is None
            # A list goes on behind a tag only where no gap is.
            below = takewhile(str.strip, lines[index + 1 : last.end])
            tagged = _TAG.match(line) and not any(map(bullet, below))
            if tagged or (line.strip() and remark):
                end = index
                break
            after_blank = not line.strip()
    else:
        while end > last.first and (not lines[end - 1].strip() or _TAG.match(lines[end - 1])):
            end -= 1
    return sections._replace(by_header=sections.by_header | {str(last.header): last._replace(end=end)})


def unframed(lines: list[str], *, indented: bool = True) -> list[str]:
    """The lines without what a program puts around a return: tags before a header, and, where it may be `indented`, an
    indentation of all of it.

    Behind an indented return nothing is left. Line numbers stay.
    """
    text = "".join(lines)
    if "<" in text:
        lines = [_TAGS_BEFORE_HEADER.sub("", line) if line[:1] == "<" and "#" in line else line for line in lines]
    for index, line in enumerate(lines if indented and " #" in text else ()):
        if line[:1] == "#":
            break
        found = heading(line, index) if line[:1] == " " and "#" in line else None
        if found is not None and header_of(found.text) is not None:
            indent = line[: len(line) - len(line.lstrip(" "))]
            if next((each for each in lines[index + 1 :] if each.strip()), indent)[: len(indent)] != indent:
                break
            end = index
            while end < len(lines) and (lines[end].startswith(indent) or not lines[end].strip()):
                end += 1
            return lines[:index] + [each.removeprefix(indent) for each in lines[index:end]]
    return lines


def _is_return(
    lines: list[str], headed: list[Section], sections: Sections, state: str | None, *, embedded: bool
) -> bool:
    by_header, first = sections.by_header, sections.first
    begins = embedded or not any(not each.header and each.level > 1 and each.line < first for each in headed)
    in_its_place = begins and state is not None and (embedded or by_header[STATUS].line == first)
    if in_its_place and (
        len(by_header) > 1
        or _tells_a_state(state or "", by_header[STATUS].body(lines), by_header[STATUS].end == len(lines))
    ):
        return True
    attestation = by_header.get(ATTESTATION)
    attested = attestation is not None and any(map(is_attestation_key, attestation.body(lines)))
    if begins and len(by_header) >= 3:
        return state is not None or attested or any(map(is_attestation_key, lines[first:]))
    # Without `## Status`, or with one whose name nobody would recognise, the state stands before the others.
    return attested and len(by_header) >= 2 and (begins or _state(lines[sections.start : first]) is not None)


def _state(lines: list[str]) -> str | None:
    """The value of a `state` key, None where there is none."""
    told = (entry(line) for line in lines if "state" in line.lower())
    return next((each.value for each in told if each is not None and each.name == "state"), None)


def _tells_a_state(state: str, status: list[str], is_last: bool) -> bool:
    """With no other section there, `state` must be one of ours, or cut off in one, or have a summary beside it."""
    word = folded(state)
    if any(folded(known).startswith(word) for known in STATES) and (word or is_last):
        return True
    return any(found is not None and found.key.lower() == "summary" for found in map(entry, status))


def _is_key(line: str) -> bool:
    """Whether a line holds a key: of the attestation, or any other that is written as one."""
    found = entry(line)
    return found is not None and (" " not in found.key or found.key.lower().replace(" ", "_") in _ATTESTED)


def is_attestation_key(line: str) -> bool:
    """Whether a line holds one of the attestation's required keys."""
    if "_" not in line:
        return False
    found = entry(line)
    return found is not None and found.key.lower() in (*TEXT_KEYS, *FILE_KEYS)
