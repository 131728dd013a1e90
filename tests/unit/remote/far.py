"""A host whose agents hand out work, and operators on other machines who decide about it."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.config import Settings
from agentwatch.decisions import keys as keys_module
from agentwatch.decisions.envelope import PublicKey, SigningKey
from agentwatch.decisions.errors import DecisionError, UncertainError, UnreachableError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.decisions.ledger import Chain
from agentwatch.decisions.reader import Found, Question, Reader
from agentwatch.decisions.record import (
    AlreadyDecidedError,
    Params,
    Record,
    SignedRequest,
    Subject,
    draft_of,
    sign,
    written,
)
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.disk import Disk
from agentwatch.monitor import Monitor
from agentwatch.remote.desk import RemoteDesk, record_signed
from agentwatch.remote.protocol import Result
from agentwatch.requests.holding import Holder
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources.files.source import FilesSource
from agentwatch.state import workspace_id
from tests.reliability.commands.stage import HANDOFF, returned
from tests.unit.decisions.made import KIM, NOON, QUICK, at

ALICE = SigningKey(Ed25519PrivateKey.from_private_bytes(b"alice" + b"a" * 27))
STRANGER = SigningKey(Ed25519PrivateKey.from_private_bytes(b"s" * 32))
LIFETIME = timedelta(days=7)


class Host:
    """Everything lies below `root`. It trusts kim and alice. The clock stands at `now` until a test moves it."""

    ahead = 0.0
    """Seconds by which the clock of its files is."""

    def __init__(self, root: Path, disk: Disk = QUICK, home: Path | None = None):
        self.workspace, self.state, self.configuration = root / "shop", root / "state", root / "configuration"
        if home is not None:
            # Where processes of a user with this home have it.
            self.state = home / "state" / "agentwatch" / workspace_id(self.workspace)
            self.configuration = home / "config" / "agentwatch"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.disk = disk
        self.now = NOON
        self.desk = self.open_desk()
        self.key = self.desk.keys.create()
        for key, name in ((KIM, "kim"), (ALICE, "alice")):
            with suppress(OSError), at(NOON.replace(year=2020)):
                self.desk.keys.trust_other(Role.OPERATOR, key.public, name)
        self._monitor: Monitor | None = None

    def open_desk(self) -> DecisionService:
        return DecisionService(self.workspace, state=self.state, configuration=self.configuration, disk=self.disk)

    def holder(self) -> Holder:
        return Holder(self.workspace, name="test", state=self.state, configuration=self.configuration, disk=QUICK)

    def fail(self, task_id: str = "a", attempt: int = 1, summary: str = "It broke."):
        """An attempt that was handed out, and came back with an error."""
        packet = HANDOFF | {"task_id": task_id, "attempt": attempt}
        text = returned(summary).replace("task_id: shop.api", f"task_id: {task_id}\nattempt: {attempt}")
        for name, content in (("handoff.json", json.dumps(packet)), ("return.md", text)):
            beside = self.workspace / "beside"
            beside.write_text(content, "utf-8")
            os.utime(beside, (time.time() + self.ahead,) * 2)
            beside.rename(self.workspace / f"{task_id}-{attempt}.{name}")
        self._monitor = None

    def monitor(self) -> Monitor:
        """One that has looked at what is there now."""
        if self._monitor is None:
            source = FilesSource(self.workspace)
            given = {
                "open_desk": self.open_desk,
                "open_inbox": lambda: Inbox(RequestStore(self.workspace, state=self.state, disk=QUICK)),
            }
            self._monitor = Monitor(self.workspace, Settings(), source, time.time, **given)  # type: ignore[arg-type]
            self._monitor.scan()
            for part in (self._monitor.clerk, self._monitor.inbox):
                assert part is not None
                part.idle = True
        return self._monitor

    def forget(self):
        """The relay begins anew."""
        self._monitor = None

    def subject(self, task_id: str = "a") -> Subject:
        return self.desk.subject(self.monitor().tree.tasks[task_id])

    def signed(self, task_id: str = "a", action: Action = Action.RETRY, key: SigningKey = KIM, **changes: Any) -> str:
        """The request of an operator, now by the clock of the host, who looks at the task as it is now."""
        at: datetime = changes.pop("at", self.now)
        host: str = changes.pop("host", self.key.public.keyid)
        record_by: datetime = changes.pop("record_by", at + timedelta(minutes=5))
        values: dict[str, Any] = {
            "subject": changes.pop("subject", None) or self.subject(task_id),
            "action": action,
            "params": Params(),
            "note": "once more",
            "operator": "-",
            "created_at": at,
            "expires_at": at + LIFETIME,
        }
        return sign(SignedRequest(host, written(record_by), draft_of(**(values | changes))), key)

    def record(self, text: str) -> Result:
        """As the relay does it."""
        return asyncio.run(record_signed(self.monitor(), text, self.now))

    def chain(self) -> Chain:
        return self.open_desk().read()

    def records(self) -> list[Record]:
        return [entry.record for entry in self.chain().entries]

    def wait(self, task_id: str = "a", attempt: int = 1, now: datetime | None = None) -> Found:
        """The answer that an agent there gets."""
        with at(now or self.now):
            reader = Reader(self.workspace, state=self.state, configuration=self.configuration, environment={})
            return reader.find(Question(task_id, attempt))


class Line:
    """The line between a desk and a host; a deaf one hears no answer."""

    def __init__(self, host: Host, label: str = "build1"):
        self.host = host
        self.label = label
        self.key: PublicKey | None = host.key.public
        self.lost_since: float | None = None
        self.why, self.refusal = "cannot be reached: the connection is refused", ""
        self.sent: list[str] = []
        self.is_deaf = False

    @property
    def now(self) -> float:
        return self.host.now.timestamp()

    def decide(self, workspace: str, request: str) -> Result | None:
        assert self.lost_since is None, "nothing is sent where nobody is"
        assert workspace == self.host.desk.workspace_id
        self.sent.append(request)
        result = self.host.record(request)
        return None if self.is_deaf else result

    def desk(self, root: Path, key: SigningKey = KIM) -> RemoteDesk:
        """Of an operator, whose machine is below `root`."""
        return desk_of(self, lambda: self.host.desk.workspace_id, root, key)


def desk_of(host: Any, workspace_id: Callable[[], str], root: Path, key: SigningKey) -> RemoteDesk:
    """The desk of an operator, whose machine is below `root`, for a workspace of a host."""
    configuration = root / "configuration"
    keys_of(configuration, key)
    where: dict[str, Any] = {"state": root / "state", "configuration": configuration, "disk": QUICK}
    return RemoteDesk(host, workspace_id, Path("/ssh:build1:/shop"), **where)


class Said:
    """The answer that an operator has got about one decision."""

    def __init__(self, action: Action):
        self.action = action
        self.word = ""
        self.existing: Record | None = None

    def decide(self, desk: RemoteDesk, subject: Subject):
        self.word, self.existing = "recorded", None
        try:
            desk.decide(subject, self.action, note="once more", returned=lambda: None)
        except AlreadyDecidedError as error:
            self.word, self.existing = "otherwise", error.existing
        except UncertainError:
            self.word = "unknown"
        except UnreachableError:
            self.word = "not sent"
        except DecisionError as error:
            self.word = f"refused: {error}"


def told_the_truth(records: list[Record], said: list[Said]):
    """Kim and alice were told of one attempt as the ledger has it."""
    assert len(records) <= 1, "doubled"
    held = records[0] if records else None
    for one, key in zip(said, (KIM, ALICE), strict=True):
        if one.word == "recorded":
            assert held is not None, "lost"
            assert held.action is one.action
        elif one.word == "otherwise":
            assert held is not None
            assert held == one.existing
            assert held.action is not one.action
        else:
            assert one.word.startswith(("refused", "not sent")), one.word
            is_own = held is not None and key.public.keyid in str(held.signed_request)
            assert not is_own, "recorded, and its operator was told that it is not"


def keys_of(configuration: Path, key: SigningKey) -> Keys:
    """The keys of an operator whose key is known."""
    keys = Keys(configuration)
    if not keys.directory.exists():
        with patch.object(keys_module, "_generated", lambda: key):
            keys.create()
    return keys
