"""The keys of others: trusted by name from a moment on, and to another, kept where nobody else can add one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from agentwatch.decisions.envelope import TrustedKey
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import Keys, OtherKey, Role, introduced
from tests.unit.decisions.made import KIM, NOON

LATER = NOON + timedelta(hours=1)
PUBLIC = KIM.public


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "configuration")


def place(keys: Keys) -> Path:
    return keys.directory / "operators" / f"{PUBLIC.keyid}.pub"


def test_a_key_that_is_trusted_is_kept_for_the_user_alone(keys: Keys) -> None:
    assert keys.others(Role.OPERATOR) == []
    made = keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    assert made == OtherKey(PUBLIC, "kim", "2030-01-01T12:00:00Z")
    assert keys.others(Role.OPERATOR) == [made]
    assert keys.others(Role.HOST) == []
    assert place(keys).stat().st_mode & 0o777 == 0o600
    assert place(keys).parent.stat().st_mode & 0o777 == 0o700
    assert keys.trust().operators == (TrustedKey(PUBLIC),)
    # It signs no record: that is what own keys are for.
    assert keys.trust().keys == ()


def test_a_name_and_a_key_in_one_word_are_told_apart() -> None:
    name, key = introduced(f"kim={PUBLIC.text}")
    assert (name, key.text) == ("kim", PUBLIC.text)
    with pytest.raises(KeyProblemError, match="write NAME=KEY"):
        introduced("kim")


def test_the_own_key_is_not_that_of_a_host(keys: Keys) -> None:
    own = keys.create().public
    with pytest.raises(KeyProblemError, match="that is your own key"):
        keys.trust_other(Role.HOST, own, "box")
    assert keys.others(Role.HOST) == []


def test_a_name_is_that_of_one_key(keys: Keys) -> None:
    other = Keys(keys.directory / "other").create().public
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    with pytest.raises(KeyProblemError, match="“kim” is the name of another key"):
        keys.trust_other(Role.OPERATOR, other, "kim")
    # A host may be called like a person, and who is not trusted any more has given the name back.
    keys.trust_other(Role.HOST, other, "kim")
    keys.distrust_other(Role.OPERATOR, PUBLIC, NOON)
    keys.trust_other(Role.OPERATOR, other, "kim")
    with pytest.raises(KeyProblemError, match="another key"):
        keys.trust_other(Role.OPERATOR, PUBLIC, "kim")


def test_trust_ends_once_and_can_begin_again(keys: Keys) -> None:
    with pytest.raises(KeyMissingError, match="never trusted"):
        keys.distrust_other(Role.OPERATOR, PUBLIC)
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    ended = keys.distrust_other(Role.OPERATOR, PUBLIC, LATER)
    assert ended.distrusted_at == "2030-01-01T13:00:00Z"
    assert keys.distrust_other(Role.OPERATOR, PUBLIC, LATER + timedelta(hours=1)) == ended
    assert keys.trust().operators == (TrustedKey(PUBLIC, "2030-01-01T13:00:00Z"),)
    assert keys.trust_other(Role.OPERATOR, PUBLIC, "kim", LATER).distrusted_at is None
    assert keys.trust().operators == (TrustedKey(PUBLIC),)


def test_a_clock_that_was_set_back_takes_nothing_from_what_was_recorded(keys: Keys) -> None:
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    ended = keys.distrust_other(Role.OPERATOR, PUBLIC, NOON, signed_until="2030-01-01T13:00:00Z")
    assert ended.distrusted_at == "2030-01-01T13:00:00Z"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff" * 100),
        lambda path: path.write_text(path.read_text().replace("ed25519:", "ed25519:A")),
        lambda path: path.write_text(path.read_text().replace("name kim", "name k\x1bm")),
        lambda path: path.write_text(path.read_text().replace("trusted 2030", "trusted 2O30")),
        lambda path: path.write_text(path.read_text() + "distrusted never\n"),
        lambda path: path.write_text(path.read_text() + "more\n"),
        lambda path: path.rename(path.with_name("kim.pub")),
        lambda path: path.rename(path.with_suffix(".old")),
    ],
)
def test_a_file_that_is_none_of_ours_is_no_key(keys: Keys, spoil: Callable[[Path], None]) -> None:
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    spoil(place(keys))
    assert keys.others(Role.OPERATOR) == []
    assert keys.trust().operators == ()


@pytest.mark.parametrize("which", ["file", "directory"])
def test_keys_that_others_could_have_written_are_refused(keys: Keys, which: str) -> None:
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    path = place(keys) if which == "file" else place(keys).parent
    path.chmod(0o722)
    with pytest.raises(KeyProblemError, match="others can write operators"):
        keys.trust()
    with pytest.raises(KeyProblemError, match="others can write operators"):
        keys.others(Role.OPERATOR)


def test_what_cannot_be_read_is_told(keys: Keys) -> None:
    keys.trust_other(Role.OPERATOR, PUBLIC, "kim", NOON)
    place(keys).unlink()
    place(keys).mkdir(mode=0o700)
    with pytest.raises(KeyProblemError, match="cannot be read: not a regular file"):
        keys.trust()
