"""Keeps the claims of all returns checked: at once when a return comes, and again when a claimed file changes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.background import BackgroundThread, let_others_work
from agentwatch.delegation.events import Checked, Run, Seen
from agentwatch.sources.files.read import system_name
from agentwatch.sources.files.source import ParsedDocuments

if TYPE_CHECKING:
    # These take a while to load, and the first frame needs none of them.
    from agentwatch.delegation.tree import Tree
    from agentwatch.evidence.checker import Checker, Request, Result
    from agentwatch.evidence.log import TranscriptOf

_LOOK_SHARE = 0.001  # share of one core that looking for changes may take: it sets the pause
_PAUSE_SECONDS = (1.0, 60.0)
_FIRST_SECONDS = 0.02  # delay that lets the screen show a return before it is checked
_AGAIN_SHARE = 0.1  # the share of one core for checking changed returns again


class Target(NamedTuple):
    """The latest return of a task, the handoff it answers, and the time of the handoff (epoch seconds). `former` are
    earlier paths of the return; `runs` are the attempt's run, if any, and those of the agents it asked."""

    task_id: str
    returned: Seen
    handoff: Seen | None = None
    handed_off_at: float | None = None
    former: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()


class Inspector(BackgroundThread[Sequence[Checked]]):
    """Checks claims in its own thread, from `start` to `stop`, because a round waits for git.

    `text_of` returns the text of a version, None if it is lost, and `transcript_of` the transcript of a run; any
    thread may call them. `parsed` may already hold the claims of a file.
    """

    thread_name = "agentwatch-evidence"

    def __init__(
        self,
        workspace: Path,
        text_of: Callable[[Seen], str | None],
        transcript_of: TranscriptOf,
        parsed: ParsedDocuments | None = None,
    ):
        super().__init__()
        self.idle = True  # whether everything wanted was checked and reported
        self._workspace, self._text_of, self._transcript_of = Path(os.path.realpath(workspace)), text_of, transcript_of
        self._parsed = parsed or ParsedDocuments(1)
        self._checker: Checker | None = None
        self._tree: Tree | None = None
        self._given: dict[str, tuple[object, ...]] = {}
        self._wanted: dict[str, Target] = {}
        self._known: dict[str, tuple[Request, Result]] = {}  # by task: the last check and its result
        # The next look at all known files, and the next check of a known return (monotonic seconds).
        self._look_at = self._again_at = 0.0

    def news_of(self, tree: Tree, task_ids: Iterable[str]) -> list[Target]:
        """Return the targets of these tasks that are new: another return, handoff or former path."""
        self._tree = tree
        targets = []
        for task_id in task_ids:
            task = tree.tasks.get(task_id)
            if task is None or (attempt := task.latest).returned is None:
                continue
            runs: tuple[Run, ...] = ()
            if (run := attempt.run) is not None:
                # The runs below it that began while it lasted.
                end = math.inf if run.ended_at is None else run.ended_at
                runs = run, *(one for one in tree.runs.runs_below(run.session) if run.started_at <= one.began_at <= end)
            former = tree.former_paths(task_id, attempt.returned)
            target = Target(task_id, attempt.returned, attempt.handoff, attempt.handed_off_at, former, runs)
            key = (target.returned.path, target.returned.digest, target.handoff and target.handoff.digest, former)
            if self._given.get(task_id) != key:
                self._given[task_id] = key
                targets.append(target)
        return targets

    def want(self, targets: Iterable[Target]) -> None:
        """Check these returns soon; a target replaces an earlier one of the same task."""
        with self._news:
            self.idle = False
            self._wanted |= {target.task_id: target for target in targets}
            self._news.notify()

    def look_again(self) -> list[Target]:
        """Return the checked targets for which a claimed file looks different now."""
        from agentwatch.evidence.disk import look

        root = str(self._workspace)
        if not os.path.isdir(root):
            # While the workspace is gone, the last results stay.
            return []
        # If a return is gone, its last verdict stays, or is found again at its new path. Many tasks name the same file.
        now = {path: look(root, path) for path in {path for _, result in self._known.values() for path in result.looks}}
        return [
            request.target
            for request, result in self._known.values()
            if any(now[path] != facts for path, facts in result.looks.items())
            and self._is_there(request.target.returned)
        ]

    def _run(self, emit: Callable[[Sequence[Checked]], None]) -> None:
        while True:
            with self._news:
                while not self._stopped and (rest := self._due_in()) > 0.0:
                    self._news.wait(rest)
                if self._stopped:
                    return
                targets, self._wanted = list(self._wanted.values()), {}
            # The screen shows first that the return has come.
            time.sleep(_FIRST_SECONDS)
            let_others_work()
            began = time.thread_time()
            if not targets:
                targets = self.look_again()
                pause = (time.thread_time() - began) / _LOOK_SHARE
                self._look_at = time.monotonic() + min(max(pause, _PAUSE_SECONDS[0]), _PAUSE_SECONDS[1])
            found = self.check(targets)
            self._again_at = time.monotonic() + (time.thread_time() - began) / _AGAIN_SHARE
            try:
                if found:
                    emit(found)
            except RuntimeError:
                return
            with self._news:
                self.idle = not self._wanted

    def _due_in(self) -> float:
        """Return the seconds until there is something to do."""
        if self._wanted.keys() - self._known.keys():
            return 0.0
        return (self._again_at if self._wanted else self._look_at) - time.monotonic()

    def _is_there(self, returned: Seen) -> bool:
        return returned.stored or os.path.lexists(f"{self._workspace}/{system_name(returned.path)}")

    def check(self, targets: Sequence[Target]) -> list[Checked]:
        """Check now, in the caller's thread; return the results that differ from the last ones."""
        from agentwatch.evidence.checker import Checker
        from agentwatch.evidence.log import WorkspaceLogs

        requests = [request for target in targets if (request := self._request(target)) is not None]
        if not requests:
            return []
        if self._checker is None:
            logs = WorkspaceLogs(self._runs, self._transcript_of)
            self._checker = Checker(self._workspace, by_others=logs.changed)
        news: list[Checked] = []
        for request, result in zip(requests, self._checker.check(requests), strict=True):
            target, returned = request.target, request.target.returned
            before, known = self._known.get(target.task_id, (None, None))
            self._known[target.task_id] = request, result
            if before is None or known is None or before.target != target or known.claims != result.claims:
                now = time.time()
                at = self._tree.verdict_since(returned, result.claims, now) if self._tree else now
                news.append(Checked(0, at, returned.path, returned.digest, result.claims))
        return news

    def _request(self, target: Target) -> Request | None:
        """Return a target as it is checked: its texts and its log are read once."""
        from agentwatch.evidence.checker import Request
        from agentwatch.evidence.claims import claims_of
        from agentwatch.evidence.judge import LogJudge
        from agentwatch.evidence.log import read_log

        known, returned, handoff = self._known.get(target.task_id), target.returned, target.handoff
        gone = not self._is_there(returned)
        if known is not None and known[0].target is target:
            return known[0]._replace(gone=gone)
        text = self._text_of(returned)
        if text is None:
            return None
        log = read_log(target.runs, self._transcript_of) if target.runs else None
        stated = claims_of(
            text,
            returned.path,
            (handoff and self._text_of(handoff)) or "",
            handoff.path if handoff else "handoff.json",
            stored=returned.stored,
            judge=LogJudge(log, str(self._workspace)).judge if log is not None else None,
            read=self._parsed.open,
        )
        return Request(target, stated, gone)

    def _runs(self) -> list[Run]:
        runs = self._tree.runs.all.values() if self._tree else []
        return [ran.run for ran in runs if ran.run]
