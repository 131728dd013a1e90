"""The operator's editor: which command, and that no file name becomes one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentwatch.app.editor import editor_command, pager_command, run


@pytest.mark.parametrize(
    ("environment", "configured", "command"),
    [
        ({"VISUAL": "code --wait", "EDITOR": "vi"}, "nano", ["code", "--wait"]),
        ({"EDITOR": "vi"}, "nano", ["vi"]),
        ({"VISUAL": "", "EDITOR": ""}, "'my editor' -n", ["my editor", "-n"]),
        ({}, "nano", ["nano"]),
    ],
)
def test_the_environment_beats_the_configuration(
    environment: dict[str, str], configured: str | None, command: list[str]
) -> None:
    assert editor_command(configured, environment) == command


def test_where_nothing_is_set_it_is_what_is_usual_if_there_is_one(tmp_path: Path) -> None:
    here = {"PATH": str(tmp_path)}
    assert (editor_command(None, here), pager_command(here)) == ([], [])
    for name in ("vi", "more"):
        (tmp_path / name).touch(mode=0o755)
    assert (editor_command(None, here), pager_command(here)) == (["vi"], ["more"])
    assert pager_command({"PAGER": "bat -p"}) == ["bat", "-p"]


def test_a_command_with_an_open_quotation_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="closing"):
        editor_command("vi 'x", {})


def test_the_file_is_one_argument_and_never_a_command(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(repr(sys.argv[1:])); sys.exit(3)"
    file = tmp_path / "-rf $(touch owned); x.md"
    assert run([sys.executable, "-c", script, str(file)]) == 3
    assert seen.read_text("utf-8") == repr([str(file)])


def test_an_editor_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run([str(tmp_path / "none")])


def test_lines_are_given_to_a_command_that_may_end_before_their_end(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(sys.stdin.readline())"
    assert run([sys.executable, "-c", script], (f"line {number}" for number in range(1_000_000))) == 0
    assert seen.read_text("utf-8") == "line 0\n"
