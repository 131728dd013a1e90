"""Which contract a JSON object follows, by its keys and by the name of its file.

Nearly every object that is met is none of ours, and the models of the contracts take long to load: what answers here
needs none of them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentwatch.contracts.shapes import Contract
from agentwatch.text import folded

WRAPPER: Final = "handoff_packet"
METADATA_KEYS: Final = ("session_id", "agent_type", "delegation_depth", "delegation_path")
EVERYDAY: Final = frozenset({"in_progress", "planned", "implemented", "revised", "assembled"})
"""Stage words that any program may use."""
STAGE_WORDS: Final = EVERYDAY | {
    *("researched", "tasks_created", "report_written", "plan_created", "plan_written", "summary_written"),
    "synthesized",
}
"""Words that only the dialect uses: one of them as a status tells it from a subagent-return."""
OUTSIDE_THE_ENUM: Final = ("done", "success")
"""Words that many programs use: they tell it only from a subagent-return, whose enum they are not in."""
_RETURN_STATUSES: Final = ("completed", "partial", "failed", "blocked")

_NAMES: Final = {
    "handoff.json": Contract.HANDOFF_PACKET,
    "handoff.md": Contract.HANDOFF_PACKET,
    "todos.md": Contract.HANDOFF_PACKET,
    "return.json": Contract.SUBAGENT_RETURN,
    "return.md": Contract.RETURN_FORMAT,
    "report.json": Contract.REPORT_CONTRACT,
}
"""Contracts by the last two parts of a name that has three."""
_ENDINGS: Final = tuple(f".{ending}" for ending in _NAMES)
# Where the language of schemas is at home: a return may name the schema that it follows.
_SCHEMAS: Final = "json-schema.org"
# The schema of a contract, not a document about a task that happens to be called `schema`.
_SCHEMA_FILE: Final = re.compile(r"(?:return|report|handoff|packet|meta)[-_.]?schema\.json\Z")
_HANDOFF_FILE: Final = re.compile(
    r"(?:^|/)(?:[^/]+\.)?handoff\.(?:json|md)\Z|(?:^|/)handoffs/[^/]+\Z", re.IGNORECASE | re.ASCII
)
_META_FILE: Final = re.compile(
    r"(?:\.?(?:[\w-]+-)?return-meta(?:[-_.][^/]*)?|\.?(?:[\w-]+-)?meta-(?:[\w-]+-)?return(?:[-_.][^/]*)?"
    r"|(?:\.|\d+[-_])?orchestrator-handoff(?:[-_.][^/]*)?|\.phase-?\d+(?:-\d+)*-handoff(?:[-_.][^/]*)?)\.json\Z",
    re.IGNORECASE,
)

_TOLD_BY: Final = tuple(
    f'"{key}"'
    for key in ("task_id", "status", "metadata", "report_metadata", "findings", "objective", "handoff_schema")
)
"""One of these stands in every text of a contract whose file's name does not say it."""
_IDENTIFYING: Final = frozenset({"task_id", "objective"})
_PACKET_KEYS: Final = _IDENTIFYING | {"evidence", "success_criteria", "risks"}
_LEADING_KEYS: Final = _PACKET_KEYS - {"task_id"} | {"constraints", "deliverables"}
# The state of a whole project, or of one among many, as the authors of return-meta keep it: it has a status, too.
_STATE_KEYS: Final = frozenset(
    {
        *("next_project_number", "project_number", "project_name", "project_numbering", "active_projects"),
        *("completed_projects", "archived_projects", "pending_tasks", "repository_health", "state_references"),
    }
)
_KINDS: Final = {"summary": str, "artifacts": list, "metadata": dict, "errors": list, "next_steps": str}
_DIALECT_KEYS: Final = frozenset({"started_at", "partial_progress", "completion_data", "verification"})
_FAMILY_KEYS: Final = _DIALECT_KEYS.union(METADATA_KEYS, ("status", "metadata", "artifacts", "summary", "errors"))
# A stage word alone is an everyday word: something else of a return must be there.
_TELLING: Final = frozenset({"delegation_path", "partial_progress", "completion_data"})
_SUPPORTING: Final = frozenset({"artifacts", "session_id", "agent_type"})
_REPORT_KEYS: Final = frozenset(
    {"agent_name", "task_id", "status", "verbosity_level", "confidence_level", "execution_time_seconds"}
)
_LISTS_OF_REPORT: Final = ("recommendations", "identified_gaps", "blockers")
_OF_NAMED: Final = {
    Contract.HANDOFF_PACKET: _IDENTIFYING,
    Contract.SUBAGENT_RETURN: frozenset({"status", "summary", "artifacts", "metadata", "errors"}),
    Contract.REPORT_CONTRACT: frozenset({"report_metadata", "findings"}),
}
"""Keys of which one is enough where the name of the file says which contract it follows."""


