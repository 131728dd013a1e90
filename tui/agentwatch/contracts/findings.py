"""Collects what a document breaks, and turns it into findings with lines at the end."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Final

from agentwatch.contracts.rules import RULES
from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.text import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentwatch.contracts.json_text import Location

MAX_ENTRIES: Final = 1_000
"""Entries of one list that are read and judged."""

LIMIT_OF_ONE_RULE: Final = 20
"""Findings of one rule that are kept: a list of a thousand wrong entries says the same thing a thousand times."""

LIMIT: Final = 100
"""Findings of one document that are kept, the last of them saying how many more there are."""

_SHOWN: Final = 60


def shown(value: object) -> str:
    """A foreign value inside a message, short and safe."""
    if isinstance(value, str):
        return quoted(value, _SHOWN)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Python refuses to print integers of more than 4,300 digits.
        return str(value) if value.bit_length() <= 64 else "a huge number"
    if isinstance(value, float):
        return repr(value)
    return "an array" if isinstance(value, list) else "an object"


class Judgement:
    """The rules that a document breaks, each with the location or the line where.

    `first_line` is the number of a text's first line in the file it stands in.
    """

    __slots__ = ("_at", "_noted", "first_line")

    def __init__(self, first_line: int = 1) -> None:
        self._noted: list[tuple[str, Location, int | None, dict[str, object]]] = []
        self._at: Location = ()
        self.first_line = first_line

    def add(self, rule: str, location: Location, **facts: object) -> None:
        """Break `rule` at a location; its line is looked up when the findings are made."""
        self._noted.append((rule, (*self._at, *location), None, facts))

    def inside(self, key: str) -> Judgement:
        """This judgement for what stands below a key: locations are told from there."""
        part = Judgement()
        part._noted, part._at = self._noted, (*self._at, key)
        return part

    def add_at(self, rule: str, line: int | None, **facts: object) -> None:
        """Break `rule` at a line that is known already (1-based)."""
        self._noted.append((rule, (), line, facts))

    def add_in(self, rule: str, index: int, **facts: object) -> None:
        """Break `rule` at a line of the text, by its index from 0."""
        self._noted.append((rule, (), self.first_line + index, facts))

    def findings(self, line_of: Callable[[Location], int | None] = lambda _: None) -> tuple[Finding, ...]:
        """The findings in the order of their lines, at most `LIMIT` of them.

        Where some are left out, errors stay before warnings, and the last finding counts what is missing.
        """
        if not self._noted:
            return ()
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        left_out = 0
        for rule_id, location, line, facts in self._noted:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] > LIMIT_OF_ONE_RULE:
                left_out += 1
                continue
            rule = RULES[rule_id]
            # Without facts it is the same wherever the rule is broken: one string for all documents.
            message = rule.message.format(**facts) if facts else intern(rule.message.format())
            made.append(Finding(rule_id, rule.severity, message, line or line_of(location)))
        if left_out or len(made) > LIMIT:
            made.sort(key=lambda finding: finding.severity is not Severity.ERROR)
            left_out += max(len(made) - (LIMIT - 1), 0)
            del made[LIMIT - 1 :]
        made.sort(key=lambda finding: finding.line or 0)
        if left_out:
            rule = RULES["DOC010"]
            made.append(Finding("DOC010", rule.severity, rule.message.format(count=left_out), None))
        return tuple(made)
