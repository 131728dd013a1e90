"""The pages of the manual and the JSON schemas that are made from the code; `python -m tests.generate` writes them."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentwatch.app.actions import COMMANDS, HELP
from agentwatch.cli.check import CheckedDoc
from agentwatch.cli.log import LoggedActivityDoc, LoggedRequestDoc, LoggedStateDoc
from agentwatch.cli.manual import every_rule
from agentwatch.cli.pending import PendingDoc, PendingsDoc
from agentwatch.config import SETTINGS, Settings
from agentwatch.decisions.record import Record
from agentwatch.view.document import TreeDoc, TreesDoc

MANUAL = Path(__file__).parents[1] / "tui" / "agentwatch" / "manual"
WIDTH = 78
MADE = "<!-- Made by `python -m tests.generate`; do not edit. -->\n"


def keys() -> str:
    lines = ["# Keys", "", "The footer says what the keys do where you are. `?` lists them all, and"]
    lines += ["`ctrl+p` finds any command by its name. `^s` is ctrl+s, `⇧tab` is shift+tab."]
    lines += [
        "",
        *textwrap.wrap(
            "Behind each stands its name. Under it the settings may give it other keys, in the place of those here:",
            WIDTH,
        ),
    ]
    lines += ["", "```toml", "[keys]", 'decide.retry = "ctrl+r"', 'timeline = ["t", "f9"]', "```", ""]
    lines += textwrap.wrap(
        "A key is a character as you type it (`R` is not `r`), or a name such as `f5`, `enter`, `space` or `pageup`;"
        " before both may stand `ctrl+`, `alt+` or `shift+`. In a decision `ctrl+s` and `esc` stay what they are, and"
        " `ctrl+c` leaves agentwatch, or the dialog that is open, whatever else you set. Two commands cannot have one"
        " key in one place: then both keep the keys that they had, which agentwatch says when it starts, and so does"
        " `agentwatch doctor`.",
        WIDTH,
    )
    for heading, sentences in HELP.items():
        lines += ["", f"## {heading}", ""]
        for name, words in sentences.items():
            names = " ".join(f"`{key}`" for key in COMMANDS[name].keys_label.split(" "))
            lines += entry(f"{names}: {words} (`{name}`)")
    return page(lines)


def rules() -> str:
    lines = ["# Rules", "", "`agentwatch rules --explain ID` says why a rule is there, with a right and a"]
    lines += ["wrong example. An error breaks the contract; a warning changes no state."]
    every = every_rule().values()
    for contract in dict.fromkeys(rule.contract for rule in every):
        lines += ["", f"## {contract or 'Any contract, and what stands between documents'}", ""]
        for rule in (rule for rule in every if rule.contract == contract):
            lines += entry(f"`{rule.id}` {rule.level}: {rule.title}")
    return page(lines)


def settings() -> str:
    lines = ["# Settings", ""]
    lines += textwrap.wrap(
        "They stand in `$XDG_CONFIG_HOME/agentwatch/config.toml`, usually `~/.config/agentwatch/config.toml`. A"
        " workspace cannot change them, because agents write there. Each key stands here with its default, or with an"
        " example if it has none.",
        WIDTH,
    )
    table = None
    for key, kind in SETTINGS.items():
        name = key.rpartition(".")[2]
        if key.rpartition(".")[0] != table:
            table = key.rpartition(".")[0]
            lines += ["", f"## [{table}]" if table else "## At the top of the file", ""]
        bounds = f" Must be {kind.words}." if kind.words.startswith(("one of", "a number", "a whole number")) else ""
        lines += entry(f"`{name} = {example(key) or toml(default(key))}`: {MEANINGS[key.replace('.', '_')]}{bounds}")
    return page(lines)


def document_schema(name: str) -> str:
    return json.dumps(SCHEMAS[name], indent=2) + "\n"


def meanings() -> dict[str, str]:
    """The sentences that stand under the fields of the settings."""
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
    """How a setting without a default may stand in the file."""
    *_, last = getattr(Settings.__annotations__[key.replace(".", "_")], "__metadata__", [None])
    return last if isinstance(last, str) else "" if default(key) is not None else "true"


def toml(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else json.dumps(value)


def entry(words: str) -> list[str]:
    return textwrap.wrap(
        words, WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def page(lines: Iterable[str]) -> str:
    return MADE + "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "keys.md": keys,
    "rules.md": rules,
    "settings.md": settings,
    **{f"{name}.schema.json": partial(document_schema, name) for name in SCHEMAS},
}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (MANUAL / name).write_text(made(), "utf-8")


SHAPES: dict[str, tuple[str, Any]] = {
    "tree": ("agentwatch tree --json", TreeDoc | TreesDoc),
    "pending": ("agentwatch pending --json", PendingDoc | PendingsDoc),
    "log": ("A line of agentwatch log --json", LoggedStateDoc | LoggedActivityDoc | LoggedRequestDoc),
    "check": ("agentwatch check --format json", CheckedDoc),
    "decision": ("A decision: the payload of its envelope", Record),
}


class Plain(GenerateJsonSchema):
    """Without a title for each field, which only repeats its name, and without our defaults; named tuples are objects,
    as they are in the JSON of a record."""

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
    """The schema of all values of a type. Keys may be added, so no object is closed."""
    made = TypeAdapter(shape).json_schema(mode="serialization", schema_generator=Plain)
    return {"$schema": Plain.schema_dialect, **made, "title": title}


SCHEMAS = {name: schema_of(*about) for name, about in SHAPES.items()}
"""By the name under which `agentwatch schema` prints them."""
