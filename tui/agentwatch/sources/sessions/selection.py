"""Which sessions are shown: those of late, or one of them. A session comes and goes with all that it asked for."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from agentwatch.delegation.events import Ran

_Session = tuple[str, str]
"""(source, session id)."""


class Selection:
    """Runs that pass: those of sessions with a sign of life at `since` (epoch seconds) or later, and those of the
    session whose id begins with `session`. None of both: all."""

    def __init__(self, since: float | None = None, session: str | None = None) -> None:
        self.since: Final = since
        self._session = session
        self._runs: dict[str, Ran] = {}
        self._paths: dict[_Session, str] = {}
        self._asked_for: dict[_Session, dict[str, None]] = defaultdict(dict)
        self._shown: set[str] = set()

    def anew(self) -> Selection:
        """The same wish, for another workspace: it remembers what it was told."""
        return Selection(self.since, self._session)

    def take(self, ran: Ran) -> list[Ran]:
        """A run is like this now. Returns what is to be told of it, and of others that come or go with it."""
        if self.since is None and self._session is None:
            return [ran]
        self._forget(ran.path)
        if ran.run is None:
            return [ran] if self._withdraw(ran.path) else []
        self._runs[ran.path] = ran
        self._paths[ran.run.source, ran.run.session_id] = ran.path
        if ran.run.parent_session is not None:
            self._asked_for[ran.run.source, ran.run.parent_session][ran.path] = None
        family = self._family(self._root(ran.path))
        if self._is_wanted(family[0]):
            told = [path for path in family if path == ran.path or path not in self._shown]
            self._shown.update(told)
            return [self._runs[path] for path in told]
        return [Ran(ran.seq, ran.at, path, None) for path in family if self._withdraw(path)]

    def _is_wanted(self, path: str) -> bool:
        run = self._runs[path].run
        if run is None or (self._session is not None and not run.session_id.startswith(self._session)):
            return False
        return self.since is None or run.updated_at >= self.since

    def _root(self, path: str) -> str:
        seen = {path}
        while True:
            run = self._runs[path].run
            if run is None or run.parent_session is None:
                return path
            above = self._paths.get((run.source, run.parent_session))
            if above is None or above in seen:
                return path
            seen.add(above)
            path = above

    def _family(self, root: str) -> list[str]:
        """A run and all below it, each once."""
        family = {root: None}
        pending = [root]
        while pending:
            run = self._runs[pending.pop()].run
            below = self._asked_for.get((run.source, run.session_id), {}) if run is not None else {}
            new = [path for path in below if path not in family]
            family |= dict.fromkeys(new)
            pending += new
        return list(family)

    def _forget(self, path: str) -> None:
        before = self._runs.pop(path, None)
        if before is None or before.run is None:
            return
        run = before.run
        if self._paths.get((run.source, run.session_id)) == path:
            del self._paths[run.source, run.session_id]
        if run.parent_session is not None:
            self._asked_for[run.source, run.parent_session].pop(path, None)

    def _withdraw(self, path: str) -> bool:
        """Whether it was shown; it is not any more."""
        if path not in self._shown:
            return False
        self._shown.discard(path)
        return True
