"""The entry point: finds which contract a text follows, reads and judges it, and loads only that contract's models."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from agentwatch.contracts.markdown import (
    STATUS,
    Fence,
    Page,
    find_sections,
    has_item,
    lines_of,
    read_checklist,
    scan_blocks,
    value_below,
)
from agentwatch.contracts.rules import Findings, Location, module_of
from agentwatch.contracts.shapes import Contract, Fields, Handoff, Json, OpenDocument, Return, TodoList
from agentwatch.text import fold_case, quote_text

MAX_LINES = 5_000  # lines of a return or a checklist that are read, in about 30 ms; even long ones have only 100
_ATTEMPTS = 20  # unreadable places in a text that are tried, if an object seems to begin there
_FENCES = 200  # fenced blocks, and unfenced returns, of a text that are looked at
Part = tuple[Location, int]  # the place of a part of a text, and its offset
_DECODER = json.JSONDecoder()
# The checklist of a task or of handoffs (group 1); a plain `todos.md` may be anybody's notes.
_TODOS_FILE = re.compile(r"(?:^|/)([^/]+\.|handoffs/)?todos\.md\Z")
# The first block may be a fence: the text begins with a fence, with front matter, or with a title above a fence.
_MAY_LEAD_WITH_PACKET = re.compile(r"\s*(?:[`~-]|#[^\n]*(?:\n\s{0,199}[`~]))")
# A return has one of these keys.
_MAY_BE_RETURN = re.compile(r"state|runtime_", re.IGNORECASE)
_MAY_BE_FENCED = re.compile(r'^[ \t]*#+[ \t]*status\b|"status"', re.IGNORECASE | re.MULTILINE)
_GOES_ON = re.compile(r"[ \t.`]*[^\s.`]")
_OBJECT = re.compile(r'\{(?=\s*")')

# Which contract a JSON object follows, by its keys and by the name of its file.


def _count(top: Json, keys: str) -> int:
    """Count how many of these keys an object has."""
    return sum(key in top for key in keys.split())


WRAPPER = "handoff_packet"
METADATA_KEYS = "session_id agent_type delegation_depth delegation_path"
# Stage words that any program may use.
_EVERYDAY = frozenset(("in_progress", "planned", "implemented", "revised", "assembled"))
_OF_STAGES = "researched tasks_created report_written plan_created plan_written summary_written synthesized"
# Words that only the dialect uses: such a status distinguishes it from a subagent-return.
STAGE_WORDS = _EVERYDAY.union(_OF_STAGES.split())
# Words of many programs, but not of the subagent-return's enum: they only distinguish the dialect from that contract.
OUTSIDE_THE_ENUM = ("done", "success")
_RETURN_STATUSES = ("completed", "partial", "failed", "blocked")
_NAMES = {
    **dict.fromkeys(("handoff.json", "handoff.md", "todos.md"), Contract.HANDOFF_PACKET),
    "return.json": Contract.SUBAGENT_RETURN,
    "return.md": Contract.RETURN_FORMAT,
    "report.json": Contract.REPORT_CONTRACT,
}  # contracts by the last two parts of a file name that has three parts
_HANDOFF_FILE = re.compile(
    r"(?:^|/)(?:[^/]+\.)?handoff\.(?:json|md)\Z|(?:^|/)handoffs/[^/]+\Z", re.IGNORECASE | re.ASCII
)
_META_FILE = re.compile(
    r"(?!.*schema)(?:\.?(?:[\w-]+-)?return-meta(?:[-_.][^/]*)?|\.?(?:[\w-]+-)?meta-(?:[\w-]+-)?return(?:[-_.][^/]*)?"
    r"|(?:\.|\d+[-_])?orchestrator-handoff(?:[-_.][^/]*)?|\.phase-?\d+(?:-\d+)*-handoff(?:[-_.][^/]*)?)\.json\Z",
    re.IGNORECASE,
)
# If the file's name says no contract, its text must hold one of these keys, or an escape that may spell one.
_TOLD_BY = re.compile(r'"(?:task_id|status|metadata|report_metadata|findings|objective|handoff_schema)"|\\u')
_IDENTIFYING = "task_id objective"
_PACKET_KEYS = "task_id objective evidence success_criteria risks"
# Keys of project state files, which the authors of return-meta also write, with a status.
_STATE_KEYS = (
    "next_project_number project_number project_name project_numbering active_projects completed_projects"
    " archived_projects pending_tasks repository_health state_references"
)
_KINDS = {"summary": str, "artifacts": list, "metadata": dict, "errors": list, "next_steps": str}
_DIALECT_KEYS = "started_at partial_progress completion_data verification"
_FAMILY_KEYS = f"{_DIALECT_KEYS} {METADATA_KEYS} status metadata artifacts summary errors"
_OF_NAMED = {
    Contract.HANDOFF_PACKET: _IDENTIFYING,
    Contract.SUBAGENT_RETURN: "status summary artifacts metadata errors",
    Contract.REPORT_CONTRACT: "report_metadata findings",
}  # if the file's name says its contract, one of these keys is enough


def contract_by_name(name: str) -> Contract | None:
    """Return the contract that a file's name demands, even if its content is unreadable; None if it demands none."""
    last = fold_case(name.rpartition("/")[2])
    stem, *kind = last.rsplit(".", 2)
    named = _NAMES.get(".".join(kind)) if stem else None
    return named or (Contract.RETURN_META if "-" in last and _META_FILE.match(last) else None)


