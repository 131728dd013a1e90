"""What a row says of its task in words: what is done about it, what it does, who does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agentwatch.app.decision_words import Short
from agentwatch.app.widgets.cells import shown, summary
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State, Task
from agentwatch.view.looks import STALE
from agentwatch.view.requests import standing_words
from agentwatch.view.words import doing_words, program_of, waits_for

if TYPE_CHECKING:
    from agentwatch.app.widgets.task_line import Columns


def doing_of(task: Task, decided: Short | None, columns: Columns, tasks: Mapping[str, Task]) -> Sequence[str]:
    """What is done about a task, or what it does, for which its title gives way; the longest words first."""
    if decided and task.decision is not None and columns.tells:
        glyph, words = decided
        action = "answer" if task.decision.action is Action.RESPOND else task.decision.action
        return f"{action} {glyph} {words}", f"{glyph} {words}"
    if (request := task.request) is not None and not request.waits_for_operator:
        # How far an answer has got does not change with the clock.
        return [standing_words(request, request.asked_at)]
    words = "" if task.did is None else shown(doing_words(task.did))
    if task.state is State.UNKNOWN:
        return _lost(task, words)
    if task.stale:
        gone = "process gone" if task.run is not None and task.run.process_gone else "" if columns.state else STALE.word
        told = [part for part in (gone, words and f"last: {words}") if part]
        return [" · ".join(told)] if told else []
    if waits_for(task, tasks):
        return []
    program = _program(task)
    return [f"{program} · {words}", words] if program and words else [words] if words else []


def _lost(task: Task, words: str) -> Sequence[str]:
    """What was known of a task when it was last heard of, in these words; of a workspace, why nothing is known now."""
    if task.workspace:
        return [shown(task.why)] if task.why else []
    was = f"was {task.known_state}"
    return [f"{was} · last: {words}", was] if words else [was]


def who_of(task: Task, columns: Columns, tasks: Mapping[str, Task]) -> Sequence[str]:
    """For how many a task waits, or why it failed, else who does it, where that has no column; the longest words first.

    A title does not give way to it.
    """
    code = _reason(task) if task.state is State.FAILED else ""
    waiting = waits_for(task, tasks)
    if code and not waiting and task.result is not None and (told := summary(task.result.summary or "")):
        return told, summary(code, 60)
    who = "" if columns.agent else agent_of(task)
    names = [f"waits for {waiting:,}" if waiting else summary(code, 60) if code else who, _program(task)]
    some = [name for name in names[::-1] if name]
    return [" · ".join(some), *some[-1:]] if some else []


def _reason(task: Task) -> str:
    """Why it failed, in few words."""
    if task.result is not None:
        return task.result.error_code or ""
    return task.run.reason if task.run is not None else ""


def agent_of(task: Task) -> str:
    """Who does it, "" where the title says that."""
    # Many a task has only its agent's name as a title: once is enough.
    return shown(task.agent, 60) if task.agent and task.agent != task.title else ""


def _program(task: Task) -> str:
    return shown(program_of(task.run.source), 12) if task.is_session and task.run is not None else ""
