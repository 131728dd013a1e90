"""The checklist that a child is given: `- [ ]` pending, `- [-]` in progress, `- [x]` done, in execution order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.findings import MAX_ENTRIES
from agentwatch.contracts.markdown_source import is_rule, uncommented, unfenced
from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Todo, TodoStatus
from agentwatch.contracts.wording import brief

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_error, _warning = makers(Contract.HANDOFF_PACKET)
_REQUIRED = "Required characteristics"

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


def read_checklist(lines: list[str], judgement: Judgement, *, alone: bool) -> tuple[Todo, ...]:
    """The items of a checklist.

    `alone`: the file is nothing but the checklist, so that every line is judged; headings structure it and are left
    aside. Otherwise the list ends at a heading, or at text behind an empty line. What continues an item and other words
    are notes, and so are the bullets behind them.
    """
    found: list[Todo] = []
    pending_before = False
    out_of_order = False
    in_list = alone
    noted = False
    after_blank = False
    for index, text in enumerate(lines):
        if not text.strip():
            after_blank = True
            continue
        line = judgement.first_line + index
        match = _ITEM.match(text) if "[" in text else None
        if match is not None:
            if len(found) == MAX_ENTRIES:
                judgement.add_at("DOC009", line, key="The checklist", limit=MAX_ENTRIES)
                break
            item = _item(match, line, judgement)
            if item.status is TodoStatus.DONE and pending_before and not out_of_order:
                out_of_order = True
                judgement.add_at("TOD006", line)
            pending_before = pending_before or item.status is TodoStatus.PENDING
            found.append(item)
            in_list, noted = True, False
        elif _HEADING.match(text):
            in_list = alone
        elif _NEARLY.match(text) or (in_list and not noted and _BULLET.match(text) and text[:1] not in " \t"):
            judgement.add_at("TOD001", line)
            in_list = True
        elif alone or (in_list and (not after_blank or _BULLET.match(text))):
            judgement.add_at("TOD009", line)
            noted = noted or (text[:1] not in " \t" and bool(found))
        else:
            in_list = False
        after_blank = False
    return tuple(found)


def _item(match: re.Match[str], line: int, judgement: Judgement) -> Todo:
    mark, text = match["mark"], match["text"].strip()
    if mark not in _STATUSES:
        judgement.add_at("TOD002", line, mark=mark if mark.isprintable() else "?")
    elif mark == "X":
        judgement.add_at("TOD003", line)
    if not text:
        judgement.add_at("TOD004", line)
    elif _SECOND.search(text):
        judgement.add_at("TOD005", line)
    if match["indent"]:
        judgement.add_at("TOD007", line)
    if match["marker"] != "-":
        judgement.add_at("TOD008", line, marker=match["marker"])
    phase = _PHASE.match(text)
    if phase is not None:
        text = text[phase.end() :]
    return Todo(brief(text) or "", _STATUSES.get(mark, TodoStatus.PENDING), phase[1] if phase else None, line)


RULES: Final[tuple[Rule, ...]] = (
    _error("TOD001", _REQUIRED, "line is no checklist item")
    .says("This line of the checklist has no checkbox; start it with `- [ ]`, `- [-]` or `- [x]`, or remove it.")
    .because("Every line is a single atomic action: other lines are lost when the list becomes a reminders table.")
    .example("- [ ] Read the schema", "- Read the schema"),
    _error("TOD002", _REQUIRED, "unknown checkbox")
    .says("The checkbox `[{mark}]` is not one of `[ ]` pending, `[-]` in progress and `[x]` done; use one of them.")
    .because("A parent counts progress by the three canonical statuses; anything else counts as nothing.")
    .example("- [-] Draft the API", "- [~] Draft the API"),
    _warning("TOD003", _REQUIRED, "checkbox in another letter case")
    .says("The checkbox is `[X]`; write it as `[x]`.")
    .example("- [x] Read the schema", "- [X] Read the schema"),
    _error("TOD004", _REQUIRED, "item without an action")
    .says("This item has no text; name one action or remove the line.")
    .because("Every line is a single atomic action; an empty one cannot be done.")
    .example("- [ ] Read the schema", "- [ ]"),
    _error("TOD005", _REQUIRED, "several items on one line")
    .says("Several checkboxes stand on one line; give each action a line of its own.")
    .because("Every line is a single atomic action: the second checkbox would be read as text.")
    .example("- [ ] Read the schema\n- [ ] Draft the API", "- [ ] Read the schema - [ ] Draft the API"),
    _warning("TOD006", _REQUIRED, "done before its turn")
    .says("This item is done while an earlier one is pending; keep the list in the order of execution.")
    .because("The order of the list is the order of execution, so that the first open item is the next one.")
    .example("- [x] Read the schema\n- [ ] Draft the API", "- [ ] Read the schema\n- [x] Draft the API"),
    _warning("TOD007", _REQUIRED, "nested item")
    .says("This item is indented; the checklist is one flat list.")
    .because("Every line is a single atomic action in order; an item with items below it is not atomic.")
    .example("- [ ] Draft the API", "  - [ ] Draft the API"),
    _warning("TOD008", _REQUIRED, "other list marker")
    .says("This item starts with `{marker}`; start it with `-`.")
    .because("The canonical statuses are written `- [ ]`, `- [-]` and `- [x]`.")
    .example("- [ ] Draft the API", "* [ ] Draft the API"),
    _warning("TOD009", _REQUIRED, "words beside the checklist")
    .says("This line stands beside the items of the checklist; it is left aside.")
    .because("Every line is a single atomic action: other lines are lost when the list becomes a reminders table.")
    .example("- [ ] Draft the API and its tests", "- [ ] Draft the API\n  and its tests"),
)
