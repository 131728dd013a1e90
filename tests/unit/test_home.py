"""A user whom the system knows no home of, such as a container's bare user id."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from agentwatch.cli import run


@pytest.mark.parametrize("command", ["tree", "pending", "sources", "keys", "wait"])
def test_a_user_without_a_home_is_told_to_set_one(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(_user: int) -> pwd.struct_passwd:
        raise KeyError

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    assert run([command, *(["shop.api"] if command == "wait" else [])]) == 2
    said = capsys.readouterr().err
    assert "set HOME" in said
    assert said.count("\n") == 1
