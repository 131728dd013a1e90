"""Checks handoffs and returns of agents against the contracts, and writes them into the workspace.

The answers are pydantic models, because MCP clients show the schema of an answer to language models.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.rules import contract_rules
from agentwatch.contracts.shapes import Contract, Document, Handoff, Return
from agentwatch.decisions.form import is_final_report
from agentwatch.decisions.reader import file_ending
from agentwatch.delegation.links import fallback_id, slot_of, stated_id
from agentwatch.disk import Directory
from agentwatch.text import quote_text

PURPOSES = {
    "handoff-packet": (
        "The work that a parent hands to a child, bounded and explicit. It is the first block of the child's prompt."
        " `parent_task_id`, `attempt` and `decision_id` link it; a retry has the `decision_id` of its decision."
        " A checklist of todos may follow it in Markdown."
    ),
    "return-format": (
        "The return of a child as Markdown: four headers of level two, in this spelling. `state` is SUCCESS, PARTIAL"
        " or ERROR; with ERROR, `retry_recommended` (yes or no) is a must, and `error_code` and `retry_hint` help."
        " List exactly the files that you wrote: they are looked at."
    ),
    "subagent-return": (
        "The return of a subagent as one JSON object. `status` is completed, partial, failed or blocked; unless it is"
        " completed, `errors` say what went wrong. agentwatch looks for the artifacts on disk."
    ),
    "return-meta": (
        "The dialect of subagent-return in files such as `.return-meta.json`: stage words such as researched and"
        " planned, and `in_progress` while the work goes on."
    ),
    "report-contract": (
        "The report of an agent as one JSON object: `status` is completed, failed or blocked, with the reason where it"
        " is not completed, and a confidence from 0 to 1."
    ),
}

EXAMPLES = {
    "handoff-packet": """\
{
  "handoff_schema": "composability.handoff_packet.v1",
  "task_id": "shop.api",
  "objective": "Build the checkout API.",
  "evidence": [{"path": "docs/api.md", "purpose": "The agreed design.", "required": true}],
  "success_criteria": ["The tests in tests/api pass"],
  "risks": [{"risk": "The schema moves.", "mitigation": "Stay with version 3."}]
}
""",
    "return-format": """\
## Status
state: SUCCESS
summary: The checkout API is built and its tests pass.
task_id: shop.api

## Deliverables
- src/api.py - the checkout API

## Evidence
- docs/api.md - read for the design

## Runtime Attestation
runtime_model_reported: vendor/model
runtime_mode_reported: code
files_created:
- src/api.py
files_modified:
- (none)
""",
    "subagent-return": """\
{
  "status": "completed",
  "summary": "The checkout API is built. Its tests pass.",
  "artifacts": [{"type": "implementation", "path": "src/api.py", "summary": "The checkout API."}],
  "metadata": {"session_id": "sess_1735460684_a1b2c3", "agent_type": "implementer",
    "delegation_depth": 1, "delegation_path": ["orchestrator", "implement", "implementer"]}
}
""",
    "return-meta": """\
{
  "status": "researched",
  "summary": "Three ways to build the checkout are compared. The second is the cheapest.",
  "artifacts": [{"type": "report", "path": "reports/checkout.md", "summary": "The comparison."}],
  "metadata": {"session_id": "sess_1735460684_a1b2c3", "agent_type": "researcher",
    "delegation_depth": 1, "delegation_path": ["orchestrator", "research", "researcher"]}
}
""",
    "report-contract": """\
{
  "report_metadata": {"agent_name": "investigator", "task_id": "shop.api", "status": "completed",
    "verbosity_level": "summary", "confidence_level": 0.9},
  "findings": {"checkout": "Orders are written twice when the client retries."},
  "recommendations": ["Make the endpoint idempotent."],
  "identified_gaps": [],
  "blockers": []
}
""",
}  # for each contract, a document that breaks no rule

INVALID = "invalid"
WAITS = frozenset({INVALID, "failed", "blocked"})  # in these states an agent has to wait for the operator's decision

# The most characters of the stem of a file name. The whole name, with its ending, must stay below 255 bytes.
_LONGEST = 150

_READ_ONLY = "nothing may be written here: the operator has set read_only; go on without submitting"
_NO_PACKET = (
    "no handoff packet is recognised in it: send the packet as a JSON object, or Markdown whose first block is the"
    " fenced packet; get_contract('handoff-packet') has an example"
)
_NO_RETURN = (
    "no contract is recognised in it: write it again, beginning with `## Status` (return-format), or as one JSON"
    " object; get_contract('return-format') has an example"
)
_HANDOFF = "this is a handoff, and what you give back is a return: get_contract('return-format') has an example"
_NO_RESULT = (
    "no return is recognised in it: pass the return itself, without prose or a fence around it, or have the child"
    " answer again in the return format; where that cannot be done, submit a return-format document in its name with"
    " `state: ERROR` and `error_code: E_NO_RETURN`"
)
_BROKEN = (
    "have the child mend every error and submit its new return; if it cannot, submit this one with accept_invalid=true:"
    " the task then counts as failed"
)


class BrokenRule(BaseModel):
    """One broken rule. Lines of the text count from 1. An `error` breaks the contract, a `warning` does not."""

    model_config = ConfigDict(from_attributes=True)

    rule: str
    severity: str
    message: str
    line: int | None


class Judged(BaseModel):
    """The findings in a text, and what to do now. `contract` is null if the text follows none of the contracts."""

    contract: str | None
    state: str | None
    findings: list[BrokenRule]
    do_now: str


class Validated(Judged):
    """Says whether a return keeps its contract (`compliant`). Send only a compliant return."""

    compliant: bool


class Submitted(Judged):
    """Says whether a document was accepted, and where it is stored. If it was refused, mend it and submit it again."""

    accepted: bool
    path: str | None = None
    sha256: str | None = None


class Waited(BaseModel):
    """The operator's decision with all its signed fields. `pending` is neither an approval nor a refusal."""

    model_config = ConfigDict(extra="allow")

    pending: bool
    do_now: str
    state: str | None


