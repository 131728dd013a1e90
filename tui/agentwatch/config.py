"""The operator's settings, read from `config.toml` in the user's configuration directory, never from a workspace."""
# The annotations of `Settings` are used at run time: to check the file, and to write the manual.

import math
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from agentwatch.errors import ConfigError
from agentwatch.state import xdg_directory

_DAY = 86_400
RUN = "run"  # the first item of a host that a program reaches; the path and the program's words follow
_TABLES = ("remote", "retry", "mcp", "hook", "notify")
"""In these tables of the file, each key is a setting. Any other table is the value of one setting."""


Pairs = tuple[tuple[str, str], ...]
Lists = tuple[tuple[str, tuple[str, ...]], ...]
T = TypeVar("T")


class Kind(NamedTuple):
    """A kind of setting: a description of its values, and a function that converts a value or raises ValueError."""

    words: str
    convert: Callable[[Any], object]


def _one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(words)}", lambda value: words[words.index(value)])


def _number(least: float, most: float = math.inf, noun: str = "number") -> Kind:
    def convert(value: Any) -> float:
        number: float = value if type(value) is float and noun == "number" else _require_type(int, value)
        if not least <= number <= most:
            raise ValueError
        return number

    bounds = f", at least {least:g}" if math.isinf(most) else f" from {least:g} to {most:.0f}"
    return Kind(f"a {noun}{bounds}", convert)


def _require_type(kind: type[T], value: Any) -> T:
    if type(value) is not kind:
        raise ValueError
    return value


def _read_text(value: Any, pattern: str = ".+") -> str:
    if not re.fullmatch(pattern, _require_type(str, value)):
        raise ValueError
    return str(value)


def _read_list(value: Any, item: Callable[[Any], T], least: int = 0) -> tuple[T, ...]:
    if len(_require_type(list, value)) < least:
        raise ValueError
    return tuple(map(item, value))


def _read_table(value: Any, item: Callable[[Any], T]) -> tuple[tuple[str, T], ...]:
    return tuple((_read_text(name), item(one)) for name, one in _require_type(dict, value).items())


def _read_texts(value: Any, pattern: str = ".+") -> tuple[str, ...]:
    return _read_list(value if isinstance(value, list) else [value], partial(_read_text, pattern=pattern), 1)


def _read_host(value: Any) -> tuple[str, ...]:
    """Return the addresses of a host. If a program reaches the host, return RUN, the path and the program's words."""
    if isinstance(value, dict):
        if value.keys() - {"run", "path"}:
            raise ValueError
        return RUN, _read_text(value.get("path")), *_read_list(value.get("run"), _read_text, 1)
    return _read_texts(value, pattern="(ssh|nats|tls)://.+")


def _read_keys(value: Any, prefix: str = "") -> Lists:
    """Return the keyboard keys of each command. TOML reads a name with a dot, such as `fold.all`, as nested tables."""
    lists: Lists = ()
    for name, one in _read_table(value, lambda one: one):
        lists += _read_keys(one, f"{prefix}{name}.") if isinstance(one, dict) else ((prefix + name, _read_texts(one)),)
    return lists


_STRING = partial(_require_type, str)
_FLAG = Kind("true or false", partial(_require_type, bool))
_TEXT = Kind("a text", _read_text)


