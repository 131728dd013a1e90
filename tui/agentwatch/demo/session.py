"""Runs the demo: a workspace in a scratch directory, a thread that plays the session into it, and a clean end."""

from __future__ import annotations

import json
import math
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from secrets import token_hex
from string import Template
from threading import Event, Thread
from typing import TYPE_CHECKING
from urllib.parse import quote

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Handoff
from agentwatch.decisions.delivery import MIRROR
from agentwatch.decisions.form import AmendError, amended
from agentwatch.decisions.reader import Question, Reader, ending_of
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage
from agentwatch.demo.script import Player, Screenplay, Step, demo_screenplay
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer, RequestError, request_about
from agentwatch.state import scratch_directory, state_directories, workspace_id

NAME = "the demo's orchestrator"

TASK = "checkout.verify.e2e"
ASKS_AT = 60.0  # Seconds of the session from which it asks also where nothing was decided
# Seconds from the first decision: it must not come between the first failure and what is decided about it.
ASKS_AFTER = 6.0
_COMMAND = "npx playwright test e2e/checkout.spec.ts --project=firefox --project=webkit"
_SAID = "Walks the customer's way with a test card"
_RULE = "Bash(npx playwright test *)"

_HANDS_ON = frozenset({Action.RETRY, Action.ESCALATE, Action.RESPOND})
# Characters of the operator's words that the children repeat: a summary may not be longer than its contract says.
_LONGEST = 160