class RuleInShort(BaseModel):
    """One rule of a contract in few words, because a language model pays for each word."""

    id: str
    severity: str
    wrong: str
    right: str


class ContractTold(BaseModel):
    """A contract: its purpose, a minimal document that keeps it, and its rules."""

    name: str
    purpose: str
    example: str
    rules: list[RuleInShort]


def describe_contract(name: Contract) -> ContractTold:
    """Return the description of one contract. Its rules include the rules for all documents."""
    rules = [
        RuleInShort(id=rule.id, severity=rule.severity.value, wrong=rule.title, right=rule.right)
        for rule in contract_rules().values()
        if rule.contract in (name, None)
    ]
    return ContractTold(name=name, purpose=PURPOSES[name], example=EXAMPLES[name], rules=rules)


def validate_return(text: str) -> Validated:
    """Check the text that a child is about to send as its last message. Prose may stand around the return."""
    reading = read_document(text, "return", embedded=True)
    if not reading or not isinstance(reading.document, Return):
        return Validated(**_judge(None), do_now=_HANDOFF if reading else _NO_RETURN, compliant=False)
    judgement = _judge(reading)
    compliant = judgement["state"] != INVALID
    do_now = "send exactly this text, and nothing else, as your last message"
    mend = "mend every error, and validate it again before you send it"
    return Validated(**judgement, do_now=do_now if compliant else mend, compliant=compliant)


def submit_handoff(workspace: Path, text: str, *, read_only: bool) -> Submitted:
    """Check a handoff packet, and write it to `handoffs/<task id>.handoff.json` or `.md`."""
    reading = read_document(text, f"handoffs/packet.handoff.{file_ending(text)}")
    document = reading.document if reading else None
    if not reading or not isinstance(document, Handoff) or not document.recognised:
        return _refuse(None, _NO_PACKET)
    if reading.has_error or not document.task_id:
        return _refuse(reading, "mend every error and submit it again; do not start the child before it is accepted")
    do_now = (
        "start the child now, with this packet as the first block of its prompt; when it has ended, call submit_return"
        f" for {quote_text(document.task_id)} with its return"
    )
    path = f"handoffs/{stem_of(document.task_id)}.handoff"
    return _refuse(reading, _READ_ONLY) if read_only else _write_document(workspace, path, text, reading, do_now)


