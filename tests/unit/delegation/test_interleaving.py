"""The tree depends on the events of each file alone, however the events of different files are interleaved."""

from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Contract, Document, Fields, Outcome, Return
from agentwatch.delegation.decision import OF_ATTEMPTS, OF_REQUESTS, Action, Permit, Permitter, RequestStage, Stage
from agentwatch.delegation.events import (
    Event,
    Lost,
    Message,
    Ran,
    Reached,
    Requested,
    Ruled,
    Rules,
    RunState,
    Seen,
    StartedBy,
    Tick,
    Turn,
    Verdict,
)
from agentwatch.delegation.standing import queue_rank
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.view.document import tree_document
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import BROKEN, Recorder, child, decided, handoff, returned, todos, tree_of

IDS = ["a", "a.b", "a.b.c", "d", "e.f"]
LINE = 1_005.0
"""The line of history: a task without a sign of life after the first four seconds is past."""
HANDOFF = "a.handoff.json"
PATHS = [
    HANDOFF,
    "a.return.md",
    "b.handoff.json",
    "job/handoff.json",
    "job/return.md",
    "job/return-2.md",
    "job/x.return.md",
    "job/todos.md",
    "job/.return-meta.json",
    "job/sub/.return-meta-b.json",
    "handoffs/x.json",
    "returns/x.md",
    "a.report.json",
]
maybe_id = st.sampled_from([None, *IDS])
attempts = st.sampled_from([None, None, None, 1, 2])
sessions = st.sampled_from([None, "s1", "s2"])
agents = st.sampled_from(["orchestrator", "plan", "planner"])

decision_ids = st.sampled_from([None, *(f"d-{task_id}" for task_id in IDS)])

handoffs = st.builds(
    handoff,
    maybe_id,
    parent_task_id=maybe_id,
    attempt=attempts,
    session_id=sessions,
    restores=maybe_id,
    decision_id=decision_ids,
)
returns = st.builds(
    returned,
    st.sampled_from([outcome.value for outcome in Outcome]),
    st.sampled_from([Contract.RETURN_FORMAT, Contract.RETURN_META, Contract.SUBAGENT_RETURN]),
    task_id=maybe_id,
    attempt=attempts,
    session_id=sessions,
    delegation_path=st.lists(agents, max_size=3).map(tuple),
)
named = st.builds(
    Return,
    st.sampled_from([Contract.RETURN_FORMAT, Contract.REPORT_CONTRACT]),
    st.none(),
    st.none(),
    recognised=st.just(False),
)
checklists = st.lists(st.sampled_from([" ", "-", "x"]), min_size=1, max_size=3).map(lambda marks: todos(*marks))
checks = st.lists(st.sampled_from(["verified", "contradicted", "unverifiable"]), max_size=2).map(tuple)


class Deciding(NamedTuple):
    """A decision about the first attempt of a task."""

    task_id: str
    action: Action


decisions = st.builds(Deciding, st.sampled_from(IDS), st.sampled_from(OF_ATTEMPTS))


class Again(NamedTuple):
    """The file is written anew with the return that it holds or held last."""


class Requesting(NamedTuple):
    """A request of a session's program for one of a few calls, so that some are equal. No `stage` removes it."""

    number: int
    session: str
    stage: RequestStage | None
    input: str
    knows_call: bool
    hurries: bool


class Answering(NamedTuple):
    """A decision about a request, which may expire."""

    number: int
    action: Action
    stage: Stage
    expires: bool


class Running(NamedTuple):
    """A session goes on; it may have been asked for a task, and its program may record the outcome of a call."""

    session: str
    state: RunState
    asked_for: str | None
    waits: bool
    permit: tuple[str, bool | None, Permitter] | None
    is_gone: bool | None = None
    begun_by: tuple[StartedBy, ...] = ()
    program: str = "agents"


