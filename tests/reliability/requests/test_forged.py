"""For any content of the box, the ledger and the receipts, and any message of Codex's server: the holder of a request
gets the operator's decision about its very input, at most once, or nothing.

`AGENTWATCH_REQUESTS=100000` and `AGENTWATCH_CODEX` search longer than CI has time for."""

import json
import os
import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agentwatch.decisions.envelope import SigningKey, seal
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import file_name
from agentwatch.decisions.record import Params, Record, format_time, to_asked
from agentwatch.delegation.decision import Action, Request
from agentwatch.requests.codex import CodexClient, Wire
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer
from tests.unit.decisions.made import QUICK, answer
from tests.unit.requests.asked import ANSWERED, Place, question, request
from tests.unit.requests.codex_server import COMMAND, PATCH, SERVER, THREAD, calling, change, command, patch, tool_call

_ROUNDS = int(os.environ.get("AGENTWATCH_REQUESTS", "240"))
_ROUNDS_OF_A_PLACE = 25

GARBAGE = (b"", b"{}", b"[" * 5_000, b"\xff\xfe", b'{"version":1}', os.urandom(300), b"null", b"0" * 3_000_000)


class Round:
    """One request that is held, and all attacks by somebody who may write into the state directory."""

    def __init__(self, random: Random, place: Place, stranger: SigningKey, old: list[bytes]):
        self.random, self.place, self.stranger, self.old = random, place, stranger, old
        make = random.choice((request, question))
        self.held: Request = make(place.workspace, nonce=f"n{random.randrange(10**12)}", asked_at=time.time())
        self.answered: list[Record] = []
        """The operator's decisions about this very request; only these may be given to its holder."""
        self.disturbed = False
        """Whether an attack happened because of which an answer may get lost."""

    @property
    def offered(self) -> Path:
        return self.place.store.directory / f"{self.held.request_id}.json"

    def write_next(self, data: bytes, record: Record | None = None):
        """Write `data` as the next file of the ledger."""
        self.disturbed = True
        self.write(self.place.state / "decisions" / file_name(record or self.record()), data)

    def answer(self):
        """Let the operator answer the request that is held."""
        action = self.random.choice(self.held.actions)
        params = ANSWERED if action is Action.ANSWER else Params()
        note = self.random.choice(("", "No.", "\u202e x")) if action is Action.DENY else ""
        with suppress(DecisionError):
            self.answered.append(self.place.answer(self.held, action, params, note=note).record)

    def answer_another(self):
        """Let the operator answer a request that is nearly the same."""
        change = self.random.choice(
            ({"nonce": "other"}, {"session_id": "other"}, {"source": "other"}, {"command": "x"})
        )
        given = {"nonce": self.held.nonce, "given": json.loads(self.held.input)} | change
        if "command" in change:
            given.pop("given")
        with suppress(DecisionError):
            self.place.answer(request(self.place.workspace, **given))  # type: ignore[arg-type]

    def sign_as_stranger(self):
        """Sign a decision about the very request with a stranger's key."""
        self.forge(self.record(), self.stranger)

    def sign_otherwise(self):
        """Sign with the operator's key a record that does not fit: expired, older than the request, or expiring now."""
        key = self.place.key
        now = datetime.now(UTC)
        changes = self.random.choice(
            (
                {
                    "created_at": format_time(now - timedelta(minutes=9)),
                    "expires_at": format_time(now - timedelta(seconds=1)),
                },
                {"created_at": format_time(now - timedelta(seconds=5))},
                {"action": Action.DENY, "note": "", "params": Params(), "expires_at": format_time(now)},
            )
        )
        self.forge(self.record(**changes), key)

    def record(self, **changes: object) -> Record:
        entries = self.place.chain().entries
        now = datetime.now(UTC)
        values = {
            "workspace_id": self.place.store.workspace_id,
            "seq": len(entries) + 1,
            "prev_sha256": entries[-1].sha256 if entries else None,
            "operator": "mallory",
            "created_at": format_time(now),
            "expires_at": format_time(now + timedelta(minutes=1)),
            "request": to_asked(self.held),
        }
        return answer(**(values | {"action": Action.DENY} | changes))

    def forge(self, record: Record, key: SigningKey):
        self.write_next(seal(record.to_bytes(), key), record)

    def replay(self):
        """Write a genuine older decision under the name of the next one."""
        if self.old:
            self.write_next(self.random.choice(self.old))

    def spoil_ledger(self):
        self.write_next(self.random.choice(GARBAGE))

    def spoil_box(self):
        """Write another file into the box, which must not affect the request that is held."""
        name = self.random.choice((f"{self.random.getrandbits(128):032x}.json", "x", ".writing-x", "notes.txt"))
        self.write(self.place.store.directory / name, self.random.choice(GARBAGE))

    def spoil_offer(self):
        """Replace the file of the offer; the operator may then see anything."""
        self.disturbed = True
        data = self.offered.read_bytes() if self.offered.is_file() else b""
        how = self.random.randrange(5)
        with suppress(OSError):
            if how == 0:
                self.write(self.offered, self.random.choice(GARBAGE))
                return
            self.offered.unlink()
            if how == 1:
                (self.place.root / "elsewhere").write_bytes(data)
                self.offered.symlink_to(self.place.root / "elsewhere")
            elif how == 2:
                self.offered.mkdir()
            elif how == 3:
                other = replace(self.held, shown="ls", said="harmless")
                self.place.store.offer(other)
            else:
                self.write(self.offered, data.replace(b"touch x", b"rm -rf /"))

    def claim(self):
        """Claim the request before its holder does."""
        self.disturbed = True
        name = self.random.choice(("claim", "delivered", "acted"))
        content = self.random.choice((b"", b"{}", json.dumps({"by": "mallory", "at": "9999-01-01T00:00:00Z"}).encode()))
        self.write(self.place.state / "receipts" / f"{self.held.request_id}.{name}.json", content)

    def claim_in_workspace(self):
        """Write claims and decisions into the workspace, as an agent can; they must have no effect."""
        own = self.place.workspace / ".agentwatch"
        self.write(own / "receipts" / f"{self.held.request_id}.claim.json", b"{}")
        if self.old:
            self.write(own / "decisions" / f"{self.held.request_id}.json", self.random.choice(self.old))

    @staticmethod
    def write(path: Path, data: bytes):
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        with suppress(OSError):
            path.write_bytes(data)

    def steps(self) -> list[Callable[[], None]]:
        hostile = [
            self.answer_another, self.sign_as_stranger, self.sign_otherwise, self.replay, self.spoil_ledger,
            self.spoil_box, self.spoil_offer, self.claim, self.claim_in_workspace,
        ]  # fmt: skip
        steps = self.random.sample(hostile, k=self.random.randrange(4))
        if self.random.random() < 0.7:
            steps.insert(self.random.randrange(len(steps) + 1), self.answer)
        return steps


