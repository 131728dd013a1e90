"""Forged, replayed, re-aimed, torn and bit-flipped records: no reader accepts one, in the ledger or outside."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.chain import ChainEntry, ChainProblem, ProblemKind, entry_of
from agentwatch.decisions.delivery import mirror_missing
from agentwatch.decisions.envelope import SigningKey, seal
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.reader import Forged, Pending, Question, Reader, Verified
from agentwatch.decisions.record import Record, written
from agentwatch.delegation.decision import Action
from tests.unit.decisions.made import NOON, QUICK, RETURN, Operator, record

ATTACKER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"a" * 32))


@dataclass
class Scene:
    """An operator who has decided attempt 1 of `a.b` and another task, both delivered; attempt 2 is not decided."""

    operator: Operator

    @property
    def entry(self) -> ChainEntry:
        return self.operator.chain().entries[0]

    @property
    def good(self) -> bytes:
        return self.operator.ledger.bytes_of(self.entry)

    def record(self, **changes: Any) -> Record:
        """What the operator would have signed next."""
        before = self.operator.chain().entries[-1]
        values = {
            "workspace_id": self.operator.workspace_id,
            "seq": before.record.seq + 1,
            "prev_sha256": before.sha256,
            "attempt": 2,
        }
        return record(**(values | changes))

    def signed(self, **changes: Any) -> bytes:
        """Signed by the operator: only somebody with the key could make it."""
        return seal(self.record(**changes).to_bytes(), self.operator.key)

    def payload(self, change: Callable[[bytes], bytes]) -> bytes:
        """A payload that the operator's key signed, and that is no record."""
        return seal(change(self.record().to_bytes()), self.operator.key)

    def envelope(self, **fields: Any) -> bytes:
        """The good envelope with some fields changed."""
        return (json.dumps(json.loads(self.good) | fields, separators=(",", ":")) + "\n").encode()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    operator = Operator(tmp_path)
    operator.decide("a.b")
    operator.decide("other", Action.ACCEPT)
    mirror_missing(operator.workspace, operator.chain(), operator.ledger.bytes_of, operator.trust, disk=QUICK)
    return Scene(operator)


def forged_signature(scene: Scene) -> dict[str, str]:
    made = json.loads(seal(scene.record().to_bytes(), ATTACKER))["signatures"][0]
    return {"keyid": scene.operator.key.public.keyid, "sig": made["sig"]}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