numbers, calls = st.integers(0, 3), st.sampled_from(["ls", "rm"])
known_sessions = st.sampled_from(["s1", "s2"])
requestings = st.builds(Requesting, numbers, known_sessions, input=calls)
answerings = st.builds(Answering, numbers, st.sampled_from(OF_REQUESTS))
runnings = st.builds(
    Running,
    known_sessions,
    asked_for=st.sampled_from([None, "a", "d"]),
    permit=st.none() | st.tuples(calls, st.none() | st.booleans(), st.sampled_from(Permitter)),
    is_gone=st.sampled_from([None, False, True, True]),
    begun_by=st.lists(st.sampled_from(StartedBy), max_size=3).map(tuple),
    program=st.sampled_from(["agents", "agents", "others"]),
)

Live = Requesting | Answering | Running
Step = tuple[str, Fields | tuple[str, ...] | Deciding | Again | Live | None, bool]
kinds = st.one_of(st.none(), st.just(Again()), handoffs, returns, returns, named, checklists, checks, decisions)
drawn_steps = st.tuples(st.sampled_from(PATHS), kinds, st.booleans())
lives = st.one_of(requestings, answerings, runnings)
histories = st.one_of(
    st.lists(st.tuples(st.sampled_from(PATHS), st.one_of(lives, kinds), st.booleans()), max_size=14),
    st.lists(st.tuples(st.just(HANDOFF), lives, st.booleans()), max_size=14),
)


def record(steps: list[Step]) -> list[Event]:
    """Return the events of the steps. None deletes the file; verdicts check its last content, or with `flag` another
    one. A decision is about the last content, whatever it is; with `flag` an agent has read it."""
    recorder = Recorder()
    digests: dict[str, str] = {}
    permits: dict[str, list[Permit]] = {}
    held: dict[str, Seen] = {}
    events: list[Event] = []
    for path, step, flag in steps:
        if step is None:
            events.append(recorder.gone(path))
        elif isinstance(step, Again):
            if path in held and isinstance(held[path].document, Return):
                recorder.seq += 1
                held[path] = held[path]._replace(seq=recorder.seq, at=held[path].at if flag else 1_000.0 + recorder.seq)
                events.append(held[path])
        elif isinstance(step, Requesting | Answering | Running):
            recorder.seq += 1
            events.append(lived(recorder.seq, step, permits))
        elif isinstance(step, Deciding):
            recorder.seq += 1
            given = {"return_sha256": digests.get(path), "handoff_sha256": digests.get(HANDOFF)}
            at = 1_000.0 + recorder.seq
            events.append(decided(step.task_id, step.action, at, 3 if flag else 1, seq=recorder.seq, **given))
        elif isinstance(step, tuple):
            digest = "another" if flag else digests.get(path, "none")
            events.append(recorder.checked(path, digest, *step))
        elif "handoff" not in path or not isinstance(step, Return) or step.recognised:
            # Any text is read as a return only in a file that is not named as a handoff.
            seen = recorder.seen(path, step, *([BROKEN] if flag else []))
            digests[path], held[path] = seen.digest, seen
            events.append(seen)
    return events


