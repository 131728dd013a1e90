"""The three contracts for returns in JSON: subagent-return, its dialect return-meta, and report-contract."""

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from agentwatch.contracts.fields import (
    Amount,
    Attempt,
    Count,
    Maybe,
    Million,
    Model,
    Note,
    Notes,
    Required,
    Text,
    Whole,
    Word,
    read_fields,
)
from agentwatch.contracts.reading import METADATA_KEYS, OUTSIDE_THE_ENUM, STAGE_WORDS
from agentwatch.contracts.rules import (
    MAX_ENTRIES,
    MAX_TOKENS,
    Findings,
    build_fields,
    count_sentences,
    count_tokens,
    is_blank,
    is_relative,
    judge_paths,
    quote_value,
)
from agentwatch.contracts.shapes import Contract, Json, Outcome, Return
from agentwatch.text import fold_case

LOW_CONFIDENCE = 0.5  # a human should review a report with a lower confidence
_POINTER = re.compile(r"repo://(?P<path>[^\s:#][^:#\n]*)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z")

# Each status word, with the outcome that it means.
_MEANS = dict.fromkeys((*STAGE_WORDS, *OUTSIDE_THE_ENUM), Outcome.COMPLETED) | {
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
_FINISHING_VERBS = frozenset(
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
    """.split()  # noqa: SIM905 - one line for each word would fill a page
)  # a status that ends with one of these verbs means finished work: `created`, `tasks_created`
_UNFINISHED_WORDS = frozenset(
    """
    abandoned aborted almost be being blocked blocker blockers canceled cancelled cannot conflict conflicts crash
    crashed deferred denied dropped error errors fail failed failing failure failures few half halted if
    incomplete incompletely interrupted killed lost merely mostly nearly need needed needs never no non none not
    nothing only part partial partially partly paused pending poorly postponed refused rejected semi should
    skipped some stalled stopped suspended terminated timed timeout to unable unless unresolved until when without
    wrongly
    """.split()  # noqa: SIM905 - one line for each word would fill a page
)  # a status with one of these words is not finished, in spite of its verb: `not_ready`, `errors_generated`
_END_TIME_KEYS = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")


class Artifact(Model):
    """A file that the agent created."""

    type: Required[Literal["plan", "report", "summary", "implementation", "documentation"]]
    path: Text
    summary: Text


class ReturnMetadata(Model):
    """The metadata of a return: its agent, and the delegation path (the chain of agents above)."""

    session_id: Text
    agent_type: Text
    delegation_depth: Required[Count]
    delegation_path: Required[list[Word]]
    duration_seconds: Amount
    phase_count: Maybe[Count]
    estimated_hours: Amount
    findings_count: Maybe[Count]
    attempt: Attempt


class ReturnError(Model):
    """An error that the agent met."""

    type: Text
    message: Text
    recoverable: Required[bool]
    recommendation: Text


class SubagentReturn(Model):
    """The whole return. A field is None if it is missing or of the wrong type."""

    status: Required[Literal["completed", "partial", "failed", "blocked"]]
    summary: Text
    artifacts: Required[list[Artifact]]
    metadata: Required[ReturnMetadata]
    errors: Maybe[list[ReturnError]]
    next_steps: Note
    attempt: Attempt


class MetaArtifact(Model):
    """A file that the agent created. `type` may be any word."""

    type: Note
    path: Text
    summary: Note


class MetaMetadata(Model):
    """The metadata of a return. A field that `metadata` lacks is taken from the top level of the return."""

    session_id: Note
    agent_type: Note
    delegation_depth: Maybe[Whole]
    delegation_path: Notes
    attempt: Attempt


class ReturnMeta(Model):
    """The whole return. Different spellings of a key become one field. `more` has the unknown keys."""

    phases_completed: Maybe[Million]
    phases_total: Maybe[Million]
    status: Required[str]
    summary: Note
    artifacts: Maybe[list[MetaArtifact]]
    metadata: Required[MetaMetadata]
    errors: Maybe[list[ReturnError]]
    blockers: Notes
    next_steps: Note
    requires_user_review: Maybe[bool]
    review_reason: Note
    files_created: Notes
    files_modified: Notes
    attempt: Attempt
    more: Maybe[Json]


class ReportMetadata(Model):
    """The metadata by which the orchestrator tracks the task."""

    agent_name: Text
    task_id: Text
    status: Required[Literal["completed", "blocked", "failed"]]
    verbosity_level: Required[Literal["summary", "detailed", "comprehensive"]]
    confidence_level: Required[Annotated[float, Ge(0.0), Le(1.0)]]
    token_usage: Maybe[Count]
    execution_time_seconds: Maybe[Count]
    error_message: Note
    attempt: Attempt


class ContextEntry(Model):
    """One row of a context map: a statement, and the file and lines that show it. `-` is an unknown location."""

    statement: str
    location: str = "-"


class Report(Model):
    """The whole report. `findings` is the agent's own JSON. `context_map` is read from `findings`."""

    report_metadata: Required[ReportMetadata]
    findings: Required[Json]
    context_map: Maybe[list[ContextEntry]]
    recommendations: Notes
    identified_gaps: Notes
    blockers: Notes
    attempt: Attempt


MODELS = {Contract.SUBAGENT_RETURN: SubagentReturn, Contract.RETURN_META: ReturnMeta, Contract.REPORT_CONTRACT: Report}


def judge(contract: Contract, top: Json, findings: Findings) -> tuple[Model, Return]:
    """Report every rule that a return breaks. Return its model, and the fields that the task tree needs."""
    inner = top.get("report_metadata")
    if isinstance(inner, dict) and len({_MEANS.get(_plain(each.get("status"))) for each in (top, inner)} - {None}) > 1:
        findings.add("DOC015", ("status",), value=top["status"], other=quote_value(inner["status"]))
    if contract is Contract.REPORT_CONTRACT:
        return _judge_report(top, findings)
    return (_judge_meta if contract is Contract.RETURN_META else _judge_subagent_return)(top, findings)


def _judge_subagent_return(top: Json, findings: Findings) -> tuple[SubagentReturn, Return]:
    returned = read_fields(Contract.SUBAGENT_RETURN, SubagentReturn, top, findings)
    status, summary = returned.status, returned.summary or ""
    count = count_sentences(summary)
    if count_tokens(summary) > MAX_TOKENS:
        rule = "SUB007" if len(summary) > 500 else "SUB009"
        findings.add(rule, ("summary",), tokens=count_tokens(summary), characters=len(summary))
    elif summary.strip() and not 2 <= count <= 5:
        findings.add("SUB008", ("summary",), count=f"{count} sentence{'' if count == 1 else 's'}")
    if top.get("artifacts") == [] and status in ("completed", "partial"):
        findings.add("SUB012", ("artifacts",), status=status)
    judge_paths("SUB020", "artifacts", returned.artifacts, findings)
    # Another empty value, such as `{}`, is already reported as a wrong type.
    if status not in (None, "completed") and top.get("errors") in (None, []):
        findings.add("SUB050", ("errors",), status=status)
    metadata = returned.metadata or ReturnMetadata.model_validate({})
    path, depth = metadata.delegation_path, metadata.delegation_depth
    if path == []:
        findings.add("SUB047", ("metadata", "delegation_path"))
    elif path and depth is not None:
        # The first two entries (the orchestrator and its command) are no levels of delegation.
        length = len(top["metadata"]["delegation_path"])
        if depth != (expected := max(length - 2, 0)):
            place = ("metadata", "delegation_depth")
            findings.add("SUB042", place, depth=quote_value(depth), length=length, expected=expected)
    blockers = _find_blockers(top) if status == "blocked" else None
    return returned, _new_return(Contract.SUBAGENT_RETURN, returned, top, status and Outcome(status), blockers=blockers)


def _judge_meta(top: Json, findings: Findings) -> tuple[ReturnMeta, Return]:
    outcome = _read_outcome(top.get("status"), findings)
    raw = {**top, "blockers": _find_blockers(top)}
    raw["more"] = {key: value for key, value in top.items() if key not in ReturnMeta.model_fields} or None
    single = next(filter(None, map(top.get, ("artifacts", "artifact_path", "artifact"))), None)
    raw["artifacts"] = _list_objects(single, "path")
    raw["errors"] = _list_objects(top.get("errors"), "message")
    if isinstance(steps := top.get("next_steps"), list):
        raw["next_steps"] = "\n".join(step for step in steps[:MAX_ENTRIES] if isinstance(step, str)) or None
    metadata = top.get("metadata")
    inside = metadata if isinstance(metadata, dict) else {}
    if metadata is None or inside:
        raw["metadata"] = {**{key: top[key] for key in METADATA_KEYS.split() if key in top}, **inside}
    for key in ("phases_completed", "phases_total"):
        phases = raw.setdefault(key, inside.get(key))
        raw[key] = len(phases) if isinstance(phases, list) else phases
    returned = read_fields(Contract.RETURN_META, ReturnMeta, raw, findings)
    judge_paths("MET018", "artifacts", returned.artifacts, findings)
    done, total = returned.phases_completed, returned.phases_total
    return returned, _new_return(
        Contract.RETURN_META,
        returned,
        top,
        outcome,
        blockers=returned.blockers,
        review_reason=(returned.review_reason or "The return asks for a review without saying why.")
        if returned.requires_user_review
        else None,
        progress=(min(done, total), total) if done is not None and total else None,
    )


def _judge_report(top: Json, findings: Findings) -> tuple[Report, Return]:
    report = read_fields(Contract.REPORT_CONTRACT, Report, top, findings)
    metadata = report.report_metadata or ReportMetadata.model_validate({})
    confidence, status = metadata.confidence_level, metadata.status
    if confidence is not None and confidence < LOW_CONFIDENCE:
        place = ("report_metadata", "confidence_level")
        findings.add("REP020", place, value=confidence, threshold=LOW_CONFIDENCE)
    if status == "failed" and is_blank(top["report_metadata"].get("error_message") or ""):
        findings.add("REP024", ("report_metadata", "error_message"))
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
    context_map = _read_context_map((report.findings or {}).get("context_map"), findings)
    outcome = Outcome(status) if status else None
    return report.model_copy(update={"context_map": context_map}), build_fields(
        Return,
        metadata,
        report,
        contract=Contract.REPORT_CONTRACT,
        reported_state=_read_status_word(top.get("report_metadata")),
        outcome=outcome,
        agent=metadata.agent_name,
        blockers=report.blockers or _find_blockers(top) or (),
        next_steps="\n".join(report.recommendations or ()),
        confidence=confidence,
        stated_at=_find_stated_end(top, outcome),
    )


def _new_return(
    contract: Contract, returned: SubagentReturn | ReturnMeta, top: Json, outcome: Outcome | None, **more: Any
) -> Return:
    """Build a `Return` from a model and its JSON. `more` has further fields."""
    metadata, errors = (
        returned.metadata or ReturnMetadata.model_validate({}),
        returned.errors or [ReturnError.model_validate({})],
    )
    path = tuple(metadata.delegation_path or ())
    recoverable = [error.recoverable for error in errors if error.recoverable is not None]
    messages = [error.message for error in errors]
    more["blockers"] = more["blockers"] or (messages if outcome is Outcome.BLOCKED else ())
    return build_fields(
        Return,
        metadata,
        returned,
        contract=contract,
        reported_state=_read_status_word(top),
        outcome=outcome,
        agent=metadata.agent_type or (path[-1] if path else None),
        # Keep empty entries, because each entry of the path is one level.
        delegation_path=path,
        error_code=errors[0].type,
        error_message=errors[0].message,
        errors=messages,
        # A retry helps only if every error is recoverable.
        retry_recommended=all(recoverable) if recoverable else None,
        retry_hint=errors[0].recommendation,
        artifacts=[artifact.path for artifact in returned.artifacts or ()],
        stated_at=_find_stated_end(top, outcome),
        **more,
    )


def _read_status_word(holder: Any) -> str | None:
    status = holder.get("status") if isinstance(holder, dict) else None
    return status if isinstance(status, str) else None


def _list_objects(raw: Any, name: str) -> Any:
    """Return `raw` as a list of objects. A text becomes the object `{name: text}`."""
    if not isinstance(raw, (str, list, dict)):
        return raw
    entries = _as_list(raw)
    if isinstance(raw, dict) and name not in raw:
        entries = [entry for value in raw.values() for entry in _as_list(value)]
    return [{name: entry} if isinstance(entry, str) else entry for entry in entries]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _read_context_map(rows: object, findings: Findings) -> list[ContextEntry] | None:
    if not isinstance(rows, list):
        return None
    found: list[ContextEntry] = []
    for index, row in enumerate(rows):
        place = ("findings", "context_map", index)
        if not isinstance(row, list) or len(row) != 2 or not isinstance(row[0], str):
            findings.add("REP033", place, value=row)
            continue
        statement, pointer = row
        match = _POINTER.match(str(pointer))
        first = int((match and match["first"]) or 1)
        is_sound = match and is_relative(match["path"]) and 1 <= first <= int(match["last"] or first)
        if pointer is not None and not is_sound:
            findings.add("REP035", (*place, 1), value=pointer)
        found.append(ContextEntry(statement=statement, location=pointer.removeprefix("repo://") if is_sound else "-"))
    return found


def _plain(status: object) -> str:
    return fold_case(status.strip()).replace(" ", "_").replace("-", "_") if isinstance(status, str) else ""


def _read_outcome(status: object, findings: Findings) -> Outcome | None:
    """Return the outcome that a status word means, or None if unknown. Report a word that is not in the contract."""
    if not isinstance(status, str):
        return None
    meant = _plain(status)
    outcome = _MEANS.get(meant)
    if outcome:
        if meant != status:
            findings.add("MET005", ("status",), value=status, meant=meant)
        return outcome
    *others, last = meant.split("_")
    is_finished = last in _FINISHING_VERBS and _UNFINISHED_WORDS.isdisjoint(others)
    findings.add("MET004" if is_finished else "MET003", ("status",), value=status)
    return Outcome.COMPLETED if is_finished else None


def _find_blockers(top: Json) -> list[str] | None:
    """Return the texts of unresolved blockers, or None. Read `blockers` and keys with similar names."""
    found: list[str] = []
    for value in filter(None, map(top.get, ("blockers", "blocking_issues", "blocker", "blocking_issue"))):
        for entry in _as_list(value)[:MAX_ENTRIES]:
            texts = [entry]
            if isinstance(entry, dict):
                if fold_case(str(entry.get("status", ""))) in ("resolved", "fixed", "closed", "cleared"):
                    continue
                # Prefer a text under a known key to a text under any other key.
                keys = "description message issue reason summary blocker title text"
                texts = [*map(entry.get, keys.split()), *entry.values()]
            found += [text for text in texts if isinstance(text, str) and text.strip()][:1]
    return found or None


def _find_stated_end(top: Json, outcome: Outcome | None) -> float | None:
    """Return the latest end time in a return (epoch seconds), or None. While work goes on, also use start times."""
    moments = []
    for holder in (top, top.get("metadata"), top.get("report_metadata")):
        for key in (*_END_TIME_KEYS, *(("started_at", "created_at") if outcome is Outcome.WORKING else ())):
            with suppress(AttributeError, ValueError, OverflowError):
                at = datetime.fromisoformat(holder.get(key).strip())  # type: ignore[union-attr]
                moments.append((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp())
    return max(moments, default=None)
