"""The operator's settings: `config.toml` in the user's configuration directory.

The workspace has no say in them: agents write there, and one that could switch off the checks would.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.errors import ConfigError
from agentwatch.place import user_home


class Settings(NamedTuple):
    """What an operator can set, with the defaults. `config_rows.ROWS` says what each means."""

    enforcement: str = "strict"
    stale_after: float = 600.0
    history_after: float = 259_200.0
    max_retries: int = 1
    expires_after: float = 604_800.0
    low_confidence: float = 0.5
    pruned: frozenset[str] | None = None
    max_bytes: int = 1_048_576
    poll: bool = False
    sessions: bool = True
    require_contract: bool = False
    read_only: bool = False
    modes: tuple[tuple[str, str], ...] = ()
    views: tuple[tuple[str, str], ...] = ()
    prices: tuple[tuple[str, float], ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    hosts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    remote_always: bool = False
    remote_queue: float = 0.0
    theme: str | None = None
    editor: str | None = None
    mcp_wait: float = 45.0
    hook_wait: float = 30.0
    hook_when: str = "watched"
    hook_undecided: str = "hold"
    hook_corrects: bool = True
    hook_prompt: float = 20.0
    opencode_url: str = ""
    alarms_minutes: float = 0.0
    alarms_tokens: int = 0
    alarms_subtree_tokens: int = 0
    alarms_repeats: int = 10
    notify_bell: bool = True
    notify_title: bool = True
    notify_terminal: bool | None = None
    notify_desktop: bool | None = None
    notify_command: tuple[str, ...] = ()

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
    import tomllib  # most have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    return _settings(path, table)


def _settings(path: Path, table: Mapping[str, object]) -> Settings:
    # Most have no such file.
    from agentwatch.config_rows import ROWS, fits

    values: dict[str, Any] = {}
    for key, value in _flat(table):
        row = ROWS.get(key)
        if row is None:
            raise ConfigError(f"{path}: unknown key {key!r}; known keys are {', '.join(sorted(ROWS))}")
        if not fits(value, row.kind.schema):
            raise ConfigError(f"{path}: {key}: must be {row.kind.words}, not {value!r}")
        values[field_of(key)] = row.kind.made(value)
    return Settings(**values)


_HEADER: Final = re.compile(r"\s*\[([^\[\]]+)\]")
_ASSIGNED: Final = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-]|\s*\.\s*)+?)\s*=""")


def where(key: str) -> str:
    """The place of what stands in the file, such as `views.mine`: file and line, the file alone if no line shows it."""
    path = config_directory() / "config.toml"
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return str(path)
    table = ""
    for number, line in enumerate(lines, start=1):
        if header := _HEADER.match(line):
            table = _plain(header[1]) + "."
        elif assigned := _ASSIGNED.match(line):
            name = table + _plain(assigned[1])
            if key == name or (key.startswith(f"{name}.") and "{" in line):
                return f"{path}:{number}"
    return str(path)


def _plain(name: str) -> str:
    """A name of the file without quotes, and without blanks around its dots."""
    return re.sub(r"\s*\.\s*", ".", name.replace('"', "").replace("'", "")).strip()


def field_of(key: str) -> str:
    """The field of Settings that a key of the file sets."""
    return key.removeprefix("retry.").replace(".", "_")


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The keys of the file, those of its tables as `table.key`."""
    for key, value in table.items():
        if isinstance(value, dict) and key not in ("modes", "views", "keys", "prices", "hosts"):
            yield from ((f"{key}.{inner}", one) for inner, one in value.items())
        else:
            yield key, value
