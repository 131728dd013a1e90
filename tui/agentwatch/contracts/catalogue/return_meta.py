"""MET: rules of return-meta, the dialect of subagent-return that real workspaces hold.

Its authors left the document on purpose: stage words as status, an early `in_progress`, optional errors. Only a status
that says nothing breaks it; the rest are warnings where a reader loses something.
"""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.RETURN_META)
DIALECT = "return-meta dialect"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("MET003", DIALECT, "unknown status",
          "`status` is {value}, which says neither that the stage succeeded nor how it ended; use a stage word, "
          "`in_progress`, `partial`, `blocked` or `failed`.",
          why="A status that nobody understands must not pass for success.",
          right='"status": "implemented"', wrong='"status": "hmm"'),
    _rule("MET004", DIALECT, "status is a new stage word",
          "`status` is {value}, a stage word that is not known; it is read as completed.",
          why="Workspaces invent stage words; a verb of making in the past tense means that the stage succeeded.",
          right='"status": "implemented"', wrong='"status": "translated"', severity=WARNING),
    _rule("MET005", DIALECT, "`status` in another letter case", "`status` is {value}; write it as `{meant}`.",
          why="Parsers compare the word exactly; another letter case is understood here and may not be elsewhere.",
          right='"status": "researched"', wrong='"status": "Researched"', severity=WARNING),
    _rule("MET011", DIALECT, "`summary` too long",
          "`summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it below 100.",
          why="The summary protects the orchestrator's context window from bloat.",
          right="up to 400 characters", wrong="more than 400 characters", severity=WARNING),
    _rule("MET012", DIALECT, "no artifacts though finished",
          "`artifacts` is missing though the status is `{status}`; list the files that were created.",
          why="What a finished stage created can only be checked if it is listed.",
          right='"status": "planned", "artifacts": [{\u2026}]', wrong='"status": "planned"', severity=WARNING),
    _rule("MET013", DIALECT, "`artifacts` is no array", "`artifacts` is {value}; write an array of objects.",
          why="Readers go through an array; paths in another shape are easily missed.",
          right='"artifacts": [{"path": "plan.md"}]', wrong='"artifacts": {"plan": "plan.md"}', severity=WARNING),
    _rule("MET014", DIALECT, "artifact as a plain string",
          "An entry of `artifacts` is the string {value}; write an object with `type`, `path` and `summary`.",
          why="A plain path says neither what kind of file it is nor what it holds.",
          right='[{"type": "plan", "path": "plan.md", "summary": "\u2026"}]', wrong='["plan.md"]', severity=WARNING),
    _rule("MET017", DIALECT, "`artifacts[].type` has a value that is not allowed",
          "`artifacts[].type` is {value}; it must be `plan`, `report`, `summary`, `implementation` or `documentation`.",
          why="The document knows five types; others are shown as they are.",
          right='"type": "report"', wrong='"type": "handoff"', severity=WARNING),
    _rule("MET018", DIALECT, "artifact path not relative",
          "The artifact path {value} is not relative to the project: {reason}; write it from the project's root.",
          why="The path is looked up from the project's root, possibly in another checkout.",
          right='"path": "plan.md"', wrong='"path": "/home/me/shop/plan.md"', severity=WARNING),
    _rule("MET019", DIALECT, "`artifacts[].type, path or summary` is not a string",
          "`artifacts[].type, path or summary` is {value}; it must be a string.",
          why="Readers rely on `artifacts[].type, path or summary` being a string; anything else makes them fail or "
          "guess.",
          right='"path": "plan.md"', wrong='"path": ["plan.md"]', severity=WARNING),
    _rule("MET021", DIALECT, "`metadata` is not an object", "`metadata` is {value}; it must be an object.",
          why="Readers rely on `metadata` being an object; anything else makes them fail or guess.",
          right='"metadata": {\u2026}', wrong='"metadata": "none"', severity=WARNING),
    _rule("MET022", DIALECT, "`session_id` missing", "`session_id` is missing or empty; add it as a string.",
          why="Attempts are told apart by their session.",
          right='"session_id": "sess_1735460684_a1b2c3"', wrong="(no `session_id`)", severity=WARNING),
    _rule("MET023", DIALECT, "agent unknown",
          "Neither `agent_type` nor `delegation_path` names the agent; add them to `metadata`.",
          why="The task is known by its directory and its agent.",
          right='"agent_type": "planner"', wrong='"metadata": {"session_id": "\u2026"}', severity=WARNING),
    _rule("MET024", DIALECT, "`delegation_depth` disagrees with `delegation_path`",
          "`delegation_depth` is {depth}, but a path of {length} elements means {expected}; the path is trusted.",
          why="Most returns of this dialect write depth 1 whatever the path.",
          right='"delegation_depth": 1, "delegation_path": ["orchestrator", "plan", "planner"]',
          wrong='"delegation_depth": 1, "delegation_path": ["orchestrator", "plan", "skill", "planner"]',
          severity=WARNING),
    _rule("MET025", DIALECT, "`delegation_path` is not an array of strings",
          "`delegation_path` is {value}; it must be an array of strings.",
          why="Readers rely on `delegation_path` being an array of strings; anything else makes them fail or guess.",
          right='["orchestrator", "plan", "planner"]', wrong='"orchestrator/plan/planner"', severity=WARNING),
    _rule("MET026", DIALECT, "metadata of another type", "`{key}` is {value}; it must be {kind}.",
          why="Readers rely on the type; the value is left aside.",
          right='"agent_type": "planner"', wrong='"agent_type": ["planner"]', severity=WARNING),
    _rule("MET030", DIALECT, "`errors` is no array of objects",
          "`errors` holds {value}; write an array of objects with `type`, `message`, `recoverable`, `recommendation`.",
          why="The recommendation of an error is the hint that a retry starts from.",
          right='"errors": [{"message": "\u2026"}]', wrong='"errors": ["it broke"]', severity=WARNING),
    _rule("MET031", DIALECT, "field of an error has another type", "`{key}` of an error is {value}; it must be {kind}.",
          why="The recommendation of an error is the hint that a retry starts from.",
          right='"recoverable": true', wrong='"recoverable": "yes"', severity=WARNING),
    _rule("MET032", DIALECT, "`next_steps` is no string", "`next_steps` is {value}; write it as a string.",
          why="A list is joined line by line; the document asks for a string.",
          right='"next_steps": "Run /implement 244"', wrong='"next_steps": ["Run /implement 244"]', severity=WARNING),
    _rule("MET033", DIALECT, "phases are no number", "`{key}` is {value}; write the number of phases.",
          why="Progress is counted in phases; a list is counted by its length, anything else is left aside.",
          right='"phases_completed": 2', wrong='"phases_completed": [1, 2]', severity=WARNING),
    _rule("MET034", DIALECT, "`blockers` cannot be read",
          "`{key}` holds {value}; write an array of strings, or of objects with a `description`.",
          why="Nobody can remove a blocker that cannot be read.",
          right='"blockers": ["The key is missing."]', wrong='"blockers": [17]', severity=WARNING),
    _rule("MET035", DIALECT, "blocked by nothing",
          "The status is `blocked`, but neither `blockers` nor `errors` says by what; name it.",
          why="Nobody can remove what is not named.",
          right='"status": "blocked", "blockers": ["The key is missing."]', wrong='"status": "blocked"',
          severity=WARNING),
    _rule("MET036", DIALECT, "review without a reason",
          "`requires_user_review` is true without a `review_reason`; say what the user is to decide.",
          why="The operator is asked to look, and must know at what.",
          right='"requires_user_review": true, "review_reason": "Two designs are possible."',
          wrong='"requires_user_review": true', severity=WARNING),
)
# fmt: on
