"""Who waits on another machine is told what `wait` says on the host: the same document, exit code and words."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.decisions.made import Operator
from tests.unit.decisions.test_policy import Told, returned

from agentwatch.cli.wait import wait_for_host, wait_here
from agentwatch.config import Settings
from agentwatch.decisions.record import Params, Subject
from agentwatch.delegation.tree import Tree
from agentwatch.monitor import Monitor
from agentwatch.remote.protocol import Ask, Wish
from agentwatch.remote.texts import Answers, parts
from agentwatch.sources.files.source import FilesSource


def told(*returns: str | None) -> Tree:
    teller = Told()
    for number, text in enumerate(returns, 1):
        teller.attempt(number, text)
    return teller.tree


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    operator = Operator(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", operator.key.public.text)
    monkeypatch.setattr("agentwatch.cli.wait._AGAIN_SECONDS", 0.001)
    return operator


class Behind:
    """A workspace as its relay answers about it, but for the first questions."""

    def __init__(self, operator: Operator, tree: Tree, deaf: float = 0) -> None:
        self.monitor = Monitor(operator.workspace, Settings(), FilesSource(operator.workspace), clock=lambda: 0.0)
        self.monitor.tree = tree
        self.answers = Answers(self.monitor)
        self.deaf = deaf
        self.asked: list[Wish] = []
        self.host = SimpleNamespace(label="build1", why="the cable was cut", lost_since=1.0)

    def scan(self) -> None:
        assert not self.asked

    def ask(self, what: Wish, key: str, place: str = "") -> str | None:
        self.asked.append(what)
        if len(self.asked) <= self.deaf:
            return None
        ask = Ask(id="s.1", screen="s", workspace="w", what=what, key=key, place=place)
        return "".join(reply.data for reply in parts(ask, self.answers.find(ask)()))

    def wait(self, timeout: float = 0.0) -> int:
        source: Any = self
        return wait_for_host(source, "ssh://build1/srv/shop", "x", None, timeout=timeout, indent=None)


def decided(operator: Operator, tree: Tree, **more: Any) -> None:
    version = tree.tasks["x"].attempts[0].returned
    assert version is not None
    subject = Subject(operator.workspace_id, "x", 1, None, version.digest)
    operator.decide(returned=lambda: version.digest, subject=subject, **{"created_at": datetime.now(UTC)} | more)


def expired(operator: Operator, tree: Tree) -> None:
    made = datetime.now(UTC).replace(microsecond=0) - timedelta(days=2)
    decided(operator, tree, created_at=made, expires_at=made + timedelta(days=1))


def forged(operator: Operator, _tree: Tree) -> None:
    place = operator.workspace / ".agentwatch" / "decisions"
    place.mkdir(parents=True)
    (place / f"{'a' * 32}.json").write_text("{}")


def nothing(_operator: Operator, _tree: Tree) -> None:
    pass


@pytest.mark.parametrize(
    ("happens", "tree", "code"),
    [
        (decided, told(returned()), 0),
        (nothing, told(returned()), 3),
        (nothing, told(None), 3),
        (nothing, Tree(), 3),
        (expired, told(returned()), 4),
        (forged, told(returned()), 5),
        (nothing, told(returned("SUCCESS")), 8),
    ],
)
def test_it_says_what_wait_says_on_the_host(
    operator: Operator,
    capsys: pytest.CaptureFixture[str],
    happens: Callable[[Operator, Tree], None],
    tree: Tree,
    code: int,
) -> None:
    happens(operator, tree)
    behind = Behind(operator, tree)
    assert behind.wait() == code
    far = capsys.readouterr()

    def load(_workspace: Path, _settings: Settings, **_: object) -> Monitor:
        return behind.monitor

    assert wait_here(operator.workspace, Settings(), load, "x", None, timeout=0.0, indent=None) == code
    here = capsys.readouterr()
    assert json.loads(far.out) == json.loads(here.out)
    assert far.err == here.err.replace(str(operator.workspace), "ssh://build1/srv/shop")
    assert behind.asked == (["wait", "read"] if code == 0 else ["wait"])


def test_the_handoff_for_the_next_attempt_is_in_the_answer_and_no_file_of_the_host_is_named(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(operator, tree := told(returned()), params=Params(handoff="{}"))
    assert Behind(operator, tree).wait() == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["handoff_path"], found["params"]["handoff"]) == (None, "{}")
    assert found["do_now"].endswith("with the handoff in params.handoff")


def test_what_a_host_that_cannot_be_reached_has_decided_nobody_knows_and_a_longer_wait_outlasts_it(
    operator: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(operator, tree := told(returned()))
    assert Behind(operator, tree, deaf=99).wait() == 3
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["pending"], found["unreachable"], found["task_id"]) == (True, True, "x")
    assert found["detail"] == "build1 cannot be reached: the cable was cut"
    assert "nobody knows what is decided about “x”: build1 cannot be reached: the cable was cut" in said.err
    assert Behind(operator, tree, deaf=3).wait(60.0) == 0


@pytest.mark.parametrize("said", ["[]", '{"do_now": "go"}', '{"pending": 1}', "{", "9" * 5000])
def test_an_answer_that_is_none_decides_nothing(operator: Operator, said: str) -> None:
    behind = Behind(operator, told(returned()))
    behind.ask = lambda *_: said  # type: ignore[method-assign]
    assert behind.wait() == 3
