"""The demo's agent that asks the operator for a permission, and goes on with the answer.

The request is a real one: offered, held, answered and claimed by the code that holds those of agents' programs. Only
what follows the answer is written beforehand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request, RequestKind, RequestStage
from agentwatch.demo.script import Player
from agentwatch.requests.holding import Holder
from agentwatch.requests.reading import request_about
from agentwatch.requests.store import Offer, RequestError
from agentwatch.state import workspace_id

TASK: Final = "checkout.verify.e2e"
ASKS_AT: Final = 60.0
"""Seconds of the session from which it asks also where nothing was decided."""
ASKS_AFTER: Final = 6.0
"""Seconds from the first decision: it must not come between the first failure and what is decided about it."""
_COMMAND: Final = "npx playwright test e2e/checkout.spec.ts --project=firefox --project=webkit"
_SAID: Final = "Walks the customer's way with a test card"
_RULE: Final = "Bash(npx playwright test *)"


class Asker:
    """`go_on` is given the record of each answer. Only the thread of the play calls it."""

    def __init__(
        self,
        workspace: Path,
        state: Path,
        configuration: Path,
        player: Player,
        go_on: Callable[[Record], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._holder = Holder(workspace, name="the demo", state=state, configuration=configuration)
        self._workspace_id = workspace_id(workspace)
        self._player = player
        self._go_on = go_on
        self._clock = clock
        self._offer: Offer | None = None
        self._has_asked = False
        self._decided_at: float | None = None
        self.was_answered = False

    def attend(self, decided: Set[str]) -> None:
        """Ask once it is time, and take the answer. Nothing is asked for a task that was `decided` otherwise."""
        if decided and self._decided_at is None:
            self._decided_at = self._player.position
        asks_at = ASKS_AT if self._decided_at is None else min(ASKS_AT, self._decided_at + ASKS_AFTER)
        is_time, is_needed = self._player.position >= asks_at, TASK not in decided
        if self._has_asked and (not is_time or not is_needed):
            self.leave()
            # The session has started over.
            self._has_asked = is_time
        elif is_time and is_needed and not self._has_asked:
            self._has_asked = True
            with suppress(RequestError):
                self._offer = self._holder.offer(self._request())
        elif self._offer is not None and (record := self._holder.look(self._offer)) is not None:
            self._holder.delivered(record)
            self._offer.end(RequestStage.DELIVERED, by=record.operator)
            self._offer, self.was_answered = None, True
            self._go_on(record)

    def leave(self) -> None:
        """Ask no more."""
        if self._offer is not None:
            self._offer.end(RequestStage.GONE)
            self._offer = None

    def _request(self) -> Request:
        return request_about(
            {"command": _COMMAND, "description": _SAID},
            self._workspace_id,
            "claude-code",
            TASK,
            token_hex(8),
            kind=RequestKind.PERMISSION,
            tool="Bash",
            shown=_COMMAND,
            said=_SAID,
            asked_at=self._clock(),
            actions=(Action.ALLOW, Action.DENY),
            words=True,
            rules=(_RULE,),
            covered_by=f"the rule {_RULE}",
        )
