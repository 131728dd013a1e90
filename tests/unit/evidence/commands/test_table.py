"""More than two hundred claims, each with the verdict by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.commands.holding import hold
from agentwatch.evidence.commands.statements import statements_in
from tests.unit.evidence.commands.logs import LOGS, WORKSPACE, log_of
from tests.unit.evidence.commands.table import CLAIMS

_WORST = (Verdict.CONTRADICTED, Verdict.UNVERIFIABLE, Verdict.VERIFIED)


def verdict_on(log: str, kind: str, text: str) -> tuple[Verdict, str]:
    """What a text comes to: what it does not say stays unverifiable."""
    said = statements_in(text, by_clause=kind == "s", demanded=kind == "c")
    made = log_of(*LOGS[log])
    held = [hold(one, made, WORKSPACE, demanded=kind == "c") for one in said]
    if not held:
        return Verdict.UNVERIFIABLE, "nothing is said that could be held against a log"
    worst = min(held, key=lambda one: _WORST.index(one.verdict))
    return worst.verdict, worst.detail


@pytest.mark.parametrize(("log", "kind", "text", "verdict", "why"), CLAIMS)
def test_a_claim_against_what_was_run(log: str, kind: str, text: str, verdict: str, why: str) -> None:
    assert verdict_on(log, kind, text)[0] == verdict, f"{why}; told: {verdict_on(log, kind, text)[1]}"


def test_there_are_enough_of_each_and_every_log_is_used() -> None:
    counted = Counter(verdict for _, _, _, verdict, _ in CLAIMS)
    assert len(CLAIMS) >= 200
    assert min(counted.values()) >= 50
    assert {log for log, *_ in CLAIMS} == LOGS.keys()
