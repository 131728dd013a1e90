"""What is known of a workspace's past: the history of its files, and the sessions that agents' programs keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.composition import sessions_of
from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation
from agentwatch.errors import WorkspaceError
from agentwatch.history.store import History
from agentwatch.place import state_directory
from agentwatch.sources.health import Batch, Health, Problem

if TYPE_CHECKING:
    from agentwatch.sources.sessions.selection import Selection

NOTHING: Final = "no session of an agent, and no history of its files"
KEPT: Final = "it is kept while `agentwatch` watches the workspace"


@dataclass(frozen=True, slots=True)
class Past:
    """Observations of files in the order observed, and of each run its last. `text` gives the text of a digest, None
    if it is not kept (any more); any thread may call it."""

    observations: Sequence[Observation]
    problems: Sequence[Problem]
    text: Callable[[str], str | None]


@contextmanager
def past_of(workspace: Path, settings: Settings, selection: Selection | None = None) -> Iterator[Past]:
    """The past of a workspace. Its texts can be read within the `with` block. Blocks, and writes nothing.

    Raises WorkspaceError if nothing is known.
    """
    history = History.open_read_only(workspace)
    sessions = sessions_of(workspace, selection) if settings.sessions else None

    def text(digest: str) -> str | None:
        kept = history.text(digest)
        return sessions.content(digest) if kept is None and sessions is not None else kept

    with closing(history), closing(sessions) if sessions else nullcontext():
        files = history.observations()
        runs, health = sessions.scan() if sessions is not None else Batch((), Health("live", ""))
        problems = [*health.problems]
        if history.notice:
            problems.append(Problem("history", str(state_directory(workspace)), history.notice))
        if not files and not runs:
            raise WorkspaceError(f"{workspace}: {NOTHING}: {'; '.join(map(str, problems[:3])) or KEPT}")
        yield Past((*files, *runs), problems, text)
