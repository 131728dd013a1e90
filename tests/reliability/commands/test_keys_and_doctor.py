"""The key of the operator, and what the doctor finds out about a machine and about an agent's sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from agentwatch.commands import doctor_sandbox
from agentwatch.commands.doctor_sandbox import Door, ProbeError, Reach, probe
from agentwatch.decisions.keys import PRIVATE, PUBLIC
from tests.reliability.commands.stage import Stage

UNSHARE = ["unshare", "--map-root-user", "--mount"]


def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


SANDBOX = pytest.mark.skipif(not can_unshare(), reason="needs unprivileged mount namespaces")


@pytest.fixture(autouse=True)
def no_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a tmux open."""
    monkeypatch.setattr(doctor_sandbox, "doors", lambda _environment: [])


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path)
    assert made.run("keys", "create").code == 0
    return made


def sandbox(script: str) -> list[str]:
    """A command that runs what is appended to it after a script that hides or protects something."""
    return [*UNSHARE, "sh", "-c", f'{script}\nexec "$@"', "sh"]


def tried(stage: Stage, command: list[str], seconds: float = 60) -> Reach:
    ledger, answers = stage.state / "decisions", stage.state / "answers"
    for place in (ledger, answers):
        place.mkdir(parents=True, exist_ok=True)
    keys = stage.keys.directory
    try:
        return probe(command, keys=keys, ledger=ledger, answers=answers, workspace=stage.workspace, seconds=seconds)
    finally:
        assert list(stage.root.rglob(".agentwatch-probe-*")) == []


def test_no_key_is_shown_before_there_is_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    found = stage.run("keys")
    assert found.code == 2
    assert "made with the first decision, or now with `agentwatch keys create`" in found.err


def test_creating_twice_keeps_the_first_key(stage: Stage) -> None:
    shown = stage.run("keys").out
    assert stage.run("keys", "create").out == shown
    assert re.search(r"^  AGENTWATCH_PUBLIC_KEY=ed25519:\S{44}$", shown, re.MULTILINE)


def test_a_rotated_key_leaves_what_was_decided_valid(stage: Stage) -> None:
    assert stage.decide("--retry").code == 0
    before = stage.run("keys").out
    rotated = stage.run("keys", "rotate")
    assert rotated.code == 0
    assert rotated.out != before
    assert "what it signed stays valid" in rotated.out
    assert stage.run("verify", stage.workspace).code == 0
    assert stage.wait().code == 0


def test_a_key_that_others_can_read_is_refused(stage: Stage) -> None:
    (stage.keys.directory / PRIVATE).chmod(0o644)
    assert stage.decide("--retry").code == 2
    found = stage.run("doctor", stage.workspace)
    assert found.code == 1
    assert "✗ signing key: others can read" in found.out


def test_a_sound_machine_has_no_complaint(stage: Stage) -> None:
    found = stage.run("doctor", stage.workspace)
    assert found.code == 0, found.out
    for about in ("state directory", "signing key", "workspace", "clock", "file events", "git", "history", "ledger"):
        assert re.search(rf"^[✓!] {about}: ", found.out, re.MULTILINE), about
    assert sorted(path.name for path in stage.workspace.iterdir()) == ["api.handoff.json", "api.return.md"]
    assert list(stage.root.rglob(".agentwatch-doctor-*")) == []


def test_the_doctor_says_what_is_wrong_and_what_to_do(stage: Stage) -> None:
    assert stage.decide("--retry").code == 0
    name = stage.recorded()[0]
    (stage.state / "decisions" / name).write_bytes(b"{}")
    found = stage.run("doctor", stage.workspace)
    assert found.code == 1
    assert f"✗ ledger: “{name}”" in found.out
    broken = stage.run("doctor", stage.workspace, environment={"XDG_STATE_HOME": "/dev/null/nowhere"})
    assert broken.code == 1
    assert "✗ state directory: " in broken.out


def test_the_doctor_finds_wrong_keys_and_views_of_the_settings(stage: Stage) -> None:
    settings = stage.keys.directory.parent / "config.toml"
    settings.write_text("[views]\nlate = 'since:x'\n[keys]\nfollow = 'q'\n", "utf-8")
    doctor = stage.run("doctor", stage.workspace)
    assert doctor.code == 1
    assert f"✗ settings: {settings}:2: the view “late” is wrong: " in doctor.out
    assert f"✗ settings: {settings}:4: follow and quit would both have the key q in the tree" in doctor.out
    settings.write_text("[keys]\nfollow = 'F'\n", "utf-8")
    doctor = stage.run("doctor", stage.workspace)
    assert (doctor.code, "✓ settings: 1 command has keys of your own" in doctor.out) == (0, True)


def test_the_doctor_says_that_a_public_key_is_none(stage: Stage) -> None:
    doctor = stage.run("doctor", stage.workspace, environment={"AGENTWATCH_PUBLIC_KEY": "broken"})
    assert doctor.code == 1
    assert "✗ public key: AGENTWATCH_PUBLIC_KEY: " in doctor.out
    assert "until then hooks and `wait` read no decision" in doctor.out
    given = stage.keys.show().text
    doctor = stage.run("doctor", stage.workspace, environment={"AGENTWATCH_PUBLIC_KEY": given})
    assert "✓ public key: " in doctor.out


def test_without_a_sandbox_an_agent_can_do_everything(stage: Stage) -> None:
    found = stage.run("doctor", stage.workspace, "--", "env")
    assert found.code == 1
    assert json.loads(found.out.splitlines()[0]) == {
        "reads_key": True,
        "reads_public_key": True,
        "writes_keys": True,
        "writes_settings": True,
        "writes_ledger": True,
        "writes_answers": True,
        "writes_workspace": True,
        "enters_processes": Path("/proc/self/root").exists(),
        "doors": [],
    }
    assert "can read the key, and so decide in your name: set a passphrase" in found.out
    assert f"can write the ledger, and take decisions away: keep {stage.state}/decisions out of its reach" in found.out


