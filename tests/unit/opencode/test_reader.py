"""Sessions as the program leaves them, read as runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Handoff, TodoStatus
from agentwatch.delegation.run import RunState
from agentwatch.sources.opencode import entries
from tests.unit.opencode.program import NOW, Program, framed
from tests.unit.opencode.reading import Reading, fresh, reading

PACKET = '```json\n{"handoff_schema": "composability.handoff_packet.v1", "task_id": "x.1", "objective": "Do it."}\n```'
RETURN = "## Status\nstate: SUCCESS\nsummary: Done.\n"


def test_a_child_that_ends_returns_its_last_text_to_the_parent_that_asked(program: Program, watched: Reading) -> None:
    root = program.session(title="The whole")
    program.ask(root, "Please.")
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    first = program.begin(child)
    program.say(child, first, "Reading first.")
    program.call(child, first, "read", status="completed", input={}, output="x")
    program.finish(child, first, "tool-calls")
    program.answer(child, RETURN)
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=framed(child, RETURN))
    program.finish(root, asking, "tool-calls")
    program.answer(root, "All done.")

    runs = watched.read()

    assert set(runs) == {root, child}
    assert (runs[root].parent_session, runs[root].state, watched.said(root)) == (None, RunState.ENDED, "All done.")
    run = runs[child]
    assert (run.parent_session, run.state, watched.said(child)) == (root, RunState.ENDED, RETURN)
    assert (run.title, run.agent, run.mode, run.model) == ("A task", "general", "general", "provider-y/model-x")
    assert run.prompt is not None
    assert run.prompt.reading is not None
    assert isinstance(run.prompt.reading.document, Handoff)
    assert run.prompt.reading.document.task_id == "x.1"
    assert run.tokens == 30
    assert run.started_at < run.updated_at
    assert run.started_at > NOW / 1000
    assert run.ended_at is not None
    assert run.link == "the session names its parent, whose task call names the session"


def test_a_child_is_submitted_until_it_answers_and_then_works(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    assert watched.read()[child].state is RunState.SUBMITTED
    message = program.begin(child)
    assert watched.read()[child].state is RunState.WORKING
    program.say(child, message, "Half of it.")
    assert watched.read()[child].said is None


def test_only_what_has_changed_is_given_again(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    other = program.session()
    assert {change.key for change in watched.reader.read(1)} == {root, child, other}
    assert not watched.reader.read(1)
    program.begin(child)
    assert [change.key for change in watched.reader.read(1)] == [child]


def test_children_of_children_hang_below_them(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    grandchild, _ = program.delegate(child, program.begin(child), PACKET)
    runs = watched.read()
    assert [runs[one].parent_session for one in (root, child, grandchild)] == [None, root, child]


def test_a_session_that_is_resumed_is_one_run_with_two_returns(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.answer(child, "the first half")
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=framed(child, "the first half"))
    assert watched.read()[child].state is RunState.ENDED

    asking = program.begin(root)
    call = program.hand_out(root, asking, child, "Go on.", given={"task_id": child})
    program.ask(child, "Go on.")
    assert watched.read()[child].state is RunState.WORKING
    program.answer(child, "the whole")
    program.hand_out(root, asking, child, "Go on.", call, status="completed", output=framed(child, "the whole"))

    run = watched.read()[child]
    assert [message.opening for message in run.earlier] == ["the first half"]
    assert watched.said(child) == "the whole"
    assert run.prompt is not None
    assert watched.reader.text(run.prompt.digest) == PACKET


@pytest.mark.parametrize("state", ["completed", "running"])
def test_a_child_that_a_human_asks_for_more_works_again(program: Program, watched: Reading, state: str) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=framed(child, RETURN, state))
    program.answer(child, RETURN)
    program.ask(root, framed(child, RETURN), synthetic=True)
    assert watched.read()[child].state is RunState.ENDED
    program.ask(child, "And now?")
    assert watched.read()[child].state is RunState.WORKING
    program.answer(child, "More.")
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, "More.")
    assert [message.opening for message in watched.runs[child].earlier] == ["state: SUCCESS"]


def test_a_child_in_the_background_works_on_after_its_call_is_answered(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    output = framed(child, "You will be notified.", "running")
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=output, given={"background": True})
    message = program.begin(child)
    run = watched.read()[child]
    assert (run.state, run.said, run.background) == (RunState.WORKING, None, True)
    program.say(child, message, RETURN)
    program.finish(child, message)
    program.ask(root, framed(child, RETURN), synthetic=True)
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, RETURN)


def test_a_child_in_the_background_that_stopped_without_saying_so_failed_as_its_parent_was_told(
    program: Program, watched: Reading
) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    output = framed(child, "You will be notified.", "running")
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=output)
    message = program.begin(child)
    program.call(child, message, "bash", status="error", input={}, error="The user rejected permission.")
    program.finish(child, message, "tool-calls")
    assert watched.read()[child].state is RunState.WORKING
    program.ask(root, framed(child, "The user rejected permission.", "error"), synthetic=True)
    run = watched.read()[child]
    assert (run.state, run.reason) == (RunState.FAILED, "The user rejected permission.")


def test_what_an_aborted_child_had_said_is_no_return(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    message = program.begin(child)
    program.say(child, message, RETURN)
    program.hand_out(root, asking, child, PACKET, call, status="error", error="Task cancelled")
    run = watched.read()[child]
    assert (run.state, run.reason, run.said) == (RunState.CANCELED, "Task cancelled", None)
    program.fail(child, message, "MessageAbortedError", "Aborted")
    run = watched.read()[child]
    assert (run.state, run.reason, run.said) == (RunState.CANCELED, "Aborted", None)


@pytest.mark.parametrize("words", ["Task cancelled by the user", "Tool execution aborted"])
def test_kilo_says_in_its_own_words_that_a_human_aborted(program: Program, watched: Reading, words: str) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.begin(child)
    program.hand_out(root, asking, child, PACKET, call, status="error", error=words)
    assert watched.read()[child].state is RunState.CANCELED


def test_an_error_of_the_model_fails_the_child_in_its_own_words(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.fail(child, program.begin(child), "APIError", "Bad request: too long")
    program.hand_out(
        root, asking, child, PACKET, call, status="error", error=f"Subagent failed (task_id: {child}): Bad"
    )
    run = watched.read()[child]
    assert (run.state, run.reason, run.said) == (RunState.FAILED, "Bad request: too long", None)


def test_a_child_whose_parent_was_told_of_an_error_has_failed(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.answer(child, "I have read it.")
    program.hand_out(root, asking, child, PACKET, call, status="error", error="File not found")
    run = watched.read()[child]
    assert (run.state, run.reason, run.said) == (RunState.FAILED, "File not found", None)


def test_a_task_that_was_refused_is_a_failed_run_of_its_call(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    call = program.hand_out(root, asking, None, PACKET, given={"subagent_type": "nobody"})
    assert set(watched.read()) == {root}
    program.hand_out(root, asking, None, PACKET, call, status="error", error="Unknown agent type: nobody")
    run = next(run for key, run in watched.read().items() if key != root)
    assert (run.session_id, run.parent_session) == (f"call_{asking}_task", root)
    assert (run.state, run.reason) == (RunState.FAILED, "Unknown agent type: nobody")
    assert run.prompt is not None
    assert watched.reader.text(run.prompt.digest) == PACKET


def test_a_task_tool_that_is_not_there_is_a_failed_run_without_a_prompt(program: Program, watched: Reading) -> None:
    root = program.session()
    given = {"tool": "task", "error": "Model tried to call unavailable tool 'task'."}
    program.call(root, program.begin(root), "invalid", status="completed", input=given, output="…")
    run = next(run for key, run in watched.read().items() if key != root)
    assert (run.state, run.reason) == (RunState.FAILED, "Model tried to call unavailable tool 'task'.")
    assert (run.prompt, run.prompt_missing) == (None, "the program did not keep it")


def test_ids_of_calls_that_a_model_numbers_anew_are_not_taken_for_names(program: Program, watched: Reading) -> None:
    root = program.session()
    for _ in range(2):
        state = {"status": "error", "error": "No.", "input": {"prompt": PACKET}, "time": {"start": program.now}}
        program.part(root, program.begin(root), {"type": "tool", "tool": "task", "callID": "call_0", "state": state})
    assert len({run.session_id for run in watched.read().values()}) == 3


@pytest.mark.parametrize("last", [None, "", "  \n"])
def test_a_child_without_a_word_ended_all_the_same(program: Program, watched: Reading, last: str | None) -> None:
    root = program.session()
    message = program.begin(root)
    child, call = program.delegate(root, message, PACKET)
    first = program.begin(child)
    program.say(child, first, "I begin.")
    program.finish(child, first, "tool-calls")
    answer = program.begin(child)
    if last is not None:
        program.say(child, answer, last)
    program.finish(child, answer)
    wordless = (RunState.ENDED, None, "ended without a word")
    run = watched.read()[child]
    assert (run.state, run.said, run.reason) == wordless
    for output in (last or "", framed(child, last or "")):
        program.hand_out(root, message, child, PACKET, call, status="completed", output=output)
        run = watched.read()[child]
        assert (run.state, run.said, run.reason) == wordless


def test_a_failing_command_does_not_fail_its_session(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    message = program.begin(child)
    program.call(child, message, "bash", status="completed", input={}, output="no", metadata={"exit": 3})
    program.finish(child, message, "tool-calls")
    program.answer(child, RETURN)
    assert watched.read()[child].state is RunState.ENDED


def test_a_model_that_stops_beside_a_call_has_not_ended(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    message = program.begin(child)
    program.say(child, message, "I look.")
    program.call(child, message, "read", status="completed", input={}, output="x")
    program.finish(child, message, "stop")
    assert watched.read()[child].state is RunState.WORKING
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=framed(child, "I look."))
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, "I look.")


def test_what_was_killed_works_on_until_its_parent_goes_on_without_it(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    grandchild, _ = program.delegate(child, program.begin(child), PACKET)
    program.begin(grandchild)
    program.ask(root, "Go on.")
    runs = watched.read()
    assert [runs[one].state for one in (child, grandchild)] == [RunState.WORKING] * 2
    program.answer(root, "I go on.")
    runs = watched.read()
    assert [runs[one].state for one in (child, grandchild)] == [RunState.FAILED] * 2
    assert runs[child].reason == "left behind unfinished: its parent went on without it"


def test_a_conversation_that_is_shortened_goes_on(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    program.finish(child, program.begin(child), "tool-calls")
    asked = program.message(child, {"role": "user", "time": {"created": program.now}})
    program.part(child, asked, {"type": "compaction", "auto": True})
    time = {"created": program.now, "completed": program.now}
    summary = {"role": "assistant", "parentID": asked, "summary": True, "finish": "stop", "time": time}
    program.say(child, program.message(child, summary), "What was done so far.")
    assert watched.read()[child].state is RunState.WORKING
    program.ask(child, "Continue if you have next steps.", synthetic=True)
    program.answer(child, RETURN)
    assert (watched.read()[child].state, watched.said(child)) == (RunState.ENDED, RETURN)
    assert not watched.runs[child].earlier


def test_a_question_waits_for_an_answer_until_it_is_given(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    message = program.begin(child)
    given = {"questions": [{"question": "Which one?"}]}
    call = program.call(child, message, "question", input=given)
    run = watched.read()[child]
    assert (run.state, run.waiting) == (RunState.WORKING, "an answer: Which one?")
    program.call(child, message, "question", call, status="completed", input=given, output="This one.")
    assert watched.read()[child].waiting == ""


def test_a_command_that_shows_nothing_for_seconds_seems_to_wait_for_a_permission(
    program: Program, workspace: Path, database: Path
) -> None:
    now = NOW / 1000
    watched = reading(workspace, database, lambda: now)
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    message = program.begin(child)
    call = program.call(child, message, "bash", input={"command": "git push"})
    assert watched.read()[child].waiting == ""
    now += 60
    assert watched.read()[child].waiting == "a permission, it seems: bash git push"
    program.call(child, message, "bash", call, input={"command": "git push"}, metadata={"output": ""})
    assert watched.read()[child].waiting == ""
    watched.reader.close()


def test_todos_are_progress_and_cancelled_ones_do_not_count(program: Program, watched: Reading) -> None:
    root = program.session()
    assert watched.read()[root].todos is None
    program.todos(root, ("one", "completed"), ("two", "in_progress"), ("three", "pending"), ("four", "cancelled"))
    todos = watched.read()[root].todos
    assert todos is not None
    assert [(todo.text, todo.status) for todo in todos] == [
        ("one", TodoStatus.DONE),
        ("two", TodoStatus.IN_PROGRESS),
        ("three", TodoStatus.PENDING),
    ]


def test_todos_without_a_table_are_those_that_were_written_last(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    for status in ("pending", "completed"):
        given = {"todos": [{"content": "one", "status": status}]}
        program.call(root, message, "todowrite", status="completed", input=given, output="[]")
    todos = watched.read()[root].todos
    assert todos is not None
    assert [todo.status for todo in todos] == [TodoStatus.DONE]


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('<task id="ses_gone" state="completed">\n<task_result>\n11\n</task_result>\n</task>', "11"),
        ("task_id: ses_gone (for resuming)\n\n<task_result>\nold\n\n</task_result>", "old\n"),
        ("Found 30 files", "Found 30 files"),
    ],
)
def test_a_child_that_was_deleted_is_known_from_the_call_of_its_parent(
    program: Program, watched: Reading, output: str, said: str
) -> None:
    root = program.session()
    program.hand_out(root, program.begin(root), "ses_gone", PACKET, status="completed", output=output)
    key = next(key for key in watched.read() if key != root)
    run = watched.runs[key]
    assert (run.session_id, run.parent_session) == ("ses_gone", root)
    assert (run.state, watched.said(key)) == (RunState.ENDED, said)


def test_a_copy_of_a_session_does_not_take_the_children_of_the_first(program: Program, watched: Reading) -> None:
    root = program.session()
    child, _ = program.delegate(root, program.begin(root), PACKET)
    copy = program.session()
    program.hand_out(copy, program.begin(copy), child, PACKET, status="completed", output=framed(child, RETURN))
    runs = watched.read()
    assert set(runs) == {root, child, copy}
    assert (runs[child].parent_session, runs[child].state) == (root, RunState.SUBMITTED)


def test_sessions_of_the_workspace_and_below_are_read_and_no_others(
    program: Program, watched: Reading, workspace: Path, tmp_path: Path
) -> None:
    below = program.session(directory=workspace / "a" / "b")
    program.session(directory=workspace.with_name("ws-other"))
    program.session(directory=tmp_path)
    elsewhere = program.session(below, directory=tmp_path / "worktree")
    assert set(watched.read()) == {below, elsewhere}


def test_a_workspace_behind_a_link_is_found_by_where_it_is(
    program: Program, workspace: Path, database: Path, tmp_path: Path
) -> None:
    root = program.session()
    (tmp_path / "link").symlink_to(workspace)
    assert set(fresh(tmp_path / "link", database)) == {root}


def test_what_is_deleted_is_told_as_gone(program: Program, watched: Reading) -> None:
    root = program.session()
    asking = program.begin(root)
    child, call = program.delegate(root, asking, PACKET)
    program.answer(child, RETURN)
    program.hand_out(root, asking, child, PACKET, call, status="completed", output=framed(child, RETURN))
    assert watched.read()[child].link.startswith("the session")
    program.delete(child)
    assert child not in watched.read()
    assert (watched.runs[call].session_id, watched.said(call)) == (child, RETURN)
    program.delete(root)
    assert not watched.read()


@pytest.mark.parametrize("gone", ["first", "second", "child"])
def test_what_a_deletion_leaves_is_what_a_fresh_look_sees(
    program: Program, watched: Reading, database: Path, gone: str
) -> None:
    first, second = program.session(), program.session()
    child = program.session(parent=first)
    for caller in (first, second):
        asking = program.begin(caller)
        program.hand_out(caller, asking, child, PACKET, status="completed", output=framed(child, RETURN))
    watched.read()
    program.delete({"first": first, "second": second, "child": child}[gone])
    assert watched.read() == fresh(program.workspace, database)


def test_a_text_is_found_again_as_long_as_its_part_holds_it(program: Program, watched: Reading) -> None:
    root = program.session()
    message = program.begin(root)
    part = program.say(root, message, "x \ud800 y")
    program.finish(root, message)
    said = watched.read()[root].said
    assert said is not None
    assert watched.reader.text(said.digest) == "x \ud800 y"
    program.part(root, message, {"type": "text", "text": "something else"}, part)
    assert watched.reader.text(said.digest) is None
    assert watched.reader.text("0" * 64) is None


def test_what_was_found_is_told(program: Program, watched: Reading, database: Path) -> None:
    program.session()
    watched.read()
    (found,) = watched.reader.found()
    assert (found.source, found.place, found.sessions, found.skipped) == ("opencode", str(database), 1, "")
    assert watched.reader.progress.done == watched.reader.progress.total > 0


def test_a_database_that_is_not_there_yet_is_no_trouble(watched: Reading, database: Path) -> None:
    assert not watched.read()
    assert watched.reader.trouble is None
    assert not watched.reader.found()


def test_much_is_read_in_pieces_and_each_of_them_gives_something(program: Program, watched: Reading) -> None:
    for _ in range(30):
        root = program.session()
        program.ask(root, "Please.")
        program.answer(root, "Done.")
    steps = 0
    while watched.reader.progress.done < watched.reader.progress.total or not steps:
        before = watched.reader.progress.done
        watched.read(0)
        assert watched.reader.progress.done >= before
        steps += 1
    assert steps > 10
    assert len(watched.runs) == 30


def test_an_old_part_that_changes_leaves_no_gap_in_a_transcript(
    program: Program, watched: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "AT_ONCE", 3)
    root = program.session()
    message = program.begin(root)
    parts = [program.say(root, message, f"word {number}") for number in range(8)]
    transcript = watched.reader.transcript(watched.read()[root])
    look = transcript.look()
    assert look is not None
    assert [step.about for step in look.steps] == ["word 5", "word 6", "word 7"]
    program.part(root, message, {"type": "text", "text": "changed"}, parts[1])
    program.say(root, message, "word 8")
    look = transcript.look()
    assert look is not None
    assert [step.about for step in look.steps] == ["word 5", "word 6", "word 7", "word 8"]
    while look.has_older:
        look = transcript.older()
    assert [step.about for step in look.steps] == ["word 0", "changed", *(f"word {number}" for number in range(2, 9))]