def unwrapped(top: Json) -> Json:
    """Return the packet inside `{"handoff_packet": {…}}`; return any other object unchanged."""
    inner = top.get(WRAPPER)
    return inner if isinstance(inner, dict) and not _count(top, _PACKET_KEYS) else top


def leading_contract_of(top: Json, name: str) -> Contract | None:
    """Return the contract of a task's first block: a `task_id` with one more packet key makes it a packet."""
    contract = contract_of(top, name, embedded=True)
    top = unwrapped(top)
    if not contract and "task_id" in top and _count(top, f"{_PACKET_KEYS} constraints deliverables") > 1:
        return Contract.HANDOFF_PACKET
    return contract


def contract_of(top: Any, name: str, *, embedded: bool = False) -> Contract | None:
    """Return the contract that an object follows, or None; `embedded` in an answer, fewer keys make it a return."""
    if not isinstance(top, dict):
        return None
    last, packet = fold_case(name.rpartition("/")[2]), unwrapped(top)
    named = contract_by_name(last) if last.endswith(".json") else None
    is_meta = named is Contract.RETURN_META
    if named in _OF_NAMED:
        if named is Contract.SUBAGENT_RETURN and "report_metadata" in top:
            return Contract.REPORT_CONTRACT
        if _count(packet if named is Contract.HANDOFF_PACKET else top, _OF_NAMED[named]):
            return named
        # Many programs name their reports like this: if no key of the contract is there, the content decides.
        if named is not Contract.REPORT_CONTRACT:
            return None
    # A JSON schema is no document; but a return may name the schema that it follows.
    if "json-schema.org" in str(top.get("$schema")) or isinstance(top.get("properties"), dict):
        return None
    # Files of progress and state have a status and a session, as returns have.
    is_state = last == "state.json" or _count(top, _STATE_KEYS)
    if re.search(r"(?:return|report|handoff|packet|meta)[-_.]?schema\.json\Z", last) or (is_state and not is_meta):
        return None
    if "report_metadata" in top and _is_report(top, embedded=embedded):
        return Contract.REPORT_CONTRACT
    if str(packet.get("handoff_schema")).startswith("composability.handoff_packet"):
        return Contract.HANDOFF_PACKET
    status = top.get("status")
    word = fold_case(status) if isinstance(status, str) else ""
    is_return = _is_subagent_return(top, word)
    if _count(top, _FAMILY_KEYS) if is_meta else _is_return_meta(top, word, is_return=is_return):
        return Contract.RETURN_META
    # Any program may print a status and a summary: three keys of a return must be there, of the right types.
    is_rest = word in _RETURN_STATUSES and sum(isinstance(top.get(key), kind) for key, kind in _KINDS.items()) >= 2
    if is_return or (embedded and is_rest):
        return Contract.SUBAGENT_RETURN
    # A JSON file without an id may be any plan with an objective, risks and success criteria: it needs four keys.
    needed = 2 if _HANDOFF_FILE.search(name) else 4 if "task_id" not in packet and last.endswith(".json") else 3
    is_packet = _count(packet, _IDENTIFYING) and _count(packet, _PACKET_KEYS) >= needed
    return Contract.HANDOFF_PACKET if is_packet else None


