"""Keeps the claims of all returns checked: at once when a return comes, and again when what it names changes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.background import Background, Pace, let_others_work
from agentwatch.delegation.claims import Claim, Deed, Verdict
from agentwatch.delegation.events import Checked
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Version
from agentwatch.sources.files.walk import pruning, to_name

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.evidence.checker import Checker, Request
    from agentwatch.evidence.claims import ParsedClaims
    from agentwatch.evidence.log import TranscriptOf, WorkspaceLogs
    from agentwatch.evidence.statements import AttemptLog

_ROUND: Final = 1_000
"""Returns that are checked against one `git status`."""
_AGAIN: Final = 50
"""Returns that were checked before and are others now, in one round while many of them come."""
_PACE: Final = (0.03, 0.5, 1.0)
"""The share of one core that checking them again may take, and its credit and longest rest in seconds."""
_ELSEWHERE_SECONDS: Final = 15.0
"""Between two checks of a return that names a file that is missing or was moved: other branches and work trees may have
it by now, which no file here tells."""
_PAUSE_SECONDS: Final = (1.0, 120.0)
_SHARE: Final = 0.000_3
"""The part of one core that looking for changes may take: the pause grows with the cost of a look. Returns with a false
claim, which ask for somebody, have as much for themselves."""

TextOf = Callable[[Version], str | None]


class Target(NamedTuple):
    """The latest return of a task, the handoff it answers, and when that was given (epoch seconds).

    `former` are the names under which the return lay before. A file may hold the return of another task by now: each
    task is checked for itself. `runs` are that of the attempt, where there is one, and those of the agents it asked.
    """

    task_id: str
    returned: Version
    handoff: Version | None = None
    handed_off_at: float | None = None
    former: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """The part that tells one target of a task from another."""
        return (
            self.returned.path,
            self.returned.digest,
            self.handoff.digest if self.handoff else None,
            self.former,
        )


class Checks(NamedTuple):
    """The findings about the return with this digest in this file; the last two as `checker.Result` has them."""

    path: str
    digest: str
    claims: tuple[Claim, ...]
    unsaid: tuple[Deed, ...] = ()

    def observed(self, seq: int, now: float) -> Checked:
        """The same as an event, made now (epoch seconds)."""
        return Checked(seq, now, self.path, self.digest, self.claims, self.unsaid)


class _Known(NamedTuple):
    """A target that was checked, the files it names and how they looked before, and what was found.

    `again_at` is when to check it again though all looks the same, on the monotonic clock.
    """

    target: Target
    watched: tuple[str, ...]
    look: int
    checks: Checks
    again_at: float
    is_soon: bool


class Inspector(Background[Sequence[Checks]]):
    """Checks claims in its own thread, from `start` to `stop`.

    `text_of` gives the text of a version, None where it is lost, and `transcript_of` the transcript of a run; any
    thread may call them. `parsed` may know already what a file claims. Of what happens in `pruned` directories `wake`
    is not told. The tasks `in_sight` are checked first.
    """

    thread_name = "agentwatch-evidence"

    def __init__(
        self,
        workspace: Path,
        text_of: TextOf,
        parsed: ParsedClaims | None = None,
        transcript_of: TranscriptOf = lambda _: None,
        *,
        pruned: frozenset[str] | None = None,
        in_sight: Callable[[], Collection[str]] = tuple,
    ) -> None:
        super().__init__()
        self.idle = True
        """Whether all that was wanted has been checked and told."""
        self._is_pruned = pruning(pruned)
        self._parsed = parsed
        self._in_sight = in_sight
        self._workspace = workspace
        self._text_of = text_of
        self._transcript_of = transcript_of
        self._checker: Checker | None = None
        self._logs: WorkspaceLogs | None = None
        self._attempts: dict[str, tuple[Target, AttemptLog]] = {}
        self._tree: Tree | None = None
        self._given: dict[str, Target] = {}
        self._wanted: dict[str, Target] = {}
        """The queue, those that were wanted last at the end."""
        self._pace = Pace(*_PACE)
        self._known: dict[str, _Known] = {}
        self._look_at = {True: 0.0, False: 0.0}
        """When to look at the returns that are to be looked at soon, and at all, on the monotonic clock."""
        self._hears = False
        self._stirred = True
        """Whether it is told when something happens to files, and something has since the last look at all."""

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
            given = self._given.get(task_id)
            if given is None or given.identity != target.identity:
                self._given[task_id] = target
                targets.append(target)
        return targets

    def want(self, targets: Iterable[Target]) -> None:
        """Check these returns, soon. A target replaces the one before of the same task, and waits anew."""
        with self._news:
            self.idle = False
            for target in targets:
                self._wanted.pop(target.task_id, None)
                self._wanted[target.task_id] = target
            self._news.notify()

    def wake(self, hears: bool) -> None:
        """Something may have happened to a file; `hears`: it is told of all that does. Any thread may call it."""
        if not (hears and self._hears and self._stirred):
            with self._news:
                self._hears, self._stirred = hears, True
                self._news.notify()

    def check(self, targets: Sequence[Target]) -> list[Checks]:
        """Check now, in the caller's thread. Returns what is new since each was checked last."""
        return [checks for some in _rounds(targets) for checks in self._check(some)]

    def look_again(self) -> list[Target]:
        """The targets that were checked and of which a named file looks different by now."""
        return self._changed(self._known)

    def _run(self, emit: Callable[[Sequence[Checks]], None]) -> None:
        while True:
            with self._news:
                while not self._stopped and (rest := self._due_in()) > 0.0:
                    self._news.wait(rest)
                if self._stopped:
                    return
                wanted = self._take()
            for some in _rounds(wanted or self._due_looks()):
                let_others_work()
                began, again = time.thread_time(), sum(one.task_id in self._known for one in some) if wanted else 0
                checks = self._check(some)
                self._pace.spend((time.thread_time() - began) * again / len(some))
                if self._stopped:
                    return
                try:
                    if checks:
                        emit(checks)
                except RuntimeError:
                    return
            with self._news:
                self.idle = not self._wanted

    def _due_in(self) -> float:
        """Seconds until there is something to do."""
        if self._wanted:
            return 0.0 if self._wanted.keys() - self._known.keys() else self._pace.rest
        if not self._known:
            return _PAUSE_SECONDS[1]
        return min(map(self._due_at, (True, False))) - time.monotonic()

    def _due_at(self, soon: bool) -> float:
        # Where all that happens is told, and nothing has, it is looked at seldom.
        rests = not soon and self._hears and not self._stirred
        return self._look_at[soon] + (_PAUSE_SECONDS[1] if rests else 0.0)

    def _take(self) -> list[Target]:
        """The targets to check now, a round at most: what is in sight first, and alone where many others would keep it
        waiting; while many come again, all that is new and few of the others."""
        in_sight = [task_id for task_id in self._in_sight() if task_id in self._wanted]
        order = list(dict.fromkeys((*in_sight, *self._wanted)))
        if self._pace.rest:
            again = [task_id for task_id in order if task_id in self._known][:_AGAIN]
            order = [task_id for task_id in order if task_id not in self._known or task_id in again]
        most = len(in_sight) if in_sight and len(order) > _ROUND else _ROUND
        return [self._wanted.pop(task_id) for task_id in order[:most]]

    def _due_looks(self) -> list[Target]:
        """The targets whose files look different, of those that it is time to look at."""
        changed: dict[str, Target] = {}
        least, most = _PAUSE_SECONDS
        for soon in (True, False):
            if time.monotonic() < self._due_at(soon):
                continue
            if not soon:
                self._stirred = False
            began = time.thread_time()
            task_ids = [task_id for task_id, known in self._known.items() if known.is_soon or not soon]
            changed |= {target.task_id: target for target in self._changed(task_ids)}
            cost = time.thread_time() - began
            self._look_at[soon] = time.monotonic() + min(max(cost / _SHARE, least), most)
        return list(changed.values())

    def _changed(self, task_ids: Iterable[str]) -> list[Target]:
        if not os.path.isdir(self._workspace):
            # Nothing can be seen while the workspace is gone: what was found last stays.
            return []
        now, changed = time.monotonic(), []
        for task_id in task_ids:
            known = self._known[task_id]
            differs = now >= known.again_at or self._look(known.watched) != known.look
            if differs and self._is_there(known.target.returned):
                changed.append(known.target)
        return changed

    def _look(self, paths: Iterable[str]) -> int:
        """The traces of files in one number: another look is as good as never alike."""
        from agentwatch.evidence.disk import trace

        return hash(tuple(trace(f"{self._workspace}/{path}") for path in paths))

    def _is_there(self, returned: Version) -> bool:
        """Whether a return is not gone: what was found last of it stays, or is found again where it was moved to."""
        return returned.stored or os.path.lexists(f"{self._workspace}/{to_name(returned.path)}")

    def _check(self, targets: Sequence[Target]) -> list[Checks]:
        if self._checker is None:
            # In the inspector's thread: the models of the contracts take as long to load as a screen to appear.
            from agentwatch.evidence.checker import Checker
            from agentwatch.evidence.claims import read_claims

            self._checker = Checker(self._workspace, read=read_claims if self._parsed is None else self._parsed.claims)
        requests = [(target, request) for target in targets if (request := self._request(target)) is not None]
        results = self._checker.check([request for _, request in requests])
        news: list[Checks] = []
        for (target, request), result in zip(requests, results, strict=True):
            known = self._known.get(target.task_id)
            checks = Checks(request.returned_name, request.digest, result.claims, result.unsaid)
            if request.log is not None:
                request.log.forget()
            again_at = time.monotonic() + _ELSEWHERE_SECONDS if result.is_elsewhere else math.inf
            is_false = any(claim.verdict is Verdict.CONTRADICTED for claim in result.claims)
            # Nobody watches the directories that are pruned.
            unheard = (any(map(self._is_pruned, path.split("/")[:-1])) or path[:2] == ".." for path in result.watched)
            is_soon = is_false or result.is_elsewhere or any(unheard)
            watched = tuple(result.watched)
            self._known[target.task_id] = _Known(target, watched, result.look, checks, again_at, is_soon)
            if known is None or known.target != target or known.checks != checks:
                news.append(checks)
        return news

    def _request(self, target: Target) -> Request | None:
        from agentwatch.evidence.checker import Request

        returned, handoff = target.returned, target.handoff
        text = self._text_of(returned)
        if text is None:
            return None
        request = Request(
            digest=returned.digest,
            returned_text=text,
            returned_name=returned.path,
            handed_off_at=target.handed_off_at,
            returned_at=returned.at,
            stored=returned.stored,
            former=target.former,
            gone=not self._is_there(returned),
            log=self._log_of(target),
        )
        if handoff is None:
            return request
        text = self._text_of(handoff)
        return request._replace(handoff_text=text, handoff_name=handoff.path, handoff_at=handoff.at)

    def _log_of(self, target: Target) -> AttemptLog | None:
        """The log of a target, the same one every time: it is not read again."""
        if not target.runs:
            return None
        known = self._attempts.get(target.task_id)
        if known is None or known[0] is not target:
            from agentwatch.evidence.log import WorkspaceLogs
            from agentwatch.evidence.statements import AttemptLog

            if self._logs is None:
                self._logs = WorkspaceLogs(self._runs, self._transcript_of, os.path.realpath(self._workspace))
            known = target, AttemptLog(target.runs, self._logs, target.returned.at)
            self._attempts[target.task_id] = known
        return known[1]

    def _runs(self) -> list[Run]:
        runs = self._tree.runs.all.values() if self._tree is not None else []
        return [ran.run for ran in runs if ran.run is not None]


def _runs_of(tree: Tree, run: Run) -> Iterator[Run]:
    """A run, and of those that it asked for, or that these did, the ones that began while it lasted."""
    yield run
    for other in tree.runs.below(run.session):
        if run.started_at <= other.began_at <= (other.began_at if run.ended_at is None else run.ended_at):
            yield other


def _rounds(targets: Sequence[Target]) -> Iterator[Sequence[Target]]:
    return (targets[start : start + _ROUND] for start in range(0, len(targets), _ROUND))
