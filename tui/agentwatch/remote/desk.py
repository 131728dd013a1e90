"""The desk of an operator whose workspace is on a host: signs here, asks there, and says what is true then.

Whatever was signed is kept until the host has said what became of it, for good: it is sent again, by this screen or the
next one, and counts once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.delivery import Forgery, Mirror
from agentwatch.decisions.errors import (
    DecisionError,
    NotAllowedError,
    NotRecordedError,
    QueuedError,
    RequestGoneError,
    UncertainError,
    UnreachableError,
    reason,
    remedy,
)
from agentwatch.decisions.ledger import Chain, DecisionMade, Draft
from agentwatch.decisions.record import AHEAD, ANSWER_LIFETIME, Record, SignedRequest, refusal, sign, time_of, written
from agentwatch.decisions.service import LIFETIME, DecisionService
from agentwatch.delegation.decision import Decision, Receipt
from agentwatch.disk import DISK, Disk
from agentwatch.remote.limits import LARGEST_RESULT, MOST_RESULTS, weight
from agentwatch.remote.outbox import Letter, Outbox
from agentwatch.remote.said import Host, NotTrustedError, outcome_of, says_the_same
from agentwatch.state import state_directory
from agentwatch.text import quoted
from agentwatch.view.times import ago, clock

if TYPE_CHECKING:
    from agentwatch.delegation.request import Request
    from agentwatch.remote.frames import Result

ANSWER_SECONDS: Final = 10.0
"""So long somebody waits for the host; then nobody knows, and it goes on behind the screen."""
_AGAIN_SECONDS: Final = 2.0
_IN_TIME: Final = timedelta(minutes=5)
"""So long the host may record what is sent at once."""
_LOST: Final = timedelta(days=1)
"""So long after its time the host is asked what became of it."""
_MOST_TOLD: Final = 3


class RemoteDesk(DecisionService):
    """The decisions about one workspace of a host, as `DecisionService` says.

    `workspace_id` gives the host's id of the workspace, "" before that is known; `place` is what stands for its path
    here. With `queue`, what is decided while the host cannot be reached waits for it, so long; answers never do.
    """

    def __init__(
        self,
        host: Host,
        workspace_id: Callable[[], str],
        place: Path,
        *,
        queue: timedelta | None = None,
        lifetime: timedelta | None = LIFETIME,
        passphrase: Callable[[], str] | None = None,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = DISK,
    ) -> None:
        state = state or state_directory(place)
        super().__init__(state, passphrase=passphrase, lifetime=lifetime, configuration=configuration, disk=disk)
        self._host = host
        self._workspace_id = workspace_id
        self._queue = queue
        self._outbox = Outbox(self.state, disk)
        self._news = threading.Condition()
        self._results: dict[str, Result] = {}
        """What the host has said, by the sha256 of what was signed, until it is looked at."""
        self._awaited: set[str] = set()
        """What somebody waits for in a call."""
        self._told: deque[str] = deque(maxlen=_MOST_TOLD)
        self._changes = 0
        self._was_up = False
        host.on_result.append(self.take)

    # What the faces use

    @property
    def workspace_id(self) -> str:
        return self._workspace_id()

    @property
    def unreachable(self) -> str | None:
        if self._queue is not None and self._host.key is not None and self.workspace_id:
            return None
        return self._why_not()

    @property
    def notice(self) -> str | None:
        """Decisions that no ledger holds yet, as far as is known here, and those that came to nothing."""
        try:
            letters = self._outbox.read(self.keys.trust())
        except (OSError, DecisionError):
            letters = []
        sentences = [self._waits(one) for one in letters if one.sha256 not in self._awaited]
        return " ".join([*sentences, *self._told]) or None

    @property
    def operator(self) -> str:
        """The host knows whose key it is."""
        return "nobody yet"

    def now(self) -> datetime:
        return datetime.fromtimestamp(int(self._host.now), UTC)

    def answer_ends(self, request: Request, now: datetime) -> datetime:  # noqa: ARG002  the host knows that
        # The host's clock may be behind: by it, too, the answer must not hold for longer than answers do.
        return now + ANSWER_LIFETIME - AHEAD

    def record(self, draft: Draft, returned: Callable[[], str | None]) -> DecisionMade:  # noqa: ARG002  the host looks
        """Have the host record a decision. Raises DecisionError: UnreachableError where it was not sent, UncertainError
        where nobody knows yet."""
        return self._ask(draft, self._queue)

    def record_answer(self, request: Request, draft: Draft, gone: Callable[[], str | None]) -> DecisionMade:
        """Have the host record the answer to a request of a program there. Raises as `record` does."""
        if (why := gone()) is not None:
            raise RequestGoneError(f"not recorded: {why}")
        if (why := refusal(request, draft.action, draft.params, draft.note)) is not None:
            raise NotAllowedError(f"not recorded: {why}")
        return self._ask(draft, None)

    def withdraw(self, task_id: str) -> tuple[list[str], list[str]]:
        """Take back what is decided about a task and was never sent. Returns a sentence for each that is taken back,
        and one for each that it is too late for. Raises DecisionError."""
        back: list[str] = []
        late: list[str] = []
        try:
            letters = self._outbox.read(self.keys.trust())
            for letter in (one for one in letters if one.request.asked.task_id == task_id):
                if not letter.sent and self._outbox.take_back(letter):
                    back.append(f"{letter.what} is taken back: it was never sent, and nobody has recorded it.")
                    continue
                may = f"{self._label} may have recorded it, and may do so until {self._until(letter)}"
                late.append(f"It is too late for {letter.what}: it was sent, and {may}.")
        except OSError as error:
            raise DecisionError(f"nothing is taken back: {self.state}: {reason(error)}; {remedy(error)}") from error
        return back, late

    def refuse_first(self) -> None:
        """The first key of an operator may be made for a host: it has to be trusted there anyway."""

    def read(self) -> Chain:
        """The ledger is the host's, and what is in it comes with the observations."""
        return Chain()

    def mirror(self) -> Mirror:
        """Hear what has become of what was sent, and send again what nobody knows of. Raises DecisionError."""
        try:
            letters = self._outbox.read(self.keys.trust())
            with self._news:
                # The rest is what others have asked for.
                ours = self._awaited | {letter.sha256 for letter in letters}
                self._results = {sha256: one for sha256, one in self._results.items() if sha256 in ours}
            for letter in letters:
                self._look_after(letter)
        except OSError as error:
            raise NotRecordedError(f"{self.state}: {reason(error)}; check the disk") from error
        return Mirror()

    def forged(self) -> list[Forgery]:
        return []

    def receipts(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:  # noqa: ARG002
        return {}

    def changes(self) -> tuple[int | None, ...]:
        """Different where the host has said something, or can be reached again: then what waits is sent at once."""
        is_up, was_up, self._was_up = self._host.lost_since is None, self._was_up, self._host.lost_since is None
        if (is_up and not was_up) or self._results.keys() - self._awaited:
            with suppress(DecisionError):
                self.mirror()
        return (self._changes,)

    def acted(self, decision: Decision, by: str) -> None:
        """The host sees that itself."""

    # The host

    def take(self, result: Result) -> None:
        """The host has said what became of something. Any thread may call it; it never blocks."""
        if result.workspace != self.workspace_id or weight(result) > LARGEST_RESULT:
            return
        with self._news:
            if result.request_sha256 not in self._awaited and len(self._results) >= MOST_RESULTS:
                # Nothing is lost: what waits for it asks again.
                return
            self._results[result.request_sha256] = result
            self._changes += 1
            self._news.notify_all()

    def _why_not(self) -> str | None:
        since = self._host.lost_since
        if since is None and self._host.key is not None and self.workspace_id:
            return None
        when = f" (last heard {ago(since, time.time())})" if since is not None and self._host.key is not None else ""
        return f"{self._label} cannot be reached{when}: {self._host.why}; nothing can be decided there"

    def _ask(self, draft: Draft, queue: timedelta | None) -> DecisionMade:
        try:
            why, letter = self._why_not(), self._same(draft)
            if letter is None:
                if why is not None and (queue is None or self.unreachable is not None):
                    raise UnreachableError(f"not recorded: {why}")
                letter = self._signed(draft, _IN_TIME if why is None or queue is None else queue)
            if why is not None:
                raise (UncertainError if letter.sent else QueuedError)(self._waits(letter))
            sent = self._outbox.note_sent(letter)
            if sent is None:
                raise NotRecordedError(f"not recorded: {letter.what} was taken back")
            result = self._exchange(sent)
            if result is None:
                raise UncertainError(self._waits(sent))
            return self._outcome(sent, result)
        except OSError as error:
            raise NotRecordedError(f"not recorded: {self.state}: {reason(error)}; {remedy(error)}") from error

    def _same(self, draft: Draft) -> Letter | None:
        """The very same, signed before and still in its time: it goes on its way again, so that it counts once."""
        now, key = written(draft.created_at), self._host.key
        for letter in self._outbox.read(self.keys.trust()):
            asked, request = letter.request.asked, letter.request
            is_same = says_the_same(asked, draft)
            if is_same and now <= request.record_by and key is not None and key.keyid == request.host:
                return letter
        return None

    def _signed(self, draft: Draft, in_time: timedelta) -> Letter:
        host = self._host.key
        if host is None:
            raise UnreachableError(f"not recorded: the key of {self._label} is not known")
        record_by = draft.created_at + in_time
        if draft.expires_at is not None:
            record_by = min(record_by, draft.expires_at)
        request = SignedRequest(host.keyid, written(record_by), draft.record(1, None))
        letter = self._outbox.put(sign(request, self.key()), request)
        for other in self._outbox.read(self.keys.trust()):
            # What the operator wants now takes its place; the host records one of them, and says which.
            if other.request.asked.decision_id == request.asked.decision_id and other.sha256 != letter.sha256:
                self._outbox.drop(other.sha256)
        return letter

    def _exchange(self, letter: Letter) -> Result | None:
        """Send it, and wait for what the host says; None where it says nothing."""
        sha256, end, again_at = letter.sha256, time.monotonic() + ANSWER_SECONDS, 0.0
        with self._news:
            self._awaited.add(sha256)
            self._results.pop(sha256, None)
        try:
            while (now := time.monotonic()) < end:
                if now >= again_at:
                    again_at = now + _AGAIN_SECONDS
                    self._host.decide(self.workspace_id, letter.text)
                with self._news:
                    if sha256 not in self._results:
                        self._news.wait(max(min(again_at, end) - time.monotonic(), 0.0))
                    if sha256 in self._results:
                        return self._results.pop(sha256)
            return None
        finally:
            with self._news:
                self._awaited.discard(sha256)

    def _outcome(self, letter: Letter, result: Result) -> DecisionMade:
        """What the host has said, as a desk says it. What is said for good ends its way."""
        key = self._host.key
        if key is None:
            raise UncertainError(self._waits(letter))
        try:
            made = outcome_of(letter, result, key, self._label)
        except UncertainError as error:
            raise UncertainError(f"{error}; {self._label} is asked again until {self._until(letter)}") from error
        except NotTrustedError as error:
            self._outbox.drop(letter.sha256)
            told = f"on {self._label}: agentwatch keys trust {self.keys.show().text} --name NAME"
            sent = "or here, where ssh reaches it: agentwatch keys send HOST"
            raise NotRecordedError(f"{error}; {told}; {sent}") from error
        except DecisionError:
            self._outbox.drop(letter.sha256)
            raise
        self._outbox.drop(letter.sha256)
        return made

    def _look_after(self, letter: Letter) -> None:
        """See what has become of something that nobody waits for, or send it again."""
        with self._news:
            if letter.sha256 in self._awaited:
                return
            result = self._results.pop(letter.sha256, None)
        what, now = letter.what, self.now()
        if result is not None:
            try:
                self._outcome(letter, result)
            except UncertainError:
                pass
            except DecisionError as error:
                self._told.append(f"{what} came to nothing on {self._label}: {error}.")
            return
        record_by = time_of(letter.request.record_by)
        if now > record_by + (_LOST if letter.sent else timedelta()):
            self._outbox.drop(letter.sha256)
            so = "nobody knows whether it is recorded" if letter.sent else "it is not recorded, for it was never sent"
            self._told.append(f"{what} got no answer from {self._label} in its time: {so}.")
        elif self._why_not() is None and (sent := self._outbox.note_sent(letter)) is not None:
            self._host.decide(self.workspace_id, sent.text)

    @property
    def _label(self) -> str:
        return quoted(self._host.label, 60)

    def _until(self, letter: Letter) -> str:
        """When its time is over, by the clock on the wall here."""
        now = time.time()
        return clock(time_of(letter.request.record_by).timestamp() - (self._host.now - now), now)

    def _waits(self, letter: Letter) -> str:
        return letter.waits(self._label, self._until(letter))
