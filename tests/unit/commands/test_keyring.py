"""`agentwatch keys passphrase --keyring`: who is asked, what is kept where, and what holds when a keyring fails."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keyring.errors import KeyringLocked

from agentwatch.cli import keys as keyring
from agentwatch.decisions.keys import PRIVATE, Keys, stored
from tests.unit.decisions.rings import Ring, in_use

Types = Callable[..., list[str]]


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring()
    with in_use(made):
        yield made


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keys:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Keys(tmp_path / "configuration")
    made.create()
    return made


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Types:
    """Gives the operator's answers in their order; the questions are collected."""

    def answers(*typed: str) -> list[str]:
        left, questions = iter(typed), list[str]()

        def ask(question: str) -> str:
            questions.append(question)
            return next(left)

        monkeypatch.setattr(keyring, "getpass", ask)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
        return questions

    return answers


def kept(keys: Keys) -> str:
    return stored(keys.directory / PRIVATE)


def test_a_passphrase_is_set_and_the_keyring_gives_it(
    keys: Keys, ring: Ring, types: Types, capsys: pytest.CaptureFixture[str]
) -> None:
    types("sesame", "sesame")
    keyring.change_passphrase(keys, in_keyring=True)
    assert keys.load(lambda: kept(keys)).public == keys.show()
    assert keys.in_keyring
    told = capsys.readouterr()
    assert "kept in the keyring “rings Ring”: decisions ask it first, and you if it does not answer" in told.out
    assert "somebody may have read the key before" in told.err
    assert "sesame" not in told.out + told.err
    keyring.show(keys)
    assert "a passphrase protects it, and the keyring of the system holds it" in capsys.readouterr().out


def test_a_passphrase_that_is_there_can_be_given_to_the_keyring_or_replaced(
    keys: Keys, ring: Ring, types: Types
) -> None:
    keys.protect("sesame")
    assert types("sesame", "", "") == []
    keyring.change_passphrase(keys, in_keyring=True)
    assert kept(keys) == "sesame"
    asked = types("sesame", "tulip", "tulip")
    keyring.change_passphrase(keys, in_keyring=True)
    assert asked == ["Present passphrase: ", "New passphrase (empty: the same): ", "Repeat it: "]
    assert kept(keys) == "tulip"
    keys.load(lambda: "tulip")


def test_what_cannot_be_taken_out_of_the_keyring_is_said(
    keys: Keys, ring: Ring, types: Types, capsys: pytest.CaptureFixture[str]
) -> None:
    keys.protect("sesame")
    keys.choose_keyring(chosen=True)
    ring.trouble = KeyringLocked()
    types("sesame", "", "")
    keyring.change_passphrase(keys, in_keyring=False)
    assert "the old passphrase may still be in there" in capsys.readouterr().err
    assert not keys.is_encrypted()


def test_a_rotated_key_has_its_new_passphrase_in_the_keyring(
    keys: Keys, ring: Ring, types: Types, capsys: pytest.CaptureFixture[str]
) -> None:
    types("sesame", "sesame")
    keyring.change_passphrase(keys, in_keyring=True)
    types("tulip", "tulip")
    keyring.rotate(keys)
    assert keys.load(lambda: kept(keys)).public == keys.show()
    # Also where the key itself is lost.
    (keys.directory / PRIVATE).unlink()
    types("rose", "rose")
    keyring.rotate(keys)
    assert kept(keys) == "rose"
    ring.trouble = KeyringLocked()
    types("daisy", "daisy")
    keyring.rotate(keys)
    assert "each decision asks for the passphrase from now on" in capsys.readouterr().err
    assert not keys.in_keyring
    keys.load(lambda: "daisy")
