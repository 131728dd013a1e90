"""No program is started that an agent may have put into a workspace, a git work tree or a directory open to all."""

import os

import pytest

from agentwatch.app import editor, notifying
from agentwatch.cli import run
from agentwatch.config import Settings
from tests.app.test_notifying import Operator, until
from tests.homes import live_in
from tests.journeys.made import handoff, returned
from tests.unit.evidence.repository import Repository

PLACES = ("shop/bin", "other/.venv/bin", "sibling/bin", "plain/.venv/bin", "public", "linked")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Make the workspaces `shop/part`, in a repository with the work tree `sibling`, and `plain`, in no repository.

    Each of `PLACES` has programs that leave a file `ran`; `linked` is a safe directory with links to programs in
    `other`."""
    (tmp_path / "home").mkdir()
    live_in(tmp_path / "home", monkeypatch)
    for name in ("shop", "other"):
        repository = Repository(tmp_path / name, tmp_path / "home")
        repository.init()
        repository.commit()
    Repository(tmp_path / "shop", tmp_path / "home").git("worktree", "add", "-q", str(tmp_path / "sibling"))
    for workspace in ("shop/part", "plain"):
        (tmp_path / workspace).mkdir()
        (tmp_path / workspace / "a.handoff.json").write_text(handoff())
        (tmp_path / workspace / "a.return.md").write_text(returned(created="- a.return.md"))
    for place in PLACES:
        (tmp_path / place).mkdir(parents=True)
        for name in ("git", "ssh", "notify-send", "vi", "less", "more", "nats-server"):
            program = tmp_path / place / name
            if place == "linked":
                program.symlink_to(tmp_path / "other/.venv/bin" / name)
            else:
                program.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
                program.chmod(0o755)
    (tmp_path / "public").chmod(0o777)
    return tmp_path


@pytest.mark.parametrize("place", PLACES)
def test_no_git_of_an_agent_is_run(root, place, monkeypatch):
    monkeypatch.setenv("PATH", f"{root / place}:{os.environ['PATH']}")
    run(["tree", str(root / "shop/part"), str(root / "plain"), "--json"])
    run(["doctor", str(root / "shop/part")])
    editor.choose_command([None], ["vi"])
    assert not (root / "ran").exists()


@pytest.mark.parametrize("place", PLACES)
def test_no_other_program_of_an_agent_is_run(root, place, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(root / place))
    run(["tree", str(root / "plain"), "ssh://build1/w"])
    assert "ssh cannot be started here" in capsys.readouterr().err
    run(["keys", "send", "build1"])
    assert "ssh cannot be started here" in capsys.readouterr().err
    run(["fleet", "config", "--directory", str(root / "fleet")])
    with pytest.raises(FileNotFoundError):
        editor.run_program(["vi", "file"])
    assert editor.choose_command([None], ["vi", "less"]) == []
    operator = Operator(Settings(notify_desktop=True))
    operator.fail("api")
    until(lambda: operator.monitor.notices)
    assert "notify-send failed" in operator.monitor.notices[0]
    assert notifying.desktop_command(Settings(), {"DISPLAY": ":0"}) is None
    assert not (root / "ran").exists()


def test_a_program_elsewhere_and_an_absolute_path_are_taken(root, monkeypatch):
    (root / "own").mkdir()
    (root / "plain/.venv/bin/vi").rename(root / "own/vi")
    monkeypatch.setenv("PATH", f"{root}/public:{root}/own")
    assert (editor.choose_command([None], ["vi"]), editor.run_program(["vi", "file"])) == (["vi"], 0)
    (root / "ran").unlink()
    assert editor.run_program([str(root / "other/.venv/bin/vi"), "file"]) == 0
    assert (root / "ran").exists()
    monkeypatch.chdir(root / "own")
    with pytest.raises(FileNotFoundError):
        editor.run_program(["./vi", "file"])
