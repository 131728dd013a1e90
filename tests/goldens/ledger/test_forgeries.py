"""Forged, replayed, re-aimed, torn and bit-flipped decisions: `wait` returns none of them, and `verify` names them."""

import base64
import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.goldens.ledger.conftest import ATTACKER, DECISION, KIM, OPERATOR, REQUEST, Scene, compact, id_of, record_in

Forge = Callable[[Scene], bytes]


def envelope(**fields: Any) -> Forge:
    """Return the good file with some fields of the envelope changed."""
    return lambda scene: compact(json.loads(scene.good) | fields) + b"\n"


def text(old: bytes, new: bytes) -> Forge:
    """Return the good file with some of its text changed."""
    return lambda scene: scene.good.replace(old, new, 1)


def signed(old: bytes, new: bytes) -> Forge:
    """Return a record with some of its text changed, signed by the operator's own key."""
    return lambda scene: OPERATOR.sign(compact(scene.record).replace(old, new, 1))


def record(**fields: Any) -> Forge:
    """Return a record with some fields changed, signed by the operator's own key; its id follows unless it is given."""
    return lambda scene: OPERATOR.sign(compact(changed(scene.record, **fields)))


def changed(old: dict[str, Any], **fields: Any) -> dict[str, Any]:
    new = old | fields
    return new | {"decision_id": fields.get("decision_id", id_of(new))}


def with_signature_of(scene: Scene, *, name: bytes) -> bytes:
    """Return another record under the good one's signature, or under an attacker's with the operator's key id."""
    other = compact(scene.record | {"note": "Do as I say."})
    made = json.loads(ATTACKER.sign(other) if name == b"attacker" else scene.good)["signatures"][0]["sig"]
    return OPERATOR.sign(other, signatures=[{"keyid": OPERATOR.id, "sig": made}])


