"""What a task's bar is made of, and when anything happened at all: spans and activity, without a screen."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.app.scenes import NOW, Scene
from tests.unit.delegation.asking import decided, permit, request, requested, session
from tests.unit.delegation.asking import ran as ran_session
from tests.unit.delegation.test_rounds import DONE, FAILED, child, decision, ran

from agentwatch.app.screens.timeline import IDLE, stretches_of
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.events import Event, Tick
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.run import StartedBy
from agentwatch.delegation.tree import Tree
from agentwatch.view.spans import last_of, spans_of


def tree_of(events: Iterable[Event]) -> Tree:
    tree = Tree()
    for event in events:
        tree.apply(event)
    tree.apply(Tick(10_000, NOW))
    return tree


def handed(ago: float, **more: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.handoff("a", ago=ago, **more)


def back(ago: float, outcome: Outcome = Outcome.COMPLETED, **more: Any) -> Callable[[Scene], None]:
    return lambda scene: scene.returned("a", outcome, ago=ago, **more)


ATTEMPTS = [handed(90), back(60, Outcome.FAILED, attempt=1), handed(40, attempt=2), back(10, attempt=2)]
SPANS: dict[str, tuple[list[Callable[[Scene], None]], list[tuple[str, str, float, float | None]]]] = {
    "returned": ([handed(90), back(30)], [("WORK", "completed", 90, 30)]),
    "two attempts": (
        ATTEMPTS,
        [("WORK", "failed", 90, 60), ("WAIT", "failed", 60, 40), ("WORK", "completed", 40, 10)],
    ),
    "needs the operator": (
        [handed(90), back(60, Outcome.BLOCKED, blockers=("Which one?",))],
        [("WORK", "blocked", 90, 60), ("WAIT", "blocked", 60, None)],
    ),
    "working": ([handed(90), back(20, Outcome.WORKING)], [("WORK", "working", 90, None)]),
    "no sign of life": ([handed(90)], [("QUEUE", "submitted", 90, None)]),
    "silent": (
        [handed(5_000), back(4_000, Outcome.WORKING)],
        [("WORK", "working", 5_000, 4_000), ("SILENT", "silent", 4_000, None)],
    ),
    "waits for one below": (
        [
            handed(90),
            lambda scene: scene.handoff("a.b", ago=60),
            lambda scene: scene.returned("a.b", ago=20),
            lambda scene: scene.handoff("a.c", ago=10),
        ],
        [("WORK", "working", 90, 10), ("WAIT", "waiting", 10, None)],
    ),
    "a return alone": ([back(30)], [("WORK", "completed", 30, 30)]),
}


@pytest.mark.parametrize("name", SPANS)
def test_a_bar_is_made_of_what_was_seen(name):
    seen, expected = SPANS[name]
    scene = Scene()
    for one in seen:
        one(scene)
    found = spans_of(tree_of(scene.take()).tasks["a"])
    ends = [(NOW - one.start, None if one.end is None else NOW - one.end) for one in found]
    assert [(one.kind.name, one.look.word, *both) for one, both in zip(found, ends, strict=True)] == expected


def test_idle_time_is_where_nobody_gave_a_sign():
    scene = Scene()
    scene.handoff("a", ago=9_000)
    scene.returned("a", ago=8_000)
    scene.handoff("b", ago=8_000 - IDLE)
    scene.returned("b", ago=7_000)
    scene.handoff("c", ago=100)
    assert stretches_of(tree_of(scene.take())) == [(NOW - 9_000, NOW - 7_000), (NOW - 100, NOW - 100)]
    # A task that waits for those below it does not make their idle time busy.
    scene = Scene()
    scene.handoff("a", ago=9_000)
    scene.handoff("a.b", ago=8_900)
    scene.returned("a.b", Outcome.BLOCKED, ago=8_500, blockers=("?",))
    scene.returned("a", ago=100)
    assert stretches_of(tree_of(scene.take())) == [(NOW - 9_000, NOW - 8_500), (NOW - 100, NOW - 100)]


def test_a_retry_in_the_same_session_is_a_span_of_its_own():
    told = ran(child((StartedBy.PARENT, FAILED), (StartedBy.HOOK, DONE)))
    task = tree_of([*told, decision(FAILED, 117.0)]).tasks["a"]
    told = [(span.number, span.kind.name, span.start, span.end) for span in spans_of(task)]
    assert told == [(1, "WORK", 110.0, 115.0), (1, "WAIT", 115.0, 120.0), (2, "WORK", 120.0, 125.0)]


def test_the_wait_for_an_answer_lasts_from_the_ask_to_the_answer():
    run = session(updated_at=1_200.0, process_gone=False)
    task = tree_of([ran_session(run), requested(request())]).tasks["s1"]
    told = [(span.kind.name, span.start, span.end) for span in spans_of(task)]
    assert told == [("WORK", 1_000.0, 1_100.0), ("WAIT", 1_100.0, None)]
    asked = [request(1), request(2, asked_at=1_110.0, stage=RequestStage.GONE, ended_at=1_115.0)]
    run = session(permit(at=1_130.0), updated_at=1_200.0, process_gone=False)
    answered = tree_of([ran_session(run), *map(requested, asked), decided(asked[0], stage=Stage.DELIVERED)])
    told = [(span.kind.name, span.start, span.end, span.look.glyph) for span in spans_of(answered.tasks["s1"])]
    assert told == [
        ("WORK", 1_000.0, 1_100.0, "■"),
        ("WAIT", 1_100.0, 1_130.0, "■"),
        ("WORK", 1_130.0, 1_200.0, "◐"),
        ("SILENT", 1_200.0, None, "◌"),
    ]
    assert last_of(spans_of(answered.tasks["s1"])[:-1])[:2] == (1_000.0, 1_200.0)  # fmt: skip
