"""The commands by which agents' programs start agentwatch, and what is wrong with them. Reads, and writes nothing."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.agents.hook.journal import Journal
from agentwatch.agents.setup.programs import NAME, programs
from agentwatch.agents.setup.splice import commented
from agentwatch.config import Settings
from agentwatch.disk import Directory
from agentwatch.shell import command_line, launcher
from agentwatch.sources.claude_code.hooks import ASKS
from agentwatch.state import state_directory
from agentwatch.text import Check, bad, good, note, quoted

_LARGEST: Final = 16 * 1024 * 1024
_FACES: Final = ("hook", "mcp")
_BESIDE: Final = (".claude/settings.local.json", ".codex/config.toml")
"""Files of the workspace that `init` does not write, and people do."""

_OTHER_EVENTS: Final = ("SubagentStop", "PostToolUse")
_OLD_HOOKS: Final = f"its hooks lack {ASKS}; `agentwatch init --agent claude-code --write` adds it"
_OF_USER: Final = (
    ("CLAUDE_CONFIG_DIR", ".claude", ("settings.json", "../.claude.json", ".claude.json")),
    ("CODEX_HOME", ".codex", ("config.toml",)),
    ("XDG_CONFIG_HOME", ".config", tuple(f"{of}/{of}.json{c}" for of in ("opencode", "kilo") for c in ("", "c"))),
)
"""Where the user's own configurations lie: variable, place in the home directory, files."""


class Start(NamedTuple):
    """A command that starts agentwatch, in the file `place`. `fault` is a sentence, "" where it is as it should be.

    `event` is that of Claude Code on which it is started, "" for no hook.
    """

    place: str
    command: tuple[str, ...]
    fault: str
    event: str = ""


def starts(workspace: Path, texts: Mapping[str, str | None]) -> Iterator[Start]:
    """All that are found. `texts` are to stand for files of the workspace, by path."""
    known = programs(launcher(), Settings()).values()
    ours = dict.fromkeys(path for program in known for file in program.files for path in file.paths)
    for path in (*ours, *_BESIDE):
        text = texts[path] if path in texts else _read(workspace / path)
        yield from _in(path, text or "")
    home = Path.home()
    for variable, place, names in _OF_USER:
        directory = Path(os.environ.get(variable) or home / place)
        for file in dict.fromkeys(os.path.normpath(directory / name) for name in names):
            yield from _in(file, _read(Path(file)))


def checks(workspace: Path) -> Iterator[Check]:
    """What `doctor` says of them."""
    every = list(starts(workspace, {}))
    if (said := Journal(state_directory(workspace)).unanswered()) is not None:
        yield note("agents", f"an answer to a program did not get through at {said}")
    if (said := twice(every)) is not None:
        yield note("agents", said)
    for start in every:
        if start.fault:
            yield bad("agents", f"{start.place}: {told(start)}")
    if not every or any(start.fault for start in every):
        return
    yield good("agents", "what their configurations start is agentwatch, whatever lies in the workspace")
    events = {start.event for start in every}
    if ASKS in events:
        yield good("agents", "permissions and questions of Claude Code can be answered in agentwatch")
    elif events & set(_OTHER_EVENTS):
        yield note("agents", f"what Claude Code asks can be answered only there: {_OLD_HOOKS}")


def twice(found: Iterable[Start]) -> str | None:
    """What Claude Code starts twice on one event, in a sentence; None: nothing. Of equal commands it starts one."""
    on: dict[str, dict[tuple[str, ...], str]] = {}
    for start in found:
        if start.event:
            on.setdefault(start.event, {}).setdefault(start.command, start.place)
    first, *others = max((list(commands.values()) for commands in on.values()), key=len, default=[""])
    if not others:
        return None
    return (
        f"hooks of agentwatch stand in {first} and, with another command, in {', '.join(others)}: Claude Code starts"
        " all of them. A request is offered once all the same, but a child that stops may be told twice: keep them in"
        " one place"
    )


def told(start: Start) -> str:
    """What is wrong with one, and what to do about it. It quotes foreign text."""
    face = next(word for word in start.command if word in _FACES)
    right = command_line([*launcher(), face])
    # As it stands there, and not to be copied.
    words = quoted(" ".join(start.command), 200)
    return f"{words}: {start.fault}; `agentwatch init --write` mends what it wrote, else put there: {right}"


def _in(place: str, text: str) -> Iterator[Start]:
    value = None
    # Where it is broken, `init` says so of the files that it edits.
    with suppress(ValueError, RecursionError):
        value = tomllib.loads(text) if place.endswith(".toml") else _json(text or "{}")
    for command, event in _commands(value):
        if any(_starts(command, at) for at in range(len(command) - 1)):
            yield Start(place, command, _fault(command), event)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return commented(text).value


def _commands(value: Any, *keys: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Whatever a configuration calls a command, to any depth, with the event of its hook. `keys` lead there."""
    if isinstance(value, list):
        for inner in value:
            yield from _commands(inner, *keys)
    elif isinstance(value, dict):
        command, arguments = value.get("command"), value.get("args")
        if isinstance(command, str):
            command = [command] if isinstance(arguments, list) else _split(command)
        if isinstance(command, list):
            words = [*command, *arguments] if isinstance(arguments, list) else command
            if all(isinstance(word, str) for word in words):
                yield tuple(words), keys[1] if keys[:1] == ("hooks",) else ""
        for key, inner in value.items():
            yield from _commands(inner, *keys, key)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _starts(command: tuple[str, ...], at: int) -> bool:
    """Whether the words begin agentwatch here: by its name or by its file, and then as a hook or a server."""
    word, behind = command[at], command[at + 1 :]
    if word.rpartition("/")[2] == NAME:
        return behind[0] in _FACES
    return word.endswith(f"/{NAME}/__main__.py") and not set(_FACES).isdisjoint(behind[:2])


def _fault(command: tuple[str, ...]) -> str:
    if {"-I", "-S"} <= set(command):
        gone = [word for word in command[:4] if word.startswith("/") and not os.path.exists(word)]
        return f"{gone[0]} is not there any more" if gone else ""
    if "-m" in command:
        return "files of the workspace and PYTHON* variables can run other code in its place"
    return "an agent's program may have another PATH, and PYTHON* variables can run other code in its place"


def _read(path: Path) -> str:
    """The text, "" where there is none that can be read."""
    with suppress(OSError, ValueError):
        # People keep these files elsewhere, and link to them.
        path = Path(os.path.realpath(path))
        with Directory.open(path.parent) as directory:
            return directory.read(path.name, _LARGEST).decode()
    return ""
