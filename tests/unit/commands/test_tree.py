"""The tree as text: a line a task, which says and shows what the screen does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.commands.tree import print_tree
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.observation import Decided, Tick
from agentwatch.delegation.tree import DelegationTree
from agentwatch.history.log import StateChanges, line
from agentwatch.monitor import Monitor
from agentwatch.report.account import account_of
from agentwatch.sources.files.source import FilesSource
from agentwatch.view.document import tree_document
from agentwatch.view.groups import Group
from agentwatch.view.order import Order
from tests.unit.delegation.observations import BROKEN, Recorder, handoff, meta, returned, todos


@pytest.fixture
def monitor(tmp_path: Path) -> Monitor:
    return Monitor(tmp_path, Settings(), FilesSource(tmp_path), lambda: 2e9)


def printed(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_tree(monitor, as_json=False, fail=False)
    return capsys.readouterr().out.splitlines()


def test_a_contradicted_task_is_marked_as_on_the_screen(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> None:
    record = Recorder()
    seen = record.seen("a.return.md", returned("completed", task_id="a"))
    monitor.tree.apply(seen)
    assert printed(monitor, capsys)[0].startswith("✓ a  completed")
    monitor.tree.apply(record.checked("a.return.md", seen.digest, "contradicted"))
    monitor.tree.apply(record.seen("b.return.md", returned("completed", task_id="b")))
    lines = printed(monitor, capsys)
    assert any(line.startswith("⚑ a  completed, contradicted  NEEDS YOU: a claim is false") for line in lines)
    assert lines[-1].startswith("2 tasks: 2 completed (1 contradicted); 1 need you")


def test_a_heading_counts_a_false_task_once() -> None:
    record, tree = Recorder(), DelegationTree()
    seen = record.seen("a.return.md", returned("completed", task_id="a"))
    for one in (seen, record.checked("a.return.md", seen.digest, "contradicted")):
        tree.apply(one)
    order = Order(tree)
    order.take(tree.tasks, tree.now)
    assert order.words(Group.NOW, tree.now)[0] == "1 run · 1 false"
    tree.apply(record.seen("b.return.md", returned("completed", task_id="b")))
    order.take(tree.tasks, tree.now)
    assert order.words(Group.NOW, tree.now)[0] == "2 runs · 1 completed · 1 false"


def test_an_accepted_task_says_so_and_the_log_has_a_line_of_it(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Recorder()
    seen = record.seen("a.return.md", returned("completed", task_id="a"))
    monitor.tree.apply(seen)
    monitor.tree.apply(record.checked("a.return.md", seen.digest, "contradicted"))
    log = StateChanges(monitor.tree)
    accepted = Decision(
        decision_id="d",
        task_id="a",
        attempt=1,
        handoff_sha256=None,
        return_sha256=seen.digest,
        action=Action.ACCEPT,
        at=seen.at + 1,
        receipts=(Receipt(Stage.RECORDED, seen.at + 1),),
    )
    (change,) = log.tell([Decided(9, seen.at + 1, "d", accepted)])
    assert line(change).endswith(
        "a  completed → completed, contradicted  you accepted it as it is; the decision is recorded"
    )
    assert printed(monitor, capsys)[0] == "⚑ a  completed, contradicted, accepted"


def test_what_is_found_is_counted_among_all_tasks_also_those_of_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor = Monitor(tmp_path, Settings(), FilesSource(tmp_path), lambda: 2e9, history_before=1e9)
    record = Recorder()
    for task_id, outcome in (("a", "failed"), ("b", "completed")):
        monitor.tree.apply(record.seen(f"{task_id}.return.md", returned(outcome, task_id=task_id)))
    monitor.tree.apply(Tick(9, 1.5e9))
    print_tree(monitor, as_json=False, fail=False, where="state:failed")
    assert "1 found of 2 tasks (2 of history); 0 need you" in capsys.readouterr().out


def test_as_many_tasks_are_counted_as_rows_are_printed(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> None:
    see = Recorder().seen
    monitor.tree.apply(see("7_x/.return-meta.json", meta("failed", "orchestrator", "plan", "planner")))
    lines = printed(monitor, capsys)
    assert (len(lines), lines[-1]) == (2, "1 task: 1 failed; 1 need you")
    order = Order(monitor.tree)
    order.take(monitor.tree.tasks, monitor.tree.now)
    assert [(tally.tasks, +tally.present) for tally in order.tallies.values() if tally.runs] == [
        (1, {"failed": 1, "asking": 1})
    ]
    print_tree(monitor, as_json=False, fail=False, where="state:failed")
    assert "1 found of 1 task:" in capsys.readouterr().out
    summary = tree_document(monitor.tree, "/w")["summary"]
    assert (summary["tasks"], summary["by_state"], summary["past"]) == (1, {"failed": 1}, 0)
    account = account_of(monitor.tree, (), workspace="/w", now=2e9)
    assert [(line.depth, line.title) for line in account.rows] == [(0, "7_x · planner")]
    assert account.verdict.startswith("1 task, none done. 1 failed.")


def test_a_stale_task_says_for_how_long_and_what_is_known_of_its_process(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Recorder()
    for seen in (record.seen("a.handoff.json", handoff("a")), record.seen("a.todos.md", todos("x", " "))):
        monitor.tree.apply(seen)
    monitor.tree.apply(Tick(9, seen.at + 7_500.0))
    line = printed(monitor, capsys)[0]
    assert line.startswith("◌ a  working")
    assert "silent for 2 h; whether its process still runs is not known" in line


def test_sessions_that_were_not_asked_for_are_counted(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> None:
    for left_out, words in ((1, "1 task is older, or"), (2, "2 tasks are older, or"), (0, "no handoffs or returns")):
        print_tree(monitor, as_json=False, fail=False, left_out=left_out)
        assert words in capsys.readouterr().out


def test_files_that_belong_to_no_task_are_counted(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> None:
    named = Return(Contract.SUBAGENT_RETURN, None, None, recognised=False)
    monitor.tree.apply(Recorder().seen("b.return.json", named, BROKEN))
    assert printed(monitor, capsys)[-1].endswith("; 1 other file with problems: `agentwatch check` tells them")


def test_a_chain_that_is_only_named_is_one_line(monitor: Monitor, capsys: pytest.CaptureFixture[str]) -> None:
    path = ("orchestrator", "research", "agent-y")
    said = Return(Contract.SUBAGENT_RETURN, "implemented", Outcome.COMPLETED, agent=path[-1], delegation_path=path)
    monitor.tree.apply(Recorder().seen("specs/973_prove_it/.return-meta.json", said))
    assert len(monitor.tree.tasks) > 1
    lines = printed(monitor, capsys)
    assert len(lines) == 2
    assert lines[0].startswith("✓ 973_prove_it · agent-y  completed  [agent-y]")
    print_tree(monitor, as_json=False, fail=False, where="agent:agent-y")
    assert capsys.readouterr().out.splitlines()[0] == lines[0]
