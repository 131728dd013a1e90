"""The key of the operator, and what the doctor finds out about a machine."""

import re

import pytest

from agentwatch.cli import start
from agentwatch.decisions.keys import PRIVATE
from tests.reliability.commands.stage import Stage


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path)
    assert made.run("keys", "create").code == 0
    return made


def test_a_key_that_others_can_read_is_refused(stage):
    (stage.keys.directory / PRIVATE).chmod(0o644)
    assert stage.decide("--retry").code == 2
    found = stage.run("doctor", stage.workspace)
    assert found.code == 1
    assert "✗ signing key: others can read" in found.out


def test_a_sound_machine_has_no_complaint(stage):
    found = stage.run("doctor", stage.workspace)
    assert found.code == 0, found.out
    for about in ("state directory", "signing key", "workspace", "history", "ledger"):
        assert re.search(rf"^[✓!] {about}: ", found.out, re.MULTILINE), about
    assert sorted(path.name for path in stage.workspace.iterdir()) == ["api.handoff.json", "api.return.md"]
    assert list(stage.root.rglob(".agentwatch-doctor-*")) == []


def test_the_doctor_says_what_is_wrong_and_what_to_do(stage):
    assert stage.decide("--retry").code == 0
    name = stage.recorded()[0]
    (stage.state / "decisions" / name).write_bytes(b"{}")
    stage.state.chmod(0o755)
    found = stage.run("doctor", stage.workspace)
    assert found.code == 1
    assert f"✗ ledger: “{name}”" in found.out
    assert f"✗ state directory: others can look into it: chmod 700 {stage.state}" in found.out
    broken = stage.run("doctor", stage.workspace, environment={"XDG_STATE_HOME": "/dev/null/nowhere"})
    assert broken.code == 1
    assert "✗ state directory: " in broken.out


def test_the_doctor_reads_the_settings(stage):
    settings = stage.keys.directory.parent / "config.toml"
    settings.write_text("[views]\nlate = 'since:x'\n[keys]\nfollow = 'q'\n", "utf-8")
    doctor = stage.run("doctor", stage.workspace)
    assert doctor.code == 1
    assert f"✗ settings: {settings}:2: the view “late” is wrong: " in doctor.out
    assert f"✗ settings: {settings}:4: follow and quit would both have the key q" in doctor.out


# The doctor finds state and keys where agents write, and claims no more than it has checked


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
