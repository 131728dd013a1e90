"""Completion in the shells themselves: what tab inserts, and that nothing in it is run."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.journeys.made import handoff
from tests.terminal.emulator import Terminal

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(agentwatch completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'PROMPT="> "; autoload -Uz compinit; compinit -u -D; eval "$(agentwatch completion zsh)"',
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "function fish_prompt; echo '> '; end; agentwatch completion fish | source",
    ),
}
EVIL = "api;touch owned $(touch owned) `touch owned`"


@contextmanager
def shell_in(shell: str, workspace: Path, home: Path) -> Iterator[Terminal]:
    """A shell that completes, in a workspace, where agentwatch prints its arguments, each in angle brackets."""
    command, source = SHELLS[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (home / "bin").mkdir()
    start = f'if [ "$1" = completion ]; then exec {shlex.quote(sys.executable)} -m agentwatch "$@"; fi'
    (home / "bin" / "agentwatch").write_text(f"#!/bin/sh\n{start}\nprintf '<%s>' \"$@\"\n", "utf-8")
    (home / "bin" / "agentwatch").chmod(0o755)
    there = {"HOME": str(home), "PS1": "> ", "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    with Terminal(command, columns=160, lines=40, environment=there) as terminal:
        terminal.press(f"cd {shlex.quote(str(workspace))}; {source}; agentwatch ready\r")
        terminal.wait_for("^<ready>")
        yield terminal


def completed(terminal: Terminal, line: str):
    """Type a line, press tab, wait until something is inserted, and press enter."""
    terminal.press(f"{line}\t")
    terminal.wait_for(rf"{line.rpartition(' ')[2]}\S+")
    terminal.press("\r")


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "shop").mkdir()
    for number, task_id in enumerate((EVIL, "shop:db:v1", "plain.one", "-x", "--yes", "tab\there")):
        (tmp_path / "shop" / f"t{number}.handoff.json").write_text(handoff(task_id), "utf-8")
    return tmp_path / "shop"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("agentwatch pend", "<pending>"),
        ("agentwatch wait shop:d", "<wait><shop:db:v1>"),
        ("agentwatch wait api", f"<wait><{EVIL}>"),
    ],
)
def test_tab_inserts_what_is_meant_and_runs_nothing_of_it(shell, typed, meant, workspace, tmp_path):
    with shell_in(shell, workspace, tmp_path) as terminal:
        before = sorted(workspace.iterdir())
        completed(terminal, typed)
        terminal.wait_until(lambda: meant in terminal.text().replace("\n", ""), f"never printed {meant}")
        assert sorted(workspace.iterdir()) == before


@pytest.mark.parametrize("shell", SHELLS)
def test_where_nothing_is_known_the_shell_completes_files(shell, workspace, tmp_path):
    (workspace / "handoffs-of-today.md").touch()
    with shell_in(shell, workspace, tmp_path) as terminal:
        completed(terminal, "agentwatch check hand")
        terminal.wait_until(lambda: "<check><handoffs-of-today.md>" in terminal.text().replace("\n", ""))
