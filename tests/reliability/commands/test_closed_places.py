"""Places that the user may not look into, as sandboxes leave them: every command says what is true, and none breaks."""

from pathlib import Path

import pytest

from agentwatch.cli import run
from tests.reliability.commands.stage import TASK, Stage

COMMANDS = ("tree", "pending", "log", "sources", "verify", "doctor", "report", "wait", "decide")


@pytest.fixture(params=["closed", "impossible"])
def nowhere(request, tmp_path, without_root_rights):
    """A place below a directory that may not be entered, and one that no system can look for, for root as well."""
    if request.param == "impossible":
        yield tmp_path / ("x" * 300) / "inside"
        return
    closed = tmp_path / "closed"
    (closed / "inside").mkdir(parents=True)
    closed.chmod(0)
    yield closed / "inside"
    closed.chmod(0o700)


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path / "stage")
    assert stage.decide("--retry").code == 0
    return stage


def words(command: str, workspace: Path) -> tuple[str, ...]:
    task, options = {"wait": ([TASK], ["--timeout=0"]), "decide": ([TASK], ["--abort", "--yes"])}.get(command, ([], []))
    return (command, *task, str(workspace), *options)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("hidden", ["XDG_STATE_HOME", "CLAUDE_CONFIG_DIR CODEX_HOME XDG_DATA_HOME HOME"])
def test_a_hidden_place_ends_no_command_unheard(stage, nowhere, command, hidden):
    environment = dict.fromkeys(hidden.split(), str(nowhere))
    found = stage.run(*words(command, stage.workspace), environment=environment)
    assert found.code in (0, 1, 2, 5, 6), found.err
    assert found.out or found.err
    if command in ("verify", "doctor", "decide") and hidden == "XDG_STATE_HOME":
        assert found.code != 0


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "verify"])
def test_a_hidden_workspace_is_said_to_be_one(stage, nowhere, command):
    found = stage.run(*words(command, nowhere))
    assert found.code == 2
    assert "give a directory that you can read and enter" in found.err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_who_is_in_a_directory_that_was_removed_is_told_so(stage, tmp_path, monkeypatch, capfd, command):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code = run([word for word in words(command, Path()) if word])
    # Before the next one asks where it is.
    monkeypatch.undo()
    assert code in (2, 74)
    assert capfd.readouterr().err.startswith("agentwatch: ")
