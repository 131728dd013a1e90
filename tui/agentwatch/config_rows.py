"""What each setting may be and what it means: a row each. The manual and the JSON schema are made from them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

_PORT: Final = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_THIS_COMPUTER: Final = rf"^http://(?:127\.0\.0\.1|localhost|\[::1\]):(?:{_PORT})/?$"
_DAY: Final = 86_400


class ValueKind(NamedTuple):
    """What may stand behind a key: in words, as a JSON schema, and what becomes of it."""

    words: str
    schema: Mapping[str, Any]
    made: Callable[[Any], object] = lambda value: value


class Setting(NamedTuple):
    """A setting, as the manual describes it. Where it has no default there is an example, as it stands in the file."""

    kind: ValueKind
    meaning: str
    example: str = ""


_TYPES: Final[Mapping[str, Any]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value fits a schema of the few words that `ROWS` uses."""
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return False
    if kind in ("integer", "number"):
        return bool(schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf))
    if kind == "string":
        return re.fullmatch(schema.get("pattern", "(?s).*"), value) is not None and len(value) >= schema.get(
            "minLength", 0
        )
    if kind == "array":
        return len(value) >= schema.get("minItems", 0) and all(fits(one, schema["items"]) for one in value)
    return kind == "boolean" or all(name and fits(one, schema["additionalProperties"]) for name, one in value.items())


def _one_of(*words: str) -> ValueKind:
    return ValueKind(f"one of {', '.join(words)}", {"enum": list(words)})


def _number(least: float, most: float | None = None) -> ValueKind:
    bounds = f", at least {least:g}" if most is None else f" from {least:g} to {most:.0f}"
    return ValueKind(f"a number{bounds}", {"type": "number", "minimum": least} | ({"maximum": most} if most else {}))


def _whole(least: int) -> ValueKind:
    return ValueKind(f"a whole number, at least {least}", {"type": "integer", "minimum": least})


def _table_of(*kinds: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "additionalProperties": {"anyOf": list(kinds)}}


