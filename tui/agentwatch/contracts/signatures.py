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
_SCHEMA_FILE: Final = re.compile(r"(?:return|report|handoff|packet|meta)[-_.]?schema\.json\Z", re.IGNORECASE | re.ASCII)

_PACKET_FAMILY: Final = "composability.handoff_packet"
_PACKET_KEYS: Final = ("task_id", "objective", "evidence", "success_criteria", "risks")
_IDENTIFYING: Final = ("task_id", "objective")
_LEADING_KEYS: Final = (*_PACKET_KEYS[1:], "constraints", "deliverables")
JSON_FILE: Final = re.compile(r"\.json\Z", re.IGNORECASE | re.ASCII)
_HANDOFF_FILE: Final = re.compile(
    r"(?:^|/)(?:[^/]+\.)?handoff\.(?:json|md)\Z|(?:^|/)handoffs/[^/]+\Z", re.IGNORECASE | re.ASCII
)

_NAMED: Final = re.compile(
    r"(?:^|/)[^/]+\.((?:handoff|return)\.(?:json|md)|report\.json|todos\.md)\Z", re.IGNORECASE | re.ASCII
)
_NAMES: Final = {
    "handoff.json": Contract.HANDOFF_PACKET,
    "handoff.md": Contract.HANDOFF_PACKET,
    "todos.md": Contract.HANDOFF_PACKET,
    "return.json": Contract.SUBAGENT_RETURN,
    "return.md": Contract.RETURN_FORMAT,
    "report.json": Contract.REPORT_CONTRACT,
}
WRAPPER: Final = "handoff_packet"
# The state of a whole project, or of one among many, as the authors of return-meta keep it: it has a status, too.
_STATE_FILE: Final = re.compile(r"(?:^|/)state\.json\Z", re.IGNORECASE | re.ASCII)
_STATE_KEYS: Final = (
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
)
METADATA_KEYS: Final = ("session_id", "agent_type", "delegation_depth", "delegation_path")
_KINDS: Final = {"summary": str, "artifacts": list, "metadata": dict, "errors": list, "next_steps": str}

_META_FILE: Final = re.compile(
    r"(?:^|/)(?:\.?(?:[\w-]+-)?return-meta(?:[-_.][^/]*)?|\.?(?:[\w-]+-)?meta-(?:[\w-]+-)?return(?:[-_.][^/]*)?"
    r"|(?:\.|\d+[-_])?orchestrator-handoff(?:[-_.][^/]*)?|\.phase-?\d+(?:-\d+)*-handoff(?:[-_.][^/]*)?)\.json\Z",
    re.IGNORECASE,
)
_DRIFT_KEYS: Final = ("started_at", "partial_progress", "completion_data", "verification")
_FAMILY_KEYS: Final = ("status", "metadata", "artifacts", "summary", "errors", *METADATA_KEYS, *_DRIFT_KEYS)
# A stage word alone is an everyday word: something else of a return must be there.
_TELLING: Final = ("delegation_path", "partial_progress", "completion_data")
_SUPPORTING: Final = ("artifacts", "session_id", "agent_type")

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
    Contract.SUBAGENT_RETURN: ("status", "summary", "artifacts", "metadata", "errors"),
    Contract.REPORT_CONTRACT: ("report_metadata", "findings"),
}
"""Keys of which one is enough where the name of the file says which contract it follows."""
_PAIR: Final = 2


