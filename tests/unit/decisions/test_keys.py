"""Keys: the user's own is private, whole, and replaced without losing the past; others are trusted from a moment on."""

import os
import time
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from agentwatch.decisions.envelope import SigningKey, Trust, TrustedKey, UntrustedError, parse_public, parse_trust
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import PRIVATE, PUBLIC, RETIRED, Keys, Role, parse_name_and_key
from agentwatch.decisions.record import format_time
from agentwatch.disk import Directory
from tests.unit.decisions.made import KIM, NOON, at

HOUR = timedelta(hours=1)
KIMS = KIM.public


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "configuration")


def signs_alike(one: SigningKey, other: SigningKey) -> bool:
    return one.private.sign(b"x") == other.private.sign(b"x")


def trust_kim(keys: Keys) -> Path:
    """Trust kim, and return the file that records it."""
    with at(NOON):
        keys.trust_key(Role.OPERATOR, KIMS, "kim")
    return keys.directory / "operators" / f"{KIMS.keyid}.pub"


def test_only_the_user_can_read_the_key_whatever_the_umask(keys):
    before = os.umask(0)
    try:
        keys.create()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (keys.directory, keys.directory / PRIVATE)] == [0o700, 0o600]
    assert [path.name for path in sorted(keys.directory.iterdir())] == [PRIVATE, PUBLIC]


def test_a_passphrase_can_be_set_changed_and_taken_away(keys):
    made = keys.create("sésame")
    assert "is encrypted" in (keys.why_encrypted() or "")
    # Verifying a signature needs no passphrase.
    assert keys.show() == made.public
    with pytest.raises(KeyProblemError, match="is encrypted"):
        keys.load()
    for do in (lambda: keys.load(lambda: "sesame"), lambda: keys.load(str), lambda: keys.protect("two", str)):
        with pytest.raises(KeyProblemError, match="passphrase is wrong"):
            do()
    keys.protect("two", lambda: "sésame")
    assert signs_alike(keys.load(lambda: "two"), made)
    keys.protect(None, lambda: "two")
    assert (keys.why_encrypted(), signs_alike(keys.load(), made)) == (None, True)
    assert (keys.directory / PRIVATE).stat().st_mode & 0o777 == 0o600


def test_without_a_key_nothing_is_signed_or_trusted(keys):
    for _ in range(2):
        assert (keys.trust(), keys.can_read_private()) == (Trust(), False)
        for ask in (keys.load, keys.show, keys.rotate):
            with pytest.raises(KeyMissingError, match="there is no key"):
                ask()
        keys.directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def test_a_key_that_vanished_is_missed_and_can_be_replaced(keys):
    old = keys.create().public
    assert keys.can_read_private()
    (keys.directory / PRIVATE).unlink()
    for ask in (keys.load, keys.create):
        with pytest.raises(KeyMissingError, match=r"is gone.*backup.*rotate.*stays valid"):
            ask()
    assert (keys.show(), keys.can_read_private()) == (old, False)
    new = keys.rotate().public
    assert [key.public for key in keys.trust().keys] == [old, new]


def test_a_key_that_was_replaced_is_trusted_until_then(keys):
    first = keys.create().public
    with at(NOON):
        second = keys.rotate().public
    with at(NOON + HOUR):
        third = keys.rotate("secret").public
    trust = keys.trust()
    assert trust.keys == (
        TrustedKey(first, format_time(NOON)),
        TrustedKey(second, format_time(NOON + HOUR)),
        TrustedKey(third),
    )
    trust.require_trusted(first.keyid, "2030-01-01T12:00:00Z")
    with pytest.raises(UntrustedError, match="not trusted any more"):
        trust.require_trusted(first.keyid, "2030-01-01T12:00:01Z")
    trust.require_trusted(third.keyid, "2099-01-01T00:00:00Z")


def test_a_clock_that_was_set_back_keeps_their_order(keys):
    made = [keys.create().public]
    # Keys keep the order of their rotations, even within one second or after a step back of the clock.
    for now in (NOON, NOON, NOON - HOUR):
        with at(now):
            made.append(keys.rotate().public)
    ends = [*(format_time(NOON + timedelta(seconds=n)) for n in range(3)), None]
    assert [(key.public, key.retired_at) for key in keys.trust().keys] == list(zip(made, ends, strict=True))


