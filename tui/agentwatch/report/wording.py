"""How an account is said: the verdict in one paragraph, looks, times and spans. Pure functions for every format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from agentwatch.delegation.task import Attempt, State
from agentwatch.view.runtime import Agreement, mode_of, model_of
from agentwatch.view.times import Took, span
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.report.account import Summary, TaskLine


_COUNTED: Final = {
    State.PARTIAL: "returned a part",
    State.INVALID: "broke {its} contract",
    State.FAILED: "failed",
    State.BLOCKED: "{is} blocked",
    State.ESCALATED: "{is} escalated",
    State.RETRYING: "{is} to be tried again",
    State.WORKING: "{is} working",
    State.SUBMITTED: "{has} not begun",
    State.CANCELED: "{was} canceled",
}


def verdict_of(summary: Summary, *, unseen: int = 0) -> str:
    """The state of a session in one paragraph of our own words and numbers; `unseen` places could not be read."""
    return " ".join(_sentences(summary, unseen))


def _sentences(summary: Summary, unseen: int) -> Iterator[str]:
    if not summary.tasks:
        yield "No handoffs or returns were found."
        if unseen:
            yield f"{plural(unseen, 'place')} could not be read."
        return
    completed = summary.by_state.get(State.COMPLETED, 0)
    lying = completed - summary.verified - summary.unchecked
    parts = [
        f"{count:,} {words}"
        for count, words in (
            (summary.verified, "verified"),
            (lying, "contradicted by the evidence"),
            (summary.unchecked, "with nothing that could be verified"),
        )
        if count
    ]
    done = f"{completed:,} done ({', '.join(parts)})" if parts else "none done"
    yield f"{plural(summary.tasks, 'task')}, {done}."
    others = [_counted(state, count) for state in _COUNTED if (count := summary.by_state.get(state, 0))]
    if others:
        yield f"{', '.join(others)}."
    elsewhere = summary.contradicted - lying
    if elsewhere:
        yield f"{elsewhere:,} that returned a part {'claims' if elsewhere == 1 else 'claim'} something false."
    if summary.stale:
        yield f"{summary.stale:,} of the working ones {'is' if summary.stale == 1 else 'are'} silent for too long."
    if unseen:
        yield f"{plural(unseen, 'place')} could not be read."
    needs, seen = summary.needs_operator, " that could be seen" if unseen else ""
    yield f"{needs:,} {'needs' if needs == 1 else 'need'} a human." if needs else f"Nothing{seen} needs a human."


def _counted(state: State, count: int) -> str:
    one = count == 1
    words = {
        "is": "is" if one else "are",
        "has": "has" if one else "have",
        "was": "was" if one else "were",
        "its": "its" if one else "their",
    }
    return f"{count:,} {_COUNTED[state].format(**words)}"


def lasted(took: Took | None) -> str:
    """How long something took, in its two largest units; `-` where that is not known."""
    if took is None:
        return "-"
    return f"{span(took.seconds)} so far" if took.so_far else span(took.seconds)


def unclaimed(line: TaskLine) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The changes that no return claims, with what is known of who made them."""
    if line.unclaimed.alone:
        yield "changed, and not claimed", line.unclaimed.alone
    if line.unclaimed.unattributed:
        yield "changed by this one or another", line.unclaimed.unattributed


def others_say(attempt: Attempt) -> str:
    """What others say of the model and the mode that a return names, where that is something else; else ""."""
    result, packet = attempt.result, attempt.packet
    if result is None:
        return ""
    both = ("recorded as", model_of(result.model, attempt.run)), ("the handoff asked for", mode_of(result.mode, packet))
    return "; ".join(f"{words} {one.known}" for words, one in both if one.agreement is Agreement.DIFFERS)
