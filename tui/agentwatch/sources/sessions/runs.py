"""What the runs of all programs have in common: their order, their rounds, and who ends with whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Message, Run, RunState, Turn
from agentwatch.sources.sessions.doing import Pulse
from agentwatch.sources.sessions.processes import Program, Wait

OPEN: Final = (RunState.SUBMITTED, RunState.WORKING)
WORDLESS: Final = "ended without a word"
UNREAD: Final = "ended, but what it said cannot be read"
LEFT_BEHIND: Final = "left behind when the session was killed"
CUT_OFF: Final = "cut off before it answered"

Keep = Callable[[str, float, int], Message]
"""Makes a message of a text, its time and the offset of the line where it stands."""
Said = Callable[[], Message]

KEPT_ROUNDS: Final = 100
"""Rounds before the last one that are kept of a session: people talk to one for days."""


class Rising:
    """Makes each time, in seconds, later than the one before: a clock that is set back does not change the order."""

    def __init__(self) -> None:
        self._last = float("-inf")

    def __call__(self, at: float) -> float:
        # The times in the stores are no finer than a millisecond.
        self._last = max(at, self._last + 0.001)
        return self._last


@dataclass(slots=True)
class AgentAnswer:
    """What a parent was told of a call, once it was: begun in the background, answered, or failed.

    `status` is a word of the program: completed, failed, cancelled, error. `summary` says more in a line.
    """

    at: float
    status: str = ""
    summary: str = ""
    said: Message | None = None
    error: str | None = None
    launched: bool = False
    agent_id: str | None = None


@dataclass(slots=True)
class AgentCall:
    """One use of a tool that hands out work. `asked_at` is that of a run."""

    id: str
    at: float | None = None
    asked_at: float | None = None
    prompt: Message | None = None
    agent_type: str | None = None
    title: str | None = None
    background: bool = False
    answer: AgentAnswer | None = None


class Saying:
    """Makes a message of a text when somebody asks for it: most answers are followed by another one."""

    def __init__(self, keep: Keep, text: str, at: float, offset: int) -> None:
        self._keep = keep
        self._said = text, at, offset
        self._made: Message | None = None

    def __call__(self) -> Message:
        if self._made is None:
            self._made = self._keep(*self._said)
        return self._made


class Account:
    """What the records of one agent come to: how it stands, and its rounds. Times are seconds since the epoch.

    A round begins with a prompt and ends with an answer. `begun` is how the last one began, `earlier` are those before
    it, oldest first.
    """

    def __init__(self, keep: Keep) -> None:
        self.state = RunState.SUBMITTED
        self.reason = ""
        self.prompt: Message | None = None
        self.started_at: float | None = None
        self.ended_at: float | None = None
        self.model: str | None = None
        self.earlier: list[Turn] = []
        self.begun: Turn | None = None
        self._keep = keep
        self._said: Said | None = None

    @property
    def said(self) -> Message | None:
        """The answer of the last round, once it has ended."""
        return self._said() if self._said is not None else None

    def all_rounds(self) -> list[Turn]:
        """The rounds until now, the last one as it stands."""
        if self.begun is None:
            return []
        last = replace(self.begun, state=self.state, said=self.said, ended_at=self.ended_at, reason=self.reason)
        return [*self.earlier, last]

    def rounds_of_run(self) -> tuple[Turn, ...]:
        """The rounds of a run, which says itself how the last one stands; nothing where there was but one."""
        return (*self.earlier, self.begun) if self.earlier and self.begun is not None else ()

    def _begin_round(self, begun: Turn) -> None:
        self.earlier = self.all_rounds()[-KEPT_ROUNDS:]
        self.begun = begun

    def _saying(self, text: str, at: float, offset: int) -> Said:
        return Saying(self._keep, text, at, offset)


class LiveAccount(Account):
    """An account that goes on record by record, with what the agent does and has used; `places` as for a `Pulse`."""

    def __init__(self, keep: Keep, places: Sequence[str] = ()) -> None:
        super().__init__(keep)
        self.pulse = Pulse(places)
        self.updated_at = 0.0
        self.todos: tuple[Todo, ...] | None = None
        self.tokens = 0

    def _go_on(self, at: float) -> None:
        """There is a sign of life: it works, and what it said before was not its last word."""
        self.started_at = at if self.started_at is None else self.started_at
        self.updated_at = max(self.updated_at, at)
        self.state, self.reason, self.ended_at, self._said = RunState.WORKING, "", None, None

    def _end(self, state: RunState, at: float, reason: str = "") -> None:
        self.state, self.reason, self.ended_at, self.updated_at = state, reason, at, max(self.updated_at, at)

    def _list(self, todos: tuple[Todo, ...], at: float) -> None:
        """The checklist is this one now."""
        before, self.todos = self.todos, todos
        self.pulse.listed(before, todos, at)


class Standing(NamedTuple):
    """How a run stands: `said` and `ended_at` are for one that has ended."""

    state: RunState
    reason: str = ""
    said: Message | None = None
    ended_at: float | None = None


def run_of(
    account: LiveAccount,
    call: AgentCall,
    standing: Standing,
    *,
    source: str,
    session_id: str,
    parent: str | None,
    place: str,
    link: str,
    seen_at: float | None = None,
    title: str | None = None,
    agent: str | None = None,
    background: bool = False,
) -> Run:
    """The run of an agent that was asked for by a call, either of which may say nothing, or of a session: no `parent`.

    `seen_at` is when else there was a sign of life.
    """
    state, said = standing.state, standing.said if standing.state is RunState.ENDED else None
    started_at = next((at for at in (account.started_at, call.at, seen_at) if at is not None), 0.0)
    ended_at = None if state in OPEN or standing.ended_at is None else max(started_at, standing.ended_at)
    prompt = account.prompt or call.prompt
    typed = prompt.opening if prompt is not None and parent is None else None
    return Run(
        source=source,
        session_id=session_id,
        parent_session=parent,
        state=state,
        place=place,
        started_at=started_at,
        updated_at=max(started_at, account.updated_at, seen_at or 0.0, ended_at or 0.0),
        ended_at=ended_at,
        link=link if parent is not None else "",
        reason=WORDLESS if state is RunState.ENDED and said is None else standing.reason,
        title=title or call.title or typed,
        agent=agent or call.agent_type,
        mode=agent or call.agent_type,
        model=account.model,
        prompt=prompt,
        prompt_missing="" if prompt is not None or parent is None else "not in the transcript",
        said=said,
        rounds=account.rounds_of_run(),
        todos=account.todos,
        tokens=account.tokens or None,
        doing=account.pulse.doing,
        background=background or call.background,
        asked_at=call.asked_at,
    )


def settle(runs: dict[str, Run], program: Program, ask: Callable[[Wait], None] = lambda _: None) -> None:
    """Let all runs of a session, by key, be told by each other and by what is known of the program.

    `ask` takes in what the program waits for.
    """
    _end_with_parent(runs)
    _know_program(runs, program)
    if program.wait is not None:
        ask(program.wait)
    _pass_up_life(runs)


def _end_with_parent(runs: dict[str, Run]) -> None:
    """An agent in the foreground ends with the one that waits for it; a killed program takes all of them along."""
    keys = {run.session_id: key for key, run in runs.items()}
    waiting = [key for key, run in runs.items() if run.state in OPEN and run.parent_session in keys]
    ended = True
    while ended:
        ended = False
        for key in waiting:
            run = runs[key]
            above = runs[keys[run.parent_session or ""]]
            was_killed = above.reason == LEFT_BEHIND
            cut_off = above.state in (RunState.FAILED, RunState.CANCELED) and not run.background
            if run.state in OPEN and (was_killed or cut_off):
                at = max(run.started_at, above.ended_at or above.updated_at)
                runs[key] = replace(run, state=above.state, reason=above.reason, ended_at=at, waiting="")
                ended = True


def _know_program(runs: dict[str, Run], program: Program) -> None:
    """Mark the open runs that no process runs any more, so that nobody can answer what they ask.

    Those of before the program began are among them.
    """
    for key, run in list(runs.items()):
        if run.state in OPEN:
            gone = True if run.updated_at < program.began else program.gone
            waiting = "" if gone else run.waiting
            if (gone, waiting) != (run.process_gone, run.waiting):
                runs[key] = replace(run, process_gone=gone, waiting=waiting)


def _pass_up_life(runs: dict[str, Run]) -> None:
    """A session that waits for an agent writes nothing meanwhile: the agent's signs of life are its own as well."""
    keys = {run.session_id: key for key, run in runs.items()}
    for run in list(runs.values()):
        parent = run.parent_session
        while parent in keys:
            above = runs[keys[parent]]
            if above.state is not RunState.WORKING or above.updated_at >= run.updated_at:
                break
            runs[keys[parent]] = replace(above, updated_at=run.updated_at)
            parent = above.parent_session
