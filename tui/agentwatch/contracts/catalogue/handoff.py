"""HOF: rules of the handoff packet."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.HANDOFF_PACKET)
_MESSAGE = "A) new_task.message (string)"
_REQUIRED = "Required fields (MVP)"
_OPTIONAL = "Optional fields"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("HOF006", _REQUIRED, "`objective` is more than one sentence",
          "`objective` has {count} sentences; state the mission in one and move the rest to `notes`.",
          why="The contract asks for a one-sentence mission statement: two sentences are usually two tasks.",
          right='"objective": "Build the checkout API against schema v3."',
          wrong='"objective": "Build the API. Then write the docs."', severity=WARNING),
    _rule("HOF015", _REQUIRED, "evidence path not repo-relative",
          "The evidence path {value} is not repo-relative: {reason}; write it from the root of the repository.",
          why="The child may run in another checkout, where only a path inside the repository means the same file.",
          right='"path": "docs/schema.md"', wrong='"path": "/home/me/shop/docs/schema.md"'),
    _rule("HOF041", _OPTIONAL, "unknown `handoff_schema`",
          "`handoff_schema` is {value}; `composability.handoff_packet.v1` is the version this packet is judged by.",
          why="The version tag tells a reader which contract the packet follows; another one may mean other keys.",
          right='"handoff_schema": "composability.handoff_packet.v1"', wrong='"handoff_schema": "v1"',
          severity=WARNING),
    _rule("HOF060", _MESSAGE, "packet not fenced",
          "The packet stands in the Markdown without a fence; put ```json above it and ``` below it.",
          why="The contract asks for a fenced JSON object as the first block, so that a child finds where it ends.",
          right='```json\n{"task_id": "shop.api", \u2026}\n```', wrong='{"task_id": "shop.api", \u2026}\n- [ ] Read',
          severity=WARNING),
    _rule("HOF061", _REQUIRED, "packet inside another object",
          "The packet stands inside `handoff_packet`; write its keys at the top of the object.",
          why="The keys are those of the object itself: a reader that does not look inside the wrapper finds none.",
          right='{"task_id": "shop.api", \u2026}', wrong='{"handoff_packet": {"task_id": "shop.api", \u2026}}',
          severity=WARNING),
    _rule("HOF070", _OPTIONAL, "key for agentwatch is not a string",
          "`{key}` is {value}; agentwatch understands it only as a string.",
          why="`parent_task_id`, `mode`, `session_id`, `decision_id` and `restores` are not of the contract; "
          "agentwatch links tasks by them.",
          right='"parent_task_id": "shop"', wrong='"parent_task_id": 7', severity=WARNING),
    _rule("HOF071", _OPTIONAL, "`attempt` is not a positive integer",
          "`attempt` is {value}; agentwatch understands it only as an integer from 1 on.",
          why="`attempt` is not of the contract; agentwatch counts retries by it.",
          right='"attempt": 2', wrong='"attempt": "second"', severity=WARNING),
)
# fmt: on
