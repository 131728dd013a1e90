"""TOD: rules of the checklist that a child is given."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.catalogue.rule import WARNING, Rule, RuleMaker
from agentwatch.contracts.shapes import Contract

_rule = RuleMaker(Contract.HANDOFF_PACKET)
_REQUIRED = "Required characteristics"

# A table: a rule a paragraph.
# fmt: off
RULES: Final[tuple[Rule, ...]] = (
    _rule("TOD001", _REQUIRED, "line is no checklist item",
          "This line of the checklist has no checkbox; start it with `- [ ]`, `- [-]` or `- [x]`, or remove it.",
          why="Every line is a single atomic action: other lines are lost when the list becomes a reminders table.",
          right="- [ ] Read the schema", wrong="- Read the schema"),
    _rule("TOD002", _REQUIRED, "unknown checkbox",
          "The checkbox `[{mark}]` is not one of `[ ]` pending, `[-]` in progress and `[x]` done; use one of them.",
          why="A parent counts progress by the three canonical statuses; anything else counts as nothing.",
          right="- [-] Draft the API", wrong="- [~] Draft the API"),
    _rule("TOD003", _REQUIRED, "checkbox in another letter case", "The checkbox is `[X]`; write it as `[x]`.",
          why="The canonical status is a small x; the capital is understood here and may not be elsewhere.",
          right="- [x] Read the schema", wrong="- [X] Read the schema", severity=WARNING),
    _rule("TOD004", _REQUIRED, "item without an action", "This item has no text; name one action or remove the line.",
          why="Every line is a single atomic action; an empty one cannot be done.",
          right="- [ ] Read the schema", wrong="- [ ]"),
    _rule("TOD005", _REQUIRED, "several items on one line",
          "Several checkboxes stand on one line; give each action a line of its own.",
          why="Every line is a single atomic action: the second checkbox would be read as text.",
          right="- [ ] Read the schema\n- [ ] Draft the API", wrong="- [ ] Read the schema - [ ] Draft the API"),
    _rule("TOD006", _REQUIRED, "done before its turn",
          "This item is done while an earlier one is pending; keep the list in the order of execution.",
          why="The order of the list is the order of execution, so that the first open item is the next one.",
          right="- [x] Read the schema\n- [ ] Draft the API", wrong="- [ ] Read the schema\n- [x] Draft the API",
          severity=WARNING),
    _rule("TOD007", _REQUIRED, "nested item", "This item is indented; the checklist is one flat list.",
          why="Every line is a single atomic action in order; an item with items below it is not atomic.",
          right="- [ ] Draft the API", wrong="  - [ ] Draft the API", severity=WARNING),
    _rule("TOD008", _REQUIRED, "other list marker", "This item starts with `{marker}`; start it with `-`.",
          why="The canonical statuses are written `- [ ]`, `- [-]` and `- [x]`.",
          right="- [ ] Draft the API", wrong="* [ ] Draft the API", severity=WARNING),
    _rule("TOD009", _REQUIRED, "words beside the checklist",
          "This line stands beside the items of the checklist; it is left aside.",
          why="Every line is a single atomic action: other lines are lost when the list becomes a reminders table.",
          right="- [ ] Draft the API and its tests", wrong="- [ ] Draft the API\n  and its tests", severity=WARNING),
)
# fmt: on
