"""A made-up machine: a home, a clock, files with times, and printed documents without the paths of this machine."""

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

from agentwatch.composition import build_workspaces
from agentwatch.config import load
from tests.goldens.world import run
from tests.homes import live_in


def slug(path: str) -> str:
    """Return the name that Claude Code and Qwen Code give to the directory of a path."""
    return re.sub(r"[^a-zA-Z0-9]", "-", path)


class Machine:
    """A home below `root`, and commands that run there at the time of its clock (epoch seconds)."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, now: float):
        self.root, self.now = root, now
        live_in(root / "home", patch)
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        (root / "home").mkdir()
        for variable, value in {"USER": "kim", "LOGNAME": "kim", "COLUMNS": "100"}.items():
            patch.setenv(variable, value)

    def write(self, path: str, data: bytes, *, append: bool = False, at: float | None = None):
        """Write a file with filled placeholders, and set its time to now or to `at`."""
        place = self.root / self.filled(path.encode()).decode()
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("ab" if append else "wb") as file:
            file.write(self.filled(data))
        self.touch(place, at)

    def touch(self, place: Path, at: float | None = None):
        """Set the time of a file to now or to `at`."""
        os.utime(place, (self.now if at is None else at,) * 2)

    def filled(self, data: bytes) -> bytes:
        """Fill in the placeholders; AGENTS_ROOT is Codex's name for its first agent."""
        root = os.fsencode(self.root)
        data = (
            data.replace(b"ROOT_DIR", root)
            .replace(b"AGENTS_ROOT", b"/root")
            .replace(b"{pid}", str(os.getpid()).encode())
        )
        return data.replace(b"{slug}", slug(str(self.root)).encode())

    def clock(self) -> time_machine.travel:
        """Return a clock that stands still, in UTC."""
        return time_machine.travel(datetime.fromtimestamp(self.now, ZoneInfo("UTC")), tick=False)

    def watch(self, workspace: str, *, checks: bool = False):
        """Watch like a screen until the history holds everything; with `checks`, until all claims are checked, too."""

        async def until_seen():
            monitor = build_workspaces([self.root / workspace], load())

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
        """Return the document or the lines that a command prints, shortened, and without the paths of this machine."""
        with self.clock():
            ran = run(*(one.replace("ROOT_DIR", str(self.root)) for one in words))
        text = self.scrubbed(ran.out)
        result: Any = short(json.loads(text)) if text.startswith("{") and "\n}" in text else text.splitlines()
        extra = {"exit": ran.code} if ran.code else {}
        extra |= {"stderr": self.scrubbed(ran.err).splitlines()} if ran.err else {}
        return {"shown": result, **extra} if extra else result

    def scrubbed(self, text: str) -> str:
        """Return a text without the paths of this machine."""
        for place in {str(self.root), os.path.realpath(self.root)}:
            text = text.replace(place, "ROOT_DIR").replace(slug(place), "{slug}")
        # If agentwatch is not on the path, a command to be pasted names the interpreter instead.
        return re.sub(r"[^\s\"]*/python[\d.]* -I -S \S+/__main__\.py \S+", "agentwatch", text)


def short(document: Any) -> Any:
    """Return a document without empty values: null, false, 0, "", [] and {}; only `counted` stays if it is false."""
    if isinstance(document, Mapping):
        return {key: shortened for key, value in document.items() if (shortened := short(value)) or key == "counted"}
    return [short(one) for one in document] if isinstance(document, list) else document
