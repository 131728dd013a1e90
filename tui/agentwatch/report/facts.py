"""What a report tells of each task and attempt: facts under labels, and tables. Each face writes them in its own way.

Every text is foreign and unsanitised, but for our own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from agentwatch.contracts.shapes import Finding, Return
from agentwatch.delegation.asks import request_words
from agentwatch.delegation.task import Attempt, State, Task
from agentwatch.report.account import DecisionLine, TaskLine
from agentwatch.view.looks import SEVERITIES, VERDICTS, claims_of
from agentwatch.view.requests import standing_words
from agentwatch.view.times import Took, span
from agentwatch.view.words import ADVICE, BASES, Agreement, answer, mode_of, model_of, prompt, retries_left


def lasted(took: Took | None) -> str:
    """How long something took, in its two largest units; `-` where that is not known."""
    if took is None:
        return "-"
    return f"{span(took.seconds)} so far" if took.so_far else span(took.seconds)


class Fact(NamedTuple):
    """What a report tells of a task or an attempt under its label: foreign texts, and what stands `behind` them.

    `kind` says what they are: lines, prose, code such as ids and paths, a task's id, or our own words.
    """

    label: str
    kind: Literal["line", "prose", "code", "task", "own"]
    texts: tuple[str, ...]
    behind: str = ""


def facts(line: TaskLine) -> Iterator[Fact]:
    """What is told of a task beside its state, its checklist and its attempts."""
    task = line.task
    if line.why:
        yield Fact("why", "line", (line.why,))
    if task.title not in task.task_id:
        yield Fact("title", "line", (task.title,))
    if task.parent_id is not None:
        yield Fact("below", "task", (task.parent_id,), BASES[task.parent_basis])
    if task.state is not State.COMPLETED and not task.inferred and not task.is_session:
        advice = filter(None, (retries_left(task.retry), ADVICE[task.retry.recommended]))
        yield Fact("retries", "own", (", ".join(advice),))
    if task.retry.hint:
        yield Fact("hint", "prose", (task.retry.hint,))
    if task.deleted:
        yield Fact("files", "own", ("deleted since; the history remembers them",))
    if (signed := line.statement) is not None:
        since = "" if signed.current else "; the handoff or the return is another one now"
        said = f"says {signed.state} of attempt {signed.attempt}, {signed.made_at}, key {signed.keyid[:16]}{since}"
        yield Fact("statement", "code", (signed.sha256,), said)


def said(attempt: Attempt) -> Iterator[Fact]:
    """What was asked in an attempt and what came back, and where it stands."""
    packet, result = attempt.packet, attempt.result
    if packet and not packet.objective:
        yield Fact("asked", "own", ("the handoff states no objective",))
    elif asked := packet.objective if packet else prompt(attempt):
        yield Fact("asked", "prose", (asked,))
    if result:
        yield from _returned(result, others_say(attempt))
    elif answered := answer(attempt):
        yield Fact("answered", "prose", (answered,))
    if attempt.session_id:
        yield Fact("session", "code", (attempt.session_id,))
    if attempt.handoff:
        yield Fact("handoff", "code", (attempt.handoff.path,))
    if attempt.returned:
        yield Fact("return", "code", (attempt.returned.path,), f"sha256 {attempt.returned.digest[:12]}")


def _returned(result: Return, others: str) -> Iterator[Fact]:
    summary = (result.summary,) if result.summary else ("without a summary",)
    yield Fact("returned", "prose" if result.summary else "own", summary)
    if result.reported_state:
        yield Fact("reported", "line", (result.reported_state,))
    error = ": ".join(part for part in (result.error_code, result.error_message) if part)
    for label, texts in (
        ("error", (error,)),
        ("blocked by", result.blockers),
        ("limitation", result.limitations),
        ("hint", (result.retry_hint,)),
        ("next", (result.next_steps,)),
        ("review", (result.review_reason,)),
    ):
        if told := tuple(filter(None, texts)):
            yield Fact(label, "prose", told)
    if result.confidence is not None:
        yield Fact("confidence", "own", (f"{result.confidence:.2f}",))
    if result.model or result.mode:
        ran = " in mode ".join(part for part in (result.model or "model not reported", result.mode) if part)
        yield Fact("model", "line", (ran,), f"differs: {others}" if others else "attested")


class Grid(NamedTuple):
    """A table of a report: its columns with the kind of their cells, a look, a time in seconds, or one of `Fact`."""

    title: str
    noun: str
    columns: dict[str, str]
    rows: Sequence[tuple[Any, ...]]


_DECIDED: Final = dict.fromkeys(("attempt", "decision", "note", "by", "receipt"), "line") | {"note": "prose"}
_REQUESTED: Final = {"what": "prose", "answer": "line", "by": "line"}
_CLAIMED: Final = {"verdict": "look", "claim": "line", "of": "code", "because": "line"}
_UNSAID: Final = {"kind": "line", "what": "code"}
_BROKEN: Final = {"severity": "look", "rule": "code", "place": "code", "what to do": "line"}


def grids(task: Task, decided: Sequence[DecisionLine]) -> Iterator[Grid]:
    """What was decided on a task, what its program asked, what its returns claim and do not say, and the rules that
    they break, as far as there is any."""
    if decided:
        rows = [(one.at, str(one.attempt), one.action, one.note, one.operator, one.receipt) for one in decided]
        yield Grid("Decisions", "decision", {"decided (UTC)": "time", **_DECIDED}, rows)
    if task.requests:
        asked = sorted(task.requests, key=lambda one: one.asked_at)
        requests = [(one.asked_at, request_words(one), standing_words(one, one.asked_at), one.by) for one in asked]
        yield Grid("Requests", "request", {"asked (UTC)": "time", **_REQUESTED}, requests)
    if task.claims:
        claims = [(VERDICTS[one.verdict], one.kind.replace("_", " "), one.path, one.detail) for one in claims_of(task)]
        yield Grid("Claims", "claim", _CLAIMED, claims)
    if task.unsaid:
        deeds = [(deed.call.at, deed.kind, deed.what) for deed in task.unsaid]
        yield Grid("Done and not said", "deed", {"done (UTC)": "time", **_UNSAID}, deeds)
    if task.findings:
        yield broken(task.findings)


def broken(findings: Sequence[Finding]) -> Grid:
    """Broken rules and where."""
    rows = [
        (SEVERITIES[one.severity], one.rule, f"{one.path}:{one.line}" if one.line else one.path, one.message)
        for one in findings
    ]
    return Grid("Findings", "finding", _BROKEN, rows)


def others_say(attempt: Attempt) -> str:
    """What others say of the model and the mode that a return names, where that is something else; else ""."""
    result, packet = attempt.result, attempt.packet
    if result is None:
        return ""
    both = ("recorded as", model_of(result.model, attempt.run)), ("the handoff asked for", mode_of(result.mode, packet))
    return "; ".join(f"{words} {one.known}" for words, one in both if one.agreement is Agreement.DIFFERS)
