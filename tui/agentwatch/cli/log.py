"""Print every state change of the workspace's files, sessions and decisions, in order."""

from __future__ import annotations

import gc
import json
import math
import select
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from agentwatch.cli.command import PLACE, SESSION, argument, flag, one_of, seconds
from agentwatch.cli.shared import report_problems, selection_of, target_of
from agentwatch.composition import inbox_of, known_desk, sessions_of, source_of
from agentwatch.config import Settings, load
from agentwatch.delegation.asks import request_words
from agentwatch.delegation.events import Checked, Event, Lost, Reached, Ruled, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.evidence.inspector import Inspector, Target
from agentwatch.history.log import ActivityChange, Change, RequestChange, StateChange, StateChanges, story
from agentwatch.history.recording import recording_lines, write_new
from agentwatch.history.store import History, Recalled
from agentwatch.monitor import rules_of
from agentwatch.sources import Batch, Health, Problem, Source, complain_of
from agentwatch.state import state_directory
from agentwatch.text import clean, complain, exact, say
from agentwatch.view.document import ActivityDoc, Document, RequestDoc, Time, activity_document, request_document
from agentwatch.view.requests import standing_words
from agentwatch.view.times import iso
from agentwatch.view.words import doing_words, state_words

if TYPE_CHECKING:
    from agentwatch.remote.source import RemoteSource
    from agentwatch.requests.store import Inbox
    from agentwatch.sources.sessions.source import SessionsSource

ARGUMENTS: Final = (
    PLACE,
    flag("--json", "one JSON object a line"),
    flag("--activity", "also what working tasks do: each call, words and todo"),
    *one_of(
        flag("--follow", "go on with each change as it happens, until ctrl+c", short="-f"),
        argument("--export", "FILE", "write what was observed into a new FILE, for `replay FILE`"),
    ),
    argument("--since", "TIME", "only tasks that were active in this time: 90m, 12h, 7d", type=seconds),
    SESSION,
)
_NOTHING: Final = "no session of an agent, and no history of its files"
_KEPT: Final = "it is kept while `agentwatch` watches the workspace"
_ID: Final = 80
_REASON: Final = 200
_BY: Final = 60
"""Characters of a task's id, of a reason and of who asks, in a line."""
_LOOK_SECONDS: Final = 0.5
"""How often `log --follow` looks for decisions, and whether somebody still reads what it prints."""


class LoggedStateDoc(Document):
    at: Time
    task_id: str
    before: State | None
    after: State | None
    attempt: int
    reason: str
    contradicted: bool


class LoggedActivityDoc(Document):
    at: Time
    task_id: str
    activity: ActivityDoc | None


class LoggedRequestDoc(Document):
    at: Time
    task_id: str
    request: RequestDoc


def run(options: Namespace) -> int:
    """Print or export the past of a workspace here or on a host. Returns 1 where something could not be read."""
    gc.enable()
    settings = load()
    log = _Log(settings, options)
    with target_of(options.path, settings) as (workspace, far):
        selection = selection_of(options, is_far=far is not None)
        if options.export is not None and options.since is not None:
            raise UsageError("a recording is of all that was observed: --since does not go with --export")
        if far is not None:
            source = far.fleet.source(workspace)
            if options.export is None:
                return _print_log_of_host(source, log, follow=options.follow)
            batch = source.scan()
            return _export(options.export, far.names[workspace], _past_in(batch), source.content, batch.health.problems)
        with past_of(workspace, settings, selection, may_be_none=options.export is None) as past:
            if options.export is not None:
                return _export(options.export, workspace.name, past.events, past.text, past.problems)
            return _print_log(workspace, settings, log, past, follow=options.follow)


def _export(file: str, name: str, events: Iterable[Event], text: TextOf, problems: Sequence[Problem]) -> int:
    """Write a recording into a new file. Raises UsageError."""
    count = write_new(Path(file), recording_lines(name, events, text)) - 1
    warning = "The texts of documents and sessions are in it: read it before you send it."
    say(f"{count:,} observations in {clean(file)}. {warning}")
    return report_problems(problems)


