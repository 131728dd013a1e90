"""Commands are said once: the overview, the help of each, and what is meant by a word that is nearly right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.cli import COMMANDS, run, start
from agentwatch.cli.command import load_command

NAMED = [name for name in COMMANDS if name]


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = run(words)
    return code, capsys.readouterr().err


def test_every_command_has_a_module_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            start(name, ["--help"])
        shown, module = capsys.readouterr().out, load_command(name)
        assert shown.startswith("usage: agentwatch")
        assert " ".join(module.__doc__.split()) in " ".join(shown.split())
        assert all(option in shown for one in module.ARGUMENTS for option in one.names if one.is_option)
        assert "exit codes: 0 " in shown


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["none"], "none"),
        (["replay", "none"], "none"),
        (["--all", "none"], "give either workspaces or --all"),
        (["decide", "none", "--retry"], "none"),
    ],
)
def test_a_wrong_name_is_told_before_the_lack_of_a_terminal(
    words: list[str], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, complaint = said(words, capsys)
    assert (code, named in complaint, "terminal" in complaint) == (2, True, False), complaint


@pytest.mark.parametrize("loads", ["agentwatch.cli", "agentwatch.cli.tree"])
def test_an_interrupt_while_a_command_is_loaded_ends_it_without_a_word(loads: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *more):\n"
        f"        if name == {loads!r}: raise KeyboardInterrupt\n"
        f"sys.meta_path.insert(0, Interrupts()); sys.argv = ['agentwatch', 'tree', {str(tmp_path)!r}]\n"
        "from agentwatch.__main__ import main; main()\n"
    )
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")
