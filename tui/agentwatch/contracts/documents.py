"""Documents and their reading: JSON, a return in sections, a packet in a fence with its checklist, a checklist alone.

A contract in JSON is a signature in `signatures` and a module with `judge`; to add one, name it in `rules`. The models
of a contract take longer to load than most sessions to be read: none that is not met is loaded.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.drift import meaning
from agentwatch.contracts.findings import Judgement, shown
from agentwatch.contracts.json_source import REPLACEMENT, JsonSource
from agentwatch.contracts.markdown_source import Fence, after_front_matter, fences, lines_of, uncommented
from agentwatch.contracts.return_sections import find_sections, may_be_return, unframed
from agentwatch.contracts.rules import module_of
from agentwatch.contracts.shapes import Contract, Document, Handoff, Opened, Reading, Return, TodoList
from agentwatch.contracts.signatures import contract_of, leading_contract_of, may_follow
from agentwatch.contracts.todos import first_item, opened, read_checklist

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentwatch.contracts.validation import Contracted

MAX_LINES: Final = 5_000
"""Lines of a return or a checklist that are read: about 30 ms. A long one has a hundred."""

_TODOS_FILE: Final = re.compile(r"(?:^|/)(?:[^/]+\.)?todos\.md\Z")
# Those of a task or of handoffs. A file called just `todos.md` may be anybody's notes.
_TODOS_OF_A_TASK: Final = re.compile(r"(?:^|/)(?:[^/]+\.todos\.md|handoffs/todos\.md)\Z")
_RETURN_FILE: Final = re.compile(r"(?:^|/)[^/]+\.return\.md\Z", re.IGNORECASE | re.ASCII)
_PACKET_LANGUAGES: Final = ("", "json", "jsonc", "json5")
_GAP: Final = 200
"""Characters of white space that may stand between a title and the packet."""


def read_json(text: str, name: str, first_line: int = 1, *, embedded: bool = False) -> Opened | None:
    """Read a text that begins with `{`; None where it is none of ours. `first_line` is its place in its file.

    `embedded`: it stands in what a subagent returned.
    """
    if not may_follow(text, name):
        return None
    source = JsonSource(text, first_line)
    contract = contract_of(source.value, name, embedded=embedded) if isinstance(source.value, dict) else None
    return None if contract is None else judged(source, contract, name)


def judged(source: JsonSource, contract: Contract, name: str) -> Opened:
    """Judge an object by its contract."""
    judgement = Judgement()
    source.judge(judgement)
    _judge_statuses(source.value, judgement)
    # Of a part nothing can be said of what is missing: it is read, and only the break is a finding.
    model, document = _judge(contract, source.value, judgement if source.whole else Judgement(), name)
    return Opened(Reading(document, judgement.findings(source.line_of), source.complete), model)


def _judge_statuses(top: dict[str, Any], judgement: Judgement) -> None:
    """Note where the status of one contract says something else than that of another in the same object."""
    metadata = top.get("report_metadata")
    if not isinstance(metadata, dict):
        return
    said = (top.get("status"), metadata.get("status"))
    if len({outcome for word in said if isinstance(word, str) and (outcome := meaning(word))}) > 1:
        judgement.add("DOC015", ("status",), value=shown(said[0]), other=shown(said[1]))


def read_json_by_name(text: str, name: str, contract: Contract) -> Opened | None:
    """Judge a text that has no signature by the contract that its file's name says.

    None for a sound object that is called as those of the dialect are: its name is no contract's.
    """
    source = JsonSource(text)
    judgement = Judgement()
    source.judge(judgement)
    top = source.value if isinstance(source.value, dict) else {}
    dialect = contract is Contract.RETURN_META
    sound = source.whole and isinstance(source.value, dict)
    if sound and dialect:
        return None
    if sound:
        judgement.add("DOC012", (), contract=contract)
    elif source.whole:
        judgement.add("DOC008", (), value=shown(source.value))
    model, document = _judge(contract, top, judgement if sound else Judgement(), name)
    if not dialect:
        document = replace(document, recognised=False)
    complete = source.complete and dialect
    return Opened(Reading(document, judgement.findings(source.line_of), complete), model)


def _judge(contract: Contract, top: dict[str, Any], judgement: Judgement, name: str) -> tuple[Contracted, Document]:
    named = {"name": name} if contract is Contract.RETURN_META else {}
    made: tuple[Contracted, Document] = module_of(contract).judge(top, judgement, **named)
    return made


def read_markdown(text: str, name: str, head: str) -> Opened | None:
    """Read a Markdown text; None where it is none of ours. `head` is its first character that is no space."""
    # Nearly every file of a workspace is none of ours: each step first asks the cheapest question that says so.
    if ("```" in text or "~~~" in text) and "{" in text and _may_lead_with_packet(text, head):
        packet = read_leading_packet(lines_of(text), name)
        if packet is not None:
            return packet
    named = _RETURN_FILE.search(name) is not None
    found = read_return(lines_of(text), named=named) if named or may_be_return(text) else None
    if found is None and _TODOS_FILE.search(name):
        return _read_todos(lines_of(text), of_a_task=_TODOS_OF_A_TASK.search(name) is not None)
    return found


def read_markdown_by_name(text: str, name: str, contract: Contract) -> Opened:
    """What is said of a file that holds nothing, or too little, of the contract that its name says."""
    if contract is Contract.RETURN_FORMAT:
        part = read_return(lines_of(text), by_name=True)
        if part is not None:
            return part
    from agentwatch.contracts.handoff import HandoffPacket
    from agentwatch.contracts.return_format import ReturnFormat

    judgement = Judgement()
    if contract is Contract.RETURN_FORMAT:
        judgement.add_at("DOC012", 1, contract=contract)
        document: Document = Return(contract, None, None, recognised=False)
    else:
        # A return must have its headers; that a message holds a packet, or todos items, is recommended only.
        is_todos = name.lower().endswith("todos.md")
        judgement.add_at("DOC013", 1, contract="checklist" if is_todos else contract)
        document = TodoList((), recognised=False) if is_todos else Handoff(None, None, recognised=False)
    reading = Reading(document, judgement.findings(), complete=False)
    return Opened(reading, ReturnFormat() if contract is Contract.RETURN_FORMAT else HandoffPacket())


def read_return(
    lines: list[str], *, embedded: bool = False, named: bool = False, by_name: bool = False, first_line: int = 1
) -> Opened | None:
    """Read the lines of a return-format text. `first_line` is the number of `lines[0]` in its file.

    `named`: it is called a return. `by_name`: and by nothing but that, and one of its headers, it is known as one.
    """
    judgement = Judgement(first_line)
    lines = unframed(uncommented(_bounded(lines, judgement)), indented=embedded or named)
    sections = find_sections(lines, embedded=embedded, named=named, by_name=by_name)
    if sections is None:
        return None
    from agentwatch.contracts import return_format

    _judge_characters(lines, judgement)
    made = return_format.judge(lines, sections, judgement, embedded=embedded)
    if not by_name:
        return made
    return made._replace(reading=replace(made.reading, document=replace(made.reading.document, recognised=False)))


def read_leading_packet(lines: list[str], name: str, *, embedded: bool = False) -> Opened | None:
    """Read the packet of a text whose first block, behind front matter and one title, is a fenced JSON object.

    `embedded`: the text is no file but what a child was asked.
    """
    index = after_front_matter(lines)
    title_seen = False
    while index < len(lines):
        line = lines[index].strip()
        if line.startswith("#") and not title_seen:
            title_seen = True
        elif line:
            break
        index += 1
    if index >= len(lines) or lines[index].lstrip()[:3] not in ("```", "~~~"):
        return None
    found = fences(lines, index, limit=1)
    if not found or found[0].first != index + 1:
        return None
    return read_fenced_packet(lines, found[0], name, leading_contract_of if embedded else contract_of)


def read_fenced_packet(
    lines: list[str], fence: Fence, name: str, signature: Callable[[dict[str, Any], str], Contract | None] = contract_of
) -> Opened | None:
    """Read a fenced packet, as `signature` knows it, and the checklist behind it; None where it is something else."""
    if fence.language not in _PACKET_LANGUAGES:
        return None
    text = "\n".join(lines[fence.first : fence.behind])
    if not text.lstrip().startswith("{"):
        return None
    source = JsonSource(text, fence.first + 1)
    top = source.value
    if not isinstance(top, dict) or signature(top, name) is not Contract.HANDOFF_PACKET:
        return None
    judgement = Judgement()
    if source.complete and not fence.closed:
        judgement.add_at("DOC002", len(lines))
    return _with_todos(source, lines[fence.behind + 1 :], fence.behind + 2, judgement, closed=fence.closed)


def read_unfenced_packet(text: str, name: str) -> Opened | None:
    """Read a packet that begins a Markdown text without a fence, with other text behind it."""
    behind = JsonSource(text).text_behind
    if behind is None:
        return None
    source = JsonSource(text[:behind])
    if contract_of(source.value, name) is not Contract.HANDOFF_PACKET:
        return None
    judgement = Judgement()
    judgement.add_at("HOF060", source.line_of(()))
    return _with_todos(source, lines_of(text[behind:]), 1 + text.count("\n", 0, behind), judgement, closed=True)


def _with_todos(
    source: JsonSource, behind: list[str], first_line: int, judgement: Judgement, *, closed: bool
) -> Opened:
    """A packet and the checklist in the lines behind it, the first of which has the number `first_line`."""
    from agentwatch.contracts import handoff

    source.judge(judgement)
    model, document = handoff.judge(source.value, judgement if source.whole else Judgement())
    behind = opened(behind)
    item = first_item(behind)
    if item is not None:
        judgement.first_line = first_line + item
        todos = read_checklist(_bounded(behind[item:], judgement), judgement, alone=False)
        model = model.model_copy(update={"todos": todos})
        document = handoff.summary_of(model)
    return Opened(Reading(document, judgement.findings(source.line_of), source.complete and closed), model)


def _read_todos(lines: list[str], *, of_a_task: bool) -> Opened | None:
    start = after_front_matter(lines)
    lines = opened(lines[start:])
    if first_item(lines, alone=of_a_task) is None:
        return None
    from agentwatch.contracts.handoff import HandoffPacket

    judgement = Judgement(1 + start)
    lines = _bounded(lines, judgement)
    _judge_characters(lines, judgement)
    items = read_checklist(lines, judgement, alone=True)
    return Opened(Reading(TodoList(items), judgement.findings()), HandoffPacket(todos=items))


def _may_lead_with_packet(text: str, head: str) -> bool:
    """Whether the first block can be a fence: the text begins with one, with front matter or with a title."""
    if head == "#":
        behind = text.find("\n") + 1
        return text[behind : behind + _GAP].lstrip()[:1] in ("`", "~")
    return head in ("`", "~", "-")


def _bounded(lines: list[str], judgement: Judgement) -> list[str]:
    if len(lines) <= MAX_LINES:
        return lines
    judgement.add_in("DOC009", MAX_LINES, key="The document", limit=MAX_LINES)
    return lines[:MAX_LINES]


def _judge_characters(lines: list[str], judgement: Judgement) -> None:
    if REPLACEMENT in "".join(lines):
        judgement.add_in("DOC003", next(index for index, line in enumerate(lines) if REPLACEMENT in line))
