"""`agentwatch answer` records what was asked for about the request that was named, and `pending` prints that line."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.cli import start
from agentwatch.decisions.errors import NotAllowedError
from agentwatch.decisions.record import AlreadyDecidedError, Record
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action, Request
from agentwatch.errors import ExitCode, UsageError
from agentwatch.requests.store import RequestStore
from tests.unit.requests.asked import ANSWERED, question, request


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    made = tmp_path / "shop"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@contextmanager
def open_one(workspace: Path, asked: Request | None = None) -> Iterator[Request]:
    asked = asked or request(workspace)
    with RequestStore(workspace).offer(asked):
        yield asked


def run(*words: str) -> int:
    return start("answer", ["--yes", *words])


def recorded(workspace: Path) -> list[Record]:
    return [entry.record for entry in DecisionService(workspace, read_only=True).read().entries]


def test_a_request_is_answered_by_the_first_digits_of_its_id(workspace, capsys):
    with open_one(workspace, request(workspace, "rm \x1b[31m-rf /", said="It is harmless.\nanswer    allow")) as asked:
        assert run("--deny", "Use build/.", "--", asked.request_id[:8].upper()) == ExitCode.DONE
    (record,) = recorded(workspace)
    assert (record.decision_id, record.action, record.note) == (asked.request_id, Action.DENY, "Use build/.")
    said = capsys.readouterr().out
    assert "  │ rm " in said
    assert "\x1b" not in said
    # Nothing that is foreign looks like a line of ours.
    assert "  │ It is harmless.\n  │ answer    allow" in said


def test_what_is_allowed_is_printed_whole(workspace, capsys):
    command = "ls\n" * 300 + "x" * 9_000 + "; rm -rf ~" + "\n" * 60 + "END"
    with open_one(workspace, request(workspace, command, given={"command": command, "cwd": "/else"})) as asked:
        assert run("--allow", asked.request_id) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "xxx; rm -rf ~\n    <59 empty lines>\n  │ END\n" in said
    assert said.count("x") > 9_000
    assert '"cwd": "/else"' in said
    assert "truncated" not in said


def test_a_rule_is_one_that_the_request_has(workspace, capsys):
    with open_one(workspace, request(workspace, rules=("Bash(ls:*)",))) as asked:
        with pytest.raises(NotAllowedError, match="none of the rules"):
            run("--allow", "--rule", "Bash(*)", "--", asked.request_id)
        with pytest.raises(UsageError, match="--rule belongs to --allow"):
            run("--deny", "--rule", "Bash(ls:*)", "--", asked.request_id)
        assert run("--allow", "--rule", "Bash(ls:*)", "--", asked.request_id) == ExitCode.DONE
    assert "for the rest of its session Bash(ls:*)" in capsys.readouterr().out
    assert recorded(workspace)[0].params.rule == "Bash(ls:*)"


def test_one_answer_holds_for_the_request_that_is_named(workspace, capsys):
    with open_one(workspace) as asked:
        for word in ("", asked.request_id[:7], "0" * 8, asked.request_id + "0"):
            with pytest.raises(UsageError, match="agentwatch pending"):
                run("--allow", "--", word)
        for _ in range(2):
            assert run("--allow", asked.request_id) == ExitCode.DONE
        assert "before: " in capsys.readouterr().out
        with pytest.raises(AlreadyDecidedError) as caught:
            run("--deny", "--", asked.request_id)
        assert caught.value.exit_code == ExitCode.TAKEN
        capsys.readouterr()
        start("log", ["--json"])
        assert '"request_id": "' + asked.request_id in capsys.readouterr().out
    (entry,) = DecisionService(workspace, read_only=True).read().entries
    start("verify", [str(DecisionService(workspace).ledger.directory / entry.name)])
    said = capsys.readouterr().out
    assert "✓ signature: allow of a permission of “claude”, session “5f0c”, by " in said
    assert f"✓ input: the exact input has the sha256 {asked.input_sha256}" in said


def test_each_question_has_its_answer_and_several_a_line_each(workspace):
    with open_one(workspace, question(workspace)) as asked:
        with pytest.raises(UsageError, match=r"1 answer to 2 questions; give one --option for each, in this order:\n"):
            run("--option", "SQLite", "--", asked.request_id)
        assert run("--option", "SQLite", "--option", "Lint\n\nx", "--", asked.request_id) == ExitCode.DONE
    assert recorded(workspace)[0].params == ANSWERED


def test_pending_prints_the_lines_that_answer(workspace, capsys):
    never = request(workspace, actions=(), why_not="a plan is answered in its terminal")
    with (
        open_one(workspace) as asked,
        open_one(workspace, question(workspace, session_id="q")) as asks,
        open_one(workspace, never),
    ):
        start("completion", ["fish", "--", "answer", ""])
        said = capsys.readouterr().out
        assert (asked.request_id in said, never.request_id in said) == (True, False)
        start("pending", ["--json"])
        told = json.loads(capsys.readouterr().out)["tasks"]
        by_id = {one["request_id"]: one["command"] for task in told for one in task["requests"]}
        assert by_id[never.request_id] is None
        line = shlex.split(by_id[asked.request_id])
        assert line[line.index("answer") :] == ["answer", "--allow", "--", asked.request_id, str(workspace)]
        start("pending", [])
        said = capsys.readouterr().out
        assert by_id[asked.request_id] in said
        assert "or, in place of --allow: --deny TEXT" in said
        assert by_id[asks.request_id] in said
        assert "a plan is answered in its terminal" in said
        assert (said.count("touch x"), said.count("Which store?")) == (2, 2)
        assert run(*line[line.index("answer") + 1 :]) == ExitCode.DONE
    assert [record.decision_id for record in recorded(workspace)] == [asked.request_id]
