"""return-meta: the dialect of subagent-return that real workspaces hold, read for what it means.

Its authors left the document on purpose: stage words as status, an early `in_progress`, optional errors. Only a status
that says nothing breaks it; the rest are warnings where a reader loses something.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from agentwatch.contracts.checks import MAX_TOKENS, brief, briefs, judge_paths, tokens
from agentwatch.contracts.dialect import BLOCKERS, attempt_of, blockers, judge_status, paths_in
from agentwatch.contracts.fields import Model, Table, Whole, row
from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown
from agentwatch.contracts.recognise import METADATA_KEYS
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.subagent_return import ReturnError, judge_depth, summary_of

_ARTIFACT_TYPES: Final = ("plan", "report", "summary", "implementation", "documentation")
_HANDOFF_LIKE: Final = re.compile(r"-handoff[^/]*\Z", re.IGNORECASE | re.ASCII)
_NO_REASON: Final = "The return asks for a review without saying why."


class MetaArtifact(Model):
    """A file the agent created; any word may be its type."""

    type: str | None = row("report", "type MET019", "The type says where the file belongs.")
    path: str | None = row(
        "plan.md", "missing empty MET016, type MET019", "An artifact without a path cannot be found.", warns="missing"
    )
    summary: str | None = row("The plan.", "type MET019", "The summary says what the file holds.")


class Progress(Model):
    """Phases of the task, at top level or in the metadata."""

    phases_completed: Whole | None = row(1, "type range MET033", "Progress is counted in phases.", ge=0, le=1000000)
    phases_total: Whole | None = row(2, "type range MET033", "Progress is counted in phases.", ge=0, le=1000000)


class MetaMetadata(Progress):
    """Who returns; each field is taken from `metadata`, else from the top level."""

    session_id: str | None = row("sess_1735460684_a1b2c3", "type MET026", "Attempts are told apart by their session.")
    agent_type: str | None = row("planner", "type MET026", "The task is known by its directory and its agent.")
    delegation_depth: Whole | None = row(1, "type MET026", "It is the length of the path, less two.")
    delegation_path: list[str] | None = row(
        ["orchestrator", "plan", "planner"], "type entry MET025", "It places the return in the tree."
    )


class MetaError(ReturnError):
    """An error that the agent met; nothing is required of it."""

    type: str | None = row("timeout", "type MET031")
    message: str | None = row("The tool timed out.", "type MET031")
    recoverable: bool | None = row(True, "type MET031")
    recommendation: str | None = row("Raise the time-out.", "type MET031")


class ReturnMeta(Progress):
    """The whole return in one shape, whichever way it was written. `more` are the keys that nobody defined.

    What has no row may be written in several ways, or be of any type: it is left out where it is of another."""

    status: str | None = row(
        "researched",
        "missing MET001, type MET002",
        "The status is how the orchestrator knows whether the stage has ended, and how.",
        needs="a stage word such as `in_progress`, `researched` or `partial`",
    )
    summary: str | None = row(
        "Read the sources.", "type MET010", "The summary is what the orchestrator reads.", warns="type"
    )
    artifacts: list[MetaArtifact] | None = row(
        None,
        "type MET013, entry MET015",
        "What a stage created can only be checked if it is listed.",
        warns="type entry",
    )
    metadata: MetaMetadata | None = row(
        None,
        "missing MET020, type MET021",
        "Without metadata the return is placed by what stands at top level, or by its directory alone.",
        needs="an object with `session_id`, `agent_type` and `delegation_path`",
        warns="missing type",
    )
    errors: list[MetaError] | None = row(
        None, "type entry MET030", "The recommendation of an error is the hint that a retry starts from."
    )
    blockers: list[str] | None = None
    next_steps: str | None = row("Plan it.", "type MET032", "They are what comes next.", warns="type")
    requires_user_review: bool | None = None
    review_reason: str | None = None
    files_created: list[str] | None = None
    files_modified: list[str] | None = None
    more: dict[str, Any] | None = None


_DIALECT: Final = "return-meta dialect"
TABLE: Final = Table(Contract.RETURN_META, ReturnMeta, (_DIALECT, _DIALECT))
_FIELDS: Final = frozenset(ReturnMeta.model_fields)
_AT_TOP: Final = Table(Contract.RETURN_META, MetaMetadata)
"""The fields of `metadata`, which may stand at the top level."""


def judge(top: dict[str, Any], findings: Findings, name: str) -> tuple[ReturnMeta, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    outcome = judge_status(top.get("status"), findings)
    raw = {**top, "more": None, "blockers": blockers(top, findings)}
    raw["errors"] = _objects(top, "errors", "message", "MET030", findings)
    artifacts = raw["artifacts"] = _objects(top, "artifacts", "path", "MET014", findings) or _single_artifact(top)
    is_finished = outcome in (Outcome.COMPLETED, Outcome.PARTIAL)
    if artifacts is None and is_finished and not any(key.endswith("_path") for key in top):
        how = "is empty" if "artifacts" in top else "is missing"
        findings.add("MET012", (), how=how, status=brief(str(top["status"])))
    # An orchestrator's handoff never has metadata: its directory says whose it is.
    if raw.get("metadata") is None and _HANDOFF_LIKE.search(name):
        raw["metadata"] = {}
    returned = TABLE.read(ReturnMeta, raw, findings)
    changed: dict[str, Any] = {"metadata": _metadata(top, returned, findings)}
    _judge_more(top, outcome, returned, findings)
    for key in ("phases_completed", "phases_total"):
        changed[key] = _phases(top, key, returned)
    if isinstance(steps := top.get("next_steps"), list):
        changed["next_steps"] = "\n".join(step for step in steps[:MAX_ENTRIES] if isinstance(step, str)) or None
    if not isinstance(artifacts, list | None):
        changed["artifacts"] = [MetaArtifact(path=path) for path in paths_in(artifacts)] or None
    changed["more"] = {key: value for key, value in top.items() if key not in _FIELDS} or None
    returned = returned.model_copy(update=changed)
    return returned, _summary_of(returned, top, outcome, attempt_of(top, "MET037", findings))


def _objects(top: dict[str, Any], key: str, name: str, rule: str, findings: Findings) -> Any:
    """A list in which each string is the object that it stands for, its text by `name`; anything else as it is."""
    raw = top.get(key)
    if not isinstance(raw, list):
        return raw
    entries = raw[: MAX_ENTRIES + 1]
    for index, entry in enumerate(entries):
        if isinstance(entry, str):
            findings.add(rule, (key, index), value=shown(entry))
            entries[index] = {name: entry}
    return entries


def _single_artifact(top: dict[str, Any]) -> list[dict[str, Any]] | None:
    single = top.get("artifact_path", top.get("artifact"))
    if isinstance(single, dict) and single.get("path"):
        return [single]
    return [{"path": single}] if isinstance(single, str) and single else None


def _metadata(top: dict[str, Any], returned: ReturnMeta, findings: Findings) -> MetaMetadata:
    """The metadata with what stands at the top level instead."""
    told = isinstance(top.get("metadata"), dict)
    inside: dict[str, Any] = top["metadata"] if told else {}
    above: dict[str, Any] = {key: top[key] for key in METADATA_KEYS if key in top and key not in inside}
    metadata = returned.metadata or MetaMetadata()
    if above:
        at_top = _AT_TOP.read(MetaMetadata, above, findings)
        metadata = at_top.model_copy(update=metadata.model_dump(exclude_none=True))
    if told and inside.get("session_id") is None and top.get("session_id") is None:
        findings.add("MET022", ("metadata",))
    if told and not any(key in place for key in ("agent_type", "delegation_path") for place in (inside, top)):
        findings.add("MET023", ("metadata",))
    written = (inside if "delegation_path" in inside else top).get("delegation_path")
    place = ("metadata", "delegation_depth") if "delegation_depth" in inside else ("delegation_depth",)
    judge_depth("MET024", place, metadata.delegation_depth, written, findings)
    return metadata


def _judge_more(top: dict[str, Any], outcome: Outcome | None, returned: ReturnMeta, findings: Findings) -> None:
    """Judge what is more than the type of one field."""
    summary = returned.summary or ""
    if tokens(summary) > MAX_TOKENS:
        findings.add("MET011", ("summary",), tokens=tokens(summary), characters=len(summary))
    judge_paths("MET018", "artifacts", top, findings)
    listed = top.get("artifacts")
    for index, artifact in enumerate(listed[:MAX_ENTRIES] if isinstance(listed, list) else ()):
        kind = artifact.get("type") if isinstance(artifact, dict) else None
        if isinstance(kind, str) and kind not in _ARTIFACT_TYPES:
            findings.add("MET017", ("artifacts", index, "type"), value=shown(kind))
    # What is there and cannot be read is said already.
    if outcome is Outcome.BLOCKED and not any(top.get(key) for key in (*BLOCKERS, "errors")):
        findings.add("MET035", ("blockers",))
    if returned.requires_user_review and not (returned.review_reason or "").strip():
        findings.add("MET036", ("review_reason",))


def _phases(top: dict[str, Any], key: str, returned: ReturnMeta) -> int | None:
    """A number of phases, at top level or in the metadata; a list counts by its length."""
    for place, fields in ((top, returned), (top.get("metadata"), returned.metadata)):
        raw = place.get(key) if isinstance(place, dict) else None
        if raw is not None:
            return len(raw) if isinstance(raw, list) else getattr(fields, key, None)
    return None


def _summary_of(returned: ReturnMeta, top: dict[str, Any], outcome: Outcome | None, attempt: int | None) -> Return:
    done, total = returned.phases_completed, returned.phases_total
    made = summary_of(
        Contract.RETURN_META,
        returned,
        top,
        outcome,
        attempt=attempt,
        blockers=briefs(returned.blockers),
        review_reason=(brief(returned.review_reason) or _NO_REASON) if returned.requires_user_review else None,
        progress=(min(done, total), total) if done is not None and total else None,
        files_created=briefs(returned.files_created),
        files_modified=briefs(returned.files_modified),
    )
    return replace(made, blockers=made.errors) if outcome is Outcome.BLOCKED and not made.blockers else made
