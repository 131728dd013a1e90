"""return-meta: the dialect of subagent-return that real workspaces hold, read for what it means.

Its authors left the document on purpose: stage words as status, an early `in_progress`, optional errors. Only a status
that says nothing breaks it; the rest are warnings where a reader loses something.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts import wording
from agentwatch.contracts.drift import BLOCKERS, attempt_of, blockers, judge_status, paths_in, stated_at
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import judge_paths
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.rules import Rule, makers
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.signatures import METADATA_KEYS
from agentwatch.contracts.subagent_return import ARTIFACT_TYPES, ReturnError, judge_depth, summary_of
from agentwatch.contracts.validation import Contracted, Whole, validated

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_error, _warning = makers(Contract.RETURN_META)
_DIALECT = "return-meta dialect"
_HANDOFF_LIKE: Final = re.compile(r"-handoff[^/]*\Z", re.IGNORECASE | re.ASCII)
_NO_REASON: Final = "The return asks for a review without saying why."
_DONE: Final = (Outcome.COMPLETED, Outcome.PARTIAL)
_PHASES: Final = ("phases_completed", "phases_total")


class MetaArtifact(Contracted):
    """A file the agent created; any word may be its type."""

    type: str | None = row("report", type="MET019")
    path: str | None = row("plan.md", warns="missing", absent="MET016", type="MET019")
    summary: str | None = row("The plan.", type="MET019")


class Progress(Contracted):
    """Phases of the task, at top level or in the metadata."""

    phases_completed: Whole | None = row(1, ge=0, le=1_000_000, type="MET033", range="MET033")
    phases_total: Whole | None = row(2, ge=0, le=1_000_000, type="MET033", range="MET033")


class MetaMetadata(Progress):
    """Who returns; each field is taken from `metadata`, else from the top level."""

    session_id: str | None = row("sess_1735460684_a1b2c3", type="MET026")
    agent_type: str | None = row("planner", type="MET026")
    delegation_depth: Whole | None = row(1, type="MET026")
    delegation_path: list[str] | None = row(["orchestrator", "plan", "planner"], type="MET025", entry="MET025")


class MetaError(ReturnError):
    """An error that the agent met; nothing is required of it."""

    type: str | None = row("timeout", type="MET031")
    message: str | None = row("The tool timed out.", type="MET031")
    recoverable: bool | None = row(True, type="MET031")
    recommendation: str | None = row("Raise the time-out.", type="MET031")


class ReturnMeta(Progress):
    """The whole return in one shape, whichever way it was written. `more` are the keys that nobody defined.

    What has no row may be written in several ways, or be of any type: it is left out where it is of another.
    """

    status: str | None = row(
        "researched",
        needs="a stage word such as `in_progress`, `researched` or `partial`",
        missing="MET001",
        type="MET002",
    )
    summary: str | None = row("Read the sources.", warns="type", type="MET010")
    artifacts: list[MetaArtifact] | None = row(warns="type entry", type="MET013", entry="MET015")
    metadata: MetaMetadata | None = row(
        needs="an object with `session_id`, `agent_type` and `delegation_path`",
        warns="missing type",
        missing="MET020",
        type="MET021",
    )
    errors: list[MetaError] | None = row(type="MET030", entry="MET030")
    blockers: list[str] | None = None
    next_steps: str | None = row("Plan it.", warns="type", type="MET032")
    requires_user_review: bool | None = None
    review_reason: str | None = None
    files_created: list[str] | None = None
    files_modified: list[str] | None = None
    more: dict[str, Any] | None = None


_RULES: Final[tuple[Rule, ...]] = (
    _error("MET003", _DIALECT, "unknown status")
    .says("`status` is {value}, which nobody knows; use a stage word, `in_progress`, `partial`, `blocked` or `failed`.")
    .because("A status that nobody understands must not pass for success.")
    .example('"status": "implemented"', '"status": "hmm"'),
    _warning("MET004", _DIALECT, "status is a new stage word")
    .says("`status` is {value}, a stage word that is not known; it is read as completed.")
    .because("Workspaces invent stage words; a verb of making in the past tense means that the stage succeeded.")
    .example('"status": "implemented"', '"status": "translated"'),
    _warning("MET005", _DIALECT, "`status` in another letter case")
    .says("`status` is {value}; write it as `{meant}`.")
    .example('"status": "researched"', '"status": "Researched"'),
    _warning("MET011", _DIALECT, "`summary` too long")
    .says("`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.")
    .because("The summary protects the orchestrator's context window from bloat.")
    .example("up to 400 characters", "more than 400 characters"),
    _warning("MET012", _DIALECT, "no artifacts though finished")
    .says("`artifacts` {how} though the status is `{status}`; list the files that were created.")
    .because("What a finished stage created can only be checked if it is listed.")
    .example('"status": "planned", "artifacts": [{…}]', '"status": "planned"'),
    _warning("MET014", _DIALECT, "artifact as a plain string")
    .says("An entry of `artifacts` is the string {value}; write an object with `type`, `path` and `summary`.")
    .because("A plain path says neither what kind of file it is nor what it holds.")
    .example('[{"type": "plan", "path": "plan.md", "summary": "…"}]', '["plan.md"]'),
    _warning("MET017", _DIALECT, "`artifacts[].type` has a value that is not allowed")
    .says("`artifacts[].type` is {value}; it must be `plan`, `report`, `summary`, `implementation` or `documentation`.")
    .because("The document knows five types; others are shown as they are.")
    .example('"type": "report"', '"type": "handoff"'),
    _warning("MET018", _DIALECT, "artifact path not relative")
    .says("The artifact path {value} is not relative to the project: {reason}; write it from the project's root.")
    .because("The path is looked up from the project's root, possibly in another checkout.")
    .example('"path": "plan.md"', '"path": "/home/me/shop/plan.md"'),
    _warning("MET019", _DIALECT, "field of an artifact is not a string")
    .says("`{key}` of an artifact is {value}; it must be a string.")
    .because("Readers rely on `type`, `path` and `summary` being strings; anything else makes them fail or guess.")
    .example('"path": "plan.md"', '"path": ["plan.md"]'),
    _warning("MET022", _DIALECT, "`session_id` missing")
    .says("`session_id` is missing or empty; add it as a string.")
    .because("Attempts are told apart by their session.")
    .example('"session_id": "sess_1735460684_a1b2c3"', "(no `session_id`)"),
    _warning("MET023", _DIALECT, "agent unknown")
    .says("Neither `agent_type` nor `delegation_path` names the agent; add them to `metadata`.")
    .because("The task is known by its directory and its agent.")
    .example('"agent_type": "planner"', '"metadata": {"session_id": "…"}'),
    _warning("MET024", _DIALECT, "`delegation_depth` disagrees with `delegation_path`")
    .says("`delegation_depth` is {depth}, but a path of {length} elements means {expected}; the path is trusted.")
    .because("Most returns of this dialect write depth 1 whatever the path.")
    .example('"delegation_depth": 1, "delegation_path": ["main", "plan", "planner"]', '"delegation_depth": 3, …'),
    _warning("MET025", _DIALECT, "`delegation_path` is not an array of strings")
    .says("`delegation_path` is, or holds, {value}; it must be an array of strings.")
    .because("It places the return in the tree; what is no string is left aside.")
    .example('["orchestrator", "plan", "planner"]', '"orchestrator/plan/planner"'),
    _warning("MET026", _DIALECT, "metadata of another type")
    .says("`{key}` is {value}; write ids and agents as strings, and `delegation_depth` as an integer.")
    .because("Readers rely on the type; the value is left aside.")
    .example('"agent_type": "planner"', '"agent_type": ["planner"]'),
    _warning("MET030", _DIALECT, "`errors` is no array of objects")
    .says("`errors` holds {value}; write an array of objects with `type`, `message`, `recoverable`, `recommendation`.")
    .because("The recommendation of an error is the hint that a retry starts from.")
    .example('"errors": [{"message": "…"}]', '"errors": ["it broke"]'),
    _warning("MET031", _DIALECT, "field of an error has another type")
    .says("`{key}` of an error is {value}; write `recoverable` as a boolean, and the rest as strings.")
    .because("The recommendation of an error is the hint that a retry starts from.")
    .example('"recoverable": true', '"recoverable": "yes"'),
    _warning("MET033", _DIALECT, "phases are no number")
    .says("`{key}` is {value}; write the number of phases.")
    .because("Progress is counted in phases; a list is counted by its length, anything else is left aside.")
    .example('"phases_completed": 2', '"phases_completed": [1, 2]'),
    _warning("MET034", _DIALECT, "`blockers` cannot be read")
    .says("`{key}` holds {value}; write an array of strings, or of objects with a `description`.")
    .because("Nobody can remove a blocker that cannot be read.")
    .example('"blockers": ["The key is missing."]', '"blockers": [17]'),
    _warning("MET035", _DIALECT, "blocked by nothing")
    .says("The status is `blocked`, but neither `blockers` nor `errors` says by what; name it.")
    .because("Nobody can remove what is not named.")
    .example('"status": "blocked", "blockers": ["The key is missing."]', '"status": "blocked"'),
    _warning("MET036", _DIALECT, "review without a reason")
    .says("`requires_user_review` is true without a `review_reason`; say what the user is to decide.")
    .because("The operator is asked to look, and must know at what.")
    .example('"requires_user_review": true, "review_reason": "Two designs."', '"requires_user_review": true'),
    _warning("MET037", _DIALECT, "`attempt` is not a positive integer")
    .says("`attempt` is {value}; agentwatch understands it only as an integer from 1 on.")
    .because("`attempt` is not of the contract; agentwatch counts retries by it.")
    .example('"attempt": 2', '"attempt": "second"'),
)

TABLE: Final = Table(
    Contract.RETURN_META,
    ReturnMeta,
    _RULES,
    why={
        **dict.fromkeys(_PHASES, "Progress is counted in phases."),
        "status": "The status is how the orchestrator knows whether the stage has ended, and how.",
        "summary": "The summary is what the orchestrator reads.",
        "artifacts": "What a stage created can only be checked if it is listed.",
        "artifacts[].type": "The type says where the file belongs.",
        "artifacts[].path": "An artifact without a path cannot be found.",
        "artifacts[].summary": "The summary says what the file holds.",
        "metadata": "Without metadata the return is placed by what stands at top level, or by its directory alone.",
        "metadata.session_id": "Attempts are told apart by their session.",
        "metadata.agent_type": "The task is known by its directory and its agent.",
        "metadata.delegation_depth": "It is the length of the path, less two.",
        "metadata.delegation_path": "It places the return in the tree.",
        "errors": "The recommendation of an error is the hint that a retry starts from.",
        "next_steps": "They are what comes next.",
    },
    sections=(_DIALECT, _DIALECT),
)
_FIELDS: Final = frozenset(ReturnMeta.model_fields)
_BESIDE: Final = Table(Contract.RETURN_META, MetaMetadata, _RULES, why={})
"""What belongs into `metadata` and stands at the top level."""


def judge(top: dict[str, Any], judgement: Judgement, name: str = "") -> tuple[ReturnMeta, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    outcome = judge_status(top, judgement)
    raw = {**top, "more": None}
    raw["blockers"] = blockers(top, judgement)
    raw["errors"] = _objects(top, "errors", "message", "MET030", judgement)
    artifacts = raw["artifacts"] = _objects(top, "artifacts", "path", "MET014", judgement) or _single_artifact(top)
    if artifacts is None and outcome in _DONE and not any(key.endswith("_path") for key in top):
        how = "is empty" if "artifacts" in top else "is missing"
        judgement.add("MET012", (), how=how, status=wording.brief(str(top["status"])))
    # An orchestrator's handoff never has metadata: its directory says whose it is.
    if raw.get("metadata") is None and _HANDOFF_LIKE.search(name):
        raw["metadata"] = {}
    returned = validated(ReturnMeta, raw, TABLE.judging, judgement)
    metadata = _metadata(top, returned, judgement)
    _judge_more(top, outcome, returned, judgement)
    changed: dict[str, Any] = {key: _phases(top, key, returned) for key in _PHASES}
    if isinstance(steps := top.get("next_steps"), list):
        changed["next_steps"] = "\n".join(step for step in steps[:MAX_ENTRIES] if isinstance(step, str)) or None
    if not isinstance(artifacts, list | None):
        changed["artifacts"] = [MetaArtifact(path=path) for path in paths_in(artifacts)] or None
    changed["more"] = {key: value for key, value in top.items() if key not in _FIELDS} or None
    returned = returned.model_copy(update=changed | {"metadata": metadata})
    return returned, _summary_of(returned, outcome, stated_at(top, outcome), attempt_of(top, "MET037", judgement))


def _objects(top: dict[str, Any], key: str, name: str, rule: str, judgement: Judgement) -> Any:
    """A list in which each string is the object that it stands for, its text by `name`; anything else as it is."""
    raw = top.get(key)
    if not isinstance(raw, list):
        return raw
    entries = raw[: MAX_ENTRIES + 1]
    for index, entry in enumerate(entries):
        if isinstance(entry, str):
            judgement.add(rule, (key, index), value=shown(entry))
            entries[index] = {name: entry}
    return entries


def _single_artifact(top: dict[str, Any]) -> list[dict[str, Any]] | None:
    single = top.get("artifact_path", top.get("artifact"))
    if isinstance(single, dict) and single.get("path"):
        return [single]
    return [{"path": single}] if isinstance(single, str) and single else None


def _metadata(top: dict[str, Any], returned: ReturnMeta, judgement: Judgement) -> MetaMetadata:
    """The metadata with what stands at the top level instead."""
    told = isinstance(top.get("metadata"), dict)
    inside: dict[str, Any] = top["metadata"] if told else {}
    above: dict[str, Any] = {key: top[key] for key in METADATA_KEYS if key in top and key not in inside}
    metadata = returned.metadata or MetaMetadata()
    if above:
        beside = validated(MetaMetadata, above, _BESIDE.judging, judgement)
        metadata = beside.model_copy(update=metadata.model_dump(exclude_none=True))
    if told and inside.get("session_id") is None and top.get("session_id") is None:
        judgement.add("MET022", ("metadata",))
    if told and not any(key in place for key in ("agent_type", "delegation_path") for place in (inside, top)):
        judgement.add("MET023", ("metadata",))
    written = (inside if "delegation_path" in inside else top).get("delegation_path")
    place = ("metadata", "delegation_depth") if "delegation_depth" in inside else ("delegation_depth",)
    judge_depth("MET024", place, metadata.delegation_depth, written, judgement)
    return metadata


def _judge_more(top: dict[str, Any], outcome: Outcome | None, returned: ReturnMeta, judgement: Judgement) -> None:
    """Judge what is more than the type of one field."""
    count = wording.tokens(returned.summary or "")
    if count > wording.MAX_TOKENS:
        judgement.add("MET011", ("summary",), tokens=count, characters=len(returned.summary or ""))
    judge_paths("MET018", "artifacts", top, judgement)
    listed = top.get("artifacts")
    for index, artifact in enumerate(listed[:MAX_ENTRIES] if isinstance(listed, list) else ()):
        kind = artifact.get("type") if isinstance(artifact, dict) else None
        if isinstance(kind, str) and kind not in ARTIFACT_TYPES:
            judgement.add("MET017", ("artifacts", index, "type"), value=shown(kind))
    # What is there and cannot be read is said already.
    if outcome is Outcome.BLOCKED and not any(top.get(key) for key in (*BLOCKERS, "errors")):
        judgement.add("MET035", ("blockers",))
    if returned.requires_user_review and not (returned.review_reason or "").strip():
        judgement.add("MET036", ("review_reason",))


def _phases(top: dict[str, Any], key: str, returned: ReturnMeta) -> int | None:
    """A number of phases, at top level or in the metadata; a list counts by its length."""
    for place, fields in ((top, returned), (top.get("metadata"), returned.metadata)):
        raw = place.get(key) if isinstance(place, dict) else None
        if raw is not None:
            return len(raw) if isinstance(raw, list) else getattr(fields, key, None)
    return None


def _summary_of(returned: ReturnMeta, outcome: Outcome | None, at: float | None, attempt: int | None) -> Return:
    done, total = returned.phases_completed, returned.phases_total
    made = summary_of(
        Contract.RETURN_META,
        returned,
        returned.status,
        outcome,
        at,
        attempt=attempt,
        blockers=wording.briefs(returned.blockers or ()),
        review_reason=(wording.brief(returned.review_reason) or _NO_REASON) if returned.requires_user_review else None,
        progress=(min(done, total), total) if done is not None and total else None,
        files_created=wording.briefs(returned.files_created or ()),
        files_modified=wording.briefs(returned.files_modified or ()),
    )
    return replace(made, blockers=made.errors) if outcome is Outcome.BLOCKED and not made.blockers else made