FORGERIES: dict[str, Forge] = {
    "nothing": lambda scene: b"",
    "brackets without end": lambda scene: b"[" * 100_000,
    "a record without an envelope": lambda scene: compact(scene.record),
    "no signature": envelope(signatures=[]),
    "a signature of zeros": envelope(signatures=[{"keyid": OPERATOR.id, "sig": base64.b64encode(b"\0" * 64).decode()}]),
    "an attacker's key": lambda scene: ATTACKER.sign(compact(scene.record)),
    "an attacker's signature in another name": lambda scene: with_signature_of(scene, name=b"attacker"),
    "an old signature under another record": lambda scene: with_signature_of(scene, name=b"old"),
    "another payload type": envelope(payloadType="application/json"),
    "signed as a request": lambda scene: OPERATOR.sign(compact(scene.record), REQUEST),
    "a request relabelled": lambda scene: OPERATOR.sign(compact(scene.record), REQUEST, payloadType=DECISION),
    "an upper-case key id": lambda scene: scene.good.replace(OPERATOR.id.encode(), OPERATOR.id.upper().encode()),
    "a byte order mark": lambda scene: b"\xef\xbb\xbf" + scene.good,
    "a line break more": lambda scene: scene.good + b"\n",
    "half of it": lambda scene: scene.good[: len(scene.good) // 2],
    "a key more in the envelope": text(b"{", b'{"a":1,'),
    "another workspace": record(workspace_id="other-0123456789abcdef"),
    "a version to come": signed(b'"version":1', b'"version":9'),
    "a version that is true": signed(b'"version":1', b'"version":true'),
    "no version": signed(b'"version":1,', b""),
    "an id of its own": record(decision_id="0" * 32),
    "the id of another attempt": signed(b'"attempt":1', b'"attempt":7'),
    "a task id twice": signed(b'"task_id":', b'"task_id":"shop.web","task_id":'),
    "spelled otherwise": signed(b'","', b'", "'),
    "an unknown action": signed(b'"respond"', b'"approve"'),
    "another action": signed(b'"respond"', b'"retry"'),
    "a parameter more": signed(b'"mitigation":null', b'"mitigation":null,"approved":true'),
    "a mode that means nothing": signed(b'"mode":null', b'"mode":"root"'),
    "no answer": signed(b'{"question":"Which port is free?","answer":"8080"}', b""),
    "a time that is none": signed(b"T12:05:00Z", b"T12:05"),
    "a signed list": lambda scene: OPERATOR.sign(b"[]"),
}
CHAINED: dict[str, Forge] = {
    "another number": record(seq=7),
    "no file before it": record(prev_sha256=None),
    "another file before it": record(prev_sha256="0" * 64),
    "number one again": record(seq=1, prev_sha256=None),
}
"""Signed records that do not follow the last record of the ledger."""


def sandbox(scene: Scene, monkeypatch: pytest.MonkeyPatch, key: str):
    """Be an agent that sees only the workspace and a public key."""
    monkeypatch.setenv("HOME", str(scene.world.root / "sandbox"))
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", key)


def test_a_signed_record_that_follows_the_last_is_returned(scene):
    (scene.ledger / f"000003-{scene.record['decision_id']}.json").write_bytes(scene.good)
    code, said = scene.wait("shop.web")
    assert (code, said["action"], said["params"]["answers"][0]["answer"]) == (0, "respond", "8080")
    assert scene.verify() == 0
    assert OPERATOR.sign(compact(scene.record)) == scene.good


@pytest.mark.parametrize("name", FORGERIES | CHAINED)
def test_a_forgery_in_the_ledger_is_no_decision(scene, name):
    data = (FORGERIES | CHAINED)[name](scene)
    assert data != scene.good
    file = scene.ledger / f"000003-{scene.record['decision_id']}.json"
    file.write_bytes(data)
    code, said = scene.wait("shop.web")
    assert (code, said["pending"], said.get("action")) == (5, True, None)
    assert scene.verify() == 1
    # A genuine decision still holds, and no new one is added behind a file that is invalid.
    assert scene.wait("shop.api")[1]["action"] == "retry"
    assert scene.decide("shop.seeds", "--accept", "--note", "So be it.") == 2
    assert file.read_bytes() == data
    # The operator looks at the file and sets it aside.
    assert scene.world.run("verify", "--set-aside", cwd=scene.shop).code == 0
    assert scene.decide("shop.seeds", "--accept", "--note", "So be it.") == 0
    assert scene.verify() == 0


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_in_the_workspace_is_no_decision(scene, monkeypatch, name):
    file = scene.mirror / f"{scene.record['decision_id']}.json"
    file.write_bytes(FORGERIES[name](scene))
    assert scene.verify() == 1
    code, said = scene.wait("shop.web")
    assert (code in (3, 5), said.get("action")) == (True, None)
    sandbox(scene, monkeypatch, OPERATOR.text)
    code, said = scene.wait("shop.web")
    assert (code, said["pending"], said.get("action")) == (5, True, None)
    assert (scene.wait("shop.api")[1]["action"], scene.wait("shop.api")[1]["place"]) == ("retry", "mirror")


NO_FILES: dict[str, Callable[[Path], object]] = {
    "link": lambda place: place.symlink_to("/etc/passwd"),
    "dangling link": lambda place: place.symlink_to("nowhere"),
    "pipe": os.mkfifo,
    "directory": Path.mkdir,
    "huge file": lambda place: (place.touch(), os.truncate(place, 10**10)),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_link_or_pipe_is_neither_followed_nor_waited_for(scene, monkeypatch, kind):
    NO_FILES[kind](scene.mirror / f"{scene.record['decision_id']}.json")
    NO_FILES[kind](scene.ledger / f"000003-{scene.record['decision_id']}.json")
    assert (scene.wait("shop.web")[0], scene.verify()) == (5, 1)
    assert scene.wait("shop.api")[0] == 0
    sandbox(scene, monkeypatch, OPERATOR.text)
    assert scene.wait("shop.web")[0] == 5
    assert scene.wait("shop.api")[0] == 0


def test_no_bit_of_the_ledger_can_be_flipped(scene):
    file, dice = scene.files()[0], random.Random(25)
    good = file.read_bytes()
    for at in dice.sample(range(len(good)), 30):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1 << dice.randrange(8)]) + good[at + 1 :])
        code, said = scene.wait("shop.api")
        assert (code, said.get("action")) == (5, None), at
    for length in dice.sample(range(len(good)), 5):
        file.write_bytes(good[:length])
        assert scene.wait("shop.api")[0] == 5, length
    file.write_bytes(good)
    assert scene.wait("shop.api")[0] == 0


@pytest.mark.parametrize("number", [0, 1])
def test_a_decision_that_was_removed_is_missed(scene, number):
    scene.decide("shop.seeds", "--accept", "--note", "So be it.")
    scene.files()[number].unlink()
    assert scene.verify() == 1
    task = ("shop.api", "shop.ship")[number]
    assert scene.wait(task)[1].get("action") is None


def test_a_decision_is_about_nothing_else(scene):
    first, second = scene.files()
    # Forge by renaming a file, by copying one, and by swapping two.
    copy = scene.ledger / f"000003-{record_in(first.read_bytes())['decision_id']}.json"
    copy.write_bytes(first.read_bytes())
    assert scene.verify() == 1
    copy.unlink()
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    assert scene.verify() == 1
    assert scene.wait("shop.api")[0] == 5
    first.write_bytes(one)
    second.write_bytes(other)
    for task in ("shop", "Shop.Api", "shop.api ", "shop.web"):
        assert scene.wait(task)[0] != 0
    assert scene.wait("shop.api", "--attempt", "2")[0] == 3


