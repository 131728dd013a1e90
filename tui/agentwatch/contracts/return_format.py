"""The return-format: four Markdown sections with `key: value` lines and bullet lists, and its error keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agentwatch.contracts import wording
from agentwatch.contracts.findings import Judgement, shown
from agentwatch.contracts.json_text import nearest
from agentwatch.contracts.return_lines import (
    Attested,
    Keys,
    read_attestation,
    read_deliverables,
    read_evidence,
    read_status,
)
from agentwatch.contracts.return_rules import RULES
from agentwatch.contracts.return_sections import (
    ATTESTATION,
    DELIVERABLES,
    EVIDENCE,
    FILE_KEYS,
    HEADERS,
    LEVEL,
    STATUS,
    TEXT_KEYS,
    Sections,
    is_attestation_key,
)
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.shapes import Contract, Opened, Outcome, Reading, Return
from agentwatch.contracts.validation import Contracted, validated
from agentwatch.text import folded

if TYPE_CHECKING:
    from agentwatch.contracts.json_text import Location

_MISSING: Final = {STATUS: "RET001", DELIVERABLES: "RET002", EVIDENCE: "RET003", ATTESTATION: "RET004"}
_OUTCOMES: Final = {"SUCCESS": Outcome.COMPLETED, "PARTIAL": Outcome.PARTIAL, "ERROR": Outcome.FAILED}
_CLAIMS: Final = "The list is what the claims of the return are checked by."
_LIST: Final = "a list key with one `- path` a line, or `- (none)`"
_INTEGER: Final = re.compile(r"[1-9][0-9]{0,5}\Z")


class StatusSection(Contracted):
    """`## Status`, with the keys of error-propagation."""

    state: Literal["SUCCESS", "ERROR", "PARTIAL"] | None = row(
        "SUCCESS", other="DONE", missing="RET010", value="RET011", case="RET012"
    )
    summary: str | None = row("Built the API.", needs="one sentence", missing="RET013", empty="RET014")
    error_code: str | None = None
    retry_recommended: Literal["yes", "no"] | None = row(
        "yes", section="Error Return Format (MVP)", other="maybe", value="ERR002", case="ERR003"
    )
    retry_hint: str | None = None
    task_id: str | None = None
    attempt: Annotated[int, Field(ge=1)] | None = None


class Deliverable(Contracted):
    """A file and what it is."""

    path: str
    description: str | None = None


class AttestationSection(Contracted):
    """`## Runtime Attestation`. None: the key is not there; an empty list: `- (none)`."""

    runtime_model_reported: str | None = row(
        "openai/gpt-5.2", needs="the model's name", missing="RET050", empty="RET051"
    )
    runtime_mode_reported: str | None = row("architect", needs="the mode's name", missing="RET052", empty="RET053")
    files_created: list[str] | None = row(["src/api.py"], needs=_LIST, missing="RET054")
    files_modified: list[str] | None = row(["(none)"], needs=_LIST, missing="RET055")
    limitations: list[str] | None = None


class ReturnFormat(Contracted):
    """The whole return. None: the section is not there."""

    status: StatusSection | None = row(section="## Status")
    deliverables: list[Deliverable] | None = None
    evidence: list[str] | None = None
    attestation: AttestationSection | None = row(section="## Runtime Attestation")


TABLE: Final = Table(
    Contract.RETURN_FORMAT,
    ReturnFormat,
    RULES,
    why={
        "status": "It says how the task ended.",
        "status.state": "The state decides what the parent does next.",
        "status.summary": "The summary is what the parent and the operator read first.",
        "status.retry_recommended": "The parent decides retry, abort or escalate by it.",
        "attestation": "It says who did the work.",
        "attestation.runtime_model_reported": "The parent must know which model did the work.",
        "attestation.runtime_mode_reported": "The parent must know in which mode the work was done.",
        "attestation.files_created": _CLAIMS,
        "attestation.files_modified": _CLAIMS,
    },
    lines=True,
)


_NO_STATUS: Final = StatusSection()
_NO_ATTESTATION: Final = AttestationSection()


def judge(lines: list[str], sections: Sections, judgement: Judgement, *, embedded: bool = False) -> Opened:
    """Read the sections; every rule they break is a finding."""
    found = sections.by_header
    _judge_headers(sections, judgement, embedded=embedded)

    raw: dict[str, Any] = {}
    keys = read_status(
        lines,
        sections.spans(STATUS) or [(sections.start, sections.first)],
        judgement if STATUS in found else Judgement(),
        swallowed=STATUS in found and DELIVERABLES not in found,
    )
    evidence, attestation = sections.spans(EVIDENCE), sections.spans(ATTESTATION)
    if evidence and not attestation:
        # The keys of an attestation whose header is missing end the evidence.
        begin, behind = evidence[0]
        end = next((index for index in range(begin, behind) if is_attestation_key(lines[index])), behind)
        evidence, attestation = [(begin, end)], [(end, behind)]
    attested = read_attestation(lines, attestation, judgement if ATTESTATION in found else Judgement())
    unjudged: dict[str, Any] = {}
    # What was found without its header is read, and not judged: the missing header says it all.
    (raw if STATUS in found else unjudged)["status"] = _status_values(keys, judgement)
    (raw if ATTESTATION in found else unjudged)["attestation"] = attested.values | attested.lists

    if (section := found.get(DELIVERABLES)) is not None:
        raw["deliverables"], some = read_deliverables(
            lines, sections.spans(DELIVERABLES), judgement, swallowed=EVIDENCE not in found
        )
        if not some:
            judgement.add_in("RET030", section.heading.line)
    if (section := found.get(EVIDENCE)) is not None:
        raw["evidence"], some = read_evidence(lines, evidence, judgement)
        if not some:
            judgement.add_in("RET040", section.heading.line)

    model = validated(ReturnFormat, raw, TABLE.judging, judgement)
    if STATUS in found:
        _judge_status(keys, attested, model, judgement, whole=ATTESTATION in found)
    if unjudged:
        model = validated(ReturnFormat, {**raw, **unjudged}, TABLE.judging, Judgement())
    findings = judgement.findings(lambda place: judgement.first_line + _index_of(place, sections, keys, attested))
    return Opened(Reading(_summary_of(model, keys), findings, not _is_cut(sections, attested)), model)


def _index_of(place: Location, sections: Sections, keys: Keys, attested: Attested) -> int:
    """Index of the line of a place, or of what encloses it."""
    places: dict[Location, int] = {(): sections.start}
    for header, name, read in ((STATUS, "status", keys), (ATTESTATION, "attestation", attested)):
        if header in sections.by_header:
            places[name,] = sections.by_header[header].heading.line
        places |= {(name, key): line for key, line in read.lines.items()}
    return nearest(places, place) or 0


def _judge_headers(sections: Sections, judgement: Judgement, *, embedded: bool) -> None:
    found = sections.by_header
    for header in HEADERS:
        if header not in found:
            judgement.add(_MISSING[header], ())
    for section in sections.repeated:
        judgement.add_in("RET008", section.heading.line, header=f"## {section.header}")
    for header, section in found.items():
        line = section.heading.line
        text = section.heading.text
        if section.heading.level != LEVEL:
            judgement.add_in("RET005", line, header=header, level=section.heading.level)
        if text != header:
            rule = "RET006" if folded(text) == folded(header) else "RET007"
            judgement.add_in(rule, line, value=shown("#" * section.heading.level + " " + text), header=f"## {header}")
    if sections.preamble and not embedded and STATUS in found:
        judgement.add_in("RET009", sections.start)


def _status_values(keys: Keys, judgement: Judgement) -> dict[str, Any]:
    values: dict[str, Any] = dict(keys.values)
    attempt = values.pop("attempt", None)
    if attempt is not None:
        if _INTEGER.match(attempt):
            values["attempt"] = int(attempt)
        else:
            judgement.add_in("RET022", keys.lines["attempt"], value=shown(attempt))
    return values


def _judge_status(keys: Keys, attested: Attested, model: ReturnFormat, judgement: Judgement, *, whole: bool) -> None:
    status = model.status or _NO_STATUS
    values = keys.values
    summary = values.get("summary")
    if summary and (count := wording.sentences(summary)) > 1:
        judgement.add("RET015", ("status", "summary"), count=count)
    code = values.get("error_code")
    if code and any(character.isspace() for character in code):
        judgement.add("ERR006", ("status", "error_code"), value=shown(code))
    if status.state == "ERROR":
        if "retry_recommended" not in values:
            judgement.add("ERR001", ("status",))
        if not code:
            judgement.add("ERR005", ("status", "error_code"))
    elif status.state == "SUCCESS":
        speaking = [key for key in ("error_code", "retry_hint") if values.get(key)]
        if status.retry_recommended == "yes":
            speaking.append("retry_recommended")
        if speaking:
            first = min(speaking, key=lambda key: keys.lines[key])
            judgement.add("ERR007", ("status", first), key=first)
    elif status.state == "PARTIAL" and whole:
        limitations = attested.lists.get("limitations")
        if not limitations:
            judgement.add("RET063", ("attestation",))
        elif not values.get("retry_hint") and not wording.tells_a_next_step(" ".join((summary or "", *limitations))):
            judgement.add("RET064", ("attestation", "limitations"))
    if status.retry_recommended == "yes" and status.state != "SUCCESS" and not values.get("retry_hint"):
        judgement.add("ERR004", ("status", "retry_hint"))


def _is_cut(sections: Sections, attested: Attested) -> bool:
    """Whether the text ends in the middle: what is missing is exactly what would have come last."""
    if len(sections.by_header) < len(HEADERS):
        present = [header in sections.by_header for header in HEADERS]
        return not any(present[present.index(False) :])
    required = [key in attested.values for key in (*TEXT_KEYS, *FILE_KEYS)]
    if all(required) or any(required[required.index(False) :]):
        return False
    last = max(section.heading.line for section in sections.by_header.values())
    return sections.by_header[ATTESTATION].heading.line == last


def _summary_of(model: ReturnFormat, keys: Keys) -> Return:
    status = model.status or _NO_STATUS
    attestation = model.attestation or _NO_ATTESTATION
    outcome = _OUTCOMES.get(status.state or "")
    return Return(
        contract=Contract.RETURN_FORMAT,
        reported_state=wording.shared(wording.brief(keys.values.get("state"))),
        outcome=outcome,
        task_id=status.task_id or None,
        attempt=status.attempt,
        agent=wording.shared(attestation.runtime_mode_reported),
        summary=wording.brief(status.summary),
        error_code=wording.brief(status.error_code),
        error_message=wording.brief(status.summary) if outcome is Outcome.FAILED else None,
        retry_recommended=None if status.retry_recommended is None else status.retry_recommended == "yes",
        retry_hint=wording.brief(status.retry_hint),
        model=wording.shared(attestation.runtime_model_reported),
        mode=wording.shared(attestation.runtime_mode_reported),
        files_created=wording.briefs(attestation.files_created or ()),
        files_modified=wording.briefs(attestation.files_modified or ()),
        limitations=wording.briefs(attestation.limitations or ()),
        artifacts=wording.briefs([deliverable.path for deliverable in model.deliverables or ()]),
    )
