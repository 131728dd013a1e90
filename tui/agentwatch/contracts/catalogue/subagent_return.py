"""SUB: rules of the subagent-return."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.SUBAGENT_RETURN)
_SUMMARY = "summary (required)"
_ARTIFACTS = "artifacts (required)"
_METADATA = "metadata (required)"
_ERRORS = "errors (optional)"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("SUB007", _SUMMARY, "`summary` too long",
          "`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.",
          why="The summary protects the orchestrator's context window from bloat. The document equates 100 tokens "
          "with about 400 characters, so a token is counted as four characters.",
          right="up to 400 characters", wrong="more than 500 characters"),
    _rule("SUB008", _SUMMARY, "`summary` is not 2 to 5 sentences", "`summary` has {count} sentences; write 2 to 5.",
          why="One sentence leaves out what was done or how it went; more than five are no summary.",
          right='"summary": "Built the API. All tests pass."', wrong='"summary": "Done."', severity=WARNING),
    _rule("SUB009", _SUMMARY, "`summary` rather long",
          "`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.",
          why="The document says fewer than 100 tokens, about 400 characters: up to 500 a tokenizer may still agree.",
          right="up to 400 characters", wrong="401 to 500 characters", severity=WARNING),
    _rule("SUB012", _ARTIFACTS, "no artifacts",
          "`artifacts` is empty though the status is `{status}`; list the files that were created.",
          why="The list can be empty only if the status is failed or blocked: otherwise there is nothing to show.",
          right='"status": "failed", "artifacts": []', wrong='"status": "completed", "artifacts": []'),
    _rule("SUB020", _ARTIFACTS, "artifact path not relative",
          "The artifact path {value} is not relative to the project: {reason}; write it from the project's root.",
          why="The path is looked up from the project's root, possibly in another checkout.",
          right='"path": "plans/api.md"', wrong='"path": "/home/me/shop/plans/api.md"'),
    _rule("SUB038", _METADATA, "`metadata.delegation_depth` negative",
          "`metadata.delegation_depth` is {value}; it must be 0 or more.",
          why="The depth counts the levels of delegation; there are no negative levels.",
          right='"delegation_depth": 1', wrong='"delegation_depth": -1', severity=WARNING),
    _rule("SUB042", _METADATA, "`delegation_depth` disagrees with `delegation_path`",
          "`delegation_depth` is {depth}, but a path of {length} elements means {expected}; the path is trusted.",
          why="Orchestrator, command and agent make a path of three at depth 1: the depth is the path's length less "
          "two.",
          right='"delegation_depth": 1, "delegation_path": ["orchestrator", "plan", "planner"]',
          wrong='"delegation_depth": 1, "delegation_path": ["orchestrator", "plan", "planner", "writer"]',
          severity=WARNING),
    _rule("SUB047", _METADATA, "`metadata.delegation_path` empty",
          "`metadata.delegation_path` is empty; list the agents from the orchestrator to this one.",
          why="The path from the orchestrator to this agent has at least this agent in it.",
          right='"delegation_path": ["orchestrator", "plan", "planner"]', wrong='"delegation_path": []'),
    _rule("SUB050", _ERRORS, "`errors` missing",
          "`errors` is missing or empty though the status is `{status}`; add objects with `type`, `message`, "
          "`recoverable` and `recommendation`.",
          why="Errors are required if the status is not completed: they are what a retry is decided by.",
          right='"status": "failed", "errors": [{\u2026}]', wrong='"status": "failed"'),
    _rule("SUB061", _ERRORS, "`errors` though completed",
          "`errors` is filled though the status is `completed`; leave it out, or report `partial` or `failed`.",
          why="Errors beside a success leave open which of the two holds; tell what was overcome in the summary.",
          right='"status": "completed", "errors": []', wrong='"status": "completed", "errors": [{\u2026}]',
          severity=WARNING),
)
# fmt: on
