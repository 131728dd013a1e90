"""The words that return-meta writes as a status, and what each means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.findings import shown
from agentwatch.contracts.shapes import Outcome
from agentwatch.text import folded

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

STAGE_WORDS: Final = frozenset(
    {
        "in_progress",
        "researched",
        "planned",
        "implemented",
        "tasks_created",
        "report_written",
        "assembled",
        "plan_created",
        "plan_written",
        "summary_written",
        "synthesized",
        "revised",
    }
)
"""Words that only this dialect uses: one of them as a status tells it from a subagent-return."""

EVERYDAY: Final = frozenset({"in_progress", "planned", "implemented", "revised", "assembled"})
"""Those of them that any program may use."""

OUTSIDE_THE_ENUM: Final = ("done", "success")
"""Words that many programs use: they tell it only from a subagent-return, whose enum they are not in."""

_MEANS: Final[dict[str, Outcome]] = {
    **dict.fromkeys(STAGE_WORDS, Outcome.COMPLETED),
    **dict.fromkeys(OUTSIDE_THE_ENUM, Outcome.COMPLETED),
    **dict.fromkeys(("completed", "complete", "succeeded", "finished", "ok"), Outcome.COMPLETED),
    **dict.fromkeys(("reviewed", "analyzed", "documented", "verified", "validated", "tested"), Outcome.COMPLETED),
    **dict.fromkeys(("in_progress", "running", "started", "working", "pending"), Outcome.WORKING),
    **dict.fromkeys(("researching", "planning", "implementing", "reviewing", "revising", "testing"), Outcome.WORKING),
    **dict.fromkeys(("partial", "partially_completed", "partially_done", "partially_implemented"), Outcome.PARTIAL),
    "blocked": Outcome.BLOCKED,
    **dict.fromkeys(("failed", "failure", "error"), Outcome.FAILED),
}
_FINISHING: Final = frozenset(
    """
    added analysed analyzed answered applied approved archived assembled assessed audited benchmarked built
    checked cleaned closed collected committed compared compiled complete completed composed configured converted
    corrected created debugged decomposed defined deleted delivered deployed described designed developed
    diagnosed documented done drafted edited elaborated enhanced estimated evaluated executed explored exported
    extended extracted finalised finalized finished fixed formalised formalized formatted formulated gathered
    generated identified implemented imported improved indexed inspected installed integrated investigated listed
    made mapped measured merged migrated modeled modelled moved optimised optimized organised organized outlined
    packaged passed polished ported prepared prioritised prioritized produced profiled prototyped proved proven
    published pushed ready rebased recorded refactored refined released removed renamed rendered repaired replaced
    reported researched resolved restructured reviewed revised rewritten saved scaffolded scoped selected
    simplified sketched solved specified structured studied summarised summarized synthesised synthesized tested
    traced transformed translated triaged updated validated verified wired written
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Verbs of making: alone, or as the last part of a word (`tasks_created`), they say that a stage has been finished."""

_DOUBT: Final = frozenset(
    """
    abandoned aborted almost be being blocked blocker blockers canceled cancelled cannot conflict conflicts crash
    crashed deferred denied dropped error errors fail failed failing failure failures few half halted if
    incomplete incompletely interrupted killed lost merely mostly nearly need needed needs never no non none not
    nothing only part partial partially partly paused pending poorly postponed refused rejected semi should
    skipped some stalled stopped suspended terminated timed timeout to unable unless unresolved until when without
    wrongly
    """.split()  # noqa: SIM905 - a line for each would fill a page
)
"""Parts of a word that say that it was not, or not all: `not_ready`, `errors_generated`."""

_MENDING: Final = frozenset({"corrected", "fixed", "repaired", "resolved", "solved"})
_FAULTS: Final = frozenset({"blocker", "blockers", "conflict", "conflicts", "error", "errors", "failure", "failures"})
"""What is mended where a verb of mending follows: `conflicts_resolved`."""


def meaning(status: str) -> Outcome | None:
    """What a status means in any contract, None where that is not known for sure."""
    return _MEANS.get(_plain(status))


def _plain(status: str) -> str:
    return folded(status.strip()).replace(" ", "_").replace("-", "_")


def judge_status(top: dict[str, Any], judgement: Judgement) -> Outcome | None:
    """What the status of a return means, None where it means nothing known; what is wrong with the word is noted."""
    status = top.get("status")
    if not isinstance(status, str):
        return None
    meant = _plain(status)
    outcome = _MEANS.get(meant)
    if outcome is not None:
        if meant != status:
            judgement.add("MET005", ("status",), value=shown(status), meant=meant)
        return outcome
    *others, last = meant.split("_")
    mended = last in _MENDING and others and others[-1] in _FAULTS
    if last in _FINISHING and _DOUBT.isdisjoint(others[:-1] if mended else others):
        judgement.add("MET004", ("status",), value=shown(status))
        return Outcome.COMPLETED
    judgement.add("MET003", ("status",), value=shown(status))
    return None
