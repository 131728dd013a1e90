"""What the chats of Gemini CLI come to, where they say less, or more, than one would think."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentwatch.delegation.run import RunState
from agentwatch.sources.gemini.gemini_reader import texts_in
from agentwatch.sources.sessions.runs import CUT_OFF, LEFT_BEHIND, WORDLESS
from tests.unit.gemini.building import SESSION, Log, Store, handing, used
from tests.unit.sessions.conformance import packet, report


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_an_agent_is_known_by_its_directory_and_has_the_texts_of_its_own_chat(store: Store) -> None:
    main = store.session()
    child = store.agent("child", packet("a.b"))
    child.called("read_file", "read", "text", file_path="x")
    child.returned(report())
    main.answered("I hand it out.", handing("call_1", packet("a.b"), "child"))
    main.answered("Done.")
    store.save()
    reader = store.reader()
    runs = {change.key: change.run for change in reader.read(60.0)}
    run, root = runs["child"], runs[SESSION]
    assert run is not None
    assert root is not None
    assert (run.parent_session, run.link, run.agent) == (SESSION, "the directory of its chat", "generalist")
    assert (run.state, run.model, run.tokens) == (RunState.ENDED, "small", 200)
    assert (root.state, root.title, root.tokens) == (RunState.ENDED, "Go.", 200)
    assert run.said is not None
    assert run.prompt is not None
    assert reader.text(run.said.digest) == report()
    assert reader.text(run.prompt.digest) == packet("a.b")
    assert (reader.trouble, reader.progress.done) == (None, reader.progress.total)
    (found,) = reader.found()
    assert (found.source, found.sessions, found.children, found.skipped) == ("gemini", 1, 1, "")


def test_a_session_that_waits_for_its_agents_works_though_its_record_says_nothing_of_the_calls(store: Store) -> None:
    main = store.session()
    main.answered("I hand it out.")
    assert store.runs()[SESSION].state is RunState.ENDED
    child = store.agent("child", packet("a.b"))
    runs = store.runs()
    assert [(one.state, one.said) for one in (runs[SESSION], runs["child"])] == [(RunState.WORKING, None)] * 2
    child.returned(report())
    runs = store.runs()
    assert (runs[SESSION].state, runs["child"].state) == (RunState.ENDED, RunState.ENDED)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("As a text.\n", "As a text.\n"),
        ({"response": "In an object."}, "In an object."),
        ({"Summary": "Two", "Trace": ["keys"]}, '{\n  "Summary": "Two",\n  "Trace": [\n    "keys"\n  ]\n}'),
        (" ", None),
    ],
)
def test_what_is_handed_back_is_the_argument_of_the_last_call(store: Store, result: object, said: str | None) -> None:
    store.session()
    child = store.agent("child", "one")
    # One that is refused hands nothing back.
    child.called("complete_task", "refused", "must be an object", "error", result="Refused.")
    assert store.runs()["child"].state is RunState.WORKING
    child.called("complete_task", "done", "Output submitted.", result=result)
    run = store.runs()["child"]
    assert (run.state, run.reason) == (RunState.ENDED, "" if said else WORDLESS)
    reader = store.reader()
    reader.read(60.0)
    assert (reader.text(run.said.digest) if run.said is not None else None) == said


@pytest.mark.parametrize(
    ("status", "shown", "state", "reason"),
    [
        ("success", {"state": "error"}, RunState.FAILED, "Subagent 'generalist' finished."),
        ("success", {"terminateReason": "MAX_TURNS"}, RunState.FAILED, "MAX_TURNS"),
        ("success", {}, RunState.ENDED, WORDLESS),
        ("error", {}, RunState.FAILED, "[Operation Cancelled] Reason: Operation cancelled by user"),
        (
            "cancelled",
            {"state": "running"},
            RunState.CANCELED,
            "[Operation Cancelled] Reason: Operation cancelled by user",
        ),
    ],
)
def test_how_an_agent_without_a_return_ended_is_told_to_its_parent(
    store: Store, status: str, shown: dict[str, object], state: RunState, reason: str
) -> None:
    main = store.session()
    store.agent("child", "one").answered("I begin.")
    main.answered("Out.", handing("call_1", "one", None if status != "success" else "child", status, **shown))
    runs = store.runs()
    assert runs.keys() == {SESSION, "child"}
    assert (runs["child"].state, runs["child"].reason, runs["child"].said) == (state, reason, None)


def test_an_agent_that_has_handed_back_has_ended_whatever_becomes_of_its_call(store: Store) -> None:
    main = store.session()
    store.agent("child", "one").returned("Made.")
    main.answered("Out.", handing("call_1", "one", None, "cancelled"))
    assert store.runs()["child"].state is RunState.ENDED


def test_an_agent_whose_messages_are_dropped_was_broken_off_and_keeps_its_prompt(store: Store) -> None:
    main = store.session()
    child = store.agent("child", packet("a.b"))
    child.patched(messages=[])
    run = store.runs()["child"]
    assert (run.state, run.reason, run.prompt is not None) == (RunState.FAILED, CUT_OFF, True)
    main.answered("Out.", handing("call_1", packet("a.b"), None, "cancelled"))
    assert store.runs()["child"].state is RunState.CANCELED
    child.answered("I go on.")
    assert store.runs()["child"].state is RunState.CANCELED, "its parent has heard of its end"


def test_esc_ends_the_turn_of_the_session_and_a_denied_call_does_not(store: Store) -> None:
    main = store.session()
    main.called("run_shell_command", "denied", "User denied execution.", "cancelled", command="ls")
    assert store.runs()[SESSION].state is RunState.WORKING
    main.called("run_shell_command", "stopped", "Operation cancelled by user", "cancelled", command="ls")
    assert store.runs()[SESSION].state is RunState.CANCELED
    main.asked("Go on.")
    assert store.runs()[SESSION].state is RunState.WORKING


def test_who_was_killed_was_left_behind_once_a_human_goes_on_with_the_session(store: Store) -> None:
    main = store.session()
    main.answered("Out.")
    store.agent("child", "one").answered("I run it.")
    assert store.runs()["child"].state is RunState.WORKING
    main.line(sessionId=SESSION, projectHash="0" * 64, kind="main")
    main.patched(messages=[{"id": "h", "type": "user", "content": "history"}])
    main.asked("Go on.")
    runs = store.runs()
    assert (runs["child"].state, runs["child"].reason) == (RunState.FAILED, LEFT_BEHIND)
    assert (runs[SESSION].state, runs[SESSION].title) == (RunState.WORKING, "Go.")


def test_an_agent_that_was_never_begun_is_known_by_its_call(store: Store) -> None:
    main = store.session()
    child = store.agent("child", "one")
    # An agent may not ask for another one.
    child.answered("Help.", used("invoke_agent", "n1", "error", {"error": "Unauthorized tool call"}, prompt="two"))
    main.answered("Out.", handing("call_1", "three", None, "error"))
    runs = store.runs()
    assert {name: runs[name].parent_session for name in ("n1", "call_1")} == {"n1": "child", "call_1": SESSION}
    assert (runs["n1"].state, runs["n1"].reason) == (RunState.FAILED, "Unauthorized tool call")
    reader = store.reader()
    reader.read(60.0)
    assert reader.transcript(runs["n1"]) is None


def test_calls_are_those_of_the_agents_with_their_prompts_in_whatever_order_they_are_written(store: Store) -> None:
    main = store.session()
    for number in range(3):
        store.agent(f"child-{number}", f"Do it. Note: {number}.").answered("I begin.")
    calls = [handing(f"call_{number}", f"Do it. Note: {number}.", None, "cancelled") for number in (2, 0, 1)]
    main.answered("Out.", *calls)
    runs = store.runs()
    assert runs.keys() == {SESSION, "child-0", "child-1", "child-2"}
    assert {run.state for run in runs.values()} == {RunState.CANCELED}


def test_agents_with_the_same_prompt_have_a_call_each(store: Store) -> None:
    main = store.session()
    for number in range(2):
        store.agent(f"child-{number}", "The same.").answered("I begin.")
    main.answered("Out.", *(handing(f"call_{number}", "The same.", None, "cancelled") for number in range(2)))
    assert store.runs().keys() == {SESSION, "child-0", "child-1"}


def test_a_message_that_is_written_again_is_one_message(store: Store) -> None:
    main = store.session()
    main.answered("First.", used("read_file", "a", "success", {"output": "x"}, file_path="a"), tokens=60)
    for tokens in (60, 90):
        main.line(id="m", timestamp=store.now(), type="gemini", content="Second.", tokens={"total": tokens})
    runs = store.runs()
    assert (runs[SESSION].tokens, runs[SESSION].state) == (50 + 90, RunState.ENDED)
    assert runs[SESSION].said is not None
    assert runs[SESSION].said.opening == "Second."
    calls = [used("read_file", name, "success", {"output": "x"}, file_path="a") for name in ("a", "b")]
    for seen in (calls[:1], calls, calls):
        main.line(id="n", timestamp=store.now(), type="gemini", content="Third.", toolCalls=seen)
    doing = store.runs()[SESSION].doing
    assert doing is not None
    assert (doing.what, doing.repeats) == ("read_file", 3), "one before, and two now"


def test_what_is_taken_back_was_not_said(store: Store) -> None:
    main = store.session()
    main.answered("First.")
    second = main.asked("And now?")
    main.answered("Second.")
    store.save()
    reader = store.reader()
    reader.read(60.0)
    main.line(**{"$rewindTo": second})
    store.save()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert (change.run.state, change.run.said) == (RunState.ENDED, None)
    assert change.run == store.runs()[SESSION]
    main.line(**{"$rewindTo": "nobody knows"})
    run = store.runs()[SESSION]
    assert (run.state, run.said, run.title) == (RunState.SUBMITTED, None, None)
    main.asked("Anew.")
    assert store.runs()[SESSION].title == "Anew."


def test_what_is_written_behind_half_a_line_of_a_killed_program_counts(store: Store) -> None:
    main = store.session()
    store.agent("child", "one").answered("I run it.")
    store.put(
        main.path, b'{"id":"m","timestamp":"2026-11-22T12:00:09Z","type":"gemini","toolCalls":[{"args":{"id":"x"}'
    )
    main.asked("Go on.")
    runs = store.runs()
    assert (runs["child"].reason, runs[SESSION].tokens) == (LEFT_BEHIND, None)


def test_a_checklist_is_that_of_the_tool(store: Store) -> None:
    todos = [{"description": "one", "status": "completed"}, {"description": "two", "status": "cancelled"}, 7]
    store.session().called("write_todos", "t", todos=todos)
    found = store.runs()[SESSION].todos
    assert found is not None
    assert [(todo.text, todo.status.value) for todo in found] == [("one", "done"), ("two", "pending")]


def test_values_of_the_wrong_kind_are_values_that_are_not_there(store: Store) -> None:
    main = store.session()
    for keys in (
        {"$set": 7},
        {"$set": {"messages": {}, "lastUpdated": 5}},
        {"$rewindTo": []},
        {"id": "x", "timestamp": store.now(), "type": "gemini", "content": 7, "toolCalls": [7, {"args": []}, {}]},
        {"id": "y", "timestamp": store.now(), "type": "gemini", "tokens": {"total": "many"}, "thoughts": [7]},
        {"id": "z", "timestamp": "yesterday", "type": "user"},
    ):
        main.line(**keys)
    runs = store.runs()
    assert runs.keys() == {SESSION}
    assert runs[SESSION].tokens is None
    reader = store.reader()
    reader.read(60.0)
    assert reader.trouble == "2 lines not understood and left out"


def test_what_is_nested_too_deep_to_be_written_is_no_return() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    call = {"name": "complete_task", "args": {"result": deep}}
    assert list(texts_in({"content": "I am done.", "toolCalls": [call]})) == ["I am done.", "", ""]


# Whose a project is


def test_a_project_is_that_of_the_directory_that_it_names(store: Store) -> None:
    store.session()
    store.save()
    root = store.project / ".project_root"
    for named, count in (
        (f"{store.workspace}\n", 1),
        (str(store.workspace / "src"), 1),
        (str(store.workspace) + "-2", 0),
        (str(store.workspace.parent), 0),
    ):
        root.write_text(named)
        assert len(store.reader().read(60.0)) == count, named


def test_a_project_that_names_none_is_looked_up_among_all(store: Store) -> None:
    store.session()
    store.save()
    (store.project / ".project_root").unlink()
    assert not store.reader().read(60.0)
    registry = store.home / "projects.json"
    registry.write_text(json.dumps({"projects": {"/x": "work", str(store.workspace): store.project.name, "y": 7}}))
    assert len(store.reader().read(60.0)) == 1
    registry.write_text("[")
    assert not store.reader().read(60.0)


def test_a_project_that_is_given_to_another_directory_takes_its_tasks_along(store: Store) -> None:
    store.session()
    store.save()
    reader = store.reader()
    assert len(reader.read(60.0)) == 1
    root = store.project / ".project_root"
    root.write_text("/elsewhere")
    os.utime(root, (1.0, 1.0))
    (change,) = reader.read(60.0)
    assert change.run is None


@pytest.mark.parametrize("written", ["", "work", "\0", "x" * 70_000])
def test_a_project_that_does_not_say_whose_it_is_is_told(store: Store, written: str) -> None:
    store.session()
    store.save()
    (store.project / ".project_root").write_text(written)
    reader = store.reader()
    assert not reader.read(60.0)
    assert reader.trouble == f"{store.project} cannot be read"


def test_the_chat_of_another_session_that_begins_alike_is_one_of_its_own(store: Store) -> None:
    store.session()
    other = Log(store, SESSION[:8] + "-other")
    other.path = other.path.with_name("session-2026-11-23T07-00-75707bae.jsonl")
    other.begun()
    other.asked("Something else.")
    assert store.runs().keys() == {SESSION, SESSION[:8] + "-other"}
