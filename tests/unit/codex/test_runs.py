"""What the rollouts of Codex come to: runs, their parents, states, texts and todos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Handoff, Return, TodoStatus
from agentwatch.delegation.observation import Ran
from agentwatch.delegation.run import MOST_PERMITS, Permitter, RunState
from agentwatch.delegation.task import State
from tests.unit.codex.home import BEGAN, PACKET, RETURN, Home, Session, task_name, thread
from tests.unit.delegation.observations import tree_of

TOP = task_name()
SEARCH = task_name("search")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_child_shows_its_parent_its_task_and_its_return(home: Home) -> None:
    root = home.root().spawned("c1", thread(2))
    child = home.child(2, root).said("Looking.").said(RETURN).complete(RETURN)
    home.write(root, child)
    home.read()
    run = home.run(child)
    assert (run.source, run.session_id, run.parent_session) == ("codex", child.id, root.id)
    assert (run.state, run.agent, run.model) == (RunState.ENDED, "Ada (explorer)", "large")
    assert (run.started_at, run.updated_at, run.ended_at) == (BEGAN + 2, BEGAN + 8, BEGAN + 8)
    assert run.place == str(home.place(child))
    assert run.prompt is not None
    assert run.prompt.reading is not None
    assert isinstance(run.prompt.reading.document, Handoff)
    assert run.prompt.reading.document.task_id == "shop.search"
    assert home.reader.text(run.prompt.digest) == PACKET
    assert run.said is not None
    assert run.said.reading is not None
    assert isinstance(run.said.reading.document, Return)
    assert home.reader.text(run.said.digest) == RETURN
    assert home.run(root).parent_session is None
    assert home.run(root).state is RunState.WORKING


def test_tokens_and_todos_are_the_latest(home: Home) -> None:
    root = home.root()
    for done, total in (("in_progress", 500), ("completed", 900)):
        plan = [{"step": "Read.", "status": done}, {"step": "Write.", "status": "pending"}]
        root.call("update_plan", "p", plan=plan).output("p", "Plan updated")
        root.add("token_usage_record", {"thread_token_usage": {"total_tokens": total}})
    home.write(root)
    home.read()
    run = home.run(root)
    assert run.tokens == 900
    assert run.todos is not None
    assert [(todo.text, todo.status) for todo in run.todos] == [
        ("Read.", TodoStatus.DONE),
        ("Write.", TodoStatus.PENDING),
    ]


def test_a_child_that_is_sent_on_is_one_run_with_its_first_return_kept(home: Home) -> None:
    root = home.root()
    child = home.child(2, root).complete("A part is done.").begin().asked("Go on.")
    home.write(root, child)
    home.read()
    run = home.run(child)
    assert run.state is RunState.WORKING
    assert (run.said, run.ended_at) == (None, None)
    assert [home.reader.text(message.digest) for message in run.earlier] == ["A part is done."]
    home.write(child.complete(RETURN))
    home.read()
    run = home.run(child)
    assert run.said is not None
    assert (run.state, len(run.earlier)) == (RunState.ENDED, 1)
    assert run.prompt is not None
    assert home.reader.text(run.prompt.digest) == PACKET


@pytest.mark.parametrize("said", ["", "  \n"])
def test_an_empty_answer_ends_a_run_without_a_return(home: Home, said: str) -> None:
    child = home.child(2, home.root()).said(said).complete(None)
    home.write(child)
    home.read()
    assert home.run(child).state is RunState.ENDED
    assert home.run(child).said is None


def test_an_error_of_the_model_is_a_failure_in_its_words(home: Home) -> None:
    child = home.child(2, home.root()).said("Half of it").complete(None, error="the model refuses")
    home.write(child)
    home.read()
    run = home.run(child)
    assert (run.state, run.reason, run.said) == (RunState.FAILED, "the model refuses", None)


def test_an_interrupted_turn_is_canceled_and_what_was_said_by_then_is_no_return(home: Home) -> None:
    child = home.child(2, home.root()).said(RETURN).event("turn_aborted", turn_id="t", reason="interrupted")
    home.write(child)
    home.read()
    run = home.run(child)
    assert (run.state, run.reason, run.said) == (RunState.CANCELED, "interrupted", None)


@pytest.mark.parametrize("version", [1, 2])
def test_an_agent_that_its_parent_closed_while_it_worked_says_so(home: Home, version: int) -> None:
    root = home.root()
    item: dict[str, object] = {"type": "SubAgentActivity", "kind": "interrupted", "agent_thread_id": thread(2)}
    if version == 1:
        item = {"type": "CollabAgentToolCall", "tool": "close_agent", "receiver_thread_ids": [thread(2)]}
        item |= {"agents_states": {thread(2): "running"}}
    child = home.child(2, root).event("turn_aborted", turn_id="t", reason="interrupted")
    home.write(root.event("item_completed", item=item), child)
    home.read()
    assert (home.run(child).state, home.run(child).reason) == (RunState.CANCELED, "closed by its parent")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("unsupported call: multi_agent_v1spawn_agent", RunState.FAILED),
        ("unknown agent_type 'poet'", RunState.FAILED),
        ([{"type": "input_text", "text": "Agent depth limit reached."}], RunState.FAILED),
        ("aborted by user after 5.3s", RunState.CANCELED),
    ],
)
def test_a_refused_spawn_is_a_run_by_the_id_of_its_call(home: Home, words: object, state: RunState) -> None:
    root = home.root().call("spawn_agent", "c9", message=PACKET, agent_type="poet").output("c9", words)
    home.write(root)
    home.read()
    run = home.runs[f"{root.id}:c9"]
    assert (run.session_id, run.parent_session, run.state) == ("c9", root.id, state)
    assert (run.agent, run.reason) == ("poet", words if isinstance(words, str) else "Agent depth limit reached.")
    assert run.prompt is not None
    assert home.reader.text(run.prompt.digest) == PACKET


@pytest.mark.parametrize("answer", ['{"agent_id": "%s"}', json.dumps({"task_name": SEARCH}), ""])
def test_a_spawn_that_succeeded_is_no_refusal(home: Home, answer: str) -> None:
    root = home.root().call("spawn_agent", "c1", message=PACKET)
    if not answer:
        root.spawned("c1", thread(2))
    root.output("c1", answer % thread(2) if "%" in answer else answer)
    home.write(root, home.child(2, root))
    home.read()
    assert home.runs.keys() == {root.id, thread(2)}


def test_an_agent_without_a_rollout_yet_is_submitted_with_the_task_of_its_call(home: Home) -> None:
    root = home.root().call("spawn_agent", "c1", message=PACKET).spawned("c1", thread(2))
    home.write(root)
    home.read()
    run = home.runs[thread(2)]
    assert (run.state, run.parent_session) == (RunState.SUBMITTED, root.id)
    assert run.prompt is not None
    assert home.reader.text(run.prompt.digest) == PACKET
    home.write(home.child(2, root))
    home.read()
    assert home.runs[thread(2)].state is RunState.WORKING
    assert home.runs.keys() == {root.id, thread(2)}


def test_a_copied_history_of_the_parent_is_not_counted_twice(home: Home) -> None:
    root = home.root().call("spawn_agent", "c0", message="first").output("c0", "agent limit reached")
    start = len(root.lines) + 1
    child = home.session(2).child_meta(home.workspace, root.id, subagent_history_start_ordinal=start).copied(root)
    home.write(root, child.begin().asked(PACKET).complete(RETURN))
    home.read()
    assert home.runs.keys() == {root.id, f"{root.id}:c0", child.id}
    run = home.run(child)
    assert run.prompt is not None
    assert home.reader.text(run.prompt.digest) == PACKET
    assert run.earlier == ()


def test_a_copied_history_without_numbers_ends_with_the_first_turn_that_is_younger(home: Home) -> None:
    root = home.session(1)
    root.numbered = False
    root.meta(home.workspace).begin().asked("Build the shop.").call("spawn_agent", "c0", message="one")
    child = home.session(2)
    child.numbered = False
    child.child_meta(home.workspace, root.id).copied(root)
    home.write(root, child.begin().asked(PACKET).complete(RETURN))
    home.read()
    run = home.run(child)
    assert run.prompt is not None
    assert home.reader.text(run.prompt.digest) == PACKET
    assert (run.state, run.earlier) == (RunState.ENDED, ())


@pytest.mark.parametrize(
    ("payload", "missing"), [("gAAAAABqX2hlbGxvd29ybGQ=", "encrypted by Codex"), (PACKET, "")], ids=["opaque", "open"]
)
def test_an_encrypted_task_is_missing_and_says_why(home: Home, payload: str, missing: str) -> None:
    root = home.root().call("spawn_agent", "c1", message=payload, task_name="search")
    child = home.session(2).child_meta(home.workspace, root.id, agent_path=SEARCH).begin()
    header = f"Message Type: NEW_TASK\nTask name: {SEARCH}\nSender: {TOP}\nPayload:\n"
    content = [{"type": "input_text", "text": header}, {"type": "encrypted_content", "encrypted_content": payload}]
    child.item("agent_message", author=TOP, recipient=SEARCH, content=content).complete(RETURN)
    home.write(root.spawned("c1", child.id), child)
    home.read()
    run = home.run(child)
    assert (run.prompt_missing, run.title) == (missing, "search")
    assert (run.prompt is None) is bool(missing)
    if run.prompt is not None:
        assert home.reader.text(run.prompt.digest) == PACKET


def test_a_message_of_another_agent_is_no_task_of_the_one_that_gets_its_answer(home: Home) -> None:
    answer = [{"type": "input_text", "text": f"Message Type: FINAL_ANSWER\nTask name: {TOP}\nPayload:\nDone."}]
    root = home.session(1).meta(home.workspace).begin()
    root.item("agent_message", author=SEARCH, recipient=TOP, content=answer).asked("Build it.")
    home.write(root)
    home.read()
    prompt = home.run(root).prompt
    assert prompt is not None
    assert prompt.opening == "Build it."


def test_sessions_of_before_codex_wrote_turns_end_with_an_answer(home: Home) -> None:
    old = home.session(1).meta(home.workspace, cli_version="0.66.0").event("user_message", message="List the files.")
    home.write(old)
    home.read()
    assert home.run(old).state is RunState.WORKING
    old.event("agent_message", message="There are two.").event("user_message", message="And now?")
    home.write(old.event("agent_message", message="Three."))
    home.read()
    run = home.run(old)
    assert run.prompt is not None
    assert run.said is not None
    assert (run.state, run.prompt.opening, run.said.opening) == (RunState.ENDED, "List the files.", "Three.")
    assert [message.opening for message in run.earlier] == ["There are two."]


@pytest.mark.parametrize("source", [{"subagent": {"other": "guardian"}}, {"subagent": "compact"}, {"internal": "x"}])
def test_agents_that_codex_runs_for_itself_are_not_shown(home: Home, source: object) -> None:
    home.write(home.session(1).meta(home.workspace, source=source).begin().asked("Judge this."))
    home.read()
    assert home.runs == {}


def test_only_sessions_of_the_workspace_are_read_and_their_agents_wherever_they_work(home: Home) -> None:
    root = home.root(1)
    elsewhere = home.session(2).meta(home.workspace / "deeper").begin().asked("Something else.")
    child = home.session(3).child_meta("/somewhere/worktree", root.id).begin().asked(PACKET)
    grandchild = home.session(4).child_meta("/somewhere/worktree", child.id).begin().asked(PACKET)
    home.write(root, elsewhere, child, grandchild)
    home.read()
    assert home.runs.keys() == {root.id, child.id, grandchild.id}


def test_a_link_to_the_workspace_is_the_workspace(home: Home, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.workspace)
    root = home.session(1).meta(link).begin()
    home.write(root)
    home.read()
    assert home.runs.keys() == {root.id}


def test_a_session_that_goes_on_in_a_second_file_is_one_run(home: Home) -> None:
    first = home.root().complete("The first half.")
    second = home.session(1)
    second.lines = [b""] * len(first.lines)
    second.meta(home.workspace, history_base={"thread_id": first.id}).begin().complete("The second half.")
    home.write(first)
    home.place(second, "_window").write_bytes(b"".join(second.lines))
    home.read()
    run = home.run(first)
    assert home.runs.keys() == {first.id}
    assert run.said is not None
    assert (run.state, run.said.opening) == (RunState.ENDED, "The second half.")
    assert [message.opening for message in run.earlier] == ["The first half."]
    assert run.prompt is not None
    assert run.prompt.opening == "Build the shop."


def test_a_question_without_an_answer_waits_for_a_human(home: Home) -> None:
    root = home.root().call("request_user_input", "q", questions=[{"id": "a", "question": "Which shop?"}])
    home.write(root)
    home.read()
    assert home.run(root).waiting == "an answer: Which shop?"
    home.write(root.output("q", "The small one."))
    home.read()
    assert home.run(root).waiting == ""


def test_a_question_is_dropped_with_its_turn(home: Home) -> None:
    root = home.root().call("request_user_input", "q", questions=[])
    home.write(root)
    home.read()
    assert home.run(root).waiting == "an answer"
    home.write(root.event("turn_aborted", turn_id="t", reason="interrupted").begin())
    home.read()
    assert home.run(root).waiting == ""


def test_a_child_that_was_not_told_its_task_yet_has_that_of_the_call(home: Home) -> None:
    root = home.root().call("spawn_agent", "c1", message=PACKET).spawned("c1", thread(2))
    child = home.session(2).child_meta(home.workspace, root.id).begin()
    home.write(root, child)
    home.read()
    prompt = home.run(child).prompt
    assert prompt is not None
    assert home.reader.text(prompt.digest) == PACKET


def missing(root: Session, number: int, way: str) -> None:
    """Codex was killed and its session is continued: it does not find the agent."""
    name = "close_agent" if way.startswith("close") else "wait_agent"
    root.event("turn_aborted", turn_id="t", reason="interrupted").begin().asked("Go on.")
    target = {"target": thread(number)} if name == "close_agent" else {"targets": [thread(number)]}
    root.call(name, "c8", **target)
    if way.endswith("item"):
        item = {"type": "CollabAgentToolCall", "id": "c8", "tool": name.partition("_agent")[0]}
        item |= {"receiver_thread_ids": [thread(number)], "agents_states": {thread(number): "not_found"}}
        root.event("item_completed", item=item)
    elif way == "wait":
        root.output("c8", json.dumps({"status": {thread(number): "not_found"}, "timed_out": False}))
    elif way == "close":
        root.output("c8", json.dumps({"previous_status": "not_found"}))
    else:
        root.output("c8", f"agent with id {thread(number)} not found")


@pytest.mark.parametrize("way", ["wait", "wait, item", "close", "close, item", "close, words"])
def test_an_agent_that_is_not_found_after_codex_was_killed_was_left_behind_with_all_below_it(
    home: Home, way: str
) -> None:
    root = home.root()
    child = home.child(2, root)
    below = home.child(3, child)
    home.write(root, child, below)
    home.read()
    assert home.run(child).state is home.run(below).state is RunState.WORKING
    root.clock += 60
    missing(root, 2, way)
    home.write(root.complete("I go on without it."), child, below)
    home.read()
    for session in (child, below):
        run = home.run(session)
        assert (run.state, run.reason) == (RunState.FAILED, "left behind when Codex was stopped")
        assert run.ended_at == run.updated_at < root.clock - 60
    tree = tree_of(Ran(seq, 0.0, key, run) for seq, (key, run) in enumerate(home.runs.items()))
    assert (tree.tasks[root.id].state, tree.tasks[root.id].why) == (State.COMPLETED, "the session is idle")

    # It is taken up again from its rollout.
    child.clock = root.clock + 60
    home.write(child.begin().asked("Go on."))
    home.read()
    assert (home.run(child).state, home.run(child).reason) == (RunState.WORKING, "")
    home.write(child.complete(RETURN))
    home.read()
    assert home.run(child).state is RunState.ENDED


def test_a_child_that_ended_before_codex_was_killed_has_ended(home: Home) -> None:
    root = home.root()
    child = home.child(2, root).complete(RETURN)
    root.clock += 60
    missing(root, 2, "wait")
    home.write(root, child)
    home.read()
    assert home.run(child).state is RunState.ENDED


REJECTED = 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }'
RAN = "Chunk ID: 1\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n"
TOLD = [{"type": "input_text", "text": "Wall time: 4.1237 seconds\nOutput:"}]


@pytest.mark.parametrize(
    ("output", "allowed", "words"),
    [
        (RAN, True, ""),
        (RAN + "x" * 10_000, True, ""),
        (RAN + REJECTED, True, ""),
        (RAN + "patch rejected by user", True, ""),
        (REJECTED, False, ""),
        ("patch rejected by user", False, ""),
        ([*TOLD, {"type": "input_text", "text": "user rejected MCP tool call"}], False, ""),
        ([*TOLD, {"type": "input_text", "text": "done"}], True, ""),
        ("Wall time: 8.7 seconds\naborted by user", None, ""),
        ('{"answers":{"a":{"answers":["SQLite"]},"b":{"answers":["my \\"own\\""]}}}', True, 'SQLite\nmy "own"'),
    ],
)
def test_what_came_of_a_call_shows_whether_it_was_allowed(
    home: Home, output: object, allowed: bool | None, words: str
) -> None:
    root = home.root().call("exec_command", "c1", cmd="touch ../x").output("c1", output)
    home.write(root)
    home.read()
    (permit,) = home.run(root).permits
    assert (permit.call_id, permit.tool, permit.by) == ("c1", "exec_command", Permitter.UNKNOWN)
    assert (permit.allowed, permit.words, permit.at) == (allowed, words, root.clock - 1)


def test_of_what_came_of_calls_the_latest_are_kept(home: Home) -> None:
    root = home.root()
    for number in range(MOST_PERMITS + 4):
        root.call("exec_command", f"c{number}", cmd="x").output(f"c{number}", RAN)
    home.write(root.call("exec_command", "open", cmd="x"))
    home.read()
    assert [one.call_id for one in home.run(root).permits] == [f"c{number}" for number in range(4, MOST_PERMITS + 4)]
