"""An operator with keys and a ledger, and the decisions of that operator."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import time_machine
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from agentwatch.decisions.envelope import SigningKey, Trust
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.decisions.ledger import Chain, DecisionMade, Ledger
from agentwatch.decisions.record import (
    Asked,
    Params,
    Record,
    SignedRequest,
    Subject,
    error_words,
    format_time,
    make_draft,
    sign_request,
)
from agentwatch.delegation.decision import Action, RequestKind
from agentwatch.disk import Disk
from agentwatch.state import workspace_id

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HANDOFF = hashlib.sha256(b"handoff").hexdigest()
RETURN = hashlib.sha256(b"return").hexdigest()


KIM = SigningKey(Ed25519PrivateKey.from_private_bytes(b"kim" + b"k" * 29))
"""The key of an operator on another machine."""


def at(moment: datetime) -> time_machine.travel:
    """Return a clock that stands still at this moment."""
    return time_machine.travel(moment, tick=False)


class Quick(Disk):
    """Syncs nothing: in a test there is no power failure, and hundreds of syncs take minutes on a busy disk."""

    def fsync(self, descriptor: int):  # type: ignore[override]
        os.fstat(descriptor)


class Closed(Quick):
    """A disk on which no file below `place` can be opened."""

    def __init__(self, place: Path, number: int):
        self._place, self._number = place, number

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
        if dir_fd is None and Path(path).is_relative_to(self._place):
            raise OSError(self._number, os.strerror(self._number))
        return os.open(path, flags, mode, dir_fd=dir_fd)


QUICK = Quick()


@dataclass
class Operator:
    """The directories of one operator and the workspace, all below `root`. The ledger writes through `disk`."""

    root: Path
    disk: Disk = QUICK

    def __post_init__(self):
        self.workspace, self.configuration = self.root / "workspace", self.root / "configuration"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.workspace_id = workspace_id(self.workspace)
        self.state = self.root / "state" / "agentwatch" / self.workspace_id
        self.keys = Keys(self.configuration, QUICK)
        self.key = self.keys.load() if self.keys.directory.exists() else self.keys.create()
        self.ledger = Ledger(self.state, self.workspace_id, self.disk)

    @property
    def trust(self) -> Trust:
        return self.keys.trust()

    def subject(self, task_id: str = "a.b", attempt: int = 1) -> Subject:
        return Subject(self.workspace_id, task_id, attempt, HANDOFF, RETURN)

    def draft(self, task_id: str = "a.b", action: Action = Action.RETRY, **changes: Any) -> Record:
        values: dict[str, Any] = {
            "subject": self.subject(task_id, changes.pop("attempt", 1)),
            "action": action,
            "params": Params(),
            "note": "once more",
            "operator": "ada",
            "created_at": NOON,
        }
        return make_draft(**(values | changes))

    def decide(
        self,
        task_id: str = "a.b",
        action: Action = Action.RETRY,
        returned: Callable[[], str | None] = lambda: RETURN,
        **changes: Any,
    ) -> DecisionMade:
        return self.ledger.append(self.draft(task_id, action, **changes), self.key, self.trust, returned)

    def signed(self, task_id: str = "a.b", key: SigningKey = KIM, host: str = "", **changes: Any) -> str:
        """Return a request that another operator signs at noon, for this host to record within five minutes."""
        record_by = changes.pop("record_by", NOON + timedelta(minutes=5))
        asked = self.draft(task_id, **changes)
        return sign_request(SignedRequest(host or self.key.public.keyid, format_time(record_by), asked), key)

    def trust_kim(self):
        with at(NOON):
            self.keys.trust_key(Role.OPERATOR, KIM.public, "kim")

    def decide_from_afar(self, task_id: str = "a.b", **changes: Any) -> DecisionMade:
        """Record a decision that kim has signed, as this host does; `later` is the time until then."""
        at = NOON + changes.pop("later", timedelta())
        signed = self.signed(task_id, **changes)
        changes.pop("record_by", None)
        return self.decide(task_id, **(changes | {"created_at": at, "operator": "kim", "signed_request": signed}))

    def chain(self) -> Chain:
        """Return the ledger as somebody else sees it who has read nothing of it before."""
        return Ledger(self.state, self.workspace_id).read(self.trust)

    def files(self) -> list[Path]:
        return sorted(path for path in self.ledger.directory.iterdir() if path.suffix == ".json")


def record(**changes: Any) -> Record:
    """Return a valid record, the second of its workspace, with some fields changed. Raises RecordError if invalid."""
    values: dict[str, Any] = {
        "workspace_id": "shop-0123456789abcdef",
        "seq": 2,
        "prev_sha256": "0" * 64,
        "task_id": "a.b",
        "attempt": 1,
        "handoff_sha256": HANDOFF,
        "return_sha256": RETURN,
        "action": Action.RETRY,
        "params": Params(),
        "note": "once more",
        "operator": "ada",
        "created_at": "2030-01-01T12:00:00Z",
        "expires_at": None,
    } | changes
    subject = Subject(**{name: values.get(name) for name in Subject._fields})
    try:
        return Record(**({"version": 1, "decision_id": subject.decision_id} | values))
    except ValidationError as error:
        raise RecordError(error_words(error)) from error


ASKED = Asked("claude", "5f0c", "nonce", RequestKind.PERMISSION, "1" * 64)


def answer(**changes: Any) -> Record:
    """Return a valid record of an answer that expires after ten minutes."""
    values = {"version": 2, "action": Action.ALLOW, "note": "", "expires_at": "2030-01-01T12:10:00Z", "request": ASKED}
    return record(**(values | {"handoff_sha256": None, "return_sha256": None} | changes))