@pytest.mark.parametrize("part", range(2))
def test_a_holder_gets_what_was_decided_about_its_input_alone(tmp_path, part):
    random, given, lost = Random(), 0, 0
    stranger = Keys(tmp_path / "stranger", QUICK).create()
    old: list[bytes] = []
    for number in range(_ROUNDS // 2):
        if number % _ROUNDS_OF_A_PLACE == 0:
            place = Place(tmp_path / f"{number}")
        one = Round(random, place, stranger, old)
        holders = [place.holder(), place.holder()]
        offers: list[Offer] = [holder.store.offer(one.held) for holder in holders]
        got: list[Record] = []
        for step in [*one.steps(), lambda: None]:
            step()
            # Two holders look, in either order.
            for which in random.sample((0, 1), 2):
                record = holders[which].take_answer(offers[which])
                got += [] if record is None else [record]
        assert len(got) <= 1, "given twice"
        for record in got:
            assert record in one.answered, "nobody decided that"
            assert record.request == to_asked(one.held)
        if one.answered and not one.disturbed:
            assert got, "an answer got lost though nobody got in its way"
        given, lost = given + len(got), lost + (not got and bool(one.answered))
        for offer in offers:
            with suppress(OSError):
                offer.__exit__(None, None, None)
        old += [path.read_bytes() for path in list((place.state / "decisions").glob("*.json"))[-1:]]
        # The box shows only requests that were really offered; for other files it has a problem.
        assert all(read.request_id for read in place.store.read())
        with suppress(DecisionError):
            place.desk().ledger.set_aside(place.trust)
    assert given > _ROUNDS // 40
    assert lost > 0


CONNECTIONS = int(os.environ.get("AGENTWATCH_CODEX", "60"))
STEPS = 25
_CONNECTIONS_OF_A_PLACE = 10


def told(method: str, **params: object) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": THREAD, **params}}


FRAMES = [
    {},
    {"id": 0},
    {"id": 0, "method": COMMAND},
    {"id": [], "method": COMMAND, "params": {"threadId": THREAD}},
    {"id": None, "method": 5, "params": []},
    *(told("serverRequest/resolved", requestId=wrong) for wrong in ("0", False, None)),
    told("item/started", item=[]),
    {"method": "thread/status/changed", "params": {"threadId": 7, "status": "idle"}},
]


class Chaos(Wire):
    """A server without a socket, which does something at random each time that a client listens to it."""

    def __init__(self, place: Place, chance: random.Random, decided: dict[str, Action]):
        self.place, self.chance, self.decided = place, chance, decided
        self.pending: dict[object, dict[str, Any]] = {}
        self.items: list[dict[str, Any]] = []
        self.queue: deque[Any] = deque()
        self.given: list[tuple[str, Action]] = []
        self.left = STEPS
        self.next = 0

    def call(self, method: str, **params: object) -> Any:
        if self.chance.random() < 0.02:
            raise ConnectionError("lost")
        match method:
            case "initialize":
                return {"userAgent": "codex-tui/0.169.0 (x)"}
            case "thread/loaded/list":
                return {"data": [THREAD]}
            case "thread/read":
                status = {"type": "active", "activeFlags": ["waitingOnApproval"]}
                return {"thread": {"id": THREAD, "cwd": str(self.place.workspace), "status": status}}
            case "thread/resume":
                self.queue.extend(self.pending.values())
                return {"initialTurnsPage": {"data": [{"items": list(self.items)}]}}
        return {}

    def send(self, message: dict[str, Any]):
        if "result" not in message:
            return
        waiting = self.pending.pop(message["id"], None)
        assert waiting is not None, "an answer to nothing"
        accepted = message["result"] in ({"decision": "accept"}, {"action": "accept", "content": {}})
        if not accepted:
            assert message["result"] in ({"decision": "decline"}, {"action": "decline", "content": None})
        action = Action.ALLOW if accepted else Action.DENY
        self.given.append((json.dumps(waiting["params"], sort_keys=True), action))
        if self.chance.random() < 0.2:
            raise ConnectionError("lost")
        self.queue.append(told("serverRequest/resolved", requestId=message["id"]))

    def receive(self, seconds: float) -> Any:
        if not self.queue and seconds:
            self.step()
        return self.queue.popleft() if self.queue else None

    def step(self):
        self.left -= 1
        if not self.left:
            raise ConnectionError("lost")
        chance, ids = self.chance, list(self.pending)
        match chance.choice(["ask"] * 3 + ["decide"] * 4 + ["resolve", "again", "other", "status", "patch", "garbage"]):
            case "ask":
                self.begin(self.next, self.asked())
                self.next += 1
            case "decide":
                self.decide()
            case "resolve" if ids:
                resolved = told("serverRequest/resolved", requestId=self.pending.pop(chance.choice(ids))["id"])
                self.queue.extend([resolved] * chance.choice([1, 2]))
            case "again" if ids:
                self.queue.append(self.pending[chance.choice(ids)])
            case "other" if ids:
                # This uses the same id for another input.
                self.begin(chance.choice(ids), self.asked())
            case "status":
                flags = chance.choice([[], ["waitingOnApproval"]])
                self.queue.append(told("thread/status/changed", status={"type": "active", "activeFlags": flags}))
            case "patch" if self.items:
                item = chance.choice(self.items)
                self.items.remove(item)
                changed = {"path": "/x", "kind": {"type": "add"}, "diff": str(chance.random())}
                self.items.append(item | {"changes": [changed]})
                # A request about the old patch is asked again under its id, once the new patch is known.
                self.queue.append(told("item/fileChange/patchUpdated", itemId=item["id"]))
            case "garbage":
                self.queue.append(chance.choice(FRAMES))

    def asked(self) -> tuple[str, dict[str, Any]]:
        # With few items and few commands, many requests are equal in part.
        item, words = f"call_{self.chance.randrange(3)}", f"touch {self.chance.randrange(3)}"
        match self.chance.randrange(4):
            case 0:
                return PATCH, patch(item)
            case 1:
                return SERVER, tool_call(what=words)
        return COMMAND, command(words, item)

    def begin(self, rpc_id: int, asked: tuple[str, dict[str, Any]]):
        method, params = asked
        item = {PATCH: change(str(params.get("itemId"))), SERVER: calling("call_7", what="touch 1")}.get(method)
        if item is not None and item["id"] not in [one["id"] for one in self.items]:
            self.items.append(item)
            self.queue.append(told("item/started", item=item))
        self.pending[rpc_id] = {"id": rpc_id, "method": method, "params": {"threadId": THREAD, **params}}
        self.queue.append(self.pending[rpc_id])

    def decide(self):
        offers = [one for one in self.place.store.read() if one.is_answerable]
        if not offers:
            return
        asked, action = self.chance.choice(offers), self.chance.choice([Action.ALLOW, Action.DENY])
        try:
            self.place.answer(asked, action)
        except DecisionError:
            return
        params = json.loads(asked.input)
        params.pop("changes", None)
        self.decided[json.dumps(params, sort_keys=True)] = action


class ChaosHolder(Holder):
    """A holder during whose look for an answer the server does another step."""

    wire: Chaos

    def take_answer(self, offer: Offer) -> Record | None:
        record = super().take_answer(offer)
        if record is not None and self.wire.chance.random() < 0.5:
            self.wire.step()
        return record


def test_codex_gets_only_decisions_about_waiting_requests(tmp_path):
    seed = random.randrange(2**32)
    chance, given = random.Random(seed), 0
    for number in range(CONNECTIONS):
        if number % _CONNECTIONS_OF_A_PLACE == 0:
            place, decided = Place(tmp_path / f"{number}"), dict[str, Action]()
            holder = place.holder("codex", kind=ChaosHolder)
            client = CodexClient(place.workspace, tmp_path, holder)
        holder.wire = wire = Chaos(place, chance, decided)
        with suppress(OSError):
            client.serve(wire)
        assert not [one for one in place.store.read() if one.is_open], f"seed {seed}: held after the end"
        for params, action in wire.given:
            assert decided.get(params) is action, f"seed {seed}: {params}"
        given += len(wire.given)
    assert given > CONNECTIONS / 10
