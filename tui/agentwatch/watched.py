"""A workspace as the faces see it: its tree, its health, the texts of its documents, and what is decided about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence, Set
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Limits, Ran, Rules
from agentwatch.delegation.links import missing_artifacts
from agentwatch.delegation.run import Message, Run
from agentwatch.delegation.task import State, Task, Version
from agentwatch.delegation.tree import Tree
from agentwatch.place import state_directory
from agentwatch.programs import watch_workspace
from agentwatch.sources.files.names import to_name
from agentwatch.sources.health import Health, Problem
from agentwatch.sources.source import Source

if TYPE_CHECKING:
    # These take a while to load, and the first frame needs none of them.
    from agentwatch.decisions.clerk import Clerk
    from agentwatch.decisions.face import OperatorDesk
    from agentwatch.decisions.herald import Herald
    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Params, Subject
    from agentwatch.delegation.decision import Action
    from agentwatch.delegation.request import Request
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.history.store import HistoryWorker
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.source import Inbox
    from agentwatch.sources.sessions.following import RunTranscript


class Watched:
    """What is known of a workspace, what may be asked of it and decided, and what is kept of it.

    Who keeps it up to date is a `Monitor`, which has the same arguments. `remembers`: the texts of what is gone are in
    its history. `host` is what the operator calls the machine that it is on, "" for this one.
    """

    def __init__(
        self,
        workspace: Path,
        settings: Settings,
        source: Source,
        clock: Callable[[], float],
        tree: Tree,
        *,
        remembers: bool,
        open_desk: Callable[[], OperatorDesk] | None,
        host: str,
    ) -> None:
        self.workspace = workspace
        if not host:
            watch_workspace(workspace)
        self.directory = str(workspace)
        """Its path on the machine that it is on, as far as that is known."""
        self.written = str(workspace)
        """By what a command line names it."""
        self.host = host
        self.settings = settings
        self.tree = tree
        self.health = Health("starting", f"{host} has not answered yet" if host else "reading the workspace")
        self.in_sight: Callable[[], Collection[str]] = tuple
        """Tells the ids of the tasks that somebody sees now: they are judged first. Any thread may call it."""
        self.complaints: list[str] = []
        """What a face has to say of itself, a sentence each."""
        self.shelf: Acknowledgements | None = None
        """What the operator has put aside, once `updates` runs; None where nothing can be."""
        self.clerk: Clerk | None = None
        """Keeps the tree told of the decisions, once `updates` runs; None where nothing can be decided."""
        self.inbox: Inbox | None = None
        """Keeps the tree told of what programs ask, once `updates` runs; None where nothing can be answered."""
        self._source = source
        self._clock = clock
        self._open_desk = open_desk
        self._remembers = remembers
        self._keeper: HistoryWorker | None = None
        self._has_recalled = False
        self._codex: CodexClient | None = None
        self._herald: Herald | None = None
        self._forgotten: str | None = None
        """Why the history could not be read; told by `scan` only, for the keeper has it in its notice."""

    @property
    def title(self) -> str:
        """What is watched, in a few words; foreign."""
        return (self.workspace.name or str(self.workspace)) + "/"

    @property
    def watched(self) -> str:
        """Where tasks are looked for; foreign."""
        return f"{self.workspace} and everything below"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What cannot be read: of the files and sessions, of the history and of the decisions."""
        own = {
            "history": self._forgotten,
            "decisions": self.clerk and self.clerk.notice,
            "put aside": self.shelf and self.shelf.notice,
            "requests": self.inbox and self.inbox.notice,
        }
        place = str(state_directory(self.workspace))
        return (*self.health.problems, *(Problem(kind, place, notice) for kind, notice in own.items() if notice))

    @property
    def shelves(self) -> list[Acknowledgements]:
        """All in which something can be put aside."""
        return [] if self.shelf is None else [self.shelf]

    @property
    def notices(self) -> list[str]:
        """What the operator must know of what agentwatch itself keeps, a sentence each. May quote foreign text."""
        parts = (self._keeper, self.clerk, self._herald, self.shelf, self.inbox, self._codex)
        own = [part.notice for part in parts if part is not None and part.notice]
        return [*own, *self.health.notices, *self.complaints]

    @property
    def said(self) -> list[str]:
        """The notices, and a sentence for each thing that its source cannot read."""
        return [*self.notices, *map(str, self.health.problems)]

    def absolute(self, relative: str) -> Path:
        """Where a file of the workspace is on disk; a path of an observation spells names that are no text."""
        return self.workspace / to_name(relative)

    def content(self, version: Version | Message) -> str | None:
        """The same as `text`; None where a host does not give it now, too."""
        from agentwatch.decisions.errors import NoAnswerError

        with suppress(NoAnswerError):
            return self.text(version)
        return None

    def text(self, version: Version | Message) -> str | None:
        """The text that this version of a file had, or that a session's message has; it may read a file.

        None where it is not kept any more. Raises NoAnswerError.
        """
        text = self._source.content(version.digest)
        if text is not None or not self._remembers:
            return text
        if self._keeper is not None:
            return self._keeper.text(version.digest)
        from agentwatch.history.store import recall_text

        return recall_text(self.workspace, version.digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        """What stands in the transcript of a run, None where there is none to be had. Any thread may call it."""
        return self._source.transcript(run)

    async def decide(self, subject: Subject, action: Action, params: Params, note: str) -> DecisionMade:
        """Record a decision about an attempt as it was seen, and deliver it. Raises DecisionError.

        Whether the policy allows it is asked before. The return is read again: one that has changed since is refused.
        """
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.clerk is None:
            raise DecisionError("nothing can be decided here: this workspace is not being watched")
        now = self.returned_now(subject.task_id)
        return await asyncio.to_thread(self.clerk.decide, subject, action, params, returned=now, note=note)

    def returned_now(self, task_id: str) -> Callable[[], str | None]:
        """How to look once more at the return of a task as it is seen: gives its sha256 in hex, None where there is
        none. Any thread may call that; it raises ReturnChangedError."""
        from agentwatch.decisions.desk import return_digest

        task = self.tree.tasks.get(task_id)
        returned = task.latest.returned if task is not None and task.latest is not None else None
        if returned is None or returned.stored:
            # What a session gave back lies in no file of the workspace: the tree has its latest state.
            digest = returned.digest if returned is not None else None
            return lambda: digest
        return partial(return_digest, self.workspace, returned.path, self.settings.max_bytes)

    async def answer(self, request: Request, action: Action, params: Params | None, note: str) -> DecisionMade:
        """Record the answer to a request as it was shown, for whoever holds it. Raises DecisionError.

        Whether it takes this answer, and is still open, is asked once more.
        """
        import asyncio

        from agentwatch.decisions.errors import DecisionError

        if self.clerk is None or (self.inbox is None and not self.host):
            raise DecisionError("nothing can be answered here: this workspace is not being watched")
        # Of a host, its own desk looks whether somebody still waits for it.
        gone = partial(self.inbox.gone, request) if self.inbox is not None else lambda: None
        asked = self.tree.request(request.request_id)
        task_id = asked.task_id if asked is not None else request.session_id
        attempt = max(self.tree.tasks[task_id].attempt, 1) if asked is not None else 1
        shown_at = partial(self.clerk.answer, task_id=task_id, attempt=attempt, gone=gone, note=note)
        return await asyncio.to_thread(shown_at, request, action, params)

    # What is kept of it

    def _make_keeper(self) -> HistoryWorker:
        from agentwatch.history.store import HistoryWorker

        return HistoryWorker(self.workspace, self._source.content, read_only=self.settings.read_only)

    async def _remember(self, tree: Tree) -> Sequence[Event]:
        """Have the tree take in the history, and the source know the files that were known. Returns what is in it."""
        import asyncio

        self._keeper = await asyncio.to_thread(self._make_keeper)
        recalled = await asyncio.wrap_future(self._keeper.start(tree))
        self._source.remember(recalled.files, recalled.watched_at)
        self._has_recalled = True
        return recalled.events

    def _make_clerk(self) -> Clerk | None:
        if self._open_desk is None:
            return None
        from agentwatch.decisions.clerk import Clerk

        return Clerk(self._open_desk(), self._clock)

    def _keep(self, events: Iterable[Event]) -> None:
        """Have this recorded, but for sessions: they are not kept, and they go on all the time."""
        if self._keeper is None:
            return
        kept = [one for one in events if not isinstance(one, Ran)]
        if kept or (events and self._keeper.notice):
            self._keeper.record(kept)

    def _note(self, changed: Set[str]) -> None:
        """Tell those that keep something of these tasks that they have changed."""
        tasks = [task for task_id in changed if (task := self.tree.tasks.get(task_id)) is not None]
        if self.clerk is not None:
            if self._herald is not None:
                self._herald.look(self.tree, changed)
            self.clerk.note_acted(tasks)
        if self._keeper is not None:
            self._keeper.report(task for task in tasks if _has_new_fault(task))
            # A task that only a request spoke of has gone with its end.
            asked = (one for task_id in changed for one in self.tree.requests_of(task_id))
            self._keeper.record_requests(asked, self.tree.now)
        self._put_back()

    def _seen(self) -> Collection[str]:
        return self.in_sight()

    def _put_back(self) -> None:
        """Have written down what is aside no more."""
        over, self.tree.asides.over = self.tree.asides.over, {}
        if over and self.shelf is not None:
            self.shelf.mark_over(over)


def rules_of(settings: Settings, history_before: float = float("-inf")) -> Rules:
    """The rules by which a tree judges, as the settings say."""
    limits = settings.alarms_minutes, settings.alarms_tokens, settings.alarms_subtree_tokens, settings.alarms_repeats
    return Rules(
        strict=settings.strict,
        stale_after=settings.stale_after,
        max_retries=settings.max_retries,
        low_confidence=settings.low_confidence,
        demands=settings.require_contract,
        history_before=history_before,
        limits=Limits(*limits),
    )


def _has_new_fault(task: Task) -> bool:
    """The return breaks its contract and was seen in this run: what the history recalls was reported before. That an
    artifact is missing may have come out only now."""
    latest = task.latest
    is_new = latest is not None and latest.returned is not None and latest.returned.seq >= 0
    return (is_new and task.own_state is State.INVALID) or bool(missing_artifacts(task))