def submit_return(workspace: Path, task_id: str, text: str, *, accept_invalid: bool, read_only: bool) -> Submitted:
    """Check a return, and write it to `returns/<task_id>.return.md` or `.json`.
    A return that breaks its contract is written only with `accept_invalid`."""
    stem = stem_of(task_id)
    path = f"returns/{stem}.return"
    reading = read_document(text, f"{path}.{file_ending(text)}")
    document = reading.document if reading else None
    if not reading or not isinstance(document, Return) or not document.recognised:
        return _refuse(None, _NO_RESULT)
    stated, task, state = stated_id(document), quote_text(task_id), _judge(reading)["state"]
    if stated and stated != task_id:
        why = f"it says that it is the return of {quote_text(stated)}, not of {task}: submit it for that task"
        return _refuse(reading, why)
    is_handed_over = any(os.path.lexists(workspace / f"handoffs/{stem}.handoff.{ending}") for ending in ("json", "md"))
    if not stated and not is_handed_over and fallback_id(f"{path}.{file_ending(text)}", document) != task_id:
        return _refuse(reading, f"nothing ties it to {task}: submit the handoff of the task first, then this return")
    if read_only or (state == INVALID and not accept_invalid):
        return _refuse(reading, _READ_ONLY if read_only else _BROKEN)
    do_now = f"go on: {task} is {state}; check what it claims before you rely on it"
    if is_final_report(document):
        do_now = f"go on without {task}: the operator has aborted it; hand this report up, and start nothing for it"
    elif state in WAITS:
        do_now = wait_instruction(task_id)
    return _write_document(workspace, path, text, reading, do_now)


def wait_instruction(task_id: str, question: str = "") -> str:
    """Return a sentence that tells an agent to wait for the operator. `question` is untrusted."""
    why = f"the operator is asked: {quote_text(question, 300)}; " if question else ""
    return (
        f"{why}call wait_for_decision for {quote_text(task_id)} now, again and again until it is not pending, and do"
        " what its do_now says; do not retry, escalate or give up by yourself"
    )


def stem_of(task_id: str) -> str:
    """Return a safe stem for the file names of a task. The id is untrusted. Different ids have different stems.

    >>> stem_of("shop.api"), stem_of("a/b"), stem_of("../etc")
    ('shop.api', 'a%2Fb', 'task%2Df7f9121fdb53d8de1eccbfa65c4bd976')
    """
    stem = quote(task_id, safe="._-", errors="surrogatepass")
    # Use a hash if the stem is too long, begins with `.` or `-`, or would be read as the name of another task.
    if len(stem) > _LONGEST or stem[:1] in ".-" or slot_of(f"handoffs/{stem}.handoff.json")[1] != stem:
        stem = f"task%2D{hashlib.sha256(task_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return stem


def _judge(reading: Document | None) -> dict[str, Any]:
    """Return the fields of `Judged`, except `do_now`. The state of a handoff is None."""
    if not reading:
        return {"contract": None, "state": None, "findings": []}
    state, document = None, reading.document
    if isinstance(document, Return):
        state = INVALID if reading.has_error or not document.outcome else document.outcome.value
    findings = [BrokenRule.model_validate(one) for one in reading.findings]
    return {"contract": reading.contract.value, "state": state, "findings": findings}


def _write_document(workspace: Path, path: str, text: str, reading: Document, do_now: str) -> Submitted:
    """Write a document to `path` with the ending `json` or `md`, and return the answer."""
    data, ending = text.encode("utf-8", "replace"), file_ending(text)
    place, name = path.split("/")
    try:
        with Directory.open(workspace) as root, root.open_child(place, make=0o755) as directory:
            directory.replace(f"{name}.{ending}", data, 0o644)
            # Remove the file with the other ending, because a task has only one handoff and one return.
            with suppress(OSError):
                directory.remove(f"{name}.{'md' if ending == 'json' else 'json'}")
    except OSError as error:
        why = f"{place}/ cannot be written: {error.strerror or error}"
        return _refuse(reading, f"{why}. It must be a directory, not a link; tell the operator")
    sha256 = hashlib.sha256(data).hexdigest()
    return Submitted(**_judge(reading), do_now=do_now, accepted=True, path=f"{path}.{ending}", sha256=sha256)


def _refuse(reading: Document | None, do_now: str) -> Submitted:
    return Submitted(**_judge(reading), do_now=do_now, accepted=False)
