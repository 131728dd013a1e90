"""All that goldens of trees and sessions know of the product: how to run a command, and how to watch for a while."""

import asyncio
import contextlib
import io
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

from agentwatch.cli import run as run_command
from agentwatch.composition import watched
from agentwatch.config import load


class Ran(NamedTuple):
    """How a command ended, and all that it printed."""

    code: int
    out: str
    err: str


def run(arguments: Sequence[str]) -> Ran:
    """Run a command line of `agentwatch` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run_command(arguments)
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
    return Ran(code, out.getvalue(), err.getvalue())


def watch(workspace: Path, *, checks: bool = False):
    """Watch as a screen does until all that is there was seen, so that the history holds it, or also `checks` it."""

    async def until_seen():
        monitor = watched([workspace], load())

        async def follow():
            async with aclosing(monitor.updates()) as updates:
                async for _ in updates:
                    pass

        async with asyncio.timeout(30):
            following = asyncio.create_task(follow())
            while monitor.health.mode == "starting" or (checks and not monitor.is_settled):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            # A verdict may be on its way to the event loop.
            await asyncio.sleep(0.05 * checks)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    asyncio.run(until_seen())