@SANDBOX
def test_a_sandbox_that_protects_both_places_lets_nobody_forge(stage: Stage) -> None:
    places = [stage.configuration, stage.state.parent]
    tried(stage, ["env"])
    script = "".join(f'mount --bind "{place}" "{place}"; mount -o remount,bind,ro "{place}"\n' for place in places)
    stage.keys.protect("a long one")
    found = stage.run("doctor", stage.workspace, "--", *sandbox(script))
    assert found.code == 0, found.out
    assert "✓ protection: an agent in there cannot forge decisions" in found.out
    assert "only the passphrase keeps it from deciding" in found.out
    stage.keys.protect(None, lambda: "a long one")
    assert stage.run("doctor", stage.workspace, "--", *sandbox(script)).code == 1


@SANDBOX
def test_other_files_under_the_same_names_are_not_taken_for_the_operators(stage: Stage) -> None:
    keys, state = stage.keys.directory, stage.state
    script = (
        f'mount -t tmpfs none "{keys}"; mount -t tmpfs none "{state}"; mkdir "{state}/decisions"\n'
        f'echo another > "{keys}/{PRIVATE}"; echo another > "{keys}/{PUBLIC}"'
    )
    found = tried(stage, sandbox(script))
    assert found == Reach(
        reads_key=False,
        reads_public_key=False,
        writes_keys=False,
        writes_settings=True,
        writes_ledger=False,
        writes_answers=False,
        writes_workspace=True,
        enters_processes=False,
    )


def stub(path: Path, script: str) -> list[str]:
    """A wrapper of our own, which runs what it is given after a script, as sandboxes do."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return [str(path)]


@pytest.mark.skipif(not Path("/proc/self/root").exists(), reason="needs Linux's /proc")
def test_a_sandbox_that_lets_an_agent_into_other_processes_is_open(stage: Stage) -> None:
    """As bwrap does for root without --unshare-pid: the files are closed, and open again as those of a process."""
    keep = (
        f'for word; do shift; case "$word" in "{stage.state.parent}"*|"{stage.configuration}"*) '
        "word=/dev/null/closed ;; "
        'esac; set -- "$@" "$word"; done; exec "$@"'
    )
    found = stage.run("doctor", stage.workspace, "--", *stub(stage.root / "wrapper", keep))
    assert found.code == 1
    reach = json.loads(found.out.splitlines()[0])
    assert [name for name, value in reach.items() if value is True] == ["writes_workspace", "enters_processes"]
    assert "can enter your other processes" in found.out


def test_a_socket_that_an_agent_sees_is_a_hole_until_it_is_hidden(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="agentwatch-") as place, socket.socket(socket.AF_UNIX) as tmux:
        path = Path(place) / "tmux"
        tmux.bind(str(path))
        door = Door(str(path), "type into your terminal")
        monkeypatch.setattr(doctor_sandbox, "doors", lambda _environment: [door, Door(f"{place}/gone", "do nothing")])
        seen = stage.run("doctor", stage.workspace, "--", "env")
        assert json.loads(seen.out.splitlines()[0])["doors"] == [door._asdict()]
        assert f"can reach {path}, and so type into your terminal: keep that socket out of its reach" in seen.out
        hide = f'mv "{path}" "{path}.hidden"; : > "{path}"; "$@"; mv "{path}.hidden" "{path}"'
        hidden = stage.run("doctor", stage.workspace, "--", *stub(stage.root / "wrapper", hide))
        assert json.loads(hidden.out.splitlines()[0])["doors"] == []


def test_a_wrapper_that_leaves_something_behind_is_understood(stage: Stage) -> None:
    found = tried(stage, stub(stage.root / "wrapper", 'sleep 60 & echo $! > left; exec "$@"'), 50)
    os.kill(int((stage.workspace / "left").read_text()), signal.SIGKILL)
    assert found.reads_key


def test_a_sandbox_that_says_a_lot_is_understood(stage: Stage) -> None:
    found = tried(stage, ["sh", "-c", 'echo pulling; "$@"; echo done', "sh"])
    assert found.reads_key


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["false"], "it ended with 1: it said nothing"),
        (["sh", "-c", "printf '\\033[2Jno such image' >&2; exit 125"], "it ended with 125: ␛[2Jno such image"),
        (["no-such-sandbox"], "no-such-sandbox: No such file or directory"),
        ([""], "a command without a name: "),
        (["sh", "-c", "yes rubbish | head -c 9000000; exit 3"], "it ended with 3: rubbish rubbish"),
        (["sh", "-c", "sleep 60 & wait"], "it did not end within 0.5 s"),
        (["sh", "-c", "exec yes"], "it did not end within 0.5 s"),
    ],
)
def test_a_probe_that_did_not_run_proves_nothing(stage: Stage, command: list[str], words: str) -> None:
    seconds = 0.5 if "0.5 s" in words else 60
    with pytest.raises(ProbeError) as caught:
        tried(stage, command, seconds)
    assert words in str(caught.value)
    if seconds == 60:
        shown = stage.run("doctor", stage.workspace, "--", *command)
        assert shown.code == 1
        assert "✗ probe: the probe did not run in there" in shown.out


def test_without_a_key_there_is_nothing_to_try(tmp_path: Path) -> None:
    found = Stage(tmp_path).run("doctor", str(tmp_path / "shop"), "--", "env")
    assert found.code == 1
    assert "make it now with `agentwatch keys create`" in found.out
    assert not os.path.lexists(tmp_path / "state")
