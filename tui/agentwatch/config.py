"""The operator's settings: `config.toml` in the user's configuration directory.

The workspace has no say in them: agents write there, and one that could switch off the checks would.
"""
# Annotations stand here as values: from them come the manual, the JSON schema, and what a file may say.

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from agentwatch.errors import ConfigError
from agentwatch.state import xdg_directory

_PORT: Final = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_DAY: Final = 86_400
_TABLES: Final = ("remote", "retry", "mcp", "hook", "opencode", "notify")
"""The tables of the file that hold settings; a table of another name is itself the value of one."""


Fields = Mapping[str, Any]
Pairs = tuple[tuple[str, str], ...]
Lists = tuple[tuple[str, tuple[str, ...]], ...]


class Kind(NamedTuple):
    """The allowed values, in words and as a JSON schema, and how the value of the file is converted."""

    words: str
    schema: Fields
    convert: Callable[[Any], object] = lambda value: value


def _one_of(*words: str) -> Kind:
    return Kind(f"one of {', '.join(words)}", {"enum": words})


def _number(least: float, most: float = math.inf, noun: str = "number") -> Kind:
    bounds = f", at least {least:g}" if math.isinf(most) else f" from {least:g} to {most:.0f}"
    limits = {"minimum": least} if math.isinf(most) else {"minimum": least, "maximum": most}
    return Kind(f"a {noun}{bounds}", {"type": noun.replace("whole number", "integer"), **limits})


def _list(items: Fields, least: int = 0) -> Fields:
    return {"type": "array", "items": items, "minItems": least}


def _table(values: Fields) -> Fields:
    return {"type": "object", "additionalProperties": values}


def _one_or_more(value: Fields, *others: Fields) -> Fields:
    return {"anyOf": [value, _list(value, 1), *others]}


def _pairs(table: Fields) -> Pairs:
    return tuple(table.items())


def _lists(table: Fields, prefix: str = "") -> Lists:
    """The values of a table and of the tables in it, by their names with dots between, each as a list."""
    lists: Lists = ()
    for name, value in table.items():
        if isinstance(value, dict):
            lists += _lists(value, f"{prefix}{name}.")
        else:
            lists += ((prefix + name, (value,) if isinstance(value, str) else tuple(value)),)
    return lists


_STRING: Final = {"type": "string"}
_WORD: Final = {"type": "string", "pattern": ".+"}
_ADDRESS: Final = {"type": "string", "pattern": "^(ssh|nats)://.+"}
_SERVER: Final = {"type": "string", "pattern": rf"^http://(?:127\.0\.0\.1|localhost|\[::1\]):(?:{_PORT})/?$"}
_PRICE: Final = {"type": "number", "minimum": 0, "maximum": 1_000_000}

_FLAG: Final = Kind("true or false", {"type": "boolean"})
_TEXT: Final = Kind("a text", _WORD)

_TYPES: Final[Fields] = {
    "boolean": [bool],
    "integer": [int],
    "number": [int, float],
    "string": [str],
    "array": [list],
    "object": [dict],
}


def _fits(value: Any, schema: Fields) -> bool:
    """Whether a value fits a JSON schema of the few words that are used here."""
    if "anyOf" in schema:
        return any(_fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    if type(value) not in _TYPES[schema["type"]]:
        return False
    if isinstance(value, str):
        return re.fullmatch(schema.get("pattern", r"[\s\S]*"), value) is not None
    if isinstance(value, list):
        return len(value) >= schema["minItems"] and all(_fits(one, schema["items"]) for one in value)
    if isinstance(value, dict):
        return all(name and _fits(one, schema["additionalProperties"]) for name, one in value.items())
    return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))


