"""Sessions, files and decisions tell one story, in the order in which it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Document, Reading
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Event, Gone, Ran, Seen, Tick
from agentwatch.delegation.run import Asker, Message, Round, Run, RunState
from agentwatch.history.log import changes
from agentwatch.history.story import story
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of
from tests.unit.delegation.test_interleaving import Step, drawn_steps, record
from tests.unit.sessions.conformance import NOW, STORY, Store
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.opencode import opencode
from tests.unit.sessions.stores.roo import roo

ROOT = Run(
    source="agents",
    session_id="root",
    parent_session=None,
    state=RunState.WORKING,
    place="/store",
    started_at=100.0,
    updated_at=300.0,
    process_gone=True,
    model="m",
)
Line = tuple[float, str, str | None, str | None, int]


def message(document: Document | None, at: float) -> Message:
    return Message(at, f"{at:064.0f}", "words", Reading(document) if document else None)


def child(task_id: str, began: float, ended: float | None, **more: object) -> Run:
    """A run that was handed a packet, and returned at `ended`."""
    last = 290.0 if ended is None else ended
    run = Run(
        source="agents",
        session_id=f"{task_id}-{began:g}",
        parent_session="root",
        state=RunState.WORKING,
        place="/store",
        started_at=began,
        updated_at=last,
        model="m",
    )
    run = replace(run, prompt=message(handoff(task_id), began))
    if ended is not None:
        run = replace(run, state=RunState.ENDED, ended_at=ended, said=message(returned("completed"), ended))
    return replace(run, **more)  # type: ignore[arg-type]


def ran(*runs: Run) -> list[Event]:
    return [Ran(seq, run.updated_at, f"agents:{run.session_id}", run) for seq, run in enumerate(runs, 1)]


def told(events: Iterable[Event], now: float = 1_000.0) -> list[Line]:
    return [(one.at, one.task_id, one.before, one.after, one.attempt) for one in changes(story(events, now))]


def test_a_session_is_told_when_it_began_and_when_it_ended() -> None:
    # Readers give the newest first.
    assert told(ran(child("late", 200.0, None), child("early", 110.0, 150.0), ROOT)) == [
        (100.0, "root", None, "working", 1),
        (110.0, "early", None, "working", 1),
        (150.0, "early", "working", "completed", 1),
        (200.0, "late", None, "working", 1),
    ]


def test_a_retry_in_another_session_is_the_next_attempt() -> None:
    failed = child("a", 110.0, 150.0, said=message(returned("failed"), 150.0))
    assert told(ran(child("a", 160.0, 170.0), failed, ROOT))[1:] == [
        (110.0, "a", None, "working", 1),
        (150.0, "a", "working", "failed", 1),
        (160.0, "a", "failed", "working", 2),
        (170.0, "a", "working", "completed", 2),
    ]


def test_the_rounds_of_a_child_are_told_and_those_of_a_human_are_not() -> None:
    first = replace(Round(110.0, state=RunState.ENDED), said=message(returned("partial"), 130.0), ended_at=130.0)
    talk = replace(ROOT, state=RunState.ENDED, said=message(None, 300.0), ended_at=300.0)
    talk = replace(talk, rounds=(Round(100.0, state=RunState.ENDED, said=message(None, 120.0)), Round(150.0)))
    assert told(ran(talk, child("a", 110.0, 150.0, rounds=(first, Round(140.0))))) == [
        (100.0, "root", None, "working", 1),
        (110.0, "a", None, "working", 1),
        (130.0, "a", "working", "partial", 1),
        (140.0, "a", "partial", "working", 1),
        (150.0, "a", "working", "completed", 1),
        (300.0, "root", "working", "completed", 1),
    ]


def test_a_retry_in_the_same_session_is_told_as_an_attempt_of_its_own() -> None:
    said = message(returned("failed"), 130.0)
    first = Round(110.0, state=RunState.ENDED, said=said, ended_at=130.0)
    run = child("a", 110.0, 150.0, rounds=(first, Round(140.0, asker=Asker.HOOK)))
    receipts = (Receipt(Stage.RECORDED, 135.0), Receipt(Stage.READ, 136.0))
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=None,
        return_sha256=said.digest,
        action=Action.RETRY,
        at=135.0,
        receipts=receipts,
    )
    assert told([*ran(ROOT, run), Decided(0, 135.0, "d1", decision)])[1:] == [
        (110.0, "a", None, "working", 1),
        (130.0, "a", "working", "failed", 1),
        (135.0, "a", "failed", "retrying", 1),
        (140.0, "a", "retrying", "working", 2),
        (150.0, "a", "working", "completed", 2),
    ]


def test_who_was_refused_never_worked() -> None:
    refused = child("a", 110.0, 110.5, state=RunState.FAILED, said=None, model=None, reason="no such agent")
    lines = list(changes(story(ran(ROOT, refused), 1_000.0)))
    assert [(one.after, one.reason) for one in lines if one.task_id == "a"] == [
        ("submitted", "asked for; no sign of life yet"),
        ("failed", "no such agent"),
    ]
    asked = child("b", 120.0, None, state=RunState.SUBMITTED, model=None)
    assert told(ran(ROOT, asked))[1:] == [(120.0, "b", None, "submitted", 1)]


def test_a_task_of_a_file_and_of_a_session_is_told_once() -> None:
    def seen(path: str, document: Document, at: float) -> Seen:
        return Recorder().seen(path, document)._replace(at=at)

    files = [
        seen("a.handoff.json", handoff("a"), 105.0),
        seen("a.return.md", returned("completed", task_id="a"), 150.0),
    ]
    assert told([*files, *ran(ROOT, child("a", 110.0, 151.0))]) == [
        (100.0, "root", None, "working", 1),
        (105.0, "a", None, "submitted", 1),
        (110.0, "a", "submitted", "working", 1),
        (150.0, "a", "working", "completed", 1),
    ]


def test_files_keep_their_order_whatever_times_they_claim() -> None:
    first = Recorder().seen("a.handoff.json", handoff("a"))
    put_back = Recorder().seen("a.handoff.json", handoff("b"))._replace(seq=2, at=first.at - 500)
    beside = Recorder().seen("a.return.md", returned("failed"))._replace(seq=3, at=first.at - 400)
    files = [first, put_back, beside]
    assert [one for one in story([*files, *ran(ROOT)], 0.0) if isinstance(one, Seen)] == files


def test_a_decision_stands_between_what_it_was_about_and_what_came_of_it() -> None:
    failed = child("a", 110.0, 150.0, said=message(returned("failed"), 150.0))
    assert failed.said is not None
    assert failed.prompt is not None
    receipts = (Receipt(Stage.RECORDED, 155.0),)
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=failed.prompt.digest,
        return_sha256=failed.said.digest,
        action=Action.RETRY,
        at=155.0,
        receipts=receipts,
        expires_at=158.0,
    )
    decided = Decided(0, 155.0, "d1", decision)
    again = child("a", 160.0, None)
    assert [line[:4] for line in told([decided, *ran(again, failed, ROOT)], now=157.0)[2:]] == [
        (150.0, "a", "working", "failed"),
        (155.0, "a", "failed", "retrying"),
        (160.0, "a", "retrying", "working"),
    ]
    # Nobody had read it when its time was over.
    assert [line[:4] for line in told([decided, *ran(again, failed, ROOT)], now=200.0)[3:]] == [
        (155.0, "a", "failed", "retrying"),
        (158.0, "a", "retrying", "failed"),
        (160.0, "a", "failed", "working"),
    ]


def test_a_decision_stands_behind_the_return_it_is_about_though_the_time_of_that_is_later() -> None:
    recorder = Recorder()
    asked, failed = recorder.seen("a.json", handoff("a")), recorder.seen("a.md", returned("failed", task_id="a"))
    earlier = failed.at - 0.5
    receipts = (Receipt(Stage.RECORDED, earlier),)
    decision = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=asked.digest,
        return_sha256=failed.digest,
        action=Action.RETRY,
        at=earlier,
        receipts=receipts,
    )
    told = story([asked, failed, Decided(0, earlier, "d1", decision)], NOW)
    assert [type(one) for one in told] == [Seen, Seen, Decided]
    later = earlier + 100.0
    away_and_back = [recorder.gone("a.md")._replace(at=later), failed._replace(seq=9)]
    told = story([asked, failed, *away_and_back, Decided(0, earlier, "d1", decision)], NOW)
    assert [type(one) for one in told] == [Seen, Seen, Decided, Gone, Seen]


def test_no_session_is_told_to_have_begun_or_ended_later_than_its_last_sign_of_life() -> None:
    first = Round(9e11, state=RunState.ENDED, said=message(returned("partial"), 9e11), ended_at=9e11)
    odd = child("a", 9e11, 9e11, updated_at=150.0, rounds=(first, Round(9e11)))
    assert [line[0] for line in told(ran(ROOT, odd))] == [100.0, 150.0, 150.0, 150.0, 150.0]


@given(st.lists(drawn_steps, max_size=14))
def test_the_story_ends_with_the_tree_of_what_it_is_made_of(steps: list[Step]) -> None:
    events = record(steps)
    ends = story(events, 0.0)
    for remembers in (False, True):
        of_the_story, of_the_source = (tree_of(told, remembers=remembers) for told in (ends, events))
        assert tree_document(of_the_story, "/w") == tree_document(of_the_source, "/w")


@pytest.mark.parametrize("build", [claude_code, codex, opencode, roo])
def test_every_store_tells_each_attempt_in_order_and_ends_as_it_stands(
    build: Callable[[Path], Store], tmp_path: Path
) -> None:
    store = build(tmp_path)
    try:
        store.finish()
        watch = store.watch()
        watch.look()
        runs = list(watch.runs.values())
        Random(1).shuffle(runs)
        events = story(runs, NOW)
        assert (
            tree_document(tree_of([*events, Tick(0, NOW)]), "workspace")["tasks"]
            == (tree_document(tree_of([*watch.runs.values(), Tick(0, NOW)]), "workspace")["tasks"])
        )
        lines = list(changes(events))
        assert [one.at for one in lines] == sorted(one.at for one in lines)
        for task_id, states in {**STORY, **store.tasks}.items():
            if task_id in watch.tasks:
                last = {one.attempt: one.after for one in lines if one.task_id == task_id}
                assert (list(last), last[len(states)]) == (list(range(1, len(states) + 1)), states[-1])
    finally:
        store.close()
