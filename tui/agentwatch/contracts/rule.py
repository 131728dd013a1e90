"""One rule of a contract, and a short way to write it: `error(…).says(…).because(…).example(…)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Contract, Severity

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING


class Rule(NamedTuple):
    """A rule as `agentwatch rules` lists it and `--explain` tells it.

    `contract` is None for the rules that hold for any document. `section` is the heading of the contract's document
    that asks for it. `message` is a template: its `{names}` are filled with the facts of the place where the rule is
    broken. `right` and `wrong` are short examples. `warns_in` is the contract of which `check` takes an error for a
    warning.
    """

    id: str
    contract: Contract | None
    severity: Severity
    section: str
    title: str
    message: str = ""
    why: str = ""
    right: str = ""
    wrong: str = ""
    warns_in: Contract | None = None

    @property
    def level(self) -> str:
        """The severity in words, with the contract in which `check` only warns."""
        return f"{self.severity}; in a {self.warns_in} `check` only warns" if self.warns_in else self.severity.value

    def says(self, message: str) -> Rule:
        return self._replace(message=message)

    def because(self, why: str) -> Rule:
        return self._replace(why=why)

    def only_warns_in(self, contract: Contract) -> Rule:
        return self._replace(warns_in=contract)

    def example(self, right: str, wrong: str) -> Rule:
        return self._replace(right=right, wrong=wrong)


Maker = Callable[[str, str, str], Rule]


def makers(contract: Contract | None) -> tuple[Maker, Maker]:
    """What begins an error, and what begins a warning, of a contract: from its id, section and title."""
    return (
        lambda rule_id, section, title: Rule(rule_id, contract, ERROR, section, title),
        lambda rule_id, section, title: Rule(rule_id, contract, WARNING, section, title),
    )
