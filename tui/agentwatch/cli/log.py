"""The command that prints all state changes of tasks."""

from __future__ import annotations

import gc
import json
import math
import select
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from queue import Empty, SimpleQueue

from agentwatch.cli.command import HOST_EXIT_CODES, PLACE, SESSION, argument, command, flag, one_of, parse_span
from agentwatch.cli.shared import open_subject, other_worktrees, report_problems
from agentwatch.composition import build_acknowledgements, build_inbox, build_source, history_cutoff, open_sessions
from agentwatch.config import Settings, load
from agentwatch.console import MUTED, Part, print_line
from agentwatch.decisions.service import DecisionService, DecisionWatcher
from agentwatch.delegation.events import Checked, Event, Gone, Lost, Noted, Reached, Ruled, Seen, Tick
from agentwatch.delegation.standing import HAVE_FAILED, request_words
from agentwatch.delegation.task import Shown, State, sum_tasks
from agentwatch.delegation.tree import Tree
from agentwatch.errors import ExitCode, NoMatchError, UsageError, WorkspaceError
from agentwatch.evidence.inspector import Inspector, Target
from agentwatch.history.log import ActivityChange, Change, RequestChange, StateChange, StateChanges, order_events
from agentwatch.history.recording import recording_lines, write_new_file
from agentwatch.history.store import History
from agentwatch.monitor import tree_rules
from agentwatch.remote.host import RemoteSource
from agentwatch.sources import Batch, Health, Problem, Source, print_problems
from agentwatch.sources.playback import PLAYED
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.state import read_first_watch, state_directory
from agentwatch.text import clean, clean_name, print_error, print_text, quote_text
from agentwatch.view.document import ActivityDoc, Document, RequestDoc, Time, activity_document, request_document
from agentwatch.view.words import LOOKS, doing_words, iso, plural, stage_words

_NOTHING_FOUND = "no session of an agent, and no history: it is kept while `agentwatch` watches the workspace"
_LONGEST_REASON = 200  # the most characters of a reason in a line
_POLL_SECONDS = 0.5  # seconds after which `log --follow` looks again for decisions, and checks that somebody reads it


class LoggedStateDoc(Document):
    at: Time
    task_id: str
    before: State | None
    after: State | None
    attempt: int
    reason: str
    contradicted: bool
    was_contradicted: bool


class LoggedActivityDoc(Document):
    at: Time
    task_id: str
    activity: ActivityDoc | None


class LoggedRequestDoc(Document):
    at: Time
    task_id: str
    request: RequestDoc


@command(
    PLACE,
    flag("--json", "one JSON object a line"),
    flag("--activity", "print also what tasks do: each call, words and todo"),
    *one_of(
        flag("--follow -f", "go on with each change as it happens, until ctrl+c"),
        argument("--export", "FILE", "write what was observed into a new FILE, for `replay FILE`"),
    ),
    argument("--since", "TIME", "print only the changes of this time: 90m, 12h, 7d", type=parse_span),
    SESSION,
    exit_codes=HOST_EXIT_CODES,
)
def log(options: Namespace) -> int:
    """Print every state change of the workspace's files, sessions and decisions, in order."""
    gc.enable()
    settings = load()
    with open_subject(options.path, settings, options.session) as subject:
        place, *_, fleet = subject
        if fleet:
            if options.follow or options.export:
                raise UsageError("--follow and --export are about workspaces of this machine: run it on the host")
            return _print_remote(fleet.open_source(place.workspace), _Printer(settings, options))
        # Print also other worktrees, but only as plain text: lines of JSON do not name their workspace.
        is_alone = options.follow or options.export or options.json or options.session is not None
        others, complaints = ([], ()) if is_alone else other_worktrees([subject])
        codes = [0]
        for number, (one, *_) in enumerate([subject, *others]):
            if others:
                print_text(f"{chr(10) if number else ''}{clean(str(one.workspace))}")
            sessions = open_sessions(one.workspace, options.session) if settings.sessions else None
            with closing(sessions) if sessions else nullcontext():
                codes.append(_print_workspace(one.workspace, settings, options, sessions, _Printer(settings, options)))
        for complaint in complaints:
            print_error(clean(complaint))
        return max(codes)


