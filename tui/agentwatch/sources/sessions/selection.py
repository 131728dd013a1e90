"""Which sessions are shown: all, or one of them with all that it asked for."""

from __future__ import annotations

from collections.abc import Sequence

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Run

_Paths = dict[tuple[str, str | None], str]
"""By source and session."""


class Selection:
    """Runs that pass: those of the session whose id begins so; without one, all."""

    def __init__(self, session: str = "") -> None:
        self._session = session
        self._runs: dict[str, tuple[Ran, Run]] = {}
        self._shown: set[str] = set()

    def anew(self) -> Selection:
        """The same wish, for another workspace: it remembers what it was told."""
        return Selection(self._session)

    def choose(self, news: Sequence[Ran]) -> Sequence[Ran]:
        """Runs are like this now. Returns what is to be told of them, and of others that come or go with them."""
        if not self._session:
            return news
        for ran in news:
            self._runs.pop(ran.path, None)
            if ran.run is not None:
                self._runs[ran.path] = ran, ran.run
        paths: _Paths = {(run.source, run.session_id): path for path, (_, run) in self._runs.items()}
        before, self._shown = self._shown, {path for path in self._runs if self._is_wanted(path, paths)}
        changed = {ran.path: ran for ran in news}
        gone = [(changed.get(path) or self._runs[path][0])._replace(run=None) for path in before - self._shown]
        shown = [ran for path, (ran, _) in self._runs.items() if path in self._shown]
        return gone + [ran for ran in shown if ran.path in changed or ran.path not in before]

    def _is_wanted(self, path: str, paths: _Paths) -> bool:
        """Whether the session from which all came is wanted; a circle ends where it closes."""
        seen: dict[str, None] = {}
        above: str | None = path
        while above is not None and above not in seen:
            seen[above] = None
            run = self._runs[above][1]
            above = paths.get((run.source, run.parent_session))
        return run.session_id.startswith(self._session)
