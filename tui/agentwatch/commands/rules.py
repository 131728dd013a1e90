"""`agentwatch rules`: what each rule of `check` asks for, and why."""

from __future__ import annotations

import textwrap
from typing import Final

from agentwatch.arguments import did_you_mean
from agentwatch.contracts.rules import Rule, contract_rules
from agentwatch.decisions.rules import RULES as DECISION_RULES
from agentwatch.delegation.links import RULES as LINK_RULES
from agentwatch.errors import UsageError
from agentwatch.sources.files.read import RULES as FILE_RULES
from agentwatch.text import clean, indented, say

_WIDTH: Final = 100


def every_rule() -> dict[str, Rule]:
    """All rules, by id. Those of linking need the whole tree: the details and `tree --json` report them."""
    return {**contract_rules(), **{rule.id: rule for rule in (*FILE_RULES, *LINK_RULES, *DECISION_RULES)}}


def list_rules(output: str = "text") -> int:
    """Print all rules: "text" is a table, "json" a list with every field. Returns 0."""
    rules = every_rule().values()
    if output == "json":
        fields = Rule._fields[: Rule._fields.index("warns_in")]
        say(indented({"rules": [dict(zip(fields, rule, strict=False)) for rule in rules]}))
        return 0
    width = max(len(rule.title) for rule in rules)
    for rule in rules:
        contract = rule.contract or "any"
        say(f"{rule.id}  {rule.severity:<7}  {contract:<15}  {rule.title:<{width}}  {rule.section}")
    return 0


def explain(rule_id: str) -> int:
    """Print why a rule is there, with a right and a wrong example. Returns 0; raises UsageError for an unknown id."""
    rules = every_rule()
    rule = rules.get(rule_id.upper())
    if rule is None:
        hint = did_you_mean(rule_id.upper(), rules, most=3) or "`agentwatch rules` lists them"
        raise UsageError(f"there is no rule {clean(rule_id, 40)}; {hint}")
    say(f"{rule.id} {rule.title} ({rule.level})")
    say(f"{rule.contract or 'any contract'}, {rule.section}")
    say("")
    say(textwrap.fill(rule.why, _WIDTH))
    for heading, example in (("Right", rule.right), ("Wrong", rule.wrong)):
        if example:
            say("")
            say(f"{heading}:")
            say(textwrap.indent(example, "    "))
    return 0
