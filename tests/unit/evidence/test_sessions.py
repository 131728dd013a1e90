"""A session of Claude Code: claims of its agents about commands, checked against the commands of all its agents."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.sources.sessions.source import SessionsSource
from tests.goldens.verdicts.claude import returned
from tests.unit.claude_code.building import Log, Store, meta, packet
from tests.unit.evidence.repository import HANDED_OFF, Repository

GREEN = "412 passed in 3.21s"
CLAIMED = returned(evidence=["`pytest -q` \u2014 412 passed"])


def store_of(root: Path) -> tuple[Store, Log]:
    """Return a store with a session that hands out `shop.cart` to an agent."""
    store = Store(root)
    store.workspace.mkdir()
    main = store.session()
    main.asked("Build the shop.")
    return store, main


def child(store: Store, by: Log, name: str, task: str, **keys: object) -> Log:
    by.delegated(f"call_{name}", packet(task))
    log = store.agent(name, meta(f"call_{name}", **keys))
    log.asked(packet(task))
    return log


def ran(log: Log, call: str, command: str, output: str):
    log.used("Bash", call, command=command)
    log.got(call, output, stdout=output, stderr="", interrupted=False)


def monitor_of(store: Store) -> Monitor:
    store.save()
    source = SessionsSource(lambda known, _: () if known else (store.reader(),))
    monitor = Monitor(store.workspace, Settings(), source, clock=lambda: 2e9, inspects=True)
    monitor.scan()
    return monitor


def verdict_of(store: Store, task: str = "shop.cart") -> tuple[str, str]:
    """Return the verdict on the only claim, and the end of the reason."""
    (claim,) = monitor_of(store).tree.tasks[task].claims
    return claim.verdict, claim.detail.rpartition("; ")[2].rpartition(", but ")[2]


def test_the_call_that_a_verdict_rests_on_is_in_the_transcript(tmp_path):
    store, main = store_of(tmp_path)
    agent = child(store, main, "a1", "shop.cart")
    ran(agent, "t1", "ls", "src")
    ran(agent, "t2", "pytest -q", GREEN)
    agent.said(CLAIMED)
    monitor = monitor_of(store)
    (claim,) = monitor.tree.tasks["shop.cart"].claims
    assert claim.verdict == "verified"
    assert claim.detail == "`pytest -q` ended with exit code 0 and 412 passed"
    assert claim.call is not None
    [run] = monitor.tree.runs.runs_of_session((claim.call.source, claim.call.session_id))
    line = Path(run.place).read_bytes()[claim.call.place[0] :].splitlines()[0]
    assert b"pytest -q" in line


def test_the_summary_at_the_end_of_a_long_output_counts(tmp_path):
    store, main = store_of(tmp_path)
    agent = child(store, main, "a1", "shop.cart")
    ran(agent, "t1", "pytest -q", "tests/test_cart.py ....\n" * 1_000 + GREEN)
    agent.said(CLAIMED)
    assert verdict_of(store)[0] == "verified"


def test_a_log_that_may_lack_something_verifies_nothing(tmp_path):
    store, main = store_of(tmp_path)
    agent = child(store, main, "a1", "shop.cart")
    ran(agent, "t1", "pytest -q", GREEN)
    agent.delegated("call_b1", packet("shop.deep"))
    agent.said(CLAIMED)
    assert verdict_of(store) == ("unverifiable", "an agent that it asked has no transcript")


def test_runs_of_an_asked_agent_count_and_of_another_do_not(tmp_path):
    store, main = store_of(tmp_path)
    first = child(store, main, "a1", "shop.cart")
    below = child(store, first, "a2", "shop.cart.test", parentAgentId="a1", spawnDepth=2)
    ran(below, "t1", "pytest -q", GREEN)
    below.said(returned())
    first.returned("call_a2", "a2", returned())
    first.said(CLAIMED)
    main.returned("call_a1", "a1", returned())
    other = child(store, main, "a3", "shop.pay")
    other.said(CLAIMED)
    assert verdict_of(store)[0] == "verified"
    assert verdict_of(store, "shop.pay") == ("contradicted", "never run")


@pytest.mark.parametrize(
    ("acts", "why"),
    [
        ("ended ran", ""),
        ("ran ended", "after that another agent: `python3 fix.py` may have changed files"),
        ("ended ran broken", "after that another agent was at work, and no log tells what it did"),
    ],
)
def test_a_command_of_another_agent_counts_until_it_ends(tmp_path, acts, why):
    store, main = store_of(tmp_path)
    agent, other = child(store, main, "a1", "shop.cart"), child(store, main, "a2", "shop.pay")
    other.used("Bash", "t1", command="python3 fix.py")
    do = {
        "ran": lambda: ran(agent, "t2", "pytest -q", GREEN),
        "ended": lambda: other.got("t1", "", stdout="", stderr="", interrupted=False),
        "broken": lambda: other.lines.append(b"{\n"),
    }
    for act in acts.split():
        do[act]()
    agent.said(CLAIMED)
    verdict, reason = verdict_of(store)
    assert (verdict == "verified", reason.endswith(why)) == (not why, True), reason


def test_commands_of_the_round_before_are_another_attempts(tmp_path):
    store, main = store_of(tmp_path)
    agent = child(store, main, "a1", "shop.cart")
    ran(agent, "t1", "pytest -q", GREEN)
    below = child(store, agent, "b1", "shop.cart.test", parentAgentId="a1", spawnDepth=2)
    ran(below, "t2", "pytest -q", GREEN)
    below.said(returned())
    agent.returned("call_b1", "b1", returned())
    failed = returned().replace("SUCCESS\nsummary: Done.", "ERROR\nsummary: No.\nretry_recommended: yes")
    agent.said(failed)
    main.returned("call_a1", "a1", failed)
    agent.asked(packet("shop.cart"), isMeta=True, origin={"kind": "coordinator"})
    agent.said(CLAIMED)
    monitor = monitor_of(store)
    assert len(monitor.tree.tasks["shop.cart"].attempts) == 2
    assert verdict_of(store)[0] == "contradicted"


def test_a_file_changed_before_the_return_makes_a_run_outdated(tmp_path):
    store, main = store_of(tmp_path)
    # git knows nothing from before its repository was made.
    store.time = datetime.fromtimestamp(HANDED_OFF, UTC)
    agent = child(store, main, "a1", "shop.cart")
    ran(agent, "t1", "pytest -q", GREEN)
    changed = store.time.timestamp() + 0.5 - HANDED_OFF
    agent.said(CLAIMED)
    repository = Repository(store.workspace, tmp_path / "home")
    repository.init()
    repository.commit(at=changed - 1_000)
    repository.write("NOTES.md", at=changed)
    repository.write("cart.py", at=changed)
    assert verdict_of(store) == ("unverifiable", "after that cart.py was changed")
