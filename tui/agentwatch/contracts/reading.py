"""The way in: recognises which contract a text follows, reads it and judges it.

In a text that was handed over or back the contract may stand open, in a fence, or as an object among prose. The models
of a contract take longer to load than most sessions to be read: none that is not met is loaded.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.contracts.dialect import meaning
from agentwatch.contracts.findings import Findings, shown
from agentwatch.contracts.json_text import REPLACEMENT, JsonSource
from agentwatch.contracts.markdown import Fence, after_front_matter, fences, lines_of, uncommented
from agentwatch.contracts.recognise import contract_by_name, contract_of, is_json, leading_contract_of, may_follow
from agentwatch.contracts.return_sections import find_sections, may_be_return, open_returns, tail_of, unframed
from agentwatch.contracts.rules import module_of
from agentwatch.contracts.shapes import Contract, Document, Handoff, Opened, Outcome, Reading, Return, TodoList
from agentwatch.contracts.todos import first_item, opened, read_checklist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MAX_LINES: Final = 5_000
"""Lines of a return or a checklist that are read: about 30 ms. A long one has a hundred."""
_ATTEMPTS: Final = 20
"""Places in a text where an object seems to begin, and none can be read, that are tried."""
_OBJECTS: Final = 5_000
"""Objects of a text that are looked at."""
_GAP: Final = 200
"""Characters of white space that may stand between a title and the packet."""

_DECODER: Final = json.JSONDecoder()
_TODOS_FILE: Final = re.compile(r"(?:^|/)(?:[^/]+\.)?todos\.md\Z")
# Those of a task or of handoffs. A file called just `todos.md` may be anybody's notes.
_TODOS_OF_A_TASK: Final = re.compile(r"(?:^|/)(?:[^/]+\.todos\.md|handoffs/todos\.md)\Z")
_RETURN_FILE: Final = re.compile(r"(?:^|/)[^/]+\.return\.md\Z", re.IGNORECASE | re.ASCII)
_LINES_OF_JSON: Final = re.compile(r"\.(?:jsonl|ndjson)\Z", re.IGNORECASE | re.ASCII)
_GOES_ON: Final = re.compile(r"[ \t.`]*[^\s.`]")
_OBJECT: Final = re.compile(r'\{(?=\s*")')


def read_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Reading | None:
    """Recognise a text and read it; None where it follows none of the contracts.

    `name` is the path relative to the workspace, with `/`: some files are known by it. `embedded` is for the text that
    a subagent returned in a transcript, where prose or a fence may stand around the contract: its last return counts.
    `handed_over` is for one that a subagent was asked: its first packet counts, and nothing else. Never raises.
    """
    found = read_and_open(text, name, embedded=embedded, handed_over=handed_over)
    return None if found is None else found.reading


def read_and_open(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> Opened | None:
    """The same with the full typed model; the contract of the reading says which one it is.

    A `HandoffPacket`, `ReturnFormat`, `SubagentReturn`, `ReturnMeta` or `Report`; a checklist in a file of its own is
    a `HandoffPacket` that has only `todos`. What broke a rule is left out of the model.
    """
    text = text.removeprefix("\ufeff")
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair cannot be written by any encoding.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if handed_over:
        return _packet(lines_of(text), name)
    if embedded:
        return _read_inside(text, name)
    head = text[:_GAP].lstrip()[:1] or text.lstrip()[:1]
    if head == "{" and _LINES_OF_JSON.search(name):
        return None
    found: Opened | None = None
    called_json = is_json(name)
    if head == "{":
        found = (None if called_json else _read_unfenced_packet(text, name)) or _read_json(text, name)
    elif not called_json:
        found = _read_markdown(text, name, head)
        if found is not None and found.contract is Contract.RETURN_FORMAT:
            holds_more = any(mark in text for mark in ("\n```", "\n~~~", "\n{"))
            found = (_read_correction(text, name) if holds_more else None) or found
    contract = contract_by_name(name) if found is None else None
    if contract is None:
        return found
    if called_json:
        return _read_json_by_name(text, name, contract)
    return _read_wrapped(text, name, contract) or _read_markdown_by_name(text, name, contract)


# JSON


def _read_json(text: str, name: str, first_line: int = 1, *, embedded: bool = False) -> Opened | None:
    """Read a text that begins with `{`; None where it is none of ours. `first_line` is its place in its file.

    `embedded`: it stands in what a subagent returned.
    """
    if not may_follow(text, name):
        return None
    source = JsonSource(text, first_line)
    contract = contract_of(source.value, name, embedded=embedded) if isinstance(source.value, dict) else None
    return None if contract is None else _judged(source, contract, name)


def _judged(source: JsonSource, contract: Contract, name: str) -> Opened:
    """Judge an object by its contract."""
    findings = Findings()
    source.judge(findings)
    metadata = source.value.get("report_metadata")
    if isinstance(metadata, dict):
        # The status of one contract may say something else than that of another in the same object.
        said = (source.value.get("status"), metadata.get("status"))
        if len({outcome for word in said if isinstance(word, str) and (outcome := meaning(word))}) > 1:
            findings.add("DOC015", ("status",), value=shown(said[0]), other=shown(said[1]))
    # Of a part nothing can be said of what is missing: it is read, and only the break is a finding.
    model, document = module_of(contract).judge(source.value, findings if source.whole else Findings(), name)
    return Opened(document, findings.made(source.line_of), source.complete, model)


def _read_json_by_name(text: str, name: str, contract: Contract) -> Opened | None:
    """Judge a text that has no signature by the contract that its file's name says.

    None for a sound object that is called as those of the dialect are: its name is no contract's.
    """
    source = JsonSource(text)
    findings = Findings()
    source.judge(findings)
    top = source.value if isinstance(source.value, dict) else {}
    dialect = contract is Contract.RETURN_META
    sound = source.whole and isinstance(source.value, dict)
    if sound and dialect:
        return None
    if sound:
        findings.add("DOC012", (), contract=contract)
    elif source.whole:
        findings.add("DOC008", (), value=shown(source.value))
    model, document = module_of(contract).judge(top, findings if sound else Findings(), name)
    document = document if dialect else replace(document, recognised=False)
    return Opened(document, findings.made(source.line_of), source.complete and dialect, model)


# Markdown


def _read_markdown(text: str, name: str, head: str) -> Opened | None:
    """Read a Markdown text; None where it is none of ours. `head` is its first character that is no space."""
    # Nearly every file of a workspace is none of ours: each step first asks the cheapest question that says so.
    if ("```" in text or "~~~" in text) and "{" in text and _may_lead_with_packet(text, head):
        packet = _read_leading_packet(lines_of(text), name)
        if packet is not None:
            return packet
    named = _RETURN_FILE.search(name) is not None
    found = _read_return(lines_of(text), named=named) if named or may_be_return(text) else None
    if found is None and _TODOS_FILE.search(name):
        return _read_todos(lines_of(text), of_a_task=_TODOS_OF_A_TASK.search(name) is not None)
    return found


def _may_lead_with_packet(text: str, head: str) -> bool:
    """Whether the first block can be a fence: the text begins with one, with front matter or with a title."""
    if head == "#":
        after = text.find("\n") + 1
        return text[after : after + _GAP].lstrip()[:1] in ("`", "~")
    return head in ("`", "~", "-")


def _read_markdown_by_name(text: str, name: str, contract: Contract) -> Opened:
    """What is said of a file that holds nothing, or too little, of the contract that its name says."""
    findings = Findings()
    if contract is Contract.RETURN_FORMAT:
        part = _read_return(lines_of(text), by_name=True)
        if part is not None:
            return part._replace(document=replace(part.document, recognised=False))
        findings.add("DOC012", 1, contract=contract)
        document: Document = Return(contract, None, None, recognised=False)
    else:
        # A return must have its headers; that a message holds a packet, or todos items, is recommended only.
        is_todos = name.lower().endswith("todos.md")
        findings.add("DOC013", 1, contract="checklist" if is_todos else contract)
        document = TodoList((), recognised=False) if is_todos else Handoff(None, None, recognised=False)
    from agentwatch.contracts.handoff import HandoffPacket
    from agentwatch.contracts.return_format import ReturnFormat

    model = ReturnFormat() if contract is Contract.RETURN_FORMAT else HandoffPacket()
    return Opened(document, findings.made(), complete=False, model=model)


def _read_return(
    lines: list[str], *, embedded: bool = False, named: bool = False, by_name: bool = False, first_line: int = 1
) -> Opened | None:
    """Read the lines of a return-format text. `first_line` is the number of `lines[0]` in its file.

    `named`: it is called a return. `by_name`: and by nothing but that, and one of its headers, it is known as one.
    """
    findings = Findings(first_line)
    lines = unframed(uncommented(_bounded(lines, findings)), indented=embedded or named)
    sections = find_sections(lines, embedded=embedded, named=named, by_name=by_name)
    if sections is None:
        return None
    from agentwatch.contracts import return_format

    _judge_characters(lines, findings)
    return return_format.judge(lines, sections, findings, embedded=embedded)


def _read_todos(lines: list[str], *, of_a_task: bool) -> Opened | None:
    start = after_front_matter(lines)
    lines = opened(lines[start:])
    if first_item(lines, alone=of_a_task) is None:
        return None
    from agentwatch.contracts.handoff import HandoffPacket

    findings = Findings(1 + start)
    lines = _bounded(lines, findings)
    _judge_characters(lines, findings)
    items = read_checklist(lines, findings, alone=True)
    return Opened(TodoList(items), findings.made(), model=HandoffPacket(todos=items))


def _bounded(lines: list[str], findings: Findings) -> list[str]:
    if len(lines) > MAX_LINES:
        findings.add_in("DOC009", MAX_LINES, key="The document", limit=MAX_LINES)
    return lines[:MAX_LINES]


def _judge_characters(lines: list[str], findings: Findings) -> None:
    if REPLACEMENT in "".join(lines):
        findings.add_in("DOC003", next(index for index, line in enumerate(lines) if REPLACEMENT in line))


# Packets


def _read_leading_packet(lines: list[str], name: str, *, embedded: bool = False) -> Opened | None:
    """Read the packet of a text whose first block, behind front matter and one title, is a fenced JSON object.

    `embedded`: the text is no file but what a child was asked.
    """
    start = after_front_matter(lines)
    filled = list(islice((index for index in range(start, len(lines)) if lines[index].strip()), 2))
    if filled and lines[filled[0]].strip().startswith("#"):
        filled = filled[1:]
    if not filled or lines[filled[0]].lstrip()[:3] not in ("```", "~~~"):
        return None
    found = fences(lines, filled[0], limit=1)
    if not found or found[0].first != filled[0] + 1:
        return None
    return _read_fenced_packet(lines, found[0], name, leading_contract_of if embedded else contract_of)


def _read_fenced_packet(
    lines: list[str], fence: Fence, name: str, signature: Callable[[dict[str, Any], str], Contract | None] = contract_of
) -> Opened | None:
    """Read a fenced packet, as `signature` knows it, and the checklist behind it; None where it is something else."""
    text = "\n".join(lines[fence.first : fence.end])
    if fence.language not in ("", "json", "jsonc", "json5") or not text.lstrip().startswith("{"):
        return None
    source = JsonSource(text, fence.first + 1)
    if not isinstance(source.value, dict) or signature(source.value, name) is not Contract.HANDOFF_PACKET:
        return None
    findings = Findings()
    if source.complete and not fence.closed:
        findings.add("DOC002", len(lines))
    return _with_todos(source, lines[fence.end + 1 :], fence.end + 2, findings, closed=fence.closed)


def _read_unfenced_packet(text: str, name: str) -> Opened | None:
    """Read a packet that begins a Markdown text without a fence, with other text behind it."""
    end = JsonSource(text).text_behind
    if end is None:
        return None
    source = JsonSource(text[:end])
    if contract_of(source.value, name) is not Contract.HANDOFF_PACKET:
        return None
    findings = Findings()
    findings.add("HOF060", source.line_of(()) or 1)
    return _with_todos(source, lines_of(text[end:]), 1 + text.count("\n", 0, end), findings, closed=True)


def _with_todos(source: JsonSource, after: list[str], first_line: int, findings: Findings, *, closed: bool) -> Opened:
    """A packet and the checklist in the lines behind it, the first of which has the number `first_line`."""
    from agentwatch.contracts import handoff

    source.judge(findings)
    model, document = handoff.judge(source.value, findings if source.whole else Findings())
    after = opened(after)
    item = first_item(after)
    if item is not None:
        findings.first_line = first_line + item
        todos = read_checklist(_bounded(after[item:], findings), findings, alone=False)
        model, document = model.model_copy(update={"todos": todos}), replace(document, todos=todos)
    return Opened(document, findings.made(source.line_of), source.complete and closed, model)


def _packet(lines: list[str], name: str) -> Opened | None:
    """Read what a text hands over: its first packet, whatever return it shows as an example; None where is none."""
    text = "\n".join(lines)
    bare = text.lstrip()[:1] == "{"
    found = _leading_object(text, name) if bare else _read_leading_packet(lines, name, embedded=True)
    if found is not None:
        return found
    for fence in fences(lines):
        found = _read_fenced_packet(lines, fence, name)
        if found is not None:
            return found
    return next((made for _, made in _objects(text, name) if isinstance(made.document, Handoff)), None)


def _leading_object(text: str, name: str) -> Opened | None:
    start = text.index("{")
    end, part = _object_at(text, start)
    contract = leading_contract_of(part, name) if isinstance(part, dict) else None
    if contract is not Contract.HANDOFF_PACKET:
        return None
    return _judged(JsonSource(text[start:end], 1 + text.count("\n", 0, start)), contract, name)


# What was handed back


class _Placed(NamedTuple):
    """A return in a text: its lines are `first` up to, not including, `end`.

    `tail` is where the last section of an open one begins, behind which another may stand; None where it is not open.
    """

    first: int
    end: int
    read: Opened
    tail: int | None = None

    def is_corrected_by(self, other: Opened) -> bool:
        """Whether a return that stands in its tail is another: whole, with another state, and no success."""
        said, own = other.document, self.read.document
        if not (other.complete and isinstance(said, Return) and isinstance(own, Return)):
            return False
        # A success may be what a good return would have been: nothing gets better by it.
        return said.outcome not in (None, Outcome.COMPLETED, own.outcome)


def _read_inside(text: str, name: str) -> Opened | None:
    """Read what a text hands back: its last return, else its first packet; None where there is neither.

    Templates and drafts stand before the return that is meant, corrections behind it. Lines are those of the text.
    """
    lines = lines_of(text)
    found = _returns(lines, name)
    if not found:
        return _packet(lines, name)
    meant = found[-1]
    if all(each.read.document == meant.read.document for each in found):
        return meant.read
    return _noted(meant.read, "DOC011", meant.first + 1, count=len(found))


def _noted(read: Opened, rule: str, line: int, **facts: object) -> Opened:
    """The same with one more finding, in front of the others."""
    findings = Findings()
    findings.add(rule, line, **facts)
    return read._replace(findings=(*findings.made(), *read.findings))


def _read_wrapped(text: str, name: str, contract: Contract) -> Opened | None:
    """Read a Markdown file whose name says its contract and that holds it in a fence, a wrapper or behind other words.

    None where it holds none.
    """
    wants_return = contract is Contract.RETURN_FORMAT
    # In a file of this name a packet needs as few keys as one in a JSON file of this name.
    found = _read_inside(text, name) if wants_return else _packet(lines_of(text), f"{name[:-2]}json")
    if found is None or isinstance(found.document, Return) is not wants_return:
        return None
    return _noted(found, "DOC014", 1)


def _read_correction(text: str, name: str) -> Opened | None:
    """Read the last return of a file that begins with an open one, where it stands in a fence or an object behind it.

    None where none does.
    """
    found = _returns(lines_of(text), name)
    corrected = found and found[0].tail is not None and found[-1].tail is None
    return _read_wrapped(text, name, Contract.RETURN_FORMAT) if corrected else None


def _returns(lines: list[str], name: str) -> list[_Placed]:
    """The returns in a text, in their order.

    What stands inside one, such as quoted output, is no other; but at the left margin of its tail one that tells
    another state, and no success, corrects it (`is_corrected_by`).
    """
    seen = unframed(uncommented(lines))
    open_ones = list(_in_sections(seen))
    found = list(open_ones)
    rest = list(lines)
    for fence in fences(lines):
        around = _around(open_ones, fence.first)
        if around is not None:
            rest[fence.first : fence.end] = [""] * (fence.end - fence.first)
            if around.tail is None or fence.first <= around.tail or seen[fence.first - 1][:1] not in ("`", "~"):
                continue
        made = _read_fence(lines, fence, name)
        if made is not None and (isinstance(made.document, Return) if around is None else around.is_corrected_by(made)):
            found.append(_Placed(fence.first, fence.end, made))
    for each in found:
        end = each.end if each.tail is None else each.tail
        rest[each.first : end] = [""] * (end - each.first)
    for line, made in _objects("\n".join(rest), name):
        around = _around(open_ones, line)
        counts = isinstance(made.document, Return) if around is None else seen[line][:1] == "{"
        if counts and (around is None or around.is_corrected_by(made)):
            found.append(_Placed(line, line + 1, made))
    return sorted(found, key=lambda each: each.first)


def _around(found: list[_Placed], line: int) -> _Placed | None:
    return next((each for each in found if each.first <= line < each.end), None)


def _in_sections(lines: list[str]) -> Iterator[_Placed]:
    """The returns that are neither fenced nor JSON: each goes on until the next one, or the end."""
    starts = open_returns(lines)
    for first, end in pairwise((*starts, len(lines))):
        made = _read_return(lines[first:end], embedded=True, first_line=first + 1)
        if made is not None:
            yield _Placed(first, end, made, tail_of(lines, first, end))


def _read_fence(lines: list[str], fence: Fence, name: str) -> Opened | None:
    inner = lines[fence.first : fence.end]
    text = "\n".join(inner)
    if text.lstrip()[:1] == "{":
        return _read_json(text, name, fence.first + 1, embedded=True)
    return _read_return(inner, embedded=True, first_line=fence.first + 1) if text.strip() else None


def _objects(text: str, name: str) -> Iterator[tuple[int, Opened]]:
    """Each object among prose that is one of ours, with the index of its first line."""
    if not may_follow(text, name):
        return
    position = failures = line = counted = 0
    for _ in range(_OBJECTS):
        match = _OBJECT.search(text, position)
        if match is None or failures == _ATTEMPTS:
            return
        start = match.start()
        end, part = _object_at(text, start)
        # Words that go on behind an object on its line quote it.
        quoted = end is not None and _GOES_ON.match(text, end) is not None
        contract = contract_of(part, name, embedded=not quoted) if isinstance(part, dict) else None
        if contract is not None:
            line, counted = line + text.count("\n", counted, start), start
            yield line, _judged(JsonSource(text[start:end], 1 + line), contract, name)
        failures += end is None
        # Behind one of ours that breaks off, the next one begins on a line of its own: its parts are not looked at.
        position = end or (start + 1 if contract is None else text.find("\n{", start))
        if position < 0:
            return


def _object_at(text: str, position: int) -> tuple[int | None, object]:
    """(offset behind it, the object that begins here); (None, what can be read of it) where it breaks off."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, JsonSource(text[position:]).value
    return end, value
