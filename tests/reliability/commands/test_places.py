"""Places as sandboxes and older versions leave them: each command says the truth about them, the doctor says more."""

import json
import re
from pathlib import Path

import pytest

from agentwatch.agents.documents import EXAMPLES
from agentwatch.cli import run
from agentwatch.decisions.keys import PRIVATE
from agentwatch.state import HISTORY, state_directory
from tests.closing import bound_by_permissions
from tests.homes import live_in
from tests.reliability.commands.stage import TASK, Stage

COMMANDS = ("tree", "pending", "log", "sources", "verify", "doctor", "report", "wait", "decide")


@pytest.fixture(params=["closed", "impossible"])
def nowhere(request, tmp_path, without_root_rights):
    """Return a place in a directory that may not be entered, or one whose name is too long even for root."""
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
    return Stage(tmp_path / "stage")


def words(command: str, workspace: Path) -> tuple[str, ...]:
    task, options = {"wait": ([TASK], ["--timeout=0"]), "decide": ([TASK], ["--abort", "--yes"])}.get(command, ([], []))
    return (command, *task, str(workspace), *options)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("hidden", ["XDG_STATE_HOME", "CLAUDE_CONFIG_DIR CODEX_HOME XDG_DATA_HOME HOME"])
def test_every_command_reports_a_hidden_place(stage, nowhere, command, hidden):
    assert stage.decide("--retry").code == 0
    found = stage.run(*words(command, stage.workspace), **dict.fromkeys(hidden.split(), str(nowhere)))
    assert found.code in (0, 1, 2, 5, 6), found.err
    assert found.out or found.err
    if command in ("verify", "doctor", "decide") and hidden == "XDG_STATE_HOME":
        assert found.code != 0


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "verify"])
def test_a_hidden_workspace_is_reported(stage, nowhere, command):
    found = stage.run(*words(command, nowhere))
    assert found.code == 2
    assert "give a directory that you can read and enter" in found.err


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_command_in_a_removed_directory_says_so(stage, tmp_path, monkeypatch, capfd, command):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    code = run([word for word in words(command, Path()) if word])
    # Go back, as the next test asks for the current directory.
    monkeypatch.undo()
    assert code in (2, 74)
    assert capfd.readouterr().err.startswith("agentwatch: ")


@pytest.fixture
def keyed(stage):
    assert stage.run("keys", "create").code == 0
    return stage


def test_a_sound_machine_has_no_complaint(keyed):
    found = keyed.run("doctor", keyed.workspace)
    assert found.code == 0, found.out
    for about in ("state directory", "signing key", "workspace", "history", "ledger"):
        assert re.search(rf"^[✓!] {about}: ", found.out, re.MULTILINE), about
    assert sorted(path.name for path in keyed.workspace.iterdir()) == ["api.handoff.json", "api.return.md"]
    assert list(keyed.root.rglob(".agentwatch-doctor-*")) == []


def test_the_doctor_says_what_is_wrong_and_what_to_do(keyed):
    assert keyed.decide("--retry").code == 0
    name = keyed.recorded()[0]
    (keyed.state / "decisions" / name).write_bytes(b"{}")
    (keyed.keys.directory / PRIVATE).chmod(0o644)
    keyed.state.chmod(0o755)
    found = keyed.run("doctor", keyed.workspace)
    assert found.code == 1
    assert f"✗ ledger: “{name}”" in found.out
    assert "✗ signing key: others can read" in found.out
    assert f"✗ state directory: others can look into it: chmod 700 {keyed.state}" in found.out
    broken = keyed.run("doctor", keyed.workspace, XDG_STATE_HOME="/dev/null/nowhere")
    assert broken.code == 1
    assert "✗ state directory: " in broken.out


def test_the_doctor_reads_the_settings(keyed):
    settings = keyed.keys.directory.parent / "config.toml"
    settings.write_text("[views]\nlate = 'since:x'\n[keys]\nfollow = 'q'\n", "utf-8")
    doctor = keyed.run("doctor", keyed.workspace)
    assert doctor.code == 1
    assert f"✗ settings: {settings}:2: the view “late” is wrong: " in doctor.out
    assert f"✗ settings: {settings}:4: follow and quit would both have the key q" in doctor.out


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_the_doctor_warns_of_places_in_the_workspace(stage, variable, tmp_path):
    (stage.workspace / "link").symlink_to(tmp_path)
    for inside in (stage.workspace, stage.workspace / "link"):
        found = stage.run("doctor", stage.workspace, **{variable: str(inside)})
        assert found.code == 1
        assert "lies in the workspace, where agents write" in found.out
        assert f"set {variable} to another place" in found.out


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """Return a workspace with one task that was handed off; its user has no agent programs."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    (place / "job.handoff.md").write_text(f"```json\n{EXAMPLES['handoff-packet']}\n```\n")
    return place


@pytest.mark.parametrize(
    ("source", "path", "is_closed"),
    [
        ("opencode", ".local/share/opencode/opencode.db", False),
        ("claude-code", ".claude/projects", True),
        ("files", "shop/specs", True),
        ("history", f"STATE/{HISTORY}", False),
        ("history", "STATE", True),
        ("decisions", "STATE/decisions", True),
    ],
)
def test_every_face_says_what_it_could_not_see(submitted, capsys, source, path, *, is_closed):
    def asked(*words: str) -> tuple[int, str, str]:
        return run([*words, str(submitted)]), *capsys.readouterr()

    for words in (["tree", "--fail"], ["pending"], ["report"]):
        assert asked(*words)[::2] == (0, "")
    place = submitted.parent / path.replace("STATE", str(state_directory(submitted)))
    place.parent.mkdir(parents=True, exist_ok=True)
    if is_closed:
        place.mkdir(0)
    else:
        place.write_bytes(b"broken" * 1_000)
    with bound_by_permissions():
        for words, expected in (["tree"], 0), (["tree", "--fail"], 1), (["report"], 1), (["pending"], 1):
            code, out, err = asked(*words)
            assert (code, "not all can be seen: " in err) == (expected, True), words
        assert out == "nothing that can be seen needs you\n"
        for words, expected in (["tree", "--json"], 0), (["pending", "--json"], 1), (["report", "--format", "json"], 1):
            code, out, _ = asked(*words)
            told = json.loads(out)
            assert (code, told["complete"], "verdict" in told) == (expected, False, "report" in words)
            assert source in {problem["source"] for problem in told["problems"]}
        assert "could not be read" in told["verdict"]
        for format_ in ("md", "html"):
            assert "Could not be read" in asked("report", "--format", format_)[1]
    if is_closed:
        place.chmod(0o700)
