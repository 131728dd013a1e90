"""A made-up machine: a home, a clock, files with times, and documents with the secrets of this machine taken out."""

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import time_machine

from tests.goldens.trees import adapter

_VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "QWEN_RUNTIME_DIR", "QWEN_HOME"),
    *("PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB", "KILO_DB"),
)


def slug(path: str) -> str:
    """A path as Claude Code and Qwen Code name a directory after it."""
    return re.sub(r"[^a-zA-Z0-9]", "-", path)


class Machine:
    """A home below `root`, and commands that are run there at a time of its clock (epoch seconds)."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, now: float):
        self.root, self.now = root, now
        for variable in _VARIABLES:
            patch.delenv(variable, raising=False)
        for variable, place in {"HOME": "home", "XDG_STATE_HOME": "state"}.items():
            (root / place).mkdir()
            patch.setenv(variable, str(root / place))
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

    def run(self, *words: str) -> adapter.Ran:
        """Run a command now."""
        with self.clock():
            return adapter.run([one.replace("ROOT_DIR", str(self.root)) for one in words])

    def watch(self, workspace: str, *, checks: bool = False):
        """A screen that is opened now, and closed when it has seen all, and perhaps checked it."""
        with self.clock():
            adapter.watch(self.root / workspace, checks=checks)

    def shown(self, *words: str) -> Any:
        """The document that a command prints, or its lines, in short and without what is only so on this machine."""
        ran = self.run(*words)
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
