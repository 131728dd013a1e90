"""The process that holds a request of OpenCode or Kilo, while plugin, files and operators do anything at any time."""

from __future__ import annotations

import io
import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook.requests import hold_for_plugin
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.requests.store import RequestStore
from agentwatch.state import shown, state_directory

ROUNDS = int(os.environ.get("AGENTWATCH_PLUGIN", "1000")) // 20
_CALM = 5
"""Every so many rounds nobody disturbs one: what was decided is told."""
GARBAGE = (
    b"\n",
    b"null\n",
    b"[1]\n",
    b"\xff\x00\n",
    b'{"result":7}\n',
    b'{"others":"x"}\n',
    b'{"others":NaN}\n',
    b"{" * 5000,
)


class Round:
    """One request, and the process that holds it, in a thread of its own. In a `calm` one nothing breaks."""

    def __init__(self, chance: random.Random, workspace: Path, number: int, *, calm: bool) -> None:
        self.chance = chance
        self.workspace = workspace
        self.out = Pipe(breaks=not calm and chance.random() < 0.1)
        # An id comes again now and then, as after a restart of the program.
        self.id = f"per_{number if calm else number - chance.randrange(2)}"
        self.is_question = chance.random() < 0.3
        self.said: list[Any] = []
        read, self._write = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(read,))
        self._thread.start()
        self.tell(self._told())

    def _run(self, read: int) -> None:
        try:
            self.code = hold_for_plugin(read, self.out)  # type: ignore[arg-type]
        finally:
            os.close(read)

    def _told(self) -> dict[str, Any]:
        asked: dict[str, Any] = {"id": self.id, "sessionID": "ses_1"}
        if self.is_question:
            asked["questions"] = [{"question": "Which?", "options": [{"label": "A"}]}]
        else:
            asked |= {"permission": "bash", "patterns": ["x"], "metadata": {"command": f"touch {self.id}"}}
        kind = "question" if self.is_question else "permission"
        at = time.time() * 1000
        known = {"program": "kilo", "directory": str(self.workspace), "kind": kind, "asked": asked}
        return known | {"at": at, "nonce": self.id, "others": 0}

    def tell(self, line: dict[str, Any] | bytes) -> None:
        with suppress(OSError):
            os.write(self._write, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def decide(self, request: Request) -> None:
        """Answer what is offered, as its screen would."""
        if request.kind is RequestKind.QUESTION:
            action, params = Action.ANSWER, Params(answers=(Answer("Which?", self.chance.choice(["A", "own words"])),))
        else:
            action, params = self.chance.choice([Action.ALLOW, Action.DENY]), None
        with suppress(DecisionError):
            DecisionService(self.workspace).answer(request, action, params, task_id="a", attempt=1, gone=lambda: None)
            self.said.append((request.nonce.rstrip("+"), action, params.answers[0].answer if params else ""))

    def close(self) -> None:
        os.close(self._write)
        self._thread.join(30)
        assert not self._thread.is_alive()


class Pipe(io.StringIO):
    """Standard output, which is closed now and then."""

    def __init__(self, *, breaks: bool) -> None:
        super().__init__()
        self._breaks = breaks

    def write(self, text: str) -> int:
        if self._breaks:
            raise BrokenPipeError
        return super().write(text)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for variable, name in (("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    (tmp_path / "w").mkdir()
    with shown(state_directory(tmp_path / "w")):
        yield tmp_path / "w"


def wait_for(comes: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not comes() and time.monotonic() < deadline:
        time.sleep(0.002)


@pytest.mark.parametrize("seed", range(3))
def test_the_program_is_told_what_was_decided_for_that_very_request_or_nothing(workspace: Path, seed: int) -> None:
    chance = random.Random(seed)
    box = RequestStore(workspace)
    old: list[Request] = []
    for number in range(ROUNDS):
        calm = number % _CALM == 0
        one = Round(chance, workspace, number, calm=calm)

        def offered(one: Round = one) -> list[Request]:
            return [request for request in box.read() if request.can_answer and request.nonce.rstrip("+") == one.id]

        steps: list[Callable[[], object]] = [
            lambda one=one: [one.decide(request) for request in offered()],
            lambda one=one: [one.decide(request) for request in offered()],
            lambda one=one: one.tell(chance.choice(GARBAGE)),
            lambda one=one: one.tell({"others": chance.randrange(3)}),
            lambda one=one: one.tell({"result": chance.choice(["delivered", "elsewhere", "gone", "always"])}),
            lambda one=one, old=old[-2:]: [one.decide(request) for request in old],
            lambda: [(box.directory / f"{request.request_id}.json").write_text("{}") for request in offered()[:1]],
            lambda: [(box.directory / f"{request.request_id}.json").unlink() for request in offered()[:1]],
        ]
        wait_for(offered)
        if calm:
            steps[0]()
            wait_for(one.out.getvalue)
        for _ in range(0 if calm else chance.randrange(4)):
            old += offered()
            with suppress(OSError):
                chance.choice(steps)()
            time.sleep(chance.choice([0, 0.03, 0.06]))
        one.close()
        lines = one.out.getvalue().splitlines()
        assert len(lines) == 1 if calm else len(lines) <= 1
        for line in lines:
            answer = json.loads(line)
            assert answer["id"] == one.id
            right = {
                Action.ALLOW: {"reply": "once"},
                Action.DENY: {"reply": "reject"},
                Action.ANSWER: {"reply": "answers"},
            }
            fits = [(right[action]["reply"], words) for nonce, action, words in one.said if nonce == one.id]
            assert (answer["reply"], (answer.get("answers") or [[""]])[0][0]) in fits
