"""The words for tasks on the screen, in commands and in reports: times, states, questions, requests, decisions.

Times are in epoch seconds.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal, NamedTuple

from agentwatch.contracts.shapes import Handoff, Return, Severity, TodoStatus
from agentwatch.delegation import standing
from agentwatch.delegation.decision import (
    ENDING,
    Action,
    Decision,
    Permitter,
    Request,
    RequestKind,
    RequestStage,
    Stage,
)
from agentwatch.delegation.events import Activity, ActivityKind, Claim, Run, Verdict, merge_claims
from agentwatch.delegation.standing import gone_question, process_words
from agentwatch.delegation.task import Attempt, Basis, Retry, Shown, State, Task, TaskKind
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean_row, clean_summary, indented_json, quote_text

# Times

_YEAR = 365 * 86_400
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Span(NamedTuple):
    """How long something took, in seconds. `so_far` says that it still goes on."""

    seconds: float
    so_far: bool = False


def ended_at(task: Task, attempt: Attempt) -> float | None:
    """Return when an attempt of a task ended. Return None if it goes on or the time is unknown."""
    if attempt is not task.latest:
        return standing.ended_at(attempt)
    # A session goes on while a background task works for it. An abort also ends the open tasks below.
    return None if task.waits_for_background else standing.ended_at(attempt) or task.ended_at


def span_of(task: Task, attempt: Attempt | None, now: float) -> Span | None:
    """Return how long an attempt took, or has taken so far. Return None if unknown."""
    if attempt is None or attempt.started_at is None:
        return None
    ended = ended_at(task, attempt)
    if ended is not None:
        return Span(ended - attempt.started_at)
    if attempt is not task.latest or not (task.own_state.is_open or task.waits_for_background):
        return None
    if task.shown in (Shown.SILENT, Shown.GONE) and task.since is not None:
        return Span(task.since - attempt.started_at)
    known = now if task.lost_since is None else min(task.lost_since, now)
    return Span(known - attempt.started_at, so_far=True)


def short_span(seconds: float | None) -> str:
    """Return a span in at most four characters: `8s`, `14m`, `3h`, `12d`, `2y` (from 1,000 days). None gives `-`."""
    short = long_span(seconds, 1)
    return short if len(short) <= 4 or seconds is None else f"{int(seconds // _YEAR)}y"


def long_span(seconds: float | None, count: int = 2) -> str:
    """Return a span in its `count` largest units: `8s`, `3m 20s`, `2h 5m`, `12d 4h`. None gives `-`."""
    if seconds is None:
        return "-"
    rest = max(int(seconds), 0)
    first = next((index for index, (size, _) in enumerate(_UNITS) if rest >= size), len(_UNITS) - 1)
    parts: list[str] = []
    for size, unit in _UNITS[first : first + count]:
        amount, rest = divmod(rest, size)
        parts += [f"{amount}{unit}"] if amount or not parts else []
    return " ".join(parts)


def parse_span(text: str) -> float | None:
    """Return the seconds of a span such as `90s`, `10m`, `12h` or `7d`. Return None for any other text."""
    try:
        seconds = float(text[:-1]) * next(size for size, unit in _UNITS if unit == text[-1:])
    except (StopIteration, ValueError):
        return None
    return seconds if 0 <= seconds < math.inf else None


def ago(moment: float, now: float) -> str:
    """Describe how long ago a time was: `just now`, `3m ago`."""
    passed = now - moment
    return "just now" if passed < 5 else f"{short_span(passed)} ago"


def local_time(at: float) -> datetime | None:
    """Return a time in this computer's time zone. Return None if it is out of range: a file may have any time."""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone()
    except (OverflowError, OSError, ValueError):
        return None


def clock(at: float, now: float) -> str:
    """Return a time in this computer's time zone: `14:03:22`, or `2026-03-01 14:03` if it is not today."""
    then, today = local_time(at), local_time(now)
    if then is None or today is None:
        return "?"
    return f"{then:%H:%M:%S}" if then.date() == today.date() else f"{then:%Y-%m-%d %H:%M}"


