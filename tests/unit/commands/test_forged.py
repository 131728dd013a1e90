"""What lies among the decisions and is none, and who has taken one: every command says so, and writes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run
from agentwatch.place import state_directory
from tests.homes import live_in
from tests.unit.sessions.conformance import report


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a user who has no programs. Two tasks failed in it."""
    live_in(tmp_path, monkeypatch)
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    place = tmp_path / "shop"
    place.mkdir()
    for name in ("api", "web"):
        (place / f"{name}.return.md").write_text(report("ERROR"))
    monkeypatch.chdir(place)
    return place


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(words)
    told = capsys.readouterr()
    return code, told.out, told.err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(asked(capsys, *words)[1])
    return told


def forge(workspace: Path, name: str = "0" * 32 + ".json") -> str:
    place = workspace / ".agentwatch" / "decisions"
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text("{}")
    return f".agentwatch/decisions/{name}"


def decided(capsys: pytest.CaptureFixture[str], task_id: str = "api") -> Path:
    """Decide, and return what is delivered."""
    code, out, err = asked(capsys, "decide", task_id, "--abort", "--yes")
    assert code == 0, (out, err)
    (file,) = Path(".agentwatch/decisions").glob("*.json")
    return file


def told_of(capsys: pytest.CaptureFixture[str]) -> list[set[str]]:
    """The files that each command tells of as forged."""
    of_json = [document(capsys, *words)["notices"] for words in (("tree", "--json"), ("pending", "--json"))]
    of_check = [one for file in document(capsys, "check", "--format", "json", ".")["files"] for one in file["findings"]]
    return [{one["path"] for one in some if one["rule"] == "DEC001"} for some in (*of_json, of_check)]


def test_a_forged_decision_is_told_where_nothing_was_ever_decided(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = forge(workspace)
    assert told_of(capsys) == [{path}] * 3
    out = asked(capsys, "pending")[1]
    assert f"! {path}: This is no decision of the operator's" in out
    code, out, _ = asked(capsys, "check", ".")
    assert (code, f"{path}: DEC001 error" in out) == (1, True)
    assert (workspace / path).read_text() == "{}"
    assert not state_directory(workspace).exists()


def test_a_copy_that_was_edited_is_told_and_left_as_it_is(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = decided(capsys)
    assert told_of(capsys) == [set()] * 3
    for edited in (file, file.with_suffix(".md")):
        before = edited.read_bytes()
        edited.write_text("do as I say")
        assert told_of(capsys) == [{str(edited)}] * 3
        assert edited.read_text() == "do as I say"
        edited.write_bytes(before)


def test_a_sandbox_tells_of_no_signed_decision_that_it_was_forged(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(capsys)
    key = next(word for word in asked(capsys, "keys")[1].split() if word.startswith("ed25519:"))
    monkeypatch.setenv("HOME", str(tmp_path / "sandbox"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "sandbox"))
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", key)
    assert told_of(capsys) == [set()] * 3
    path = forge(workspace)
    assert told_of(capsys) == [{path}] * 3


def test_where_no_key_is_in_sight_what_is_signed_is_not_verified_and_no_forgery(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = decided(capsys)
    monkeypatch.setenv("HOME", str(tmp_path / "sandbox"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "sandbox"))
    assert told_of(capsys) == [set()] * 3
    code, out, err = asked(capsys, "check", ".")
    assert (code, "DEC001" in out) == (0, False)
    assert f"{file}: not checked: it is signed, and no key is in sight here to verify it with" in err
    path = forge(workspace)
    assert told_of(capsys) == [{path}] * 3


def test_ack_knows_what_was_decided_and_what_is_wrong_in_the_ledger(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(capsys)
    code, out, err = asked(capsys, "ack", "api")
    assert (code, "nothing asks there" in out, err) == (1, True, "")
    (state_directory(workspace) / "decisions" / f"000002-{'0' * 32}.json").write_text("{}")
    (state_directory(workspace) / "decisions" / f"000003-{'0' * 32}.json").write_text("{}")
    code, _, err = asked(capsys, "ack", "web")
    assert (code, f"000002-{'0' * 32}.json" in err) == (0, True)
    assert "(and 1 more: `agentwatch verify` names them)" in err


def test_pending_says_who_has_claimed_a_decision(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(capsys, "decide", "api", "--retry", "--yes")
    assert code == 0, err
    (decision,) = document(capsys, "pending", "--json")["decisions"]
    assert decision["claimed_by"] is None
    assert asked(capsys, "wait", "api", "--timeout", "0")[0] == 0
    assert "claimed by" not in asked(capsys, "pending")[1]
    assert asked(capsys, "claim", decision["decision_id"], "--by", "nightly\x1b[31m")[0] == 0
    out = asked(capsys, "pending")[1]
    assert "claimed by “nightly␛[31m”, not acted on yet" in out
    assert document(capsys, "pending", "--json")["decisions"][0]["claimed_by"] == "nightly\x1b[31m"
