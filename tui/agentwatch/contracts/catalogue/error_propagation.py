"""ERR: rules of the error-propagation keys in the Status of a return-format."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.RETURN_FORMAT)
_PROPAGATION = "Error Return Format (MVP)"

RULES: Final[tuple[Rule, ...]] = (
    _rule(
        "ERR001",
        _PROPAGATION,
        "`retry_recommended` missing",
        "The state is `ERROR`, but `retry_recommended` is missing; add `retry_recommended: yes` or `no`.",
        why="It is required when the state is ERROR: the parent decides retry, abort or escalate by it.",
        right="state: ERROR\nretry_recommended: no",
        wrong="state: ERROR",
    ),
    _rule.value(
        "ERR002",
        _PROPAGATION,
        "retry_recommended",
        "`yes` or `no`",
        why="The parent decides retry, abort or escalate by it; another word decides nothing.",
        right="retry_recommended: yes",
        wrong="retry_recommended: maybe",
    ),
    _rule.case(
        "ERR003", _PROPAGATION, "retry_recommended", right="retry_recommended: yes", wrong="retry_recommended: Yes"
    ),
    _rule(
        "ERR004",
        _PROPAGATION,
        "`retry_hint` missing",
        "A retry is recommended, but `retry_hint` is missing; say what to change before it.",
        why="A retry that changes nothing fails again; the hint is what the amended handoff is made of.",
        right="retry_recommended: yes\nretry_hint: Pass the schema path.",
        wrong="retry_recommended: yes",
        severity=WARNING,
    ),
    _rule(
        "ERR005",
        _PROPAGATION,
        "`error_code` missing",
        "The state is `ERROR`, but `error_code` is missing; add a stable identifier such as `E_TOOL_FAILURE`.",
        why="A machine routes by the code; a summary cannot be routed by.",
        right="state: ERROR\nerror_code: E_TOOL_FAILURE",
        wrong="state: ERROR",
        severity=WARNING,
    ),
    _rule(
        "ERR006",
        _PROPAGATION,
        "`error_code` is no identifier",
        "`error_code` is {value}; write a stable identifier without spaces, such as `E_TOOL_FAILURE`.",
        why="A machine routes by the code, so it must be the same each time.",
        right="error_code: E_TOOL_FAILURE",
        wrong="error_code: the tool failed",
        severity=WARNING,
    ),
    _rule(
        "ERR007",
        "Guidance by state",
        "error keys on success",
        "The state is `SUCCESS`, but `{key}` speaks of an error; leave it out or report another state.",
        why="A successful return omits error-oriented keys, so that nobody retries what is done.",
        right="state: SUCCESS",
        wrong="state: SUCCESS\nerror_code: E_TOOL_FAILURE",
        severity=WARNING,
    ),
)
