"""What really happens in sessions, each told as runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Handoff, TodoStatus
from agentwatch.delegation.run import Message, Run, RunState
from tests.unit.claude_code.building import SESSION, Store, indented, meta, notification, packet, report


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def text(store: Store, message: Message | None) -> str | None:
    """The whole text of a message, as it is found again."""
    if message is None:
        return None
    reader = store.reader()
    reader.read(60.0)
    return reader.text(message.digest)


def only_agent(runs: dict[str, Run]) -> Run:
    (run,) = (run for run in runs.values() if run.parent_session is not None)
    return run


def test_a_foreground_agent_is_a_child_of_its_session_with_its_own_words(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1", model="other"))
    main.asked("Hand it out.")
    main.delegated("toolu_1", packet("t.a"))
    child.asked(packet("t.a"))
    child.used("Bash", "toolu_2", command="true")
    child.got("toolu_2", "ok")
    child.said(report("SUCCESS"))
    main.returned("toolu_1", "a1", report("SUCCESS"))
    main.said("All is done.")
    runs = store.runs()
    root, run = runs[SESSION], runs["a1"]
    assert (root.parent_session, root.state, root.title) == (None, RunState.ENDED, "Hand it out.")
    assert text(store, root.said) == "All is done."
    assert (run.parent_session, run.state, run.link, run.title) == (SESSION, RunState.ENDED, "meta.json", "the toolu_1")
    assert (run.mode, run.model, run.tokens, run.background) == ("general-purpose", "claude-test-1", 220, False)
    assert run.prompt is not None
    assert run.prompt.reading is not None
    assert isinstance(run.prompt.reading.document, Handoff)
    assert run.prompt.reading.document.task_id == "t.a"
    assert text(store, run.prompt) == packet("t.a")
    assert text(store, run.said) == report("SUCCESS")
    assert run.ended_at is not None
    assert run.started_at < run.ended_at <= run.updated_at


def test_nested_agents_hang_below_the_agent_that_asked_for_them(store: Store) -> None:
    main = store.session()
    child = store.agent("a1", meta("toolu_1"))
    grandchild = store.agent("a2", meta("toolu_2", spawnDepth=2))
    great = store.agent("a3", meta("toolu_3", spawnDepth=3, parentAgentId="a2"))
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.delegated("toolu_2", "two")
    grandchild.asked("two")
    great.asked("three")
    runs = store.runs()
    assert [runs[agent].parent_session for agent in ("a1", "a2", "a3")] == [SESSION, "a1", "a2"]


@pytest.mark.parametrize("way", ["queue", "user", "attachment"])
def test_a_background_agent_ends_with_its_notification(store: Store, way: str) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1", requestShape="background"))
    main.asked("Go.")
    main.delegated("toolu_1", "one", run_in_background=True)
    main.launched("toolu_1", "a1")
    main.said("I wait.")
    child.asked("one")
    child.said("Looking first.", stop=None)
    child.said(report("PARTIAL"), stop=None)
    assert store.runs()["a1"].state is RunState.WORKING
    told = notification("a1", "completed", 'Agent "x" finished', "a copy")
    if way == "queue":
        main.record("queue-operation", operation="enqueue", content=told)
    elif way == "user":
        main.asked(told, origin={"kind": "task-notification"})
    else:
        main.record("attachment", attachment={"type": "queued_command", "prompt": told})
    run = store.runs()["a1"]
    assert (run.state, run.background) == (RunState.ENDED, True)
    assert text(store, run.said) == report("PARTIAL")


def test_a_resumed_agent_is_one_run_with_its_return_of_before(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", packet("t.a"))
    child.asked(packet("t.a"))
    child.said(report("PARTIAL", "Half."))
    main.returned("toolu_1", "a1", report("PARTIAL", "Half."))
    main.used("SendMessage", "toolu_2", to="a1", message="Go on.")
    child.asked("The coordinator sent a message:\nGo on.", isMeta=True, origin={"kind": "coordinator"})
    main.got("toolu_2", "Resuming agent", success=True, resumedAgentId="a1")
    assert store.runs()["a1"].state is RunState.WORKING
    child.said(report("SUCCESS", "Whole."))
    main.record("queue-operation", operation="enqueue", content=notification("a1", "completed", "finished"))
    run = only_agent(store.runs())
    assert run.state is RunState.ENDED
    assert [text(store, said) for said in run.earlier] == [report("PARTIAL", "Half.")]
    assert text(store, run.said) == report("SUCCESS", "Whole.")
    assert text(store, run.prompt) == packet("t.a")


def test_an_answer_that_a_stop_hook_sent_back_is_an_earlier_one(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.said("Looks fine.")
    child.asked("Stop hook feedback:\nanswer in the agreed format", isMeta=True)
    assert store.runs()["a1"].state is RunState.WORKING
    child.said(report("SUCCESS"))
    run = store.runs()["a1"]
    assert [text(store, said) for said in run.earlier] == ["Looks fine."]
    assert text(store, run.said) == report("SUCCESS")


def test_a_refused_call_is_a_failed_run_of_its_own(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.delegated("toolu_1", packet("t.a"), "no-such-type")
    main.got("toolu_1", "<tool_use_error>Agent type 'no-such-type' not found.</tool_use_error>", error=True)
    run = store.runs()["toolu_1"]
    assert (run.state, run.reason) == (RunState.FAILED, "Agent type 'no-such-type' not found.")
    assert (run.parent_session, run.mode, run.said) == (SESSION, "no-such-type", None)


def test_a_call_without_a_sign_of_its_agent_is_submitted(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    assert store.runs()["toolu_1"].state is RunState.SUBMITTED
    store.agent("a1", meta("toolu_1")).asked("one")
    runs = store.runs()
    assert "toolu_1" not in runs
    assert runs["a1"].state is RunState.WORKING


def test_a_description_alone_is_no_run_yet(store: Store) -> None:
    store.session().asked("Go.")
    store.agent("a1", meta("toolu_1"))
    store.logs.pop()
    assert list(store.runs()) == [SESSION]


def test_a_call_and_the_agent_that_came_of_it_are_one_run(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    store.save()
    reader = store.reader()
    (asked,) = (change for change in reader.read(60.0) if change.run and change.run.parent_session)
    store.agent("a1", meta("toolu_1")).asked("one")
    store.save()
    (begun,) = (change for change in reader.read(60.0) if not change.run or change.run.parent_session)
    assert begun.key == asked.key
    assert begun.run is not None
    assert begun.run.session_id == "a1"


def test_an_error_of_the_model_is_a_failure_with_its_words(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1", finished=True))
    main.delegated("toolu_1", "one")
    child.asked("one")
    error = {"isApiErrorMessage": True, "error": "invalid_request", "apiErrorStatus": 400}
    child.said("API Error: the request was refused", stop="stop_sequence", **error)
    run = store.runs()["a1"]
    assert (run.state, run.said) == (RunState.FAILED, None)
    assert run.reason == "API Error: the request was refused (HTTP 400)"


def test_an_error_that_the_program_recovered_from_is_no_failure(store: Store) -> None:
    child = store.agent("a1", meta("toolu_1"))
    store.session().delegated("toolu_1", "one")
    child.asked("one")
    child.record("system", subtype="api_error", error={"status": 500}, retryAttempt=1)
    child.said("API Error: 500", stop="stop_sequence", isApiErrorMessage=True)
    child.said(report("SUCCESS"))
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.earlier) == (RunState.ENDED, "", ())


@pytest.mark.parametrize("blocks", [[], [{"type": "text", "text": " \n"}], [{"type": "text", "text": "(no content)"}]])
def test_an_agent_may_end_without_a_word(store: Store, blocks: list[dict[str, object]]) -> None:
    child = store.agent("a1", meta("toolu_1"))
    store.session().delegated("toolu_1", "one")
    child.asked("one")
    child.said("Reading first.", stop="tool_use")
    child.used("Bash", "toolu_2", command="true")
    child.got("toolu_2", "ok")
    child.answered(blocks, "end_turn")
    run = store.runs()["a1"]
    assert (run.state, run.said, run.reason) == (RunState.ENDED, None, "ended without a word")


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "value": "Done."}],
        [{"type": "prose", "text": "Done."}],
        [{"text": "Done."}],
        {"value": "Done."},
        None,
        ["Done."],
    ],
)
def test_an_answer_that_is_not_understood_is_no_silence(store: Store, content: object) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Hand it out.")
    main.delegated("toolu_1", packet("t.a"))
    child.asked(packet("t.a"))
    message = {"id": "msg_1", "role": "assistant", "content": content, "stop_reason": "end_turn"}
    child.record("assistant", message=message)
    run = store.runs()["a1"]
    assert (run.state, run.said, run.reason) == (
        RunState.SUBMITTED,
        None,
        "ended, but what it said cannot be read",
    )
    reader = store.reader()
    reader.read(60.0)
    assert reader.trouble == "1 line not understood and left out"
    # Its parent has the same words.
    main.returned("toolu_1", "a1", report("ERROR"))
    run = store.runs()["a1"]
    assert (run.state, text(store, run.said)) == (RunState.ENDED, report("ERROR"))


def test_records_of_an_unknown_kind_in_which_something_is_said_are_told(store: Store) -> None:
    main = store.session()
    main.asked("Build it.")
    main.record("note", message={"role": "assistant", "content": [{"type": "text", "text": "Done."}]})
    main.record("aside", content="x")
    store.save()
    reader = store.reader()
    reader.read(60.0)
    assert reader.trouble == "1 line not understood and left out"


def test_an_answer_that_the_program_does_not_take_is_none(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.said(report("SUCCESS", "Half of"))
    child.asked("Your response was cut off. Write it again from the start.", isMeta=True, turnCompanion=True)
    assert store.runs()["a1"].state is RunState.WORKING
    child.said(report("SUCCESS", "The whole."))
    run = store.runs()["a1"]
    assert (run.state, run.earlier) == (RunState.ENDED, ())
    assert text(store, run.said) == report("SUCCESS", "The whole.")
    child.asked("<system-reminder>\nTools were used.\n</system-reminder>", isMeta=True, turnCompanion=True)
    assert store.runs()["a1"].state is RunState.ENDED


def test_an_interrupted_agent_has_no_return_whatever_it_said(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.said(report("SUCCESS"), stop=None)
    child.interrupted()
    main.got("toolu_1", "[Request interrupted by user for tool use]", error=True)
    main.interrupted()
    runs = store.runs()
    assert (runs["a1"].state, runs["a1"].said) == (RunState.CANCELED, None)
    assert runs["a1"].reason == "[Request interrupted by user]"
    assert runs[SESSION].state is RunState.CANCELED


def test_an_answer_that_was_whole_stays_a_return_when_its_session_is_interrupted(store: Store) -> None:
    child = store.agent("a1", meta("toolu_1"))
    store.session().delegated("toolu_1", "one")
    child.asked("one")
    child.said(report("SUCCESS"))
    child.interrupted()
    assert store.runs()["a1"].state is RunState.ENDED


def test_thinking_is_no_end(store: Store) -> None:
    child = store.agent("a1", meta("toolu_1"))
    store.session().delegated("toolu_1", "one")
    child.asked("one")
    child.answered([{"type": "thinking", "thinking": "Hm."}], "end_turn")
    assert store.runs()["a1"].state is RunState.WORKING


def test_a_second_copy_of_a_notification_tells_nothing_of_a_later_round(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", "one")
    main.launched("toolu_1", "a1")
    child.asked("one")
    child.said("First.")
    told = notification("a1", "completed", "finished", "First.")
    main.record("queue-operation", operation="enqueue", content=told)
    child.asked("Go on.", isMeta=True, origin={"kind": "coordinator"})
    main.record("queue-operation", operation="remove", content=told)
    assert store.runs()["a1"].state is RunState.WORKING


def test_a_killed_session_looks_as_if_it_worked_on(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.used("Bash", "toolu_2", command="sleep 100")
    child.got("toolu_2", "Exit code 137", error=True)
    runs = store.runs()
    assert (runs["a1"].state, runs[SESSION].state) == (RunState.WORKING, RunState.WORKING)


def test_what_a_killed_session_left_behind_has_failed_once_it_goes_on(store: Store) -> None:
    main, done, left = store.session(), store.agent("a1", meta("toolu_1")), store.agent("a2", meta("toolu_2"))
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    main.delegated("toolu_2", "two")
    done.asked("one")
    done.said(report("SUCCESS"))
    left.asked("two")
    for call in ("toolu_1", "toolu_2"):
        main.got(call, "[Tool call did not complete: the session was restarted]", error=True)
    main.asked("Go on.")
    main.said("I go on.")
    runs = store.runs()
    assert runs["a1"].state is RunState.ENDED
    assert (runs["a2"].state, runs["a2"].reason) == (RunState.FAILED, "left behind when the session was killed")
    assert runs[SESSION].state is RunState.ENDED


def test_what_was_nested_in_something_left_behind_is_left_behind_too(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    below = store.agent("a2", meta("toolu_2", parentAgentId="a1", requestShape="background"))
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.delegated("toolu_2", "two", run_in_background=True)
    child.delegated("toolu_3", "three")
    below.asked("two")
    main.got("toolu_1", "[Tool call did not complete]", error=True)
    runs = store.runs()
    assert {runs[run].reason for run in ("a1", "a2", "toolu_3")} == {"left behind when the session was killed"}


def test_an_aborted_agent_takes_along_only_what_it_waits_for(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    store.agent("a2", meta("toolu_2", requestShape="background")).asked("two")
    store.agent("a3", meta("toolu_3", requestShape="foreground")).asked("three")
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.delegated("toolu_2", "two")
    child.delegated("toolu_3", "three")
    child.interrupted()
    runs = store.runs()
    states = {run: runs[run].state for run in ("a1", "a2", "a3")}
    assert states == {"a1": RunState.CANCELED, "a2": RunState.WORKING, "a3": RunState.CANCELED}


@pytest.mark.parametrize(
    ("status", "summary", "state", "reason"),
    [
        ("failed", 'Agent "x" failed: no more', RunState.FAILED, 'Agent "x" failed: no more'),
        ("killed", 'Agent "x" was stopped', RunState.CANCELED, 'Agent "x" was stopped'),
        (
            "stopped",
            'No completion record was found for background agent "x"',
            RunState.FAILED,
            "left behind when the session was killed",
        ),
    ],
)
def test_a_notification_says_how_an_agent_ended_that_does_not(
    store: Store, status: str, summary: str, state: RunState, reason: str
) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", "one")
    main.launched("toolu_1", "a1")
    child.asked("one")
    main.asked(notification("a1", status, summary, "Begun."))
    run = store.runs()["a1"]
    assert (run.state, run.reason, run.said) == (state, reason, None)


def test_the_end_of_one_round_says_nothing_of_the_next(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.delegated("toolu_1", "one")
    main.launched("toolu_1", "a1")
    child.asked("one")
    child.said("First.", stop=None)
    main.asked(notification("a1", "killed", "was stopped"))
    child.interrupted()
    child.asked("Go on.", isMeta=True, origin={"kind": "coordinator"})
    assert store.runs()["a1"].state is RunState.WORKING


def test_without_the_agents_transcript_the_parents_copy_is_unframed(store: Store) -> None:
    main = store.session()
    main.delegated("toolu_1", "one")
    main.got("toolu_1", indented(report("SUCCESS"), "a1"))
    run = store.runs()["a1"]
    assert (run.state, run.link) == (RunState.ENDED, "the parent's tool result")
    assert text(store, run.said) == report("SUCCESS")


def test_agents_without_a_description_are_known_by_progress_result_and_prompt(store: Store) -> None:
    main = store.session(version="2.1.39")
    for number in (1, 2, 3, 4):
        main.delegated(f"toolu_{number}", f"prompt {number}", "Explore")
    main.record("progress", data={"type": "agent_progress", "agentId": "a1"}, parentToolUseID="toolu_1")
    main.returned("toolu_2", "a2", "two")
    store.agent("a3").asked("prompt 3")
    store.agent("a9").asked("nobody asked for this")
    for agent in ("a1", "a2"):
        store.agent(agent).asked("something else")
    runs = store.runs()
    links = {agent: runs[agent].link for agent in ("a1", "a2", "a3", "a9")}
    assert links == {
        "a1": "progress records",
        "a2": "the parent's tool result",
        "a3": "the same prompt",
        "a9": "the session's directory",
    }
    assert [runs[agent].mode for agent in ("a1", "a2", "a3", "a9")] == ["Explore", "Explore", "Explore", None]
    assert runs["toolu_4"].state is RunState.SUBMITTED


def test_agents_inside_an_old_sessions_file_are_runs_too(store: Store) -> None:
    main = store.session(version="1.0.98")
    main.asked("Go.")
    for number in (1, 2):
        main.used("Task", f"toolu_{number}", prompt=f"prompt {number}", description=f"job {number}")
    store.cwd = store.workspace
    side = {"isSidechain": True}
    main.asked("prompt 1", parentUuid=None, **side)
    main.asked("prompt 2", parentUuid=None, **side)
    first, second = "uuid-4", "uuid-5"
    main.answered([{"type": "text", "text": "two"}], None, parentUuid=second, **side)
    main.answered([{"type": "text", "text": "one"}], None, parentUuid=first, **side)
    main.got("toolu_1", "one")
    runs = store.runs()
    assert [text(store, runs[f"toolu_{number}"].said) for number in (1, 2)] == ["one", "two"]
    assert {runs[f"toolu_{number}"].link for number in (1, 2)} == {"inline in the session"}
    assert runs[SESSION].state is RunState.WORKING


def test_what_an_agent_inside_a_sessions_file_asked_for_hangs_below_it(store: Store) -> None:
    main = store.session(version="1.0.128")
    main.asked("Go.")
    main.used("Task", "toolu_1", prompt="prompt 1", description="job 1")
    main.asked("prompt 1", parentUuid=None, isSidechain=True)
    given = {"prompt": "prompt 2", "description": "job 2"}
    call = {"type": "tool_use", "id": "toolu_2", "name": "Task", "input": given}
    main.answered([call], "tool_use", parentUuid="uuid-3", isSidechain=True)
    refused = {"tool_use_id": "toolu_2", "type": "tool_result", "is_error": True, "content": "No such tool available"}
    main.record("user", message={"role": "user", "content": [refused]}, parentUuid="uuid-4", isSidechain=True)
    run = store.runs()["toolu_2"]
    assert (run.state, run.parent_session) == (RunState.FAILED, "toolu_1")


def test_todos_of_an_agent_are_its_progress(store: Store) -> None:
    old, new = store.agent("a1", meta("toolu_1")), store.agent("a2", meta("toolu_2"))
    store.session().asked("Go.")
    old.asked("one")
    todos = [{"content": "read", "status": "completed"}, {"content": "write", "status": "in_progress"}]
    old.used("TodoWrite", "toolu_3", todos=todos)
    new.asked("two")
    for number, subject in enumerate(("read", "write"), 1):
        new.used("TaskCreate", f"toolu_4{number}", subject=subject)
        new.got(f"toolu_4{number}", f"Task #{number} created successfully: {subject}")
    new.used("TaskUpdate", "toolu_5", taskId="1", status="completed")
    runs = store.runs()
    expected = [("read", TodoStatus.DONE), ("write", TodoStatus.IN_PROGRESS)]
    assert [(todo.text, todo.status) for todo in runs["a1"].todos or ()] == expected
    assert [(todo.text, todo.status) for todo in runs["a2"].todos or ()] == [expected[0], ("write", TodoStatus.PENDING)]


def test_a_parent_that_waits_is_as_alive_as_its_agents(store: Store) -> None:
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", "one")
    child.asked("one")
    child.used("Bash", "toolu_2", command="true")
    runs = store.runs()
    assert runs[SESSION].updated_at == runs["a1"].updated_at


def test_a_command_that_the_program_answers_itself_is_no_turn(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.said("Done.")
    main.asked("<command-name>/cost</command-name>")
    main.asked("<local-command-stdout>nothing</local-command-stdout>")
    run = store.runs()[SESSION]
    assert run.state is RunState.ENDED
    assert text(store, run.said) == "Done."


def test_a_record_that_is_written_twice_counts_once(store: Store) -> None:
    child = store.agent("a1", meta("toolu_1"))
    store.session().asked("Go.")
    child.asked("one")
    child.said("First.")
    child.lines *= 2
    assert store.runs()["a1"].earlier == ()


def test_agents_that_the_program_runs_for_itself_are_left_out(store: Store) -> None:
    store.session().asked("Go.")
    store.agent("acompact-70d8e7").asked("Summarise.")
    store.agent("aprompt_suggestion-1").asked("Suggest.")
    warming = store.agent("a1b2c3d", version="2.0.76")
    warming.asked("Warmup")
    warming.said("I am ready.")
    assert list(store.runs()) == [SESSION]


def test_a_time_that_lies_does_not_make_an_end_before_a_start(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    line = main.lines.pop()
    main.raw(line.strip().replace(b"2026-03", b"2026-09"))
    main.said("Done.")
    run = store.runs()[SESSION]
    assert run.ended_at is not None
    assert run.started_at <= run.ended_at <= run.updated_at


def test_a_question_to_the_human_is_what_a_run_waits_for(store: Store) -> None:
    main = store.session()
    main.asked("Go.")
    main.used("AskUserQuestion", "toolu_1", questions=[{"question": "Which one?", "options": []}])
    assert store.runs()[SESSION].waiting == "an answer: Which one?"
    main.got("toolu_1", "The second.")
    assert store.runs()[SESSION].waiting == ""
    main.used("ExitPlanMode", "toolu_2", plan="All of it.")
    assert store.runs()[SESSION].waiting == "an approval of its plan"
