"""Makes runs for all programs, from the state of each agent (`Account`) and its link to its parent (`AgentLink`)."""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.decision import Permit
from agentwatch.delegation.events import (
    LONGEST_DOING,
    MOST_PERMITS,
    Activity,
    ActivityKind,
    Message,
    Run,
    RunState,
    StartedBy,
    Turn,
    find_moved_todo,
)
from agentwatch.sources.sessions.entries import Entry, EntryKind, main_argument, read_todos
from agentwatch.sources.sessions.fields import (
    Fields,
    Notification,
    Record,
    as_object,
    first_line,
    question_text,
    read_notification,
    text,
)
from agentwatch.sources.sessions.reader import message

SESSION = ""  # the id that stands for the session's own agent
OPEN = (RunState.SUBMITTED, RunState.WORKING)
WORDLESS = "ended without a word"
UNREAD = "ended, but what it said cannot be read"
LEFT_BEHIND = "left behind when the session was killed"
CUT_OFF = "cut off before it answered"

Keep = Callable[[str, float], Message]  # makes a message from a text and its time
Answer = Callable[[], Message]

_KEPT_ROUNDS = 100  # so many earlier rounds of a session are kept, because people talk to a session for days
_CHECKLISTS = ("TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "updateTodoList")


ENDINGS = {
    "completed": RunState.ENDED,
    "failed": RunState.FAILED,
    "error": RunState.FAILED,
    "paused": RunState.FAILED,
    "killed": RunState.CANCELED,
    "stopped": RunState.CANCELED,
    "canceled": RunState.CANCELED,
    "cancelled": RunState.CANCELED,
}  # by the program's word for an end; an agent is "paused" if its program ended before the agent did
_LIMIT = re.compile(r'(?:this agent|Agent ".*") stopped at its \d{1,9}-turn limit')
_LOST = ("[tool call did not complete", "no completion record")


class RunStatus(NamedTuple):
    """The state of a run. `said` and `ended_at` are set only for a run that has ended."""

    state: RunState
    reason: str = ""
    said: Message | None = None
    ended_at: float | None = None


@dataclass(slots=True)
class AgentCall:
    """A call by which an agent hands out work. `child` is the new agent's id. `asked_at` orders the parent's calls."""

    id: str
    at: float | None = None
    asked_at: float | None = None
    prompt: Message | None = None
    agent_type: str | None = None
    title: str | None = None
    background: bool = False
    child: str | None = None
    prompt_missing: str = ""
    waits_in: str = ""  # the id of the message with this call, as long as the call has no result


NO_CALL = AgentCall("")


class Account:
    """The state of one agent, from the lines of its transcript. Times are in epoch seconds.

    A round begins with a prompt and ends with an answer. `begun` is the last round, as it was at its beginning. The
    rounds before it are in `earlier`, oldest first. `places` are the spellings of the workspace's path."""

    question_tools: ClassVar[tuple[str, ...]] = ()
    title: str | None = None
    last: Answer | None = None  # the agent's last words
    prompt_missing = ""  # the reason why the agent's prompt is unknown, or ""

    not_understood = 0
    state = RunState.SUBMITTED
    reason = ""
    prompt: Message | None = None
    answer: Answer | None = None  # the answer of the last round, once the round has ended
    started_at: float | None = None
    updated_at = 0.0
    ended_at: float | None = None
    round_at = float("-inf")  # the beginning of the last round; an earlier report to the parent is about another round
    prompted_at = 0.0  # the time of the last prompt from a human or the parent
    model: str | None = None
    one_shot = False
    tokens = 0
    todos: tuple[Todo, ...] | None = None
    begun: Turn | None = None
    _asked_at = float("-inf")
    _latest: Entry | Activity | None = None
    _call: Entry | None = None
    _repeats = 0

    def __init__(self, keep: Keep, places: Sequence[str] = (), *, is_agent: bool = False):
        self.is_agent = is_agent
        self.calls: dict[str, AgentCall] = {}
        self.ends: dict[str, RunStatus] = {}  # reports to this agent that other agents have ended, by agent or call
        self.permits: deque[Permit] = deque(maxlen=MOST_PERMITS)
        self.earlier: list[Turn] = []
        self.open: dict[str, Entry] = {}  # calls without a result, by id
        self.keep = keep
        self._places = places
        self._told: dict[str, Notification] = {}

    def add(self, fields: Record) -> None:
        """Update the state from a record (a line of the transcript). Never raise an error, whatever it holds."""

    @property
    def said(self) -> Message | None:
        return self.answer() if self.answer is not None else None

    @property
    def waiting(self) -> str:
        """A description of the thing that the agent needs from a human, or "" if it needs nothing."""
        asked = (call for call in reversed(self.open.values()) if call.tool in self.question_tools)
        return next(map(describe_question, asked), "")

    @property
    def doing(self) -> Activity | None:
        """The agent's current or last activity. None if the agent has done nothing since its last prompt."""
        last = self._latest
        if last is None or isinstance(last, Activity):
            return last
        if last.kind is EntryKind.WORDS:
            return Activity(last.at, ActivityKind.WORDS, about=first_line(last.text, LONGEST_DOING))
        is_over = last.call not in self.open
        # If the last call is over, show another call that still runs.
        call = next(reversed(self.open.values())) if is_over and self.open else last
        given = main_argument(call.tool, call.given, self._places)
        repeats = self._repeats if call is last else 1
        return Activity(call.at, ActivityKind.TOOL, call.tool, given, is_over and call is last, repeats)

    def all_rounds(self) -> list[Turn]:
        """Return all rounds. The last round is the current round."""
        if self.begun is None:
            return []
        # In a session that a human began, an answer is no return.
        said = self.said if self.is_agent else None
        last = replace(self.begun, state=self.state, said=said, ended_at=self.ended_at, reason=self.reason)
        return [*self.earlier, last]

    def begin_round(self, at: float, prompt: Message | None = None, asker: StartedBy = StartedBy.PROGRAM) -> None:
        self.earlier = self.all_rounds()[-_KEPT_ROUNDS:]
        self.begun = Turn(at, prompt, asker)

    def touch(self, at: float) -> None:
        """Record that the agent was active at this time."""
        if self.started_at is None:
            self.started_at = at
        self.updated_at = max(self.updated_at, at)

    def resume(self, at: float) -> None:
        """Record that the agent works again. So its earlier words were not its answer."""
        self.touch(at)
        self.state, self.reason, self.ended_at, self.answer = RunState.WORKING, "", None, None

    def end(self, state: RunState, at: float, reason: str = "") -> None:
        """Record that the agent has ended, or was stopped."""
        self.state, self.reason, self.ended_at, self.updated_at = state, reason, at, max(self.updated_at, at)

    def add_entry(self, entry: Entry) -> None:
        """Update the activity, the open calls and the checklist with the next entry."""
        match entry.kind:
            case EntryKind.WORDS:
                if entry.text and not entry.text.isspace():
                    self._latest, self.last = entry, self.keep_lazily(entry.text, entry.at)
            case EntryKind.CALL:
                before, self._call, self._latest = self._call, entry, entry
                is_same = before is not None and (before.tool, before.given) == (entry.tool, entry.given)
                self._repeats = self._repeats + 1 if is_same and self._repeats else 1
                self.open.pop(entry.call, None)
                self.open[entry.call] = entry
                if entry.tool in _CHECKLISTS and (todos := read_todos(entry.given)):
                    self.set_todos(todos, entry.at)
            case EntryKind.RESULT:
                self.open.pop(entry.call, None)
            case EntryKind.PROMPT:
                self.forget_activity()

    def forget_activity(self) -> None:
        """Forget the activity and the open calls, because the agent has a new prompt."""
        self._latest, self._repeats = None, 0
        self.open.clear()

    def set_todos(self, todos: tuple[Todo, ...] | None, at: float) -> None:
        """Set the checklist. If an item has changed, this item becomes the activity."""
        self._latest = find_moved_todo(self.todos, todos, at) or self._latest
        self.todos = todos

    def keep_lazily(self, text: str, at: float) -> Answer:
        """Return a function that makes the message from a text. Call it only if no later text replaces this text."""
        return cache(partial(self.keep, text, at))

    def record_call(
        self, entry: Entry, words: str | None, kind: str = "subagent_type", title: str = "description"
    ) -> AgentCall:
        """Record a call that hands out work. `words` is the prompt. `kind` and `title` are names of arguments."""
        # Each `asked_at` must be later than the `asked_at` before, even if the clock was set back. The stores have
        # times in milliseconds.
        self._asked_at, given = max(entry.at, self._asked_at + 0.001), entry.given
        background, names = given.get("run_in_background") is True, (text(given, kind), text(given, title))
        prompt = self.keep(words, entry.at) if words is not None else None
        call = self.calls[entry.call] = AgentCall(entry.call, entry.at, self._asked_at, prompt, *names, background)
        return call

    def record_end(self, name: str, status: str, reason: str, said: str | None, at: float) -> None:
        """Record that another agent has ended. `name` is its id or the call's id. `status` is the program's word."""
        message = self.keep(said, at) if said is not None else None
        is_lost = any(lost in reason.lower() for lost in _LOST)
        state = ENDINGS.get("failed" if is_lost or _LIMIT.match(reason) else status, RunState.ENDED)
        reason = LEFT_BEHIND if is_lost else "" if state is RunState.ENDED else reason or status
        self.ends[name] = RunStatus(state, reason, message, at)
        if (call := self.calls.get(name)) is not None and call.child is not None:
            self.ends[call.child] = self.ends[name]

    def record_notification(self, content: object, at: float) -> Notification | None:
        """If a text is a notification that an agent has ended, record the end and return the notification."""
        notice = read_notification(content) if isinstance(content, str) else None
        # Up to three lines of a transcript have the same notification. The first line has the right time.
        if notice and self._told.get(notice.task_id) != notice:
            self._told[notice.task_id] = notice
            for name in (notice.task_id, notice.tool_use_id):
                self.record_end(name, notice.status, notice.summary, notice.said, at)
        return notice


def describe_question(call: Entry) -> str:
    """Describe the thing that a call needs from a human. An example is "an approval of its plan"."""
    return "an approval of its plan" if call.tool == "ExitPlanMode" else question_text(call.given)


NO_ACCOUNT = Account(message)


class AgentLink(NamedTuple):
    """The link of an agent to its parent. `parent` is the parent's id, or SESSION. `asker` is the parent's account.
    `call` is the parent's call that began the agent.

    `reports` are the agent's ends as they were reported to other agents, oldest first. `claim` is the id of `call`, or
    None if unknown. It may be known before the call is read. `meta` has the fields of the agent's description."""

    parent: str = SESSION
    asker: Account = NO_ACCOUNT
    call: AgentCall = NO_CALL
    reports: Sequence[RunStatus] = ()
    claim: str | None = None
    meta: Fields = as_object(None)


def link_agents(accounts: Mapping[str, Account], descriptions: Mapping[str, Fields]) -> dict[str, AgentLink]:
    """Return the link of each known agent, by its id. A call whose agent is unknown gets a link under the call's id.

    `accounts` and `descriptions` are by the agent's id; SESSION stands for the session's own agent. `descriptions` are
    the fields of files in which a program describes its agents."""
    calls: dict[str, tuple[str, AgentCall]] = {}
    # The session must come first, because a forked agent's transcript repeats calls of the session.
    for owner, account in sorted(accounts.items()):
        for call in account.calls.values():
            calls.setdefault(call.id, (owner, call))
    claims = {agent: call_id for agent, meta in sorted(descriptions.items()) if (call_id := text(meta, "toolUseId"))}
    for _, call in calls.values():
        if call.child is not None:
            claims.setdefault(call.child, call.id)
    claimed = set(claims.values())
    free = [call for _, call in calls.values() if call.prompt and call.child is None and call.id not in claimed]
    for agent, account in sorted(accounts.items(), key=lambda one: (one[1].started_at or 0.0, one[0])):
        same = [call for call in free if account.prompt and call.prompt and call.prompt.digest == account.prompt.digest]
        if same and agent not in (SESSION, *claims):
            claims[agent] = same[0].id
            free.remove(same[0])
    claims |= {call.id: call.id for call in free}
    agents = {call_id: agent for agent, call_id in reversed(claims.items())}
    links: dict[str, AgentLink] = {}
    for agent in dict.fromkeys([*claims, *descriptions, *filter(None, accounts)]):
        meta, claim = descriptions.get(agent, {}), claims.get(agent)
        owner, call = calls.get(claim or "", (SESSION, NO_CALL))
        # The description may name the parent, but some agents have no description yet, or never get one.
        parent = text(meta, "parentAgentId") or owner
        is_background = call.background or meta.get("requestShape") == "background"
        ends = [one.ends[name] for one in accounts.values() for name in (agent, call.id) if name in one.ends]
        # Only ends in the agent's last round are of interest.
        since = accounts.get(agent, NO_ACCOUNT).round_at
        links[agent] = AgentLink(
            parent,
            accounts.get(parent, NO_ACCOUNT),
            replace(call, background=is_background),
            sorted((one for one in ends if (one.ended_at or 0.0) >= since), key=lambda one: one.ended_at or 0.0),
            claim if claim is not None and agents[claim] == agent else None,
            meta,
        )
    return links


def run_of(
    account: Account,
    call: AgentCall,
    status: RunStatus | Account,
    *,
    source: str,
    session_id: str,
    parent: str | None,
    place: str,
    seen_at: float | None = None,
    title: str | None = None,
    agent: str | None = None,
    name: str | None = None,
    model: str | None = None,
    prompt: Message | None = None,
) -> Run:
    """Return the run of an agent, or of a session if `parent` is None. The account may be `NO_ACCOUNT`, and the call
    `NO_CALL`. `seen_at` is the time of another sign of life. `name` is the agent's own name, `agent` its kind."""
    state, said = status.state, status.said if status.state is RunState.ENDED else None
    started_at = next((at for at in (account.started_at, call.at, seen_at) if at is not None), 0.0)
    ended_at = None if state in OPEN or status.ended_at is None else max(started_at, status.ended_at)
    prompt, kind = prompt or account.prompt or call.prompt, agent or call.agent_type
    missing = account.prompt_missing or call.prompt_missing or "not in the transcript"
    typed = prompt.opening if prompt and parent is None else None
    is_wordless = state is RunState.ENDED and said is None and status.reason != UNREAD
    return Run(
        source=source,
        session_id=session_id,
        parent_session=parent,
        state=state,
        place=place,
        started_at=started_at,
        updated_at=max(started_at, account.updated_at, seen_at or 0.0, ended_at or 0.0),
        ended_at=ended_at,
        reason=WORDLESS if is_wordless else status.reason,
        title=title or call.title or typed,
        agent=name or kind,
        mode=kind,
        model=account.model or model,
        prompt=prompt,
        prompt_missing="" if prompt or parent is None else missing,
        said=said,
        rounds=(*account.earlier, account.begun) if account.earlier and account.begun else (),
        todos=account.todos,
        tokens=account.tokens or None,
        doing=account.doing,
        background=call.background,
        waiting=account.waiting if state is RunState.WORKING else "",
        one_shot=account.one_shot,
        asked_at=call.asked_at,
        permits=tuple(account.permits),
    )
