"""Scenes for the tests of the screen: events written by hand, and a monitor whose source emits the given events."""

from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return, Severity, Todo, TodoStatus
from agentwatch.delegation.events import Activity, ActivityKind, Event, Message, Ran, Run, RunState, Seen, Unreadable
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Source
from agentwatch.sources.sessions.entries import RunTranscript

NOW = 1_800_000_000.0
"""The time at which every scene is frozen, in seconds since the epoch."""

LIVE = Health("live", "")

HOSTILE = {
    "closing": "[/] [/a] [",
    "action": "[@click=app.quit]see log[/]",
    "style": "[bold red on white]x",
    "clipboard": "\x1b]52;c;aGVsbG8=\x07",
    "clear": "\x1b[2J\x1b[H",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "c1": "\x9b31m\x9d0;title\x9c",
    "bidi": "abc\u202edcba\u2066x",
    "invisible": "a\u200b\u200d\ufeff\U000e0041b",
    "combining": "e" + "\u0301" * 60,
    "surrogate": "a\ud800b",
    "breaks": "one\r\ntwo\nthree\u2028four\ttabbed",
    "variables": "$accent $foreground ${x}",
    "long": "y" * 20_000,
    "null": "\x00\x07\x08\x7f",
    "emoji": "👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ☠️",
    "carriage": "safe\rfake",
    "wide": "宽" * 200,
    "markdown": "**[a](b) `` ~~ ![x](y) | # > - [",
    "red": "\x1b[31mred\x1b[0m [bold]x[/bold] [link=http://evil.test]x[/link]",
    "zalgo": "z" + "\u0301" * 500 + "a\u200bb\u00ad \u2029c\x0bd\x0ce\x85f",
}
"""Foreign texts that would do harm, or break the screen, if they were shown without being made safe."""


def _todos(done: str) -> tuple[Todo, ...] | None:
    """Return a checklist from the letters `x`, `-` and a blank, as in `xx- `."""
    marks = {"x": TodoStatus.DONE, "-": TodoStatus.IN_PROGRESS, " ": TodoStatus.PENDING}
    return tuple(Todo(f"step {n}", marks[mark], None, n) for n, mark in enumerate(done)) or None


class Scene:
    """Collects events; each call adds one file or one run of a task."""

    def __init__(self):
        self.events: list[Event] = []
        self._numbers = count(1)

    def see(self, path: str, document: Handoff | Return, ago: float, *findings: Finding):
        """Add a file that was seen `ago` seconds before now."""
        digest = sha256(f"{path}{document}".encode("utf-8", "surrogatepass")).hexdigest()
        self.events.append(Seen(next(self._numbers), NOW - ago, path, digest, document, findings))

    def handoff(
        self, task_id: str, objective: str = "Do it", *, ago: float = 60.0, attempt: int | None = None, done: str = "",
        **more: Any,
    ):  # fmt: skip
        """Add a handoff; `done` is its checklist."""
        packet = Handoff(task_id, objective, attempt=attempt, todos=_todos(done), **more)
        self.see(f"handoffs/{task_id}{attempt or ''}.handoff.md", packet, ago)

    def returned(
        self, task_id: str, outcome: Outcome = Outcome.COMPLETED, *, ago: float = 30.0, attempt: int | None = None,
        invalid: bool = False, **more: Any,
    ):  # fmt: skip
        """Add a return."""
        document = Return(Contract.RETURN_FORMAT, outcome.upper(), outcome, task_id, attempt, **more)
        finding = Finding("RET004", Severity.ERROR, "state is missing: write SUCCESS, PARTIAL or ERROR", 3)
        self.see(f"returns/{task_id}{attempt or ''}.return.md", document, ago, *[finding] * invalid)

    def unreadable(self, path: str, message: str):
        """Add a file that could not be read."""
        finding = Finding("SRC002", Severity.ERROR, message)
        self.events.append(Unreadable(next(self._numbers), NOW, path, finding))

    def ran(
        self, session: str, title: str | None = None, state: RunState = RunState.WORKING, *,
        source: str = "claude-code", ago: float = 60.0, heard: float = 5.0, done: str = "",
        parent_session: str | None = None, **more: Any,
    ):  # fmt: skip
        """Add a session of an agent program; `done` is its checklist."""
        run = Run(
            source=source, session_id=session, state=state, place=f"/home/kim/{session}.jsonl", title=title,
            started_at=NOW - ago, updated_at=NOW - heard, ended_at=None if state is RunState.WORKING else NOW - heard,
            todos=_todos(done), parent_session=parent_session, **more,
        )  # fmt: skip
        self.events.append(Ran(next(self._numbers), NOW - heard, f"{source}:{session}", run))

    def take(self) -> tuple[Event, ...]:
        """Return all events that were added since the last call."""
        taken = tuple(self.events)
        self.events.clear()
        return taken


