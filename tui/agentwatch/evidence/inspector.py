"""Checks the claims of each return when it comes, and checks them again when a claimed file changes."""

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
    # These modules take long to load, and the first frame on the screen needs none of them.
    from agentwatch.delegation.tree import Tree
    from agentwatch.evidence.checker import Checker, CheckRequest, CheckResult
    from agentwatch.evidence.log import TranscriptOf

_LOOK_SHARE = 0.001  # the share of one core for reading all claimed files again
_PAUSE_SECONDS = (1.0, 60.0)
_FIRST_SECONDS = 0.02  # delay that lets the screen show a return before it is checked
_AGAIN_SHARE = 0.1  # the share of one core for checking changed returns again


class Target(NamedTuple):
    """A return to check: the latest of its task. `handed_off_at` is the time of the handoff (epoch seconds). `former`
    are earlier paths of the return. `runs` are the run of the attempt, and the runs that this run started."""

    task_id: str
    returned: Seen
    handoff: Seen | None = None
    handed_off_at: float | None = None
    former: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()


class Inspector(BackgroundThread[Sequence[Checked]]):
    """Checks claims in a thread of its own, because git may take long.

    `text_of` returns the text of a file's version, or None if the text is lost. `transcript_of` returns the transcript
    of a run. Any thread may call both. `parsed` are documents that need not be parsed again.
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
        self.is_idle = True  # whether all requested checks are done and reported
        self._workspace, self._text_of, self._transcript_of = Path(os.path.realpath(workspace)), text_of, transcript_of
        self._parsed = parsed or ParsedDocuments(1)
        self._checker: Checker | None = None
        self._tree: Tree | None = None
        self._given: dict[str, tuple[object, ...]] = {}
        self._wanted: dict[str, Target] = {}
        self._known: dict[str, tuple[CheckRequest, CheckResult]] = {}  # by task: the last check and its result
        # Times (monotonic seconds) of the next reading of all claimed files, and the next check of known returns.
        self._look_at = self._again_at = 0.0

    def find_new_targets(self, tree: Tree, task_ids: Iterable[str]) -> list[Target]:
        """Return a target for each of these tasks whose return or handoff is new, or whose return was moved."""
        self._tree = tree
        targets = []
        for task_id in task_ids:
            task = tree.tasks.get(task_id)
            if task is None or (attempt := task.latest).returned is None:
                continue
            runs: tuple[Run, ...] = ()
            if (run := attempt.run) is not None:
                # The attempt's run, and the runs below that began before this run ended.
                end = math.inf if run.ended_at is None else run.ended_at
                runs = run, *(one for one in tree.runs.runs_below(run.session) if run.started_at <= one.began_at <= end)
            former = tree.former_paths(task_id, attempt.returned)
            target = Target(task_id, attempt.returned, attempt.handoff, attempt.handed_off_at, former, runs)
            key = (target.returned.path, target.returned.digest, target.handoff and target.handoff.digest, former)
            if self._given.get(task_id) != key:
                self._given[task_id] = key
                targets.append(target)
        return targets

    def request_checks(self, targets: Iterable[Target]) -> None:
        """Check these targets soon. A target replaces an earlier target of the same task."""
        with self._news:
            self.is_idle = False
            self._wanted |= {target.task_id: target for target in targets}
            self._news.notify()

    def find_changed_targets(self) -> list[Target]:
        """Return the targets whose claimed files have changed since the last check."""
        from agentwatch.evidence.disk import read_facts

        root = str(self._workspace)
        if not os.path.isdir(root):
            # If the workspace is gone, keep the last results.
            return []
        # Many tasks name the same file, so read each file once. If a return is gone, its last verdicts stay.
        paths = {path for _, result in self._known.values() for path in result.facts}
        now = {path: read_facts(root, path) for path in paths}
        return [
            request.target
            for request, result in self._known.values()
            if any(now[path] != facts for path, facts in result.facts.items()) and self._exists(request.target.returned)
        ]

    def _run(self, emit: Callable[[Sequence[Checked]], None]) -> None:
        while True:
            with self._news:
                while not self._stopped and (rest := self._seconds_until_due()) > 0.0:
                    self._news.wait(rest)
                if self._stopped:
                    return
                targets, self._wanted = list(self._wanted.values()), {}
            # Let the screen show the new return first.
            time.sleep(_FIRST_SECONDS)
            let_others_work()
            began = time.thread_time()
            if not targets:
                targets = self.find_changed_targets()
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
                self.is_idle = not self._wanted

    def _seconds_until_due(self) -> float:
        if self._wanted.keys() - self._known.keys():
            return 0.0
        return (self._again_at if self._wanted else self._look_at) - time.monotonic()

    def _exists(self, returned: Seen) -> bool:
        return returned.stored or os.path.lexists(f"{self._workspace}/{system_name(returned.path)}")

    def check(self, targets: Sequence[Target]) -> list[Checked]:
        """Check targets now, in the caller's thread. Return the results that differ from the previous results."""
        from agentwatch.evidence.checker import Checker
        from agentwatch.evidence.log import WorkspaceLogs

        requests = [request for target in targets if (request := self._prepare_request(target)) is not None]
        if not requests:
            return []
        if self._checker is None:
            logs = WorkspaceLogs(self._known_runs, self._transcript_of)
            self._checker = Checker(self._workspace, change_by_others=logs.change_by_others)
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

    def _prepare_request(self, target: Target) -> CheckRequest | None:
        """Return the request to check a target, or None if its text is lost. Texts and log are read only once."""
        from agentwatch.evidence.checker import CheckRequest
        from agentwatch.evidence.claims import claims_of
        from agentwatch.evidence.judge import LogJudge
        from agentwatch.evidence.log import read_log

        known, returned, handoff = self._known.get(target.task_id), target.returned, target.handoff
        gone = not self._exists(returned)
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
        return CheckRequest(target, stated, gone)

    def _known_runs(self) -> list[Run]:
        runs = self._tree.runs.all.values() if self._tree else []
        return [ran.run for ran in runs if ran.run]