class Settings(NamedTuple):
    """Everything that an operator can set. Behind the kind of what has no default stands an example, as in the file."""

    enforcement: Annotated[str, _one_of("strict", "lenient")] = "strict"
    """`lenient`: a return that breaks its contract keeps the state that it reports."""
    stale_after: Annotated[float, _number(1)] = 600.0
    """Seconds without a sign of life after which a working task is marked silent."""
    history_after: Annotated[float, _number(0)] = 259_200.0
    """What had shown no sign of life for so many seconds when agentwatch first watched a workspace is history: it asks
    nothing."""
    low_confidence: Annotated[float, _number(0)] = 0.5
    """A finished report asks you for a review if its author is less sure than this."""
    pruned: Annotated[
        frozenset[str] | None, Kind("a list of directory names", _list(_STRING), frozenset), '["node_modules"]'
    ] = None
    """Directories that are not read. Your list replaces the built-in one."""
    max_bytes: Annotated[int, _number(1024, noun="whole number")] = 1_048_576
    """Larger files are not read."""
    read_only: bool = False
    """Write nothing into the workspace: no `errors.json` and no copies of your decisions."""
    sessions: bool = True
    """`false`: read only files, and no sessions of agent programs."""
    require_contract: bool = False
    """`true`: a child in a session fails unless its answer follows one of the contracts."""
    poll: bool = False
    """Look again every few seconds instead of asking the system for events."""
    theme: Annotated[str | None, _TEXT, '"agentwatch-dark"'] = None
    """The colours. The palette (`ctrl+p`) lists them; your own go to `themes/*.toml` beside this file. Without a theme,
    a terminal with 16 colours gets `agentwatch-ansi`, and so does `NO_COLOR`."""
    modes: Annotated[
        Pairs,
        Kind(
            "a list of names of modes, or a table that says what each is for",
            {"anyOf": [_list(_WORD), _table(_STRING)]},
            lambda value: _pairs(value if isinstance(value, dict) else dict.fromkeys(value, "")),
        ),
        '["debug"]',
    ] = ()
    """Modes that you can escalate to, besides those that agentwatch has seen. A table `[modes]` also says what each is
    for: `debug = "finds the cause of a failure"`."""
    views: Annotated[
        Pairs,
        Kind("a table that says what each view looks for", _table(_STRING), _pairs),
        '{ mine = "is:needs-you agent:review" }',
    ] = ()
    """Saved views: what each looks for, as you would write it behind `/`. The keys `1` to `9` in the tree show them in
    this order. A table `[views]` is easier to read: `failed = "state:failed since:1d"`."""
    prices: Annotated[
        tuple[tuple[str, float], ...],
        Kind("a table of models, each with a number up to 1000000", _table(_PRICE), _pairs),
        '{ "claude-opus-4.1" = 15, "gpt-5" = 5 }',
    ] = ()
    """What a million tokens of each model cost, in your currency: one price for all of them, read or written. The
    `cost` in `tree --json` is made of these alone. A name with a dot in it needs quotes."""
    keys: Annotated[
        Lists,
        Kind(
            "a table of commands, each with a key or a list of keys",
            # Behind a dot, a name is a table to TOML: `filter.state.back` is one in one in one.
            _table(_one_or_more(_WORD, _table(_one_or_more(_WORD, _table(_one_or_more(_WORD)))))),
            _lists,
        ),
        '{ decide.retry = "ctrl+r", timeline = ["t", "f9"] }',
    ] = ()
    """Other keys for the commands of the screen: each command's name, which the manual's topic `keys` tells, with a key
    or a list of keys. Beside `fold`, a longer name such as `fold.all` needs quotes around all of it."""
    hosts: Annotated[
        Lists,
        Kind(
            "a table of names, each with an address that begins with ssh:// or nats://, or a list of them",
            _table(_one_or_more(_ADDRESS)),
            _lists,
        ),
        '{ build1 = "ssh://kim@build1/srv/shop", sandboxes = "nats://broker" }',
    ] = ()
    """Names of your own for workspaces on other machines, each with its address, or a list of them. Then `agentwatch
    build1` shows them, and `agentwatch --hosts` those of all."""
    editor: Annotated[str | None, _TEXT, '"nano"'] = None
    """The editor that opens files, where neither `$VISUAL` nor `$EDITOR` is set. Without it: `core.editor` of your own
    or the machine's git configuration, never of a repository's; then `vi`. A name is looked up in PATH, but not in
    workspaces and git work trees."""
    remote_always: bool = False
    """`true`: `agentwatch` alone shows all `[hosts]` too, as `--hosts` does."""
    remote_queue: Annotated[float, _number(0, 7 * _DAY)] = 0.0
    """Seconds that a decision waits for a host that cannot be reached. With `0` it is refused instead."""
    retry_max_retries: Annotated[int, _number(0, noun="whole number")] = 1
    """How often a failed child may be retried. A material mitigation earns one more retry."""
    retry_expires_after: Annotated[float, _number(60, 10 * 365 * _DAY)] = 604_800.0
    """Seconds until a retry, an escalation or an answer expires; then you can decide again."""
    mcp_wait: Annotated[float, _number(0, _DAY)] = 45.0
    """Seconds until `wait_for_decision` answers "pending, call again"."""
    hook_wait: Annotated[float, _number(0, _DAY)] = 30.0
    """Seconds that a hook waits for your decision. Run `agentwatch init --write` again after you change this."""
    hook_when: Annotated[str, _one_of("watched", "always", "never")] = "watched"
    """When a hook waits: while agentwatch shows the workspace, always, or never."""
    hook_undecided: Annotated[str, _one_of("hold", "let-go")] = "hold"
    """What happens to a failed child until you have decided. `hold`: it is sent back, at most 8 times in a row."""
    hook_prompt: Annotated[float, _number(0, 600)] = 20.0
    """Seconds for which a child's permission prompt stays hidden while you can answer it in agentwatch; then it appears
    in its terminal. 0: at once."""
    hook_corrects: bool = True
    """Send a child back once when its return breaks its contract."""
    opencode_url: Annotated[
        str, Kind("like http://127.0.0.1:4096, a server on this computer", _SERVER), '"http://127.0.0.1:4096"'
    ] = ""
    """The server in which your sessions run (`opencode serve`, `opencode --port`). agentwatch tells it that you have
    decided. It must be on this computer."""
    notify_bell: bool = True
    """Ring the bell when a task begins to need you while you look elsewhere."""
    notify_title: bool = True
    """Say in the window's title how many tasks need you."""
    notify_terminal: bool | None = None
    """Whether the terminal shows notifications. Without it: only where nothing else does."""
    notify_desktop: bool | None = None
    """Whether `notify-send` shows notifications. Without it: where there is a desktop."""
    notify_command: Annotated[
        tuple[str, ...],
        Kind("a list of words, the command and its arguments", _list(_WORD, 1), tuple),
        '["ntfy", "publish", "my-topic"]',
    ] = ()
    """A command in place of `notify-send`. The text becomes its last argument."""

    @property
    def strict(self) -> bool:
        return self.enforcement != "lenient"