FORGERIES: dict[str, Callable[[Scene], bytes]] = {
    "nothing": lambda scene: b"",
    "a line break": lambda scene: b"\n",
    "zeros": lambda scene: b"\0" * 600,
    "JSON": lambda scene: b"{}",
    "brackets without end": lambda scene: b"[" * 100_000,
    "a record without an envelope": lambda scene: scene.record().to_bytes(),
    "an envelope without a signature": lambda scene: scene.envelope(signatures=[]),
    "a null signature": lambda scene: scene.envelope(signatures=None),
    "two signatures": lambda scene: scene.envelope(signatures=json.loads(scene.good)["signatures"] * 2),
    "an attacker's key": lambda scene: seal(scene.record().to_bytes(), ATTACKER),
    "an attacker's signature under the operator's name": lambda scene: scene.envelope(
        payload=encoded(scene.record().to_bytes()), signatures=[forged_signature(scene)]
    ),
    "an old signature under another record": lambda scene: scene.envelope(payload=encoded(scene.record().to_bytes())),
    "another action under an old signature": lambda scene: scene.envelope(
        payload=encoded(replace(scene.entry.record, action=Action.ACCEPT).to_bytes())
    ),
    "another payload type": lambda scene: scene.envelope(payloadType="application/json"),
    "a payload type in other letters": lambda scene: scene.envelope(
        payloadType="application/vnd.AgentWatch.decision.v1+json"
    ),
    "an upper-case key id": lambda scene: scene.good.replace(
        scene.operator.key.public.keyid.encode(), scene.operator.key.public.keyid.upper().encode()
    ),
    "an empty key id": lambda scene: scene.good.replace(scene.operator.key.public.keyid.encode(), b""),
    "a signature of zeros": lambda scene: scene.envelope(
        signatures=[{"keyid": scene.operator.key.public.keyid, "sig": encoded(b"\0" * 64)}]
    ),
    "a byte order mark": lambda scene: b"\xef\xbb\xbf" + scene.good,
    "white space inside": lambda scene: scene.good.replace(b":", b": ", 1),
    "a line break more": lambda scene: scene.good + b"\n",
    "a line break less": lambda scene: scene.good[:-1],
    "half of it": lambda scene: scene.good[: len(scene.good) // 2],
    "two of them": lambda scene: scene.good * 2,
    "a key more": lambda scene: scene.good.replace(b"{", b'{"a":1,', 1),
    "a key twice": lambda scene: scene.good.replace(b'{"payload"', b'{"payload":"","payload"', 1),
    "unpadded base64": lambda scene: scene.good.replace(b'=="', b'"', 1),
    "web-safe base64": lambda scene: scene.envelope(payload=base64.urlsafe_b64encode(b"\xff" * 300).decode()),
    "a decision about another workspace": lambda scene: scene.signed(workspace_id="other-0123456789abcdef"),
    "a version to come": lambda scene: scene.payload(lambda data: data.replace(b'"version":1', b'"version":2')),
    "a version that is true": lambda scene: scene.payload(lambda data: data.replace(b'"version":1', b'"version":true')),
    "the id of another attempt": lambda scene: scene.payload(lambda data: data.replace(b'"attempt":2', b'"attempt":3')),
    "an id of its own": lambda scene: scene.payload(
        lambda data: data.replace(scene.record().decision_id.encode(), b"0" * 32)
    ),
    "a task id twice": lambda scene: scene.payload(
        lambda data: data.replace(b'"task_id":', b'"task_id":"a.b","task_id":', 1)
    ),
    "a record spelled otherwise": lambda scene: scene.payload(lambda data: data.replace(b'","', b'", "', 1)),
    "an unknown action": lambda scene: scene.payload(lambda data: data.replace(b'"retry"', b'"approve"')),
    "a parameter more": lambda scene: scene.payload(
        lambda data: data.replace(b'"mitigation":null', b'"mitigation":null,"approved":true')
    ),
    "a signed list": lambda scene: scene.payload(lambda _: b"[]"),
    "signed nothing": lambda scene: scene.payload(lambda _: b""),
}


def test_there_are_enough_of_them() -> None:
    assert len(FORGERIES) >= 30


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_in_the_mirror_is_no_decision(scene: Scene, name: str) -> None:
    """Seen by an agent in a sandbox, which has the public key and cannot see the ledger."""
    data = FORGERIES[name](scene)
    assert data != scene.good
    place = scene.operator.workspace / ".agentwatch" / "decisions"
    (place / f"{scene.record().decision_id}.json").write_bytes(data)
    found = sandboxed(scene).find(Question("a.b", 2), NOON)
    assert isinstance(found, Forged), found
    # Nor does it get in the way of what is genuine.
    assert isinstance(sandboxed(scene).find(Question("a.b", 1), NOON), Verified)
    told = mirror_missing(
        scene.operator.workspace,
        scene.operator.chain(),
        scene.operator.ledger.bytes_of,
        scene.operator.trust,
        disk=QUICK,
    )
    assert [Path(one.path).name for one in told.foreign] == [f"{scene.record().decision_id}.json"]


def sandboxed(scene: Scene) -> Reader:
    nowhere = scene.operator.root / "nowhere"
    return Reader(
        scene.operator.workspace,
        public_key=scene.operator.key.public.text,
        state=nowhere,
        configuration=nowhere,
        environment={},
    )


def outside(scene: Scene) -> Reader:
    return Reader(
        scene.operator.workspace,
        state=scene.operator.state,
        configuration=scene.operator.configuration,
        environment={},
    )


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_in_the_ledger_is_no_decision(scene: Scene, name: str) -> None:
    next_one = scene.record()
    name_there = f"{next_one.seq:06d}-{next_one.decision_id}.json"
    (scene.operator.ledger.directory / name_there).write_bytes(FORGERIES[name](scene))
    chain = scene.operator.chain()
    assert [entry.record.task_id for entry in chain.entries] == ["a.b", "other"]
    assert [problem.name for problem in chain.problems] == [name_there]
    assert chain.broken is not None
    assert isinstance(outside(scene).find(Question("a.b", 2), NOON), Forged)
    assert isinstance(outside(scene).find(Question("a.b", 1), NOON), Verified)


def place_in_mirror(scene: Scene, name: str, data: bytes) -> None:
    (scene.operator.workspace / ".agentwatch" / "decisions" / name).write_bytes(data)


def test_a_genuine_decision_answers_for_nothing_else(scene: Scene) -> None:
    """Copied over, renamed or asked for wrongly, it stays a decision about attempt 1 of a.b in this workspace."""
    good = scene.good
    place_in_mirror(scene, f"{scene.record().decision_id}.json", good)
    for reader in (sandboxed(scene), outside(scene)):
        for question in (
            Question("a.b", 2),
            Question("a", 1),
            Question("A.B", 1),
            Question("a.b ", 1),
            Question("a.b", 1, return_sha256="0" * 64),
        ):
            assert isinstance(reader.find(question, NOON), Forged | Pending)
        assert isinstance(reader.find(Question("a.b", 1, RETURN), NOON), Verified)


def test_a_copied_workspace_does_not_take_its_decisions_along(scene: Scene, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "workspace"
    copy.parent.mkdir()
    scene.operator.workspace.rename(copy)
    nowhere = tmp_path / "nowhere"
    reader = Reader(
        copy, public_key=scene.operator.key.public.text, state=nowhere, configuration=nowhere, environment={}
    )
    found = reader.find(Question("a.b", 1), NOON)
    assert isinstance(found, Forged)
    assert "another workspace" in found.refused[0].message


def test_a_decision_that_the_ledger_does_not_have_is_not_believed(scene: Scene) -> None:
    """Signed by the operator, set aside later: somebody kept the file and puts it back into the workspace."""
    lost = scene.signed()
    place_in_mirror(scene, f"{scene.record().decision_id}.json", lost)
    found = outside(scene).find(Question("a.b", 2), NOON)
    assert isinstance(found, Forged)
    assert "does not have it" in found.refused[0].message


def test_the_order_of_the_ledger_cannot_be_changed(scene: Scene) -> None:
    scene.operator.decide("third")
    first, second, third = scene.operator.files()
    kept = {path: path.read_bytes() for path in (first, second, third)}

    def left() -> list[str]:
        return [entry.record.task_id for entry in scene.operator.chain().entries]

    # One in the middle is gone; one comes twice under two names; the last is gone and a copy of the first stands there.
    second.unlink()
    assert left() == ["a.b"]
    second.write_bytes(kept[second])
    (third.parent / f"000004-{third.name[7:]}").write_bytes(kept[third])
    assert left() == ["a.b", "other", "third"]
    assert scene.operator.chain().broken is not None
    (third.parent / f"000004-{third.name[7:]}").unlink()
    third.write_bytes(kept[first])
    assert left() == ["a.b", "other"]
    third.write_bytes(kept[third])
    assert scene.operator.chain().problems == ()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("other before", ProblemKind.REWRITTEN),
        ("twice", ProblemKind.DUPLICATE),
        ("two of one number", ProblemKind.DUPLICATE),
        ("an old key", ProblemKind.UNTRUSTED),
    ],
)
def test_what_the_key_signed_must_still_follow(scene: Scene, change: str, kind: ProblemKind) -> None:
    """Even with the signing key a chain cannot be forked, and no attempt decided twice."""
    operator = scene.operator
    if change == "other before":
        made = [scene.record(prev_sha256="0" * 64)]
    elif change == "twice":
        made = [scene.record(attempt=1, action=Action.ABORT)]
    elif change == "two of one number":
        made = [scene.record(), scene.record(attempt=3)]
    else:
        new = operator.keys.rotate(now=NOON)
        entry = operator.ledger.append(operator.draft("new"), new, operator.trust, lambda: RETURN).entry
        made = [scene.record(seq=4, prev_sha256=entry.sha256)]
    count = len(operator.chain().entries)
    for one in made:
        path = operator.ledger.directory / f"{one.seq:06d}-{one.decision_id}.json"
        path.write_bytes(seal(one.to_bytes(), operator.key))
    chain = operator.chain()
    assert len(chain.entries) == count
    assert chain.broken is not None
    assert chain.problems[0].kind is kind
    assert not isinstance(outside(scene).find(Question("a.b", 2), NOON), Verified)