def may_follow(text: str, name: str) -> bool:
    """A cheap look that turns away nearly every other JSON text: it has no key by which `contract_of` could tell it."""
    for key in _TOLD_BY:
        if key in text:
            return True
    # A key may be written in escapes.
    return "\\u" in text or contract_by_name(name) is not None


def contract_by_name(name: str) -> Contract | None:
    """The contract that a file must follow by its name, even where its content cannot be read; else None."""
    last = _last_part(name)
    if last.endswith(_ENDINGS):
        stem, *ending = last.rsplit(".", 2)
        if stem:
            return _NAMES[".".join(ending)]
    return Contract.RETURN_META if _is_meta_file(last) else None


def is_json(name: str) -> bool:
    """Whether a file is called as JSON is."""
    return folded(name[-5:]) == ".json"


def _last_part(name: str) -> str:
    return folded(name.rpartition("/")[2])


def _is_meta_file(last: str) -> bool:
    """Whether a file of this name is of the return-meta family."""
    # Nearly no name asks for the pattern.
    may_be = "-" in last and ("return" in last or "handoff" in last) and "schema" not in last
    return may_be and _META_FILE.match(last) is not None


def unwrapped(top: dict[str, Any]) -> dict[str, Any]:
    """The packet inside `{"handoff_packet": {…}}`, any other object itself."""
    inner = top.get(WRAPPER)
    return inner if isinstance(inner, dict) and _PACKET_KEYS.isdisjoint(top) else top


def leading_contract_of(top: dict[str, Any], name: str) -> Contract | None:
    """The contract of the first block of what a child was asked: a task and one more key of a packet make one."""
    contract = contract_of(top, name, embedded=True)
    top = unwrapped(top)
    if contract is None and "task_id" in top and not _LEADING_KEYS.isdisjoint(top):
        return Contract.HANDOFF_PACKET
    return contract


def contract_of(top: dict[str, Any], name: str, *, embedded: bool = False) -> Contract | None:
    """The contract whose signature a JSON object has, None for an object of any other kind.

    `embedded`: it stands in what a subagent returned, where less tells a return than in a file among others.
    """
    last = _last_part(name)
    named = contract_by_name(last) if last.endswith(".json") else None
    if named is not None and named is not Contract.RETURN_META:
        if named is Contract.SUBAGENT_RETURN and "report_metadata" in top:
            return Contract.REPORT_CONTRACT
        keys = unwrapped(top) if named is Contract.HANDOFF_PACKET else top
        # Programs of all kinds call their reports so: without a key of one, what is in it decides.
        if not _OF_NAMED[named].isdisjoint(keys) or named is not Contract.REPORT_CONTRACT:
            return None if _OF_NAMED[named].isdisjoint(keys) else named
    schema = top.get("$schema")
    if (isinstance(schema, str) and _SCHEMAS in schema) or isinstance(top.get("properties"), dict):
        return None
    if _SCHEMA_FILE.search(last):
        return None
    is_meta = named is Contract.RETURN_META
    if not is_meta and isinstance(top.get("objectives"), list):
        # A progress file: it has a status and a session as a return has.
        return None
    if "report_metadata" in top and _is_report(top, embedded=embedded):
        return Contract.REPORT_CONTRACT
    packet = unwrapped(top)
    version = packet.get("handoff_schema")
    if isinstance(version, str) and version.startswith("composability.handoff_packet"):
        return Contract.HANDOFF_PACKET
    if not is_meta and (last == "state.json" or not _STATE_KEYS.isdisjoint(top)):
        return None
    is_return = _is_subagent_return(top)
    if not _FAMILY_KEYS.isdisjoint(top) if is_meta else _is_return_meta(top, is_return=is_return):
        return Contract.RETURN_META
    if is_return or (embedded and _is_rest_of_return(top)):
        return Contract.SUBAGENT_RETURN
    if _is_packet(packet, name):
        return Contract.HANDOFF_PACKET
    return Contract.REPORT_CONTRACT if _is_report_without_metadata(top) else None