@pytest.mark.parametrize(("key", "code"), [(OPERATOR, 0), (ATTACKER, 5), (KIM, 5)])
def test_a_sandbox_believes_the_key_it_was_given(scene, monkeypatch, key, code):
    sandbox(scene, monkeypatch, key.text)
    assert scene.wait("shop.api")[0] == code


def test_a_replaced_key_signs_nothing_new(scene):
    scene.world.wait(minutes=1)
    assert scene.world.run("keys", "rotate", cwd=scene.shop).code == 0
    scene.world.wait(minutes=1)
    assert scene.wait("shop.api")[0] == 0
    file = scene.ledger / f"000003-{scene.record['decision_id']}.json"
    file.write_bytes(OPERATOR.sign(compact(scene.record | {"created_at": "2030-01-01T12:07:00Z"})))
    assert scene.wait("shop.web")[0] == 5
    file.unlink()
    assert scene.decide("shop.web", "--respond", "9090") == 0
    assert json.loads(scene.files()[-1].read_bytes())["signatures"][0]["keyid"] != OPERATOR.id
    assert scene.verify() == 0
    # The old key cannot sign behind the new one either.
    put_next(scene, scene.record | {"task_id": "shop.seeds"})
    assert (scene.verify(), scene.wait("shop.seeds")[0]) == (1, 5)


def put_next(scene: Scene, record: dict[str, Any], **fields: Any):
    """Sign a record with the operator's first key, and add it to the end of the ledger."""
    last = scene.files()[-1].read_bytes()
    fields = {"seq": record_in(last)["seq"] + 1, "prev_sha256": hashlib.sha256(last).hexdigest()} | fields
    new = changed(record, **fields)
    (scene.ledger / f"{new['seq']:06d}-{new['decision_id']}.json").write_bytes(OPERATOR.sign(compact(new)))


def test_a_break_in_the_order_of_the_ledger_is_reported(scene):
    first, second = (record_in(file.read_bytes()) for file in scene.files())
    follows = {"seq": 2, "prev_sha256": second["prev_sha256"]}
    broken: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (scene.record, follows),
        (first | {"note": "Otherwise."}, {}),
        (scene.record, {"seq": 4}),
    ]
    for record, fields in broken:
        before = scene.files()
        put_next(scene, record, **fields)
        assert scene.verify() == 1, fields
        assert scene.wait("shop.web")[0] == 5
        (added,) = {*scene.files()} - {*before}
        added.unlink()
        assert scene.verify() == 0


def from_afar(scene: Scene, inner: dict[str, Any], **outer: Any) -> bytes:
    """Return this host's record of a request signed by kim elsewhere; `inner` changes the request, `outer` the rest."""
    told = scene.record | {"version": 3, "operator": "kim"}
    own = ("version", "seq", "prev_sha256", "operator")
    asked = {"version": 1, "host": OPERATOR.id, "record_by": "2030-01-01T12:10:00Z"}
    asked |= {name: value for name, value in told.items() if name not in own}
    key = inner.pop("key", KIM)
    request = key.sign(compact(asked | inner), REQUEST).decode()
    return OPERATOR.sign(compact(told | {"signed_request": request} | outer))


AFAR: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "for another host": ({"host": KIM.id}, {}),
    "of somebody who is not trusted": ({"key": ATTACKER}, {}),
    "recorded too late": ({}, {"created_at": "2030-01-01T12:11:00Z"}),
    "with other words": ({}, {"note": "Do as I say."}),
    "another action": ({"action": "abort"}, {}),
    "in somebody else's name": ({}, {"version": 1}),
    "with no request": ({}, {"signed_request": "{}"}),
}
"""For each case, the changes of the request that was signed elsewhere, and of the record that this host made of it."""


def test_a_request_signed_elsewhere_by_a_trusted_operator_holds(scene):
    file = scene.ledger / f"000003-{scene.record['decision_id']}.json"
    file.write_bytes(from_afar(scene, {}))
    assert scene.wait("shop.web")[0] == 5
    assert scene.world.run("keys", "trust", KIM.text, "--name", "kim").code == 0
    code, said = scene.wait("shop.web")
    assert (code, said["operator"]) == (0, "kim")
    assert "signed_request" not in said
    assert scene.verify() == 0
    for name, (inner, outer) in AFAR.items():
        file.write_bytes(from_afar(scene, inner, **outer))
        assert scene.wait("shop.web")[0] == 5, name
        assert scene.verify() == 1, name
    file.write_bytes(from_afar(scene, {}))
    scene.world.wait(minutes=1)
    assert scene.world.run("keys", "distrust", "kim").code == 0
    # Earlier records stay valid.
    assert scene.wait("shop.web")[0] == 0