def test_a_key_that_was_replaced_signs_nothing_new(scene: Scene) -> None:
    operator = scene.operator
    operator.keys.rotate(now=NOON)
    assert operator.chain().problems == ()
    later = written(NOON + timedelta(seconds=1))
    forged = scene.record(created_at=later)
    path = operator.ledger.directory / f"{forged.seq:06d}-{forged.decision_id}.json"
    path.write_bytes(seal(forged.to_bytes(), operator.key))
    (problem,) = operator.chain().problems
    assert "retired" in problem.message


def test_a_decision_that_expired_is_told_as_that(scene: Scene) -> None:
    operator = scene.operator
    operator.decide("short", expires_at=NOON + timedelta(hours=1))
    mirror_missing(operator.workspace, operator.chain(), operator.ledger.bytes_of, operator.trust, disk=QUICK)
    for reader in (sandboxed(scene), outside(scene)):
        assert isinstance(reader.find(Question("short"), NOON), Verified)
        found = reader.find(Question("short"), NOON + timedelta(hours=1))
        assert type(found).__name__ == "Expired"


@pytest.mark.parametrize("afar", [False, True])
def test_no_bit_of_a_record_can_be_turned(scene: Scene, afar: bool) -> None:
    scene.operator.trust_kim()
    entry = scene.operator.decide_from_afar("c").entry if afar else scene.entry
    good, name = scene.operator.ledger.bytes_of(entry), entry.name
    trust, workspace_id = scene.operator.trust, scene.operator.workspace_id
    assert isinstance(entry_of(name, good, trust, workspace_id), ChainEntry)
    accepted = [
        (index, bit)
        for index in range(len(good))
        for bit in ([index % 8] if afar else range(8))
        if not isinstance(
            entry_of(name, good[:index] + bytes([good[index] ^ 1 << bit]) + good[index + 1 :], trust, workspace_id),
            ChainProblem,
        )
    ]
    assert accepted == []