def lived(seq: int, step: Live, permits: dict[str, list[Permit]]) -> Event:
    at = 1_000.0 + seq
    if isinstance(step, Requesting):
        name, ended = f"r-{step.number}", step.stage not in (None, RequestStage.OFFERED, RequestStage.DECIDED)
        asked = request(
            step.number,
            step.input,
            request_id=name,
            source="agents",
            session_id=step.session,
            input_sha256=step.input,
            asked_at=at,
            until=at + 5.0 if step.hurries else None,
            call_id=f"call-{step.number}" if step.knows_call else None,
            stage=step.stage or RequestStage.OFFERED,
            ended_at=at if ended else None,
        )
        return Requested(seq, at, name, asked if step.stage is not None else None)
    if isinstance(step, Answering):
        stages = [*Stage].index(step.stage) + 1
        expires_at = 1_008.0 if step.expires else None
        return decided("a", step.action, at, stages, seq=seq, name=f"r-{step.number}", expires_at=expires_at)
    known = permits.setdefault(f"{step.program}:{step.session}", [])
    if step.permit is not None:
        shown, allowed, by = step.permit
        known.append(Permit(f"call-{len(known)}", "Bash", shown, allowed, by, at))
    packet = None if step.asked_for is None else Document(handoff(step.asked_for), ())
    said = Message(at, "1" * 64, "said", Document(returned("failed"), ()))
    turns = (Turn(1_000.0 + n, None, asker, RunState.ENDED, said, 1_000.5 + n) for n, asker in enumerate(step.begun_by))
    run = child(
        step.session,
        step.state,
        "s1" if step.session > "s1" else None if packet is None else "root",
        started_at=1_000.0,
        updated_at=at,
        prompt=Message(1_000.0, "0" * 64, "words", packet),
        rounds=tuple(turns),
        waiting="a permission" if step.waits else "",
        permits=tuple(known),
        process_gone=step.is_gone,
        tokens=seq,
    )
    return Ran(seq, at, f"{step.program}:{step.session}", replace(run, source=step.program))


def interleaved(events: list[Event], order: list[int]) -> list[Event]:
    """Return the events in another order that keeps the order of each file; `order` says which file is next."""
    queues: dict[str, list[Event]] = {}
    for event in events:
        queues.setdefault(getattr(event, "path", ""), []).append(event)
    result = []
    for turn in [*order, *([0] * len(events))]:
        waiting = [queue for queue in queues.values() if queue]
        if waiting:
            result.append(waiting[turn % len(waiting)].pop(0))
    return result


def applied(events: list[Event]) -> Tree:
    return tree_of(events, history_before=LINE)


@given(histories, st.lists(st.integers(0, 12), max_size=14))
def test_no_interleaving_and_no_batch_changes_the_tree(steps, order):
    # A file that is a return by its name alone belongs to the handoff that was there when it was deleted.
    steps = [one for one in steps if not isinstance(one[1], Return) or one[1].recognised]
    events, batch = record(steps), Tree(Rules(history_before=LINE))
    batch.apply(*events)
    for tree in (applied(interleaved(events, order)), batch):
        assert tree_document(tree, "/w") == tree_document(applied(events), "/w")


@given(histories, st.lists(st.none() | st.floats(0.0, 20.0), max_size=14))
def test_every_sum_equals_a_fresh_count(steps, ticks):
    tree = Tree(Rules(history_before=LINE, stale_after=3.0))
    for event, tick in zip_longest(record(steps), ticks):
        if event is not None:
            tree.apply(event)
        if tick is not None:
            tree.apply(Tick(99, 1_000.0 + tick))
    seen = set()
    rows = [task for task in tree.tasks.values() if not (task.inferred and len(task.children) == 1)]
    for task, _ in tree.preorder():
        assert task.task_id not in seen
        seen.add(task.task_id)
        below = [other for other in rows if task.task_id in tree.ancestors(other.task_id)]
        alive_at = max((other.updated_at for other in below), default=0.0)
        sums = task.below
        assert (sums is None) == (below == [])
        if sums is not None:
            assert (sums.tasks, sums.states) == (len(below), Counter(other.state for other in below))
            assert sums.needs_operator == sum(other.needs_operator for other in below)
            assert sums.stale == sum(other.stale and not other.past for other in below)
            assert sums.active_at == alive_at
            assert sums.tokens == sum(other.tokens or 0 for other in below)
        assert task.ask == (None if task.past else task.question)
        if task.inferred:
            assert task.past == (0.0 < alive_at < LINE)
    assert seen == tree.tasks.keys()
    assert tree.totals.tasks == len(rows)
    assert tree.totals.states == Counter(task.state for task in rows)
    assert tree.totals.stale == sum(task.stale and not task.past for task in rows)
    tasks = tree.tasks.values()
    verified = sum(task.verdict is Verdict.VERIFIED and task.state is State.COMPLETED for task in tasks)
    counted = [tree.totals.verdicts.get(verdict, 0) for verdict in (Verdict.CONTRADICTED, Verdict.VERIFIED)]
    assert counted == [sum(task.contradicted for task in tasks), verified]
    asking = [task for task in tasks if task.needs_operator]
    assert tree.asking_tasks() == sorted(asking, key=lambda task: (queue_rank(task), task.task_id))


