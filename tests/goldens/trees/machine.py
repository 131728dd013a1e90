"""A made-up machine: a home, a clock, files with times, and documents with the secrets of this machine taken out."""

import asyncio
import json
import os
import re
from collections.abc import Mapping
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine

from agentwatch.composition import watched
from agentwatch.config import load
from tests.goldens.world import run
from tests.homes import live_in


def slug(path: str) -> str:
    """A path as Claude Code and Qwen Code name a directory after it."""
    return re.sub(r"[^a-zA-Z0-9]", "-", path)


class Machine:
    """A home below `root`, and commands that are run there at a time of its clock (epoch seconds)."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, now: float):
        self.root, self.now = root, now
        live_in(root / "home", patch)
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        (root / "home").mkdir()
        for variable, value in {"USER": "kim", "LOGNAME": "kim", "COLUMNS": "100"}.items():
            patch.setenv(variable, value)

    def write(self, path: str, data: bytes, *, append: bool = False, at: float | None = None):
        """Write a file, as of now or another time. Placeholders are filled in, as `filled` has them."""
        place = self.root / self.filled(path.encode()).decode()
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab" if append else "wb") as file:
            file.write(self.filled(data))
        self.touch(place, at)

    def touch(self, place: Path, at: float | None = None):
        """The file was written now, or at another time."""
        os.utime(place, (self.now if at is None else at,) * 2)

    def filled(self, data: bytes) -> bytes:
        """Fill in the placeholders; AGENTS_ROOT is how Codex names its first agent."""
        root = os.fsencode(self.root)
        data = (
            data.replace(b"ROOT_DIR", root)
            .replace(b"AGENTS_ROOT", b"/root")
            .replace(b"{pid}", str(os.getpid()).encode())
        )
        return data.replace(b"{slug}", slug(str(self.root)).encode())

    def clock(self) -> time_machine.travel:
        """The time stands still, in UTC."""
        return time_machine.travel(datetime.fromtimestamp(self.now, ZoneInfo("UTC")), tick=False)

    def watch(self, workspace: str, *, checks: bool = False):
        """Watch as a screen does until all was seen, so that the history holds it, or also checked."""

        async def until_seen():
            monitor = watched([self.root / workspace], load())

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

        with self.clock():
            asyncio.run(until_seen())

    def shown(self, *words: str) -> Any:
        """The document that a command prints, or its lines, in short and without what is only so on this machine."""
        with self.clock():
            ran = run(*(one.replace("ROOT_DIR", str(self.root)) for one in words))
        text = self.scrubbed(ran.out)
        result: Any = short(json.loads(text)) if text.startswith("{") and "\n}" in text else text.splitlines()
        extra = {"exit": ran.code} if ran.code else {}
        extra |= {"stderr": self.scrubbed(ran.err).splitlines()} if ran.err else {}
        return {"shown": result, **extra} if extra else result

    def scrubbed(self, text: str) -> str:
        """A text without the places of this machine."""
        for place in {str(self.root), os.path.realpath(self.root)}:
            text = text.replace(place, "ROOT_DIR").replace(slug(place), "{slug}")
        # Where it is not on the path, a command that is to be pasted names the interpreter.
        return re.sub(r"[^\s\"]*/python[\d.]* -I -S \S+/__main__\.py \S+", "agentwatch", text)


def short(document: Any) -> Any:
    """A document without what is empty: null, false, 0, "", [] and {}. `counted` is there only where it is false."""
    if isinstance(document, Mapping):
        return {key: shortened for key, value in document.items() if (shortened := short(value)) or key == "counted"}
    return [short(one) for one in document] if isinstance(document, list) else document