def test_no_bit_can_be_turned_in_the_file_either(scene: Scene) -> None:
    """As the two readers see it, for some of the bits; one in each byte would take long."""
    path = scene.operator.files()[0]
    mirrored = scene.operator.workspace / ".agentwatch" / "decisions" / f"{scene.entry.record.decision_id}.json"
    good = path.read_bytes()
    for index in range(0, len(good), 7):
        flipped = good[:index] + bytes([good[index] ^ 1 << index % 8]) + good[index + 1 :]
        path.write_bytes(flipped)
        mirrored.write_bytes(flipped)
        assert Ledger(scene.operator.state, scene.operator.workspace_id).read(scene.operator.trust).entries == ()
        assert isinstance(sandboxed(scene).find(Question("a.b", 1), NOON), Forged)
    path.write_bytes(good)
    assert scene.operator.chain().problems == ()


def test_a_record_cut_off_anywhere_is_none(scene: Scene) -> None:
    good, name = scene.good, scene.entry.name
    for length in range(len(good)):
        found = entry_of(name, good[:length], scene.operator.trust, scene.operator.workspace_id)
        assert isinstance(found, ChainProblem)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "directory", "huge"])
def test_what_is_no_file_is_never_followed_or_waited_for(scene: Scene, kind: str) -> None:
    next_one = scene.record()
    outside_file = scene.operator.root / "signed.json"
    outside_file.write_bytes(scene.signed())
    places = (
        scene.operator.workspace / ".agentwatch" / "decisions" / f"{next_one.decision_id}.json",
        scene.operator.ledger.directory / f"{next_one.seq:06d}-{next_one.decision_id}.json",
    )
    for place in places:
        if kind == "link":
            place.symlink_to(outside_file)
        elif kind == "dangling link":
            place.symlink_to("nowhere")
        elif kind == "pipe":
            os.mkfifo(place)
        elif kind == "directory":
            place.mkdir()
        else:
            with place.open("wb") as file:
                file.truncate(10**10)
    assert isinstance(sandboxed(scene).find(Question("a.b", 2), NOON), Forged)
    assert isinstance(outside(scene).find(Question("a.b", 2), NOON), Forged)
    assert len(scene.operator.chain().entries) == 2
