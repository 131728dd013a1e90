"""Finds the contract of a text, reads the text and judges it. Only the models of this contract are imported."""

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
    find_value,
    has_checklist_item,
    read_checklist,
    scan_blocks,
    split_lines,
)
from agentwatch.contracts.rules import Findings, Location, module_of
from agentwatch.contracts.shapes import Contract, Fields, Handoff, Json, OpenDocument, Return, TodoList
from agentwatch.text import fold_case, quote_text

MAX_LINES = 5_000  # the most lines of a return that are read; even a long return has only about 100 lines
_ATTEMPTS = 20  # after so many broken JSON objects, the rest of a text is not searched
_FENCES = 200  # the most fenced blocks of a text that are read, and the most returns outside fences
Part = tuple[Location, int]  # a place in a JSON text, and its offset
_DECODER = json.JSONDecoder()
# The path of a checklist. Group 1 is None for a plain `todos.md`, which may be anybody's notes.
_TODOS_FILE = re.compile(r"(?:^|/)([^/]+\.|handoffs/)?todos\.md\Z")
# Matches a text that begins with a fence, with front matter, or with a title above a fence.
_MAY_LEAD_WITH_PACKET = re.compile(r"\s*(?:[`~-]|#[^\n]*(?:\n\s{0,199}[`~]))")
# Every return in the return-format has one of these words in a key.
_MAY_BE_RETURN = re.compile(r"state|runtime_", re.IGNORECASE)
_MAY_BE_FENCED = re.compile(r'^[ \t]*#+[ \t]*status\b|"status"', re.IGNORECASE | re.MULTILINE)
_TEXT_FOLLOWS = re.compile(r"[ \t.`]*[^\s.`]")
_OBJECT = re.compile(r'\{(?=\s*")')

# The contract of a JSON object, by its keys and by the name of its file


def _count_keys(top: Json, keys: str) -> int:
    return sum(key in top for key in keys.split())


WRAPPER = "handoff_packet"
METADATA_KEYS = "session_id agent_type delegation_depth delegation_path"
# Status words that any program may use.
_COMMON = frozenset(("in_progress", "planned", "implemented", "revised", "assembled"))
_SPECIAL_STAGE_WORDS = "researched tasks_created report_written plan_created plan_written summary_written synthesized"
# Status words of return-meta that the subagent-return does not have.
STAGE_WORDS = _COMMON.union(_SPECIAL_STAGE_WORDS.split())
# Two more status words of return-meta. Many other programs use these words, too.
OUTSIDE_THE_ENUM = ("done", "success")
_RETURN_STATUSES = ("completed", "partial", "failed", "blocked")
_CONTRACTS_BY_ENDING = {
    **dict.fromkeys(("handoff.json", "handoff.md", "todos.md"), Contract.HANDOFF_PACKET),
    "return.json": Contract.SUBAGENT_RETURN,
    "return.md": Contract.RETURN_FORMAT,
    "report.json": Contract.REPORT_CONTRACT,
}  # the contract by the end of a file name: `handoff.json` for `api.handoff.json`
_HANDOFF_FILE = re.compile(
    r"(?:^|/)(?:[^/]+\.)?handoff\.(?:json|md)\Z|(?:^|/)handoffs/[^/]+\Z", re.IGNORECASE | re.ASCII
)
_META_FILE = re.compile(
    r"(?!.*schema)(?:\.?(?:[\w-]+-)?return-meta(?:[-_.][^/]*)?|\.?(?:[\w-]+-)?meta-(?:[\w-]+-)?return(?:[-_.][^/]*)?"
    r"|(?:\.|\d+[-_])?orchestrator-handoff(?:[-_.][^/]*)?|\.phase-?\d+(?:-\d+)*-handoff(?:[-_.][^/]*)?)\.json\Z",
    re.IGNORECASE,
)
# A JSON text without any of these keys follows no contract. But an escape such as `\u0074` may hide a key.
_CONTRACT_KEY = re.compile(r'"(?:task_id|status|metadata|report_metadata|findings|objective|handoff_schema)"|\\u')
_IDENTIFYING = "task_id objective"
_PACKET_KEYS = "task_id objective evidence success_criteria risks"
# Keys of files that keep the state of a project. These files have a status, as returns do.
_STATE_KEYS = (
    "next_project_number project_number project_name project_numbering active_projects completed_projects"
    " archived_projects pending_tasks repository_health state_references"
)
_TYPES = {"summary": str, "artifacts": list, "metadata": dict, "errors": list, "next_steps": str}
_DIALECT_KEYS = "started_at partial_progress completion_data verification"
_META_KEYS = f"{_DIALECT_KEYS} {METADATA_KEYS} status metadata artifacts summary errors"
_KEYS_IF_NAMED = {
    Contract.HANDOFF_PACKET: _IDENTIFYING,
    Contract.SUBAGENT_RETURN: "status summary artifacts metadata errors",
    Contract.REPORT_CONTRACT: "report_metadata findings",
}  # a file whose name demands the contract needs only one of these keys


