"""Which sessions are shown: those of late, or one of them. A session comes and goes with all that it asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Run

_Paths = dict[tuple[str, str | None], str]
"""By source and session."""


class Selection:
    """Runs that pass: those of sessions with a sign of life at `since` (epoch seconds) or later, and those of the
    session whose id begins with `session`. None of both: all."""

    def __init__(self, since: float | None = None, session: str | None = None) -> None:
        self.since: Final = since
        self._session = session
        self._runs: dict[str, tuple[Ran, Run]] = {}
        self._shown: set[str] = set()

    def anew(self) -> Selection:
        """The same wish, for another workspace: it remembers what it was told."""
        return Selection(self.since, self._session)

    def choose(self, news: Sequence[Ran]) -> Sequence[Ran]:
        """Runs are like this now. Returns what is to be told of them, and of others that come or go with them."""
        if self.since is None and self._session is None:
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
        if self._session is not None and not run.session_id.startswith(self._session):
            return False
        return self.since is None or run.updated_at >= self.since
