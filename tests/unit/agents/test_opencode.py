"""OpenCode's and Kilo's plugin, and its process for each request: only the operator answers, or nobody."""

import io
import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import agentwatch
from agentwatch.agents.hook.requests import hold_for_plugin, read_plugin_request
from agentwatch.agents.setup import known_programs
from agentwatch.config import Settings
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import DecisionService, operator_name
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage
from agentwatch.requests.store import RequestStore
from agentwatch.shell import launch_words
from agentwatch.state import mark_shown, state_directory
from tests.homes import live_in
from tests.unit.agents.claude import QUESTIONS

NODE = shutil.which("node")
PLUGIN = Path(agentwatch.__file__).parent / "agents" / "hook" / "opencode.js"
ROUNDS = os.environ.get("AGENTWATCH_PLUGIN", "700")
BASH: dict[str, Any] = {
    "id": "per_1",
    "sessionID": "ses_1",
    "permission": "bash",
    "patterns": ["touch x"],
    "metadata": {"command": "touch x"},
    "always": ["touch *"],
    "tool": {"messageID": "msg_1", "callID": "call_1"},
}
QUESTION: dict[str, Any] = {
    "id": "que_1",
    "sessionID": "ses_1",
    "questions": [one | {"multiple": one["multiSelect"]} for one in QUESTIONS],
    "tool": {"messageID": "msg_1", "callID": "call_2"},
}


def told(workspace: Path, asked: dict[str, Any] = BASH, **changes: Any) -> dict[str, Any]:
    kind = "question" if "questions" in asked else "permission"
    values = {"program": "opencode", "directory": str(workspace), "kind": kind, "asked": asked}
    values |= {"call": {"command": "touch x", "description": "Makes x"}, "at": time.time() * 1000 - 5}
    return values | {"nonce": asked["id"], "others": 0} | changes


def answer(workspace: Path, request: Request, action: Action, params: Params | None = None, note: str = ""):
    desk = DecisionService(workspace)
    desk.answer(request, action, params, task_id="a", attempt=1, why_gone=lambda: None, note=note)


class Held:
    """A process that holds a request, as the plugin starts it."""

    def __init__(self, first: object):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen([*launch_words(), "hook", "--plugin"], **pipes)  # type: ignore[call-overload]
        self.say(first)

    def say(self, line: object):
        self.process.stdin.write(json.dumps(line) + "\n")

    def reads(self) -> Any:
        return json.loads(self.process.stdout.readline())

    def close(self) -> tuple[int, str]:
        """End the program, and return its exit code and its output since the last read."""
        said, _ = self.process.communicate(timeout=30)
        return self.process.returncode, said


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    live_in(tmp_path / "home", monkeypatch)
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    (tmp_path / "w").mkdir()
    return tmp_path / "w"


@pytest.fixture
def hold(workspace):
    """Return a function that lets a new process hold a request."""
    held = list[Held]()

    def hold(asked: dict[str, Any] = BASH) -> Held:
        held.append(Held(told(workspace, asked)))
        return held[-1]

    yield hold
    for one in held:
        one.process.kill()
        one.process.communicate()


def sees(workspace: Path, stage: RequestStage = RequestStage.OFFERED, others: int = 0) -> Request:
    """Wait for a request at this stage, and return it."""
    end, store = time.monotonic() + 15, RequestStore(workspace)
    while time.monotonic() < end:
        found = [one for one in store.read() if (one.stage, one.ends_others) == (stage, others)]
        if found and not store.problems:
            return found[-1]
        time.sleep(0.02)
    raise AssertionError((store.read(), store.problems))


GIVEN = (Answer("Which checks?", "Lint"), Answer("Which checks?", "my own"), Answer("Which store?", "SQLite"))


@pytest.mark.parametrize(
    ("asked", "decided", "reply"),
    [
        (BASH, (Action.ALLOW,), {"reply": "once"}),
        (BASH, (Action.DENY,), {"reply": "reject", "message": "", "others": 0}),
        (
            QUESTION,
            (Action.ANSWER, Params(answers=GIVEN)),
            {"reply": "answers", "answers": [["SQLite"], ["Lint", "my own"]]},
        ),
    ],
)
def test_the_program_gets_the_answer_to_its_very_request(workspace, hold, asked, decided, reply):
    held = hold(asked)
    request = sees(workspace)
    about = ("Which store?\nWhich checks?", "call_2") if asked is QUESTION else ("touch x", "call_1")
    assert (request.shown, request.call_id) == about
    answer(workspace, request, *decided)
    assert held.reads() == {"id": asked["id"], **reply}
    # The receipt is written only after the program has taken the answer.
    assert sees(workspace).stage is RequestStage.OFFERED
    held.say({"result": "delivered"})
    assert sees(workspace, RequestStage.DELIVERED).by == operator_name()
    assert held.close() == (0, "")


