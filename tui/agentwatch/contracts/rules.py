"""The catalogue: every rule of every contract, by its stable id.

The rules of one contract stand together in one module of `catalogue`; this module says what a rule is and joins them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentwatch.contracts.catalogue import (
    document,
    error_propagation,
    handoff,
    report,
    return_format,
    return_meta,
    subagent_return,
    todos,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentwatch.contracts.catalogue.rule import Rule

_ALL: Final = (
    *document.RULES,
    *handoff.RULES,
    *todos.RULES,
    *return_format.RULES,
    *error_propagation.RULES,
    *subagent_return.RULES,
    *return_meta.RULES,
    *report.RULES,
)

RULES: Final[Mapping[str, Rule]] = {rule.id: rule for rule in _ALL}
"""Rules by id, in the order of the catalogue."""
