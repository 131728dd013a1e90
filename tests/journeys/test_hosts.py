"""Tasks on another machine: an ssh that only starts the command in another home stands in for it."""

import asyncio
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.journeys.driver import DEADLINE, Screen, journey
from tests.journeys.made import FAILED, handoff, returned

SSH = f"""#!/bin/sh
for command; do :; done
export HOME="$HOME/there" XDG_STATE_HOME="$HOME/there/state" PATH="{Path(sys.executable).parent}:$PATH"
mkdir -p "$HOME" && exec sh -c "$command"
"""
DONE = {"ok.handoff.json": handoff("shop.ok"), "ok.return.md": returned("SUCCESS", "shop.ok", more="")}
FAR = {"~/bin/ssh": SSH} | {f"~/far/{name}": text for name, text in (FAILED | DONE).items()}


async def run(*words: str | Path) -> tuple[int | None, str]:
    """Run a command: how it ended, and what it printed."""
    process = await asyncio.create_subprocess_exec(*words, stdout=PIPE)
    end = asyncio.create_task(process.communicate())
    if not (await asyncio.wait([end], timeout=DEADLINE))[0]:
        process.kill()
        raise AssertionError(f"did not end: {words}")
    return process.returncode, end.result()[0].decode()


async def there(screen: Screen, *words: str) -> tuple[int | None, str]:
    """Run a command about the workspace as an agent on its host does."""
    line = " ".join(("agentwatch", *words, str(screen.home / "far")))
    return await run(screen.home / "bin" / "ssh", "build1", line)


@journey(FAR, "ssh://build1{home}/far")
async def test_the_same_return_again_ends_the_second_attempt(screen):
    await screen.shows("build1", "shop.api", "1 needs you", "retry? the child recommends it")
    screen.write("../home/far/api.handoff.json", handoff(objective="Build half of it."))
    await screen.hides("1 needs you")
    screen.write("../home/far/api.return.md", returned())
    await screen.shows("1 needs you")
    await screen.until(lambda: "↻2" in screen.row("shop.api") and "failed" in screen.row("shop.api"))


@journey(FAR, "ssh://build1{home}/far")
async def test_who_waits_is_told_what_was_decided_there(screen):
    await screen.shows("1 needs you")
    assert (await there(screen, "wait", "shop.ok"))[0] == 8
    assert (await there(screen, "decide", "--retry", "--yes", "shop.api"))[0] == 0
    await screen.shows("retrying")
    code, printed = await there(screen, "wait", "shop.api")
    assert (code, '"retry"' in printed) == (0, True)
    await screen.shows("retry ◉ read")