def contract_by_name(name: str) -> Contract | None:
    """Return the contract that a file must follow because of its name, or None."""
    last = fold_case(name.rpartition("/")[2])
    stem, *kind = last.rsplit(".", 2)
    named = _CONTRACTS_BY_ENDING.get(".".join(kind)) if stem else None
    return named or (Contract.RETURN_META if "-" in last and _META_FILE.match(last) else None)


def unwrap_packet(top: Json) -> Json:
    """Return the packet inside `{"handoff_packet": {…}}`. Return any other object unchanged."""
    inner = top.get(WRAPPER)
    return inner if isinstance(inner, dict) and not _count_keys(top, _PACKET_KEYS) else top


def find_leading_contract(top: Json, name: str) -> Contract | None:
    """Return the contract of the first object in a text, or None. A packet needs only `task_id` and one more key."""
    contract = find_contract(top, name, embedded=True)
    top = unwrap_packet(top)
    if not contract and "task_id" in top and _count_keys(top, f"{_PACKET_KEYS} constraints deliverables") > 1:
        return Contract.HANDOFF_PACKET
    return contract


def find_contract(top: Any, name: str, *, embedded: bool = False) -> Contract | None:
    """Return the contract that an object follows, or None. An object in an answer (`embedded`) needs fewer keys."""
    if not isinstance(top, dict):
        return None
    last, packet = fold_case(name.rpartition("/")[2]), unwrap_packet(top)
    named = contract_by_name(last) if last.endswith(".json") else None
    is_meta = named is Contract.RETURN_META
    if named in _KEYS_IF_NAMED:
        if named is Contract.SUBAGENT_RETURN and "report_metadata" in top:
            return Contract.REPORT_CONTRACT
        if _count_keys(packet if named is Contract.HANDOFF_PACKET else top, _KEYS_IF_NAMED[named]):
            return named
        # Many programs write reports. A report without a key of the contract may follow another contract.
        if named is not Contract.REPORT_CONTRACT:
            return None
    # A JSON schema follows no contract. But a `$schema` that names another schema is allowed in a return.
    if "json-schema.org" in str(top.get("$schema")) or isinstance(top.get("properties"), dict):
        return None
    # Project state files, like returns, have a status and a session.
    is_state = last == "state.json" or _count_keys(top, _STATE_KEYS)
    if re.search(r"(?:return|report|handoff|packet|meta)[-_.]?schema\.json\Z", last) or (is_state and not is_meta):
        return None
    if "report_metadata" in top and _is_report(top, embedded=embedded):
        return Contract.REPORT_CONTRACT
    if str(packet.get("handoff_schema")).startswith("composability.handoff_packet"):
        return Contract.HANDOFF_PACKET
    status = top.get("status")
    word = fold_case(status) if isinstance(status, str) else ""
    is_return = _is_subagent_return(top, word)
    if _count_keys(top, _META_KEYS) if is_meta else _is_return_meta(top, word, is_return=is_return):
        return Contract.RETURN_META
    # Any program may print a status. So two other keys of a return must be present, with the right types.
    is_rest = word in _RETURN_STATUSES and sum(isinstance(top.get(key), kind) for key, kind in _TYPES.items()) >= 2
    if is_return or (embedded and is_rest):
        return Contract.SUBAGENT_RETURN
    # Any plan may have an objective, risks and success criteria. So a JSON file without a task id needs four keys.
    needed = 2 if _HANDOFF_FILE.search(name) else 4 if "task_id" not in packet and last.endswith(".json") else 3
    is_packet = _count_keys(packet, _IDENTIFYING) and _count_keys(packet, _PACKET_KEYS) >= needed
    return Contract.HANDOFF_PACKET if is_packet else None


