"""Keeps the claims of all returns checked: at once when a return comes, and again when what it names changes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.background import Background, Pace, let_others_work
from agentwatch.delegation.claims import Change, Claim, Deed, Verdict
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Version
from agentwatch.evidence.disk import look_of, trace
from agentwatch.evidence.targets import Checks, Target
from agentwatch.sources.files.names import pruning, to_name
from agentwatch.sources.files.settings import DEFAULT_PRUNED

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.evidence.checker import Checker, Request
    from agentwatch.evidence.commands.log import Others, TranscriptOf
    from agentwatch.evidence.commands.proof import Proof
    from agentwatch.evidence.one_look import OneLook

_ROUND: Final = 1_000
"""Returns that are checked against one `git status`."""

_AGAIN: Final = 50
"""Returns that were checked before and are others now, in one round of a storm."""
_STORM_SHARE: Final = 0.03
_STORM_CREDIT: Final = 0.5
_STORM_SECONDS: Final = 1.0
"""The share of one core that checking them again may take while more of them come, the seconds of it that are not
waited for, and how long none has come when that is over."""

_ELSEWHERE_SECONDS: Final = 15.0
"""Between two checks of a return that names a file that is missing or was moved: other branches and work trees may have
it by now, which no file here tells."""

_PAUSE_SECONDS: Final = (1.0, 120.0)
_SHARE: Final = 0.000_3
"""The part of one core that looking for changes may take: the pause grows with what a look costs. Returns with a false
claim, which ask for somebody, have as much for themselves."""


TextOf = Callable[[Version], str | None]


class _Checked(NamedTuple):
    """A target that was checked: the files it names, how they looked before, and what the check said."""

    target: Target
    watched: tuple[str, ...]
    look: int | None
    claims: tuple[Claim, ...]
    changed: tuple[Change, ...] | None
    unsaid: tuple[Deed, ...]
    again_at: float = math.inf
    """When to check it again though all looks the same, on the monotonic clock."""


class Inspector(Background[Sequence[Checks]]):
    """Checks claims in its own thread, from `start` to `stop`.

    `text_of` gives the text of a version, None where it is lost, and `transcript_of` the transcript of a run; any
    thread may call them. `one_look` may know already what a file says.
    What happens in `pruned` directories is not told to `stir`. The tasks `in_sight` are checked first.
    """

    thread_name = "agentwatch-evidence"

    def __init__(
        self,
        workspace: Path,
        text_of: TextOf,
        one_look: OneLook | None = None,
        transcript_of: TranscriptOf = lambda _: None,
        *,
        pruned: frozenset[str] | None = None,
        in_sight: Callable[[], Collection[str]] = tuple,
    ) -> None:
        super().__init__()
        self._is_pruned = pruning(DEFAULT_PRUNED if pruned is None else pruned)
        self._one_look = one_look
        self._in_sight = in_sight
        self.idle = True
        """Whether all that was wanted has been checked and told."""
        self._workspace = workspace
        self._checker: Checker | None = None
        self._text_of = text_of
        self._transcript_of = transcript_of
        self._proofs: dict[str, tuple[Target, Proof]] = {}
        self._tree: Tree | None = None
        self._others: Others | None = None
        self._wanted: dict[str, Target] = {}
        """The targets to check, those that were wanted last at the end."""
        self._wanted_at = 0.0
        self._pace = Pace(_STORM_SHARE, _STORM_CREDIT, _STORM_SECONDS)
        self._known: dict[str, _Checked] = {}
        self._soon: set[str] = set()
        """The tasks whose returns are looked at again soon: those with a false claim, and those of which only the check
    told which files they name."""
        self._next = dict.fromkeys(("soon", "all"), 0.0)
        """When to look at them, and at all, on the monotonic clock."""
        self._anyway_at = 0.0
        """When to look at all though nothing was heard."""
        self._hears = False
        self._stirred = True
        """Whether it is told when something happens to files, and something has since the last look at all."""
        self._given: dict[str, Target] = {}

    def news_of(self, tree: Tree, task_ids: Iterable[str]) -> list[Target]:
        """The returns of these tasks that were not given out here yet, with this handoff."""
        self._tree = tree
        targets = []
        for task_id in task_ids:
            task = tree.tasks.get(task_id)
            if task is None or (attempt := task.latest) is None or attempt.returned is None:
                continue
            returned, handoff = attempt.returned, attempt.handoff
            former = tree.former_places(task_id, returned)
            given = self._given.get(task_id)
            if given is None or _said(given) != _said(Target(task_id, returned, handoff, former=former)):
                runs = tuple(_runs_of(tree, attempt.run)) if attempt.run is not None else ()
                given = Target(task_id, returned, handoff, attempt.handed_off_at, former, runs)
                self._given[task_id] = given
                targets.append(given)
        return targets

    def want(self, targets: Iterable[Target]) -> None:
        """Check these returns, soon. A target replaces the one before of the same task, and waits anew."""
        with self._news:
            self.idle = False
            for target in targets:
                self._wanted.pop(target.task_id, None)
                self._wanted[target.task_id] = target
            self._wanted_at = time.monotonic()
            self._news.notify()

    def stir(self, hears: bool) -> None:
        """Something may have happened to a file; `hears`: it is told of all that does. Any thread may call it."""
        if not (hears and self._hears and self._stirred):
            with self._news:
                self._hears, self._stirred = hears, True
                self._news.notify()

    def check(self, targets: Sequence[Target]) -> list[Checks]:
        """Check now, in the caller's thread. Returns what is new since each was checked last."""
        return [checks for some in _rounds(targets) for checks in self._check(some)]

    def _check(self, targets: Sequence[Target]) -> list[Checks]:
        if self._checker is None:
            # In the inspector's thread: the models of the contracts take as long to load as a screen to appear.
            from agentwatch.evidence.checker import Checker

            self._checker = Checker(self._workspace, one_look=self._one_look)
        requests = [(target, request) for target in targets if (request := self._request(target)) is not None]
        results = self._checker.check([request for _, request in requests])
        news: list[Checks] = []
        for (target, request), result in zip(requests, results, strict=True):
            known = self._known.get(target.task_id)
            checks = Checks(request.returned_name, request.digest, result.claims, result.changed, result.unsaid)
            if request.proof is not None:
                request.proof.forget()
            watched, look, again_at = tuple(sorted(result.watch_paths)), result.look, math.inf
            if look is None:
                look = known.look if known is not None and known.watched == watched else None
                again_at = time.monotonic() + _ELSEWHERE_SECONDS
            self._known[target.task_id] = after = _Checked(target, watched, look, *checks[2:], again_at)
            is_false = any(claim.verdict is Verdict.CONTRADICTED for claim in result.claims)
            is_soon = is_false or result.look is None or any(map(self._is_unheard, result.watch_paths))
            (self._soon.add if is_soon else self._soon.discard)(target.task_id)
            if known is None or known.target != target or known[3:6] != after[3:6]:
                news.append(checks)
        return news

    def _run(self, emit: Callable[[Sequence[Checks]], None]) -> None:
        while True:
            with self._news:
                while not self._stopped and (rest := self._due_in()) > 0.0:
                    self._news.wait(rest)
                if self._stopped:
                    return
                targets = wanted = self._take()
            if not wanted:
                targets = [target for task_ids in (self._soon, self._known) for target in self._look_at(task_ids)]
            for some in _rounds(targets):
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
        if not self._wanted:
            due = (self._due_at(which) for which, known in (("soon", self._soon), ("all", self._known)) if known)
            return min(min(due, default=math.inf) - time.monotonic(), _PAUSE_SECONDS[1])
        if self._wanted.keys() - self._known.keys():
            return 0.0
        return min(self._pace.rest, self._wanted_at + _STORM_SECONDS - time.monotonic())

    def _due_at(self, which: str) -> float:
        rests = which == "all" and self._hears and not self._stirred
        return self._anyway_at if rests else self._next[which]

    def _take(self) -> list[Target]:
        """What to check now, a round of it at most: all that was never checked, and in a storm few of the others, those
        that wait longest. What is in sight comes first, and alone where many others would keep it waiting."""
        in_sight = [task_id for task_id in self._in_sight() if task_id in self._wanted]
        wanted = dict.fromkeys((*in_sight, *self._wanted))
        again = [task_id for task_id in wanted if task_id in self._known]
        if self._pace.rest and time.monotonic() < self._wanted_at + _STORM_SECONDS:
            again = again[:_AGAIN]
        taken = self._wanted.keys() - self._known.keys() | set(again)
        most = len(in_sight) if in_sight and len(taken) > _ROUND else _ROUND
        return [self._wanted.pop(task_id) for task_id in islice(filter(taken.__contains__, wanted), most)]

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
            proof=self._proof(target),
        )
        if handoff is None:
            return request
        text = self._text_of(handoff)
        return request._replace(handoff_text=text, handoff_name=handoff.path, handoff_at=handoff.at)

    def _proof(self, target: Target) -> Proof | None:
        """The log of a target, the same one every time: it is not read again."""
        if not target.runs:
            return None
        known = self._proofs.get(target.task_id)
        if known is None or known[0] is not target:
            from agentwatch.evidence.commands.proof import Proof

            workspace = os.path.realpath(self._workspace)
            if self._others is None:
                from agentwatch.evidence.commands.log import Others

                self._others = Others(self._all_runs, self._transcript_of, workspace)
            known = target, Proof(target.runs, self._transcript_of, workspace, self._others)
            self._proofs[target.task_id] = known
        return known[1]

    def _all_runs(self) -> list[Run]:
        runs = self._tree.runs if self._tree is not None else []
        return [ran.run for ran in runs if ran.run is not None]

    def _look_at(self, task_ids: Collection[str]) -> list[Target]:
        """Those of all these tasks of which a named file looks different, if it is time to look at them again."""
        which = "soon" if task_ids is self._soon else "all"
        if time.monotonic() < self._due_at(which):
            return []
        if which == "all":
            self._stirred = False
        began, changed = time.thread_time(), self._changed(list(task_ids))
        least, most = _PAUSE_SECONDS
        pause = min(max((time.thread_time() - began) / _SHARE, least), most)
        self._next[which] = time.monotonic() + pause
        if which == "all":
            self._anyway_at = time.monotonic() + most
        return changed

    def _changed(self, task_ids: Iterable[str]) -> list[Target]:
        """The targets of which a named file looks different from when it was checked."""
        if not os.path.isdir(self._workspace):
            # Nothing can be seen while the workspace is gone: what was found last stays.
            return []
        changed, now = [], time.monotonic()
        for task_id in task_ids:
            known, look = self._known[task_id], self._look(self._known[task_id].watched)
            if (look != known.look or now >= known.again_at) and self._is_there(known.target.returned):
                # Before the check that follows, which may not know earlier what to look at.
                self._known[task_id] = known._replace(look=look)
                changed.append(known.target)
        return changed

    def _is_there(self, returned: Version) -> bool:
        """What was found last of a return that is gone stays, or is found again where it was moved to."""
        return returned.stored or os.path.lexists(f"{self._workspace}/{to_name(returned.path)}")

    def _is_unheard(self, path: str) -> bool:
        """Whether what happens to a file is not told, for nobody watches its directory."""
        return any(map(self._is_pruned, path.split("/")[:-1])) or path.startswith("..")

    def _look(self, paths: Sequence[str]) -> int:
        return look_of(trace(f"{self._workspace}/{path}") for path in paths)


def _said(target: Target) -> tuple[object, ...]:
    """What tells one target of a task from another."""
    returned, handoff = target.returned, target.handoff
    return returned.path, returned.digest, handoff.digest if handoff else None, target.former


def _runs_of(tree: Tree, run: Run) -> Iterator[Run]:
    """A run, and of those that it asked for, or that these did, the ones that began while it lasted."""
    yield run
    for other in tree.runs_below(run):
        if run.started_at <= other.began_at <= (other.began_at if run.ended_at is None else run.ended_at):
            yield other


def _rounds(targets: Sequence[Target]) -> Iterator[Sequence[Target]]:
    return (targets[start : start + _ROUND] for start in range(0, len(targets), _ROUND))
