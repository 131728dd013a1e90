"""A host whose agents hand out work, and operators on other machines who decide about it."""

import asyncio
import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agentwatch.config import Settings
from agentwatch.decisions.errors import DecisionError, UncertainError, UnreachableError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.decisions.ledger import Chain
from agentwatch.decisions.reader import LookupResult, Question, Reader
from agentwatch.decisions.record import (
    AlreadyDecidedError,
    Params,
    Record,
    SignedRequest,
    Subject,
    format_time,
    make_draft,
    sign_request,
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
from tests.journeys.made import handoff, returned
from tests.unit.decisions.made import NOON, QUICK, at

OPERATORS = ("kim", "alice")
LIFETIME = timedelta(days=7)


class Host:
    """A host that trusts kim and alice, and not the stranger; its files and those of the operators' machines lie below
    `root`. The clock stands at `now` until a test moves it."""

    ahead = 0.0
    """Seconds by which the times of its files are ahead."""

    def __init__(self, root: Path, home: Path | None = None):
        self.root, self.workspace = root, root / "shop"
        self.state, self.configuration = root / "state", root / "configuration"
        if home is not None:
            # These are the directories of processes that a user with this home starts.
            self.state = home / "state" / "agentwatch" / workspace_id(self.workspace)
            self.configuration = home / "config" / "agentwatch"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.disk: Disk = QUICK
        self.now = NOON
        self.desk = self.open_desk()
        self.key = self.desk.keys.create()
        self.keys = {name: Keys(root / name, QUICK).create() for name in (*OPERATORS, "stranger")}
        with at(NOON.replace(year=2020)):
            for name in OPERATORS:
                self.desk.keys.trust_key(Role.OPERATOR, self.keys[name].public, name)
        self._monitor: Monitor | None = None

    @property
    def place(self) -> dict[str, Any]:
        return {"state": self.state, "configuration": self.configuration}

    def open_desk(self) -> DecisionService:
        return DecisionService(self.workspace, disk=self.disk, **self.place)

    def holder(self) -> Holder:
        return Holder(self.workspace, name="test", disk=QUICK, **self.place)

    def operator(self, line: Any, workspace_id: Callable[[], str], name: str = "kim") -> RemoteDesk:
        """Return the desk of an operator who uses this line."""
        own = {"state": self.root / name / "state", "configuration": self.root / name, "disk": QUICK}
        return RemoteDesk(line, workspace_id, Path("/ssh:build1:/shop"), **own)

    def fail(self, task_id: str = "a", attempt: int = 1, summary: str = "It broke."):
        """Write an attempt that was handed out and has failed."""
        packet = handoff(task_id, attempt=attempt)
        text = returned(task_id=f"{task_id}\nattempt: {attempt}", summary=summary)
        for name, content in (("handoff.json", packet), ("return.md", text)):
            beside = self.workspace / "beside"
            beside.write_text(content, "utf-8")
            os.utime(beside, (time.time() + self.ahead,) * 2)
            beside.rename(self.workspace / f"{task_id}-{attempt}.{name}")
        self.forget()

    def monitor(self) -> Monitor:
        """Return a monitor that has looked at the present state."""
        if self._monitor is None:
            given = {
                "open_desk": self.open_desk,
                "open_inbox": lambda: Inbox(RequestStore(self.workspace, state=self.state, disk=QUICK)),
            }
            self._monitor = Monitor(self.workspace, Settings(), FilesSource(self.workspace), time.time, **given)
            self._monitor.scan()
            for part in (self._monitor.decision_watcher, self._monitor.inbox):
                assert part is not None
                part.is_idle = True
        return self._monitor

    def forget(self):
        """Begin with a new relay."""
        self._monitor = None

    def subject(self, task_id: str = "a") -> Subject:
        return self.desk.subject(self.monitor().tree.tasks[task_id])

    def signed(self, task_id: str = "a", action: Action = Action.RETRY, by: str = "kim", **changes: Any) -> str:
        """Return a request about the task as it is now, signed by an operator at the host's present time."""
        at: datetime = changes.pop("at", self.now)
        record_by: datetime = changes.pop("record_by", at + timedelta(minutes=5))
        values = {
            "subject": changes.get("subject") or self.subject(task_id),
            "action": action,
            "params": Params(),
            "note": "once more" if action is Action.RETRY else "",
            "operator": "-",
            "created_at": at,
            "expires_at": at + LIFETIME,
        }
        request = SignedRequest(self.key.public.keyid, format_time(record_by), make_draft(**(values | changes)))
        return sign_request(request, self.keys[by])

    def record(self, text: str) -> Result:
        """Record a request as the relay does."""
        return asyncio.run(record_signed(self.monitor(), text, self.now))

    def chain(self) -> Chain:
        return self.open_desk().read()

    def records(self) -> list[Record]:
        return [entry.record for entry in self.chain().entries]

    def wait(self) -> LookupResult:
        """Return the answer that an agent on the host gets."""
        with at(self.now):
            return Reader(self.workspace, environment={}, **self.place).find(Question("a", 1))


class Line:
    """The line between a desk and a host. If it is deaf, no answer comes back; `bent` may change answers."""

    label, refusal = "build1", ""
    why_lost = "cannot be reached: the connection is refused"

    def __init__(self, host: Host):
        self.host = host
        self.key = host.key.public
        self.lost_since: float | None = None
        self.sent: list[str] = []
        self.is_deaf = False
        self.bent: Callable[[Result], Result] = lambda result: result

    @property
    def now(self) -> float:
        return self.host.now.timestamp()

    def decide(self, workspace: str, request: str) -> Result | None:
        assert self.lost_since is None, "nothing is sent where nobody is"
        assert workspace == self.host.desk.workspace_id
        self.sent.append(request)
        result = self.bent(self.host.record(request))
        return None if self.is_deaf else result

    def desk(self, name: str = "kim") -> RemoteDesk:
        return self.host.operator(self, lambda: self.host.desk.workspace_id, name)


class Said:
    """The answer that an operator has got about one decision."""

    def __init__(self, action: Action):
        self.action = action
        self.word = ""
        self.existing: Record | None = None

    def decide(self, desk: RemoteDesk, subject: Subject):
        self.word, self.existing = "recorded", None
        try:
            desk.decide(subject, self.action, note="once more", find_digest=lambda: None)
        except AlreadyDecidedError as error:
            self.word, self.existing = "otherwise", error.existing
        except UncertainError:
            self.word = "unknown"
        except UnreachableError:
            self.word = "not sent"
        except DecisionError as error:
            self.word = f"refused: {error}"


def told_the_truth(host: Host, task_id: str, said: list[Said]):
    """Check that kim and alice got answers about a task's only attempt that agree with the ledger."""
    records = [one for one in host.records() if one.task_id == task_id]
    assert len(records) <= 1, "doubled"
    held = records[0] if records else None
    for one, name in zip(said, OPERATORS, strict=True):
        if one.word == "recorded":
            assert held is not None, "lost"
            assert held.action is one.action
        elif one.word == "otherwise":
            assert held is not None
            assert held == one.existing
            assert held.action is not one.action
        else:
            assert one.word.startswith(("refused", "not sent")), one.word
            assert held is None or held.operator != name, "recorded, and its operator was told that it is not"
