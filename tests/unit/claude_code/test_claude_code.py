"""Sessions of Claude Code whose program waits for the person at its terminal, or whose clock was set back."""

import os
import time
from datetime import timedelta

import pytest

from agentwatch.delegation.events import Ran, Run, RunState
from agentwatch.delegation.tree import Tree
from tests.unit.claude_code.building import BEGIN, SESSION, Store, meta, packet, register, report


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def wait(store: Store):
    """Register this very process as a program that waits."""
    times = {"statusUpdatedAt": BEGIN.timestamp() * 1000, "startedAt": BEGIN.timestamp() * 1000}
    register(store.home, os.getpid(), status="waiting", waitingFor="permission prompt", **times)


def handed_out(store: Store, *agents: str):
    """Write a session that has ended its turn, with agents in the background, each of which uses a tool."""
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


def test_the_newest_session_is_read_first(store):
    store.session().asked("Go.")
    store.save()
    path = store.project / f"{SESSION}.jsonl"
    for number in (0, 9):
        name = f"{number}" * 8 + SESSION[8:]
        path.with_stem(name).write_bytes(path.read_bytes().replace(SESSION.encode(), name.encode()))
        os.utime(path.with_stem(name), (number, number))
    (change,) = store.reader().read(0.0)
    assert change.run.session_id == SESSION


def test_a_session_waits_for_a_permission_until_it_is_answered(store):
    main = store.session()
    main.asked("Go.")
    main.used("Bash", "u1", command="touch made.txt\ntouch other.txt", description="x")
    store.save()
    reader = store.reader()
    for status in ("busy", "waiting", "busy"):
        wait(store) if status == "waiting" else register(store.home, os.getpid(), status=status)
        (change,) = reader.read(60.0)
        assert (change.run.state, change.run.process_gone) == (RunState.WORKING, False)
        assert change.run.waiting == ("a permission: Bash touch made.txt" if status == "waiting" else "")
        assert reader.read(60.0) == []


def test_a_dialog_is_no_wait_and_a_clock_set_back_hides_none(store):
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


def test_if_several_agents_may_ask_the_session_asks(store):
    handed_out(store, "a1", "a2")
    wait(store)
    run = store.runs()[SESSION]
    assert waiting(store.runs()) == {SESSION: "a permission; which of its agents asks is not known"}
    assert (run.state, run.ended_at, run.said) == (RunState.WORKING, None, None), "though its own turn is over"


def test_a_retry_is_the_later_attempt_whatever_its_clock_says(store):
    tasks = {
        "a9": ("shop", "SUCCESS"),
        "a8": ("shop.api", "ERROR"),
        "a7": ("shop.api", "SUCCESS"),
        "a6": ("shop.ui", "SUCCESS"),
    }
    main = store.session()
    main.asked("Build the shop.")
    # The names of the agents do not follow the order in which they start.
    for agent, (task, state) in tasks.items():
        if agent == "a7":
            store.time -= timedelta(hours=1)
        main.delegated(f"toolu_{agent}", packet(task))
        child = store.agent(agent, meta(f"toolu_{agent}"))
        child.asked(packet(task))
        child.said(report(state))
        main.returned(f"toolu_{agent}", agent, report(state))
    runs = list(store.runs().values())
    for order in (runs, runs[::-1]):
        tree = Tree()
        for seq, run in enumerate(order):
            tree.apply(Ran(seq, run.updated_at, run.session_id, run))
        found = [(task.task_id, [attempt.state.value for attempt in task.attempts]) for task, _ in tree.preorder()]
        assert found[1:] == [("shop", ["completed"]), ("shop.api", ["failed", "completed"]), ("shop.ui", ["completed"])]
