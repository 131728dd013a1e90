"""return-meta: the dialect of subagent-return that real workspaces hold, read for what it means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts import wording
from agentwatch.contracts.catalogue.return_meta import DIALECT, RULES
from agentwatch.contracts.drift import blockers, next_steps, paths_in, phases, strings
from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.paths import why_not_relative
from agentwatch.contracts.rows import Table, row
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.contracts.stage_words import judge_status
from agentwatch.contracts.stated import stated_at
from agentwatch.contracts.subagent_return import (
    ARTIFACT_TYPES,
    ENDS_OF_PATH,
    ReturnError,
    recommends_retry,
)
from agentwatch.contracts.validation import Contracted, whole

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement
    from agentwatch.contracts.json_text import Location

_HANDOFF_LIKE: Final = re.compile(r"-handoff[^/]*\Z", re.IGNORECASE | re.ASCII)
_OF_ARTIFACT: Final = dict.fromkeys(("type", "path", "summary"), "a string")
_OF_ERROR: Final = dict.fromkeys(("type", "message", "recommendation"), "a string") | {"recoverable": "a boolean"}
_NO_REASON: Final = "The return asks for a review without saying why."


# A table: a field is a row. What has several shapes, and what may stand in several places, is judged below.
# fmt: off
class MetaArtifact(Contracted):
    """A file the agent created; any word may be its type."""

    type: str | None = row("The type says where the file belongs.", right="report", type="MET019")
    path: str | None = row(
        "An artifact without a path cannot be found.", right="plan.md", warns="missing",
        missing="MET016", type="MET019")
    summary: str | None = row("The summary says what the file holds.", right="The plan.", type="MET019")


class MetaMetadata(Contracted):
    """Who returns; taken from `metadata`, else from the top level."""

    session_id: str | None = row(
        "Attempts are told apart by their session.", right="sess_1735460684_a1b2c3", missing="MET022", type="MET026")
    agent_type: str | None = row("The task is known by its directory and its agent.", right="planner", type="MET026")
    delegation_depth: int | None = row("It is the length of the path, less two.", right=1, type="MET026")
    delegation_path: list[str] | None = row(
        "It places the return in the tree.", right=["orchestrator", "plan", "planner"], type="MET025")


class ReturnMeta(Contracted):
    """The whole return in one shape, whichever way it was written. `more` are the keys that nobody defined."""

    status: str | None = row(
        "The status is how the orchestrator knows whether the stage has ended, and how.", section=DIALECT,
        right="researched", needs="a stage word such as `in_progress`, `researched` or `partial`",
        missing="MET001", type="MET002")
    summary: str | None = row(
        "The summary is what the orchestrator reads.", section=DIALECT, right="Read the sources.", warns="type",
        type="MET010")
    artifacts: list[MetaArtifact] | None = row(
        "What a stage created can only be checked if it is listed.", section=DIALECT, warns="entry",
        type="MET013", entry="MET015")
    metadata: MetaMetadata | None = row(
        "Without metadata the return is placed by what stands at top level, or by its directory alone.",
        section=DIALECT, needs="an object with `session_id`, `agent_type` and `delegation_path`", warns="missing",
        missing="MET020", type="MET021")
    errors: list[ReturnError] | None = None
    blockers: list[str] | None = None
    next_steps: str | None = row("They are what comes next.", section=DIALECT, right="Plan it.", type="MET032")
    requires_user_review: bool | None = None
    review_reason: str | None = None
    phases_completed: int | None = row("Progress is counted in phases.", section=DIALECT, right=1, type="MET033")
    phases_total: int | None = row("Progress is counted in phases.", section=DIALECT, right=2, type="MET033")
    files_created: list[str] | None = None
    files_modified: list[str] | None = None
    more: dict[str, Any] | None = None
# fmt: on


TABLE: Final = Table(Contract.RETURN_META, ReturnMeta, RULES)


def judge(top: dict[str, Any], judgement: Judgement, name: str = "") -> tuple[ReturnMeta, Return]:
    """The typed return and its summary; every rule it breaks is noted."""
    outcome = judge_status(top, judgement)
    metadata = _metadata(top, judgement, name)
    errors = _errors(top, judgement)
    blocking = blockers(top, judgement)
    artifacts = _artifacts(top, outcome, judgement)
    if outcome is Outcome.BLOCKED and not blocking and not errors and not _holds_something(top):
        judgement.add("MET035", ("blockers",))
    review = top.get("requires_user_review")
    reason = top.get("review_reason")
    if review is True and not (isinstance(reason, str) and reason.strip()):
        judgement.add("MET036", ("review_reason",))
    done, total = (phases(top, key, judgement) for key in ("phases_completed", "phases_total"))
    status = top.get("status")
    returned = ReturnMeta(
        status=status if isinstance(status, str) else None,
        summary=_summary(top, judgement),
        artifacts=artifacts,
        metadata=metadata,
        errors=errors,
        blockers=blocking,
        next_steps=next_steps(top, judgement),
        requires_user_review=review if isinstance(review, bool) else None,
        review_reason=reason if isinstance(reason, str) else None,
        phases_completed=done,
        phases_total=total,
        files_created=strings(top.get("files_created")),
        files_modified=strings(top.get("files_modified")),
        more={key: value for key, value in top.items() if key not in ReturnMeta.model_fields} or None,
    )
    return returned, _summary_of(returned, outcome, stated_at(top, outcome))


def _summary(top: dict[str, Any], judgement: Judgement) -> str | None:
    summary = top.get("summary")
    if summary is None:
        return None
    if not isinstance(summary, str):
        judgement.add("MET010", ("summary",), value=shown(summary))
        return None
    count = wording.tokens(summary)
    if count > wording.MAX_TOKENS:
        judgement.add("MET011", ("summary",), tokens=count, characters=len(summary))
    return summary


def _metadata(top: dict[str, Any], judgement: Judgement, name: str) -> MetaMetadata:
    raw = top.get("metadata")
    told = isinstance(raw, dict)
    inside: dict[str, Any] = raw if isinstance(raw, dict) else {}
    at: Location = ("metadata",) if told else ()
    # An orchestrator's handoff never has metadata: its directory says whose it is.
    if raw is None and not _HANDOFF_LIKE.search(name):
        judgement.add("MET020", ())
    elif raw is not None and not told:
        judgement.add("MET021", ("metadata",), value=shown(raw))

    def value(key: str, kind: type, words: str) -> Any:
        container, place = (inside, (*at, key)) if key in inside else (top, (key,))
        found = whole(container.get(key)) if kind is int else container.get(key)
        if found is None:
            return None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            judgement.add("MET026", place, key=key, value=shown(found), kind=words)
            return None
        return found

    session = value("session_id", str, "a string")
    agent = value("agent_type", str, "a string")
    depth = value("delegation_depth", int, "an integer")
    path = _path(top, inside, at, judgement)
    if told:
        if inside.get("session_id") is None and top.get("session_id") is None:
            judgement.add("MET022", at)
        if "agent_type" not in inside and "agent_type" not in top and path is None and "delegation_path" not in inside:
            judgement.add("MET023", at)
    written = (inside if "delegation_path" in inside else top).get("delegation_path")
    if isinstance(written, list) and written and depth is not None:
        _judge_depth(depth, len(written), inside, at, judgement)
    return MetaMetadata(session_id=session, agent_type=agent, delegation_depth=depth, delegation_path=path)


def _judge_depth(depth: int, length: int, inside: dict[str, Any], at: Location, judgement: Judgement) -> None:
    """Compare the depth with the path as it was written: an entry of another type is a level all the same."""
    expected = max(length - ENDS_OF_PATH, 0)
    if depth != expected:
        place = (*at, "delegation_depth") if "delegation_depth" in inside else ("delegation_depth",)
        judgement.add("MET024", place, depth=shown(depth), length=length, expected=expected)


def _path(top: dict[str, Any], inside: dict[str, Any], at: Location, judgement: Judgement) -> list[str] | None:
    container, place = (inside, at) if "delegation_path" in inside else (top, ())
    found = container.get("delegation_path")
    if found is None:
        return None
    texts = strings(found)
    if texts is None or len(texts) != len(found[:MAX_ENTRIES]):
        judgement.add("MET025", (*place, "delegation_path"), value=shown(found))
    return texts


def _artifacts(top: dict[str, Any], outcome: Outcome | None, judgement: Judgement) -> list[MetaArtifact] | None:
    raw = top.get("artifacts")
    if raw is None:
        single = top.get("artifact_path", top.get("artifact"))
        if isinstance(single, dict) and single.get("path"):
            return [_artifact(single, ("artifact",), judgement)]
        if isinstance(single, str) and single:
            return [MetaArtifact(path=single)]
        if outcome in (Outcome.COMPLETED, Outcome.PARTIAL) and not any(key.endswith("_path") for key in top):
            judgement.add("MET012", (), status=wording.brief(str(top.get("status"))))
        return None
    if not isinstance(raw, list):
        judgement.add("MET013", ("artifacts",), value=shown(raw))
        return [MetaArtifact(path=path) for path in paths_in(raw)] or None
    if len(raw) > MAX_ENTRIES:
        judgement.add("DOC009", ("artifacts",), key="artifacts", limit=MAX_ENTRIES)
    made: list[MetaArtifact] = []
    for index, entry in enumerate(raw[:MAX_ENTRIES]):
        here: Location = ("artifacts", index)
        if isinstance(entry, str):
            judgement.add("MET014", here, value=shown(entry))
            entry = {"path": entry}  # noqa: PLW2901 - the shape that the string stands for
        elif not isinstance(entry, dict):
            judgement.add("MET015", here, value=shown(entry))
            continue
        elif entry.get("path") is None:
            judgement.add("MET016", here)
        made.append(_artifact(entry, here, judgement))
    return made


def _artifact(entry: dict[str, Any], here: Location, judgement: Judgement) -> MetaArtifact:
    texts = _typed(entry, _OF_ARTIFACT, "MET019", here, judgement)
    kind = texts.get("type")
    if kind is not None and kind not in ARTIFACT_TYPES:
        judgement.add("MET017", (*here, "type"), value=shown(kind))
    path = texts.get("path")
    if path is not None and (reason := why_not_relative(path)):
        judgement.add("MET018", (*here, "path"), value=shown(path), reason=reason)
    return MetaArtifact(**texts)


def _errors(top: dict[str, Any], judgement: Judgement) -> list[ReturnError] | None:
    raw = top.get("errors")
    if raw is None:
        return None
    if not isinstance(raw, list):
        judgement.add("MET030", ("errors",), value=shown(raw))
        return None
    made: list[ReturnError] = []
    for index, entry in enumerate(raw[:MAX_ENTRIES]):
        if isinstance(entry, dict):
            made.append(ReturnError(**_typed(entry, _OF_ERROR, "MET031", ("errors", index), judgement)))
        else:
            judgement.add("MET030", ("errors", index), value=shown(entry))
            made += [ReturnError(message=entry)] if isinstance(entry, str) else []
    return made


def _typed(entry: dict[str, Any], kinds: dict[str, str], rule: str, here: Location, judgement: Judgement) -> Any:
    """The values by key that are of their kind; one of another kind breaks the rule."""
    kept: dict[str, Any] = {}
    for key, kind in kinds.items():
        found = entry.get(key)
        if isinstance(found, bool if kind == "a boolean" else str):
            kept[key] = found
        elif found is not None:
            judgement.add(rule, (*here, key), key=key, value=shown(found), kind=kind)
    return kept


def _holds_something(top: dict[str, Any]) -> bool:
    """Whether blockers or errors are there at all: what is wrong with them is said already."""
    return any(top.get(key) for key in ("blockers", "blocking_issues", "blocker", "blocking_issue", "errors"))


def _summary_of(returned: ReturnMeta, outcome: Outcome | None, at: float | None) -> Return:
    metadata = returned.metadata or MetaMetadata()
    errors = returned.errors or []
    first = errors[0] if errors else ReturnError()
    path = tuple(metadata.delegation_path or ())
    messages = wording.briefs(error.message for error in errors if error.message)
    blocking = wording.briefs(returned.blockers or ())
    if not blocking and outcome is Outcome.BLOCKED:
        blocking = messages
    done, total = returned.phases_completed, returned.phases_total
    return Return(
        contract=Contract.RETURN_META,
        reported_state=wording.brief(returned.status),
        outcome=outcome,
        session_id=metadata.session_id or None,
        agent=metadata.agent_type or (path[-1] if path else None),
        delegation_path=path,
        summary=wording.brief(returned.summary),
        error_code=wording.brief(first.type),
        error_message=wording.brief(first.message),
        errors=messages,
        retry_recommended=recommends_retry(errors),
        retry_hint=wording.brief(first.recommendation),
        blockers=blocking,
        review_reason=(wording.brief(returned.review_reason) or _NO_REASON) if returned.requires_user_review else None,
        next_steps=wording.brief(returned.next_steps),
        progress=(min(done, total), total) if done is not None and total else None,
        files_created=wording.briefs(returned.files_created or ()),
        files_modified=wording.briefs(returned.files_modified or ()),
        artifacts=wording.briefs(artifact.path for artifact in returned.artifacts or () if artifact.path),
        stated_at=at,
    )
