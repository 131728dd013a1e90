"""The passphrase in the system's keyring: kept, given back, dropped, and every trouble of a keyring in words."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from keyring.errors import InitError, KeyringLocked

from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.keys import PRIVATE, Keys, forget, store, stored, unlocked
from agentwatch.decisions.record import Subject
from agentwatch.decisions.service import LocalService
from agentwatch.delegation.decision import Action
from tests.unit.decisions.made import RETURN
from tests.unit.decisions.rings import PlainRing, Ring, in_use

KEY = Path("/home/ada/.config/agentwatch/keys/decisions.key")


@pytest.fixture
def ring() -> Iterator[Ring]:
    made = Ring()
    with in_use(made):
        yield made


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "configuration")


def test_what_was_stored_is_given_back_until_it_is_forgotten(ring: Ring) -> None:
    assert store(KEY, "sésame") == "rings Ring"
    assert ring.held == {("agentwatch", str(KEY)): "sésame"}
    assert stored(KEY) == "sésame"
    forget(KEY)
    forget(KEY)
    assert ring.held == {}
    with pytest.raises(KeyProblemError, match="does not hold the passphrase any more"):
        stored(KEY)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (KeyringLocked("It is locked"), "the keyring answered with an error, “KeyringLocked: It is locked”"),
        (InitError("no collection\x1b[2J"), "the keyring answered with an error, “InitError: no collection␛\\[2J”"),
        (ConnectionError(), "the keyring answered with an error, “ConnectionError”"),
        (RuntimeError("plug-in"), "the keyring answered with an error, “RuntimeError: plug-in”"),
    ],
)
def test_whatever_a_keyring_raises_becomes_a_sentence(ring: Ring, trouble: Exception, words: str) -> None:
    ring.trouble = trouble
    for ask in (lambda: stored(KEY), lambda: store(KEY, "x"), lambda: forget(KEY)):
        with pytest.raises(KeyProblemError, match=words):
            ask()


def test_a_keyring_in_plain_text_is_not_trusted_with_it() -> None:
    plain = PlainRing()
    with in_use(plain), pytest.raises(KeyProblemError, match="“rings PlainRing”, and it does not protect"):
        store(KEY, "x")
    assert plain.held == {}


def test_a_keyring_that_drops_it_in_silence_is_told(ring: Ring) -> None:
    ring.drops = True
    with pytest.raises(KeyProblemError, match="did not keep it"):
        store(KEY, "x")


def test_a_keyring_that_never_answers_is_not_waited_for_for_ever(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentwatch.decisions.keys.SECONDS", 0.01)
    answer = threading.Event()
    monkeypatch.setattr(ring, "get_password", lambda *_: answer.wait(60))
    with pytest.raises(KeyProblemError, match=r"did not answer within 0\.01 s"):
        stored(KEY)
    answer.set()


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(KeyProblemError, match=r"pip install 'agentwatch\[keyring\]'"):
        stored(KEY)


def test_a_key_is_unlocked_by_the_keyring(keys: Keys, ring: Ring) -> None:
    made = keys.create("sesame")
    store(keys.directory / PRIVATE, "sesame")
    assert unlocked(keys).public == made.public
    store(keys.directory / PRIVATE, "something else")
    with pytest.raises(KeyProblemError, match="does not open it"):
        unlocked(keys)


def desk_of(keys: Keys, tmp_path: Path) -> LocalService:
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return LocalService(workspace, state=tmp_path / "state", configuration=keys.directory.parent)


def test_the_keyring_is_asked_only_where_it_was_chosen(keys: Keys, ring: Ring, tmp_path: Path) -> None:
    keys.create("sesame")
    store(keys.directory / PRIVATE, "sesame")
    locked = "the key that signs decisions is encrypted"
    assert desk_of(keys, tmp_path).why_locked() == locked
    keys.choose_keyring(chosen=True)
    desk = desk_of(keys, tmp_path)
    assert desk.why_locked() is None
    # Once: the key is at hand from then on.
    ring.trouble = KeyringLocked()
    assert desk.why_locked() is None
    assert desk.decide(Subject(desk.workspace_id, "a", 1, None, RETURN), Action.ABORT, returned=lambda: RETURN).fresh
    assert desk_of(keys, tmp_path).why_locked() == f"{locked}, and the keyring answered with an error, “KeyringLocked”"
    keys.protect(None, lambda: "sesame")
    assert desk_of(keys, tmp_path).why_locked() is None
