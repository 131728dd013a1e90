"""All faces show the same about a task: row, details, timeline, report, `tree --json` and `pending`."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.app.screens.timeline import Kind, spans_of
from agentwatch.app.widgets.details.tabs import duration_words as took_shown
from agentwatch.app.widgets.task_line import TimedWords
from agentwatch.cli.pending import pending_task_document
from agentwatch.cli.report import json_report
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.events import Tick
from agentwatch.delegation.task import Shown, State
from agentwatch.report.account import make_account
from agentwatch.view.document import tree_document
from agentwatch.view.words import ended_at, iso, look_of_attempt, short_span
from tests.unit.delegation.test_interleaving import applied, drawn_steps, record

NOW = 1_100.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    place = tmp_path_factory.mktemp("workspace")
    return DecisionService(place, state=place / "state", configuration=place / "keys")


@given(st.lists(drawn_steps, max_size=20))
def test_every_time_state_and_ask_is_the_same_on_every_face(desk, steps):
    tree = applied(record(steps))
    tree.apply(Tick(99, NOW))
    account = make_account(tree, [], workspace="/w", now=NOW)
    written = {task["task_id"]: task for task in tree_document(tree, "/w")["tasks"]}
    reported = {task["task_id"]: task for task in json.loads(json_report(account))["tasks"]}
    lines = {line.task.task_id: line for line in account.tasks}
    assert list(written) == list(lines) == list(reported)
    for task_id, task in tree.tasks.items():
        entry, line = written[task_id], lines[task_id]
        for key in ("title", "state", "ask", "why", "retry", "claims", "updated_at"):
            assert reported[task_id][key] == entry[key]
        told = zip(entry["attempts"], reported[task_id]["attempts"], line.attempts, strict=True)
        for written_attempt, reported_attempt, (attempt, shown, took) in told:
            ended = ended_at(task, attempt)
            assert {key: reported_attempt[key] for key in written_attempt} == written_attempt
            assert written_attempt["ended_at"] == iso(ended)
            assert shown == look_of_attempt(task, attempt)
            details = took_shown(task, attempt, NOW).plain
            if took is None:
                assert details == "-"
            else:
                assert details == short_span(took.seconds) + (" so far" if took.so_far else "")
                is_quiet = task.shown in (Shown.SILENT, Shown.GONE) and attempt is task.latest
                assert took.so_far == (ended is None and not is_quiet)
        assert TimedWords.of_task(task, {}, NOW).age == short_span(
            None if (since := task.since) is None else NOW - since
        )
        own = [one for one in spans_of(task) if one.kind is not Kind.WAIT]
        # The bar of a run that waits or was decided about ends at its last sign of life, and a waiting bar follows.
        # If the files of a task are gone, its end is unknown: its bar ends at its last sign of life, if it had begun.
        is_told = task.own_state not in (State.RETRYING, State.ESCALATED) and task.shown is not Shown.WAITING
        if own and is_told and State.CANCELED not in (task.state, task.own_state):
            last = ended_at(task, line.attempts[-1][0]) if line.attempts else None
            assert (own[-1].end is None) == (last is None), own
    asking = [pending_task_document(tree, task, desk, Path("/w")).to_json() for task in tree.asking_tasks()]
    assert {one["task_id"] for one in asking} == {key for key, task in written.items() if task["needs_operator"]}
    for one in asking:
        task = written[one["task_id"]]
        assert one["return_sha256"] == task["attempts"][-1]["return_sha256"]
        assert all(one[key] == task[key] for key in ("state", "ask", "attempt", "errors"))
        assert set(one["commands"]).isdisjoint(one["not_possible"])
        assert one["suggested"] in (None, *one["commands"])
