"""A session whose program waits for the person at its terminal."""

import os
import time

import pytest

from agentwatch.delegation.events import Run, RunState
from tests.unit.claude_code.building import BEGIN, SESSION, Store, meta, register


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def wait(store: Store):
    """The program, which runs in this very process, waits."""
    times = {"statusUpdatedAt": BEGIN.timestamp() * 1000, "startedAt": BEGIN.timestamp() * 1000}
    register(store.home, os.getpid(), status="waiting", waitingFor="permission prompt", **times)


def handed_out(store: Store, *agents: str):
    """Agents in the background that use a tool; the session's own turn is over."""
    main = store.session()
    main.asked("Go.")
    for agent in agents:
        main.delegated(f"toolu_{agent}", agent, run_in_background=True)
        main.launched(f"toolu_{agent}", agent)
    main.said("I wait.")
    for agent in agents:
        child = store.agent(agent, meta(f"toolu_{agent}", requestShape="background"))
        child.asked("Do it.")
        child.used("Bash", "u1", command="touch made.txt")


def waiting(runs: dict[str, Run]) -> dict[str, str]:
    return {name: run.waiting for name, run in runs.items() if run.waiting}


def test_a_session_waits_for_a_permission_until_it_is_answered(store):
    main = store.session()
    main.asked("Go.")
    main.used("Bash", "u1", command="touch made.txt\ntouch other.txt", description="x")
    store.save()
    reader = store.reader()
    for status in ("busy", "waiting", "busy"):
        wait(store) if status == "waiting" else register(store.home, os.getpid(), status=status)
        (change,) = reader.read(60.0)
        assert change.run is not None
        assert (change.run.state, change.run.process_gone) == (RunState.WORKING, False)
        assert change.run.waiting == ("a permission: Bash touch made.txt" if status == "waiting" else "")
        assert reader.read(60.0) == []


def test_an_open_dialog_is_no_wait_and_a_clock_that_is_set_back_hides_none(store):
    main = store.session()
    main.asked("Go.")
    main.used("Bash", "u1", command="touch made.txt")
    since = (time.time() + 10_000) * 1000
    for what, words in (("dialog open", ""), ("permission prompt", "a permission: Bash touch made.txt")):
        register(store.home, os.getpid(), status="waiting", waitingFor=what, statusUpdatedAt=since)
        assert store.runs()[SESSION].waiting == words


def test_the_only_agent_that_may_ask_does(store):
    handed_out(store, "a1")
    wait(store)
    assert waiting(store.runs()) == {"a1": "a permission: Bash touch made.txt"}


def test_where_several_may_ask_the_session_does(store):
    handed_out(store, "a1", "a2")
    wait(store)
    run = store.runs()[SESSION]
    assert waiting(store.runs()) == {SESSION: "a permission; which of its agents asks is not known"}
    assert (run.state, run.ended_at, run.said) == (RunState.WORKING, None, None), "though its own turn is over"
