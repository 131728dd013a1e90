"""The catalogue: every rule of every contract, by its stable id.

A rule stands in the row of its field, in the model of its contract, or is written out beside it. The models take long
to load: a rule is looked up where its document is read, and only who goes through all loads all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agentwatch.contracts.rule import Rule

_MODULES: Final = {
    "DOC": "document_rules",
    "HOF": "handoff",
    "TOD": "todos",
    "RET": "return_format",
    "ERR": "return_format",
    "SUB": "subagent_return",
    "MET": "return_meta",
    "REP": "report",
}
"""The module that has the rules, by how their ids begin."""
_SCHEMAS: Final = {"handoff-packet": "HOF", "subagent-return": "SUB", "return-meta": "MET", "report-contract": "REP"}
CONTRACTS_IN_JSON: Final = tuple(_SCHEMAS)


def schema_of(contract: str) -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, of one of CONTRACTS_IN_JSON."""
    return dict(_module(_SCHEMAS[contract]).TABLE.schema())


def _module(prefix: str) -> Any:
    return import_module(f"agentwatch.contracts.{_MODULES[prefix]}")


@cache
def _of(prefix: str) -> Mapping[str, Rule]:
    module = _module(prefix)
    rules: Iterable[Rule] = module.TABLE.rules.values() if hasattr(module, "TABLE") else module.RULES
    return {rule.id: rule for rule in rules if rule.id.startswith(prefix)}


class _Catalogue(Mapping[str, "Rule"]):
    def __getitem__(self, rule_id: str) -> Rule:
        return _of(rule_id[:3])[rule_id]

    def __contains__(self, rule_id: object) -> bool:
        return isinstance(rule_id, str) and rule_id[:3] in _MODULES

    def __iter__(self) -> Iterator[str]:
        for prefix in _MODULES:
            yield from _of(prefix)

    def __len__(self) -> int:
        return sum(1 for _ in self)


RULES: Final = _Catalogue()
"""Rules by id, in the order of the catalogue."""
