"""A child whose retry was decided and that carries it out in its own session, as each program writes that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Ran
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Attempt, State
from agentwatch.sources.opencode.opencode_reader import OpenCodeReader
from agentwatch.sources.sessions.reader import SessionReader
from tests.unit.claude_code.building import Store, meta
from tests.unit.codex.home import Home
from tests.unit.copilot.building import Store as CopilotStore
from tests.unit.delegation.events import tree_of
from tests.unit.opencode.program import Program, framed
from tests.unit.qwen.building import Store as QwenStore
from tests.unit.roo.storage import Storage, call, say

TASK = "shop.search"
PACKET = f"""```json
{{"handoff_schema": "composability.handoff_packet.v1", "task_id": "{TASK}", "objective": "Index the products."}}
```
"""
FAILED = """## Status
state: ERROR
summary: The index is locked.
error_code: E_LOCKED
error_message: The index is locked.
retry_recommended: yes

## Deliverables
- (none)

## Evidence
- (none)

## Runtime Attestation
runtime_model_reported: small
runtime_mode_reported: code
files_created:
- (none)
files_modified:
- (none)
"""
DONE = FAILED.replace("ERROR", "SUCCESS").replace(
    """error_code: E_LOCKED
error_message: The index is locked.
retry_recommended: yes
""",
    "",
)
AGAIN = "Do it once more, as attempt 2."


# Each of them: the child is asked, and answers in these words, one after the other; between them it is sent on. Where
# the last are none, the first three have it still work.


def claude_by_hook(root: Path, *answers: str) -> SessionReader:
    store = Store(root)
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", PACKET)
    child.asked(PACKET)
    child.said(answers[0])
    for words in answers[1:]:
        child.asked(f"Stop hook feedback:\n{AGAIN}", isMeta=True)
        if words:
            child.said(words)
    store.save()
    return store.reader()


def claude_by_its_parent(root: Path, *answers: str) -> SessionReader:
    store = Store(root)
    main, child = store.session(), store.agent("a1", meta("toolu_1"))
    main.asked("Go.")
    main.delegated("toolu_1", PACKET)
    child.asked(PACKET)
    child.said(answers[0])
    main.returned("toolu_1", "a1", answers[0])
    for words in answers[1:]:
        main.used("SendMessage", "toolu_2", to="a1", message=AGAIN)
        child.asked(AGAIN, isMeta=True, origin={"kind": "coordinator"})
        if words:
            child.said(words)
    store.save()
    return store.reader()


def codex(root: Path, *answers: str) -> SessionReader:
    root.mkdir()
    home = Home(root)
    top = home.root()
    child = home.session(2).child_meta(home.workspace, top.id).begin().asked(PACKET).complete(answers[0])
    for words in answers[1:]:
        child.begin().asked(AGAIN).complete(words)
    home.write(top, child)
    return home.reader


def opencode(root: Path, *answers: str) -> SessionReader:
    workspace, database = root / "ws", root / "opencode.db"
    workspace.mkdir(parents=True)
    program = Program(database, workspace)
    top = program.session()
    asking = program.begin(top)
    child, call = program.delegate(top, asking, PACKET)
    program.answer(child, answers[0])
    program.hand_out(top, asking, child, PACKET, call, status="completed", output=framed(child, answers[0]))
    for words in answers[1:]:
        asking = program.begin(top)
        call = program.hand_out(top, asking, child, AGAIN, given={"task_id": child})
        program.ask(child, AGAIN)
        if words:
            program.answer(child, words)
            program.hand_out(top, asking, child, AGAIN, call, status="completed", output=framed(child, words))
    program.close()
    return OpenCodeReader(workspace, database)


def roo(root: Path, *answers: str) -> SessionReader:
    root.mkdir()
    storage = Storage(root)
    storage.item("p", status="delegated", childIds=["c"])
    storage.messages("p", say("text", "Build."), call(PACKET, 1))
    storage.item("c", status="completed", parentTaskId="p")
    told = [say("text", PACKET, 2), say("completion_result", answers[0], 3)]
    for number, words in enumerate(answers[1:], 1):
        told += [say("user_feedback", AGAIN, 10 * number), say("completion_result", words, 10 * number + 5)]
    storage.messages("c", *told)
    return storage.reader


def qwen(root: Path, *answers: str) -> SessionReader:
    store = QwenStore(root)
    main = store.session()
    main.asked("Go.")
    child = store.handed(main, "call_1", PACKET)
    for number, words in enumerate(answers):
        if number:
            child.asked(AGAIN)
            child.described("call_1", resumeCount=number)
        child.said(words)
        child.described("call_1", "completed", resumeCount=number)
    store.save()
    return store.reader()


def copilot(root: Path, *answers: str) -> SessionReader:
    store = CopilotStore(root)
    main = store.session()
    child = store.handed(main, "call_1", PACKET, "background")
    for number, words in enumerate(answers):
        if number:
            main.called("write_agent", f"send_{number}", agent_id="agent-of-call_1", message=AGAIN)
            child.asked(AGAIN)
        if words:
            child.said(words)
        if not number:
            child.completed("call_1")
    store.save()
    return store.reader()


Way = Callable[..., SessionReader]
Played = Callable[..., SessionReader]
WAYS: list[Way] = [claude_by_hook, claude_by_its_parent, codex, copilot, opencode, qwen, roo]


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    """Plays one of the ways with these answers, in a place of its own."""
    readers: list[SessionReader] = []

    def play(way: Way, *answers: str) -> SessionReader:
        readers.append(way(tmp_path / str(len(readers)), *answers))
        return readers[-1]

    yield play
    for reader in readers:
        reader.close()


def read(reader: SessionReader) -> list[Ran]:
    runs: dict[str, Run] = {}
    while True:
        runs |= {change.key: change.run for change in reader.read(10) if change.run is not None}
        if reader.progress.done == reader.progress.total:
            return [Ran(seq, run.updated_at, key, run) for seq, (key, run) in enumerate(runs.items(), 1)]


def decision(attempt: Attempt) -> Decided:
    """A retry of this attempt, decided half a second after it ended and read by an agent."""
    assert attempt.returned is not None
    assert attempt.handoff is not None
    at = attempt.returned.at + 0.0005
    receipts = (Receipt(Stage.RECORDED, at), Receipt(Stage.READ, at))
    name = f"d{attempt.number}"
    return Decided(
        9,
        at,
        name,
        Decision(
            decision_id=name,
            task_id=TASK,
            attempt=attempt.number,
            handoff_sha256=attempt.handoff.digest,
            return_sha256=attempt.returned.digest,
            action=Action.RETRY,
            at=at,
            receipts=receipts,
        ),
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_decided_retry_in_the_same_session_is_an_attempt_of_its_own(way: Way, played: Played) -> None:
    asked = tree_of(read(played(way, FAILED))).tasks[TASK]
    assert asked.needs_operator
    decided = decision(asked.attempts[0])
    retrying = tree_of([*read(played(way, FAILED)), decided]).tasks[TASK]
    assert (retrying.attempt, retrying.state) == (1, State.RETRYING)

    reader = played(way, FAILED, DONE)
    task = tree_of([*read(reader), decided]).tasks[TASK]
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.FAILED), (2, State.COMPLETED)]
    first, second = task.attempts
    assert first.session_id == second.session_id
    assert first.returned is not None
    assert second.returned is not None
    assert [reader.text(one.returned.digest) for one in task.attempts if one.returned] == [FAILED, DONE]
    assert second.run is not None
    assert second.run.prompt is not None
    assert AGAIN in (reader.text(second.run.prompt.digest) or "")


@pytest.mark.parametrize("way", WAYS)
def test_one_that_ends_in_the_very_same_bytes_asks_anew(way: Way, played: Played) -> None:
    asked = tree_of(read(played(way, FAILED))).tasks[TASK]
    decided = decision(asked.attempts[0])
    runs = read(played(way, FAILED, FAILED))
    task = tree_of([*runs, decided]).tasks[TASK]
    assert (task.attempt, task.state, task.needs_operator, task.binding) == (2, State.FAILED, True, None)
    second = decision(task.attempts[1])
    assert tree_of([*runs, decided, second]).tasks[TASK].state is State.RETRYING
    third = tree_of([*read(played(way, FAILED, FAILED, FAILED)), decided, second]).tasks[TASK]
    assert [one.number for one in third.attempts] == [1, 2, 3]


@pytest.mark.parametrize("way", [claude_by_hook, claude_by_its_parent, copilot, opencode])
def test_a_child_that_has_not_answered_to_a_decided_retry_works_on_its_second_attempt(way: Way, played: Played) -> None:
    asked = tree_of(read(played(way, FAILED))).tasks[TASK]
    task = tree_of([*read(played(way, FAILED, "")), decision(asked.attempts[0])]).tasks[TASK]
    assert [(one.number, one.state) for one in task.attempts] == [(1, State.FAILED), (2, State.WORKING)]
    assert (task.state, task.needs_operator) == (State.WORKING, False)