def _key(field: str) -> str:
    """How the file names a field of Settings."""
    table, _, name = field.partition("_")
    return f"{table}.{name}" if table in _TABLES else field


SETTINGS: Final[Mapping[str, Kind]] = {
    _key(field): getattr(annotation, "__metadata__", (_FLAG,))[0]
    for field, annotation in Settings.__annotations__.items()
}
"""The kind of each setting by its key in the file."""


def config_directory(environment: Mapping[str, str] | None = None) -> Path:
    """`$XDG_CONFIG_HOME/agentwatch`, else `~/.config/agentwatch`. It need not exist."""
    return xdg_directory("XDG_CONFIG_HOME", ".config", environment)


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
    values: dict[str, Any] = {}
    table.pop("alarms", None)  # older versions had it
    for name, value in table.items():
        is_table = isinstance(value, dict) and name not in SETTINGS
        for key, one in ({f"{name}.{key}": one for key, one in value.items()} if is_table else {name: value}).items():
            if key not in SETTINGS:
                raise ConfigError(f"{path}: unknown key {key!r}; known keys are {', '.join(sorted(SETTINGS))}")
            kind = SETTINGS[key]
            if not _fits(one, kind.schema):
                raise ConfigError(f"{path}: {key}: must be {kind.words}, not {one!r}")
            values[key.replace(".", "_")] = kind.convert(one)
    return Settings(**values)


def where(key: str) -> str:
    """The place of a key such as `views.mine`: the file, and the line in or below its table that gives it a value."""
    path, table = config_directory() / "config.toml", key.partition(".")[0]
    assigned = re.compile(rf"""(?:^|[\s.{{"'])["']?{re.escape(key.rpartition(".")[2])}["']?\s*=""")
    with suppress(OSError, UnicodeDecodeError):
        is_inside = False
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            is_inside |= table in line
            if is_inside and assigned.search(line):
                return f"{path}:{number}"
    return str(path)
