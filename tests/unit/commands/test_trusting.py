"""`agentwatch keys trust`, `distrust` and `authorized`: what they say, and what is true afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch import exit_codes
from agentwatch.cli import COMMANDS, run
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.others import Role
from tests.unit.decisions.made import KIM, NOON, QUICK, Operator

KEY = KIM.public.text


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Keys()


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run(["keys", *arguments]) == code
    got = capsys.readouterr()
    return got.out + got.err


def test_an_operator_is_trusted_and_the_host_says_its_own_key(keys: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    words = said(capsys, "trust", KEY, "--name", "kim")
    assert f"“kim” may decide here from another machine, with the key {KIM.public.keyid[:16]}…" in words
    # The key of the host is made with it: without one it could record nothing.
    assert f"agentwatch keys trust {keys.show().text} --name HOST --host" in words
    assert [one.public for one in keys.trust().operators] == [KIM.public]
    assert f"  AGENTWATCH_PUBLIC_KEY={keys.show().text},operator:{KEY}\n" in said(capsys)
    listed = said(capsys, "authorized")
    assert f"  kim  {KEY}  since " in listed
    assert "no host is trusted" in listed


@pytest.mark.parametrize("by", ["kim", KEY, KIM.public.keyid[:8]])
def test_trust_is_taken_back_by_name_key_or_fingerprint(
    keys: Keys, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    said(capsys, "trust", KEY, "--name", "kim")
    assert "“kim” decides nothing here; what was recorded until now stays valid" in said(capsys, "distrust", by)
    assert keys.trust().operators[0].retired_at is not None
    assert ": not any more" in said(capsys, "authorized")
    assert f"AGENTWATCH_PUBLIC_KEY={keys.show().text}\n" in said(capsys)


def test_a_host_is_trusted_as_one_and_makes_no_key(keys: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    words = said(capsys, "trust", KEY, "--name", "build1", "--host")
    assert "comes from the host “build1”" in words
    assert not (keys.directory / "decisions.key").exists()
    listed = said(capsys, "authorized")
    assert "nobody may decide here from another machine" in listed
    assert "  build1  " in listed
    assert "no key of that name" in said(capsys, "distrust", "build1", code=2)
    assert "not trusted any more: the host “build1”" in said(capsys, "distrust", "build1", "--host")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trust", KEY], "these two take a key"),
        (["trust", "--name", "kim"], "these two take a key"),
        (["distrust"], "these two take a key"),
        (["distrust", "kim", "--name", "kim"], "these two take a key"),
        (["show", KEY], "these two take a key"),
        (["show", "--host"], "--host belongs to trust and distrust"),
        (["trust", "kim", "--name", "kim"], "a public key looks like"),
        (["distrust", "kim"], "no key of that name"),
        (["distrust", KIM.public.keyid[:7]], "no key of that name"),
        (["distrust", KEY], "never trusted"),
    ],
)
def test_what_is_meant_otherwise_is_said(
    keys: Keys, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in said(capsys, *arguments, code=2)
    assert keys.trust().operators == ()


def test_a_name_of_two_keys_is_that_of_the_one_that_is_trusted(keys: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    other = Keys(keys.directory / "other").create().public
    for key in (KIM.public, other):
        keys.trust_other(Role.OPERATOR, key, "kim", NOON)
        keys.distrust_other(Role.OPERATOR, key, NOON)
    assert "several keys fit" in said(capsys, "distrust", "kim", code=2)
    keys.trust_other(Role.OPERATOR, other, "kim", NOON)
    said(capsys, "distrust", "kim")
    assert all(one.distrusted_at for one in keys.others(Role.OPERATOR))


def test_a_host_with_a_passphrase_is_told_that_it_could_record_nothing(
    keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.create("secret")
    assert "nobody can type for a relay" in said(capsys, "trust", KEY, "--name", "kim")


def test_a_host_whose_private_key_is_gone_makes_no_new_one(keys: Keys, capsys: pytest.CaptureFixture[str]) -> None:
    keys.create()
    keys.rotate()
    (keys.directory / "decisions.pub").unlink()
    (keys.directory / "decisions.key").unlink()
    said(capsys, "trust", KEY, "--name", "kim", code=2)


def test_what_was_recorded_ahead_of_the_clock_stays_valid(
    tmp_path: Path, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    far = NOON.replace(year=2999)
    host = Operator(tmp_path, QUICK)
    host.keys = keys
    host.key = keys.create()
    keys.trust_other(Role.OPERATOR, KIM.public, "kim", NOON)
    host.decide_from_afar(created_at=far, record_by=far, later=far - NOON)
    words = said(capsys, "distrust", "kim")
    assert "the clock was set back: the last decision is of 2999-01-01T12:00:00Z" in words
    assert host.chain().problems == ()


def test_a_decision_from_afar_is_verified_with_both_keys_in_words(
    tmp_path: Path, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Operator(tmp_path)
    host.keys, host.key = keys, keys.create()
    host.trust_kim()
    desk = Desk(host.workspace)
    host.ledger = desk.ledger
    made = host.decide_from_afar()
    file, place = desk.ledger.directory / made.entry.name, str(host.workspace)
    assert COMMANDS["verify"].start([str(file), place]) == exit_codes.DONE
    said = capsys.readouterr().out
    assert f"signed with your key {host.key.public.keyid[:16]}…" in said
    assert f"“kim” signed it on another machine, with the key {KIM.public.keyid[:16]}… for this host, at 2030" in said
    assert COMMANDS["verify"].start([place]) == exit_codes.DONE
    capsys.readouterr()
    (keys.directory / "operators" / f"{KIM.public.keyid}.pub").unlink()
    assert COMMANDS["verify"].start([str(file), place]) == exit_codes.NOT
    assert "what an operator signed for it does not hold" in capsys.readouterr().out