def _is_subagent_return(top: Json, word: str) -> bool:
    """Tell whether an object is a subagent-return. `word` is its status."""
    metadata = top.get("metadata")
    known = _count_keys(metadata, METADATA_KEYS) if isinstance(metadata, dict) else 0
    # Any log may have a session, a status and a summary. Only artifacts show that the object is a return.
    if known == 1 and "session_id" in top["metadata"]:
        return "artifacts" in top
    # Build tools report artifacts, too, but do not use these status words.
    has_more = "artifacts" in top and _count_keys(top, "summary errors next_steps") > 0 and word in _RETURN_STATUSES
    return has_more or (known > 0 and _count_keys(top, "status summary artifacts") > 0)


def _is_return_meta(top: Json, word: str, *, is_return: bool) -> bool:
    """Tell whether an object follows return-meta. `is_return`: it also looks like a subagent-return."""
    if is_return:
        return word in STAGE_WORDS or word in OUTSIDE_THE_ENUM or _count_keys(top, _DIALECT_KEYS) > 0
    # The status word is not enough. The object needs another key of a return, or two more keys if the word is common.
    telling = 2 * _count_keys(top, "delegation_path partial_progress completion_data")
    return word in STAGE_WORDS and telling + _count_keys(top, "artifacts session_id agent_type") > (word in _COMMON)


def _is_report(top: Json, *, embedded: bool) -> bool:
    """Tell whether an object with `report_metadata` is an agent's report. Other tools use this key, too."""
    metadata = top["report_metadata"]
    if not isinstance(metadata, dict):
        return "findings" in top
    known = _count_keys(metadata, "agent_name task_id status verbosity_level confidence_level execution_time_seconds")
    more = _count_keys(top, "findings recommendations identified_gaps blockers")
    return known + more > 0 if embedded else known > 0 and known + more > 1


def read_document(text: str, name: str, *, embedded: bool = False, handed_over: bool = False) -> OpenDocument | None:
    """Read a text by the contract that it follows. Return None if it follows no contract. Raise no exception.

    `name` is the path in the workspace. With `embedded`, the text is the answer of a subagent: read its last return.
    With `handed_over`, the text is the prompt of a subagent: read its first packet.
    """
    text = text.removeprefix("\ufeff")
    if not text.isascii():
        # Replace halves of surrogate pairs, which no encoding can write.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if handed_over:
        return _read_packet(split_lines(text), name)
    if embedded:
        # An answer may quote a handoff, so look for a return first.
        return _read_last_return(split_lines(text), name) or _read_packet(split_lines(text), name)
    is_object, named = text.lstrip()[:1] == "{", contract_by_name(name)
    if is_object and fold_case(name).endswith((".jsonl", ".ndjson")):
        return None
    if fold_case(name).endswith(".json"):
        is_report = named is Contract.REPORT_CONTRACT or fold_case(name).rpartition("/")[2] == "report.json"
        return _read_json(text, name, named, is_report=is_report) if is_object or named or is_report else None
    found = _read_unfenced_packet(text, name) or _read_json(text, name) if is_object else _read_markdown(text, name)
    if found or not named:
        return found or _read_fenced_return(text, name)
    # The name demands a contract, so search the whole text. A packet needs the same keys as in a JSON file.
    lines = split_lines(text)
    is_return = named is Contract.RETURN_FORMAT
    found = _read_last_return(lines, name) if is_return else _read_packet(lines, f"{name[:-2]}json")
    return _read_unrecognised(lines, name, named) if not found else _add_finding(found, "DOC014", 0)


