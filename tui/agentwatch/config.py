"""The operator's settings: `config.toml` in the user's configuration directory.

The workspace has no say in them: agents write there, and one that could switch off the checks would.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.errors import ConfigError
from agentwatch.place import user_home

_ON_THIS_COMPUTER: Final = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):(?P<port>[0-9]{1,5})/?")
_LAST_PORT: Final = 65535
_DAY: Final = 86_400


class Settings(NamedTuple):
    """What an operator can set. Times are in seconds, sizes in bytes."""

    enforcement: str = "strict"
    """`strict`: a return that breaks its contract counts as failed. `lenient`: findings only."""
    stale_after: float = 600.0
    """How long a working task may be silent."""
    max_retries: int = 1
    """`[retry] max_retries`: how often a failed child may be retried."""
    expires_after: float = 604_800.0
    """`[retry] expires_after`: how long a decision that asks for work is told, and binds; then it can be taken anew."""
    low_confidence: float = 0.5
    """A completed report of which its author is less sure asks for a review."""
    pruned: frozenset[str] | None = None
    """Names and patterns of directories that are not entered; None for the built-in list."""
    max_bytes: int = 1_048_576
    """Larger files are not read."""
    poll: bool = False
    """Look again regularly instead of asking the system for events."""
    sessions: bool = True
    """Read the agents' own session stores, too."""
    require_contract: bool = False
    """A child of a session that ends without a return of one of the contracts counts as failed."""
    read_only: bool = False
    """Write nothing into the workspace."""
    modes: tuple[tuple[str, str], ...] = ()
    """Modes that a task can be escalated to, besides those that were seen, each with what it is for, or ""."""
    theme: str | None = None
    editor: str | None = None
    mcp_wait: float = 45.0
    """`[mcp] wait`: how long `wait_for_decision` waits at most; some clients end a call after a minute."""
    hook_wait: float = 30.0
    """`[hook] wait`: how long a hook waits for a decision; the program ends it after the time that `init` wrote."""
    hook_when: str = "watched"
    """`[hook] when`: `watched`: it waits while agentwatch shows the workspace; `always`; `never`."""
    hook_undecided: str = "hold"
    """`[hook] undecided`: what becomes of a failed child that nobody has decided about: `hold` or `let-go`."""
    hook_corrects: bool = True
    """`[hook] corrects`: a child whose return breaks its contract is sent back once, with the findings."""
    opencode_url: str = ""
    """`[opencode] url`: the server of OpenCode that is told of decisions about its sessions; "" for none."""
    notify_bell: bool = True
    """`[notify] bell`: the terminal's bell, when a task begins to need an operator who looks elsewhere."""
    notify_title: bool = True
    """`[notify] title`: the window's title says how many tasks need the operator."""
    notify_terminal: bool | None = None
    """`[notify] terminal`: a notification by the terminal itself; None: where the desktop shows none."""
    notify_desktop: bool | None = None
    """`[notify] desktop`: a notification by a command; None: where one is set, or there is a desktop."""
    notify_command: tuple[str, ...] = ()
    """`[notify] command`: the words of a command in the place of `notify-send`; the text is its last argument."""

    @property
    def strict(self) -> bool:
        return self.enforcement != "lenient"


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CONFIG_HOME/agentwatch`, else `~/.config/agentwatch`. It need not exist."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CONFIG_HOME") or ""
    # The specification says that a relative path in it is to be ignored.
    return (Path(base) if Path(base).is_absolute() else user_home() / ".config") / "agentwatch"


def load(path: Path | None = None) -> Settings:
    """Settings from a TOML file, by default `config.toml` of the configuration directory; defaults where it is absent.

    Raises ConfigError with the file, the line where TOML tells one, and what to do.
    """
    path = config_directory() / "config.toml" if path is None else path
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); correct it or move it away") from error
    import tomllib  # noqa: PLC0415  most have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    return _settings(path, table)


def _settings(path: Path, table: Mapping[str, object]) -> Settings:
    values: dict[str, Any] = {}
    for key, value in _flat(table):
        read = _READERS.get(key)
        if read is None:
            raise ConfigError(f"{path}: unknown key {key!r}; known keys are {', '.join(sorted(_READERS))}")
        try:
            values[key.removeprefix("retry.").replace(".", "_")] = read(value)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{path}: {key}: {error}") from error
    return Settings(**values)


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The keys of the file, those of its tables as `table.key`."""
    for key, value in table.items():
        if isinstance(value, dict) and key != "modes":
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        else:
            yield key, value


def _one_of(*words: str) -> Callable[[object], object]:
    def read(value: object) -> object:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {value!r}")
        return value

    return read


def _number(least: float, most: float = math.inf) -> Callable[[object], object]:
    bounds = f", at least {least:g}" if most == math.inf else f" from {least:g} to {most:.0f}"

    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise ValueError(f"must be a number{bounds}, not {value!r}")
        return value

    return read


def _whole(least: int) -> Callable[[object], object]:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"must be a whole number, at least {least}, not {value!r}")
        return value

    return read


def _flag(value: object) -> object:
    if not isinstance(value, bool):
        raise TypeError(f"must be true or false, not {value!r}")
    return value


def _words(value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"must be a list of directory names, not {value!r}")
    return frozenset(value)


def _modes(value: object) -> object:
    """A list of names, or a table of names and what each is for."""
    named = dict.fromkeys(value, "") if isinstance(value, list) and set(map(type, value)) <= {str} else value
    if not isinstance(named, dict) or not all(name and isinstance(purpose, str) for name, purpose in named.items()):
        raise TypeError(f"must be a list of names of modes, or a table that says what each is for, not {value!r}")
    return tuple(named.items())


def _command(value: object) -> object:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise TypeError(f"must be a list of words, the command and its arguments, not {value!r}")
    return tuple(value)


def _text(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise TypeError(f"must be a text, not {value!r}")
    return value


def _here(value: object) -> object:
    """The address of a server on this computer."""
    found = _ON_THIS_COMPUTER.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found["port"]) > _LAST_PORT:
        raise ValueError(f"must be like http://127.0.0.1:4096, a server on this computer, not {value!r}")
    return value


_READERS: Final[Mapping[str, Callable[[object], object]]] = {
    "enforcement": _one_of("strict", "lenient"),
    "stale_after": _number(1),
    "retry.max_retries": _whole(0),
    "retry.expires_after": _number(60, 10 * 365 * _DAY),
    "low_confidence": _number(0),
    "pruned": _words,
    "max_bytes": _whole(1024),
    "poll": _flag,
    "read_only": _flag,
    "sessions": _flag,
    "require_contract": _flag,
    "modes": _modes,
    "theme": _text,
    "editor": _text,
    "mcp.wait": _number(0, _DAY),
    "hook.wait": _number(0, _DAY),
    "hook.when": _one_of("watched", "always", "never"),
    "hook.undecided": _one_of("hold", "let-go"),
    "hook.corrects": _flag,
    "opencode.url": _here,
    "notify.bell": _flag,
    "notify.title": _flag,
    "notify.terminal": _flag,
    "notify.desktop": _flag,
    "notify.command": _command,
}
