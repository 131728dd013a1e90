"""What the events of Copilot CLI come to: who asked whom, how each one stands, and who waits for a human."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentwatch.delegation.run import Asker, RunState
from agentwatch.sources.sessions import locks, processes
from agentwatch.sources.sessions.runs import LEFT_BEHIND, WORDLESS
from tests.unit.copilot.building import SESSION, Log, Store
from tests.unit.sessions.conformance import packet, report

CHILD = "agent-of-call_1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_an_agent_is_known_by_the_call_that_began_it_and_has_its_own_texts(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", packet("a.b"))
    child.called("bash", "run", command="make")
    child.got("run", "made", code=0)
    store.done(main, "call_1", child, report())
    main.said("Done.")
    main.event("session.shutdown", shutdownType="routine")
    store.save()
    reader = store.reader()
    runs = {change.run.session_id: change.run for change in reader.read(60.0) if change.run is not None}
    run, root = runs[CHILD], runs[SESSION]
    assert (run.parent_session, run.link, run.title) == (SESSION, "the tool call that began it", "the call_1")
    assert (run.agent, run.model, run.tokens, run.background) == ("general-purpose", "small", 200, False)
    assert (run.state, root.state, root.title, root.tokens) == (RunState.ENDED, RunState.ENDED, "Go.", 200)
    assert run.said is not None
    assert run.prompt is not None
    assert reader.text(run.said.digest) == report()
    assert reader.text(run.prompt.digest) == packet("a.b")
    assert (reader.trouble, reader.progress.done) == (None, reader.progress.total)
    (found,) = reader.found()
    assert (found.source, found.sessions, found.children, found.skipped) == ("copilot", 1, 1, "")


def test_agents_of_agents_lie_below_the_one_that_called_to_any_depth(store: Store) -> None:
    by, names = store.session(), ["call_1", "call_2", "call_3"]
    for name in names:
        by = store.handed(by, name, f"do {name}")
    runs = store.runs()
    parents = [runs[f"agent-of-{name}"].parent_session for name in names]
    assert parents == [SESSION, "agent-of-call_1", "agent-of-call_2"]


def test_an_agent_whose_call_is_not_there_lies_below_the_sender_of_its_first_message(store: Store) -> None:
    store.handed(store.session(), "call_1", "one")
    lost = Log(store, SESSION, "lost")
    lost.began("no such call")
    lost.asked("two", source=f"agent-{CHILD}")
    run = store.runs()["lost"]
    assert (run.parent_session, run.link) == (CHILD, "the sender of its first message")


@pytest.mark.parametrize("words", ["", " \n"])
def test_a_blank_answer_is_none(store: Store, words: str) -> None:
    main = store.session()
    child = store.handed(main, "call_1", "Say nothing.")
    store.done(main, "call_1", child, words)
    run = store.runs()[CHILD]
    assert (run.state, run.reason, run.said) == (RunState.ENDED, WORDLESS, None)


def test_a_failure_is_told_with_its_reason_and_may_be_overcome(store: Store) -> None:
    main = store.session()
    for number, ends in enumerate(("failed", "recovered")):
        child = store.handed(main, f"call_{number}", "Ask the model.")
        child.event("session.error", errorType="query", message="500 Internal\nand more")
        if ends == "failed":
            child.event("subagent.failed", toolCallId=f"call_{number}", error="400 Bad Request")
        else:
            store.done(main, f"call_{number}", child, "There.")
    runs = store.runs()
    assert [(one.state, one.reason) for one in (runs["agent-of-call_0"], runs["agent-of-call_1"])] == [
        (RunState.FAILED, "400 Bad Request"),
        (RunState.ENDED, ""),
    ]


def test_an_agent_that_was_never_begun_is_known_by_its_call(store: Store) -> None:
    main = store.session()
    main.handed("call_1", packet("a.b"))
    assert store.runs()["call_1"].state is RunState.SUBMITTED
    main.got_none("call_1", "Unknown agent type 'nobody'")
    run = store.runs()["call_1"]
    assert (run.state, run.reason, run.parent_session) == (RunState.FAILED, "Unknown agent type 'nobody'", SESSION)
    assert run.prompt is not None
    reader = store.reader()
    reader.read(60.0)
    assert reader.transcript(run) is None


def test_an_agent_in_the_background_ends_by_itself_and_what_the_program_makes_up_is_no_call(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", "Slowly.", "background")
    main.said("I wait.")
    runs = store.runs()
    assert (runs[CHILD].state, runs[CHILD].background, runs[SESSION].state) == (RunState.WORKING, True, RunState.ENDED)
    child.said(report())
    child.completed("call_1")
    main.event("system.notification", content="Agent is idle.", kind={"type": "agent_idle"})
    request = {"toolCallId": "made-up", "name": "read_agent", "arguments": {"agent_id": CHILD}}
    main.event("assistant.message", content="", toolRequests=[request])
    main.event("tool.execution_start", toolCallId="made-up", toolName="read_agent", arguments={})
    runs = store.runs()
    assert (runs[CHILD].state, runs[SESSION].state) == (RunState.ENDED, RunState.ENDED)
    assert runs[SESSION].doing is not None
    assert runs[SESSION].doing.about == "I wait."


def test_an_agent_that_is_sent_on_has_rounds_which_end_with_their_turns(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", "one", "background")
    child.said("First.")
    child.completed("call_1")
    child.asked("Again.")
    assert store.runs()[CHILD].state is RunState.WORKING
    child.asked("Mind the time.", delivery="steering")
    child.said("Second.")
    run = store.runs()[CHILD]
    assert [(one.asker, one.state) for one in run.rounds[:1]] == [(Asker.PARENT, RunState.ENDED)]
    assert (len(run.rounds), [one.opening for one in run.earlier]) == (2, ["First."])
    assert (run.state, run.said.opening if run.said else None) == (RunState.ENDED, "Second.")
    # All that idle are told so when Copilot is closed.
    child.completed("call_1", cancelled=True)
    assert store.runs()[CHILD].state is RunState.ENDED


def test_what_esc_broke_off_is_canceled_though_its_text_looks_like_a_return(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", packet("a.b"))
    child.answered(report())
    main.event("abort", reason="user_initiated")
    runs = store.runs()
    assert [(one.state, one.reason, one.said) for one in (runs[CHILD], runs[SESSION])] == [
        (RunState.CANCELED, "user initiated", None)
    ] * 2
    child.event("assistant.turn_end", turnId="0")
    child.completed("call_1", cancelled=True)
    assert (store.runs()[CHILD].state, store.runs()[CHILD].said) == (RunState.CANCELED, None)
    child.asked("Go on.")
    assert store.runs()[CHILD].earlier == ()
    main.asked("Go on.")
    assert store.runs()[SESSION].state is RunState.WORKING


def test_who_was_killed_was_left_behind_once_the_session_is_continued(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", packet("a.b"))
    child.called("bash", "run", command="sleep 110")
    assert store.runs()[CHILD].state is RunState.WORKING
    main.event("session.resume", eventCount=9, resumeTime="2026-11-22T12:00:00Z")
    main.got_none("call_1", "was interrupted before a result was recorded")
    child.completed("call_1", cancelled=True)
    main.asked("Go on.")
    runs = store.runs()
    assert (runs[CHILD].state, runs[CHILD].reason, runs[CHILD].said) == (RunState.FAILED, LEFT_BEHIND, None)
    assert runs[SESSION].state is RunState.WORKING


def test_a_fork_shows_what_was_done_in_it_and_not_what_it_is_a_copy_of(store: Store) -> None:
    for name in (SESSION, "fork"):
        main = store.session(name)
        store.done(main, "call_1", store.handed(main, "call_1", packet("a.b"), session=name), report())
        forked = "Forked from" if name == "fork" else "Forked this session into"
        main.event("session.info", infoType="fork", message=f'{forked} "Go." (an id).')
    assert store.runs().keys() == {SESSION, CHILD}
    main.event("session.resume", eventCount=9)
    main.asked("And now?")
    store.handed(main, "call_2", packet("a.c"), session="fork")
    store.save()
    runs = {change.key: change.run for change in store.reader().read(60.0)}
    assert runs.keys() == {SESSION, f"{SESSION}/call_1", "fork", "fork/call_2"}
    assert runs["fork"] is not None
    assert (runs["fork"].title, runs["fork"].tokens) == ("And now?", 100)


def test_a_program_that_joins_a_session_at_work_leaves_nobody_behind(store: Store) -> None:
    main = store.session()
    store.handed(main, "call_1", "one")
    main.event("session.resume", eventCount=9, sessionWasActive=True)
    assert store.runs()[CHILD].state is RunState.WORKING


def test_what_works_when_the_program_is_closed_has_failed(store: Store) -> None:
    main = store.session()
    store.handed(main, "call_1", "one", "background")
    main.said("I wait.")
    main.event("session.shutdown", shutdownType="routine")
    runs = store.runs()
    assert (runs[CHILD].state, runs[CHILD].reason) == (RunState.FAILED, "not over when Copilot was closed")
    assert runs[SESSION].state is RunState.ENDED


def test_a_permission_is_waited_for_until_it_is_given_or_not(store: Store) -> None:
    main = store.session()
    child = store.handed(main, "call_1", "one")
    child.asks_leave("r1", "rm -r build\nls")
    runs = store.runs()
    assert (runs[CHILD].waiting, runs[CHILD].state) == ("a permission: shell rm -r build", RunState.WORKING)
    assert runs[SESSION].waiting == ""
    child.leave("r1")
    assert store.runs()[CHILD].waiting == ""
    child.asks_leave("r2", "ls")
    child.completed("call_1", cancelled=True)
    main.event("abort", reason="user_initiated")
    child.leave("r2", "cancelled")
    run = store.runs()[CHILD]
    assert (run.state, run.waiting) == (RunState.CANCELED, "")


def test_a_question_is_waited_for_until_it_is_answered(store: Store) -> None:
    main = store.session()
    main.called("ask_user", "q", question="Which colour?", choices=["red", "blue"])
    assert store.runs()[SESSION].waiting == "an answer: Which colour?"
    main.got("q", "red")
    assert store.runs()[SESSION].waiting == ""


def test_sessions_of_other_directories_are_counted_and_not_read(store: Store) -> None:
    store.session()
    other = Log(store, "other")
    other.opened(Path("/elsewhere"))
    other.asked("Go.")
    below = Log(store, "below")
    below.opened(store.workspace / "src")
    below.asked("Go.")
    assert store.runs().keys() == {SESSION, "below"}
    reader = store.reader()
    reader.read(60.0)
    assert [(one.sessions, one.skipped) for one in reader.found()] == [(2, "1 session of other directories")]


def test_a_session_of_another_directory_that_is_replaced_by_one_of_this_is_read(store: Store) -> None:
    store.session()
    other = Log(store, "other")
    other.opened(Path("/elsewhere"))
    store.save()
    reader = store.reader()
    for _ in range(2):
        assert [change.key for change in reader.read(60.0)] in ([SESSION], [])
    other.path.rename(other.path.with_name("before"))
    other.opened()
    other.asked("Go.")
    store.save()
    assert [change.key for change in reader.read(60.0)] == ["other"]
    assert [(one.sessions, one.skipped) for one in reader.found()] == [(2, "")]


def test_a_line_that_is_not_whole_waits_and_what_is_no_event_is_counted(store: Store) -> None:
    main = store.session()
    store.save()
    with main.path.open("ab") as file:
        file.write(b'[1]\n{"type":"assistant.message","data":7,"id":"x","timestamp":"2026-11-22T12:00:09Z"}\n{"type":')
    reader = store.reader()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert (change.run.state, reader.trouble) == (RunState.WORKING, "1 line not understood and left out")


@pytest.mark.parametrize(
    "half", [b'{"type":"system.message","data":{"content":"You', b'{"type":"abort","data":{"a":{"b":1}']
)
def test_what_is_written_behind_half_an_event_of_a_killed_program_counts(store: Store, half: bytes) -> None:
    main = store.session()
    store.handed(main, "call_1", packet("a.b"))
    store.put(main.path, half)
    main.event("session.resume", eventCount=9)
    main.asked("Go on.")
    again = store.handed(main, "call_2", "one")
    store.put(main.path, half)
    again.said("Done.")
    again.completed("call_2")
    runs = store.runs()
    assert (runs[CHILD].state, runs[CHILD].reason) == (RunState.FAILED, LEFT_BEHIND)
    run = runs["agent-of-call_2"]
    assert run.said is not None
    reader = store.reader()
    reader.read(60.0)
    assert (reader.trouble, reader.text(run.said.digest)) == (None, "Done.")
    transcript = reader.transcript(run)
    assert transcript is not None
    assert [entry.text for entry in transcript.entries()] == ["one", "Done."]


def test_a_file_that_begins_anew_is_read_anew(store: Store) -> None:
    store.handed(store.session(), "call_1", "one")
    store.save()
    reader = store.reader()
    assert len(reader.read(60.0)) == 2
    path = store.home / "session-state" / SESSION / "events.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    path.write_bytes(b"".join(whole[:3]))
    changes = {change.key: change.run for change in reader.read(60.0)}
    assert changes[f"{SESSION}/call_1"] is None


def test_values_of_the_wrong_kind_are_values_that_are_not_there(store: Store) -> None:
    main = store.session()
    for kind in ("user.message", "assistant.message", "subagent.completed", "permission.requested", "abort"):
        main.event(kind, content=[], toolRequests={"a": 1}, permissionRequest="x", cancelled="yes", reason={})
        main.event(kind, content={"a": 1}, model=3, usage=[1], requestId=[], toolCallId=7)
    main.event("session.usage_record", usage={"inputTokens": "many", "outputTokens": 1e400})
    main.event("task", toolCallId=None, arguments=[])
    runs = store.runs()
    assert runs.keys() == {SESSION}
    assert runs[SESSION].tokens is None


# The program


def gone(store: Store) -> bool | None:
    """Whether the program is, where what it has written was written long ago."""
    store.save()
    os.utime(store.home / "session-state" / SESSION / "events.jsonl", (1.0, 1.0))
    return store.runs()[SESSION].process_gone


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes began as long ago as the locks."""
    monkeypatch.setattr(locks, "_began", lambda _: 2.0)


