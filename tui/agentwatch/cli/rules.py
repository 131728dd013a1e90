"""List the rules, or explain one."""

from __future__ import annotations

import textwrap
from argparse import Namespace
from typing import Final

from agentwatch.arguments import did_you_mean
from agentwatch.cli.command import argument, format_of
from agentwatch.contracts.rules import Rule, read_rules
from agentwatch.decisions.delivery import RULES as DECISION_RULES
from agentwatch.errors import UsageError
from agentwatch.text import clean, indented, say

ARGUMENTS: Final = (
    argument("--explain", "ID", "why the rule is there, with a right and a wrong example"),
    format_of("text", "json"),
)
_WIDTH: Final = 100


def every_rule() -> dict[str, Rule]:
    """All rules, by id. Those of linking need the whole tree: the details and `tree --json` report them."""
    return read_rules() | {rule.id: rule for rule in DECISION_RULES}


def run(options: Namespace) -> int:
    """Print rules. Raises UsageError for one that is not there."""
    rules = every_rule()
    if options.explain:
        _explain(options.explain, rules)
    elif options.format == "json":
        fields = Rule._fields[: Rule._fields.index("warns_in")]
        say(indented({"rules": [dict(zip(fields, rule, strict=False)) for rule in rules.values()]}))
    else:
        width = max(len(rule.title) for rule in rules.values())
        for rule in rules.values():
            contract = rule.contract or "any"
            say(f"{rule.id}  {rule.severity:<7}  {contract:<15}  {rule.title:<{width}}  {rule.section}")
    return 0


def _explain(rule_id: str, rules: dict[str, Rule]) -> None:
    rule = rules.get(rule_id.upper())
    if rule is None:
        hint = did_you_mean(rule_id.upper(), rules, most=3) or "`agentwatch rules` lists them"
        raise UsageError(f"there is no rule {clean(rule_id, 40)}; {hint}")
    say(f"{rule.id} {rule.title} ({rule.level})\n{rule.contract or 'any contract'}, {rule.section}\n")
    say(textwrap.fill(rule.why, _WIDTH))
    for heading, example in (("Right", rule.right), ("Wrong", rule.wrong)):
        if example:
            say(f"\n{heading}:\n{textwrap.indent(example, '    ')}")
