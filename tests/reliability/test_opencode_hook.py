"""The process that holds a request of OpenCode or Kilo, while plugin, files and operators do anything at any time."""

import io
import json
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook.requests import hold_for_plugin
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action, Request, RequestKind
from agentwatch.requests.store import RequestStore
from agentwatch.state import shown, state_directory
from tests.homes import live_in

ROUNDS = int(os.environ.get("AGENTWATCH_PLUGIN", "1000")) // 20
_CALM = 5
"""Every so many rounds nobody disturbs one: what was decided is told."""
GARBAGE = (b"\n", b"null\n", b"[1]\n", b"\xff\x00\n", b'{"result":7}\n', b'{"others":"x"}\n', b'{"others":NaN}\n')
REPLIES = {Action.ALLOW: "once", Action.DENY: "reject", Action.ANSWER: "answers"}


class Round:
    """One request, and the process that holds it, in a thread of its own. In a `calm` one nothing breaks."""

    def __init__(self, chance: random.Random, workspace: Path, number: int, *, calm: bool):
        self.chance, self.workspace = chance, workspace
        self.out = Pipe(breaks=not calm and chance.random() < 0.1)
        # An id comes again now and then, as after a restart of the program.
        self.id = f"per_{number if calm else number - chance.randrange(2)}"
        self.said: list[tuple[str, str]] = []
        read, self._write = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(read,))
        self._thread.start()
        asked: dict[str, Any] = {"id": self.id, "sessionID": "ses_1"}
        if chance.random() < 0.3:
            kind, asked["questions"] = "question", [{"question": "Which?", "options": [{"label": "A"}]}]
        else:
            kind = "permission"
            asked |= {"permission": "bash", "patterns": ["x"], "metadata": {"command": f"touch {self.id}"}}
        known = {"program": "kilo", "directory": str(workspace), "kind": kind, "asked": asked}
        self.tell(known | {"at": time.time() * 1000, "nonce": self.id, "others": 0})

    def _run(self, read: int):
        try:
            hold_for_plugin(read, self.out)  # type: ignore[arg-type]
        finally:
            os.close(read)

    def tell(self, line: dict[str, Any] | bytes):
        with suppress(OSError):
            os.write(self._write, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def decide(self, requests: list[Request]):
        """Answer what is offered, as its screen would."""
        for request in requests:
            action, params = self.chance.choice([Action.ALLOW, Action.DENY]), Params()
            if request.kind is RequestKind.QUESTION:
                words = self.chance.choice(["A", "own words"])
                action, params = Action.ANSWER, Params(answers=(Answer("Which?", words),))
            with suppress(DecisionError):
                DecisionService(self.workspace).answer(
                    request, action, params, task_id="a", attempt=1, gone=lambda: None
                )
                if request.nonce.rstrip("+") == self.id:
                    self.said.append((REPLIES[action], params.answers[0].answer if params.answers else ""))

    def close(self):
        os.close(self._write)
        self._thread.join(30)
        assert not self._thread.is_alive()


class Pipe(io.StringIO):
    """Standard output, which is closed now and then."""

    def __init__(self, *, breaks: bool):
        super().__init__()
        self._breaks = breaks

    def write(self, text: str) -> int:
        if self._breaks:
            raise BrokenPipeError
        return super().write(text)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch)
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    (tmp_path / "w").mkdir()
    with shown(state_directory(tmp_path / "w")):
        yield tmp_path / "w"


def wait_for(comes: Callable[[], object]):
    deadline = time.monotonic() + 10
    while not comes() and time.monotonic() < deadline:
        time.sleep(0.002)


@pytest.mark.parametrize("seed", range(3))
def test_the_program_is_told_what_was_decided_or_nothing(workspace, seed):
    chance = random.Random(seed)
    box = RequestStore(workspace)
    old: list[Request] = []
    for number in range(ROUNDS):
        calm = number % _CALM == 0
        one = Round(chance, workspace, number, calm=calm)

        def offered(one: Round = one) -> list[Request]:
            return [request for request in box.read() if request.can_answer and request.nonce.rstrip("+") == one.id]

        def files(offered: Callable[[], list[Request]] = offered) -> list[Path]:
            return [box.directory / f"{request.request_id}.json" for request in offered()[:1]]

        steps: list[Callable[[], object]] = [
            lambda one=one: one.decide(offered()),
            lambda one=one: one.decide(offered()),
            lambda one=one: one.tell(chance.choice(GARBAGE)),
            lambda one=one: one.tell({"others": chance.randrange(3)}),
            lambda one=one: one.tell({"result": chance.choice(["delivered", "elsewhere", "gone", "always"])}),
            lambda one=one, old=old[-2:]: one.decide(old),
            lambda files=files: [file.write_text("{}") for file in files()],
            lambda files=files: [file.unlink() for file in files()],
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
            assert (answer["reply"], (answer.get("answers") or [[""]])[0][0]) in one.said