def test_a_denial_that_would_end_more_is_asked_anew(workspace, hold):
    held = hold()
    before = sees(workspace)
    held.say({"others": 1})
    request = sees(workspace, others=1)
    assert request.request_id != before.request_id
    answer(workspace, before, Action.DENY)
    answer(workspace, request, Action.DENY, note="No.")
    assert held.reads() == {"id": "per_1", "reply": "reject", "message": "No.", "others": 1}


@pytest.mark.parametrize(
    ("result", "stage"), [("elsewhere", RequestStage.ELSEWHERE), ("gone", RequestStage.GONE), ("", RequestStage.GONE)]
)
def test_a_request_that_the_program_ends_is_no_longer_offered(workspace, hold, result, stage):
    held = hold()
    request = sees(workspace)
    if result:
        held.say({"result": result})
    assert held.close() == (0, "")
    assert sees(workspace, stage).request_id == request.request_id


CHANGED = {"filePath": "/w/a.txt", "oldString": "a", "newString": "b", "replaceAll": True}
CALL = {"number": 3, "body": "words"}
MAKE = {"command": "make"}


@pytest.mark.parametrize(
    ("permission", "patterns", "metadata", "call", "seen"),
    [
        (
            "edit",
            ["a.txt"],
            {"filepath": "/w/a.txt", "diff": "-a\n+b\n"},
            CHANGED,
            ["/w/a.txt\n-a\n+b\n", "replaceAll: true"],
        ),
        ("edit", ["a"], {"filepath": "a\n+b", "diff": "+c"}, {}, ['"a\\n+b"\n+c']),
        ("read", ["/etc/passwd"], {}, {}, ["/etc/passwd"]),
        ("read", ["a\ncommand: ls"], {}, {}, ['"a\\ncommand: ls"']),
        ("read", ["a", "b"], {}, {}, ['{\n  "patterns": [\n    "a",\n    "b"\n  ]\n}']),
        ("webfetch", ["http://a"], {"url": "http://a", "format": "text"}, {}, ["http://a", 'format: "text"']),
        ("external_directory", ["/tmp/*"], {"command": "touch /tmp/x"}, {}, ["/tmp/*", 'command: "touch /tmp/x"']),
        ("tracker_close", ["*"], {}, CALL, ['{\n  "number": 3,\n  "body": "words"\n}']),
        ("x", ["*"], {"mcpInput": {"n": 3}}, CALL, ['{\n  "n": 3\n}']),
        ("bash", ["*"], MAKE, {**MAKE, "workdir": "/x\ntimeout: 5"}, ["make", 'workdir: "/x\\ntimeout: 5"']),
        ("bash", ["*"], MAKE, {"command": "rm -rf ~"}, ["make", '"command of the call": "rm -rf ~"']),
    ],
)
def test_all_of_a_request_is_shown_and_passes_for_nothing_else(permission, patterns, metadata, call, seen):
    asked = BASH | {"permission": permission, "patterns": patterns, "metadata": metadata}
    request = read_plugin_request(told(Path("/w"), asked, call=call), Path("/w"))
    assert [request.shown, *map(str, request.beside)] == seen


def test_another_directory_is_shown_and_half_a_request_is_none():
    elsewhere = read_plugin_request(told(Path("/w/sub")), Path("/w"))
    assert [*map(str, elsewhere.beside)] == ['cwd: "/w/sub"']
    for wrong in ({"program": "other"}, {"nonce": ""}, {"asked": BASH | {"sessionID": None}}):
        with pytest.raises(ValueError, match="told of no request"):
            read_plugin_request(told(Path("/w"), **wrong), Path("/w"))


def test_a_call_without_any_details_is_not_answered_here():
    asked = BASH | {"permission": "tracker_close", "patterns": ["*"], "metadata": {}}
    request = read_plugin_request(told(Path("/w"), asked, call=None), Path("/w"))
    assert (request.actions, request.shown) == ((), "*")
    assert "answer it there" in request.why_not