def _is_subagent_return(top: Json, word: str) -> bool:
    """Tell whether an object is a return with metadata, or looks like a return that lacks only them."""
    metadata = top.get("metadata")
    known = _count(metadata, METADATA_KEYS) if isinstance(metadata, dict) else 0
    # Any log has a session, a status and a summary: if that is all, there must be artifacts.
    if known == 1 and "session_id" in top["metadata"]:
        return "artifacts" in top
    # Build tools report artifacts too, but without these words.
    has_more = "artifacts" in top and _count(top, "summary errors next_steps") > 0 and word in _RETURN_STATUSES
    return has_more or (known > 0 and _count(top, "status summary artifacts") > 0)


def _is_return_meta(top: Json, word: str, *, is_return: bool) -> bool:
    """Tell whether an object is of the dialect; `is_return` says that it also looks like a subagent-return."""
    if is_return:
        return word in STAGE_WORDS or word in OUTSIDE_THE_ENUM or _count(top, _DIALECT_KEYS) > 0
    # An everyday stage word is not enough: another key of a return must be there.
    telling = 2 * _count(top, "delegation_path partial_progress completion_data")
    return word in STAGE_WORDS and telling + _count(top, "artifacts session_id agent_type") > (word in _EVERYDAY)


def _is_report(top: Json, *, embedded: bool) -> bool:
    """Tell whether an object with `report_metadata` is an agent's report: other tools use that key, too."""
    metadata = top["report_metadata"]
    if not isinstance(metadata, dict):
        return "findings" in top
    known = _count(metadata, "agent_name task_id status verbosity_level confidence_level execution_time_seconds")
    more = _count(top, "findings recommendations identified_gaps blockers")
    return known + more > 0 if embedded else known > 0 and known + more > 1


def read_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> OpenDocument | None:
    """Recognise and read a text; return None if it follows no contract, and never raise.

    `name` is the path in the workspace. `embedded`: the text is a subagent's answer, and its last return counts.
    `handed_over`: the text is a subagent's prompt, and its first packet counts.
    """
    text = text.removeprefix("\ufeff")
    if not text.isascii():
        # No encoding can write half of a surrogate pair.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if handed_over:
        return _read_packet(lines_of(text), name)
    if embedded:
        # A return comes before a handoff.
        return _read_last_return(lines_of(text), name) or _read_packet(lines_of(text), name)
    is_object, named = text.lstrip()[:1] == "{", contract_by_name(name)
    if is_object and fold_case(name).endswith((".jsonl", ".ndjson")):
        return None
    if fold_case(name).endswith(".json"):
        is_report = named is Contract.REPORT_CONTRACT or fold_case(name).rpartition("/")[2] == "report.json"
        return _read_json(text, name, named, is_report=is_report) if is_object or named or is_report else None
    found = _read_unfenced_packet(text, name) or _read_json(text, name) if is_object else _read_markdown(text, name)
    if found or not named:
        return found or _read_fenced_return(text, name)
    # Look in fences, in wrappers and after text; a packet needs as few keys as in a JSON file of this name.
    lines = lines_of(text)
    is_return = named is Contract.RETURN_FORMAT
    found = _read_last_return(lines, name) if is_return else _read_packet(lines, f"{name[:-2]}json")
    return _read_by_name(lines, name, named) if not found else _noted(found, "DOC014", 0)


# JSON: the lines of places are found only when a finding needs them