class ToldSource(Source):
    """A source that emits the events that a test gives it."""

    def __init__(self, first: Iterable[Event] = (), health: Health = LIVE):
        self.health = health
        self.read: Callable[[Run], RunTranscript | None] = lambda _: None
        """Returns the transcript of a session."""
        self._first = tuple(first)
        self._emit: Callable[[Batch], None] | None = None

    def start(self, emit: Callable[[Batch], None]):
        self._emit = emit
        emit(Batch(self._first, self.health))

    def stop(self):
        self._emit = None

    def content(self, digest: str) -> str | None:
        return f"# Text of {digest[:8]}\n"

    def transcript(self, run: Run) -> RunTranscript | None:
        return self.read(run)

    def push(self, events: Iterable[Event] = (), health: Health | None = None):
        """Emit these events, or another health."""
        self.health = health or self.health
        assert self._emit is not None
        self._emit(Batch(tuple(events), self.health))


def monitor_of(
    events: Iterable[Event] = (),
    *,
    health: Health = LIVE,
    settings: Settings | None = None,
    workspace: str = "/home/kim/shop",
    clock: Callable[[], float] = lambda: NOW,
) -> tuple[Monitor, ToldSource]:
    """Return a monitor that begins with these events, and its source."""
    source = ToldSource(events, health)
    monitor = Monitor(
        Path(workspace),
        settings or Settings(),
        source,
        clock,
        open_acknowledgements=lambda: Acknowledgements(Path(mkdtemp()), clock=clock),
    )
    return monitor, source


def shop() -> Scene:
    """Return the scene of the design's sketch: tasks on three levels, with something of everything."""
    scene = Scene()
    scene.handoff("checkout", "Ship the new checkout", ago=840)
    scene.handoff("checkout.plan", "Plan the work", ago=800)
    scene.returned("checkout.plan", agent="planner", summary="Five packets, no blockers.", ago=680)
    scene.handoff("checkout.implement", "Implement the plan", ago=560)
    scene.handoff("checkout.implement.schema", "Design schema v3", ago=540)
    scene.returned("checkout.implement.schema", agent="architect", summary="Schema v3 is written.", ago=480)
    scene.handoff("checkout.implement.api", "Build the checkout API against schema v3", ago=300)
    scene.returned(
        "checkout.implement.api", Outcome.FAILED, agent="code", ago=120, error_code="E_TOOL_FAILURE",
        summary="Migration tool timed out before the schema was applied.", retry_recommended=True,
        retry_hint="Raise the tool time-out and pass the schema path.", files_created=("api/checkout.py",),
    )  # fmt: skip
    scene.handoff("checkout.implement.ui", "Build the payment form", ago=190, done="xxxx- ")
    scene.returned("checkout.implement.ui", Outcome.WORKING, agent="code", ago=20)
    scene.handoff("checkout.implement.docs", "Write the operator's guide", ago=15)
    scene.handoff("checkout.review", "Review the diff", ago=420)
    scene.returned("checkout.review", Outcome.PARTIAL, agent="reviewer", ago=300, summary="Two files unread.")
    scene.handoff("checkout.security", "Audit the auth flow", ago=430)
    scene.handoff("checkout.security.probe", "Probe the session cookie", ago=410)
    scene.handoff("checkout.security.tokens", "Read the token store", ago=410)
    scene.returned(
        "checkout.security", Outcome.BLOCKED, agent="auditor", ago=360, blockers=("Which auth flow is in scope?",)
    )
    scene.handoff("checkout.metrics", "Count conversions", ago=200)
    scene.returned("checkout.metrics", Outcome.COMPLETED, agent="analyst", ago=170, invalid=True)
    scene.handoff("checkout.release", "Prepare the release", ago=250)
    scene.returned("checkout.release", Outcome.FAILED, agent="code", ago=200, attempt=1, retry_recommended=True)
    scene.handoff("checkout.release", "Prepare the release", ago=100, attempt=2, done="x-   ")
    scene.returned("checkout.release", Outcome.WORKING, agent="code", ago=10, attempt=2)
    return scene


def call(tool: str, about: str, ago: float, *, over: bool = False, repeats: int = 1) -> Activity:
    """Return a call of a tool from `ago` seconds before now."""
    return Activity(NOW - ago, ActivityKind.TOOL, tool, about, over, repeats)


def busy() -> Scene:
    """Return sessions at work: a parent, and below it one failed, two at work, one without a process, and one done."""
    scene = Scene()
    handed = call("Task", "build the table", 700)
    scene.ran("s1", "export the invoices", ago=720, heard=5, doing=handed, done="xx- ")
    below = partial(scene.ran, parent_session="s1")
    below("c1", "api", RunState.FAILED, agent="general", ago=300, heard=20, reason="API Error: 529")
    edit = call("Edit", "src/billing/export/form.tsx", 4)
    below("c2", "form", agent="general", ago=200, heard=4, doing=edit, done="xxx- ")
    tests = call("Bash", "npm test -- --watch=false --reporter=verbose", 41, repeats=3)
    below("c3", "tests", agent="tester", ago=190, heard=41, doing=tests)
    read = call("Read", "docs/a.md", 540)
    below("c4", "docs", agent="writer", ago=600, heard=540, doing=read, process_gone=True)
    done, plan = Message(NOW - 650, "0" * 64, "Done."), "a plan of the work, written for whoever comes after"
    below("c5", plan, RunState.ENDED, said=done, agent="planner", ago=700, heard=650)
    words = Activity(NOW - 9, ActivityKind.WORDS, about="The totals differ by one cent; I look at the rounding first.")
    scene.ran("s2", "round the totals", source="opencode", ago=90, heard=9, doing=words)
    return scene
