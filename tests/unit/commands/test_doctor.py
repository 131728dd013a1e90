"""The doctor finds state and keys where agents write, and claims no more than it has checked."""

import pytest

from agentwatch.cli import start


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_what_lies_in_or_leads_through_the_workspace_is_bad(variable, tmp_path, monkeypatch, capsys):
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "link").symlink_to(outside)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(outside))
    for inside in (workspace, workspace / "link"):
        monkeypatch.setenv(variable, str(inside))
        assert start("doctor", [str(workspace)]) == 1
        said = capsys.readouterr().out
        assert "lies in the workspace, where agents write" in said
        assert f"set {variable} to another place" in said
