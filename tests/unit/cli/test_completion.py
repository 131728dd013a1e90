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


def test_own_themes_are_offered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "XDG_CONFIG_HOME" / "agentwatch" / "themes"
    own.mkdir(parents=True)
    (own / "a.toml").write_text('name = "sea"', "utf-8")
    (own / "b.toml").write_text("name = ", "utf-8")
    assert "sea" in offered(capsys, "--theme", "")


def test_the_tasks_of_the_workspace_are_offered_and_to_decide_those_that_need_it(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "shop.api", 1, state="ERROR")
    add(workspace, "shop.db", 2)
    assert set(offered(capsys, "wait", "sh")) == {"shop.api"}
    assert offered(capsys, "decide", "shop.d") == ["shop.db"]


def test_the_modes_that_were_seen_are_offered_but_not_that_of_the_task(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, mode in enumerate(("code", "architect")):
        document = {**json.loads(packet()), "task_id": f"t{number}", "mode": mode}
        (workspace / f"t{number}.handoff.json").write_text(json.dumps(document), "utf-8")
    assert offered(capsys, "decide", "t0", "--escalate", "") == ["architect"]


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


def test_bash_gets_only_what_stands_behind_its_last_word_break(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "shop:api:v1")
    assert in_bash(capsys, "wait shop:a") == ["api:v1"]
    assert in_bash(capsys, "check --format=j") == ["json"]


@pytest.mark.parametrize("words", [["", ""], ["\0"], ["decide", "\ud800"], ["--", "--", "--"], ["tree", "'"], ["\\"]])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_nothing_that_is_typed_makes_it_complain(
    words: list[str], shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offered(capsys, *words, shell=shell)


def test_a_configuration_that_does_not_hold_together_is_no_matter_for_a_prompt(
    tmp_path: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "shop.api")
    settings = tmp_path / "XDG_CONFIG_HOME" / "agentwatch"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text("nonsense = [", "utf-8")
    assert offered(capsys, "wait", "sh") == []


def test_it_ends_by_itself_where_looking_takes_long() -> None:
    run = (
        "import time\nfrom agentwatch.cli import completion\n"
        "completion._SECONDS = 0.01\ncompletion._monitor = lambda: time.sleep(600)\n"
        "completion.offer('fish', ['wait', ''])\nraise SystemExit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