def _wishes(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """The keys that are wanted, by the ids of the commands."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _wishes(value, f"{above}{name}.")
        else:
            yield above + name, (value,) if isinstance(value, str) else tuple(value)


_WORD: Final = {"type": "string", "minLength": 1}
_FLAG: Final = ValueKind("true or false", {"type": "boolean"})
_TEXT: Final = ValueKind("a text", _WORD)
_DIRECTORIES: Final = ValueKind("a list of directory names", {"type": "array", "items": {"type": "string"}}, frozenset)
_COMMAND: Final = ValueKind(
    "a list of words, the command and its arguments", {"type": "array", "items": _WORD, "minItems": 1}, tuple
)
_MODES: Final = ValueKind(
    "a list of names of modes, or a table that says what each is for",
    {"anyOf": [{"type": "array", "items": _WORD}, {"type": "object", "additionalProperties": {"type": "string"}}]},
    lambda value: tuple((value if isinstance(value, dict) else dict.fromkeys(value, "")).items()),
)
_VIEWS: Final = ValueKind(
    "a table that says what each view looks for",
    {"type": "object", "additionalProperties": {"type": "string"}},
    lambda value: tuple(value.items()),
)
_PRICES: Final = ValueKind(
    "a table of models, each with a number up to 1000000",
    {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1_000_000}},
    lambda value: tuple(value.items()),
)
_ADDRESS: Final = {"type": "string", "pattern": "^(ssh|nats)://.+"}
_HOSTS: Final = ValueKind(
    "a table of names, each with an address that begins with ssh:// or nats://, or a list of them",
    _table_of(_ADDRESS, {"type": "array", "items": _ADDRESS, "minItems": 1}),
    lambda value: tuple((name, (one,) if isinstance(one, str) else tuple(one)) for name, one in value.items()),
)
_KEY: Final[list[Any]] = [_WORD, {"type": "array", "items": _WORD, "minItems": 1}]
_KEYS: Final = ValueKind(
    "a table of commands, each with a key or a list of keys",
    # Behind a dot, a name is a table to TOML: `filter.state.back` is one in one in one.
    _table_of(*_KEY, _table_of(*_KEY, _table_of(*_KEY))),
    lambda value: tuple(_wishes(value)),
)
_HERE: Final = ValueKind(
    "like http://127.0.0.1:4096, a server on this computer", {"type": "string", "pattern": _THIS_COMPUTER}
)

ROWS: Final[Mapping[str, Setting]] = {
    "enforcement": Setting(
        _one_of("strict", "lenient"), "`lenient`: a return that breaks its contract keeps the state that it reports."
    ),
    "stale_after": Setting(_number(1), "Seconds without a sign of life after which a working task is marked silent."),
    "history_after": Setting(
        _number(0),
        "What had shown no sign of life for so many seconds when agentwatch first watched a workspace is history: it"
        " asks nothing.",
    ),
    "low_confidence": Setting(
        _number(0), "A finished report asks you for a review if its author is less sure than this."
    ),
    "pruned": Setting(
        _DIRECTORIES, "Directories that are not read. Your list replaces the built-in one.", '["node_modules"]'
    ),
    "max_bytes": Setting(_whole(1024), "Larger files are not read."),
    "read_only": Setting(_FLAG, "Write nothing into the workspace: no `errors.json` and no copies of your decisions."),
    "sessions": Setting(_FLAG, "`false`: read only files, and no sessions of agent programs."),
    "require_contract": Setting(
        _FLAG, "`true`: a child in a session fails unless its answer follows one of the contracts."
    ),
    "poll": Setting(_FLAG, "Look again every few seconds instead of asking the system for events."),
    "theme": Setting(
        _TEXT,
        "The colours. The palette (`ctrl+p`) lists them; your own go to `themes/*.toml` beside this file. Without a"
        " theme, a terminal with 16 colours gets `agentwatch-ansi`, and so does `NO_COLOR`.",
        '"agentwatch-dark"',
    ),
    "modes": Setting(
        _MODES,
        "Modes that you can escalate to, besides those that agentwatch has seen. A table `[modes]` also says what each"
        ' is for: `debug = "finds the cause of a failure"`.',
        '["debug"]',
    ),
    "views": Setting(
        _VIEWS,
        "Saved views: what each looks for, as you would write it behind `/`. The keys `1` to `9` in the tree show them"
        ' in this order. A table `[views]` is easier to read: `failed = "state:failed since:1d"`.',
        '{ mine = "is:needs-you agent:review" }',
    ),
    "prices": Setting(
        _PRICES,
        "What a million tokens of each model cost, in your currency: one price for all of them, read or written. The"
        " `cost` in `tree --json` is made of these alone. A name with a dot in it needs quotes.",
        '{ "claude-opus-4.1" = 15, "gpt-5" = 5 }',
    ),
    "keys": Setting(
        _KEYS,
        "Other keys for the commands of the screen: each command's name, which the manual's topic `keys` tells, with a"
        " key or a list of keys. Beside `fold`, a longer name such as `fold.all` needs quotes around all of it.",
        '{ decide.retry = "ctrl+r", timeline = ["t", "f9"] }',
    ),
    "hosts": Setting(
        _HOSTS,
        "Names of your own for workspaces on other machines, each with its address, or a list of them. Then"
        " `agentwatch build1` shows them, and `agentwatch --hosts` those of all.",
        '{ build1 = "ssh://kim@build1/srv/shop", sandboxes = "nats://broker" }',
    ),
    "editor": Setting(
        _TEXT,
        "The editor that opens files, where neither `$VISUAL` nor `$EDITOR` is set. Without it: `core.editor` of your"
        " own or the machine's git configuration, never of a repository's; then `vi`. A name is looked up in"
        " PATH, but not in workspaces and git work trees.",
        '"nano"',
    ),
    "remote.always": Setting(_FLAG, "`true`: `agentwatch` alone shows all `[hosts]` too, as `--hosts` does."),
    "remote.queue": Setting(
        _number(0, 7 * _DAY),
        "Seconds that a decision waits for a host that cannot be reached. With `0` it is refused instead.",
    ),
    "retry.max_retries": Setting(
        _whole(0), "How often a failed child may be retried. A material mitigation earns one more retry."
    ),
    "retry.expires_after": Setting(
        _number(60, 10 * 365 * _DAY),
        "Seconds until a retry, an escalation or an answer expires; then you can decide again.",
    ),
    "mcp.wait": Setting(_number(0, _DAY), 'Seconds until `wait_for_decision` answers "pending, call again".'),
    "hook.wait": Setting(
        _number(0, _DAY),
        "Seconds that a hook waits for your decision. Run `agentwatch init --write` again after you change this.",
    ),
    "hook.when": Setting(
        _one_of("watched", "always", "never"),
        "When a hook waits: while agentwatch shows the workspace, always, or never.",
    ),
    "hook.undecided": Setting(
        _one_of("hold", "let-go"),
        "What happens to a failed child until you have decided. `hold`: it is sent back, at most 8 times in a row.",
    ),
    "hook.prompt": Setting(
        _number(0, 600),
        "Seconds for which a child's permission prompt stays hidden while you can answer it in agentwatch; then it"
        " appears in its terminal. 0: at once.",
    ),
    "hook.corrects": Setting(_FLAG, "Send a child back once when its return breaks its contract."),
    "opencode.url": Setting(
        _HERE,
        "The server in which your sessions run (`opencode serve`, `opencode --port`). agentwatch tells it that you have"
        " decided. It must be on this computer.",
        '"http://127.0.0.1:4096"',
    ),
    "alarms.minutes": Setting(_number(0), "A task asks you once it has been at work for so many minutes. 0: never."),
    "alarms.tokens": Setting(_whole(0), "A task asks you once it has used so many tokens. 0: never."),
    "alarms.subtree_tokens": Setting(
        _whole(0), "A task asks you once it has used so many tokens together with all tasks below it. 0: never."
    ),
    "alarms.repeats": Setting(
        _whole(0),
        "A task asks you once it has made the same call so often in a row. Calls that only wait do not count."
        " 0: never.",
    ),
    "notify.bell": Setting(_FLAG, "Ring the bell when a task begins to need you while you look elsewhere."),
    "notify.title": Setting(_FLAG, "Say in the window's title how many tasks need you."),
    "notify.terminal": Setting(
        _FLAG, "Whether the terminal shows notifications. Without it: only where nothing else does.", "true"
    ),
    "notify.desktop": Setting(
        _FLAG, "Whether `notify-send` shows notifications. Without it: where there is a desktop.", "true"
    ),
    "notify.command": Setting(
        _COMMAND,
        "A command in place of `notify-send`. The text becomes its last argument.",
        '["ntfy", "publish", "my-topic"]',
    ),
}
"""Every key of the file. Reading it, the manual's `settings` and its JSON schema come from here."""
