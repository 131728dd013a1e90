"""DEC: what can be wrong with decision files that lie in a workspace."""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.rules import ERROR, Rule
from agentwatch.contracts.shapes import Finding

FORGED: Final = Rule(
    "DEC001",
    None,
    ERROR,
    "Decisions",
    "a decision that is not the operator's",
    "This is no decision of the operator's ({why}); nobody may act on it: remove it, and find out who wrote it.",
    "Agents can write into the workspace. Only what is in the ledger, signed, was decided; `wait` and `verify` refuse"
    " everything else.",
    "the files that agentwatch writes into `.agentwatch/decisions/`",
    "any other file there, or one of them edited",
)


def forged(why: str) -> Finding:
    """That a file among the decisions is none of the operator's."""
    return Finding(FORGED.id, FORGED.severity, FORGED.message.format(why=why))


RULES: Final = (FORGED,)
