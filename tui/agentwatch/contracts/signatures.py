"""Which contract a JSON object follows, by its keys and by the name of its file.

Nearly every object that is met is none of ours, and the models of the contracts take long to load: what answers here
needs none of them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentwatch.contracts.drift import EVERYDAY, OUTSIDE_THE_ENUM, STAGE_WORDS
from agentwatch.contracts.shapes import Contract
from agentwatch.text import folded

RETURN_STATUSES: Final = ("completed", "partial", "failed", "blocked")
"""The statuses of a subagent-return."""

# Where the language of schemas is at home: a return may name the schema that it follows.
_SCHEMAS: Final = "json-schema.org"
# The schema of a contract, not a document about a task that happens to be called `schema`.
_SCHEMA: Final = "schema.json"
_SCHEMA_FILE: Final = re.compile(r"(?:return|report|handoff|packet|meta)[-_.]?schema\.json\Z")

_PACKET_FAMILY: Final = "composability.handoff_packet"
_IDENTIFYING: Final = frozenset({"task_id", "objective"})
_PACKET_KEYS: Final = _IDENTIFYING | {"evidence", "success_criteria", "risks"}
_LEADING_KEYS: Final = _PACKET_KEYS - {"task_id"} | {"constraints", "deliverables"}
_JSON: Final = ".json"
_HANDOFF_FILE: Final = re.compile(
    r"(?:^|/)(?:[^/]+\.)?handoff\.(?:json|md)\Z|(?:^|/)handoffs/[^/]+\Z", re.IGNORECASE | re.ASCII
)

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
WRAPPER: Final = "handoff_packet"
# The state of a whole project, or of one among many, as the authors of return-meta keep it: it has a status, too.
_STATE_FILE: Final = "state.json"
_STATE_KEYS: Final = frozenset(
    {
        "next_project_number",
        "project_number",
        "project_name",
        "project_numbering",
        "active_projects",
        "completed_projects",
        "archived_projects",
        "pending_tasks",
        "repository_health",
        "state_references",
    }
)
_TOLD_BY: Final = tuple(
    f'"{key}"'
    for key in ("task_id", "status", "metadata", "report_metadata", "findings", "objective", "handoff_schema")
)
"""One of these stands in every text of a contract whose file's name does not say it."""
METADATA_KEYS: Final = ("session_id", "agent_type", "delegation_depth", "delegation_path")
_KINDS: Final = {"summary": str, "artifacts": list, "metadata": dict, "errors": list, "next_steps": str}

_META_FILE: Final = re.compile(
    r"(?:\.?(?:[\w-]+-)?return-meta(?:[-_.][^/]*)?|\.?(?:[\w-]+-)?meta-(?:[\w-]+-)?return(?:[-_.][^/]*)?"
    r"|(?:\.|\d+[-_])?orchestrator-handoff(?:[-_.][^/]*)?|\.phase-?\d+(?:-\d+)*-handoff(?:[-_.][^/]*)?)\.json\Z",
    re.IGNORECASE,
)
_DRIFT_KEYS: Final = frozenset({"started_at", "partial_progress", "completion_data", "verification"})
_FAMILY_KEYS: Final = _DRIFT_KEYS.union(METADATA_KEYS, ("status", "metadata", "artifacts", "summary", "errors"))
# A stage word alone is an everyday word: something else of a return must be there.
_TELLING: Final = frozenset({"delegation_path", "partial_progress", "completion_data"})
_SUPPORTING: Final = frozenset({"artifacts", "session_id", "agent_type"})

_REPORT_KEYS: Final = (
    "agent_name",
    "task_id",
    "status",
    "verbosity_level",
    "confidence_level",
    "execution_time_seconds",
)
_LISTS_OF_REPORT: Final = ("recommendations", "identified_gaps", "blockers")
_PARTS_OF_REPORT: Final = ("findings", *_LISTS_OF_REPORT)
_OF_NAMED: Final = {
    Contract.HANDOFF_PACKET: _IDENTIFYING,
    Contract.SUBAGENT_RETURN: frozenset({"status", "summary", "artifacts", "metadata", "errors"}),
    Contract.REPORT_CONTRACT: frozenset({"report_metadata", "findings"}),
}
"""Keys of which one is enough where the name of the file says which contract it follows."""
_PAIR: Final = 2


def may_follow(text: str, name: str) -> bool:
    """A cheap look that turns away nearly every other JSON text: it has no key by which `contract_of` could tell it."""
    # A key may be written in escapes.
    for key in _TOLD_BY:
        if key in text:
            return True
    return "\\u" in text or contract_by_name(name) is not None


def contract_of(top: dict[str, Any], name: str, *, embedded: bool = False) -> Contract | None:
    """The contract whose signature a JSON object has, None for an object of any other kind.

    `embedded`: it stands in what a subagent returned, where less tells a return than in a file among others.
    """
    last = _last_part(name)
    named = _contract_called(last) if last.endswith(_JSON) else None
    if named is not None and named is not Contract.RETURN_META:
        contract = _named_contract_of(top, named)
        # Programs of all kinds call their reports so: without a key of one, what is in it decides.
        if contract is not None or named is not Contract.REPORT_CONTRACT:
            return contract
    schema = top.get("$schema")
    if (isinstance(schema, str) and _SCHEMAS in schema) or isinstance(top.get("properties"), dict):
        return None
    if last.endswith(_SCHEMA) and _SCHEMA_FILE.search(last):
        return None
    is_meta = _is_meta_file(last)
    if not is_meta and isinstance(top.get("objectives"), list):
        # A progress file: it has a status and a session as a return has.
        return None
    if "report_metadata" in top and _is_report(top, embedded=embedded):
        return Contract.REPORT_CONTRACT
    packet = unwrapped(top)
    version = packet.get("handoff_schema")
    if isinstance(version, str) and version.startswith(_PACKET_FAMILY):
        return Contract.HANDOFF_PACKET
    if not is_meta and (last == _STATE_FILE or not _STATE_KEYS.isdisjoint(top)):
        return None
    is_return = _is_subagent_return(top)
    if _is_return_meta(top, is_meta=is_meta, is_return=is_return):
        return Contract.RETURN_META
    if is_return or (embedded and _is_rest_of_return(top)):
        return Contract.SUBAGENT_RETURN
    if _is_packet(packet, name):
        return Contract.HANDOFF_PACKET
    return Contract.REPORT_CONTRACT if _is_report_without_metadata(top) else None