class Settings(NamedTuple):
    """Everything that an operator can set. If a setting has no default, an example in TOML follows its kind."""

    enforcement: Annotated[str, _one_of("strict", "lenient")] = "strict"
    """With `lenient`, a return that breaks its contract keeps the state that it reports."""
    stale_after: Annotated[float, _number(1)] = 600.0
    """A working task is shown as silent if it gave no sign of life for this number of seconds."""
    history_after: Annotated[float, _number(0)] = 259_200.0
    """A task is history, and does not need you, if it was silent for this number of seconds when you first watched."""
    low_confidence: Annotated[float, _number(0)] = 0.5
    """A completed return asks you for a review if its confidence is below this number."""
    pruned: Annotated[
        frozenset[str] | None,
        Kind("a list of directory names", lambda value: frozenset(_read_list(value, _STRING))),
        '["node_modules"]',
    ] = None
    """Names of directories that agentwatch does not read. Your list replaces the built-in list."""
    max_bytes: Annotated[int, _number(1024, noun="whole number")] = 1_048_576
    """Files with more bytes are not read."""
    read_only: bool = False
    """With `true`, nothing is written into the workspace: no `errors.json` and no copies of your decisions."""
    sessions: bool = True
    """With `false`, only files are read, and no sessions of agent programs."""
    require_contract: bool = False
    """With `true`, a child in a session fails if its answer follows none of the contracts."""
    poll: bool = False
    """With `true`, agentwatch looks for changes every few seconds instead of asking the system for events."""
    theme: Annotated[str | None, _TEXT, '"agentwatch-dark"'] = None
    """The colours. The palette (`ctrl+p`) lists all themes. Put your own themes into `themes/*.toml` beside
    `config.toml`. If you set no theme, `agentwatch-ansi` is used in a terminal with 16 colours, or with `NO_COLOR`."""
    modes: Annotated[
        Pairs,
        Kind(
            "a list of names of modes, or a table that says what each is for",
            lambda value: _read_table(
                value if isinstance(value, dict) else dict.fromkeys(_read_list(value, _read_text), ""), _STRING
            ),
        ),
        '["debug"]',
    ] = ()
    """Modes (roles of agents) to which you can escalate, besides those that agentwatch has seen. In a table `[modes]`
    you can add the purpose of each: `debug = "finds the cause of a failure"`."""
    views: Annotated[
        Pairs,
        Kind("a table that says what each view looks for", partial(_read_table, item=_STRING)),
        '{ mine = "is:needs-you agent:review" }',
    ] = ()
    """Saved views: each has a name and a filter, as you would type it behind `/`. In the tree, the keys `1` to `9` show
    them in this order. A table `[views]` is easier to read: `failed = "state:failed since:1d"`."""
    prices: Annotated[
        tuple[tuple[str, float], ...],
        Kind(
            "a table of models, each with a number up to 1000000",
            partial(_read_table, item=_number(0, 1_000_000).convert),
        ),
        '{ "claude-opus-4.1" = 15, "gpt-5" = 5 }',
    ] = ()
    """The price of a million tokens of each model, in your currency. Tokens that the model reads and tokens that it
    writes cost the same. The `cost` in `tree --json` uses only these prices. A name with a dot in it needs quotes."""
    keys: Annotated[
        Lists,
        Kind("a table of commands, each with a key or a list of keys", _read_keys),
        '{ decide.retry = "ctrl+r", timeline = ["t", "f9"] }',
    ] = ()
    """Other keys for the commands of the screen: the name of a command, with a key or a list of keys. The manual's
    topic `keys` has all names. If you set `fold`, the names that begin with `fold.` need quotes: `"fold.all"`."""
    hosts: Annotated[
        Lists,
        Kind(
            "a table of names, each with an address that begins with ssh:// or nats://, a list of them, or a table"
            " with `run` and `path`",
            partial(_read_table, item=_read_host),
        ),
        '{ build1 = "ssh://kim@build1/srv/shop", box = { run = ["docker", "exec", "-i", "box"], path = "/work" } }',
    ] = ()
    """Your names for workspaces on other machines: an address, a list of addresses, or a program (`run`) that runs
    commands there, and the `path`. `agentwatch build1` shows one workspace, and `agentwatch --hosts` shows them all."""
    editor: Annotated[str | None, _TEXT, '"nano"'] = None
    """The editor that opens files if neither `$VISUAL` nor `$EDITOR` is set. If you set no editor here, it is `vi`. A
    name is looked up in PATH, but not in workspaces and git work trees."""
    remote_always: bool = False
    """With `true`, plain `agentwatch` also shows all `[hosts]`, as `--hosts` does."""
    retry_max_retries: Annotated[int, _number(0, noun="whole number")] = 1
    """How often a failed child may be retried. If this is less than 2, a material mitigation allows one more retry."""
    retry_expires_after: Annotated[float, _number(60, 10 * 365 * _DAY)] = 604_800.0
    """A retry, an escalation or an answer expires after this number of seconds. Then you can decide again."""
    mcp_wait: Annotated[float, _number(0, _DAY)] = 45.0
    """`wait_for_decision` answers "pending, call again" after this number of seconds."""
    hook_wait: Annotated[float, _number(0, _DAY)] = 30.0
    """The seconds that a hook waits for your decision. If you change this, run `agentwatch init --write` again."""
    hook_when: Annotated[str, _one_of("watched", "always", "never")] = "watched"
    """When a hook waits: only while agentwatch shows the workspace (`watched`), `always`, or `never`."""
    hook_undecided: Annotated[str, _one_of("hold", "let-go")] = "hold"
    """With `hold`, a failed child that tries to end is sent back until you have decided, at most 8 times in a row. With
    `let-go`, it may end."""
    hook_prompt: Annotated[float, _number(0, 600)] = 20.0
    """For this number of seconds, a child's permission prompt is hidden, and you can answer it in agentwatch. Then it
    appears in its terminal. With 0, it appears at once."""
    hook_corrects: bool = True
    """With `true`, a child is sent back once if its return breaks its contract."""
    notify_bell: bool = True
    """Ring the bell when a task begins to need you while you look elsewhere."""
    notify_turns: bool = False
    """Notify also when a session that you began has ended its turn."""
    notify_title: bool = True
    """Show in the window's title how many tasks need you."""
    notify_terminal: bool | None = None
    """Whether the terminal shows notifications. If this is not set, it shows them only if no other program does."""
    notify_desktop: bool | None = None
    """Whether `notify-send` shows notifications. If this is not set, it shows them if there is a desktop."""
    notify_command: Annotated[
        tuple[str, ...],
        Kind("a list of words, the command and its arguments", partial(_read_list, item=_read_text, least=1)),
        '["ntfy", "publish", "my-topic"]',
    ] = ()
    """A command to use instead of `notify-send`. The text of the notification becomes its last argument."""

    @property
    def strict(self) -> bool:
        return self.enforcement != "lenient"


