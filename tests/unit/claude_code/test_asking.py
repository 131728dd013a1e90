"""A session whose program waits for the person at its terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentwatch.delegation.events import Ran, Tick
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from tests.unit.claude_code.building import BEGIN, SESSION, Log, Store, meta, register

DAY = 86_400


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def at(seconds: float) -> float:
    """In milliseconds, as the program counts, a time so many seconds after the stores of these tests begin."""
    return (BEGIN.timestamp() + seconds) * 1000


def wait(store: Store, what: str | None = "permission prompt", since: float = 0, began: float = 0) -> None:
    """The program, which runs in this very process, waits."""
    keys = {} if what is None else {"waitingFor": what}
    times = {"statusUpdatedAt": at(since), "startedAt": at(began)}
    register(store.home, os.getpid(), status="waiting", **times, **keys)


def waiting(runs: dict[str, Run]) -> dict[str, str]:
    """Who waits for what."""
    return {name: run.waiting for name, run in runs.items() if run.waiting}


def handed_out(store: Store, *agents: str) -> list[Log]:
    """Agents in the background that have been asked; the session's own turn is over."""
    main = store.session()
    main.asked("Go.")
    for agent in agents:
        main.delegated(f"toolu_{agent}", agent, run_in_background=True)
        main.launched(f"toolu_{agent}", agent)
    main.said("I wait.")
    logs = [store.agent(agent, meta(f"toolu_{agent}", requestShape="background")) for agent in agents]
    for log in logs:
        log.asked("Do it.")
    return logs


def test_a_session_waits_for_a_permission_for_its_own_tool_until_it_is_answered(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.used("Bash", "u1", command="touch made.txt\ntouch other.txt", description="x")
    store.save()
    reader = store.reader()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert (change.run.state, change.run.waiting) == (RunState.WORKING, "")
    wait(store)
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert (change.run.state, change.run.waiting) == (RunState.WORKING, "a permission: Bash touch made.txt")
    assert change.run.process_gone is False
    assert reader.read(60.0) == []
    register(store.home, os.getpid(), status="busy")
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert (change.run.state, change.run.waiting) == (RunState.WORKING, "")


def test_where_several_may_ask_the_session_does(store: Store) -> None:
    for child in handed_out(store, "a1", "a2"):
        child.used("Bash", "u1", command="touch made.txt")
    wait(store)
    run = store.runs()[SESSION]
    assert waiting(store.runs()) == {SESSION: "a permission; which of its agents asks is not known"}
    assert (run.state, run.ended_at, run.said) == (RunState.WORKING, None, None), "though its own turn is over"
    assert run.process_gone is False


def test_however_the_transcripts_were_read_the_same_agent_asks(store: Store) -> None:
    first, second = handed_out(store, "a1", "a2")
    for log in (first, second):
        for number in range(3):
            log.used("Bash", f"u{number}", command=f"command {number}")
            log.got(f"u{number}", "ok")
    second.used("Bash", "u9", command="touch made.txt")
    logs = {log: list(log.lines) for log in (first, second)}
    wait(store)
    reader, followed = store.reader(), dict[str, Run]()
    for log, lines in logs.items():
        for count in range(len(lines) + 1):
            log.lines = lines[:count]
            expected = store.runs()
            for change in reader.read(60.0):
                assert change.run is not None
                followed[change.run.session_id] = change.run
            assert dict(sorted(followed.items())) == expected
    assert waiting(followed) == {"a2": "a permission: Bash touch made.txt"}


def test_the_operator_is_told_where_to_answer_for_as_long_as_it_waits(store: Store) -> None:
    (child,) = handed_out(store, "a1")
    child.used("Bash", "u1", command="touch made.txt")
    wait(store)
    store.save()
    reader, tree = store.reader(), Tree()

    def look(now: float) -> None:
        for seq, change in enumerate(reader.read(60.0)):
            tree.apply(Ran(seq, now, change.key, change.run))
        tree.apply(Tick(0, now))

    for days in (0, 3):
        look(BEGIN.timestamp() + days * DAY + 60)
        task = tree.tasks["a1"]
        assert task.state is State.BLOCKED
        assert task.ask == "it waits in its own session: a permission: Bash touch made.txt"
        assert tree.totals.needs_operator == 1
    register(store.home, os.getpid(), status="busy")
    look(BEGIN.timestamp() + 3 * DAY + 120)
    assert (tree.tasks["a1"].state, tree.tasks["a1"].ask) == (State.WORKING, None)