@given(histories)
def test_apply_names_every_task_that_looks_different(steps):
    tree = Tree(Rules(history_before=LINE))
    before: dict[str, object] = {}
    for event in record(steps):
        changed = tree.apply(event)
        after: dict[str, object] = {
            document["task_id"]: (document | {"depth": None}, [*tree.tasks[document["task_id"]].children])
            for document in tree_document(tree, "/w")["tasks"]
        }
        different = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert different <= changed
        before = after


@given(st.lists(drawn_steps, max_size=14))
def test_a_tree_that_remembers_keeps_what_every_file_said(steps):
    events = record(steps)
    recorder = Recorder()
    recorder.seq = len(events)
    tree = applied([*events, *(recorder.gone(path) for path in PATHS)])
    alive = applied(events)
    # A file without an id may find its handoff only after a rival is gone; a file with an id keeps its task.
    assert {task_id for task_id in alive.tasks if task_id in IDS} <= tree.tasks.keys()
    assert bool(tree.tasks) == bool(alive.tasks)
    assert all(task.deleted for task in tree.tasks.values() if not task.inferred)


@given(histories, st.data())
def test_rules_and_losses_judge_all_that_came_before(steps, data):
    events, end = record(steps), Tick(99, 1_100.0)
    stale, line = data.draw(st.sampled_from([1.0, 600.0])), data.draw(st.sampled_from([float("-inf"), 1_004.0]))
    rules = Rules(data.draw(st.booleans()), stale, data.draw(st.integers(0, 2)), history_before=line)
    at = data.draw(st.integers(0, len(events)))
    changed, meant = Tree(), Tree(rules)
    changed.apply(*events[:at], Lost(0, 1_003.0), Ruled(0, 1_000.0, rules), *events[at:], Reached(0, 1_004.0), end)
    meant.apply(*events, end)
    assert tree_document(changed, "/w") == tree_document(meant, "/w")
    assert changed.totals == meant.totals


def test_a_long_chain_in_any_order_counts_all_that_is_below():
    see, tree = Recorder().seen, Tree()
    chain = [see(f"{n}.json", handoff(f"n{n}", parent_task_id=f"n{n - 1}" if n else None)) for n in range(1_500)]
    tree.apply(*Random(5).sample(chain, len(chain)))
    assert tree.roots == ["n0"]
    below = tree.tasks["n0"].below
    assert below is not None
    assert below.tasks == tree.totals.tasks - 1 == 1_499
    moved = see("0.json", handoff("n0", parent_task_id="n1499"))
    assert {"n0", "n1499"} <= tree.apply(moved)
    assert len(tree.roots) == 1_500, "a cycle is not followed"


@pytest.mark.parametrize("steps", ["x y -x y=a", "x -x y y=a", "x -x y -y x.return"])
def test_a_batch_keeps_a_deleted_copy_with_what_it_became(steps):
    """Each step writes a file, with or without an id, or deletes it."""
    see, events = Recorder(), list[Event]()
    for step in steps.split():
        name, _, task_id = step.strip("-").partition("=")
        path = f"{name}.json" if "." in name else f"{name}.handoff.json"
        document = returned("completed") if "." in name else handoff(task_id or None)
        gone = step.startswith("-")
        events.append(see.gone(path) if gone else see.seen(path, document)._replace(digest=repr(document)))
    tree = Tree()
    tree.apply(*events)
    assert tree_document(tree, "/w") == tree_document(tree_of(events), "/w")