def _print_log(workspace: Path, settings: Settings, log: _Log, past: Past, *, follow: bool) -> int:
    """Print the state changes that the history of a workspace, its decisions and the agents' sessions in it tell, one a
    line, and with `follow` others as they happen, until nobody reads the output any more. Nothing is written."""
    news = _news(workspace, past.inbox)
    log.print(story([*past.events, *next(news)], time.time()))
    source = source_of(workspace, settings, sessions=past.sessions)
    inspector = Inspector(
        workspace, lambda one: source.content(one.digest) or past.text(one.digest), transcript_of=source.transcript
    )
    if follow:
        source.remember(past.recalled.files, past.recalled.watched_at)
        complain_of(past.problems)
        _follow(source, news, log, past.problems, inspector)
        return 0
    log.print(inspector.check(log.returned(inspector)))
    if not past.events and not past.problems:
        complain(f"{clean(str(workspace))}: {_NOTHING}: {_KEPT}")
    return report_problems(past.problems)


def _print_log_of_host(source: RemoteSource, log: _Log, *, follow: bool) -> int:
    """The same of a workspace on another machine, of what its relay knows."""
    batch = source.scan()
    log.tree.apply(*(one for one in batch.events if isinstance(one, Ruled)))
    log.print(story(_past_in(batch), time.time()))
    log.print(one for one in batch.events if isinstance(one, Checked | Lost))
    if not follow:
        return report_problems(batch.health.problems)
    complain_of(batch.health.problems)
    for news in _batches(source, batch.health.problems):
        events = [*news.events, Tick(0, time.time())]
        (log.replace if news.anew else log.print)(events)
    return 0


def _past_in(batch: Batch) -> list[Event]:
    """All that a relay has told of files, sessions, decisions and requests."""
    return [one for one in batch.events if not isinstance(one, Ruled | Checked | Lost | Reached)]


TextOf = Callable[[str], str | None]


class Past(NamedTuple):
    """Observations of files in the order observed, and of each run and request its last. `text` gives the text of a
    digest, None if it is not kept (any more); any thread may call it. `inbox` has told the requests."""

    events: Sequence[Event]
    problems: Sequence[Problem]
    text: TextOf
    recalled: Recalled
    sessions: SessionsSource | None
    inbox: Inbox


@contextmanager
def past_of(
    workspace: Path, settings: Settings, selection: str | None = None, *, may_be_none: bool = False
) -> Iterator[Past]:
    """The past of a workspace. Its texts can be read within the `with` block. Blocks, and writes nothing.

    Raises WorkspaceError if nothing is known, unless it `may_be_none`.
    """
    history = History(state_directory(workspace))
    sessions = sessions_of(workspace, selection) if settings.sessions else None

    def text(digest: str) -> str | None:
        kept = history.text(digest)
        return sessions.content(digest) if kept is None and sessions is not None else kept

    with closing(sessions) if sessions else nullcontext():
        recalled, inbox = history.recall(), inbox_of(workspace)
        asked = inbox.look()
        runs, health = sessions.scan()[:2] if sessions is not None else ((), Health("live", ""))
        problems = [*health.problems]
        if history.notice:
            problems.append(Problem("history", str(state_directory(workspace)), history.notice))
        if inbox.notice:
            problems.append(Problem("requests", str(state_directory(workspace)), inbox.notice))
        if not (recalled.events or runs or asked or may_be_none):
            raise WorkspaceError(f"{workspace}: {_NOTHING}: {'; '.join(map(str, problems[:3])) or _KEPT}")
        yield Past((*recalled.events, *runs, *asked), problems, text, recalled, sessions, inbox)