class Orchestrator:
    """The agents of a demo. `state` and `configuration` are where it keeps its ledger and its keys."""

    def __init__(
        self,
        workspace: Path,
        state: Path,
        configuration: Path,
        play: Screenplay,
        player: Player,
        *,
        clock: Callable[[], float] = time.time,
    ):
        self._workspace = workspace
        self._clock = clock
        self._play = play
        self._player = player
        # Nothing that is set for the operator's own agents counts here.
        self._reader = Reader(workspace, "demo", state=state, configuration=configuration, environment={})
        self._read: set[str] = set()
        self._decided: set[str] = set()  # The tasks about which something was decided
        self._holder = Holder(workspace, name="the demo", state=state, configuration=configuration)
        self._offer: Offer | None = None
        self._has_asked = False
        self._asks_at = ASKS_AT

    def attend(self) -> None:
        """Read what was decided since the call before, and begin to carry it out; ask, and go on with the answer."""
        delivered = {path.stem for path in (self._workspace / MIRROR).glob("*.json")}
        for decision_id in sorted(delivered - self._read):
            answer = self._reader.find(Question(None, decision_id=decision_id))
            if answer.record:
                self._read.add(decision_id)
                self._reader.mark(answer, NAME)
                self._carry_out(answer.record)
        self._attend_request()

    def _carry_out(self, record: Record) -> None:
        task_id, action = record.task_id, record.action
        self._decided.add(task_id)
        handoff = self._handoff(record) if action in _HANDS_ON else ""
        # Without a handoff there is nobody to be sent.
        steps = [] if handoff is None else _filled(self._play.scene(action, task_id), _words(record, handoff))
        ends = action is not Action.ACCEPT
        below = action is Action.ABORT
        self._player.cut_in(steps, lambda path: ends and self._play.belongs(path, task_id, below=below))

    def _handoff(self, record: Record) -> str | None:
        """What the next attempt is handed: what the operator signed, else the handoff of before with the answer."""
        path = self._play.handoff_of(record.task_id)
        if record.params.handoff is not None or path is None:
            return record.params.handoff
        try:
            return amended(
                (self._workspace / path).read_text(encoding="utf-8"),
                path,
                attempt=record.attempt + 1,
                decision_id=record.decision_id,
                note=_said(record),
                mode=record.params.mode,
            )
        except (OSError, AmendError):
            return None

    def _attend_request(self) -> None:
        """Ask once it is time, and take the answer. Nothing is asked for a task about which was decided otherwise."""
        if self._decided:
            self._asks_at = min(self._asks_at, self._player.position + ASKS_AFTER)
        if TASK in self._decided:
            self.leave()
        elif not self._has_asked and self._player.position >= self._asks_at:
            self._has_asked = True
            with suppress(RequestError):
                self._offer = self._holder.store.offer(self._request())
        elif self._offer and (record := self._holder.look(self._offer)):
            self._holder.delivered(record)
            self._offer.end(RequestStage.DELIVERED, by=record.operator)
            self._offer = None
            self._player.cut_in(_filled(self._play.scene(record.action, record.task_id), _words(record, "")))

    def leave(self) -> None:
        """Ask no more."""
        if self._offer:
            self._offer.end(RequestStage.GONE)
            self._offer = None

    def _request(self) -> Request:
        return request_about(
            {"command": _COMMAND, "description": _SAID},
            workspace_id(self._workspace),
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


def _words(record: Record, handoff: str) -> dict[str, str]:
    """What a scene can name. `handoff` and `report` are whole documents, the others words on one line."""
    ending = ending_of(handoff)
    reading = read_document(handoff, f"next.handoff.{ending}")
    packet = reading.document if reading and isinstance(reading.document, Handoff) else None
    said = textwrap.shorten(_said(record), _LONGEST, placeholder=" …") or "(nothing more)"
    return {
        "answer": said,
        "attempt": str(record.attempt + 1),
        "ending": ending,
        "file": quote(record.task_id, safe=""),
        "handoff": handoff.rstrip("\n"),
        "mode": (packet and packet.mode) or "code",
        "report": (record.params.report or "").rstrip("\n"),
        "task": record.task_id,
    }


def _said(record: Record) -> str:
    return " ".join([*(one.answer for one in record.params.answers), record.note]).strip()


def _filled(steps: Iterable[Step], words: Mapping[str, str]) -> Iterator[Step]:
    documents = {name: words[name] for name in ("handoff", "report")}
    escaped = {name: json.dumps(word)[1:-1] for name, word in words.items()} | documents
    for step in steps:
        path = Template(step.path).safe_substitute(words)
        text = Template(step.text).safe_substitute(escaped if path.endswith(".json") else words)
        yield Step(step.at_seconds, path, text)


if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.demo.session import Orchestrator
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.requests.inbox import Inbox

_INSTRUCTIONS = "# Shop\n\nAgents that hand work on wait for the operator's decision with `agentwatch wait`.\n"

STALE_SECONDS = 60.0  # The silence that counts as stale in a session of two minutes, at speed 1

POLL_SECONDS = 0.2  # Between two looks for a decision

# Signals that would end the process at once, and leave the directory behind. The app has handlers of its own.
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class DemoSession:
    """A workspace in which the demo happens, for as long as the `with` block lasts.

    It is played once. What the operator decides there is signed with a key of the demo's own and carried out by its
    orchestrator. Workspace, ledger and key are removed at the end, however the block ends. Raises UsageError for a
    speed that cannot be played, and WorkspaceError at the end of the block where the player could not write.
    """

    def __init__(self, speed: float = 1.0):
        if not 0 < speed < math.inf:
            raise UsageError(f"a speed of {speed} cannot be played; give a number above 0, such as 2")
        # Seconds of silence after which a working task should count as stale, at this speed.
        self.stale_after = STALE_SECONDS / speed
        self._speed = speed
        self._stop = Event()
        self._held = False
        self._orchestrator: Orchestrator | None = None
        self._failure: OSError | None = None

    def __enter__(self) -> Path:
        with ExitStack() as stack:
            for number in _ENDING:
                before = signal.signal(number, lambda number, _frame: sys.exit(128 + number))
                stack.callback(signal.signal, number, before)
            try:
                place = stack.enter_context(scratch_directory())
            except OSError as error:
                why = f"the demo cannot be played: {error}; set XDG_STATE_HOME to another place"
                raise WorkspaceError(why) from error
            self._workspace, self._state, self._configuration = place / "shop", place / "state", place / "configuration"
            self._workspace.mkdir()
            (self._workspace / "AGENTS.md").write_text(_INSTRUCTIONS, "utf-8")
            self._play = demo_screenplay()
            self._player = Player(self._play.steps, self._workspace, self._speed)
            self._thread = Thread(target=self._run, name="agentwatch-demo", daemon=True)
            stack.callback(self._leave)
            self._thread.start()
            self._stack = stack.pop_all()
        return self._workspace

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        self._stack.close()
        if self._failure and not error:
            raise WorkspaceError(
                f"the demo stopped: {self._failure}; give {state_directories()} free space, or set XDG_STATE_HOME"
            ) from self._failure

    # These modules load slowly. Nothing of the operator's own is read or written.

    def open_desk(self) -> DecisionService:
        """The operator's desk in the demo, and the orchestrator that reads what is decided there."""
        from agentwatch.decisions.service import DecisionService
        from agentwatch.demo.session import Orchestrator

        places = self._workspace, self._state, self._configuration
        self._orchestrator = Orchestrator(*places, self._play, self._player)
        return DecisionService(self._workspace, state=self._state, configuration=self._configuration)

    def open_shelf(self) -> Acknowledgements:
        """The tasks that are put aside in the demo."""
        from agentwatch.history.acknowledgements import Acknowledgements

        return Acknowledgements(self._state)

    def open_inbox(self) -> Inbox:
        """The requests of the agents of the demo."""
        from agentwatch.requests.inbox import Inbox
        from agentwatch.requests.store import RequestStore

        return Inbox(RequestStore(self._workspace, state=self._state))

    def hold(self, held: bool) -> None:
        """Let the play wait, or go on: nothing should change while the operator decides."""
        self._held = held

    def is_over(self) -> bool:
        """Whether nothing more comes by itself."""
        return not self._held and self._player.finished

    def _run(self) -> None:
        try:
            while not self._stop.wait(POLL_SECONDS):
                self._player.run(lambda seconds: self._stop.wait(seconds) or self._held, self._attend, POLL_SECONDS)
        except OSError as failure:
            # An error in a thread would be written over the screen: it is told when the screen has gone.
            self._failure = failure

    def _attend(self) -> None:
        if self._orchestrator:
            self._orchestrator.attend()

    def _leave(self) -> None:
        self._stop.set()
        self._thread.join()
        if self._orchestrator:
            self._orchestrator.leave()
