"""Which sessions are shown: all, or one of them with all that it asked for."""

from __future__ import annotations

from collections.abc import Sequence

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Run, Session


class Selection:
    """Runs that pass: those of the session whose id begins so; without one, all."""

    def __init__(self, session: str = "") -> None:
        self._session = session
        self._known: dict[str, Ran] = {}
        self._shown: set[str] = set()

    def anew(self) -> Selection:
        """The same wish, for another workspace: it remembers what it was told."""
        return Selection(self._session)

    def choose(self, news: Sequence[Ran]) -> Sequence[Ran]:
        """Runs are like this now. Returns what is to be told of them, and of others that come or go with them."""
        if not self._session:
            return news
        changed = {ran.path: ran for ran in news}
        self._known |= changed
        runs = {ran.run.session: ran.run for ran in self._known.values() if ran.run is not None}
        before = self._shown
        self._shown = {
            ran.path for ran in self._known.values() if ran.run is not None and self._is_wanted(ran.run, runs)
        }
        told = self._shown & changed.keys() | self._shown ^ before
        return [
            ran if path in self._shown else ran._replace(run=None) for path, ran in self._known.items() if path in told
        ]

    def _is_wanted(self, run: Run, runs: dict[Session, Run]) -> bool:
        """Whether the session from which all came is wanted; a circle ends where it closes."""
        seen = {run.session}
        while (above := runs.get((run.source, run.parent_session or ""))) is not None and above.session not in seen:
            run = above
            seen.add(run.session)
        return run.session_id.startswith(self._session)
