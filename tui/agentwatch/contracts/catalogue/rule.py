"""One rule of a contract, and short ways to write a list of them."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class RuleMaker:
    """Makes the rules of one contract; each method returns rules as one `RULES` tuple lists them."""

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

    def missing(
        self,
        rule_id: str,
        section: str,
        key: str,
        kind: str,
        *,
        why: str,
        right: str,
        severity: Severity = ERROR,
    ) -> Rule:
        """A key that must be there. `kind` is what it holds, with its article: "a string"."""
        missing = "missing or empty" if kind.startswith("a string") else "missing"
        message = f"`{key}` is {missing}; add it as {kind}."
        wrong = f"(no `{key}`)"
        return Rule(rule_id, self.contract, severity, section, f"`{key}` missing", message, why, right, wrong)

    def type(
        self,
        rule_id: str,
        section: str,
        key: str,
        kind: str,
        *,
        right: str,
        wrong: str,
        why: str = "",
        severity: Severity = ERROR,
    ) -> Rule:
        """A key whose value has another JSON type than the contract says."""
        message = f"`{key}` is {{value}}; it must be {kind}."
        why = why or f"Readers rely on `{key}` being {kind}; anything else makes them fail or guess."
        title = f"`{key}` is not {kind}"
        return Rule(rule_id, self.contract, severity, section, title, message, why, right, wrong)

    def entry(
        self,
        rule_id: str,
        section: str,
        key: str,
        kind: str,
        *,
        right: str,
        wrong: str,
        severity: Severity = ERROR,
    ) -> Rule:
        """An entry of an array that has another type than the contract says."""
        message = f"An entry of `{key}` is {{value}}; each must be {kind}."
        why = f"Readers go through `{key}` and expect {kind} each time."
        title = f"entry of `{key}` is not {kind}"
        return Rule(rule_id, self.contract, severity, section, title, message, why, right, wrong)

    def value(
        self,
        rule_id: str,
        section: str,
        key: str,
        words: str,
        *,
        why: str,
        right: str,
        wrong: str,
        severity: Severity = ERROR,
    ) -> Rule:
        """A word outside the allowed ones. `words` lists them as a sentence does."""
        message = f"`{key}` is {{value}}; it must be {words}."
        title = f"`{key}` has a value that is not allowed"
        return Rule(rule_id, self.contract, severity, section, title, message, why, right, wrong)

    def case(self, rule_id: str, section: str, key: str, *, right: str, wrong: str) -> Rule:
        """An allowed word in other letters: tolerated."""
        message = f"`{key}` is {{value}}; write it as `{{meant}}`."
        why = "Parsers compare the word exactly; another letter case is understood here and may not be elsewhere."
        title = f"`{key}` in another letter case"
        return Rule(rule_id, self.contract, WARNING, section, title, message, why, right, wrong)
