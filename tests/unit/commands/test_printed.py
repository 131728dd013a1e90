"""A command that is printed means the task, the action and the question that it was printed for, whatever agents call
their tasks, what they say in them, and where the workspace lies."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.cli import pending
from agentwatch.cli.command import parse
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import OF_ATTEMPTS, Action
from agentwatch.delegation.tree import Tree
from tests.unit.decisions.test_policy import returned
from tests.unit.history.recorded import Workspace
from tests.unit.requests.asked import question, request

Printed = Callable[[Random, Path, str], list[tuple[str, dict[str, object]]]]
LINES = 25
"""Tasks of an example, with all commands of each: with the usual number of examples 10,000 lines for each shell."""

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
    """Lines that decide about tasks, each with what it means."""
    seen, tree, desk = Workspace(), Tree(), DecisionService(workspace, read_only=True)
    for number in range(LINES):
        packet = {
            "handoff_schema": "handoff-v1",
            "task_id": name(random, root),
            "objective": name(random, root),
            "evidence": [{"path": "a", "purpose": name(random, root), "required": True}],
            "success_criteria": [name(random, root)],
            "risks": [{"risk": "r", "mitigation": "m"}],
        }
        said = returned(random.choice(("ERROR", "BLOCKED", "PARTIAL")))
        said = said.replace("It is so.", " ".join(name(random, root).split()))
        for path, text in ((f"{number}.handoff.json", json.dumps(packet)), (f"{number}.return.md", said)):
            tree.apply(seen.seen(path, text))
    lines = []
    for task in tree.tasks.values():
        digest = task.latest.returned.digest if task.latest and task.latest.returned else "none"
        about = {"path": str(workspace), "task": task.task_id, "attempt": task.attempt, "return_sha256": digest}
        for action, line in pending.commands(task, desk, workspace).items():
            note = "TEXT" if action is Action.ACCEPT else ""
            lines.append((line, about | {"given": action, "note": note, "handoff": None, "mitigation": None}))
    assert len(lines) > len(tree.tasks)
    return lines


def answers(random: Random, workspace: Path, root: str) -> list[tuple[str, dict[str, object]]]:
    """Lines that answer requests, each with what it means."""
    lines = []
    for _ in range(LINES):
        given = {one: name(random, root) for one in ("command", "session_id", "nonce", "tool", "said")}
        is_question = random.random() < 0.5
        one = question(workspace, session_id=given["tool"]) if is_question else request(workspace, **given)
        means = {"path": str(workspace), "request": one.request_id, "given": "option" if is_question else "allow"}
        lines.append((pending.request_line(one, workspace) or "", {**means, "deny": None, "rule": None}))
    return lines


def words_of(shell: str, lines: list[str], directory: str) -> list[list[str]]:
    """The arguments that agentwatch gets from each line, pasted into a shell."""
    script = 'agentwatch() { printf "%s\\0" "$#" "$@"; }\n' + "\n".join(lines)
    arguments = [shell, *(["sh"] if shell.endswith("busybox") else [])]
    done = subprocess.run(arguments, input=os.fsencode(script), cwd=directory, capture_output=True, check=True)
    assert done.stderr == b""
    words = iter(map(os.fsdecode, done.stdout.split(b"\0")[:-1]))
    return [[next(words) for _ in range(int(count))] for count in words]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell).name)
@pytest.mark.parametrize(
    ("command", "printed", "ways"), [("decide", decisions, OF_ATTEMPTS), ("answer", answers, ("allow", "option"))]
)
@given(seed=st.integers(0, 2**64))
@pytest.mark.slow
def test_nothing_foreign_changes_what_a_printed_line_means(shell, command, printed, ways, seed):
    random = Random(seed)
    with tempfile.TemporaryDirectory() as root, patch.object(pending, "called", lambda: ("agentwatch",)):
        workspace = Path(root).resolve() / name(random, "w").replace("/", "").strip(".")[:40].ljust(1, "w")
        workspace.mkdir()
        lines = printed(random, workspace, root)
        found = words_of(shell, [line for line, _ in lines], root)
        assert list(Path(root).iterdir()) == [workspace]
        for (_, means), words in zip(lines, found, strict=True):
            assert words[0] == command
            options = vars(parse(command, words[1:]))
            (options["given"],) = [one for one in ways if options[one] not in (None, False)]
            assert {key: options[key] for key in means} | {"yes": options["yes"]} == {**means, "yes": False}
