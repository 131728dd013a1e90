"""Returns in JSON: the subagent-return, its dialect return-meta, and the report-contract."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le

from agentwatch.contracts.fields import Amount, Attempt, Count, Million, Model, Required, Text, Whole, Word, read_fields
from agentwatch.contracts.reading import METADATA_KEYS, OUTSIDE_THE_ENUM, STAGE_WORDS
from agentwatch.contracts.rules import (
    MAX_ENTRIES,
    MAX_TOKENS,
    Findings,
    is_blank,
    judge_paths,
    outline,
    sentences,
    shorten,
    shown,
    tokens,
    why_not_relative,
)
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.text import folded

LOW_CONFIDENCE: Final = 0.5  # a confidence below this is flagged for a human
_FAR_TOO_LONG: Final = 500  # characters of a summary above which no count of tokens makes it short enough
_NO_REASON: Final = "The return asks for a review without saying why."
_HANDOFF_LIKE: Final = re.compile(r"-handoff[^/]*\Z", re.IGNORECASE | re.ASCII)
_POINTER: Final = re.compile(
    r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z"
)

# How returns say how they ended, what blocks them, and when.
_MEANS: Final[dict[str, Outcome]] = dict.fromkeys((*STAGE_WORDS, *OUTSIDE_THE_ENUM), Outcome.COMPLETED) | {
    word: outcome
    for outcome, words in {
        Outcome.COMPLETED: "completed complete succeeded finished ok"
        " reviewed analyzed documented verified validated tested",
        Outcome.WORKING: "in_progress running started working pending"
        " researching planning implementing reviewing revising testing",
        Outcome.PARTIAL: "partial partially_completed partially_done partially_implemented",
        Outcome.BLOCKED: "blocked",
        Outcome.FAILED: "failed failure error",
    }.items()
    for word in words.split()
}
_FINISHING: Final = frozenset(
    """
    added analysed analyzed answered applied approved archived assembled assessed audited benchmarked built
    checked cleaned closed collected committed compared compiled complete completed composed configured converted
    corrected created debugged decomposed defined deleted delivered deployed described designed developed
    diagnosed documented done drafted edited elaborated enhanced estimated evaluated executed explored exported
    extended extracted finalised finalized finished fixed formalised formalized formatted formulated gathered
    generated identified implemented imported improved indexed inspected installed integrated investigated listed
    made mapped measured merged migrated modeled modelled moved optimised optimized organised organized outlined
    packaged passed polished ported prepared prioritised prioritized produced profiled prototyped proved proven
    published pushed ready rebased recorded refactored refined released removed renamed rendered repaired replaced
    reported researched resolved restructured reviewed revised rewritten saved scaffolded scoped selected
    simplified sketched solved specified structured studied summarised summarized synthesised synthesized tested
    traced transformed translated triaged updated validated verified wired written
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Verbs of making: alone, or as the last part of a word (`tasks_created`), they say that a stage has been finished."""
_DOUBT: Final = frozenset(
    """
    abandoned aborted almost be being blocked blocker blockers canceled cancelled cannot conflict conflicts crash
    crashed deferred denied dropped error errors fail failed failing failure failures few half halted if
    incomplete incompletely interrupted killed lost merely mostly nearly need needed needs never no non none not
    nothing only part partial partially partly paused pending poorly postponed refused rejected semi should
    skipped some stalled stopped suspended terminated timed timeout to unable unless unresolved until when without
    wrongly
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Parts of a word that say that it was not, or not all: `not_ready`, `errors_generated`."""
# What was wrong and is mended: `conflicts_resolved`.
_MENDED: Final = re.compile(
    r"(?<![^_])(?:blocker|conflict|error|failure)s?_(?=(?:corrected|fixed|repaired|resolved|solved)\Z)"
)
_BLOCKERS: Final = ("blockers", "blocking_issues", "blocker", "blocking_issue")
_BLOCKER_TEXTS: Final = (
    *("description", "message", "issue", "reason", "summary"),
    *("blocker", "title", "text", "why_it_failed"),
)
_OVERCOME: Final = ("resolved", "fixed", "closed", "cleared")
_ENDED: Final = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")
_BEGAN: Final = ("started_at", "created_at")


class Artifact(Model):
    """A file the agent created."""

    type: Required[Literal["plan", "report", "summary", "implementation", "documentation"]] = None
    path: Text = None
    summary: Text = None


class ReturnMetadata(Model):
    """The returning agent, and the way by which it was reached."""

    session_id: Text = None
    agent_type: Text = None
    delegation_depth: Required[Count] = None
    delegation_path: Required[list[Word]] = None
    duration_seconds: Amount | None = None
    phase_count: Count | None = None
    estimated_hours: Amount | None = None
    findings_count: Count | None = None
    attempt: Attempt | None = None


class ReturnError(Model):
    """An error that the agent met."""

    type: Text = None
    message: Text = None
    recoverable: Required[bool] = None
    recommendation: Text = None


class SubagentReturn(Model):
    """The whole return. None: not there, or not of the type it must have."""

    status: Required[Literal["completed", "partial", "failed", "blocked"]] = None
    summary: Text = None
    artifacts: Required[list[Artifact]] = None
    metadata: Required[ReturnMetadata] = None
    errors: list[ReturnError] | None = None
    next_steps: str | None = None
    attempt: Attempt | None = None


class MetaArtifact(Model):
    """A file the agent created; any word may be its type."""

    type: str | None = None
    path: Text = None
    summary: str | None = None


class MetaMetadata(Model):
    """The returning agent; each field is taken from `metadata`, else from the top level."""

    session_id: str | None = None
    agent_type: str | None = None
    delegation_depth: Whole | None = None
    delegation_path: list[str] | None = None
    attempt: Attempt | None = None


class ReturnMeta(Model):
    """The whole return in one shape, whichever way it was written. `more` are the keys that nobody defined."""

    phases_completed: Million | None = None
    phases_total: Million | None = None
    status: Required[str] = None
    summary: str | None = None
    artifacts: list[MetaArtifact] | None = None
    metadata: Required[MetaMetadata] = None
    errors: list[ReturnError] | None = None
    blockers: list[str] | None = None
    next_steps: str | None = None
    requires_user_review: bool | None = None
    review_reason: str | None = None
    files_created: list[str] | None = None
    files_modified: list[str] | None = None
    attempt: Attempt | None = None
    more: dict[str, Any] | None = None


class ReportMetadata(Model):
    """Metadata by which the orchestrator tracks the task."""

    agent_name: Text = None
    task_id: Text = None
    status: Required[Literal["completed", "blocked", "failed"]] = None
    verbosity_level: Required[Literal["summary", "detailed", "comprehensive"]] = None
    confidence_level: Required[Annotated[float, Ge(0.0), Le(1.0)]] = None
    token_usage: Count | None = None
    execution_time_seconds: Count | None = None
    error_message: str | None = None
    attempt: Attempt | None = None


class ContextEntry(Model):
    """One row of a context map: a statement, and `path:first-last`, or `-` where it has no pointer."""

    statement: str
    location: str = "-"


class Report(Model):
    """The whole report. `findings` are as the agent wrote them, whatever they are; `context_map` is what they map."""

    report_metadata: Required[ReportMetadata] = None
    findings: Required[dict[str, Any]] = None
    context_map: list[ContextEntry] | None = None
    recommendations: list[str] | None = None
    identified_gaps: list[str] | None = None
    blockers: list[str] | None = None
    attempt: Attempt | None = None


MODELS: Final = {
    Contract.SUBAGENT_RETURN: SubagentReturn,
    Contract.RETURN_META: ReturnMeta,
    Contract.REPORT_CONTRACT: Report,
}


def judge(contract: Contract, top: dict[str, Any], findings: Findings, name: str) -> tuple[Model, Return]:
    """The typed return and its fields; every rule it breaks is noted."""
    if contract is Contract.REPORT_CONTRACT:
        return _judge_report(top, findings)
    if contract is Contract.RETURN_META:
        return _judge_meta(top, findings, name)
    return _judge_subagent_return(top, findings)


def _judge_subagent_return(top: dict[str, Any], findings: Findings) -> tuple[SubagentReturn, Return]:
    returned = read_fields(Contract.SUBAGENT_RETURN, SubagentReturn, top, findings)
    status, summary = returned.status, returned.summary or ""
    count = sentences(summary)
    if tokens(summary) > MAX_TOKENS:
        rule = "SUB007" if len(summary) > _FAR_TOO_LONG else "SUB009"
        findings.add(rule, ("summary",), tokens=tokens(summary), characters=len(summary))
    elif summary.strip() and not 2 <= count <= 5:
        findings.add("SUB008", ("summary",), count=f"{count} sentence{'' if count == 1 else 's'}")
    if top.get("artifacts") == [] and status in ("completed", "partial"):
        findings.add("SUB012", ("artifacts",), status=status)
    judge_paths("SUB020", "artifacts", returned.artifacts, findings)
    # Anything else that is empty, such as an object, is of the wrong type: that is said already.
    if status not in (None, "completed") and top.get("errors") in (None, []):
        findings.add("SUB050", ("errors",), status=status)
    if status == "completed" and top.get("errors"):
        findings.add("SUB061", ("errors",))
    if returned.metadata is not None and returned.metadata.delegation_path == []:
        findings.add("SUB047", ("metadata", "delegation_path"))
    blockers = _blockers(top, Findings()) if status == "blocked" else None
    outcome = Outcome(status) if status else None
    return returned, _fields_of(Contract.SUBAGENT_RETURN, returned, top, outcome, findings, blockers=blockers)


def _judge_meta(top: dict[str, Any], findings: Findings, name: str) -> tuple[ReturnMeta, Return]:
    outcome = _judge_status(top.get("status"), findings)
    raw = {**top, "more": None, "blockers": _blockers(top, findings), "artifacts": _artifacts(top, findings)}
    raw["errors"] = _objects(top, "errors", "message", "MET030", findings)
    metadata = top.get("metadata")
    inside: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    above = {key: top[key] for key in METADATA_KEYS.split() if key in top}
    if metadata is None or inside:
        raw["metadata"] = {**above, **inside}
    for key in ("phases_completed", "phases_total"):
        if isinstance(phases := raw.setdefault(key, inside.get(key)), list):
            findings.add("MET033", (key,), key=key, value=phases)
            raw[key] = len(phases)
    if isinstance(steps := top.get("next_steps"), list):
        findings.add("MET032", ("next_steps",), value=steps)
        raw["next_steps"] = "\n".join(step for step in steps[:MAX_ENTRIES] if isinstance(step, str)) or None
    has_path = raw["artifacts"] is not None or any(key.endswith("_path") for key in top)
    if not has_path and outcome in (Outcome.COMPLETED, Outcome.PARTIAL):
        how = "is empty" if "artifacts" in top else "is missing"
        findings.add("MET012", (), how=how, status=shorten(str(top["status"])))
    # An orchestrator's handoff never has metadata: its directory says whose it is.
    if metadata is None and not _HANDOFF_LIKE.search(name):
        findings.add("MET020", ())
    returned = read_fields(Contract.RETURN_META, ReturnMeta, raw, findings)

    summary = returned.summary or ""
    if tokens(summary) > MAX_TOKENS:
        findings.add("MET011", ("summary",), tokens=tokens(summary), characters=len(summary))
    judge_paths("MET018", "artifacts", returned.artifacts, findings)
    for index, artifact in enumerate(_entries(top.get("artifacts"))):
        kind = artifact.get("type") if isinstance(artifact, dict) else None
        if isinstance(kind, str) and kind not in ("plan", "report", "summary", "implementation", "documentation"):
            findings.add("MET017", ("artifacts", index, "type"), value=kind)
    if isinstance(metadata, dict) and raw["metadata"].get("session_id") is None:
        findings.add("MET022", ("metadata",))
    if isinstance(metadata, dict) and not raw["metadata"].keys() & {"agent_type", "delegation_path"}:
        findings.add("MET023", ("metadata",))
    # What is there and cannot be read is said already.
    if outcome is Outcome.BLOCKED and not any(top.get(key) for key in (*_BLOCKERS, "errors")):
        findings.add("MET035", ("blockers",))
    if returned.requires_user_review and is_blank(returned.review_reason or ""):
        findings.add("MET036", ("review_reason",))
    more = {key: value for key, value in top.items() if key not in ReturnMeta.model_fields}
    returned = returned.model_copy(update={"more": more or None})
    done, total = returned.phases_completed, returned.phases_total
    return returned, _fields_of(
        Contract.RETURN_META,
        returned,
        {**top, "metadata": raw["metadata"]},
        outcome,
        findings,
        blockers=returned.blockers,
        review_reason=(returned.review_reason or _NO_REASON) if returned.requires_user_review else None,
        progress=(min(done, total), total) if done is not None and total else None,
    )


def _judge_report(top: dict[str, Any], findings: Findings) -> tuple[Report, Return]:
    raw = {key: value for key, value in top.items() if key != "context_map"}
    report = read_fields(Contract.REPORT_CONTRACT, Report, raw, findings)
    metadata = report.report_metadata or ReportMetadata()
    confidence, status, message = metadata.confidence_level, metadata.status, metadata.error_message or ""
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        findings.add("REP020", place, value=confidence, threshold=LOW_CONFIDENCE)
    if status == "failed" and is_blank(top["report_metadata"].get("error_message") or ""):
        findings.add("REP024", ("report_metadata", "error_message"))
    elif status == "completed" and not is_blank(message):
        findings.add("REP026", ("report_metadata", "error_message"))
    blocking = top.get("blockers")
    blank = blocking is None or (isinstance(blocking, list) and all(map(is_blank, blocking)))
    if status == "blocked" and blank:
        findings.add("REP046", ("blockers",))
    elif status in ("completed", "failed") and report.blockers and not blank:
        findings.add("REP047", ("blockers",), status=status)
    if "recommendations" not in top:
        findings.add("REP048", ())
    if "blockers" not in top and status != "blocked":
        findings.add("REP049", ())
    if status in ("blocked", "failed") and not all(map(is_blank, report.identified_gaps or ())):
        findings.add("REP050", ("identified_gaps",), status=status)
    context_map = _context_map((report.findings or {}).get("context_map"), findings)
    outcome = Outcome(status) if status else None
    inner = top.get("report_metadata")
    return report.model_copy(update={"context_map": context_map}), outline(
        Return,
        metadata,
        report,
        contract=Contract.REPORT_CONTRACT,
        reported_state=_reported(inner if isinstance(inner, dict) else {}),
        outcome=outcome,
        agent=metadata.agent_name,
        blockers=report.blockers or _blockers(top, Findings()) or (),
        next_steps="\n".join(report.recommendations or ()),
        confidence=confidence,
        stated_at=_stated_at(top, outcome),
    )


def _fields_of(
    contract: Contract,
    returned: SubagentReturn | ReturnMeta,
    top: dict[str, Any],
    outcome: Outcome | None,
    findings: Findings,
    **more: Any,
) -> Return:
    """The fields that the delegation tree needs; `more` are others."""
    metadata, errors = returned.metadata or ReturnMetadata(), returned.errors or [ReturnError()]
    path, depth = tuple(metadata.delegation_path or ()), metadata.delegation_depth
    if returned.metadata is not None and depth is not None and path:
        # The orchestrator and its command are no level of delegation; an entry of another type is one all the same.
        length = len(top["metadata"]["delegation_path"])
        if depth != (expected := max(length - 2, 0)):
            rule = "MET024" if contract is Contract.RETURN_META else "SUB042"
            findings.add(rule, ("metadata", "delegation_depth"), depth=shown(depth), length=length, expected=expected)
    recoverable = [error.recoverable for error in errors if error.recoverable is not None]
    messages = [error.message for error in errors]
    more["blockers"] = more["blockers"] or (messages if outcome is Outcome.BLOCKED else ())
    facts: dict[str, Any] = {
        "contract": contract,
        "reported_state": _reported(top),
        "outcome": outcome,
        "agent": metadata.agent_type or (path[-1] if path else None),
        # An empty one is a level, too.
        "delegation_path": path,
        "error_code": errors[0].type,
        "error_message": errors[0].message,
        "errors": messages,
        # All that say so must be recoverable.
        "retry_recommended": all(recoverable) if recoverable else None,
        "retry_hint": errors[0].recommendation,
        "artifacts": [artifact.path for artifact in returned.artifacts or ()],
        "stated_at": _stated_at(top, outcome),
    }
    return outline(Return, metadata, returned, **facts, **more)


def _reported(holder: dict[str, Any]) -> str | None:
    status = holder.get("status")
    return status if isinstance(status, str) else None


def _entries(value: object) -> list[Any]:
    """The entries of a list that are looked at, nothing of anything else."""
    return value[:MAX_ENTRIES] if isinstance(value, list) else []


def _objects(top: dict[str, Any], key: str, name: str, rule: str, findings: Findings) -> Any:
    """A list in which each string is the object that it stands for, its text by `name`; anything else as it is."""
    raw = top.get(key)
    if not isinstance(raw, list):
        return raw
    for index, entry in enumerate(raw[:MAX_ENTRIES]):
        if isinstance(entry, str):
            findings.add(rule, (key, index), value=entry)
    return [{name: entry} if isinstance(entry, str) else entry for entry in raw]


def _artifacts(top: dict[str, Any], findings: Findings) -> Any:
    """The list of artifacts, also where they are one path, or an object of paths by kind; None where are none."""
    raw = _objects(top, "artifacts", "path", "MET014", findings)
    if not raw:
        single = top.get("artifact_path", top.get("artifact"))
        is_object = isinstance(single, dict) and single.get("path")
        return [single] if is_object else [{"path": single}] if isinstance(single, str) and single else None
    if isinstance(raw, list):
        return raw
    findings.add("MET013", ("artifacts",), value=raw)
    values = list(raw.values())[:MAX_ENTRIES] if isinstance(raw, dict) else [raw]
    paths = [path for value in values for path in (_entries(value) or [value]) if isinstance(path, str)]
    return [{"path": path} for path in paths[:MAX_ENTRIES]] or None


def _context_map(rows: object, findings: Findings) -> list[ContextEntry] | None:
    place = ("findings", "context_map")
    if rows is not None and not isinstance(rows, list):
        findings.add("REP032", place, value=rows)
    found: list[ContextEntry] = []
    for index, pair in enumerate(_entries(rows)):
        if not isinstance(pair, list) or len(pair) != 2:
            findings.add("REP033", (*place, index), value=pair)
        elif not isinstance(pair[0], str):
            findings.add("REP034", (*place, index, 0), value=pair[0])
        else:
            statement, pointer = pair
            match = _POINTER.match(pointer) if isinstance(pointer, str) else None
            location = "-"
            if match is not None and not why_not_relative(match["path"]):
                first, last = match["first"] or 1, match["last"] or match["first"] or 1
                location = pointer.removeprefix("repo://")
                if not 1 <= int(first) <= int(last):
                    findings.add("REP036", (*place, index, 1), value=pointer)
                    location = match["path"]
            elif pointer is not None:
                findings.add("REP035", (*place, index, 1), value=pointer)
            found.append(ContextEntry(statement=statement, location=location))
    return found if isinstance(rows, list) else None


def judge_two_statuses(top: dict[str, Any], findings: Findings) -> None:
    """Note where the status of one contract says something else than that of another in the same object."""
    said = (top.get("status"), top["report_metadata"].get("status"))
    if len({_MEANS.get(_plain(word)) for word in said} - {None}) > 1:
        findings.add("DOC015", ("status",), value=said[0], other=shown(said[1]))


def _plain(status: object) -> str:
    return folded(status.strip()).replace(" ", "_").replace("-", "_") if isinstance(status, str) else ""


def _judge_status(status: object, findings: Findings) -> Outcome | None:
    """The meaning of the status of a return, None where it is not known; what is wrong with the word is noted."""
    if not isinstance(status, str):
        return None
    meant = _plain(status)
    outcome = _MEANS.get(meant)
    if outcome is not None:
        if meant != status:
            findings.add("MET005", ("status",), value=status, meant=meant)
        return outcome
    *others, last = _MENDED.sub("", meant).split("_")
    is_finished = last in _FINISHING and _DOUBT.isdisjoint(others)
    findings.add("MET004" if is_finished else "MET003", ("status",), value=status)
    return Outcome.COMPLETED if is_finished else None


def _blockers(top: dict[str, Any], findings: Findings) -> list[str] | None:
    """What blocks, from `blockers` and its kin, without what did; None where there is none of them."""
    found: list[str] = []
    told = {key: top[key] for key in _BLOCKERS if top.get(key) is not None}
    for key, value in told.items():
        for index, entry in enumerate(_entries(value) or ([value] if value else [])):
            texts: list[Any] = [entry]
            if isinstance(entry, dict):
                if folded(str(entry.get("status", ""))) in _OVERCOME:
                    continue
                # That of a key that is known, else of any.
                texts = [*(entry.get(key) for key in _BLOCKER_TEXTS), *entry.values()]
            text = next((text for text in texts if isinstance(text, str) and text.strip()), None)
            if text is None:
                findings.add("MET034", (key, index), key=key, value=entry)
            else:
                found.append(text)
    return found if told else None


def _stated_at(top: dict[str, Any], outcome: Outcome | None) -> float | None:
    """The latest time that it says it ended, or while it works began, in seconds since the epoch."""
    moments = []
    for holder in (top, top.get("metadata"), top.get("report_metadata")):
        for key in (*_ENDED, *(_BEGAN if outcome is Outcome.WORKING else ())):
            with suppress(ValueError, OverflowError):
                at = datetime.fromisoformat(str(holder.get(key)).strip() if isinstance(holder, dict) else "")
                moments.append((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
    return max(moments, default=None)
