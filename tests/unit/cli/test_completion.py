"""What a shell is offered for the last word of a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from tests.unit.agents.documents import packet, returned

BREAKS = " \t\n\"'@><=;|&(:"
"""What bash breaks words at, unless somebody changes it."""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "shop"
    place.mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.chdir(place)
    return place


def add(workspace: Path, task_id: str, number: int = 0, *, state: str | None = None) -> None:
    document = {**json.loads(packet()), "task_id": task_id}
    (workspace / f"t{number}.handoff.json").write_text(json.dumps(document), "utf-8")
    if state is not None:
        (workspace / f"t{number}.return.md").write_text(returned(state), "utf-8")


def offered(capsys: pytest.CaptureFixture[str], *words: str, shell: str = "fish") -> list[str]:
    assert run(["completion", shell, "--", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return [line.partition("\t")[0] for line in out.splitlines()]


def in_bash(capsys: pytest.CaptureFixture[str], line: str) -> list[str]:
    return offered(capsys, f"agentwatch {line}", BREAKS, shell="bash")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["de"], {"decide", "demo"}),
        (["rules", "--ex"], {"--explain"}),
        (["rules", "--format", ""], {"text", "json"}),
        (["rules", "--format=j"], {"--format=json"}),
        (["rules", "--explain", "SUB00"], {f"SUB00{n}" for n in range(1, 10)}),
        (["--theme", "agentwatch-d"], {"agentwatch-dark"}),
        (["demo", "--theme", "agentwatch-l"], {"agentwatch-light"}),
        (["init", "--agent", "c"], {"claude-code", "codex"}),
        (["keys", ""], {"show", "create", "rotate", "passphrase", "send", "trust", "distrust", "authorized"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["decide", "a", "--retry", "--ab"], set()),
        (["log", "--follow", "--e"], set()),
        (["decide", "a", "--note", "x", "--no"], set()),
        (["doctor", "--", "bwr"], set()),
        (["check", ""], set()),
        (["nothing", "--qq"], set()),
        ([], {"check"}),
    ],
)
def test_commands_options_and_what_they_can_be_are_offered(
    words: list[str], meant: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = set(offered(capsys, *words))
    assert meant <= found if not words else found == meant


def test_the_tasks_of_the_workspace_are_offered_and_to_decide_those_that_need_it(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "shop.api", 1, state="ERROR")
    add(workspace, "shop.db", 2)
    assert set(offered(capsys, "wait", "sh")) == {"shop.api"}
    assert offered(capsys, "decide", "shop.d") == ["shop.db"]


HOSTILE = ["a\nb", "a\x1b]0;x\x07", "a\u202eb", "a\tb", "--yes", "-x", " a", "a\u2028"]


@pytest.mark.parametrize("task_id", HOSTILE)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_an_id_that_a_shell_could_not_show_or_would_take_for_an_option_is_not_offered(
    workspace: Path, capsys: pytest.CaptureFixture[str], shell: str, task_id: str
) -> None:
    add(workspace, task_id)
    words = ["agentwatch wait ", BREAKS] if shell == "bash" else ["wait", ""]
    assert offered(capsys, *words, shell=shell) == []


def test_bash_gets_ids_quoted(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(workspace, "a $(touch owned) `b` 'c' \"d\" !e ~f")
    (quoted,) = in_bash(capsys, "wait a")
    assert quoted == r"""a\ \$\(touch\ owned\)\ \`b\`\ \'c\'\ \"d\"\ \!e\ \~f"""
    assert in_bash(capsys, r"wait a\ \$\(to") == [quoted]
    assert in_bash(capsys, "wait 'a $(t") == []
    assert in_bash(capsys, 'wait "a ') == []


def test_bash_gets_what_stands_in_quotes_as_it_is_and_nothing_where_only_a_part_is_quoted(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "the api; now")
    assert in_bash(capsys, "wait 'the a") == ["the api; now"]
    assert in_bash(capsys, 'wait "the a') == ["the api; now"]
    assert in_bash(capsys, "wait 'the' a") == []
    assert in_bash(capsys, "wait 'the'") == []


@pytest.mark.parametrize("words", [["", ""], ["\0"], ["decide", "\ud800"], ["--", "--", "--"], ["tree", "'"], ["\\"]])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_nothing_that_is_typed_makes_it_complain(
    words: list[str], shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offered(capsys, *words, shell=shell)


def test_it_ends_by_itself_where_looking_takes_long() -> None:
    run = (
        "import time\nfrom agentwatch.cli import completion\n"
        "completion._SECONDS = 0.01\ncompletion._monitor = lambda: time.sleep(600)\n"
        "completion.offer('fish', ['wait', ''])\nraise SystemExit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
