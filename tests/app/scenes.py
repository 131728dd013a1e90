"""Scenes for the tests of the screen: observations by hand, and a monitor whose source is told what to see."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Contract, Finding, Handoff, Outcome, Return, Severity, Todo, TodoStatus
from agentwatch.delegation.events import (
    Activity,
    ActivityKind,
    Event,
    Gone,
    Message,
    Ran,
    Run,
    RunState,
    Seen,
    Unreadable,
)
from agentwatch.history.acknowledgements import Acknowledgements
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Source
from agentwatch.sources.sessions.entries import RunTranscript

NOW = 1_800_000_000.0
"""The frozen present of every scene, in seconds since the epoch."""

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
"""Foreign texts that would do harm, or break the screen, if they were shown as they are."""


class Scene:
    """Collects observations; each call is one file of a task."""

    def __init__(self):
        self.events: list[Event] = []
        self.digests: dict[str, str] = {}
        """The digest of each file's last content."""
        self._seq = 0

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _see(self, path: str, document: Handoff | Return, ago: float, findings: Iterable[Finding] = ()):
        digest = sha256(f"{path}{document}".encode("utf-8", "surrogatepass")).hexdigest()
        self.digests[path] = digest
        self.events.append(Seen(self._next(), NOW - ago, path, digest, document, tuple(findings)))

    def handoff(
        self,
        task_id: str,
        objective: str = "Do it",
        *,
        ago: float = 60.0,
        attempt: int | None = None,
        done: str = "",
        parent: str | None = None,
        mode: str | None = None,
    ):
        """A packet. `done` is the checklist in the letters x, - and a blank: `xx- `."""
        marks = {"x": TodoStatus.DONE, "-": TodoStatus.IN_PROGRESS, " ": TodoStatus.PENDING}
        todos = tuple(Todo(f"step {n}", marks[mark], None, 20 + n) for n, mark in enumerate(done)) if done else None
        packet = Handoff(task_id, objective, parent_task_id=parent, attempt=attempt, todos=todos, mode=mode)
        self._see(f"handoffs/{task_id}{attempt or ''}.handoff.md", packet, ago)

    def returned(
        self,
        task_id: str,
        outcome: Outcome | None = Outcome.COMPLETED,
        *,
        ago: float = 30.0,
        agent: str | None = None,
        attempt: int | None = None,
        summary: str | None = None,
        blockers: tuple[str, ...] = (),
        retry: bool | None = None,
        hint: str | None = None,
        code: str | None = None,
        invalid: bool = False,
        created: tuple[str, ...] = (),
    ):
        """A return."""
        words = {
            Outcome.COMPLETED: "SUCCESS", Outcome.PARTIAL: "PARTIAL", Outcome.FAILED: "ERROR",
            Outcome.BLOCKED: "BLOCKED", Outcome.WORKING: "in_progress", None: None,
        }  # fmt: skip
        document = Return(
            Contract.RETURN_FORMAT, words[outcome], outcome, task_id=task_id, attempt=attempt, agent=agent,
            summary=summary, blockers=blockers, retry_recommended=retry, retry_hint=hint, error_code=code,
            model="openai/gpt-5.2", mode="code", files_created=created,
        )  # fmt: skip
        findings = [Finding("RET004", Severity.ERROR, "state is missing: write SUCCESS, PARTIAL or ERROR", 3)]
        self._see(f"returns/{task_id}{attempt or ''}.return.md", document, ago, findings if invalid else ())

    def gone(self, path: str):
        """A file that is no longer there."""
        self.events.append(Gone(self._next(), NOW, path))

    def unreadable(self, path: str, message: str):
        """A file that could not be read."""
        finding = Finding("SRC002", Severity.ERROR, message)
        self.events.append(Unreadable(self._next(), NOW, path, finding))

    def ran(
        self,
        session: str,
        title: str | None = None,
        state: RunState = RunState.WORKING,
        *,
        below: str | None = None,
        agent: str | None = None,
        source: str = "claude-code",
        ago: float = 60.0,
        heard: float = 5.0,
        doing: Activity | None = None,
        said: str | None = None,
        reason: str = "",
        gone: bool | None = None,
        done: str = "",
        tokens: int | None = None,
    ):
        """A session of an agent program, `below` another one; `done` is as in `handoff`."""
        marks = {"x": TodoStatus.DONE, "-": TodoStatus.IN_PROGRESS, " ": TodoStatus.PENDING}
        run = Run(
            source=source, session_id=session, parent_session=below, state=state, place=f"/home/kim/{session}.jsonl",
            started_at=NOW - ago, updated_at=NOW - heard, title=title, agent=agent, doing=doing, reason=reason,
            ended_at=None if state is RunState.WORKING else NOW - heard, process_gone=gone, tokens=tokens,
            todos=tuple(Todo(f"step {n}", marks[mark], None, n) for n, mark in enumerate(done)) or None,
            said=None if said is None else Message(NOW - heard, "0" * 64, said),
        )  # fmt: skip
        self.events.append(Ran(self._next(), NOW - heard, f"{source}:{session}", run))

    def take(self) -> tuple[Event, ...]:
        """What was collected since the last call."""
        taken = tuple(self.events)
        self.events.clear()
        return taken


