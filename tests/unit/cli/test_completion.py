"""What a shell is offered for the last word of a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from tests.unit.agents.documents import packet, returned


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


def test_the_tasks_of_the_workspace_are_offered_those_that_need_the_operator_first(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(workspace, "shop.api", 1, state="ERROR")
    add(workspace, "shop.db", 2)
    assert offered(capsys, "wait", "sh") == ["shop.api", "shop.db"]


HOSTILE = ["a\nb", "a\x1b]0;x\x07", "a\u202eb", "a\tb", "--yes", "-x", " a", "a\u2028"]


@pytest.mark.parametrize("task_id", HOSTILE)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_an_id_that_a_shell_could_not_show_or_would_take_for_an_option_is_not_offered(
    workspace: Path, capsys: pytest.CaptureFixture[str], shell: str, task_id: str
) -> None:
    add(workspace, task_id)
    assert offered(capsys, "wait", "", shell=shell) == []


@pytest.mark.parametrize("words", [["", ""], ["\0"], ["decide", "\ud800"], ["--", "--", "--"], ["tree", "'"], ["\\"]])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_nothing_that_is_typed_makes_it_complain(
    words: list[str], shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    offered(capsys, *words, shell=shell)


def test_it_ends_by_itself_where_looking_takes_long() -> None:
    run = (
        "import time\nfrom agentwatch.cli import completion\n"
        "completion._SECONDS = 0.01\ncompletion._look_up = lambda _: time.sleep(600)\n"
        "from agentwatch.cli import run\nrun(['completion', 'fish', '--', 'wait', ''])\nraise SystemExit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", run], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
