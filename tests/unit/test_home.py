"""A user whom the system knows no home of, such as a container's bare user id."""

import pwd

import pytest

from agentwatch.cli import run
from agentwatch.state import leads_through


@pytest.mark.parametrize("command", ["tree", "pending", "sources", "keys", "wait"])
def test_a_user_without_a_home_is_told_to_set_one(command, tmp_path, monkeypatch, capsys):
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


def test_a_path_by_links_leads_through_the_workspace(tmp_path):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    for directory in (workspace, outside, tmp_path / "near"):
        directory.mkdir()
    (workspace / "out").symlink_to(outside)
    (tmp_path / "there").symlink_to(workspace / "out")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to(workspace / "later")
    through = (workspace / "a", workspace / "out" / "a", tmp_path / "there" / "a", outside / ".." / "workspace")
    # Nobody can tell where a loop leads; what dangles leads there once it is made.
    for path in (*through, tmp_path / "dangling" / "a", tmp_path / "loop" / "a"):
        assert leads_through(path, workspace)
    for path in (outside / "a", tmp_path / "near" / ".." / "x"):
        assert not leads_through(path, workspace)
