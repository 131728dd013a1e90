"""Keeps the claims of all returns checked: at once when a return comes, and again when what it names changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.background import Background, let_others_work
from agentwatch.delegation.events import Checked, Seen
from agentwatch.delegation.run import Run
from agentwatch.sources.files.documents import ParsedDocuments
from agentwatch.sources.files.walk import to_name

if TYPE_CHECKING:
    # These take a while to load, and the first frame needs none of them.
    from agentwatch.delegation.tree import Tree
    from agentwatch.evidence.checker import Checker, Request, Result
    from agentwatch.evidence.log import TranscriptOf

_LOOK_SHARE: Final = 0.003  # the part of one core that looking for changes may take: the pause grows with its cost
_PAUSE_SECONDS: Final = (1.0, 60.0)


class Target(NamedTuple):
    """The latest return of a task, the handoff it answers, and when that was given (epoch seconds).

    `former` are the names under which the return lay before. A file may hold the return of another task by now: each
    task is checked for itself. `runs` are that of the attempt, where there is one, and those of the agents it asked.
    """

    task_id: str
    returned: Seen
    handoff: Seen | None = None
    handed_off_at: float | None = None
    former: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """The part that tells one target of a task from another."""
        handoff = self.handoff.digest if self.handoff else None
        return self.returned.path, self.returned.digest, handoff, self.former


class Inspector(Background[Sequence[Checked]]):
    """Checks claims in its own thread, from `start` to `stop`: a round takes as long as git, and no part of a `Worker`
    may keep the others waiting for that.

    `text_of` gives the text of a version, None where it is lost, and `transcript_of` the transcript of a run; any
    thread may call them. `parsed` may know already what a file claims.
    """

    thread_name = "agentwatch-evidence"

    def __init__(
        self,
        workspace: Path,
        text_of: Callable[[Seen], str | None],
        parsed: ParsedDocuments | None = None,
        transcript_of: TranscriptOf = lambda _: None,
    ) -> None:
        super().__init__()
        self.idle = True
        """Whether all that was wanted has been checked and told."""
        self._workspace, self._text_of, self._transcript_of = Path(os.path.realpath(workspace)), text_of, transcript_of
        self._parsed = parsed or ParsedDocuments(1)
        self._checker: Checker | None = None
        self._changes: dict[tuple[str, str], tuple[Run, list[tuple[float, float, str]] | None]] = {}
        self._tree: Tree | None = None
        self._given: dict[str, tuple[object, ...]] = {}
        self._wanted: dict[str, Target] = {}
        self._known: dict[str, tuple[Request, Result]] = {}
        self._look_at = 0.0  # when to look at all that is known (monotonic seconds)

    def news_of(self, tree: Tree, task_ids: Iterable[str]) -> list[Target]:
        """The returns of these tasks that were not given out here yet, with this handoff."""
        self._tree = tree
        targets = []
        for task_id in task_ids:
            task = tree.tasks.get(task_id)
            if task is None or (attempt := task.latest) is None or attempt.returned is None:
                continue
            runs = tuple(_runs_of(tree, attempt.run)) if attempt.run is not None else ()
            former = tree.former_places(task_id, attempt.returned)
            target = Target(task_id, attempt.returned, attempt.handoff, attempt.handed_off_at, former, runs)
            if self._given.get(task_id) != target.identity:
                self._given[task_id] = target.identity
                targets.append(target)
        return targets

    def want(self, targets: Iterable[Target]) -> None:
        """Check these returns, soon. A target replaces the one before of the same task."""
        with self._news:
            self.idle = False
            self._wanted |= {target.task_id: target for target in targets}
            self._news.notify()

    def look_again(self) -> list[Target]:
        """The targets that were checked and of which a named file looks different by now."""
        from agentwatch.evidence.disk import look

        root = str(self._workspace)
        if not os.path.isdir(root):
            # Nothing can be seen while the workspace is gone: what was found last stays.
            return []
        # The last verdict on a return that is gone stays, or is found again where it was moved to.
        return [
            request.target
            for request, result in self._known.values()
            if any(look(root, path) != facts for path, facts in result.looks.items())
            and self._is_there(request.target.returned)
        ]

    def _run(self, emit: Callable[[Sequence[Checked]], None]) -> None:
        while True:
            with self._news:
                while not self._stopped and not self._wanted and (rest := self._look_at - time.monotonic()) > 0.0:
                    self._news.wait(rest)
                if self._stopped:
                    return
                targets, self._wanted = list(self._wanted.values()), {}
            let_others_work()
            if not targets:
                began = time.thread_time()
                targets = self.look_again()
                pause = (time.thread_time() - began) / _LOOK_SHARE
                self._look_at = time.monotonic() + min(max(pause, _PAUSE_SECONDS[0]), _PAUSE_SECONDS[1])
            found = self.check(targets)
            try:
                if found:
                    emit(found)
            except RuntimeError:
                return
            with self._news:
                self.idle = not self._wanted

    def _is_there(self, returned: Seen) -> bool:
        return returned.stored or os.path.lexists(f"{self._workspace}/{to_name(returned.path)}")

    def check(self, targets: Sequence[Target]) -> list[Checked]:
        """Check now, in the caller's thread. Returns what is new since each was checked last."""
        from agentwatch.evidence.checker import Checker

        asked = [request for target in targets if (request := self._request(target)) is not None]
        if not asked:
            return []
        self._checker = self._checker or Checker(self._workspace)
        news: list[Checked] = []
        for request, result in zip(asked, self._checker.check(asked), strict=True):
            task_id, returned = request.target.task_id, request.target.returned
            known = self._known.get(task_id)
            self._known[task_id] = request, result
            if known is None or (known[0].target, known[1].claims) != (request.target, result.claims):
                news.append(Checked(0, time.time(), returned.path, returned.digest, result.claims, request.unsaid))
        return news

    def _request(self, target: Target) -> Request | None:
        """A target as it is checked: its texts and its log are read once."""
        from agentwatch.evidence.checker import Request
        from agentwatch.evidence.claims import claims_of
        from agentwatch.evidence.judge import LogJudge
        from agentwatch.evidence.log import read_log, unsaid_in

        known, returned, handoff = self._known.get(target.task_id), target.returned, target.handoff
        gone = not self._is_there(returned)
        if known is not None and known[0].target is target:
            return known[0]._replace(gone=gone)
        if (text := self._text_of(returned)) is None:
            return None
        workspace = str(self._workspace)
        log = read_log(target.runs, self._transcript_of) if target.runs else None
        stated = claims_of(
            text,
            returned.path,
            self._text_of(handoff) if handoff is not None else None,
            handoff.path if handoff is not None else None,
            stored=returned.stored,
            judge=LogJudge(log, workspace).judge if log is not None else None,
            read=self._parsed.open,
        )
        unsaid = unsaid_in(log, text, workspace) if log is not None else ()
        return Request(target, stated, gone, unsaid, partial(self._changed_by_others, target))

    def _changed_by_others(self, target: Target, since: float) -> str:
        """Changes by other runs than a target's between a time and its return, in words; "" for none."""
        from agentwatch.evidence.log import read_changes

        mine, last = {run.session for run in target.runs}, target.returned.at
        for run in [one.run for one in self._tree.runs.all.values()] if self._tree is not None else ():
            if run is None or run.session in mine or run.started_at > last:
                continue
            if run.ended_at is not None and max(run.ended_at, run.updated_at) < since:
                continue
            known = self._changes.get(run.session)
            if known is None or known[0] != run:
                known = self._changes[run.session] = run, read_changes(run, self._transcript_of)
            if known[1] is None:
                return "another agent was at work, and no log tells what it did"
            # A command may have changed a file at any time until it was over.
            for began, over, change in known[1]:
                if began <= last and over > since:
                    return f"another agent: {change}"
        return ""


def _runs_of(tree: Tree, run: Run) -> Iterator[Run]:
    """A run, and of those that it asked for, or that these did, the ones that began while it lasted."""
    yield run
    for other in tree.runs.below(run.session):
        if run.started_at <= other.began_at <= (other.began_at if run.ended_at is None else run.ended_at):
            yield other