def _is_packet(top: dict[str, Any], name: str) -> bool:
    if _IDENTIFYING.isdisjoint(top):
        return False
    count = len(_PACKET_KEYS.intersection(top))
    # A JSON file without an id may be the plan of anything: an objective, its risks and when it is reached.
    needed = 4 if "task_id" not in top and is_json(name) else 3
    return count >= needed or (count >= 2 and _HANDOFF_FILE.search(name) is not None)


def _status_of(top: dict[str, Any]) -> str:
    status = top.get("status")
    return folded(status) if isinstance(status, str) else ""


def _is_subagent_return(top: dict[str, Any]) -> bool:
    """Whether an object is a return with metadata, or looks like one that only lost them."""
    metadata = top.get("metadata")
    known = [key for key in METADATA_KEYS if key in metadata] if isinstance(metadata, dict) else []
    # Any log has a session, a status and a summary: with nothing else known, there must be artifacts.
    if known == ["session_id"]:
        return "artifacts" in top
    if known and any(key in top for key in ("status", "summary", "artifacts")):
        return True
    # Builds report artifacts too, but not with these words.
    has_more = "artifacts" in top and any(key in top for key in ("summary", "errors", "next_steps"))
    return has_more and _status_of(top) in _RETURN_STATUSES


def _is_rest_of_return(top: dict[str, Any]) -> bool:
    """Whether an object has three keys of a return as it must have them, its status among them.

    Structured output of any program has a status and a summary.
    """
    is_known = _status_of(top) in _RETURN_STATUSES
    return is_known and sum(isinstance(top.get(key), kind) for key, kind in _KINDS.items()) >= 2


def _is_return_meta(top: dict[str, Any], *, is_return: bool) -> bool:
    """Whether an object is of the dialect. `is_return`: else it would be a subagent-return."""
    word = _status_of(top)
    if is_return:
        return word in STAGE_WORDS or word in OUTSIDE_THE_ENUM or not _DIALECT_KEYS.isdisjoint(top)
    if word not in STAGE_WORDS:
        return False
    return not _TELLING.isdisjoint(top) or len(_SUPPORTING.intersection(top)) >= 1 + (word in EVERYDAY)


def _is_report(top: dict[str, Any], *, embedded: bool) -> bool:
    """Whether an object with `report_metadata` is an agent's: any tool may call the head of its report so."""
    metadata = top["report_metadata"]
    if not isinstance(metadata, dict):
        return "findings" in top
    known = len(_REPORT_KEYS.intersection(metadata))
    if embedded:
        return known > 0 or "findings" in top
    return known > 0 and known + sum(key in top for key in ("findings", *_LISTS_OF_REPORT)) >= 2


def _is_report_without_metadata(top: dict[str, Any]) -> bool:
    if "findings" not in top or "status" in top:
        return False
    mapped = isinstance(top["findings"], dict) and "context_map" in top["findings"]
    lists = sum(isinstance(top.get(key), list) for key in _LISTS_OF_REPORT)
    return lists + mapped >= 2 and (mapped or "identified_gaps" in top)
