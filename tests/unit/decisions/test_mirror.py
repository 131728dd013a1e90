"""What becomes of a decision in the workspace: delivered or waiting with a reason, handed out, and asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.decisions.delivery import mirror_missing
from agentwatch.decisions.reader import Asker, Place, Question, Verified, question_about
from agentwatch.decisions.record import Params
from agentwatch.delegation.tree import Tree
from tests.unit.decisions.made import Operator, record

MIRROR = Path(".agentwatch") / "decisions"


def block(operator: Operator, name: str) -> None:
    (operator.workspace / MIRROR / name).mkdir(parents=True)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda one: block(one, f"{one.subject('a').decision_id}.md"), "the workspace: Is a directory; check the disk"),
        (lambda one: (one.workspace / ".agentwatch").symlink_to(one.root), ".agentwatch is a link or no directory"),
        (lambda one: one.files()[0].unlink(), "cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_delivered_waits_with_a_reason(
    tmp_path: Path, spoil: Callable[[Operator], None], words: str
) -> None:
    operator = Operator(tmp_path)
    operator.decide("a")
    chain = operator.chain()
    spoil(operator)
    mirror = mirror_missing(operator.workspace, operator.ledger, chain, operator.trust)
    assert (mirror.delivered, mirror.pending) == ((), (operator.subject("a").decision_id,))
    assert words in (mirror.reason or "")


def test_without_a_place_to_write_an_agent_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "file" / name))
    (tmp_path / "file").touch()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".agentwatch").touch()
    asker = Asker(tmp_path / "w", Settings(), "wait")
    made = record(params=Params(handoff="{}"))
    assert asker.hand_out(made) is None
    assert "no receipt can be written" in (asker.note_read(Verified(made, Place.LEDGER), "agent") or "")
    asker.note_acted(made.decision_id, "agent")
    assert question_about(Tree(), "x", None) == Question("x")
    assert question_about(Tree(), "x", 3) == Question("x", 3)