def test_init_names_the_plugin_file_that_is_shipped():
    (file,) = known_programs(Settings())["opencode"].files
    assert PLUGIN.as_uri() in str(file.ours)
    assert PLUGIN.is_file()


@pytest.mark.skipif(NODE is None, reason="there is no node to run a plugin with")
@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_request_gets_the_answer_that_was_given_to_it_or_none(seed):
    """Requests come and go, ids come again, processes die or print nonsense, lists fail, other answers come first: the
    program only gets the answer to that very request, no process is left, and no error is raised."""
    assert NODE is not None
    call = [NODE, str(Path(__file__).with_name("opencode_plugin.mjs")), str(PLUGIN), ROUNDS, seed]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, check=True)
    told = json.loads(done.stdout)
    assert (told.pop("wrong"), done.stderr) == ([], "")
    assert min(told[what] for what in ("asked", "delivered", "elsewhere", "gone", "killed")) > 100


_CALM = 5
"""Every fifth round is calm: nothing disturbs it, and the program gets its answer."""
GARBAGE = (b"\n", b"null\n", b"[1]\n", b"\xff\x00\n", b'{"result":7}\n', b'{"others":"x"}\n', b'{"others":NaN}\n')
REPLIES = {Action.ALLOW: "once", Action.DENY: "reject", Action.ANSWER: "answers"}


class Round:
    """A request, and a thread with the code that holds it. In a `calm` round nothing breaks."""

    def __init__(self, chance: random.Random, workspace: Path, number: int, *, calm: bool):
        self.chance, self.workspace = chance, workspace
        self.out = Pipe(breaks=not calm and chance.random() < 0.1)
        # Sometimes an id comes again, as after a restart of the program.
        self.id = f"per_{number if calm else number - chance.randrange(2)}"
        self.said: list[tuple[str, str]] = []
        read, self._write = os.pipe()
        self._thread = threading.Thread(target=self._run, args=(read,))
        self._thread.start()
        asked = {**BASH, "id": self.id}
        if chance.random() < 0.3:
            questions = [{"question": "Which?", "options": [{"label": "A"}]}]
            asked = {"id": self.id, "sessionID": "ses_1", "questions": questions}
        self.tell(told(workspace, asked, program="kilo"))

    def _run(self, read: int):
        try:
            hold_for_plugin(read, self.out)  # type: ignore[arg-type]
        finally:
            os.close(read)

    def tell(self, line: dict[str, Any] | bytes):
        with suppress(OSError):
            os.write(self._write, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")

    def decide(self, requests: list[Request]):
        """Answer the requests that are offered, as a screen would."""
        for request in requests:
            action, params = self.chance.choice([Action.ALLOW, Action.DENY]), Params()
            if request.kind is RequestKind.QUESTION:
                words = self.chance.choice(["A", "own words"])
                action, params = Action.ANSWER, Params(answers=(Answer("Which?", words),))
            with suppress(DecisionError):
                answer(self.workspace, request, action, params)
                if request.nonce.rstrip("+") == self.id:
                    self.said.append((REPLIES[action], params.answers[0].answer if params.answers else ""))

    def close(self):
        os.close(self._write)
        self._thread.join(30)
        assert not self._thread.is_alive()


class Pipe(io.StringIO):
    """A standard output that may be closed."""

    def __init__(self, *, breaks: bool):
        super().__init__()
        self._breaks = breaks

    def write(self, text: str) -> int:
        if self._breaks:
            raise BrokenPipeError
        return super().write(text)


def wait_for(comes: Callable[[], object]):
    deadline = time.monotonic() + 10
    while not comes() and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_program_gets_the_decision_or_nothing(workspace, seed):
    chance = random.Random(seed)
    box = RequestStore(workspace)
    old: list[Request] = []
    with mark_shown(state_directory(workspace)):
        for number in range(int(ROUNDS) // 30):
            calm = number % _CALM == 0
            one = Round(chance, workspace, number, calm=calm)

            def offered(one: Round = one) -> list[Request]:
                return [
                    request for request in box.read() if request.is_answerable and request.nonce.rstrip("+") == one.id
                ]

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
                reply = json.loads(line)
                assert reply["id"] == one.id
                assert (reply["reply"], (reply.get("answers") or [[""]])[0][0]) in one.said
