"""REP: rules of the report-contract."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.REPORT_CONTRACT)
_METADATA = "4.1. report_metadata (Required)"
_STRUCTURE = "2. Standard Report Structure"
_FINDINGS = "4.2. findings (Required)"
_GAPS = "4.4. identified_gaps (Optional)"
_BLOCKERS = "4.5. blockers (Optional, Required if status is 'blocked')"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("REP019", _METADATA, "`report_metadata.confidence_level` out of range",
          "`report_metadata.confidence_level` is {value}; it must be from 0.0 (none) to 1.0 (complete).",
          why="A percentage read as a fraction would hide every low confidence.",
          right='"confidence_level": 0.9', wrong='"confidence_level": 90'),
    _rule("REP020", _METADATA, "low confidence",
          "`report_metadata.confidence_level` is {value}, below {threshold}; have a human look at the result.",
          why="The level exists so that low-confidence results are flagged for review by a human.",
          right='"confidence_level": 0.9', wrong='"confidence_level": 0.2', severity=WARNING),
    _rule("REP024", _METADATA, "`report_metadata.error_message` missing",
          "The status is `failed`, but `report_metadata.error_message` is missing or empty; describe the error.",
          why="The error message is required if the status is failed: it is what a retry is decided by.",
          right='"status": "failed", "error_message": "The build failed."',
          wrong='"status": "failed", "error_message": null'),
    _rule("REP025", _METADATA, "a count of `report_metadata` is negative",
          "`report_metadata.{key}` is {value}; it must be 0 or more.",
          why="Neither tokens nor seconds can be fewer than none: a sum over many reports would be wrong.",
          right='"token_usage": 4250', wrong='"token_usage": -1', severity=WARNING),
    _rule("REP026", _METADATA, "`report_metadata.error_message` though completed",
          "`report_metadata.error_message` is filled though the status is `completed`; drop it or report `failed`.",
          why="An error beside a success leaves open which of the two holds.",
          right='"status": "completed", "error_message": null',
          wrong='"status": "completed", "error_message": "The build failed."', severity=WARNING),
    _rule("REP032", _FINDINGS, "`findings.context_map` is not an array of rows",
          "`findings.context_map` is {value}; it must be an array of rows.",
          why="Readers rely on `findings.context_map` being an array of rows; anything else makes them fail or guess.",
          right='"context_map": [["Signs the tokens.", "repo://src/auth.py:45-120"]]',
          wrong='"context_map": {"auth": "src/auth.py"}', severity=WARNING),
    _rule("REP033", _FINDINGS, "row of `findings.context_map` is no pair",
          "A row of `findings.context_map` is {value}; each must be a pair: a description, and a pointer or null.",
          why="The map is compact because every row has the same two elements.",
          right='["Signs the tokens.", "repo://src/auth.py:45-120"]', wrong='["Signs the tokens."]', severity=WARNING),
    _rule("REP034", _FINDINGS, "context without a description",
          "The first element of this row of `findings.context_map` is {value}; it must be a string that describes it.",
          why="A pointer without a description forces the reader to open it.",
          right='["Signs the tokens.", "repo://src/auth.py:45-120"]', wrong='[null, "repo://src/auth.py:45-120"]',
          severity=WARNING),
    _rule("REP035", _FINDINGS, "pointer is not `repo://path:first-last`",
          "The pointer {value} is neither null nor of the form `repo://path:first-last`; write path and lines that "
          "way.",
          why="A pointer in the standard form can be opened by a program.",
          right='"repo://src/auth.py:45-120"', wrong='"src/auth.py, line 45"', severity=WARNING),
    _rule("REP036", _FINDINGS, "pointer's lines are not in order",
          "The pointer {value} does not name lines from 1 on in rising order; correct the range.",
          why="A range that ends before it starts shows nothing.",
          right='"repo://src/auth.py:45-120"', wrong='"repo://src/auth.py:120-45"', severity=WARNING),
    _rule("REP046", _BLOCKERS, "blocked without blockers",
          "The status is `blocked`, but `blockers` is missing or empty; name what blocks the task.",
          why="The blockers are required if the status is blocked: nobody can remove what is not named.",
          right='"status": "blocked", "blockers": ["The key is missing."]',
          wrong='"status": "blocked", "blockers": []'),
    _rule("REP047", _BLOCKERS, "blockers though not blocked",
          "`blockers` is filled though the status is `{status}`; move them to `identified_gaps` or report `blocked`.",
          why="The field should only be populated if the status is blocked; else nobody knows whether the task waits.",
          right='"status": "completed", "blockers": []', wrong='"status": "completed", "blockers": ["No key."]',
          severity=WARNING),
    _rule("REP048", _STRUCTURE, "`recommendations` missing",
          "`recommendations` is missing; add it as an array of strings.",
          why="They are strongly recommended: by them the orchestrator knows the next step. An empty array says none.",
          right='"recommendations": []', wrong="(no `recommendations`)", severity=WARNING),
    _rule("REP049", _STRUCTURE, "`blockers` missing", "`blockers` is missing; add it as an array of strings.",
          why="They are strongly recommended: an empty array says that nothing blocks, a missing one says nothing.",
          right='"blockers": []', wrong="(no `blockers`)", severity=WARNING),
    _rule("REP050", _GAPS, "gaps of an unsuccessful task",
          "`identified_gaps` is filled though the status is `{status}`; name what went wrong in `blockers` or "
          "`error_message`, and the rest in `recommendations`.",
          why="Gaps are for issues found while a task succeeds; a reader of a failed one looks for the cause "
          "elsewhere.",
          right='"status": "completed", "identified_gaps": ["No tests."]',
          wrong='"status": "failed", "identified_gaps": ["No tests."]', severity=WARNING),
)
# fmt: on
