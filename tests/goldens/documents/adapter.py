"""The command line of agentwatch, called in this process; nothing else here imports the product."""

import contextlib
import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run

_STORES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "QWEN_RUNTIME_DIR", "QWEN_HOME")
_OTHERS = ("PI_CODING_AGENT_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "OPENCODE_DB", "KILO_DB")


@contextlib.contextmanager
def _user(home: Path) -> Iterator[None]:
    """Be a user with this home."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*_STORES, *_OTHERS):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(home))
        patch.chdir(home)
        yield


def command(home: Path, *words: str) -> str:
    """What a command prints for a user with this home."""
    raw = io.BytesIO()
    with _user(home), contextlib.redirect_stdout(io.TextIOWrapper(raw, "utf-8", write_through=True)):
        with contextlib.redirect_stderr(io.StringIO()):
            run(words)
        return raw.getvalue().decode()


def checked(home: Path, *paths: Path) -> list[dict[str, Any]]:
    """The recognised files and their findings."""
    files: list[dict[str, Any]] = json.loads(command(home, "check", *map(str, paths), "--format", "json"))["files"]
    return files


def tasks(home: Path, workspace: Path) -> list[dict[str, Any]]:
    """The tasks of a workspace, with all that their documents say."""
    found: list[dict[str, Any]] = json.loads(command(home, "report", str(workspace), "--format", "json"))["tasks"]
    return found


@cache
def rules() -> list[dict[str, Any]]:
    """The catalogue of rules."""
    listed: list[dict[str, Any]] = json.loads(command(Path.cwd(), "rules", "--format", "json"))["rules"]
    return listed


@cache
def schema(contract: str) -> Any:
    """The JSON Schema of a contract."""
    return json.loads(command(Path.cwd(), "schema", contract))