def _key_of(field: str) -> str:
    """Return the name that a field of `Settings` has in the file: `hook.wait` for `hook_wait`."""
    table, _, name = field.partition("_")
    return f"{table}.{name}" if table in _TABLES else field


SETTINGS = {
    _key_of(field): getattr(annotation, "__metadata__", (_FLAG,))[0]
    for field, annotation in Settings.__annotations__.items()
}  # the kind of each setting; the keys are the names in the file


def config_directory() -> Path:
    """Return the directory of the settings, `~/.config/agentwatch` by default. The directory need not exist."""
    return xdg_directory("XDG_CONFIG_HOME", ".config")


def load(path: Path | None = None) -> Settings:
    """Return the settings in a TOML file, by default the user's `config.toml`. Raise ConfigError if they are wrong."""
    path = config_directory() / "config.toml" if path is None else path
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); correct it or move it away") from error
    import tomllib  # imported late, because most users have no such file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    values: dict[str, Any] = {}
    for old in ("alarms", "opencode"):  # older versions had these tables, so ignore them
        table.pop(old, None)
    if isinstance(remote := table.get("remote"), dict):
        remote.pop("queue", None)
    for name, value in table.items():
        is_table = isinstance(value, dict) and name not in SETTINGS
        for key, one in ({f"{name}.{key}": one for key, one in value.items()} if is_table else {name: value}).items():
            if key not in SETTINGS:
                raise ConfigError(f"{path}: unknown key {key!r}; known keys are {', '.join(sorted(SETTINGS))}")
            kind = SETTINGS[key]
            try:
                values[key.replace(".", "_")] = kind.convert(one)
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"{path}: {key}: must be {kind.words}, not {one!r}") from error
    return Settings(**values)


def locate_setting(key: str) -> str:
    """Return the path of the settings file. Add the line number of a key such as `views.mine` if the file sets it."""
    path, table = config_directory() / "config.toml", key.partition(".")[0]
    assigned = re.compile(rf"""(?:^|[\s.{{"'])["']?{re.escape(key.rpartition(".")[2])}["']?\s*=""")
    with suppress(OSError, UnicodeDecodeError):
        is_inside = False
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            is_inside |= table in line
            if is_inside and assigned.search(line):
                return f"{path}:{number}"
    return str(path)