def _print_workspace(
    workspace: Path, settings: Settings, options: Namespace, sessions: SessionsSource | None, printer: _Printer
) -> int:
    """Print the past changes of a workspace. `--follow` prints later changes, too. `--export` writes a file instead."""
    state = state_directory(workspace)
    history, inbox = History(state), build_inbox(workspace)
    source = build_source(workspace, settings, sessions=sessions)
    decisions = DecisionWatcher(DecisionService(workspace, read_only=True))
    recalled, requests = history.recall(), inbox.read_changes()
    batch = sessions.scan() if sessions else Batch((), Health("live", ""))
    notices = ("history", history.notice), ("requests", inbox.notice)
    problems = [*batch.health.problems, *(Problem(name, str(state), one) for name, one in notices if one)]
    if options.session is not None and not (batch.events or options.follow):
        raise NoMatchError(
            f"nothing matches: no session here has an id that begins with {quote_text(options.session, 60)}"
        )
    events = [*recalled.events, *batch.events, *requests]

    def find_text(digest: str) -> str | None:
        return source.content(digest) or history.text(digest)

    inspector = Inspector(workspace, lambda one: find_text(one.digest), source.transcript)
    if options.export is not None:
        if not events:
            raise WorkspaceError(f"{workspace}: {'; '.join(map(str, problems[:3])) or _NOTHING_FOUND}")
        events += decisions.read_changes(writes=False)
        noted = (one for one in build_acknowledgements(workspace).read_changes() if isinstance(one, Noted))
        events += (one._replace(at=one.aside.put.at) for one in noted if one.aside.put)
        events += printer.check_claims(events, inspector)
        lines = recording_lines(workspace.name, events, find_text, history_cutoff(workspace, settings))
        write_new_file(Path(options.export), lines)
        # Count the events as `replay` plays them: it splits a request into start and end, and a run into turns.
        count = sum(isinstance(one, PLAYED) for one in order_events(events, time.time()))
        warning = "The texts of documents and sessions are in it: read it before you send it."
        print_text(f"{count:,} observations in {clean(options.export)}. {warning}")
        return report_problems(problems)
    # Nobody saw in which order the older files changed, so one line sums up their changes.
    watched_at = read_first_watch(state) if recalled.events else time.time()
    if watched_at is not None:
        printer.sum_up_first_look(watched_at)
    events += decisions.read_changes(writes=False)
    printer.print_all(events, inspector)
    if options.follow:
        source.remember(recalled)
        print_problems(problems)
        _follow_changes(
            source, lambda: [*inbox.read_changes(), *decisions.read_changes(writes=False)], printer, problems, inspector
        )
        return 0
    if not events and not problems:
        print_error(f"{clean(str(workspace))}: {_NOTHING_FOUND}")
    return report_problems(problems)


def _print_remote(source: RemoteSource, printer: _Printer) -> int:
    """Print the past changes of a workspace on a host, as far as the host's relay knows them."""
    batch = source.scan()
    printer.sum_up_first_look(source.watched_at)
    printer.tree.apply(*(one for one in batch.events if isinstance(one, Ruled)))
    last = [one for one in batch.events if isinstance(one, Lost)]
    printer.print_story(one for one in batch.events if not isinstance(one, Ruled | Lost | Reached))
    printer.print_events(last)
    code = report_problems(batch.health.problems)
    return ExitCode.UNREACHED if last else code


class _Printer:
    """Prints the changes that past or new events cause."""

    def __init__(self, settings: Settings, options: Namespace):
        self._as_json = options.json
        self._since = -math.inf if options.since is None else time.time() - options.since
        # As on the screen, a task stays in the tree after its files are deleted.
        self.tree = Tree(tree_rules(settings))
        self._changes = StateChanges(self.tree, with_activity=options.activity)
        self._events: list[Event] = []  # all events given to `print_all`
        self.first_look_at = -math.inf
        self._old_files: dict[str, float] = {}  # files older than the first look, and when they were written
        self._old_tasks: set[str] = set()

    def sum_up_first_look(self, at: float) -> None:
        """Sum up all files older than `at` (the time of the first look) in one line. JSON lists each change."""
        if not self._as_json:
            self.first_look_at = at

    def print_all(self, events: Sequence[Event], inspector: Inspector) -> None:
        """Check the returns in these events. Print the changes that events and verdicts cause, in the order of time."""
        self._events += events
        self.print_story([*events, *self.check_claims(self._events, inspector)])

    def print_story(self, events: Iterable[Event]) -> None:
        """Print the changes that these events cause, in the order of time. Then sum up old files, if there are any."""
        self.print_events(order_events(events, time.time()))
        self._changes.touched.clear()
        if self._old_tasks:
            self.print_first_look()

    def check_claims(self, events: Iterable[Event], inspector: Inspector) -> list[Checked]:
        """Check the claims of the returns in these events, and return the verdicts."""
        tree = Tree(self.tree.rules)
        tree.apply(*events)
        return inspector.check(inspector.find_new_targets(tree, tree.tasks))

    def print_events(self, events: Iterable[Event]) -> None:
        """Print the changes that each of these events causes."""
        for event in events:
            if event.at >= self.first_look_at and self._old_tasks:
                self.print_first_look()
            changes = self._changes.changes_of(self.tree.apply(event), event.at)
            if event.at < self.first_look_at:
                if isinstance(event, Seen):
                    self._old_files.setdefault(event.path, event.at)
                if isinstance(event, Seen | Gone | Checked) and event.path in self._old_files:
                    self._old_tasks.update(one.task_id for one in changes)
                    continue
            for change in changes:
                if change.at < self._since:
                    continue
                if self._as_json:
                    print_text(json.dumps(log_document(change).to_json()))
                else:
                    print_line(*_color_parts(log_line(change)), hang=22)

    def print_first_look(self) -> None:
        """Print one line about the tasks that existed before anybody watched."""
        tasks = [task for task_id in self._old_tasks if (task := self.tree.tasks.get(task_id)) is not None]
        sums = sum_tasks(tasks)
        failed, false = sum(sums.states[one] for one in HAVE_FAILED), sums.shown[Shown.FALSE]
        words = [f"{count:,} {word}" for count, word in ((failed, "failed"), (false, "false")) if count]
        if tasks and self.first_look_at >= self._since:
            oldest = (iso(min(self._old_files.values())) or "-")[:10]
            counted = ", ".join([plural(sums.tasks, "task"), *words])
            print_text(f"{iso(self.first_look_at)}  first look: {counted}, oldest {oldest}")
        self._old_tasks.clear()
        self.first_look_at = -math.inf

    def find_unchecked(self, inspector: Inspector) -> list[Target]:
        """Return a target (a return to check) for each task that changed since the previous call and needs a check."""
        touched, self._changes.touched = self._changes.touched, set()
        return inspector.find_new_targets(self.tree, touched)


