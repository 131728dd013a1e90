"""The operator's side as a whole: decide, deliver, and see what became of it."""

from __future__ import annotations

import getpass
import hashlib
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.clerk import decision_of
from agentwatch.decisions.desk import LIFETIME, Desk, operator_name, return_digest
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, ReturnChangedError
from agentwatch.decisions.keys import PRIVATE
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.reader import Question, Reader, Verified
from agentwatch.decisions.record import AlreadyDecidedError, Answer, Params, Subject, written
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Stage
from agentwatch.delegation.observation import Seen
from agentwatch.delegation.tree import DelegationTree
from tests.unit.decisions.made import HANDOFF, NOON, RETURN
from tests.unit.history.recorded import Workspace, packet


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    return place


def desk(workspace: Path, **changes: Any) -> Desk:
    values = {"state": workspace.parent / "state", "configuration": workspace.parent / "configuration"}
    return Desk(workspace, **(values | changes))


def subject(of: Desk, task: str = "a.b") -> Subject:
    return Subject(of.workspace_id, task, 1, HANDOFF, RETURN)


def decide(of: Desk, action: Action = Action.RETRY, task: str = "a.b", **changes: Any) -> DecisionMade:
    values = {"returned": lambda: RETURN, "note": "once more", "operator": "ada", "now": NOON}
    return of.decide(subject(of, task), action, **(values | changes))


def test_the_first_decision_makes_the_key_and_is_delivered(workspace: Path) -> None:
    operator = desk(workspace)
    decided = decide(operator)
    assert decided == DecisionMade(decided.entry, fresh=True)
    assert decided.record.expires_at == written(NOON + LIFETIME)
    (entry,) = operator.read().entries
    assert entry.record == decided.record
    copy = workspace / ".agentwatch" / "decisions" / f"{decided.record.decision_id}.json"
    assert copy.read_bytes() == operator.ledger.bytes_of(entry)
    receipts = operator.receipts([decided.record])[decided.record.decision_id]
    assert receipts[-1].stage is Stage.DELIVERED
    reader = Reader(
        workspace,
        public_key=operator.keys.show().text,
        state=workspace / "no",
        configuration=workspace / "no",
        environment={},
    )
    assert isinstance(reader.find(Question("a.b", 1), NOON), Verified)


def test_two_desks_of_one_operator_see_one_ledger(workspace: Path) -> None:
    one, other = desk(workspace), desk(workspace)
    decided = decide(one)
    assert not decide(other).fresh
    assert decide(other, now=NOON + timedelta(seconds=9)).record == decided.record
    with pytest.raises(AlreadyDecidedError) as caught:
        decide(other, Action.ABORT)
    assert caught.value.existing == decided.record


def test_what_is_decided_about_is_what_was_seen(workspace: Path) -> None:
    seen = Workspace()
    tree = DelegationTree()
    handoff = seen.seen("x.handoff.json", packet("x"))
    returned = seen.seen("x.return.md", "## Status\nstate: ERROR\n")
    operator = desk(workspace)
    tree.apply(handoff)
    assert operator.subject(tree.tasks["x"]) == Subject(operator.workspace_id, "x", 1, handoff.digest, None)
    tree.apply(returned)
    assert operator.subject(tree.tasks["x"]) == Subject(operator.workspace_id, "x", 1, handoff.digest, returned.digest)


def test_a_return_is_hashed_again_as_it_was_read(workspace: Path) -> None:
    (workspace / "x.return.md").write_bytes(b"\xff text")
    assert return_digest(workspace, "x.return.md") == hashlib.sha256(b"\xff text").hexdigest()
    assert return_digest(workspace, "gone.md") is None
    assert return_digest(workspace, None) is None
    (workspace / "link.md").symlink_to("x.return.md")
    with pytest.raises(ReturnChangedError, match="cannot be read again"):
        return_digest(workspace, "link.md")


def test_a_return_that_changed_is_not_decided_about(workspace: Path) -> None:
    (workspace / "x.return.md").write_text("as it was seen")
    operator = desk(workspace)
    about = Subject(operator.workspace_id, "x", 1, None, return_digest(workspace, "x.return.md"))
    (workspace / "x.return.md").write_text("as an agent made it meanwhile")
    with pytest.raises(ReturnChangedError, match="look at it again"):
        operator.decide(about, Action.ACCEPT, returned=lambda: return_digest(workspace, "x.return.md"))
    assert operator.read().entries == ()