def contract_of(top: dict[str, Any], name: str, *, embedded: bool = False) -> Contract | None:
    """The contract whose signature a JSON object has, None for an object of any other kind.

    `embedded`: it stands in what a subagent returned, where less tells a return than in a file among others.
    """
    named = contract_by_name(name) if JSON_FILE.search(name) else None
    if named is not None and named is not Contract.RETURN_META:
        contract = _named_contract_of(top, named)
        # Programs of all kinds call their reports so: without a key of one, what is in it decides.
        if contract is not None or named is not Contract.REPORT_CONTRACT:
            return contract
    schema = top.get("$schema")
    if (isinstance(schema, str) and _SCHEMAS in schema) or isinstance(top.get("properties"), dict):
        return None
    if _SCHEMA_FILE.search(name):
        return None
    if isinstance(top.get("objectives"), list) and not is_meta_file(name):
        # A progress file: it has a status and a session as a return has.
        return None
    if "report_metadata" in top and _is_report(top, embedded=embedded):
        return Contract.REPORT_CONTRACT
    version = unwrapped(top).get("handoff_schema")
    if isinstance(version, str) and version.startswith(_PACKET_FAMILY):
        return Contract.HANDOFF_PACKET
    if not is_meta_file(name) and (_STATE_FILE.search(name) or any(key in top for key in _STATE_KEYS)):
        return None
    if _is_return_meta(top, name):
        return Contract.RETURN_META
    if _is_subagent_return(top) or (embedded and _is_rest_of_return(top)):
        return Contract.SUBAGENT_RETURN
    if _is_packet(unwrapped(top), name):
        return Contract.HANDOFF_PACKET
    return Contract.REPORT_CONTRACT if _is_report_without_metadata(top) else None


def _named_contract_of(top: dict[str, Any], named: Contract) -> Contract | None:
    """As `contract_of` for a file whose name says what it is: neither a schema nor a dialect excuses it."""
    if named is Contract.SUBAGENT_RETURN and "report_metadata" in top:
        return Contract.REPORT_CONTRACT
    if named is Contract.HANDOFF_PACKET:
        top = unwrapped(top)
    return named if any(key in top for key in _OF_NAMED[named]) else None


def unwrapped(top: dict[str, Any]) -> dict[str, Any]:
    """The packet inside `{"handoff_packet": {…}}`, any other object itself."""
    inner = top.get(WRAPPER)
    return inner if isinstance(inner, dict) and not any(key in top for key in _PACKET_KEYS) else top


def leading_contract_of(top: dict[str, Any], name: str) -> Contract | None:
    """The contract of the first block of what a child was asked: a task and one more key of a packet make one."""
    contract = contract_of(top, name, embedded=True)
    top = unwrapped(top)
    if contract is None and "task_id" in top and any(key in top for key in _LEADING_KEYS):
        return Contract.HANDOFF_PACKET
    return contract


def contract_by_name(name: str) -> Contract | None:
    """The contract that a file must follow by its name, even where its content cannot be read; else None."""
    if named := _NAMED.search(name):
        return _NAMES[named[1].lower()]
    return Contract.RETURN_META if is_meta_file(name) else None


def is_meta_file(name: str) -> bool:
    """Whether a file of this name is of the return-meta family."""
    return _META_FILE.search(name) is not None and "schema" not in name.rpartition("/")[2].lower()


def _is_packet(top: dict[str, Any], name: str) -> bool:
    if not any(key in top for key in _IDENTIFYING):
        return False
    count = sum(key in top for key in _PACKET_KEYS)
    if _HANDOFF_FILE.search(name) is not None:
        return count >= _PAIR
    # A JSON file without an id may be the plan of anything: an objective, its risks and when it is reached.
    needed = 4 if "task_id" not in top and JSON_FILE.search(name) else 3
    return count >= needed


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
    kept = sum(isinstance(top.get(key), kind) for key, kind in _KINDS.items())
    return isinstance(status, str) and folded(status) in RETURN_STATUSES and kept >= _PAIR


def _is_return_meta(top: dict[str, Any], name: str) -> bool:
    if is_meta_file(name):
        return any(key in top for key in _FAMILY_KEYS)
    status = top.get("status")
    word = folded(status) if isinstance(status, str) else ""
    if _is_subagent_return(top):
        return word in STAGE_WORDS or word in OUTSIDE_THE_ENUM or any(key in top for key in _DRIFT_KEYS)
    if word not in STAGE_WORDS:
        return False
    supporting = sum(key in top for key in _SUPPORTING)
    needed = 2 if word in EVERYDAY else 1
    return any(key in top for key in _TELLING) or supporting >= needed


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
    findings = top.get("findings")
    mapped = isinstance(findings, dict) and "context_map" in findings
    lists = sum(isinstance(top.get(key), list) for key in _LISTS_OF_REPORT)
    return (
        "findings" in top and "status" not in top and (lists + mapped) >= _PAIR and (mapped or "identified_gaps" in top)
    )