class ToldSource(Source):
    """A source that sees what it is told."""

    def __init__(self, first: Iterable[Event] = (), health: Health = LIVE):
        self.health = health
        self.transcripts: dict[str, Callable[[], RunTranscript]] = {}
        """By session."""
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
        begin = self.transcripts.get(run.session_id)
        return begin() if begin is not None else None

    def push(self, events: Iterable[Event] = (), health: Health | None = None):
        """See more."""
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
    """A monitor that has these observations to begin with, and its source."""
    source = ToldSource(events, health)
    monitor = Monitor(
        Path(workspace),
        settings or Settings(),
        source,
        clock,
        open_shelf=lambda: Acknowledgements(Path(mkdtemp()), clock=clock),
    )
    return monitor, source


def shop() -> Scene:
    """The session of the sketch: three levels, something of everything."""
    scene = Scene()
    scene.handoff("checkout", "Ship the new checkout", ago=840)
    scene.handoff("checkout.plan", "Plan the work", ago=800)
    scene.returned("checkout.plan", agent="planner", summary="Five packets, no blockers.", ago=680)
    scene.handoff("checkout.implement", "Implement the plan", ago=560)
    scene.handoff("checkout.implement.schema", "Design schema v3", ago=540)
    scene.returned("checkout.implement.schema", agent="architect", summary="Schema v3 is written.", ago=480)
    scene.handoff("checkout.implement.api", "Build the checkout API against schema v3", ago=300)
    scene.returned(
        "checkout.implement.api", Outcome.FAILED, agent="code", ago=120, code="E_TOOL_FAILURE", retry=True,
        summary="Migration tool timed out before the schema was applied.",
        hint="Raise the tool time-out and pass the schema path.", created=("api/checkout.py",),
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
    scene.returned("checkout.release", Outcome.FAILED, agent="code", ago=200, attempt=1, retry=True)
    scene.handoff("checkout.release", "Prepare the release", ago=100, attempt=2, done="x-   ")
    scene.returned("checkout.release", Outcome.WORKING, agent="code", ago=10, attempt=2)
    return scene


def call(tool: str, about: str, ago: float, *, over: bool = False, repeats: int = 1) -> Activity:
    """A tool that was called so many seconds ago."""
    return Activity(NOW - ago, ActivityKind.TOOL, tool, about, over, repeats)


def busy() -> Scene:
    """Sessions at work: below one a child that failed, two that work, one whose process is gone, one that is done."""
    scene = Scene()
    handed = call("Task", "build the table", 700)
    scene.ran("s1", "export the invoices", ago=720, heard=5, doing=handed, done="xx- ")
    scene.ran("c1", "api", RunState.FAILED, below="s1", agent="general", ago=300, heard=20, reason="API Error: 529")
    edit = call("Edit", "src/billing/export/form.tsx", 4)
    scene.ran("c2", "form", below="s1", agent="general", ago=200, heard=4, doing=edit, done="xxx- ")
    tests = call("Bash", "npm test -- --watch=false --reporter=verbose", 41, repeats=3)
    scene.ran("c3", "tests", below="s1", agent="tester", ago=190, heard=41, doing=tests)
    read = call("Read", "docs/a.md", 540)
    scene.ran("c4", "docs", below="s1", agent="writer", ago=600, heard=540, doing=read, gone=True)
    scene.ran("c5", "a plan of the work, written for whoever comes after", RunState.ENDED, below="s1", said="Done.",
              agent="planner", ago=700, heard=650)  # fmt: skip
    words = Activity(NOW - 9, ActivityKind.WORDS, about="The totals differ by one cent; I look at the rounding first.")
    scene.ran("s2", "round the totals", source="opencode", ago=90, heard=9, doing=words)
    return scene
