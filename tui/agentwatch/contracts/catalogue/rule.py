"""One rule of a contract, and a short way to write a list of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Contract, Severity

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING


class Rule(NamedTuple):
    """A rule as `agentwatch rules` lists it and `--explain` tells it.

    `contract` is None for the rules that hold for any document. `section` is the heading of the contract's document
    that asks for it. `message` is a template: its `{names}` are filled with the facts of the place where the rule is
    broken. `right` and `wrong` are short examples.
    """

    id: str
    contract: Contract | None
    severity: Severity
    section: str
    title: str
    message: str
    why: str
    right: str
    wrong: str


class RuleMaker(NamedTuple):
    """Makes the rules of one contract that are written out; most rules of fields come from `contracts.rows`."""

    contract: Contract | None

    def __call__(
        self,
        rule_id: str,
        section: str,
        title: str,
        message: str,
        *,
        why: str,
        right: str,
        wrong: str,
        severity: Severity = ERROR,
    ) -> Rule:
        """One rule, all of it written out."""
        return Rule(rule_id, self.contract, severity, section, title, message, why, right, wrong)
