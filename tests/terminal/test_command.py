"""Commands in a real terminal: their output as a person sees it, and the completion of a shell."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.journeys.made import handoff, returned
from tests.terminal.emulator import Terminal, agentwatch


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "api.handoff.json").write_text(handoff(), "utf-8")
    return tmp_path / "shop"


def ended(command: list[str], output: int | IO[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command with this output, and return its exit code and its errors."""
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, env=environment, text=True, check=False)
    return done.returncode, done.stderr


def test_little_output_into_a_closed_pipe_is_no_error_either(workspace):
    reader, writer = os.pipe()
    os.close(reader)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for arguments in (["tree", workspace], ["--help"]):
        assert ended(agentwatch(*arguments), writer, environment) == (0, "")
    os.close(writer)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize("buffered", [True, False])
def test_output_that_cannot_be_written_is_an_error(workspace, buffered):
    environment = os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    for arguments in (["tree", "--fail", workspace], ["check", workspace]):
        with Path("/dev/full").open("w") as full:
            code, complaint = ended(agentwatch(*arguments), full, environment)
        assert (code, complaint) == (os.EX_IOERR, "agentwatch: No space left on device; free space, then try again\n")


def test_init_lists_asks_once_and_takes_out_what_it_wrote(workspace):
    for words, answer, is_there in (("init", "n", False), ("init", "y", True), ("init --remove", "y", False)):
        (workspace / "CLAUDE.md").write_text("# Shop\n", "utf-8") if answer == "n" else None
        with Terminal(agentwatch(*words.split(), workspace), columns=100, lines=40) as terminal:
            terminal.wait_for(r"CLAUDE\.md +changed, [+-]\d+ lines(.|\n)*files\? \[y/N\]")
            terminal.press(f"{answer}\r")
            assert terminal.wait_until_exit() == (answer == "n")
        assert (workspace / ".claude" / "settings.json").exists() is is_there
        assert ("agentwatch" in (workspace / "CLAUDE.md").read_text("utf-8")) is is_there


FOREIGN = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
PAGER = {"PAGER": "sed s/^/paged:/"}
PRINTED: dict[str, tuple[str, dict[str, str], str, bytes]] = {
    "tree": ("tree .", {}, r"^✗ shop\.api  failed \d+s", b"\x1b[31m"),
    "narrow": ("tree .", {}, r"^    left$", b"\x1b[1;35m"),
    "pending": ("pending .", {}, r"^✗ shop\.api  attempt 1, failed \d+s", b"\x1b[31m"),
    "check": ("check .", {}, r"^odd\.handoff\.json:1: HOF\d+ error", b"\x1b[31merror"),
    "report": ("report .", {}, r"^<sub>agentwatch report", b"\x1b[31m"),
    "verify": ("verify .", {}, r"^✓ ledger", b"\x1b[32m"),
    "no colour": ("tree .", {"NO_COLOR": "1"}, r"^✗ shop\.api  failed", b""),
    "dumb": ("tree .", {"TERM": "dumb"}, r"^✗ shop\.api  failed", b""),
    "paged": ("help commands", PAGER, r"^paged:- attest: 0 signed", b"paged:\x1b[1mCommands"),
    "no pager": ("help commands", {"PAGER": "/nowhere/less", "NO_COLOR": "1"}, r"^- 130: ended by ctrl\+c", b""),
    "short": ("help live", PAGER | {"LINES": "90"}, r"^Live|transcripts", b"\x1b[1m"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_a_person_gets_colours_rows_of_whole_words_and_pages(workspace, name):
    words, environment, seen, written = PRINTED[name]
    (workspace / "api.return.md").write_text(returned(summary=f"It timed out {FOREIGN}."), "utf-8")
    (workspace / "odd.handoff.json").write_text(json.dumps({"task_id": f"odd {FOREIGN}"}), "utf-8")
    command = ["sh", "-c", f'cd "$1" && shift && exec "$@" {words}', "sh", str(workspace), *agentwatch()]
    with Terminal(command, columns=44, lines=60, environment=environment) as terminal:
        terminal.wait_until_exit()
        assert re.search(seen, terminal.text(), re.MULTILINE), terminal.text()
        assert written in terminal.written
        assert (b"\x1b" in terminal.written) is bool(written)
        assert re.findall(r"\x1b(?!\[[0-9;]*m).{0,9}|\x9b", terminal.written.decode()) == []


# Completion

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
    """Run a shell with completion in a workspace; `agentwatch` there prints its arguments, each in angle brackets."""
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


COMPLETED = {
    "agentwatch pend": "<pending>",
    "agentwatch wait shop:d": "<wait><shop:db:v1>",
    "agentwatch wait api": f"<wait><{EVIL}>",
    # If agentwatch completes nothing, the shell completes files.
    "agentwatch check hand": "<check><handoffs-of-today.md>",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes_words_and_runs_none_of_them(shell, workspace, tmp_path):
    for number, task_id in enumerate((EVIL, "shop:db:v1", "plain.one", "-x", "--yes", "tab\there")):
        (workspace / f"t{number}.handoff.json").write_text(handoff(task_id), "utf-8")
    (workspace / "handoffs-of-today.md").touch()
    with shell_in(shell, workspace, tmp_path) as terminal:
        before = sorted(workspace.iterdir())
        for typed, meant in COMPLETED.items():
            terminal.press(f"{typed}\t")
            terminal.wait_for(rf"{typed.rpartition(' ')[2]}\S+")
            terminal.press("\r")
            terminal.wait_until(lambda end=meant: end in terminal.text().replace("\n", ""), f"never printed {meant}")
        assert sorted(workspace.iterdir()) == before
