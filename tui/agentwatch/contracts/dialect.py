"""What returns in JSON say in several ways: how they ended, what blocks them, which files they made, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from agentwatch.contracts.checks import is_blank
from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown
from agentwatch.contracts.recognise import OUTSIDE_THE_ENUM, STAGE_WORDS
from agentwatch.contracts.shapes import Outcome
from agentwatch.text import folded

_SAID: Final = {
    Outcome.COMPLETED: "completed complete succeeded finished ok"
    " reviewed analyzed documented verified validated tested",
    Outcome.WORKING: "in_progress running started working pending"
    " researching planning implementing reviewing revising testing",
    Outcome.PARTIAL: "partial partially_completed partially_done partially_implemented",
    Outcome.BLOCKED: "blocked",
    Outcome.FAILED: "failed failure error",
}
_MEANS: Final[dict[str, Outcome]] = dict.fromkeys((*STAGE_WORDS, *OUTSIDE_THE_ENUM), Outcome.COMPLETED) | {
    word: outcome for outcome, words in _SAID.items() for word in words.split()
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

BLOCKERS: Final = ("blockers", "blocking_issues", "blocker", "blocking_issue")
_BLOCKER_TEXTS: Final = (
    *("description", "message", "issue", "reason", "summary"),
    *("blocker", "title", "text", "why_it_failed"),
)
_OVERCOME: Final = ("resolved", "fixed", "closed", "cleared")
_ENDED: Final = ("completed_at", "ended_at", "finished_at", "updated_at", "last_updated", "timestamp")
_BEGAN: Final = ("started_at", "created_at")
_PLACES: Final = ("metadata", "report_metadata")
_MOST_ATTEMPTS: Final = 1_000_000


def meaning(status: str) -> Outcome | None:
    """What a status means in any contract, None where that is not known for sure."""
    return _MEANS.get(_plain(status))


def _plain(status: str) -> str:
    return folded(status.strip()).replace(" ", "_").replace("-", "_")


def judge_status(status: object, findings: Findings) -> Outcome | None:
    """What the status of a return means, None where it means nothing known; what is wrong with the word is noted."""
    if not isinstance(status, str):
        return None
    meant = _plain(status)
    outcome = _MEANS.get(meant)
    if outcome is not None:
        if meant != status:
            findings.add("MET005", ("status",), value=shown(status), meant=meant)
        return outcome
    *others, last = meant.split("_")
    if last in _MENDING and others and others[-1] in _FAULTS:
        others.pop()
    is_finished = last in _FINISHING and _DOUBT.isdisjoint(others)
    findings.add("MET004" if is_finished else "MET003", ("status",), value=shown(status))
    return Outcome.COMPLETED if is_finished else None


def blockers(top: dict[str, Any], findings: Findings) -> list[str] | None:
    """What blocks, from `blockers` and its kin, without what did; None where there is none of them."""
    found: list[str] = []
    told = {key: top[key] for key in BLOCKERS if top.get(key) is not None}
    for key, value in told.items():
        entries = value
        if isinstance(value, str):
            entries = [value] if value.strip() else []
        elif isinstance(value, dict) and key in ("blocker", "blocking_issue"):
            entries = [value]
        if not isinstance(entries, list):
            findings.add("MET034", (key,), key=key, value=shown(value))
            continue
        for index, entry in enumerate(entries[:MAX_ENTRIES]):
            if isinstance(entry, dict) and folded(str(entry.get("status", ""))) in _OVERCOME:
                continue
            if (text := _blocker_text(entry)) is None:
                findings.add("MET034", (key, index), key=key, value=shown(entry))
            else:
                found.append(text)
    return found if told else None


def _blocker_text(entry: object) -> str | None:
    """The text of a blocker, of an object that of a key that is known, else of any."""
    texts: list[Any] = [entry]
    if isinstance(entry, dict):
        texts = [*(entry.get(key) for key in _BLOCKER_TEXTS), *entry.values()]
    return next((text for text in texts if isinstance(text, str) and not is_blank(text)), None)


def paths_in(raw: object) -> list[str]:
    """The paths of artifacts that were written as one string, or as an object of paths by kind."""
    values = list(raw.values())[:MAX_ENTRIES] if isinstance(raw, dict) else [raw]
    entries = (entry for value in values for entry in (value[:MAX_ENTRIES] if isinstance(value, list) else [value]))
    return [entry for entry in entries if isinstance(entry, str)][:MAX_ENTRIES]


def stated_at(top: dict[str, Any], outcome: Outcome | None) -> float | None:
    """The latest time in the keys that say when it ended, in seconds since the epoch; None where there is none.

    While it works, when it began is its last sign of life.
    """
    places = [top, *(inside for key in _PLACES if isinstance(inside := top.get(key), dict))]
    keys = _ENDED if outcome is not Outcome.WORKING else (*_ENDED, *_BEGAN)
    told = [text for place in places for key in keys if isinstance(text := place.get(key), str)]
    return max((at for text in told if (at := _moment(text)) is not None), default=None)


def _moment(text: str) -> float | None:
    """ISO 8601; without a zone it is taken as UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def attempt_of(top: dict[str, Any], rule: str, findings: Findings) -> int | None:
    """The attempt that a return says it answers, at its top or in its metadata; None where it says none. What is no
    number breaks the rule."""
    for place in ((), *((key,) for key in _PLACES)):
        holder = top.get(place[0]) if place else top
        value = holder.get("attempt") if isinstance(holder, dict) else None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_ATTEMPTS:
            return value
        if value is not None:
            findings.add(rule, (*place, "attempt"), value=shown(value))
    return None