def test_a_workspace_that_must_not_be_written_is_not(workspace: Path) -> None:
    operator = desk(workspace, read_only=True)
    assert operator.mirror().reason is None
    decided = decide(operator)
    assert "write nothing" in (decided.undelivered or "")
    mirror = operator.mirror()
    assert mirror.pending == (decided.record.decision_id,)
    assert mirror.reason == decided.undelivered
    assert list(workspace.iterdir()) == []
    # What waited is delivered by the next one that may.
    assert desk(workspace).mirror().delivered == (decided.record.decision_id,)
    receipts = operator.receipts([decided.record])[decided.record.decision_id]
    assert [one.stage for one in receipts] == [Stage.RECORDED, Stage.DELIVERED]
    assert operator.mirror().pending == (), "who writes nothing sees that it is delivered"


def test_a_delivery_that_fails_waits_with_the_reason(workspace: Path) -> None:
    (workspace / ".agentwatch").write_text("in the way")
    operator = desk(workspace)
    decided = decide(operator)
    assert decided.fresh
    (workspace / ".agentwatch").unlink()
    assert operator.mirror().delivered == (decided.record.decision_id,)


def test_a_receipt_that_cannot_be_written_changes_nothing(workspace: Path) -> None:
    (workspace.parent / "state").mkdir(mode=0o700)
    (workspace.parent / "state" / "receipts").write_text("in the way")
    (workspace / ".agentwatch").mkdir()
    (workspace / ".agentwatch" / "receipts").write_text("in the way")
    assert decide(desk(workspace)).undelivered is None


def test_what_an_agent_did_is_told(workspace: Path) -> None:
    operator = desk(workspace)
    record = decide(operator).record
    operator.acted(decision_of(record, ()), "agentwatch saw attempt 2")
    told = operator.receipts([record])[record.decision_id][-1]
    assert (told.stage, told.claimed) == (Stage.ACTED, True)


@pytest.mark.parametrize("action", OF_ATTEMPTS)
def test_only_what_asks_for_work_expires(workspace: Path, action: Action) -> None:
    params = Params(mode="code" if action is Action.ESCALATE else None)
    params = params._replace(answers=(Answer(None, "yes"),)) if action is Action.RESPOND else params
    made = decide(desk(workspace), action=action, params=params).record
    assert (made.expires_at is None) == (action in (Action.ABORT, Action.ACCEPT))


def test_the_passphrase_is_asked_once(workspace: Path) -> None:
    asked = []

    def passphrase() -> str:
        asked.append(1)
        return "secret"

    operator = desk(workspace, passphrase=passphrase)
    operator.keys.create("secret")
    decide(operator, task="a")
    decide(operator, task="b")
    assert asked == [1]
    with pytest.raises(KeyProblemError, match="encrypted"):
        decide(desk(workspace), task="c")


def test_a_key_that_was_replaced_meanwhile_is_loaded_anew(workspace: Path) -> None:
    operator = desk(workspace)
    decide(operator, task="a")
    desk(workspace).keys.rotate(now=NOON)
    decide(operator, task="b", now=NOON + timedelta(hours=1))
    chain = operator.read()
    assert chain.problems == ()
    assert chain.entries[0].keyid != chain.entries[1].keyid


def test_a_key_that_vanished_is_missed_before_anything_is_written(workspace: Path) -> None:
    operator = desk(workspace)
    decide(operator, task="a")
    (operator.keys.directory / PRIVATE).unlink()
    with pytest.raises(KeyMissingError, match=r"is gone.*backup"):
        decide(desk(workspace), task="b")
    for path in operator.keys.directory.iterdir():
        path.unlink()
    with pytest.raises(KeyMissingError, match=r"the ledger holds decisions, and the keys .* are gone"):
        decide(desk(workspace), task="b")
    assert list(operator.keys.directory.iterdir()) == []


def test_the_operator_has_a_name(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert decide(desk(workspace), operator=None).record.operator == operator_name() == getpass.getuser()

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert operator_name() == f"uid {os.getuid()}"


def test_a_decision_can_hold_for_ever(workspace: Path) -> None:
    assert decide(desk(workspace, lifetime=None)).record.expires_at is None


def test_directories_are_those_of_the_user(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "s"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    operator = Desk(workspace)
    decide(operator)
    assert (tmp_path / "s" / "agentwatch" / operator.workspace_id / "decisions").is_dir()
    assert (tmp_path / "c" / "agentwatch" / "keys" / PRIVATE).is_file()


def test_a_seen_return_and_its_digest_agree(workspace: Path) -> None:
    text = "## Status\nstate: ERROR\n"
    (workspace / "x.return.md").write_text(text)
    seen = Workspace().seen("x.return.md", text)
    assert isinstance(seen, Seen)
    assert return_digest(workspace, seen.path) == seen.digest