def _named_contract_of(top: dict[str, Any], named: Contract) -> Contract | None:
    """As `contract_of` for a file whose name says what it is: neither a schema nor a dialect excuses it."""
    if named is Contract.SUBAGENT_RETURN and "report_metadata" in top:
        return Contract.REPORT_CONTRACT
    if named is Contract.HANDOFF_PACKET:
        top = unwrapped(top)
    return None if _OF_NAMED[named].isdisjoint(top) else named


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


def contract_by_name(name: str) -> Contract | None:
    """The contract that a file must follow by its name, even where its content cannot be read; else None."""
    return _contract_called(_last_part(name))


def is_json(name: str) -> bool:
    """Whether a file is called as JSON is."""
    return folded(name[-len(_JSON) :]) == _JSON


def _last_part(name: str) -> str:
    return folded(name.rpartition("/")[2])


def _contract_called(last: str) -> Contract | None:
    if last.endswith(_ENDINGS):
        stem, *ending = last.rsplit(".", 2)
        if stem:
            return _NAMES[".".join(ending)]
    return Contract.RETURN_META if _is_meta_file(last) else None


def _is_meta_file(last: str) -> bool:
    """Whether a file of this name is of the return-meta family."""
    # Nearly no name asks for the pattern.
    may_be = "-" in last and ("return" in last or "handoff" in last) and "schema" not in last
    return may_be and _META_FILE.match(last) is not None


def _is_packet(top: dict[str, Any], name: str) -> bool:
    if _IDENTIFYING.isdisjoint(top):
        return False
    count = len(_PACKET_KEYS.intersection(top))
    # A JSON file without an id may be the plan of anything: an objective, its risks and when it is reached.
    needed = 4 if "task_id" not in top and is_json(name) else 3
    return count >= needed or (count >= _PAIR and _HANDOFF_FILE.search(name) is not None)


def _is_subagent_return(top: dict[str, Any]) -> bool:
    """Whether an object is a return with metadata, or looks like one that only lost them."""
    metadata = top.get("metadata")
    if isinstance(metadata, dict):
        known = [key for key in METADATA_KEYS if key in metadata]
        # Any log has a session, a status and a summary: with nothing else known, there must be artifacts.
        if known == ["session_id"]:
            return "artifacts" in top
        if known and any(key in top for key in ("status", "summary", "artifacts")):
            return True
    # Builds report artifacts too, but not with these words.
    status = top.get("status")
    return (
        isinstance(status, str)
        and folded(status) in RETURN_STATUSES
        and "artifacts" in top
        and any(key in top for key in ("summary", "errors", "next_steps"))
    )


def _is_rest_of_return(top: dict[str, Any]) -> bool:
    """Whether an object has three keys of a return as it must have them, its status among them.

    Structured output of any program has a status and a summary.
    """
    status = top.get("status")
    if not isinstance(status, str) or folded(status) not in RETURN_STATUSES:
        return False
    return sum(isinstance(top.get(key), kind) for key, kind in _KINDS.items()) >= _PAIR


def _is_return_meta(top: dict[str, Any], *, is_meta: bool, is_return: bool) -> bool:
    """`is_meta`: by the name of the file. `is_return`: else it would be a subagent-return."""
    if is_meta:
        return not _FAMILY_KEYS.isdisjoint(top)
    status = top.get("status")
    word = folded(status) if isinstance(status, str) else ""
    if is_return:
        return word in STAGE_WORDS or word in OUTSIDE_THE_ENUM or not _DRIFT_KEYS.isdisjoint(top)
    if word not in STAGE_WORDS:
        return False
    needed = 2 if word in EVERYDAY else 1
    return not _TELLING.isdisjoint(top) or len(_SUPPORTING.intersection(top)) >= needed


def _is_report(top: dict[str, Any], *, embedded: bool) -> bool:
    """Whether an object with `report_metadata` is an agent's: any tool may call the head of its report so."""
    metadata = top["report_metadata"]
    if not isinstance(metadata, dict):
        return "findings" in top
    known = sum(key in metadata for key in _REPORT_KEYS)
    if embedded:
        return known > 0 or "findings" in top
    return known > 0 and known + sum(key in top for key in _PARTS_OF_REPORT) >= _PAIR


def _is_report_without_metadata(top: dict[str, Any]) -> bool:
    if "findings" not in top or "status" in top:
        return False
    findings = top["findings"]
    mapped = isinstance(findings, dict) and "context_map" in findings
    lists = sum(isinstance(top.get(key), list) for key in _LISTS_OF_REPORT)
    return lists + mapped >= _PAIR and (mapped or "identified_gaps" in top)
