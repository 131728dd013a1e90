"""Which workspaces there are, looked for again and again while several are watched as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.sources.files.watcher import shared_watcher

if TYPE_CHECKING:
    import asyncio

SEARCH_SECONDS: Final = 2.0
_SELDOM_SECONDS: Final = 60.0
"""Between two looks at which workspaces there are: at least, and while nothing happens where that is heard."""


class Place(NamedTuple):
    """A workspace that is to be watched, and what its top row is called; without a name, it has none.

    One that `comes` with others goes when it is not found any more; one that `waits` has its top row as soon as
    something in it is not past. `host` is what the operator calls the machine that it is on, "" for this one.
    """

    workspace: Path
    name: str | None = None
    comes: bool = False
    waits: bool = False
    host: str = ""


class Places(NamedTuple):
    """The workspaces that there are now, and what is to be told of those that cannot be watched, a sentence each.

    Something happens in one of the directories `heard` before there are others; without any, only a look tells.
    """

    places: Sequence[Place]
    complaints: Sequence[str] = ()
    heard: Sequence[Path] = ()


class Search:
    """Calls `find` in a thread: `pause` seconds after the last time, or later, once something was heard."""

    def __init__(self, find: Callable[[], Places], pause: float) -> None:
        import asyncio

        self._find = find
        self._pause = pause
        self._heard: Sequence[Path] = ()
        self._hearing = ExitStack()
        self._rung = asyncio.Event()

    async def look(self) -> Places:
        import asyncio

        self._rung.clear()
        places = await asyncio.to_thread(self._find)
        if places.heard != self._heard:
            # It rings once it hears: what happened until then is looked at as well.
            self.close()
            ring = partial(_ring, asyncio.get_running_loop(), self._rung)
            self._hearing.enter_context(shared_watcher.watch(places.heard, ring))
            self._heard = places.heard
        return places

    async def rest(self) -> None:
        """Until it is time to look again."""
        import asyncio

        await asyncio.sleep(self._pause)
        if self._heard and shared_watcher.works:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SELDOM_SECONDS):
                    await self._rung.wait()

    def close(self) -> None:
        """Hear nothing any more."""
        self._hearing.close()


def _ring(loop: asyncio.AbstractEventLoop, rung: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended, and the bell does not know it yet
        loop.call_soon_threadsafe(rung.set)


def names_of(workspaces: Collection[Path]) -> dict[Path, str]:
    """What top rows are called: the last part of a path, and of those that share it as many as tell them apart."""
    names: dict[Path, str] = {}
    for workspace in workspaces:
        parts = workspace.parts
        for count in range(1, len(parts) + 1):
            name = str(Path(*parts[-count:]))
            if sum(other.parts[-count:] == parts[-count:] for other in workspaces) == 1:
                break
        names[workspace] = name or str(workspace)
    return names
