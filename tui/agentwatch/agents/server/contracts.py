"""The contracts as `get_contract` tells them: a purpose, a minimal valid example, the rules."""

from __future__ import annotations

from agentwatch.agents.examples import EXAMPLES, PURPOSES, Name
from agentwatch.agents.server.shapes import Rule, Told
from agentwatch.contracts.rules import RULES
from agentwatch.contracts.shapes import Contract


def told(name: Name) -> Told:
    """Everything about one contract; of the rules also those that hold for any document."""
    contract = Contract(name)
    rules = [
        Rule(id=rule.id, severity=rule.severity.value, wrong=rule.title, right=rule.right)
        for rule in RULES.values()
        if rule.contract in (contract, None)
    ]
    return Told(name=name, purpose=PURPOSES[name], example=EXAMPLES[name], rules=rules)
