"""The pages of the manual and the JSON schemas that are made from the code; `python -m tests.generate` writes them."""

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path

from agentwatch.app.actions import COMMANDS, HELP
from agentwatch.cli.manual import every_rule
from agentwatch.config import SETTINGS, Settings
from tests.schemas import SCHEMAS

MANUAL = Path(__file__).parents[1] / "tui" / "agentwatch" / "manual"
WIDTH = 78
MADE = "<!-- Made by `python -m tests.generate`; do not edit. -->\n"


def keys() -> str:
    lines = ["# Keys", "", "The footer says what the keys do where you are. `?` lists them all, and"]
    lines += ["`ctrl+p` finds any command by its name. `^s` is ctrl+s, `⇧tab` is shift+tab."]
    lines += [
        "",
        *textwrap.wrap(
            "Behind each entry stands the name of its command. Under this name, your settings can give the command"
            " other keys, which replace those here:",
            WIDTH,
        ),
    ]
    lines += ["", "```toml", "[keys]", 'decide.retry = "ctrl+r"', 'timeline = ["t", "f9"]', "```", ""]
    lines += textwrap.wrap(
        "A key is a character as you type it (`R` is not `r`), or a name such as `f5`, `enter`, `space` or `pageup`;"
        " `ctrl+`, `alt+` or `shift+` may stand before it. Some keys are fixed: `ctrl+s` and `esc` in a decision, and"
        " `ctrl+c`, which leaves agentwatch or the open dialog. If you give two commands the same key in the same"
        " place, both keep their old keys. agentwatch says so when it starts, and so does `agentwatch doctor`.",
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
        lines += ["", f"## {contract or 'All contracts, files, links and decisions'}", ""]
        for rule in (rule for rule in every if rule.contract == contract):
            lines += entry(f"`{rule.id}` {rule.level}: {rule.title}")
    return page(lines)


def settings() -> str:
    lines = ["# Settings", ""]
    lines += textwrap.wrap(
        "Your settings lie in `$XDG_CONFIG_HOME/agentwatch/config.toml`, usually `~/.config/agentwatch/config.toml`. A"
        " workspace cannot change them, because agents write there. Each key is shown with its default. A key without a"
        " default is shown with an example, which says so.",
        WIDTH,
    )
    table = None
    for key, kind in SETTINGS.items():
        name = key.rpartition(".")[2]
        if key.rpartition(".")[0] != table:
            table = key.rpartition(".")[0]
            lines += ["", f"## [{table}]" if table else "## At the top of the file", ""]
        bounds = f" Must be {kind.words}." if kind.words.startswith(("one of", "a number", "a whole number")) else ""
        shown = (
            f"`{name}` (for example `{name} = {example(key)}`)" if example(key) else f"`{name} = {toml(default(key))}`"
        )
        lines += entry(f"{shown}: {MEANINGS[key.replace('.', '_')]}{bounds}")
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
