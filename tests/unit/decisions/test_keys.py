"""The signing key: private, whole, and replaced without losing the past."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from agentwatch.decisions.envelope import PublicKey, SigningKey, Trust, TrustedKey, UntrustedError, given, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import KEYRING, PRIVATE, PUBLIC, RETIRED, Keys
from agentwatch.decisions.record import written
from agentwatch.disk import Directory
from tests.unit.decisions.made import NOON


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "configuration")


def signs_alike(one: SigningKey, other: SigningKey) -> bool:
    return one.private.sign(b"x") == other.private.sign(b"x")


def test_only_the_user_can_read_the_key_whatever_the_umask(keys: Keys) -> None:
    before = os.umask(0)
    try:
        keys.create()
    finally:
        os.umask(before)
    assert keys.directory.stat().st_mode & 0o777 == 0o700
    assert (keys.directory / PRIVATE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in sorted(keys.directory.iterdir())] == [PRIVATE, PUBLIC]


def test_a_passphrase_is_asked_for_and_must_be_right(keys: Keys) -> None:
    made = keys.create("sésame")
    assert signs_alike(keys.load(lambda: "sésame"), made)
    assert b"ENCRYPTED" in (keys.directory / PRIVATE).read_bytes()
    for wrong in ("sesame", ""):
        with pytest.raises(KeyProblemError, match="passphrase is wrong"):
            keys.load(lambda wrong=wrong: wrong)
    with pytest.raises(KeyProblemError, match="is encrypted"):
        keys.load()
    # What was signed can be verified without it.
    assert keys.show() == made.public
    assert made.public.keyid in keys.trust().public


def test_a_passphrase_can_be_set_changed_and_taken_away(keys: Keys) -> None:
    made = keys.create()
    assert not keys.is_encrypted()
    keys.protect("one")
    assert keys.is_encrypted()
    with pytest.raises(KeyProblemError, match="passphrase is wrong"):
        keys.protect("two", lambda: "wrong")
    keys.protect("two", lambda: "one")
    assert signs_alike(keys.load(lambda: "two"), made)
    keys.protect(None, lambda: "two")
    assert signs_alike(keys.load(), made)
    assert keys.show() == made.public
    assert (keys.directory / PRIVATE).stat().st_mode & 0o777 == 0o600


def test_without_a_key_there_is_nothing_to_sign_with_and_nothing_to_trust(keys: Keys) -> None:
    assert keys.trust() == Trust()
    for ask in (keys.load, keys.show, keys.rotate):
        with pytest.raises(KeyMissingError):
            ask()
    keys.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for ask in (keys.load, keys.show, keys.rotate):
        with pytest.raises(KeyMissingError):
            ask()
    assert keys.trust() == Trust()


def test_a_key_that_vanished_is_missed_and_can_be_replaced(keys: Keys) -> None:
    old = keys.create().public
    (keys.directory / PRIVATE).unlink()
    for ask in (keys.load, keys.create):
        with pytest.raises(KeyMissingError, match=r"is gone.*backup.*rotate.*stays valid"):
            ask()
    assert keys.show() == old
    new = keys.rotate().public
    assert [key.public for key in keys.trust().keys] == [old, new]


def test_a_key_that_was_replaced_is_trusted_until_then(keys: Keys) -> None:
    first = keys.create().public
    second = keys.rotate(now=NOON).public
    third = keys.rotate("secret", now=NOON.replace(hour=13)).public
    assert signs_alike(keys.load(lambda: "secret"), keys.load(lambda: "secret"))
    trust = keys.trust()
    assert trust.keys == (
        TrustedKey(first, "2030-01-01T12:00:00Z"),
        TrustedKey(second, "2030-01-01T13:00:00Z"),
        TrustedKey(third),
    )
    assert trust.order[first.keyid] < trust.order[second.keyid] < trust.order[third.keyid]
    trust.require(first.keyid, "2030-01-01T12:00:00Z")
    with pytest.raises(UntrustedError, match="retired"):
        trust.require(first.keyid, "2030-01-01T12:00:01Z")
    trust.require(third.keyid, "2099-01-01T00:00:00Z")


def test_a_clock_that_was_set_back_takes_nothing_from_the_key_before(keys: Keys) -> None:
    first = keys.create().public
    second = keys.rotate(now=NOON - timedelta(seconds=1), signed_until=written(NOON)).public
    # In one second, and in the one before: the order of the keys is that of their rotations.
    for now in (NOON, NOON - timedelta(hours=1)):
        keys.rotate(now=now)
    trust = keys.trust()
    assert [key.public for key in trust.keys[:2]] == [first, second]
    assert [key.retired_at for key in trust.keys] == [*(written(NOON + timedelta(seconds=n)) for n in range(3)), None]


def test_a_writer_that_was_killed_between_the_two_files_is_made_up_for(keys: Keys) -> None:
    made = keys.create()
    (keys.directory / PUBLIC).unlink()
    assert keys.show() == made.public
    assert keys.trust().keys[-1].public == made.public
    (keys.directory / PUBLIC).write_text(Keys(keys.directory / "other").create().public.text)
    keys.load()
    assert keys.show() == made.public
    # And in the middle of a rotation: the current key stands among the retired as well.
    (keys.directory / RETIRED).mkdir()
    (keys.directory / RETIRED / f"{made.public.keyid}.pub").write_text(
        f"{made.public.text}\nretired 2020-01-01T00:00:00Z\n"
    )
    assert keys.trust() == Trust((TrustedKey(made.public),))


def test_a_key_that_is_replaced_while_the_passphrase_is_typed_stays_replaced(keys: Keys) -> None:
    keys.create("sesame")
    replaced: list[PublicKey] = []

    def typed() -> str:
        replaced.append(Keys(keys.directory.parent).rotate("another").public)
        return "sesame"

    keys.load(typed)
    assert [keys.show()] == replaced


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ed25519:x\nretired 2030-01-01T00:00:00Z\n",
        b"{key}\n",
        b"{key}\nretired soon\n",
        b"{key}\nretired 2030-01-01T00:00:00Z\nmore\n",
        b"\xff\xfe",
    ],
)
def test_what_lies_among_the_retired_and_is_no_key_is_not_trusted(keys: Keys, content: bytes) -> None:
    keys.create()
    stranger = Keys(keys.directory / "other").create().public
    (keys.directory / RETIRED).mkdir()
    name = f"{stranger.keyid}.pub"
    (keys.directory / RETIRED / name).write_bytes(content.replace(b"{key}", stranger.text.encode()))
    good = f"{stranger.text}\nretired 2030-01-01T00:00:00Z\n"
    (keys.directory / RETIRED / "other-name.pub").write_text(good)
    assert stranger.keyid not in keys.trust().public
    (keys.directory / RETIRED / name).write_text(good)
    assert stranger.keyid in keys.trust().public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused_with_what_to_do(keys: Keys, mode: int) -> None:
    keys.create()
    (keys.directory / PRIVATE).chmod(mode)
    with pytest.raises(KeyProblemError, match=f"mode {mode:o}.*chmod 600.*rotate"):
        keys.load()
    (keys.directory / PRIVATE).chmod(0o600)
    keys.load()


@pytest.mark.parametrize("which", ["keys", "configuration"])
def test_a_directory_that_others_can_write_is_refused_with_what_to_do(keys: Keys, which: str) -> None:
    keys.create()
    place = keys.directory if which == "keys" else keys.directory.parent
    place.chmod(0o770)
    for ask in (keys.load, keys.show, keys.trust, keys.rotate):
        with pytest.raises(KeyProblemError, match=f"others can write into .*{place.name}.*chmod go-w"):
            ask()


def test_a_directory_of_another_user_is_refused(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    keys.create()
    monkeypatch.setattr(os, "geteuid", lambda: 4_242)
    with pytest.raises(KeyProblemError, match="another user"):
        keys.load()


def test_a_damaged_key_or_one_of_another_kind_is_refused(keys: Keys) -> None:
    keys.create()
    path = keys.directory / PRIVATE
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(KeyProblemError, match="damaged"):
        keys.load()
    other = generate_private_key(SECP256R1())
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(KeyProblemError, match="another kind"):
        keys.load()


def test_a_key_directory_that_cannot_be_used_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "configuration").write_text("a file")
    keys = Keys(tmp_path / "configuration")
    for ask in (keys.create, keys.load, keys.trust):
        with pytest.raises(KeyProblemError, match="correct the permissions or the disk"):
            ask()


def test_a_lock_that_is_never_given_back_is_told(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    keys.create()
    monkeypatch.setattr("agentwatch.disk.LOCK_SECONDS", 0.0)
    with (
        Directory.open(keys.directory) as directory,
        directory.locked(),
        pytest.raises(KeyProblemError, match="another process is changing the keys"),
    ):
        keys.rotate()


@pytest.mark.parametrize(
    "text",
    ["", "ed25519:", "x", "ed25519:" + "A" * 44, "ed25519:" + "A" * 42 + "B=", "ED25519:" + "A" * 43 + "=", "A" * 64],
)
def test_a_public_key_has_one_form(text: str) -> None:
    with pytest.raises(KeyProblemError, match="looks like"):
        parse_public(text)


def test_several_public_keys_may_be_given(keys: Keys) -> None:
    one, other = keys.create().public, Keys(keys.directory / "other").create().public
    assert given(f" {one.text},{other.text}\n") == Trust((TrustedKey(one), TrustedKey(other)))
    assert given("  ") == Trust()
    assert keys.trust().with_more(given(f"{one.text} {other.text}")).keys == (TrustedKey(one), TrustedKey(other))


def test_the_key_of_an_operator_on_another_machine_signs_no_record(keys: Keys) -> None:
    own, other = keys.create().public, Keys(keys.directory / "other").create().public
    trust = given(f"{own.text},operator:{other.text}")
    assert trust == Trust((TrustedKey(own),), (TrustedKey(other),))
    assert set(trust.public) == {own.keyid}
    assert set(trust.asking) == {own.keyid, other.keyid}
    assert keys.trust().with_more(trust) == trust == trust.with_more(trust)
    with pytest.raises(KeyProblemError):
        given(f"operator:operator:{other.text}")


def test_of_two_that_make_the_first_key_both_get_the_same(keys: Keys) -> None:
    assert signs_alike(keys.create(), keys.create())
    assert signs_alike(Keys(keys.directory.parent).create("secret"), keys.load())


def test_that_the_keyring_holds_the_passphrase_is_remembered_beside_the_key(keys: Keys) -> None:
    assert not keys.in_keyring
    keys.create("sesame")
    for chosen in (True, True, False, False):
        keys.choose_keyring(chosen=chosen)
        assert keys.in_keyring is chosen
    keys.choose_keyring(chosen=True)
    keys.rotate("other")
    assert keys.in_keyring
    assert (keys.directory / KEYRING).stat().st_mode & 0o777 == 0o600


def test_the_private_key_is_in_sight_or_not(keys: Keys) -> None:
    assert not keys.is_in_sight()
    keys.create()
    assert keys.is_in_sight()
    (keys.directory / PRIVATE).unlink()
    assert not keys.is_in_sight()
