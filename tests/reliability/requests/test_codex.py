"""Whatever Codex's server says, and whenever it is lost: it gets nothing but what was decided for the very input that
waits under that id of that connection."""

import json
import os
import random
from collections import deque
from contextlib import suppress
from typing import Any

from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.requests.codex import CodexClient, Wire
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer
from tests.unit.decisions.made import QUICK
from tests.unit.requests.asked import Place, place
from tests.unit.requests.codex_server import COMMAND, PATCH, SERVER, THREAD, calling, change, command, patch, tool_call

__all__ = ["place"]

CONNECTIONS = int(os.environ.get("AGENTWATCH_CODEX", "100"))
STEPS = 25


class Chaos(Wire):
    """A server without a socket, which does something at random each time that somebody listens to it."""

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
        self.queue.append(self.told("serverRequest/resolved", requestId=message["id"]))

    def receive(self, seconds: float) -> Any:
        if not self.queue and seconds:
            self.step()
        return self.queue.popleft() if self.queue else None

    def told(self, method: str, **params: object) -> dict[str, Any]:
        return {"method": method, "params": {"threadId": THREAD, **params}}

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
                told = self.told("serverRequest/resolved", requestId=self.pending.pop(chance.choice(ids))["id"])
                self.queue.extend([told] * chance.choice([1, 2]))
            case "again" if ids:
                self.queue.append(self.pending[chance.choice(ids)])
            case "other" if ids:
                # The same id for another input.
                self.begin(chance.choice(ids), self.asked())
            case "status":
                flags = chance.choice([[], ["waitingOnApproval"]])
                self.queue.append(self.told("thread/status/changed", status={"type": "active", "activeFlags": flags}))
            case "patch" if self.items:
                item = chance.choice(self.items)
                self.items.remove(item)
                changed = {"path": "/x", "kind": {"type": "add"}, "diff": str(chance.random())}
                self.items.append(item | {"changes": [changed]})
                # What waits for the old one is asked anew under its id, once this is known.
                self.queue.append(self.told("item/fileChange/patchUpdated", itemId=item["id"]))
            case "garbage":
                self.queue.append(
                    chance.choice(
                        [
                            {},
                            {"id": 0},
                            {"id": 0, "method": COMMAND},
                            {"id": [], "method": COMMAND, "params": {"threadId": THREAD}},
                            {"id": None, "method": 5, "params": []},
                            self.told("serverRequest/resolved", requestId="0"),
                            self.told("serverRequest/resolved", requestId=False),
                            self.told("serverRequest/resolved"),
                            self.told("item/started", item=[]),
                            {"method": "thread/status/changed", "params": {"threadId": 7, "status": "idle"}},
                        ]
                    )
                )

    def asked(self) -> tuple[str, dict[str, Any]]:
        # Few items and few commands: many requests are equal in part.
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
            self.queue.append(self.told("item/started", item=item))
        self.pending[rpc_id] = {"id": rpc_id, "method": method, "params": {"threadId": THREAD, **params}}
        self.queue.append(self.pending[rpc_id])

    def decide(self):
        offers = [one for one in self.place.store.read() if one.can_answer]
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
    """While it looks for an answer, the server goes on."""

    wire: Chaos

    def look(self, offer: Offer) -> Record | None:
        record = super().look(offer)
        if record is not None and self.wire.chance.random() < 0.5:
            self.wire.step()
        return record


def test_nothing_is_given_but_what_was_decided_for_the_very_input_that_waits(place, tmp_path):
    seed = random.randrange(2**32)
    chance, decided, given = random.Random(seed), dict[str, Action](), 0
    given_to = {"state": place.state, "configuration": place.configuration, "disk": QUICK}
    holder = ChaosHolder(place.workspace, name="codex", **given_to)  # type: ignore[arg-type]
    client = CodexClient(place.workspace, tmp_path, holder)
    for _ in range(CONNECTIONS):
        holder.wire = wire = Chaos(place, chance, decided)
        with suppress(OSError):
            client.serve(wire)
        assert not [one for one in place.store.read() if one.is_open], f"seed {seed}: held after the end"
        for params, action in wire.given:
            assert decided.get(params) is action, f"seed {seed}: {params}"
        given += len(wire.given)
    assert given > CONNECTIONS / 10