class _Log:
    """Prints what events change, whether they are of the past or come from a source."""

    def __init__(self, settings: Settings, options: Namespace) -> None:
        self._rules, self._as_json = rules_of(settings), options.json
        self._since = -math.inf if options.since is None else time.time() - options.since
        # As the screen does: a task outlives its files.
        self.tree = Tree(self._rules, remembers=True)
        self._changes = StateChanges(self.tree, with_activity=options.activity)

    def print(self, events: Iterable[Event]) -> None:
        """Print what each of these changes."""
        self._print(self._changes.apply(events))

    def replace(self, events: Iterable[Event]) -> None:
        """All that is known is this; print what that changes."""
        self.tree = Tree(self._rules, remembers=True)
        self.tree.apply(*events)
        self._print(self._changes.replace_tree(self.tree, time.time()))

    def returned(self, inspector: Inspector) -> list[Target]:
        """The returns whose claims were not checked yet, as far as was looked."""
        touched, self._changes.touched = self._changes.touched, set()
        return inspector.news_of(self.tree, touched)

    def _print(self, changes: Iterable[Change]) -> None:
        for change in [*changes]:
            task = self.tree.tasks.get(change.task_id)
            if task is None or (task.alive_at or self._since) >= self._since:
                say(json.dumps(log_document(change).plain()) if self._as_json else log_line(change))


def _news(workspace: Path, inbox: Inbox) -> Iterator[Sequence[Event]]:
    """All decisions at first, then on each call the new ones, and the requests that have got further."""
    while (desk := known_desk(workspace)) is None:
        yield inbox.look()
    # Signatures take a while to load.
    from agentwatch.decisions.service import DecisionWatcher

    clerk = DecisionWatcher(desk)
    known: tuple[int | None, ...] = ()
    while True:
        places = desk.changes()
        yield [*inbox.look(), *(clerk.look(writes=False) if places != known else ())]
        # Decisions that could not be read are tried again.
        known = () if clerk.notice else places


def _follow(
    source: Source, news: Iterator[Sequence[Event]], log: _Log, told: Collection[Problem], inspector: Inspector
) -> None:
    """Print what has changed since the history was written, then what changes from now on, and each false claim."""
    missed: list[Event] = []
    checked: SimpleQueue[Sequence[Checked]] = SimpleQueue()
    inspector.start(checked.put)
    try:
        for batch in _batches(source, told):
            missed += [*batch.events, *next(news)]
            if batch.health.mode == "starting":
                continue
            # The time that passes ends a decision that nobody reads.
            log.print([*missed, Tick(0, time.time())])
            missed.clear()
            inspector.want(log.returned(inspector))
            log.print(chain.from_iterable(checked.get() for _ in range(checked.qsize())))
    finally:
        inspector.stop()


def _batches(source: Source, told: Collection[Problem]) -> Iterator[Batch]:
    """The batches of a source, until nobody reads the output any more; at times, empty ones. New problems are told on
    stderr, unless they were `told` before."""
    signal.signal(signal.SIGTERM, _end)
    batches: SimpleQueue[Batch] = SimpleQueue()
    batch = Batch((), Health("starting", ""))
    source.start(batches.put)
    try:
        while _is_read():
            sys.stdout.flush()
            try:
                batch = batches.get(timeout=_LOOK_SECONDS)
            except Empty:
                yield Batch((), batch.health)
                continue
            complain_of([problem for problem in batch.health.problems if problem not in told])
            told = batch.health.problems
            yield batch
    finally:
        source.stop()


def _is_read() -> bool:
    """Whether standard output is still read. This notices a closed pipe before there is something to write."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not poll.poll(0)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def log_line(change: Change) -> str:
    """One line, safe to print."""
    match change:
        case ActivityChange():
            text = f"· {clean(doing_words(change.doing), _REASON)}"
        case RequestChange(request=request):
            text = clean(f"{request_words(request)}: {standing_words(request, change.at)}", _REASON)
            text += f", {clean(request.by, _BY)}" if request.by else ""
        case StateChange():
            after = state_words(change.after or "gone", contradicted=change.contradicted)
            text = f"{change.before or 'new'} → {after}"
            text += f"  attempt {change.attempt}" if change.attempt > 1 else ""
            text += f"  {clean(change.reason, _REASON)}" if change.reason else ""
    return f"{iso(change.at) or '-':<20}  {exact(change.task_id, _ID)}  {text}"


def log_document(change: Change) -> Document:
    """The change for programs; the texts are as they were written."""
    if isinstance(change, ActivityChange):
        return LoggedActivityDoc.of(change, activity=activity_document(change.doing, change.at))
    if isinstance(change, RequestChange):
        return LoggedRequestDoc.of(change, request=request_document(change.request))
    return LoggedStateDoc.of(change)
