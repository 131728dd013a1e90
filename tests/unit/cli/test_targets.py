"""What a command is about: directories here, addresses and names of hosts, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.cli.command import target_of, targets_of
from agentwatch.config import Settings
from agentwatch.errors import UsageError, WorkspaceError

HOSTS = Settings(hosts=(("build1", ("ssh://b/w",)), ("two", ("ssh://c/w", "nats://n"))))


def test_directories_addresses_and_names_may_be_mixed_and_each_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [".", "build1", "ssh://d/~/x", "build1", "ssh://d/~/x", "two"]
    workspaces, addresses = targets_of(words, HOSTS)
    assert list(workspaces) == [tmp_path.resolve()]
    assert [one.written for one in addresses] == ["ssh://b/w", "ssh://d/~/x", "ssh://c/w", "nats://n"]
    assert list(targets_of([], HOSTS).workspaces) == [tmp_path.resolve()]


def test_a_directory_that_is_called_like_a_host_is_meant_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build1").mkdir()
    assert target_of("./build1", HOSTS) == (tmp_path / "build1").resolve()
    assert getattr(target_of("build1", HOSTS), "written", "") == "ssh://b/w"


def test_where_one_is_meant_several_are_refused() -> None:
    with pytest.raises(UsageError, match="two names several workspaces: give one of ssh://c/w, nats://n"):
        target_of("two", HOSTS)


def test_what_scp_would_take_is_asked_about() -> None:
    with pytest.raises(UsageError, match="did you mean ssh://kim@b/w"):
        targets_of(["kim@b:/w"], Settings())


def test_a_command_about_this_machine_takes_no_address() -> None:
    from agentwatch.arguments import workspace_at

    with pytest.raises(WorkspaceError, match="about a directory of this machine"):
        workspace_at("ssh://b/w")


def test_all_hosts_are_shown_only_where_some_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr("agentwatch.cli.watch_commands._require_terminal", lambda: None)
    assert run(["--hosts"]) == 2
    assert "your settings name no hosts" in capsys.readouterr().err


def test_only_what_waits_for_a_host_can_be_taken_back(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert run(["decide", "a", str(tmp_path), "--withdraw"]) == 2
    assert "what is decided here is recorded at once" in capsys.readouterr().err
    assert run(["decide", "a", "ssh://127.0.0.1:1/shop", "--withdraw"]) == 1
    assert "nothing that was decided about “a” waits here" in capsys.readouterr().err
