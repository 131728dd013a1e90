"""Command lines as shells take them: lines that are printed, words that are completed, and interrupted commands."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Timer
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.cli import pending, run, start
from agentwatch.cli.command import parse
from agentwatch.decisions.errors import NotAllowedError
from agentwatch.decisions.record import AlreadyDecidedError, Record
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import OF_ATTEMPTS, Action, Request
from agentwatch.delegation.tree import Tree
from agentwatch.errors import ExitCode, UsageError
from agentwatch.requests.store import RequestStore
from tests.homes import live_in
from tests.unit.agents.documents import packet, returned
from tests.unit.history.recorded import Workspace
from tests.unit.requests.asked import ANSWERED, question, request


@pytest.mark.parametrize(
    ("module", "happens", "words", "code"),
    [
        ("cli.tree", "raise KeyboardInterrupt", ["tree"], 130),
        # The search for tasks takes too long, and is ended by a time limit, which is a hundredth of the usual one here.
        (
            "composition",
            "signal.setitimer(0, signal.getitimer(0)[0] / 100); time.sleep(60)",
            ["completion", "fish", "--", "wait", ""],
            0,
        ),
    ],
)
def test_an_interrupted_command_ends_silently(workspace, module, happens, words, code):
    program = (
        "import signal, sys, time\n"
        "class Meanwhile:\n"
        "    def find_spec(self, name, *more):\n"
        f"        if name == 'agentwatch.{module}': {happens}\n"
        f"sys.meta_path.insert(0, Meanwhile()); sys.argv = ['agentwatch', *{words}]\n"
        "from agentwatch.__main__ import main; main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", "")


HOSTILE = ["a\nb", "a\x1b]0;x\x07", "a\u202eb", "a\tb", "--yes", "-x", " a", "a\u2028"]
TYPED = [["", ""], ["\0"], ["decide", "\ud800"], ["--", "--", "--"], ["tree", "'"], ["\\"]]


def test_an_id_that_no_shell_could_take_is_not_offered(workspace, capsys):
    for number, task_id in enumerate([*HOSTILE, "shop.api"]):
        (workspace / f"t{number}.handoff.json").write_text(packet(task_id), "utf-8")
    for shell in ("bash", "zsh", "fish"):
        assert run(["completion", shell, "--", "wait", ""]) == 0
        assert capsys.readouterr().out.partition("\t")[0] == "shop.api"
        for words in TYPED:
            assert run(["completion", shell, "--", *words]) == 0
            assert capsys.readouterr().err == ""


LINES = 10
"""Tasks of an example, with all of their commands."""

SHELLS = [path for path in map(shutil.which, ("bash", "zsh", "busybox")) if path is not None]
PARTS = [
    "--yes", "-x", "--note=hi", "--", "-", "-h", "--help", "--retry", "--abort", "--respond", "--timeout=0", "@x", "+x",
    "$(touch owned)", "`touch owned`", "; touch owned", "&& touch owned", "| touch owned", "> owned", "& ", "'", '"',
    "\\", "\n", "\r", "\t", " ", "!", "!!", "*", "?", "[a]", "~", "=ls", "%s", "%", "{a,b}", "#", "$HOME", "${w1%.}",
    "$'\\x0a'", "\\012", "\x1b]0;x\x07", "\x7f", "\x9b", "\u202e", "\u00a0", "\ufe0f", "\u2028", "\u200d", "é", "日本",
    "\U0001f600", "TEXT", "MODE", "shop", "api", ".", "/", "..", "0", "7",
]  # fmt: skip


def name(random: Random, workspace: str) -> str:
    parts = random.choices([*PARTS, workspace, chr(random.randrange(1, 0xD800))], k=random.randrange(1, 5))
    return "".join(parts)


def decisions(random: Random, workspace: Path, root: str) -> list[tuple[str, dict[str, object]]]:
    """Return command lines that decide about tasks, each with the arguments that it must give."""
    seen, tree, desk = Workspace(), Tree(), DecisionService(workspace, read_only=True)
    for number in range(LINES):
        asked = packet(name(random, root), objective=name(random, root), success_criteria=[name(random, root)])
        said = returned(random.choice(("ERROR", "BLOCKED", "PARTIAL")), " ".join(name(random, root).split()))
        for path, text in ((f"{number}.handoff.json", asked), (f"{number}.return.md", said)):
            tree.apply(seen.seen(path, text))
    lines = []
    for task in tree.tasks.values():
        digest = task.latest.returned.digest if task.latest and task.latest.returned else "none"
        about = {"path": str(workspace), "task": task.task_id, "attempt": task.attempt, "return_sha256": digest}
        for action, line in pending.decide_commands(task, desk, workspace).items():
            note = "TEXT" if action is Action.ACCEPT else ""
            lines.append((line, about | {"given": action, "note": note, "handoff": None, "mitigation": None}))
    assert len(lines) > len(tree.tasks)
    return lines


def answers(random: Random, workspace: Path, root: str) -> list[tuple[str, dict[str, object]]]:
    """Return command lines that answer requests, each with the arguments that it must give."""
    lines = []
    for _ in range(LINES):
        given = {one: name(random, root) for one in ("command", "session_id", "nonce", "tool", "said")}
        is_question = random.random() < 0.5
        one = question(workspace, session_id=given["tool"]) if is_question else request(workspace, **given)
        means = {"path": str(workspace), "request": one.request_id, "given": "option" if is_question else "allow"}
        lines.append((pending.answer_command(one, workspace) or "", {**means, "deny": None, "rule": None}))
    return lines


def words_of(shell: str, lines: list[str], directory: str) -> list[list[str]]:
    """Return the arguments that agentwatch gets from each line, pasted into a shell."""
    script = 'agentwatch() { printf "%s\\0" "$#" "$@"; }\n' + "\n".join(lines)
    arguments = [shell, *(["sh"] if shell.endswith("busybox") else [])]
    done = subprocess.run(arguments, input=os.fsencode(script), cwd=directory, capture_output=True, check=True)
    assert done.stderr == b""
    words = iter(map(os.fsdecode, done.stdout.split(b"\0")[:-1]))
    return [[next(words) for _ in range(int(count))] for count in words]


@pytest.mark.parametrize(
    ("command", "printed", "ways"), [("decide", decisions, OF_ATTEMPTS), ("answer", answers, ("allow", "option"))]
)
@given(seed=st.integers(0, 2**64))
@pytest.mark.slow
def test_nothing_foreign_changes_what_a_printed_line_means(command, printed, ways, seed):
    random, programs = Random(seed), f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as root, patch.dict(os.environ, PATH=programs):
        workspace = Path(root).resolve() / name(random, "w").replace("/", "").strip(".")[:40].ljust(1, "w")
        workspace.mkdir()
        lines = printed(random, workspace, root)
        pasted, *others = (words_of(shell, [line for line, _ in lines], root) for shell in SHELLS)
        assert all(other == pasted for other in others)
        for (_, means), words in zip(lines, pasted, strict=True):
            assert words[0] == command
            options = vars(parse(command, words[1:]))
            (options["given"],) = [one for one in ways if options[one] not in (None, False)]
            assert {key: options[key] for key in means} | {"yes": options["yes"]} == {**means, "yes": False}
        assert list(Path(root).iterdir()) == [workspace]


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    live_in(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = tmp_path / "shop"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def test_wait_tells_how_a_task_stands_when_its_time_is_over(workspace, capsys):
    (workspace / "x.handoff.json").write_text(packet("x"))
    mended = Timer(0.5, (workspace / "x.return.md").write_text, [returned("SUCCESS")])
    mended.start()
    run(["wait", "x", str(workspace), "--timeout", "4", "--json"])
    mended.join()
    assert json.loads(capsys.readouterr().out)["state"] == "completed"


@contextmanager
def offered(workspace: Path, asked: Request | None = None) -> Iterator[Request]:
    asked = asked or request(workspace)
    with RequestStore(workspace).offer(asked):
        yield asked


def answer(*words: str) -> int:
    return start("answer", ["--yes", *words])


def recorded(workspace: Path) -> list[Record]:
    return [entry.record for entry in DecisionService(workspace, read_only=True).read().entries]


def test_a_request_is_answered_by_the_first_digits_of_its_id(workspace, capsys):
    with offered(workspace, request(workspace, "rm \x1b[31m-rf /", said="It is harmless.\nanswer    allow")) as asked:
        assert answer("--deny", "Use build/.", "--", asked.request_id[:8].upper()) == ExitCode.DONE
    (record,) = recorded(workspace)
    assert (record.decision_id, record.action, record.note) == (asked.request_id, Action.DENY, "Use build/.")
    said = capsys.readouterr().out
    assert "  │ rm " in said
    assert "\x1b" not in said
    # No foreign text can look like a line of ours.
    assert "  │ It is harmless.\n  │ answer    allow" in said


def test_an_allowed_command_is_printed_whole(workspace, capsys):
    command = "ls\n" * 300 + "x" * 9_000 + "; rm -rf ~" + "\n" * 60 + "END"
    with offered(workspace, request(workspace, command, given={"command": command, "cwd": "/else"})) as asked:
        assert answer("--allow", asked.request_id) == ExitCode.DONE
    said = capsys.readouterr().out
    assert "xxx; rm -rf ~\n    <59 empty lines>\n  │ END\n" in said
    assert said.count("x") > 9_000
    assert '"cwd": "/else"' in said
    assert "truncated" not in said


def test_a_rule_is_one_that_the_request_has(workspace, capsys):
    with offered(workspace, request(workspace, rules=("Bash(ls:*)",))) as asked:
        with pytest.raises(NotAllowedError, match="none of the rules"):
            answer("--allow", "--rule", "Bash(*)", "--", asked.request_id)
        assert answer("--allow", "--rule", "Bash(ls:*)", "--", asked.request_id) == ExitCode.DONE
    assert "for the rest of its session Bash(ls:*)" in capsys.readouterr().out
    assert recorded(workspace)[0].params.rule == "Bash(ls:*)"


def test_one_answer_holds_for_the_request_that_is_named(workspace, capsys):
    with offered(workspace) as asked:
        for word in ("", asked.request_id[:7], "0" * 8, asked.request_id + "0"):
            with pytest.raises(UsageError, match="agentwatch pending"):
                answer("--allow", "--", word)
        for _ in range(2):
            assert answer("--allow", asked.request_id) == ExitCode.DONE
        assert "before: " in capsys.readouterr().out
        with pytest.raises(AlreadyDecidedError) as caught:
            answer("--deny", "--", asked.request_id)
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
    with offered(workspace, question(workspace)) as asked:
        with pytest.raises(UsageError, match=r"1 answer to 2 questions; give one --option for each, in this order:\n"):
            answer("--option", "SQLite", "--", asked.request_id)
        assert answer("--option", "SQLite", "--option", "Lint\n\nx", "--", asked.request_id) == ExitCode.DONE
    assert recorded(workspace)[0].params == ANSWERED


def test_pending_prints_the_lines_that_answer(workspace, capsys):
    never = request(workspace, actions=(), why_not="a plan is answered in its terminal")
    with (
        offered(workspace) as asked,
        offered(workspace, question(workspace, session_id="q")) as asks,
        offered(workspace, never),
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
        for words in ("or, in place of --allow: --deny TEXT", by_id[asks.request_id], never.why_not):
            assert words in said
        assert (said.count("touch x"), said.count("Which store?")) == (2, 2)
        assert answer(*line[line.index("answer") + 1 :]) == ExitCode.DONE
    assert [record.decision_id for record in recorded(workspace)] == [asked.request_id]
