"""How a task and the one above it stand, since when, and in which words, as sessions and their requests tell."""

from dataclasses import replace

import pytest

from agentwatch.delegation.events import Activity, ActivityKind, Aside, Noted, Put, Requested, Run, RunState, Tick, Turn
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import Task
from agentwatch.view.words import a2a_state, held_up, took
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import ROOT, child, message, ran, returned, tree_of

NOW = 1_000.0
CALL = Activity(105.0, ActivityKind.TOOL, "Task", "build")
BASH = Activity(990.0, ActivityKind.TOOL, "Bash", "make")
HANDS_ON = replace(ROOT, doing=CALL, updated_at=105.0)
TYPES = replace(ROOT, doing=BASH, updated_at=990.0)
ENDED = replace(ROOT, state=RunState.ENDED, said=message(None), ended_at=900.0, updated_at=900.0)
AT_WORK = child("b", updated_at=990.0)
QUIET = child("b", updated_at=280.0)
KILLED = replace(QUIET, process_gone=True)
UNBEGUN = child("c", RunState.SUBMITTED, started_at=900.0)
FAILED = child("b", RunState.FAILED, ended_at=500.0, reason="refused")
DONE = child("b", RunState.ENDED, said=message(returned("completed")), ended_at=600.0)
TURNED = replace(TYPES, rounds=(Turn(100.0), Turn(950.0)))


def asking(asked_at: float, ended_at: float | None = None, **more: object) -> Requested:
    one = request(asked_at=asked_at, source="agents", session_id="b", **more)
    return Requested(9, asked_at, one.request_id, replace(one, ended_at=ended_at))


@pytest.mark.parametrize(
    ("top", "below", "requests", "stands", "words"),
    [
        (ROOT, [], [], ("silent", 100), ""),
        (TYPES, [], [], ("working", 100), ""),
        (TURNED, [], [], ("working", 950), ""),
        (replace(ROOT, process_gone=True), [], [], ("gone", 100), ""),
        (ENDED, [], [], ("idle", 900), ""),
        (replace(ENDED, process_gone=True), [], [], ("completed", 900), ""),
        (replace(ENDED, one_shot=True), [], [], ("completed", 900), ""),
        (HANDS_ON, [AT_WORK], [], ("working", 100), ""),
        (HANDS_ON, [QUIET], [], ("waiting", 280), "waits for title of b, silent 12m"),
        (replace(HANDS_ON, process_gone=True), [KILLED], [], ("gone", 280), ""),
        (HANDS_ON, [KILLED], [], ("waiting", 280), "waits for you: title of b"),
        (HANDS_ON, [AT_WORK], [asking(700.0)], ("waiting", 700), "waits for you: title of b"),
        (HANDS_ON, [AT_WORK], [asking(700.0, 800.0, stage="acted")], ("working", 800), ""),
        (HANDS_ON, [FAILED], [], ("waiting", 500), "waits for you: title of b"),
        (HANDS_ON, [FAILED, child("c", updated_at=990.0)], [], ("working", 100), ""),
        (TYPES, [FAILED], [], ("working", 100), ""),
        (HANDS_ON, [child("b", RunState.SUBMITTED)], [], ("waiting", 110), "waits for title of b, not started for 14m"),
        # Another handed out meanwhile: it waits on.
        (
            HANDS_ON,
            [KILLED, child("c", RunState.SUBMITTED, started_at=900.0)],
            [],
            ("waiting", 280),
            "waits for you: title of b",
        ),
        (HANDS_ON, [DONE], [], ("silent", 120), ""),
        (ENDED, [AT_WORK], [], ("working", 110), ""),
        (ENDED, [QUIET], [], ("waiting", 900), "waits for title of b, silent 12m"),
        (ENDED, [DONE], [], ("idle", 900), ""),
    ],
)
def test_how_a_session_stands_and_since_when(top, below, requests, stands, words):
    tree = tree_of([*ran(top, *below), *requests, Tick(20, NOW)])
    task = tree.tasks["root"]
    assert (str(task.shown), task.since) == stands
    assert held_up(task, tree.tasks, NOW) == words
    assert tree.totals.shown[task.shown] >= 1


@pytest.mark.parametrize(
    ("gone", "at", "shown"), [(None, 4_499, "idle"), (None, 4_500, "completed"), (False, 9e6, "idle")]
)
def test_a_turn_is_the_operators_while_somebody_may_sit_there(gone, at, shown):
    tree = tree_of([*ran(replace(ENDED, process_gone=gone)), Tick(20, NOW)])
    tree.apply(Tick(21, at))
    task = tree.tasks["root"]
    assert (str(task.shown), task.needs_operator, str(task.state)) == (shown, False, "completed")


def test_putting_aside_changes_no_age():
    tree = tree_of([*ran(HANDS_ON, FAILED), Tick(20, NOW)])
    ages = {task.task_id: task.since for task in tree.tasks.values()}
    tree.apply(Noted(21, NOW, "b", Aside(Put(mark_of(tree.tasks["b"]), NOW))), Tick(22, NOW + 5))
    assert tree.tasks["b"].acknowledged
    assert tree.tasks["b"].since == ages["b"]


def task_of(run: Run) -> Task:
    return tree_of([*ran(run), Tick(20, NOW)]).tasks["root"]


def test_what_was_killed_took_as_long_as_it_lived():
    task = task_of(replace(ROOT, process_gone=True, updated_at=103.0))
    lasted = took(task, task.latest, 90_000.0)
    assert lasted is not None
    assert (lasted.seconds, lasted.so_far) == (3.0, False)


def test_other_programs_hear_the_shown_state_in_their_words():
    runs = [HANDS_ON, ENDED, replace(ROOT, process_gone=True)]
    assert [a2a_state(task_of(run)) for run in runs] == ["working", "input-required", "unknown"]
