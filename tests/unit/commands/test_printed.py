"""A command that is printed means the task, the action and the question that it was printed for, whatever agents call
their tasks, what they say in them, and where the workspace lies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
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


def tree_of(random: Random, workspace: str) -> Tree:
    seen, tree = Workspace(), Tree()
    for number in range(LINES):
        packet = {
            "handoff_schema": "handoff-v1",
            "task_id": name(random, workspace),
            "objective": name(random, workspace),
            "evidence": [{"path": "a", "purpose": name(random, workspace), "required": True}],
            "success_criteria": [name(random, workspace)],
            "risks": [{"risk": "r", "mitigation": "m"}],
        }
        tree.apply(seen.seen(f"{number}.handoff.json", json.dumps(packet)))
        said = " ".join(name(random, workspace).split())
        state = random.choice(("ERROR", "BLOCKED", "PARTIAL"))
        tree.apply(seen.seen(f"{number}.return.md", returned(state).replace("It is so.", said)))
    return tree


def words_of(shell: str, lines: list[str], directory: str) -> list[list[str]]:
    """The arguments that agentwatch gets from each line, pasted into a shell."""
    script = 'agentwatch() { printf "%s\\0" "$#" "$@"; }\n' + "\n".join(lines)
    arguments = [shell, *(["sh"] if shell.endswith("busybox") else [])]
    done = subprocess.run(arguments, input=os.fsencode(script), cwd=directory, capture_output=True, check=True)
    assert done.stderr == b""
    words = iter(map(os.fsdecode, done.stdout.split(b"\0")[:-1]))
    return [[next(words) for _ in range(int(count))] for count in words]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell).name)
@given(st.integers(0, 2**64))
@pytest.mark.slow
def test_no_id_path_note_or_title_changes_what_a_printed_command_means(shell: str, seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as root, patch.object(pending, "called", lambda: ("agentwatch",)):
        workspace = Path(root).resolve() / name(random, "w").replace("/", "").strip(".")[:40].ljust(1, "w")
        workspace.mkdir()
        tree, desk = tree_of(random, str(workspace)), DecisionService(workspace, read_only=True)
        asked = [
            (task, action, line)
            for task in tree.tasks.values()
            for action, line in pending.commands(task, desk, workspace).items()
        ]
        assert len(asked) > len(tree.tasks)
        found = words_of(shell, [line for _, _, line in asked], root)
        assert list(Path(root).iterdir()) == [workspace]
        for (task, action, _), words in zip(asked, found, strict=True):
            assert words[0] == "decide"
            options = parse("decide", words[1:])
            where, digest = options.path, task.latest.returned.digest if task.latest and task.latest.returned else None
            given = {one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False)}
            assert (where, options.task, given) == (str(workspace), task.task_id, {action})
            note = "TEXT" if action is Action.ACCEPT else ""
            assert (options.note, options.handoff, options.mitigation) == (note, None, None)
            assert (options.attempt, options.return_sha256, options.yes) == (task.attempt, digest or "none", False)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: Path(shell).name)
@given(st.integers(0, 2**64))
@pytest.mark.slow
def test_nothing_that_a_program_asks_changes_what_a_printed_answer_means(shell: str, seed: int) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as root, patch.object(pending, "called", lambda: ("agentwatch",)):
        workspace = Path(root).resolve() / name(random, "w").replace("/", "").strip(".")[:40].ljust(1, "w")
        workspace.mkdir()
        asked = []
        for _ in range(LINES):
            given = {one: name(random, root) for one in ("command", "session_id", "nonce", "tool", "said")}
            make = random.choice((request, question))
            asked.append(make(workspace, **given) if make is request else make(workspace, session_id=given["tool"]))
        found = words_of(shell, [pending.request_line(one, workspace) for one in asked], root)
        assert list(Path(root).iterdir()) == [workspace]
        for one, words in zip(asked, found, strict=True):
            assert words[0] == "answer"
            options = parse("answer", words[1:])
            assert (options.path, options.request) == (str(workspace), one.request_id)
            assert (bool(options.allow), bool(options.option)) == (
                one.actions[0] == "allow",
                one.actions[0] == "answer",
            )
            assert (options.deny, options.rule, options.yes) == (None, None, False)