# JSON. The line of a place is computed only when a finding needs it

MAX_DEPTH = 100  # the deepest nesting that is read; contracts need five levels

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{},:]|[^][{},:"\s]++', re.DOTALL)
_DIGITS = 4_000  # the most digits of an integer; Python itself refuses more than 4,300
# An escape of half a surrogate pair. The parser would turn it into a character that no encoding can write.
_LONE_SURROGATE = re.compile(
    r"(\\\\)|(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def _parse_json(text: str) -> tuple[Any, set[str]]:
    """Return (value, faults) of a JSON text. The faults are numbers that JSON forbids, and "" if a key is repeated."""
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


def _locate_break(text: str, error: json.JSONDecodeError) -> tuple[str, int]:
    """Return the rule and the offset of a syntax error. The rule is DOC002 if the text ends too early."""
    if error.msg == "Extra data":
        return "DOC007", error.pos
    end = len(text.rstrip(" \t\n\r"))
    if error.msg.startswith("Unterminated") or re.fullmatch(r"[\w.+-]{0,5}", text[error.pos : end]):
        return "DOC002", end
    if error.msg.startswith("Illegal"):
        # New versions of Python report the trailing comma. Old versions report the bracket after the comma.
        return "DOC001", len(text) - len(text[error.pos + 1 :].lstrip())
    return "DOC001", error.pos


def _scan_json(text: str, most: float = math.inf) -> tuple[list[Part], int | None]:
    """Return the places with their offsets, and the offset where the scan stopped (None if it did not stop). It stops
    after about `most` places, or where the text is nested too deeply."""
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
    """One JSON text. `whole` tells whether all of it was parsed, and `complete` whether it has no syntax error."""

    def __init__(self, text: str, first_line: int = 1):
        if "\\ud" in text or "\\uD" in text:
            # The replacement has the same length, so that offsets stay valid.
            text = _LONE_SURROGATE.sub(lambda match: match[1] or match[2] or "\\ufffd", text)
        self._text, self._first_line = text, first_line
        self.value: Any = None
        self._odd_numbers = set[str]()
        self._break: tuple[str, int] | None = None
        deep = _scan_json(text)[1] if text.count("{") + text.count("[") > MAX_DEPTH else None
        try:
            if deep is None:
                self.value, self._odd_numbers = _parse_json(text)
            else:
                self._break = "DOC006", deep
        except json.JSONDecodeError as error:
            self._break = _locate_break(text, error)
            deep = error.pos
        if deep is not None:
            from pydantic_core import from_json  # imported here, so that the screen starts faster

            with suppress(ValueError):
                self.value = from_json(text[:deep], allow_partial=True)
        self.whole = not self._break
        self.complete = not self._break or self._break[0] == "DOC006"

    @cached_property
    def _parts(self) -> list[Part]:
        """The first places in a valid text, each with its offset."""
        # A scan of 20,000 places takes about 30 ms.
        parts = _scan_json(self._text, 20_000)[0]
        if "\\" not in self._text:
            return parts
        # `_scan_json` keeps the quotation marks of keys with escapes. Decode these keys.
        return [
            (tuple(json.loads(str(step)) if str(step)[:1] == '"' else step for step in steps), at)
            for steps, at in parts
        ]

    def line_of(self, location: Location) -> int:
        """Return the line (from 1) of a place. If the text lacks the place, return the line of the object around it."""
        offsets = dict(self._parts)
        above = (location[:end] for end in range(len(location) - 1, -1, -1))
        # A key of the metadata may be at the top level instead.
        return self._line_index(next(offsets[one] for one in (location, location[-1:], *above) if one in offsets)) + 1

    def add_syntax_findings(self, findings: Findings) -> None:
        """Report faults of the JSON itself: a syntax error, repeated keys, and wrong numbers."""
        if self._break:
            findings.add(self._break[0], self._line_index(self._break[1]), limit=MAX_DEPTH)
            return
        known = set[Location]()
        for location, at in self._parts if "" in self._odd_numbers else ():
            if location in known:
                findings.add("DOC004", self._line_index(at), key=quote_text(".".join(map(str, location)), 60))
            known.add(location)
        for match in _TOKEN.finditer(self._text) if self._odd_numbers else ():
            if match[0] in self._odd_numbers:
                findings.add("DOC005", self._line_index(match.start()))

    def _line_index(self, offset: int) -> int:
        """Return the line index (from 0 in the file) of an offset in the text."""
        return self._first_line - 1 + self._text.count("\n", 0, offset)


def _read_json(text: str, name: str, named: Contract | None = None, *, is_report: bool = False) -> OpenDocument | None:
    """Read a file as JSON. Its name demands the contract `named`. With `is_report`, the file may be a report."""
    if not named and not is_report and not _CONTRACT_KEY.search(text):
        return None
    source = JsonSource(text)
    contract = find_contract(source.value, name)
    if contract:
        return _judge_json(source, contract)
    if is_report and not (source.whole and isinstance(source.value, dict)):
        named = Contract.REPORT_CONTRACT
        if "report_metadata" in text:
            # Text, a fence or a list surrounds the report. Read the fields from the report inside.
            broken = _judge_json(source, named)
            inner = next((one for _, one in _find_objects(text, name) if one.contract is named), broken)
            return replace(broken, document=inner.document, model=inner.model)
    # A file with the name of a return-meta may hold any other object instead, if the JSON is valid.
    is_anything = named is Contract.RETURN_META and source.whole and isinstance(source.value, dict)
    return None if not named or is_anything else _judge_json(source, named, recognised=False)


def _judge_json(source: JsonSource, contract: Contract, *, recognised: bool = True) -> OpenDocument:
    """Judge an object by a contract. If not `recognised`, only the name of the file demands this contract."""
    findings = Findings()
    source.add_syntax_findings(findings)
    top = source.value if isinstance(source.value, dict) else {}
    if source.whole and top is not source.value:
        findings.add("DOC008", (), value=source.value)
    elif source.whole and not recognised:
        findings.add("DOC012", (), contract=contract)
    # Report no missing keys of a broken text: the lost part may have these keys.
    judged = findings if source.whole and top is source.value else Findings()
    model, fields = module_of(contract).judge(contract, top, judged)
    known = recognised or contract is Contract.RETURN_META
    fields = fields if known else replace(fields, recognised=False)
    return OpenDocument(fields, findings.collect(source.line_of), source.complete and known, model)


# Markdown


def _read_markdown(text: str, name: str) -> OpenDocument | None:
    # Nearly all files of a workspace follow no contract. So each step begins with a cheap test.
    if ("```" in text or "~~~" in text) and "{" in text and _MAY_LEAD_WITH_PACKET.match(text):
        page = scan_blocks(split_lines(text))
        fence = next(iter(page.fences), None)
        if fence and _is_first_block(page, fence) and (packet := _read_fenced_packet(page, fence, name)):
            return packet
    named = contract_by_name(name) is Contract.RETURN_FORMAT
    found = _read_return(split_lines(text), loose=named) if named or _MAY_BE_RETURN.search(text) else None
    if not found and (todos := _TODOS_FILE.search(name)):
        return _read_todos(split_lines(text), alone=todos[1] is not None)
    return found


def _read_unrecognised(lines: list[str], name: str, contract: Contract) -> OpenDocument:
    """Return a document with a finding, for a file that does not follow the contract of its name."""
    part = _read_return(lines, by_name=True) if contract is Contract.RETURN_FORMAT else None
    if part:
        return replace(part, document=replace(part.document, recognised=False))
    fields: Fields = Return(contract, None, None, recognised=False)
    if contract is Contract.HANDOFF_PACKET:
        is_todos = name.lower().endswith("todos.md")
        fields = TodoList((), recognised=False) if is_todos else Handoff(None, None, recognised=False)
    # A return without its sections is an error. A handoff without a packet or checklist is a warning.
    rule = "DOC012" if isinstance(fields, Return) else "DOC013"
    return _add_finding(
        OpenDocument(fields, (), False, module_of(contract).MODELS[contract]()), rule, 0, contract=contract
    )


def _read_return(
    lines: list[str], *, loose: bool = False, by_name: bool = False, first_line: int = 1
) -> OpenDocument | None:
    """Read lines in the return-format, or return None. `find_sections` explains `loose` and `by_name`."""
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
    """Read a checklist file. Return None if it has no item. With `alone`, a bullet on the first line is enough."""
    lines = scan_blocks(lines).lines
    if not has_checklist_item(lines, alone=alone):
        return None
    from agentwatch.contracts.handoff import HandoffPacket

    findings = Findings()
    items = read_checklist(lines, findings, alone=True)
    return OpenDocument(
        TodoList(items), findings.collect(), complete=True, model=HandoffPacket.model_validate({"todos": items})
    )


def _is_first_block(page: Page, fence: Fence) -> bool:
    above = [line for line in page.lines[: fence.first - 1] if line.strip()]
    return not above or (len(above) == 1 and above[0].lstrip().startswith("#"))


def _read_fenced_packet(
    page: Page, fence: Fence, name: str, *, leading: bool = False, fenced: bool = True
) -> OpenDocument | None:
    """Read a packet and the checklist after it, or return None. `fenced`: fence marks surround the packet."""
    source = JsonSource("\n".join(page.lines[fence.first : fence.end]), fence.first + 1)
    signature = find_leading_contract if leading else find_contract
    is_json = fence.language in ("", "json", "jsonc", "json5") and isinstance(source.value, dict)
    if not is_json or signature(source.value, name) is not Contract.HANDOFF_PACKET:
        return None
    from agentwatch.contracts import handoff

    findings = Findings()
    if not fenced:
        findings.add("HOF060", (source.line_of(()) or 1) - 1)
    if source.complete and not fence.closed:
        findings.add("DOC002", len(page.lines) - 1)
    source.add_syntax_findings(findings)
    judged = findings if source.whole else Findings()
    model, fields = handoff.judge(Contract.HANDOFF_PACKET, source.value, judged)
    behind = fence.end + fenced
    if has_checklist_item(after := page.lines[behind:]):
        findings.first_line += behind
        todos = read_checklist(after, findings, alone=False)
        model, fields = model.model_copy(update={"todos": todos}), replace(fields, todos=todos)
    return OpenDocument(fields, findings.collect(source.line_of), source.complete and fence.closed, model)


def _read_unfenced_packet(text: str, name: str) -> OpenDocument | None:
    """Read an unfenced packet at the beginning of a Markdown text. Return None if no text follows the packet."""
    end, _ = _read_object_at(text, text.index("{"))
    if end is None or not text[end:].strip():
        return None
    inside = split_lines(text[:end])
    # Ignore text after the packet on the same line.
    page = scan_blocks(split_lines(text[end:])[1:])
    page = page._replace(lines=[*inside, *page.lines])
    return _read_fenced_packet(page, Fence(0, len(inside), "", closed=True), name, fenced=False)


def _read_packet(lines: list[str], name: str) -> OpenDocument | None:
    """Read the first packet of a prompt, or return None. Ignore returns in the prompt: they are only examples."""
    page = scan_blocks(lines)
    for index, fence in enumerate(page.fences[:_FENCES]):
        found = _read_fenced_packet(page, fence, name, leading=index == 0 and _is_first_block(page, fence))
        if found:
            return found
    objects = _find_objects("\n".join(lines), name, is_prompt=True)
    return next((made for _, made in objects if isinstance(made.document, Handoff)), None)


# Returns


def _read_last_return(lines: list[str], name: str) -> OpenDocument | None:
    """Read the last return of a text. Returns in fences and in JSON may be quotations. They are read only if the text
    has no other return."""
    page = scan_blocks(lines)
    headed = [each for each in page.headings if each.header]
    starts = [each.line for each in headed if each.header == STATUS and find_value(page, each, "state") is not None]
    if headed and (not starts or headed[0].header != STATUS):
        starts[:1] = [0]

    def read_each(places: Iterable[tuple[int, int]]) -> list[tuple[int, OpenDocument]]:
        each = ((at, _read_return(lines[at:end], loose=True, first_line=at + 1)) for at, end in places)
        return [(at, made) for at, made in each if made]

    found = read_each(pairwise((*starts[-_FENCES:], len(lines))))
    if not found:
        objects = _find_objects("\n".join(lines), name)
        found = read_each((fence.first, fence.end) for fence in page.fences[:_FENCES])
        found += [(line, made) for line, made in objects if isinstance(made.document, Return)]
    if not found:
        return None
    line, last = max(found, key=lambda one: one[0])
    if all(each.document == last.document for _, each in found):
        return last
    return _add_finding(last, "DOC011", line, count=len(found))


def _read_fenced_return(text: str, name: str) -> OpenDocument | None:
    """Read the return in a fence of a file. Return None if the fences have no return, or more than one."""
    if not (("```" in text or "~~~" in text) and _MAY_BE_FENCED.search(text)):
        return None
    page, found = scan_blocks(split_lines(text)[:MAX_LINES]), list[OpenDocument]()
    for fence in page.fences[:_FENCES]:
        lines = page.lines[fence.first : fence.end]
        made = _read_return(lines, loose=True, first_line=fence.first + 1)
        if not made and fence.language in ("", "json"):
            source = JsonSource("\n".join(lines), fence.first + 1)
            contract = find_contract(source.value, name, embedded=True)
            made = _judge_json(source, contract) if contract not in (None, Contract.HANDOFF_PACKET) else None
        found += [made] if made else []
    if len(found) != 1 or not isinstance(fields := found[0].document, Return):
        return None
    return _add_finding(replace(found[0], document=replace(fields, fenced=True)), "DOC014", 0)


def _add_finding(document: OpenDocument, rule_id: str, index: int, **facts: object) -> OpenDocument:
    findings = Findings()
    findings.add(rule_id, index, **facts)
    return replace(document, findings=findings.collect(others=document.findings))


def _find_objects(text: str, name: str, *, is_prompt: bool = False) -> Iterator[tuple[int, OpenDocument]]:
    """Find the JSON objects in a text that follow a contract. Yield (line index, document) for each."""
    if not _CONTRACT_KEY.search(text):
        return
    position = failures = 0
    # Read at most this many objects of a text.
    for _ in range(5_000):
        match = _OBJECT.search(text, position)
        if not match or failures == _ATTEMPTS:
            return
        start = match.start()
        end, part = _read_object_at(text, start)
        # Text after the object on the same line shows that the object is only quoted.
        is_quoted = end is not None and _TEXT_FOLLOWS.match(text, end) is not None
        contract = find_contract(part, name, embedded=not is_quoted)
        if is_prompt and isinstance(part, dict) and not text[:start].strip():
            contract = find_leading_contract(part, name)
        if contract:
            line = text.count("\n", 0, start)
            yield line, _judge_json(JsonSource(text[start:end], 1 + line), contract)
        failures += end is None
        # Do not read the parts of a broken document. Go on at the next line that begins with an object.
        position = end or (start + 1 if not contract else text.find("\n{", start))
        if position < 0:
            return


def _read_object_at(text: str, position: int) -> tuple[int | None, object]:
    """Read the object at `position`. Return (offset after the object, object). A broken object has the offset None."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None, JsonSource(text[position:]).value
    return end, value
