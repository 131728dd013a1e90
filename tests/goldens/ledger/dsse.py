"""Signs and opens envelopes by the public format (DSSE with Ed25519), without any code of the product."""

import base64
import hashlib
import json
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from tests.goldens.world import PEM

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
        """The envelope around a payload; `changes` replace fields of it afterwards."""
        signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
        signature = {"keyid": self.id, "sig": base64.b64encode(self.private.sign(signed)).decode()}
        fields = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": [signature]}
        return compact(fields | changes) + b"\n"


def _read(pem: str) -> Key:
    private = load_pem_private_key(pem.encode(), None)
    assert isinstance(private, Ed25519PrivateKey)
    return Key(private)


OPERATOR = _read(PEM)
KIM, ATTACKER = (Key(Ed25519PrivateKey.from_private_bytes(seed * 32)) for seed in (b"k", b"a"))


def compact(value: object) -> bytes:
    """The one spelling of a record."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def record_in(envelope: bytes) -> dict[str, Any]:
    """The record in the file of a decision."""
    record: dict[str, Any] = json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    return record


def id_of(record: dict[str, Any]) -> str:
    """The id that follows from what is decided about."""
    about = [record[name] for name in ("workspace_id", "task_id", "attempt", "handoff_sha256", "return_sha256")]
    return hashlib.sha256(compact(about)).hexdigest()[:32]
