"""What follows from what an agent can reach, in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.checkup import Mark
from agentwatch.commands.doctor import examine
from agentwatch.commands.doctor_sandbox import Door, Reach, consequences
from agentwatch.config import Settings
from agentwatch.decisions.desk import Desk
from agentwatch.place import state_directories

CONFINED = Reach(
    reads_key=False,
    reads_public_key=True,
    writes_keys=False,
    writes_settings=False,
    writes_ledger=False,
    writes_answers=False,
    writes_workspace=True,
    enters_processes=False,
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path, state=tmp_path / "state", configuration=tmp_path / "configuration")
    made.keys.create()
    return made


def told(reach: Reach, desk: Desk, *, locked: bool = False) -> tuple[bool, str]:
    found = list(consequences(reach, desk, locked=locked))
    return any(one.mark is Mark.BAD for one in found), "\n".join(one.said for one in found)


def test_a_confined_agent_cannot_forge(desk: Desk) -> None:
    assert told(CONFINED, desk) == (False, "an agent in there cannot forge decisions")


@pytest.mark.parametrize(
    ("hole", "words"),
    [
        ("reads_key", "can read the key, and so decide in your name: set a passphrase"),
        ("writes_ledger", "can write the ledger, and take decisions away: keep {state}/decisions out of its reach"),
        (
            "writes_answers",
            "can write where the words of `tree` and `pending` are kept: keep {answers} out of its reach",
        ),
        ("writes_keys", "can write where the keys are, and put its own there: keep {keys} out of its reach"),
        (
            "writes_settings",
            "can write the settings, which name programs that agentwatch runs: keep {configuration} ",
        ),
        ("enters_processes", "can enter your other processes, and read and write all that they can: give the sandbox"),
    ],
)
def test_each_hole_is_bad_and_named(desk: Desk, hole: str, words: str) -> None:
    is_bad, said = told(CONFINED._replace(**{hole: True}), desk)
    assert is_bad
    keys = desk.keys.directory
    answers = state_directories() / "answers"
    assert (
        words.format(keys=keys, answers=answers, configuration=keys.parent, state=desk.ledger.directory.parent) in said
    )
    assert "cannot forge" not in said


def test_each_open_socket_is_a_hole(desk: Desk) -> None:
    doors = (Door("/tmp/tmux-1/a", "type into your terminal"), Door("/run/bus", "start programs"))
    is_bad, said = told(CONFINED._replace(doors=doors), desk)
    assert is_bad
    assert "can reach /tmp/tmux-1/a, and so type into your terminal: keep that socket out of its reach" in said
    assert "can reach /run/bus, and so start programs" in said
    assert "cannot forge" not in said


def test_a_passphrase_closes_the_hole_of_a_readable_key(desk: Desk) -> None:
    is_bad, said = told(CONFINED._replace(reads_key=True), desk, locked=True)
    assert not is_bad
    assert said.endswith("only the passphrase keeps it from deciding: take a long one")
    desk.keys.choose_keyring(chosen=True)
    _, said = told(CONFINED._replace(reads_key=True), desk, locked=True)
    assert said.endswith("take a long one, and keep the keyring, which holds it, out of its reach")


def test_an_agent_that_cannot_read_the_public_key_has_to_be_given_it(desk: Desk) -> None:
    _, said = told(CONFINED._replace(reads_public_key=False), desk)
    assert f"AGENTWATCH_PUBLIC_KEY={desk.keys.show().text}" in said


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CONFIG_HOME"])
def test_what_lies_in_the_workspace_or_behind_a_link_in_it_is_bad(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "link").symlink_to(outside)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(outside))
    examine(workspace, Settings(), ())
    assert "lies in the workspace" not in capsys.readouterr().out
    for inside in (workspace, workspace / "link"):
        monkeypatch.setenv(variable, str(inside))
        assert examine(workspace, Settings(), ()) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "lies in the workspace, where agents write" in said
        assert f"set {variable} to another place" in said
