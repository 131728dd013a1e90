"""Collects the rules that a document breaks, and turns them into findings with lines at the end."""

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


class Findings:
    """The rules that a document breaks, each with its line or its place.

    `first_line` is the number of a text's first line in its file; places are told from `at` on.
    """

    __slots__ = ("_noted", "at", "first_line")

    def __init__(self, first_line: int = 1) -> None:
        self._noted: list[tuple[str, Location | int, dict[str, object]]] = []
        self.at: Location = ()
        self.first_line = first_line

    def add(self, rule: str, where: Location | int, **facts: object) -> None:
        """Break `rule` at a line (1-based), or at a place, the line of which is looked up at the end."""
        self._noted.append((rule, where if isinstance(where, int) else (*self.at, *where), facts))

    def add_in(self, rule: str, index: int, **facts: object) -> None:
        """Break `rule` at a line of the text, by its index from 0."""
        self._noted.append((rule, self.first_line + index, facts))

    def made(self, line_of: Callable[[Location], int | None] = lambda _: None) -> tuple[Finding, ...]:
        """The findings in the order of their lines, at most `LIMIT`: errors stay before warnings."""
        if not self._noted:
            return ()
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        for rule_id, where, facts in self._noted:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] <= LIMIT_OF_ONE_RULE:
                rule = RULES[rule_id]
                # Without facts it is the same wherever the rule is broken: one string for all documents.
                message = rule.message.format(**facts) if facts else intern(rule.message.format())
                made.append(
                    Finding(rule_id, rule.severity, message, where if isinstance(where, int) else line_of(where))
                )
        left_out = len(self._noted) - len(made)
        if left_out or len(made) > LIMIT:
            made.sort(key=lambda finding: finding.severity is not Severity.ERROR)
            left_out += max(len(made) - (LIMIT - 1), 0)
            del made[LIMIT - 1 :]
        made.sort(key=lambda finding: finding.line or 0)
        if left_out:
            rule = RULES["DOC010"]
            made.append(Finding(rule.id, rule.severity, rule.message.format(count=left_out)))
        return tuple(made)
