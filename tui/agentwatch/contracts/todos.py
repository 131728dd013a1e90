"""The checklist that a child is given: `- [ ]` pending, `- [-]` in progress, `- [x]` done, in execution order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.checks import brief
from agentwatch.contracts.findings import MAX_ENTRIES
from agentwatch.contracts.markdown import is_rule, uncommented, unfenced
from agentwatch.contracts.shapes import Todo, TodoStatus

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Findings

_ITEM: Final = re.compile(
    r"(?P<indent>[ \t]*)(?P<marker>[-*+]|\d{1,3}[.)])[ \t]+\[(?P<mark>[^\]\[]{0,2})\](?!\()[ \t]*(?P<text>.*)\Z",
    re.DOTALL,
)
_NEARLY: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])?[ \t]*\[[ xX~.*\u2713\u2714-]{0,2}\](?!\()")
_SECOND: Final = re.compile(r"(?:^|\s)[-*+][ \t]+\[[ xX-]\]")
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_PHASE: Final = re.compile(r"([A-Z][A-Z0-9]*(?:[ _/-][A-Z0-9]+)*):[ \t]+(?=\S)")
_STATUSES: Final = {" ": TodoStatus.PENDING, "-": TodoStatus.IN_PROGRESS, "x": TodoStatus.DONE, "X": TodoStatus.DONE}


def first_item(lines: list[str], *, alone: bool = False) -> int | None:
    """Index of the first line that is a checklist item, or is meant as one; None where there is none.

    `alone`: the file is called a checklist, so that a list that it begins with is meant as one.
    """
    for index, line in enumerate(lines):
        if ("[" in line and (_ITEM.match(line) or _NEARLY.match(line))) or (alone and _BULLET.match(line)):
            return index
        alone = alone and (not line.strip() or _HEADING.match(line) is not None)
    return None


def opened(lines: list[str]) -> list[str]:
    """The lines without comments, rules and the marks of fences; their number stays."""
    lines = uncommented(lines)
    inside = set(unfenced(lines, [(0, len(lines))])[1])
    return [line if index in inside and not is_rule(line) else "" for index, line in enumerate(lines)]


def read_checklist(lines: list[str], findings: Findings, *, alone: bool) -> tuple[Todo, ...]:
    """The items of a checklist.

    `alone`: the file is nothing but the checklist, so that every line is judged; headings structure it and are left
    aside. Otherwise the list ends at a heading, or at text behind an empty line. What continues an item and other words
    are notes, and so are the bullets behind them.
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
    return Todo(brief(text) or "", status, phase[1] if phase else None, findings.first_line + index)