def test_a_key_file_missing_after_a_kill_is_written_again(keys):
    made = keys.create()
    (keys.directory / PUBLIC).unlink()
    assert keys.show() == made.public == keys.trust().keys[-1].public
    (keys.directory / PUBLIC).write_text(Keys(keys.directory / "other").create().public.text)
    keys.load()
    assert keys.show() == made.public
    # A writer was killed during a rotation: the current key is among the retired keys, too.
    (keys.directory / RETIRED).mkdir(mode=0o700)
    retired = f"{made.public.text}\nretired 2020-01-01T00:00:00Z\n"
    (keys.directory / RETIRED / f"{made.public.keyid}.pub").write_text(retired)
    assert keys.trust() == Trust((TrustedKey(made.public),))


def test_a_key_replaced_while_the_passphrase_is_typed_stays_so(keys):
    keys.create("sesame")
    replaced = list[object]()

    def typed() -> str:
        replaced.append(Keys(keys.directory.parent).rotate("another").public)
        return "sesame"

    keys.load(typed)
    assert [keys.show()] == replaced


def test_two_makers_of_the_first_key_get_the_same_one(keys):
    assert signs_alike(keys.create(), keys.create())
    assert signs_alike(Keys(keys.directory.parent).create("secret"), keys.load())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused_with_the_remedy(keys, mode):
    keys.create()
    (keys.directory / PRIVATE).chmod(mode)
    with pytest.raises(KeyProblemError, match=f"mode {mode:o}.*chmod 600.*rotate"):
        keys.load()


@pytest.mark.parametrize("which", ["keys", "configuration", "another user"])
def test_a_directory_that_others_can_write_is_refused(keys, monkeypatch, which):
    keys.create()
    if which == "another user":
        monkeypatch.setattr(os, "geteuid", lambda: 4_242)
    else:
        (keys.directory if which == "keys" else keys.directory.parent).chmod(0o770)
    for ask in (keys.load, keys.show, keys.trust, keys.rotate):
        with pytest.raises(KeyProblemError, match=r"others can write into .*chmod go-w"):
            ask()


def test_a_damaged_key_or_one_of_another_kind_is_refused(keys):
    keys.create()
    path = keys.directory / PRIVATE
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for data, words in ((path.read_bytes()[:60], "damaged"), (other, "another kind")):
        path.write_bytes(data)
        with pytest.raises(KeyProblemError, match=words):
            keys.load()


def test_an_unusable_key_directory_is_reported(keys, monkeypatch):
    keys.create()
    broken = Keys(keys.directory / PRIVATE)
    for ask in (broken.create, broken.load, broken.trust):
        with pytest.raises(KeyProblemError, match="Not a directory; check the disk"):
            ask()
    monkeypatch.setattr(time, "monotonic", count(0, 60).__next__)
    locked = pytest.raises(KeyProblemError, match="another process holds the lock; end it")
    with Directory.open(keys.directory) as directory, directory.locked(), locked:
        keys.rotate()


@pytest.mark.parametrize("text", ["", "ed25519:" + "A" * 44, "ed25519:" + "A" * 42 + "B=", "A" * 64])
def test_a_public_key_has_one_form(text):
    with pytest.raises(KeyProblemError, match="looks like"):
        parse_public(text)


def test_keys_are_given_for_signing_or_for_asking(keys):
    own, other = TrustedKey(keys.create().public), TrustedKey(Keys(keys.directory / "other").create().public)
    assert parse_trust(f" {own.public.text},{other.public.text}\n") == Trust((own, other))
    assert parse_trust("  ") == Trust()
    trust = parse_trust(f"{own.public.text},operator:{other.public.text}")
    assert trust == Trust((own,), (other,))
    assert (set(trust.signers), len(trust.requesters)) == ({own.public.keyid}, 2)
    assert keys.trust().merged_with(trust) == trust == trust.merged_with(trust)
    with pytest.raises(KeyProblemError):
        parse_trust(f"operator:operator:{other.public.text}")


# Keys of others


