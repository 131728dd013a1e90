"""Requests as adapters offer them, and an operator who answers them."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Answer, Params
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action, Option, Query, Request, RequestKind, canonical_input, make_request_id
from agentwatch.disk import Disk
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import RequestStore
from agentwatch.state import mark_shown, workspace_id
from tests.unit.decisions.made import QUICK, Operator
from tests.unit.delegation import asking

AT = 1_893_499_200.0
"""2030-01-01 12:00 UTC."""

_COUNT = itertools.count()


def request(workspace: Path, command: str = "touch x", **changes: Any) -> Request:
    """Return a permission with some fields changed, which can be allowed, or denied with words. Each has a nonce of its
    own, and the id that follows from its parts unless one is given."""
    text, digest = canonical_input(changes.pop("given", {"command": command}))
    values = {"source": "claude", "session_id": "5f0c", "input": text, "input_sha256": digest, "words": True}
    made = asking.request(next(_COUNT), command, **(values | {"asked_at": 0.0} | changes))
    if "request_id" in changes:
        return made
    identity = made.source, made.session_id, made.nonce, made.input_sha256
    return replace(made, request_id=make_request_id(workspace_id(workspace), *identity))


def question(workspace: Path, **changes: Any) -> Request:
    """Return a request with two questions, the second of which takes several answers."""
    queries = (
        Query("Which store?", "Store", (Option("SQLite", "a file"), Option("Redis"))),
        Query("Which checks?", options=(Option("Lint"), Option("Types")), several=True),
    )
    values: dict[str, Any] = {
        "kind": RequestKind.QUESTION,
        "tool": "AskUserQuestion",
        "given": {"questions": [query.question for query in queries]},
        "queries": queries,
        "actions": (Action.ANSWER, Action.DENY),
    }
    return request(workspace, "", **(values | changes))


ANSWERED = Params(
    answers=(Answer("Which store?", "SQLite"), Answer("Which checks?", "Lint"), Answer("Which checks?", "x"))
)


class Place(Operator):
    """A workspace with the directories of an operator beside it, and the requests in it."""

    def __post_init__(self):
        super().__post_init__()
        self.store = RequestStore(self.workspace, state=self.state, disk=QUICK)
        self._desk = self.desk()

    def desk(self) -> DecisionService:
        return DecisionService(self.workspace, state=self.state, configuration=self.configuration, disk=QUICK)

    def holder(self, name: str = "test", disk: Disk = QUICK, kind: type[Holder] = Holder) -> Holder:
        return kind(self.workspace, name=name, state=self.state, configuration=self.configuration, disk=disk)

    def answer(
        self,
        asked: Request,
        action: Action = Action.ALLOW,
        params: Params | None = None,
        *,
        note: str = "",
        gone: str | None = None,
    ) -> DecisionMade:
        # One desk serves all answers, as each new desk reads the whole ledger.
        return self._desk.answer(asked, action, params, task_id="a.b", attempt=1, why_gone=lambda: gone, note=note)

    @contextmanager
    def watched(self) -> Iterator[None]:
        with mark_shown(self.state):
            yield


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