def _follow_changes(
    source: Source,
    read_news: Callable[[], Sequence[Event]],
    printer: _Printer,
    reported: Sequence[Problem],
    inspector: Inspector,
) -> None:
    """Print the changes since the end of the history, then each new change. Report new problems on standard error.
    Return when nobody reads the output any more."""
    batches, checked = SimpleQueue[Batch](), SimpleQueue[Sequence[Checked]]()
    missed, is_starting, is_first = list[Event](), True, True
    source.start(batches.put)
    try:
        while _has_reader():
            sys.stdout.flush()
            with suppress(Empty):
                events, health, _ = batches.get(timeout=_POLL_SECONDS)
                is_starting = health.mode == "starting"
                missed += events
                print_problems([problem for problem in health.problems if problem not in reported])
                reported = health.problems
            missed += read_news()
            if is_starting:
                continue
            if is_first:
                printer.print_all(missed, inspector)
                inspector.start(checked.put)
            else:
                printer.print_events(missed)
            # A decision may expire, so the tree must know the present time.
            printer.print_events([Tick(0, time.time())])
            missed, is_first = [], False
            inspector.request_checks(printer.find_unchecked(inspector))
            while not checked.empty():
                printer.print_events(checked.get())
    finally:
        source.stop()
        inspector.stop()


def _has_reader() -> bool:
    """Tell, without writing anything, whether somebody still reads standard output."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not poll.poll(0)


def _color_parts(line: str) -> Iterator[Part | str]:
    """Yield the parts of a line. The time is muted, and the new state has its colour."""
    at, (before, arrow, after) = line[:20], line[20:].partition(" → ")
    state = after.partition("  ")[0]
    yield at, MUTED
    yield before + arrow
    known = LOOKS.get("false" if state.endswith("contradicted") else state)
    yield state, known.color if known else ""
    yield after[len(state) :]


def log_line(change: Change) -> str:
    """Return one sanitised line about a change."""
    match change:
        case ActivityChange():
            text = f"· {clean(doing_words(change.doing), _LONGEST_REASON)}"
        case RequestChange(request=request):
            text = clean(f"{request_words(request)}: {stage_words(request, change.at)}", _LONGEST_REASON)
            text += f", {clean(request.by, 60)}" if request.by else ""
        case StateChange():
            before = "false" if change.was_contradicted else change.before or "new"
            after = "false" if change.contradicted else change.after or "not seen any more"
            text = f"{before} → {after}"
            text += f"  attempt {change.attempt}" if change.attempt > 1 else ""
            text += f"  {clean(change.reason, _LONGEST_REASON)}" if change.reason else ""
    return f"{iso(change.at) or '-':<20}  {clean_name(change.task_id, 80)}  {text}"


def log_document(change: Change) -> Document:
    """Return a change as a JSON document. Its texts are not sanitised."""
    if isinstance(change, ActivityChange):
        return LoggedActivityDoc.fill(change, activity=activity_document(change.doing, change.at))
    if isinstance(change, RequestChange):
        return LoggedRequestDoc.fill(change, request=request_document(change.request))
    return LoggedStateDoc.fill(change)