MAX_DEPTH = 100  # arrays and objects inside each other: contracts need five, and the recursion limit is far above

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{},:]|[^][{},:"\s]++', re.DOTALL)
_DIGITS = 4_000  # Python refuses to read longer integers.
# Half of a surrogate pair: the parser would turn it into a character that no encoding can write.
_LONE_SURROGATE = re.compile(
    r"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _parse(text: str) -> tuple[Any, set[str]]:
    """Return (value, numbers that JSON does not allow, read as null; plus "" if a key stands twice)."""
    odd = set[str]()

    def members(pairs: list[tuple[str, Any]]) -> Json:
        if len(made := dict(pairs)) != len(pairs):
            odd.add("")
        return made

    def number(text: str) -> float | None:
        if text.lstrip("-").isdigit() and len(text) < _DIGITS:
            return int(text)
        if math.isfinite(value := float(text)):
            return value
        odd.add(text)
        return None

    return json.loads(text, object_pairs_hook=members, parse_float=number, parse_int=number, parse_constant=number), odd


def _break_of(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Return (rule, offset) for a syntax error: DOC002 if the text only breaks off there, even inside a word."""
    if error.msg == "Extra data":
        return "DOC007", error.pos
    end = len(text.rstrip(" \t\n\r"))
    if error.msg.startswith("Unterminated") or re.fullmatch(r"[\w.+-]{0,5}", text[error.pos : end]):
        return "DOC002", end
    if error.msg.startswith("Illegal"):
        # Newer versions of Python report the comma, older ones the bracket behind it.
        return "DOC001", len(text) - len(text[error.pos + 1 :].lstrip())
    return "DOC001", error.pos


def _scan(text: str, most: float = math.inf) -> tuple[list[Part], int | None]:
    """Return (at most about `most` parts with their offsets, the offset at which nesting gets too deep or None)."""
    parts: list[Part] = [((), len(text) - len(text.lstrip()))]
    closing, steps = list[str](), list[Any]()
    before = ""
    for match in _TOKEN.finditer(text):
        mark, at = match[0], match.start()
        if len(parts) > most or (mark in "{[" and len(closing) == MAX_DEPTH):
            return parts, at
        if closing and before in ("{", "[", ",") and mark not in "]}":
            if closing[-1] == "}":
                steps[-1] = mark if "\\" in mark else mark[1:-1]
            parts.append(((*steps,), at))
        if mark in "{[":
            closing.append("}" if mark == "{" else "]")
            steps.append(0)
        elif mark in "}]":
            del closing[-1:], steps[-1:]
        elif mark == "," and closing and closing[-1] == "]":
            steps[-1] += 1
        before = mark
    return parts, None


class JsonSource:
    """One JSON text; `complete` unless it breaks off, and `whole` if all of it could be parsed."""

    def __init__(self, text: str, first_line: int = 1):
        if "\\ud" in text or "\\uD" in text:
            # The same length as before, so that offsets stay valid.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text, self._first_line = text, first_line
        self.value: Any = None
        self._odd = set[str]()
        self._broken: tuple[str, int] | None = None
        deep = _scan(text)[1] if text.count("{") + text.count("[") > MAX_DEPTH else None
        try:
            if deep is None:
                self.value, self._odd = _parse(text)
            else:
                self._broken = "DOC006", deep
        except json.JSONDecodeError as error:
            self._broken = _break_of(text, error)
            deep = error.pos
        if deep is not None:
            from pydantic_core import from_json  # imported late: the first frame does not need it

            with suppress(ValueError):
                self.value = from_json(text[:deep], allow_partial=True)
        self.whole = not self._broken
        self.complete = not self._broken or self._broken[0] == "DOC006"

    @cached_property
    def _parts(self) -> list[Part]:
        """Return the places of the parts of a valid text, with the offsets at which they begin."""
        # This many take about 30 ms.
        parts = _scan(self._text, 20_000)[0]
        if "\\" not in self._text:
            return parts
        # A key that is written with escapes still has its quotes.
        return [
            (tuple(json.loads(str(step)) if str(step)[:1] == '"' else step for step in steps), at)
            for steps, at in parts
        ]

    def line_of(self, location: Location) -> int:
        """Return the 1-based line of a place: of its key or entry, else of the nearest enclosing part."""
        offsets = dict(self._parts)
        above = (location[:end] for end in range(len(location) - 1, -1, -1))
        # A key that the metadata lack may stand at the top level.
        return self._line(next(offsets[one] for one in (location, location[-1:], *above) if one in offsets)) + 1

    def judge(self, findings: Findings) -> None:
        """Note the faults of the JSON text itself, which are the same for every contract."""
        if self._broken:
            findings.add(self._broken[0], self._line(self._broken[1]), limit=MAX_DEPTH)
            return
        known = set[Location]()
        for location, at in self._parts if "" in self._odd else ():
            if location in known:
                findings.add("DOC004", self._line(at), key=quote_text(".".join(map(str, location)), 60))
            known.add(location)
        for match in _TOKEN.finditer(self._text) if self._odd else ():
            if match[0] in self._odd:
                findings.add("DOC005", self._line(match.start()))

    def _line(self, offset: int) -> int:
        """Return the index (from 0) of a line in the file."""
        return self._first_line - 1 + self._text.count("\n", 0, offset)


def _read_json(text: str, name: str, named: Contract | None = None, *, is_report: bool = False) -> OpenDocument | None:
    """Read a file as JSON; its name demands the contract `named`, or (`is_report`) allows a report."""
    if not named and not is_report and not _TOLD_BY.search(text):
        return None
    source = JsonSource(text)
    contract = contract_of(source.value, name)
    if contract:
        return _judge(source, contract)
    if is_report and not (source.whole and isinstance(source.value, dict)):
        named = Contract.REPORT_CONTRACT
        if "report_metadata" in text:
            # There is text, a fence or a list around it: read the fields from the report inside.
            broken = _judge(source, named)
            inner = next((one for _, one in _objects(text, name) if one.contract is named), broken)
            return replace(broken, document=inner.document, model=inner.model)
    # The name fits the dialect, which demands nothing: a valid object may be anything else.
    is_anything = named is Contract.RETURN_META and source.whole and isinstance(source.value, dict)
    return None if not named or is_anything else _judge(source, named, recognised=False)


def _judge(source: JsonSource, contract: Contract, *, recognised: bool = True) -> OpenDocument:
    """Judge an object by its contract; if not `recognised`, only the file's name says which contract it is."""
    findings = Findings()
    source.judge(findings)
    top = source.value if isinstance(source.value, dict) else {}
    if source.whole and top is not source.value:
        findings.add("DOC008", (), value=source.value)
    elif source.whole and not recognised:
        findings.add("DOC012", (), contract=contract)
    # A broken text only gets the finding of its break: its missing keys may be in the lost part.
    judged = findings if source.whole and top is source.value else Findings()
    model, fields = module_of(contract).judge(contract, top, judged)
    known = recognised or contract is Contract.RETURN_META
    fields = fields if known else replace(fields, recognised=False)
    return OpenDocument(fields, findings.made(source.line_of), source.complete and known, model)


# Markdown


def _read_markdown(text: str, name: str) -> OpenDocument | None:
    """Read a Markdown text; return None if it follows no contract."""
    # Nearly every file of a workspace follows no contract: each step first asks a cheap question that rules it out.
    if ("```" in text or "~~~" in text) and "{" in text and _MAY_LEAD_WITH_PACKET.match(text):
        page = scan_blocks(lines_of(text))
        fence = next(iter(page.fences), None)
        if fence and _leads(page, fence) and (packet := _read_fenced_packet(page, fence, name)):
            return packet
    named = contract_by_name(name) is Contract.RETURN_FORMAT
    found = _read_return(lines_of(text), loose=named) if named or _MAY_BE_RETURN.search(text) else None
    if not found and (todos := _TODOS_FILE.search(name)):
        return _read_todos(lines_of(text), alone=todos[1] is not None)
    return found


def _read_by_name(lines: list[str], name: str, contract: Contract) -> OpenDocument:
    """Return the document of a file with nothing, or too little, of the contract that its name demands."""
    part = _read_return(lines, by_name=True) if contract is Contract.RETURN_FORMAT else None
    if part:
        return replace(part, document=replace(part.document, recognised=False))
    fields: Fields = Return(contract, None, None, recognised=False)
    if contract is Contract.HANDOFF_PACKET:
        is_todos = name.lower().endswith("todos.md")
        fields = TodoList((), recognised=False) if is_todos else Handoff(None, None, recognised=False)
    # A return must have its headers; a packet or checklist in a message is only recommended.
    rule = "DOC012" if isinstance(fields, Return) else "DOC013"
    return _noted(OpenDocument(fields, (), False, module_of(contract).MODELS[contract]()), rule, 0, contract=contract)


def _read_return(
    lines: list[str], *, loose: bool = False, by_name: bool = False, first_line: int = 1
) -> OpenDocument | None:
    """Read lines as return-format; `loose` and `by_name` as in `find_sections`."""
    findings = Findings(first_line)
    page = scan_blocks(lines[:MAX_LINES])
    sections = find_sections(page, loose=loose, by_name=by_name)
    if not sections:
        return None
    from agentwatch.contracts import return_format

    if len(lines) > MAX_LINES:
        findings.add("DOC009", MAX_LINES, key="The document", limit=MAX_LINES)
    return return_format.judge(page, sections, findings)


def _read_todos(lines: list[str], *, alone: bool) -> OpenDocument | None:
    """Read a checklist that has a file of its own; if `alone`, a leading bullet of any kind counts as an item."""
    lines = scan_blocks(lines).lines
    if not has_item(lines, alone=alone):
        return None
    from agentwatch.contracts.handoff import HandoffPacket

    findings = Findings()
    items = read_checklist(lines, findings, alone=True)
    return OpenDocument(
        TodoList(items), findings.made(), complete=True, model=HandoffPacket.model_validate({"todos": items})
    )


def _leads(page: Page, fence: Fence) -> bool:
    """Tell whether a fence is the first block of a text, after front matter and at most one title."""
    above = [line for line in page.lines[: fence.first - 1] if line.strip()]
    return not above or (len(above) == 1 and above[0].lstrip().startswith("#"))


def _read_fenced_packet(
    page: Page, fence: Fence, name: str, *, leading: bool = False, fenced: bool = True
) -> OpenDocument | None:
    """Read a packet and the checklist after it, None if it is no packet; `fenced`: a closing mark is in between."""
    source = JsonSource("\n".join(page.lines[fence.first : fence.end]), fence.first + 1)
    signature = leading_contract_of if leading else contract_of
    is_json = fence.language in ("", "json", "jsonc", "json5") and isinstance(source.value, dict)
    if not is_json or signature(source.value, name) is not Contract.HANDOFF_PACKET:
        return None
    from agentwatch.contracts import handoff

    findings = Findings()
    if not fenced:
        findings.add("HOF060", (source.line_of(()) or 1) - 1)
    if source.complete and not fence.closed:
        findings.add("DOC002", len(page.lines) - 1)
    source.judge(findings)
    judged = findings if source.whole else Findings()
    model, fields = handoff.judge(Contract.HANDOFF_PACKET, source.value, judged)
    behind = fence.end + fenced
    if has_item(after := page.lines[behind:]):
        findings.first_line += behind
        todos = read_checklist(after, findings, alone=False)
        model, fields = model.model_copy(update={"todos": todos}), replace(fields, todos=todos)
    return OpenDocument(fields, findings.made(source.line_of), source.complete and fence.closed, model)


def _read_unfenced_packet(text: str, name: str) -> OpenDocument | None:
    """Read an unfenced packet at the start of a Markdown text that goes on after it."""
    end, _ = _object_at(text, text.index("{"))
    if end is None or not text[end:].strip():
        return None
    inside = lines_of(text[:end])
    # Text after the packet on its last line is ignored.
    page = scan_blocks(lines_of(text[end:])[1:])
    page = page._replace(lines=[*inside, *page.lines])
    return _read_fenced_packet(page, Fence(0, len(inside), "", closed=True), name, fenced=False)


def _read_packet(lines: list[str], name: str) -> OpenDocument | None:
    """Read the first packet of a prompt, even if the text shows a return as an example; None if there is none."""
    page = scan_blocks(lines)
    for index, fence in enumerate(page.fences[:_FENCES]):
        found = _read_fenced_packet(page, fence, name, leading=index == 0 and _leads(page, fence))
        if found:
            return found
    objects = _objects("\n".join(lines), name, asked=True)
    return next((made for _, made in objects if isinstance(made.document, Handoff)), None)


# Returns


def _read_last_return(lines: list[str], name: str) -> OpenDocument | None:
    """Read the last return in a text; an unfenced one counts before those in fences and JSON, which it may quote."""
    page = scan_blocks(lines)
    headed = [each for each in page.headings if each.header]
    starts = [each.line for each in headed if each.header == STATUS and value_below(page, each, "state") is not None]
    if headed and (not starts or headed[0].header != STATUS):
        starts[:1] = [0]

    def read_each(places: Iterable[tuple[int, int]]) -> list[tuple[int, OpenDocument]]:
        each = ((at, _read_return(lines[at:end], loose=True, first_line=at + 1)) for at, end in places)
        return [(at, made) for at, made in each if made]

    found = read_each(pairwise((*starts[-_FENCES:], len(lines))))
    if not found:
        objects = _objects("\n".join(lines), name)
        found = read_each((fence.first, fence.end) for fence in page.fences[:_FENCES])
        found += [(line, made) for line, made in objects if isinstance(made.document, Return)]
    if not found:
        return None
    line, last = max(found, key=lambda one: one[0])
    if all(each.document == last.document for _, each in found):
        return last
    return _noted(last, "DOC011", line, count=len(found))


def _read_fenced_return(text: str, name: str) -> OpenDocument | None:
    """Read the only return in the fences of a file without any other; None if there is none or several."""
    if not (("```" in text or "~~~" in text) and _MAY_BE_FENCED.search(text)):
        return None
    page, found = scan_blocks(lines_of(text)[:MAX_LINES]), list[OpenDocument]()
    for fence in page.fences[:_FENCES]:
        lines = page.lines[fence.first : fence.end]
        made = _read_return(lines, loose=True, first_line=fence.first + 1)
        if not made and fence.language in ("", "json"):
            source = JsonSource("\n".join(lines), fence.first + 1)
            contract = contract_of(source.value, name, embedded=True)
            made = _judge(source, contract) if contract not in (None, Contract.HANDOFF_PACKET) else None
        found += [made] if made else []
    if len(found) != 1 or not isinstance(fields := found[0].document, Return):
        return None
    return _noted(replace(found[0], document=replace(fields, fenced=True)), "DOC014", 0)


def _noted(document: OpenDocument, rule_id: str, index: int, **facts: object) -> OpenDocument:
    """Return the document with one more finding."""
    findings = Findings()
    findings.add(rule_id, index, **facts)
    return replace(document, findings=findings.made(others=document.findings))


def _objects(text: str, name: str, *, asked: bool = False) -> Iterator[tuple[int, OpenDocument]]:
    """Yield (line index, document) for each object of a contract in a text; if `asked`, the text may begin with it."""
    if not _TOLD_BY.search(text):
        return
    position = failures = 0
    # Further objects are ignored.
    for _ in range(5_000):
        match = _OBJECT.search(text, position)
        if not match or failures == _ATTEMPTS:
            return
        start = match.start()
        end, part = _object_at(text, start)
        # An object is quoted if text follows it on its line.
        is_quoted = end is not None and _GOES_ON.match(text, end) is not None
        contract = contract_of(part, name, embedded=not is_quoted)
        if asked and isinstance(part, dict) and not text[:start].strip():
            contract = leading_contract_of(part, name)
        if contract:
            line = text.count("\n", 0, start)
            yield line, _judge(JsonSource(text[start:end], 1 + line), contract)
        failures += end is None
        # After a broken document, go on at the next line that begins an object: its parts do not count.
        position = end or (start + 1 if not contract else text.find("\n{", start))
        if position < 0:
            return


def _object_at(text: str, position: int) -> tuple[int | None, object]:
    """Return (offset behind the object that begins here, the object), or (None, its readable part) if it breaks off."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, JsonSource(text[position:]).value
    return end, value