@pytest.mark.usefixtures("began")
def test_a_program_that_left_its_lock_behind_is_gone_and_nobody_can_answer_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session().asks_leave("r1", "ls")
    lock = store.lock(os.getpid())
    assert gone(store) is False
    assert store.runs()[SESSION].waiting == "a permission: shell ls"
    lock.unlink()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    store.lock(process.pid)
    monkeypatch.setattr(processes, "sees_all", lambda: True)
    assert gone(store) is True
    assert store.runs()[SESSION].waiting == ""
    # It may run in another container.
    monkeypatch.setattr(processes, "sees_all", lambda: False)
    assert gone(store) is None


@pytest.mark.usefixtures("began")
def test_a_program_that_has_taken_its_lock_along_is_gone(store: Store) -> None:
    store.session()
    lock = store.lock(os.getpid())
    assert gone(store) is False
    reader = store.reader()
    reader.read(60.0)
    lock.unlink()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert change.run.process_gone is True
    assert gone(store) is None, "one who comes later sees no lock"


@pytest.mark.skipif(sys.platform != "linux", reason="start times are read from /proc")
def test_another_process_under_the_number_of_a_lock_does_not_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.session()
    store.lock(os.getpid())
    monkeypatch.setattr(processes, "sees_all", lambda: True)
    assert gone(store) is True
    began = locks._began(os.getpid())
    assert began is not None
    assert 0 <= time.time() - began < 86_400


def test_what_was_written_before_the_program_began_was_left_behind_by_another(store: Store) -> None:
    store.session()
    lock = store.lock(os.getpid())
    os.utime(lock, (4_000_000_000.0,) * 2)
    assert gone(store) is True


def test_names_of_locks_are_numbers(store: Store) -> None:
    store.session()
    lock = store.lock(os.getpid())
    lock.unlink()
    for name in ("inuse..lock", "inuse.-1.lock", "inuse.0.lock", "inuse.99999999999999999999.lock", "inuse.a.lock"):
        lock.with_name(name).write_text("1")
    lock.with_name("inuse.1.lock").mkdir()
    assert gone(store) is None
