"""The pages of the manual and the JSON schemas that are made from the code; `python -m tests.generate` writes them."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby, pairwise, starmap
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentwatch.app.actions import COMMANDS, HELP
from agentwatch.cli.check import CheckedDoc
from agentwatch.cli.log import LoggedActivityDoc, LoggedRequestDoc, LoggedStateDoc
from agentwatch.cli.manual import all_rules
from agentwatch.cli.pending import PendingDoc, PendingsDoc
from agentwatch.config import SETTINGS, Settings
from agentwatch.decisions.record import Record
from agentwatch.view.document import TreeDoc, TreesDoc

MANUAL = Path(__file__).parents[1] / "tui" / "agentwatch" / "manual"
WIDTH = 78
MADE = "<!-- Made by `python -m tests.generate`; do not edit. -->\n"


def keys() -> str:
    return page(
        "# Keys",
        wrapped(
            "The footer says what the keys do where you are. `?` lists them all, and `ctrl+p` finds any command by its"
            " name. `^s` is ctrl+s, `⇧tab` is shift+tab."
        ),
        wrapped(
            "Each entry ends with the name of its command, in brackets. In your settings, you can give a command other"
            " keys, which replace the keys listed here:"
        ),
        '```toml\n[keys]\ndecide.retry = "ctrl+r"\ntimeline = ["t", "f9"]\n```',
        wrapped(
            "A key is a character as you type it (`R` is not `r`), or a name such as `f5`, `enter`, `space` or"
            " `pageup`. `ctrl+`, `alt+` or `shift+` may stand before it. Some keys are fixed: `ctrl+s` and `esc` in a"
            " decision, and `ctrl+c`, which leaves agentwatch or the open dialog. If you give two commands the same key"
            " in the same place, both keep their old keys. agentwatch says so when it starts, and so does `agentwatch"
            " doctor`."
        ),
        *(section(heading, starmap(key, sentences.items())) for heading, sentences in HELP.items()),
    )


def key(name: str, words: str) -> str:
    names = " ".join(f"`{key}`" for key in COMMANDS[name].keys_label.split(" "))
    return f"{names}: {words} (`{name}`)"


def rules() -> str:
    every = all_rules().values()
    return page(
        "# Rules",
        wrapped(
            "`agentwatch rules --explain ID` says why a rule is there, with a right and a wrong example. An error"
            " breaks the contract; a warning changes no state."
        ),
        *(
            section(
                contract or "All contracts, files, links and decisions",
                (f"`{rule.id}` {rule.level_words}: {rule.title}" for rule in every if rule.contract == contract),
            )
            for contract in dict.fromkeys(rule.contract for rule in every)
        ),
    )


def settings() -> str:
    return page(
        "# Settings",
        wrapped(
            "Your settings lie in `$XDG_CONFIG_HOME/agentwatch/config.toml`, usually `~/.config/agentwatch/config.toml`"
            ". A workspace cannot change them, because agents write there. Each key is shown with its default, or"
            " with an example if it has no default."
        ),
        *(
            section(f"[{table}]" if table else "At the top of the file", map(setting, names))
            for table, names in groupby(SETTINGS, lambda name: name.rpartition(".")[0])
        ),
    )


def setting(name: str) -> str:
    words = SETTINGS[name].words
    bounds = f" Must be {words}." if words.startswith(("one of", "a number", "a whole number")) else ""
    key = name.rpartition(".")[2]
    shown = f"`{key}` (for example `{key} = {example(name)}`)" if example(name) else f"`{key} = {toml(default(name))}`"
    return f"{shown}: {MEANINGS[name.replace('.', '_')]}{bounds}"


def meanings() -> dict[str, str]:
    """Return the sentence below each field of the settings, by the name of the field."""
    (settings,) = ast.parse(inspect.getsource(Settings)).body
    assert isinstance(settings, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(settings.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


MEANINGS = meanings()


def default(key: str) -> object:
    return Settings._field_defaults[key.replace(".", "_")]


def example(key: str) -> str:
    """Return an example of a setting that has no default, as it may stand in the file."""
    *_, last = getattr(Settings.__annotations__[key.replace(".", "_")], "__metadata__", [None])
    return last if isinstance(last, str) else "" if default(key) is not None else "true"


def toml(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else json.dumps(value)


def wrapped(words: str, **more: Any) -> str:
    return textwrap.fill(words, WIDTH, **more)


def section(heading: str, entries: Iterable[str]) -> str:
    indents = {"initial_indent": "- ", "subsequent_indent": "  "}
    lines = (wrapped(one, **indents, break_long_words=False, break_on_hyphens=False) for one in entries)
    return "\n".join((f"## {heading}\n", *lines))


def page(*parts: str) -> str:
    return MADE + "\n\n".join(parts) + "\n"


# Schemas

SHAPES: dict[str, tuple[str, Any]] = {
    "tree": ("agentwatch tree --json", TreeDoc | TreesDoc),
    "pending": ("agentwatch pending --json", PendingDoc | PendingsDoc),
    "log": ("A line of agentwatch log --json", LoggedStateDoc | LoggedActivityDoc | LoggedRequestDoc),
    "check": ("agentwatch check --format json", CheckedDoc),
    "decision": ("A decision: the payload of its envelope", Record),
}


class Plain(GenerateJsonSchema):
    """Leaves out the titles of fields, which only repeat their names, and our defaults; shows named tuples as objects,
    as in the JSON of a record."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def named_tuple_schema(self, schema: Any) -> Any:
        fields = {one["name"]: one["schema"] for one in schema["fields"]}
        properties = {name: self.generate_inner(inner) for name, inner in fields.items()}
        required = [name for name, inner in fields.items() if inner["type"] != "default"]
        return {"type": "object", "properties": properties, "required": required}

    def default_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])


def schema_of(title: str, shape: Any) -> dict[str, Any]:
    """Return the schema of all values of a type. Keys may be added, so no object is closed."""
    made = TypeAdapter(shape).json_schema(mode="serialization", schema_generator=Plain)
    return {"$schema": Plain.schema_dialect, **made, "title": title}


SCHEMAS = {name: schema_of(*about) for name, about in SHAPES.items()}
"""The schemas by the names under which `agentwatch schema` prints them."""


# All pages

PAGES: dict[str, Callable[[], str]] = {
    "keys.md": keys,
    "rules.md": rules,
    "settings.md": settings,
    **{f"{name}.schema.json": partial("{}\n".format, json.dumps(made, indent=2)) for name, made in SCHEMAS.items()},
}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (MANUAL / name).write_text(made(), "utf-8")
