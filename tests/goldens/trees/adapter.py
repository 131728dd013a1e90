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


def watch(workspace: Path):
    """Watch as a screen does until all that is there was seen, so that the history holds it."""

    async def until_live():
        monitor = watched([workspace], load())
        async with asyncio.timeout(30), aclosing(monitor.updates()) as updates:
            async for _ in updates:
                if monitor.health.mode != "starting":
                    return

    asyncio.run(until_live())
