"""The process of OpenCode's and Kilo's plugin for each request: it is offered, and answered by the operator alone."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook.requests import request_told
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import DecisionService, operator_name
from agentwatch.delegation.decision import Action, Request, RequestStage
from agentwatch.requests.store import RequestStore
from agentwatch.shell import launcher
from tests.unit.agents.claude import QUESTIONS

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


class Held:
    """A process that holds a request, as the plugin starts it."""

    def __init__(self, first: object):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.process = subprocess.Popen([*launcher(), "hook", "--plugin"], **pipes)  # type: ignore[call-overload]
        self.say(first)

    def say(self, line: object):
        self.process.stdin.write(json.dumps(line) + "\n")

    def reads(self) -> Any:
        return json.loads(self.process.stdout.readline())

    def close(self) -> tuple[int, str]:
        """Ends the program; returns the exit code, and what was said since."""
        said, _ = self.process.communicate(timeout=30)
        return self.process.returncode, said


class Operator:
    """The desk of a workspace, and what its screen sees."""

    def __init__(self, workspace: Path):
        self.workspace, self.store = workspace, RequestStore(workspace)
        self.open: list[Held] = []

    def holds(self, first: object) -> Held:
        self.open.append(Held(first))
        return self.open[-1]

    def sees(self, stage: RequestStage = RequestStage.OFFERED, others: int = 0) -> Request:
        """The request that is at a stage, once there is one."""
        end = time.monotonic() + 15
        while time.monotonic() < end:
            found = [one for one in self.store.read() if (one.stage, one.ends_others) == (stage, others)]
            if found and not self.store.problems:
                return found[-1]
            time.sleep(0.02)
        raise AssertionError((self.store.read(), self.store.problems))

    def decides(self, request: Request, action: Action, params: Params | None = None, note: str = ""):
        desk = DecisionService(self.workspace)
        desk.answer(request, action, params, task_id="a", attempt=1, gone=lambda: None, note=note)


@pytest.fixture
def operator(tmp_path, monkeypatch):
    for variable, name in (("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    (tmp_path / "w").mkdir()
    made = Operator(tmp_path / "w")
    yield made
    for held in made.open:
        held.process.kill()
        held.process.communicate()


GIVEN = (Answer("Which checks?", "Lint"), Answer("Which checks?", "my own"), Answer("Which store?", "SQLite"))


@pytest.mark.parametrize(
    ("asked", "action", "params", "reply"),
    [
        (BASH, Action.ALLOW, None, {"reply": "once"}),
        (BASH, Action.DENY, None, {"reply": "reject", "message": "", "others": 0}),
        (
            QUESTION,
            Action.ANSWER,
            Params(answers=GIVEN),
            {"reply": "answers", "answers": [["SQLite"], ["Lint", "my own"]]},
        ),
    ],
    ids=["allow", "deny", "answer"],
)
def test_the_program_gets_the_answer_to_its_very_request(operator, asked, action, params, reply):
    held = operator.holds(told(operator.workspace, asked))
    request = operator.sees()
    about = ("Which store?\nWhich checks?", "call_2") if asked is QUESTION else ("touch x", "call_1")
    assert (request.shown, request.call_id) == about
    operator.decides(request, action, params)
    assert held.reads() == {"id": asked["id"], **reply}
    # The receipt waits for the program.
    assert operator.sees().stage is RequestStage.OFFERED
    held.say({"result": "delivered"})
    assert operator.sees(RequestStage.DELIVERED).by == operator_name()
    assert held.close() == (0, "")


def test_a_denial_that_would_end_more_is_asked_anew(operator):
    held = operator.holds(told(operator.workspace))
    before = operator.sees()
    held.say({"others": 1})
    request = operator.sees(others=1)
    assert request.request_id != before.request_id
    operator.decides(before, Action.DENY)
    operator.decides(request, Action.DENY, note="No.")
    assert held.reads() == {"id": "per_1", "reply": "reject", "message": "No.", "others": 1}


@pytest.mark.parametrize(
    ("result", "stage"), [("elsewhere", RequestStage.ELSEWHERE), ("gone", RequestStage.GONE), ("", RequestStage.GONE)]
)
def test_what_the_program_ends_itself_is_no_longer_offered(operator, result, stage):
    held = operator.holds(told(operator.workspace))
    request = operator.sees()
    if result:
        held.say({"result": result})
    assert held.close() == (0, "")
    assert operator.sees(stage).request_id == request.request_id


def read_of(**changes: Any) -> tuple[str, list[str]]:
    """The shown part of a request, and what stands beside it."""
    request = request_told(told(Path("/w"), BASH | changes, call=changes.pop("call", {})), Path("/w"))
    return request.shown, list(map(str, request.beside))


def test_the_patch_the_path_or_the_arguments_are_shown():
    edit = {"permission": "edit", "patterns": ["a.txt"], "metadata": {"filepath": "/w/a.txt", "diff": "-a\n+b\n"}}
    changed = {"filePath": "/w/a.txt", "oldString": "a", "newString": "b", "replaceAll": True}
    assert read_of(**edit, call=changed) == ("/w/a.txt\n-a\n+b\n", ["replaceAll: true"])
    assert read_of(permission="read", patterns=["/etc/passwd"], metadata={}) == ("/etc/passwd", [])
    fetch = {"permission": "webfetch", "patterns": ["http://a"], "metadata": {"url": "http://a", "format": "text"}}
    assert read_of(**fetch) == ("http://a", ['format: "text"'])
    outside = {"permission": "external_directory", "patterns": ["/tmp/*"], "metadata": {"command": "touch /tmp/x"}}
    assert read_of(**outside) == ("/tmp/*", ['command: "touch /tmp/x"'])
    call = {"number": 3, "body": "words"}
    shown = '{\n  "number": 3,\n  "body": "words"\n}'
    assert read_of(permission="tracker_close", patterns=["*"], metadata={}, call=call) == (shown, [])
    globs = {"permission": "read", "patterns": ["a", "b"], "metadata": {}}
    assert json.loads(read_of(**globs)[0]) == {"patterns": ["a", "b"]}
    assert read_of(permission="x", patterns=["*"], metadata={"mcpInput": {"n": 3}}, call=call) == ('{\n  "n": 3\n}', [])
    elsewhere = request_told(told(Path("/w/sub")), Path("/w"))
    assert [*map(str, elsewhere.beside)] == ['cwd: "/w/sub"']
    for wrong in ({"program": "other"}, {"nonce": ""}, {"asked": BASH | {"sessionID": None}}):
        with pytest.raises(ValueError, match="told of no request"):
            request_told(told(Path("/w"), **wrong), Path("/w"))


def test_no_value_passes_for_another_field_or_the_command():
    call = {"command": "make", "description": "Makes it", "workdir": "/x\ntimeout: 5"}
    assert read_of(metadata={"command": "make"}, call=call) == ("make", ['workdir: "/x\\ntimeout: 5"'])
    assert read_of(metadata={"command": "make"}, call={"command": "rm -rf ~"}) == (
        "make",
        ['"command of the call": "rm -rf ~"'],
    )
    path = {"permission": "read", "patterns": ["a\ncommand: ls"], "metadata": {}}
    assert read_of(**path) == ('"a\\ncommand: ls"', [])
    edit = {"permission": "edit", "patterns": ["a"], "metadata": {"filepath": "a\n+b", "diff": "+c"}}
    assert read_of(**edit) == ('"a\\n+b"\n+c', [])


def test_a_call_of_which_nothing_is_told_is_not_answered_here():
    asked = BASH | {"permission": "tracker_close", "patterns": ["*"], "metadata": {}}
    request = request_told(told(Path("/w"), asked, call=None), Path("/w"))
    assert (request.actions, request.shown) == ((), "*")
    assert "answer it there" in request.why_not
