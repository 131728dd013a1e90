"""A workspace in which two tasks are decided, and the file of a third decision, which is in no ledger."""

import base64
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import time_machine
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from agentwatch.history.store import Recorder
from agentwatch.sources.files.source import FilesSource
from tests.goldens.world import PEM, World


@dataclass
class Scene:
    """`shop.api` is to be retried, `shop.ship` was aborted; `good` would be the next decision: answering `shop.web`."""

    world: World
    good: bytes = b""

    @property
    def shop(self) -> Path:
        return self.world.root / "shop"

    @property
    def state(self) -> Path:
        (found,) = (self.world.home / ".local" / "state" / "agentwatch").glob("shop-*")
        return found

    @property
    def ledger(self) -> Path:
        return self.state / "decisions"

    @property
    def mirror(self) -> Path:
        return self.shop / ".agentwatch" / "decisions"

    @property
    def record(self) -> dict[str, Any]:
        """Return the record in `good`."""
        return record_in(self.good)

    def files(self) -> list[Path]:
        """Return the files of the ledger."""
        return sorted(self.ledger.glob("[0-9]*.json"))

    def decide(self, task: str, *words: str) -> int:
        return self.world.run("decide", task, *words, "--yes", cwd=self.shop).code

    def wait(self, task: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code of `wait` and the document that it prints."""
        done = self.world.run("wait", task, *words, "--timeout", "0", "--json", cwd=self.shop)
        return done.code, json.loads(done.out)

    def verify(self) -> int:
        return self.world.run("verify", cwd=self.shop).code

    def remember(self):
        """Record the workspace in the history, as a screen does after a complete look."""
        files = FilesSource(self.shop)
        recorder = Recorder(self.shop, files.content)
        with time_machine.travel(self.world.now, tick=False):
            recorder.open()
            recorder.queue_events(files.scan().events)
            recorder.is_complete = True
            recorder.poll()


def begun(root: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Make the workspace before anything is decided."""
    world = World(root, monkeypatch)
    world.use_key()
    world.copy_shop(sessions=False)
    return Scene(world)


@pytest.fixture
def undecided(tmp_path, monkeypatch):
    """Return the workspace before anything is decided."""
    return begun(tmp_path / "w", monkeypatch)


@pytest.fixture(scope="session")
def decided(tmp_path_factory):
    """Return the workspace with its decisions, and a copy of it, to be laid at the same path, as ids follow from it."""
    place = tmp_path_factory.mktemp("ledger")
    with pytest.MonkeyPatch.context() as patch:
        made = begun(place / "w", patch)
        assert made.decide("shop.api", "--retry") == 0
        assert made.decide("shop.ship", "--abort") == 0
        assert made.decide("shop.web", "--respond", "8080") == 0
    made.good = made.files()[-1].read_bytes()
    for path in made.world.root.rglob(f"*{made.record['decision_id']}*"):
        path.unlink()
    shutil.rmtree(made.world.root / "bin")
    made.world.root.rename(place / "copy")
    return made, place / "copy"


@pytest.fixture
def scene(decided, monkeypatch):
    """Return the workspace with its decisions."""
    made, copy = decided
    shutil.rmtree(made.world.root, ignore_errors=True)
    world = World(made.world.root, monkeypatch)
    shutil.copytree(copy, world.root, symlinks=True, dirs_exist_ok=True)
    world.now = made.world.now
    return Scene(world, made.good)


DECISION, REQUEST = (f"application/vnd.agentwatch.{name}.v1+json" for name in ("decision", "request"))


class Key(NamedTuple):
    """A key that signs."""

    private: Ed25519PrivateKey

    @property
    def raw(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    @property
    def text(self) -> str:
        return f"ed25519:{base64.b64encode(self.raw).decode()}"

    @property
    def id(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    def sign(self, payload: bytes, kind: str = DECISION, **changes: Any) -> bytes:
        """Return the envelope around a payload; `changes` replace fields of the envelope after signing."""
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
        signature = {"keyid": self.id, "sig": base64.b64encode(self.private.sign(signed)).decode()}
        fields = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": [signature]}
        return compact(fields | changes) + b"\n"


OPERATOR = Key(load_pem_private_key(PEM.encode(), None))
KIM, ATTACKER = (Key(Ed25519PrivateKey.from_private_bytes(seed * 32)) for seed in (b"k", b"a"))


def compact(value: object) -> bytes:
    """Return the only valid spelling of a record."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def record_in(envelope: bytes) -> dict[str, Any]:
    """Return the record in the file of a decision."""
    record: dict[str, Any] = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    return record


def id_of(record: dict[str, Any]) -> str:
    """Return the id that follows from the subject of the decision."""
    about = [record[name] for name in ("workspace_id", "task_id", "attempt", "handoff_sha256", "return_sha256")]
    return hashlib.sha256(compact(about)).hexdigest()[:32]