def test_a_key_that_is_trusted_is_kept_for_the_user_alone(keys):
    place, kim = trust_kim(keys), TrustedKey(KIMS, None, "kim", "2030-01-01T12:00:00Z")
    assert (keys.known_keys(Role.OPERATOR), keys.known_keys(Role.HOST)) == ([kim], [])
    assert (place.stat().st_mode & 0o777, place.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    # A trusted key of another signs no record: only own keys do.
    assert keys.trust() == Trust((), (kim,))
    assert Keys(keys.directory / "none").known_keys(Role.HOST) == []


def test_a_renamed_key_stays_trusted_since_its_first_day(keys):
    trust_kim(keys)
    with time_machine.travel("2030-02-01T12:00:00Z", tick=False):
        assert keys.trust_key(Role.OPERATOR, KIMS, "kimberley").trusted_at == "2030-01-01T12:00:00Z"
    assert [(one.name, one.trusted_at) for one in keys.known_keys(Role.OPERATOR)] == [
        ("kimberley", "2030-01-01T12:00:00Z")
    ]


@pytest.mark.parametrize("name", ["", " kim", "k\x1bm", "k" * 61, "kim\nx"])
def test_a_name_is_a_word_or_two(keys, name):
    with pytest.raises(KeyProblemError, match="a word or two"):
        keys.trust_key(Role.OPERATOR, KIMS, name)


def test_a_key_is_introduced_by_its_name():
    assert parse_name_and_key(f"kim={KIMS.text}") == ("kim", KIMS)
    with pytest.raises(KeyProblemError, match="write NAME=KEY"):
        parse_name_and_key("kim")


def test_a_name_belongs_to_one_key_and_the_own_is_no_host(keys):
    own, other = keys.create().public, Keys(keys.directory / "other").create().public
    with pytest.raises(KeyProblemError, match="that is your own key"):
        keys.trust_key(Role.HOST, own, "box")
    trust_kim(keys)
    with pytest.raises(KeyProblemError, match="“kim” is the name of another key"):
        keys.trust_key(Role.OPERATOR, other, "kim")
    # A host may have the name of a person, and an operator who is no longer trusted frees the name.
    keys.trust_key(Role.HOST, other, "kim")
    keys.distrust_key(Role.OPERATOR, KIMS)
    keys.trust_key(Role.OPERATOR, other, "kim")
    with pytest.raises(KeyProblemError, match="another key"):
        keys.trust_key(Role.OPERATOR, KIMS, "kim")


def test_trust_ends_once_and_can_begin_again(keys):
    with pytest.raises(KeyMissingError, match="never trusted"):
        keys.distrust_key(Role.OPERATOR, KIMS)
    trust_kim(keys)
    with at(NOON + HOUR):
        ended = keys.distrust_key(Role.OPERATOR, KIMS)
    assert ended.retired_at == "2030-01-01T13:00:00Z"
    assert keys.distrust_key(Role.OPERATOR, KIMS) == ended
    assert keys.trust().operators == (ended,)
    trust_kim(keys)
    assert [one.retired_at for one in keys.trust().operators] == [None]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("e", "\xff"),
        ("name kim\ntrusted 2030-01-01T12:00:00Z\n", ""),
        ("name kim\ntrusted", "retired"),
        ("ed25519:", "ed25519:A"),
        ("name kim", "name k\x1bm"),
        ("trusted 2030", "trusted 2O30"),
        ("Z\n", "Z\ndistrusted never\n"),
        (None, "kim.pub"),
        (None, f"{KIMS.keyid}.old"),
    ],
)
def test_a_changed_or_renamed_key_file_is_no_key(keys, old, new):
    """The file has another text, or another name."""
    keys.create()
    place = trust_kim(keys)
    good = place.read_text()
    if old is None:
        place.rename(place.with_name(new))
    else:
        place.write_text(good.replace(old, new), "latin-1")
        assert place.read_text("latin-1") != good
    assert (keys.known_keys(Role.OPERATOR), keys.trust().operators) == ([], ())


def test_another_operators_key_is_no_retired_key_of_ours(keys):
    keys.create()
    place = trust_kim(keys)
    retired = place.parent.rename(keys.directory / RETIRED)
    assert KIMS.keyid not in keys.trust().signers
    (retired / place.name).write_text(f"{KIMS.text}\nretired 2030-01-01T00:00:00Z\n")
    assert KIMS.keyid in keys.trust().signers


@pytest.mark.parametrize("which", ["file", "directory"])
def test_keys_that_others_could_have_written_are_refused(keys, which):
    place = trust_kim(keys)
    (place if which == "file" else place.parent).chmod(0o722)
    with pytest.raises(KeyProblemError, match="others can write into operators"):
        keys.trust()
    place.parent.chmod(0o700)
    place.unlink()
    place.mkdir(mode=0o700)
    with pytest.raises(KeyProblemError, match="not a regular file"):
        keys.trust()