def format_local(at: float) -> str:
    """Return date and time in this computer's time zone: `2026-03-01 14:03:10`. Return `?` if out of range."""
    then = local_time(at)
    return "?" if then is None else f"{then:%Y-%m-%d %H:%M:%S}"


def iso(at: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC. Return None if it is unknown or out of range."""
    try:
        return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")[:19] + "Z"
    except (OverflowError, OSError, ValueError):
        return None


def utc(at: float | None) -> str:
    """Return date and time in UTC: `2026-03-01 14:03:10`. Return `-` if unknown."""
    return (iso(at) or "-").replace("T", " ").removesuffix("Z")


# Glyphs, words and colours


class Look(NamedTuple):
    """The glyph, word and colour of a state. `color` is a variable of the theme: `state-…` or `text-…`."""

    glyph: str
    word: str
    color: str


_COLORS = {
    # Themes have one colour for unknown and silent tasks.
    Shown.UNKNOWN: "stale",
    Shown.SILENT: "stale",
    Shown.GONE: "failed",
    Shown.FALSE: "contradicted",
    Shown.WAITING: "submitted",
    Shown.IDLE: "partial",
}
LOOKS: Mapping[str, Look] = {
    shown: Look(shown.glyph, shown.word, f"state-{_COLORS.get(shown, shown)}") for shown in Shown
}  # by the shown state of a task, or by the state of an attempt

VERDICTS = {
    Verdict.CONTRADICTED: Look("⚑", "false", "state-contradicted"),
    Verdict.UNVERIFIABLE: Look("?", "unverifiable", "text-muted"),
    Verdict.VERIFIED: Look("✓", "verified", "state-completed"),
}  # in the order in which claims are listed

SEVERITIES = {Severity.ERROR: Look("✗", "error", "text-error"), Severity.WARNING: Look("!", "warning", "text-warning")}

TODOS = {
    TodoStatus.PENDING: Look("○", "pending", "text-muted"),
    TodoStatus.IN_PROGRESS: Look("◐", "in progress", "state-working"),
    TodoStatus.DONE: Look("✓", "done", "state-completed"),
}


def claims_of(task: Task) -> list[Claim]:
    """Return the claims of a task, false claims first. Claims about the same file and lines are joined."""
    order = list(VERDICTS)
    return sorted(merge_claims(task.claims), key=lambda claim: order.index(claim.verdict))


def false_claims(task: Task) -> list[Claim]:
    """Return the false claims of a task."""
    return [claim for claim in merge_claims(task.claims) if claim.verdict is Verdict.CONTRADICTED]


ASKS = {
    RequestKind.PERMISSION: Look("■", "allow?", "state-blocked"),
    RequestKind.QUESTION: Look("■", "asks", "state-blocked"),
    RequestKind.FORM: Look("■", "asks", "state-blocked"),
}  # for tasks whose program waits for the operator


def look_of(task: Task) -> Look:
    """Return the glyph, word and colour for the state of a task, or for the request of its program."""
    request, asked = task.request, task.need_in_program
    if task.shown is Shown.BLOCKED and request and request.waits_for_operator:
        return ASKS[request.kind]
    if task.shown is Shown.BLOCKED and asked:
        return ASKS[RequestKind.PERMISSION if asks_permission(asked) else RequestKind.QUESTION]
    return LOOKS[task.shown]


def look_of_attempt(task: Task, attempt: Attempt) -> Look:
    """Return the look of an attempt. The latest attempt looks like its task until you decide about it."""
    is_decided = task.binding is not None and task.own_state is not State.CANCELED
    return look_of(task) if attempt is task.latest and not is_decided else LOOKS[attempt.state]


# Words of a task

BASES = {
    Basis.PACKET: "its packet names the parent",
    Basis.SESSION: "the session store links the two",
    Basis.DELEGATION_PATH: "its delegation path leads through the parent",
    Basis.DOTTED_PREFIX: "the parent's id is the beginning of its id",
    Basis.DIRECTORY: "it lies in the parent's directory",
    Basis.NONE: "nothing names a parent",
}  # why a task is below its parent


def workspace_address(workspace: str) -> str:
    """Return the path of a workspace for people (`host:path` over ssh). Return "" if only the host knows the path."""
    return "" if workspace.startswith("/nats:") else workspace.removeprefix("/ssh:").removeprefix("/run:")


def name_of(task: Task) -> str:
    """Return the name of a task for the screen. An agent's words lose their Markdown marks, but an id stays exact."""
    return clean_row(task.row_title) if task.title in task.own_id else clean_summary(task.row_title)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 task`, `2 tasks`, `1,024 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def history_words(tree: Tree) -> str:
    """Return a phrase with the number of open questions of past tasks, or "" if there are none."""
    if not (count := len(tree.past_questions())):
        return ""
    day = (iso(tree.rules.history_before) or "?")[:10]
    return f"{plural(count, 'open question')} from before {day} {'is' if count == 1 else 'are'} history"


def aside_words(task: Task, now: float) -> str:
    """Describe whether a task is acknowledged, or until when it is snoozed. Return "" if it is neither."""
    if task.snoozed_until is None:
        return "acknowledged" if task.acknowledged else ""
    if math.isinf(task.snoozed_until):
        return "snoozed"
    until = clock(task.snoozed_until, now)
    # Leave the seconds out.
    return f"snoozed until {until[:5] if ' ' not in until else until}"


def retries_left(retry: Retry) -> str:
    """Return a phrase with the number of remaining retries: `1 left`, `1 of 2 left`."""
    of = "" if retry.remaining == retry.max_retries else f" of {retry.max_retries}"
    return f"{retry.remaining}{of} left"


_MOST_DELAYING = 50  # at most so many tasks are compared to find the most urgent task


def delay_of(task: Task, tasks: Mapping[str, Task], now: float) -> str:
    """Return why a task makes no progress: nobody has begun it, its files were deleted, or it waits for tasks that do
    not work. Return "" if none of this is true. `tasks` are all tasks of the tree."""
    if task.late and task.since is not None and now >= task.since:
        return f"not started for {long_span(now - task.since, 1)}"
    if task.shown is Shown.CANCELED and task.deleted and task.own_state is not State.CANCELED:
        return "its files were deleted"
    if task.shown is not Shown.WAITING:
        return ""
    if asking := _find_below(task, tasks, lambda one: one.asks, 2):
        others = (task.below.needs_operator if task.below else 0) - len(asking)
        return f"waits for you: {', '.join(map(name_of, asking))}{f' +{others:,}' if others > 0 else ''}"
    delaying = _find_below(task, tasks, _is_delaying, _MOST_DELAYING)
    if not task.below or not delaying:
        return ""
    one, others = max(delaying, key=lambda each: each.shown.urgency), task.below.count(_is_delaying)[True] - 1
    words = delay_of(one, tasks, now)
    if one.shown is not Shown.SUBMITTED and one.since is not None and now >= one.since:
        words = f"{one.shown.word} {long_span(now - one.since, 1)}"
    return f"waits for {name_of(one)}{f', {words}' if words else ''}{f' +{others:,}' if others > 0 else ''}"


def _is_delaying(one: TaskKind) -> bool:
    return one.shown.is_open and one.shown is not Shown.WAITING and not one.past


def _find_below(task: Task, tasks: Mapping[str, Task], holds: Callable[[TaskKind], bool], most: int) -> list[Task]:
    """Return the first `most` tasks below a task for which `holds` is true. Parents come before their children."""
    found: list[Task] = []
    for child in filter(None, map(tasks.get, task.children)):
        if len(found) >= most:
            break
        found += [child] if child.kind and holds(child.kind) else []
        if child.below and any(map(holds, child.below.counts)):
            found += _find_below(child, tasks, holds, most - len(found))
    return found[:most]


def reason_at(task: Task, tasks: Mapping[str, Task], now: float) -> str:
    """Describe why a task has its state at `now`, since when, and which tasks it waits for."""
    if task.state is State.UNKNOWN and task.lost_since is not None:
        unknown = long_span(now - task.lost_since, 1)
        if task.workspace:
            return f"nothing is known for {unknown}: {task.why}"
        return f"{task.why}: nothing is known for {unknown}, and it was {task.known_state} then"
    if task.shown is Shown.IDLE:
        return "it has ended its turn, and waits for you in its own program"
    if (delay := delay_of(task, tasks, now)) and delay not in task.why:
        return f"it {delay}" if task.shown is Shown.WAITING else f"{task.why}; {delay}"
    if task.shown not in (Shown.SILENT, Shown.GONE):
        return task.why
    process, words = process_words(task.run), [task.why]
    if task.since is not None and now >= task.since:
        words.append(f"silent for {long_span(now - task.since, 1)}")
    return "; ".join(words if process in task.why else [*words, process])


def question_at(task: Task, now: float) -> str:
    """Return the open question of a task at `now`, or "". If its process is gone, the question says since when."""
    if task.gone and not task.own_question and task.question and task.since is not None and now >= task.since:
        return gone_question(task, ago(task.since, now))
    return task.ask or task.question or ""


def ask_line(task: Task, question: str, limit: int = 200) -> str:
    """Return the question of a task as one safe line. Markdown marks are removed, but not from a program's request."""
    return clean_row(question, limit) if task.request else clean_summary(question, limit)


def prompt_line(attempt: Attempt) -> str | None:
    """Return the first line (untrusted) of a session's prompt. Return None if the prompt is a handoff or unknown."""
    run = attempt.run
    return run.prompt.opening if attempt.packet is None and run and run.prompt else None


def answer_line(attempt: Attempt) -> str | None:
    """Return the first line (untrusted) of a session's last words. Return None if the words are a return or unknown."""
    run = attempt.run
    return run.said.opening if attempt.result is None and run and run.said else None


# Work that goes on


def doing_words(doing: Activity) -> str:
    """Describe the activity of an agent (untrusted): a tool and its subject, the agent's words, or a todo."""
    again = f" ×{doing.repeats:,}" if doing.repeats > 1 else ""
    if doing.kind is ActivityKind.TOOL:
        return f"{doing.what}{again} {doing.about}".strip()
    mark = "" if doing.kind is ActivityKind.WORDS else "✓ " if doing.over else "◐ "
    return f"{mark}{doing.about}{again}"


def count_waits(task: Task, tasks: Mapping[str, Task]) -> int:
    """Count the open tasks right below a task, if the task only waits for them. Otherwise return 0."""
    if task.state is not State.WORKING or task.below is None or not task.below.open:
        return 0
    if not standing.only_waits_for_others(task.doing):
        return 0
    return sum(one.state.is_open for child in task.children if (one := tasks.get(child)) is not None)


def program_of(source: str) -> str:
    """Return the name (one untrusted word) of the program whose sessions a source reads."""
    return source.partition("-")[0]


# The state in the words of A2A, the Agent2Agent protocol

A2AState = Literal[
    "submitted", "working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected", "unknown"
]
A2A_AUTH: Final = "auth-required"
A2A_INPUT: Final = "input-required"
_IN_A2A: dict[Shown, A2AState] = {
    **dict.fromkeys(Shown, "working"),
    Shown.CANCELED: "canceled",
    Shown.COMPLETED: "completed",
    Shown.IDLE: A2A_INPUT,
    Shown.PARTIAL: "completed",
    Shown.FALSE: "completed",
    Shown.UNKNOWN: "unknown",
    Shown.SUBMITTED: "submitted",
    Shown.GONE: "unknown",
    Shown.FAILED: "failed",
    Shown.INVALID: "failed",
}


def a2a_state(task: Task) -> A2AState:
    """Return the name of a task's state in the Agent2Agent protocol (A2A 0.3).

    A failed task is `rejected` if its agent reports `rejected`. A task that waits for a permission is `auth-required`:
    an agent may not go on until somebody authorizes it (section 7.6 of A2A 1.0). A task that waits for an answer is
    `input-required`.
    """
    reported = (task.reported_state or "").strip().casefold().replace("_", "-")
    if task.shown is not Shown.BLOCKED:
        state = _IN_A2A[task.shown]
        return "rejected" if state == "failed" and reported == "rejected" else state
    if task.request:
        return A2A_AUTH if task.request.kind is RequestKind.PERMISSION else A2A_INPUT
    return A2A_AUTH if asks_permission(task.need_in_program) or reported == A2A_AUTH else A2A_INPUT


def asks_permission(asked: str) -> bool:
    """Tell whether a program waits for a permission, not for an answer. `asked` is from the program's records."""
    return asked.startswith("a permission")


IN_TERMINAL = "answer in its terminal"
NOBODY_WAITS = "nothing here waits for it any more; if its program still asks, answer it there"


def why_unanswerable(request: Request) -> str | None:
    """Return why a request cannot be answered here, and where it can. Return None if it can be answered here."""
    if request.is_answerable:
        return None
    if request.waits_for_operator:
        return request.why_not or IN_TERMINAL
    if request.stage is RequestStage.GONE:
        return NOBODY_WAITS
    return "it is decided already" if request.is_open else f"it has ended: {request.stage.value}"


# Requests of programs

# The sources whose programs `agentwatch init` can prepare to have their requests answered here.
_PREPARED = frozenset({"claude-code", "opencode", "kilo"})

_ANSWERED_BY = {
    Permitter.PERSON: "in the program",
    Permitter.HOOK: "by a hook, not with your answer",
    Permitter.RULE: "by a rule of the program",
    Permitter.UNKNOWN: "elsewhere",
}


def stage_words(request: Request, now: float) -> str:
    """Describe how far a request has got. The words contain no untrusted text."""
    verb = _answer_verb(request)
    match request.stage:
        case RequestStage.OFFERED:
            return time_left_words(request, now) or "waits for you"
        case RequestStage.DECIDED:
            return f"{verb}, not delivered yet"
        case RequestStage.DELIVERED:
            return f"{verb} and delivered; the result is not known yet"
        case RequestStage.ACTED:
            return f"{verb} by you"
        case RequestStage.ELSEWHERE:
            who = _ANSWERED_BY[Permitter(request.by)] if request.by in list(Permitter) else "in the program"
            return f"{_answer_verb(request) if request.allowed is not None else 'answered'} {who}"
        case RequestStage.UNKNOWN:
            return f"{verb} by you; whether that counted is not known: the connection to its program broke"
    late = "; your answer came too late" if request.allowed is not None else ""
    return f"gone: {NOBODY_WAITS}{late}"


def time_left_words(request: Request, now: float) -> str:
    """Describe how long a request can still be answered here. Return "" if it has no limit or has ended."""
    if request.until is None or not request.is_answerable:
        return ""
    left = short_span(max(request.until - now, 0.0))
    if request.prompt_hidden:
        return f"its prompt appears in its terminal in {left}"
    return f"can be answered here for {left}"


def denial_words(request: Request) -> list[str]:
    """Return sentences about the other effects of a denial: it may end other requests, or the agent's turn."""
    if Action.DENY not in request.actions:
        return []
    said = []
    if request.ends_others:
        said.append(f"a denial ends {plural(request.ends_others, 'other open request')} of its session, too")
    if request.ends_turn:
        said.append(f"a denial{' without words' if request.words else ''} ends the turn of its agent")
    return said


def whole_input(request: Request) -> str:
    """Return the exact input of a request, indented. Return "" if the other fields already show all of it."""
    import json  # imported here, so that the screen starts faster

    try:
        value = json.loads(request.input)
    except (ValueError, RecursionError):
        value = request.input
    parts = list(value.values()) if isinstance(value, dict) else [value]
    if all(part in (request.shown, request.said) for part in parts):
        return ""
    return value if isinstance(value, str) else indented_json(value)


def where_to_answer(task: Task) -> str:
    """Return where a task's question must be answered, and why this is not possible here (perhaps untrusted). Return ""
    if it can be answered here, or if the task has no question."""
    if (request := task.request) is not None:
        return (why_unanswerable(request) or "") if request.waits_for_operator else ""
    run = task.run
    if run is None or not task.need_in_program:
        return ""
    can_prepare = run.source in _PREPARED
    return f"{IN_TERMINAL}; `agentwatch init --agent {run.source}` lets you answer here" if can_prepare else IN_TERMINAL


def _answer_verb(request: Request) -> str:
    if not request.allowed:
        return "answered" if request.allowed is None else "denied"
    return "allowed" if request.kind is RequestKind.PERMISSION else "answered"


# Model and mode


class Agreement(StrEnum):
    """Whether a reported model or mode agrees with the recorded model or mode. A difference is no false claim."""

    MATCHES = "matches"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


class Compared(NamedTuple):
    """A model or mode: as the return reports it, and as the session store or the handoff has it."""

    reported: str | None
    known: str | None

    @property
    def agreement(self) -> Agreement:
        """Whether the known and the reported name match, without the provider of a model. UNKNOWN if one is missing."""
        if not (self.known and self.reported):
            return Agreement.UNKNOWN
        one, other = (word.rpartition("/")[2].strip().casefold() for word in (self.known, self.reported))
        return Agreement.MATCHES if one == other else Agreement.DIFFERS


def runtime_of(result: Return, run: Run | None, packet: Handoff | None) -> tuple[Compared, Compared]:
    """Compare the reported model with that of the session store, and the reported mode with that of the handoff."""
    return Compared(result.model, run.model if run else None), Compared(result.mode, packet.mode if packet else None)


# Decisions

_UNREAD_AFTER = 180.0  # if no agent has read a decision after so many seconds, no agent waits for it


def decision_of(task: Task) -> Decision | None:
    """Return the decision about the latest attempt, or else about the attempt before it, or None."""
    return next((attempt.decision for attempt in reversed(task.attempts[-2:]) if attempt.decision), None)


def is_unread(decision: Decision, now: float) -> bool:
    """Tell whether a decision was delivered long ago and no agent has read it."""
    return decision.receipt.stage is Stage.DELIVERED and now - decision.receipt.at >= _UNREAD_AFTER


def is_pending(decision: Decision) -> bool:
    """Tell whether an agent has still to read a decision, or to begin the attempt that the decision asks for."""
    if decision.expired:
        return False
    if decision.action in ENDING:
        # These decisions have no visible effect. So they are over when an agent has verifiably read them.
        return not any(one.stage is Stage.READ and not one.claimed for one in decision.receipts)
    return decision.receipt.stage is not Stage.ACTED


def claimed_words(decision: Decision) -> str:
    """Describe which agent has claimed a decision but not acted on it yet. Return "" if no agent has."""
    by = decision.receipt.taken_by
    return f"claimed by {quote_text(by, 60)}, not acted on yet" if by and is_pending(decision) else ""


def pending_decisions(tree: Tree) -> list[Decision]:
    """Return the valid decisions that are not carried out yet, the oldest first."""
    decided = (attempt.decision for task in tree.tasks.values() for attempt in task.attempts)
    moving = (one for one in decided if one and is_pending(one))
    return sorted(moving, key=lambda one: (one.at, one.decision_id))


def cost_of(task: Task, prices: Mapping[str, float]) -> float | None:
    """Return the cost of a task's own tokens. Return None if a price is missing or the tokens are unknown. `prices` has
    the price of a million tokens by model, with or without the provider."""
    total = None
    for run in (one.run for one in task.attempts):
        if run and run.tokens is not None:
            model = run.model or ""
            price = prices.get(model, prices.get(model.rpartition("/")[2]))
            if price is None:
                return None
            total = (total or 0.0) + price * run.tokens / 1_000_000
    return total
