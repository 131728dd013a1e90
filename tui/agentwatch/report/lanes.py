"""The timeline of the page: a lane of bars for each task, all on one clock, drawn by positions without any style."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentwatch.delegation.task import State
from agentwatch.report.account import DecisionLine, Summary, TaskLine
from agentwatch.report.axis import Bar, Clock
from agentwatch.report.facts import lasted
from agentwatch.report.markup import Html, color, element
from agentwatch.view.looks import LOOKS
from agentwatch.view.times import span, utc
from agentwatch.view.words import plural

_SECONDS_BELOW: Final = 120.0
"""Seconds between two labels below which they show seconds, too."""

_LEAST: Final = 0.6
"""Percent of the lane that the shortest attempt takes: it must be seen."""


def lane(line: TaskLine, decisions: Sequence[DecisionLine], clock: Clock, now: float) -> Html:
    """The bars of one task, a mark for each decision, and what they say in words for those who cannot see them."""
    decided = [(one, one.at) for one in decisions if one.at is not None]
    words = "; ".join([*_words(line, now), *(f"{one.action} decided at {utc(at)}" for one, at in decided)])
    marks = (element("circle", cx=f"{clock.place(at):.2%}", cy="50%", r="4", class_="decision") for _, at in decided)
    return element(
        "svg",
        element("title", words or "no times known"),
        *(_drawn(bar) for bar in clock.bars(line)),
        *marks,
        class_="lane",
        role="img",
    )


def clock_face(clock: Clock) -> Html:
    """The times at the beginning, in the middle and at the end of the lanes."""
    begin, middle, end = moments = [clock.moment(place / 2) for place in range(3)]
    length = 19 if min(middle - begin, end - middle) < _SECONDS_BELOW else 16
    labels = []
    day = ""
    for at, x, side in zip(moments, ("0%", "50%", "100%"), ("start", "middle", "end"), strict=True):
        label = utc(at)[:length]
        # The day stands where it changes.
        labels.append(
            element("text", label[11:] if label[:10] == day else label[5:], x=x, y="75%", class_=f"at-{side}")
        )
        day = label[:10]
    return element("svg", *labels, class_="lane")


def cut_style(clock: Clock | None) -> str:
    """A style rule that marks the pauses which are left out, once for all lanes. Made of numbers alone."""
    if clock is None or not clock.cuts:
        return ""
    stops = ", ".join(
        f"transparent {cut.left:.3%}, var(--cut) {cut.left:.3%} {cut.right:.3%}, transparent {cut.right:.3%}"
        for cut in clock.cuts
    )
    return f".lane{{background-image:linear-gradient(to right, {stops})}}"


def shares(summary: Summary) -> Html | None:
    """All tasks as one bar, cut by state."""
    if not summary.tasks:
        return None
    parts = []
    begin = 0.0
    words = []
    for state in State:
        count = summary.by_state.get(state, 0)
        width = 100 * count / summary.tasks
        if count:
            parts.append(_block(begin, width, "0%", "100%", f"f-{color(LOOKS[state])}"))
            words.append(f"{count} {LOOKS[state].word}")
        begin += width
    label = f"{plural(summary.tasks, 'task')}: {', '.join(words)}"
    return element("svg", element("title", label), *parts, class_="shares", role="img")


def _drawn(bar: Bar) -> Html:
    begin, width = 100 * bar.begin, 100 * (bar.end - bar.begin)
    if bar.look is None:
        return element("line", x1=f"{begin:.2f}%", x2=f"{begin + width:.2f}%", y1="50%", y2="50%", class_="wait")
    width = max(width, _LEAST)
    return _block(min(begin, 100 - width), width, "20%", "60%", f"f-{color(bar.look)}{' open' if bar.open else ''}")


def _block(begin: float, width: float, top: str, height: str, class_: str) -> Html:
    return element("rect", x=f"{begin:.2f}%", y=top, width=f"{width:.2f}%", height=height, class_=class_)


def _words(line: TaskLine, now: float) -> Iterator[str]:
    waits = {wait.after_attempt: wait for wait in line.waits}
    for attempt, _, shown, took in line.attempts:
        began = f" from {utc(attempt.started_at)}" if attempt.started_at is not None else ""
        ran = f"{began}, {lasted(took)}" if took else began
        yield f"attempt {attempt.number} {shown.word}{ran}"
        if wait := waits.get(attempt.number):
            waited = span((now if wait.ended_at is None else wait.ended_at) - wait.began_at)
            yield f"has waited for {waited}" if wait.ended_at is None else f"then waited for {waited}"
