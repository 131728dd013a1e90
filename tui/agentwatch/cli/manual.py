"""The commands that read the manual: topics, rules and JSON schemas."""

import re
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence

from agentwatch import manual
from agentwatch.arguments import did_you_mean
from agentwatch.cli.command import COMMANDS, argument, command, start
from agentwatch.console import STRONG, Part, has_colors, is_terminal, print_line, print_pages
from agentwatch.contracts.rules import Rule
from agentwatch.errors import UsageError
from agentwatch.text import clean, indented_json, print_text

_LINK = re.compile(r"\[([^\]]+)\]\((\w+)\.md\)")
_MARKED = re.compile(r"(?:`|\*\*)(?=\S)([^`*]+)(?<=\S)(?:`|\*\*)")


@command(argument("topic", "TOPIC", "a topic, or a command (default: list the topics)", nargs="?"))
def help(options: Namespace) -> int:  # noqa: A001  the name of the command
    """Read the manual."""
    topics = manual.topic_names()
    if options.topic in COMMANDS and options.topic not in topics:
        return start(options.topic, ["--help"])
    topic = _require_known(options.topic, "topic", topics) or "README"
    if is_terminal():
        print_pages(_style_lines(manual.read_unwrapped(topic).rstrip()))
    else:
        print_text(manual.read_page(topic).rstrip())
    return 0


def _style_lines(page: str) -> Iterator[list[Part | str]]:
    """Yield the lines of a page for a terminal. On a terminal with colours, bold text replaces Markdown's marks."""
    is_code = False
    for line in page.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        elif is_code:
            yield [f"    {line}"]
        elif line.startswith("#"):
            yield [(line.lstrip("# "), STRONG)]
        else:
            line = _LINK.sub(r"\1 (\2)", line)  # noqa: PLW2901
            words = _MARKED.split(line) if has_colors() else [line]
            yield [(one, STRONG if number % 2 else "") for number, one in enumerate(words)]


@command(argument("name", "NAME", "of a contract, of the output of a command, or of a file", nargs="?"))
def schema(options: Namespace) -> int:
    """Print the JSON schema of a contract, of the output of a command, or of a file that agentwatch writes."""
    names = manual.schema_names()
    name = _require_known(options.name, "schema", names)
    print_text(manual.read_schema(name).rstrip() if name else "\n".join(names))
    return 0


def _require_known(name: str | None, kind: str, names: Sequence[str]) -> str | None:
    """Return `name`, which may be None. Raise UsageError if `name` is not one of `names`."""
    if name and name not in names:
        hint = did_you_mean(name.lower(), names) or f"the {kind}s are {', '.join(names)}"
        raise UsageError(f"there is no {kind} {clean(name, 40)}; {hint}")
    return name


@command(
    argument("--explain", "ID", "why the rule is there, with a right and a wrong example"),
    argument("--format", None, "default: text", choices=("text", "json"), default="text"),
)
def rules(options: Namespace) -> int:
    """List the rules, or explain a rule."""
    catalog = all_rules()
    if options.explain:
        rule = catalog.get(options.explain.upper())
        if not rule:
            raise UsageError(f"there is no rule {clean(options.explain, 40)}; `agentwatch rules` lists them")
        print_text(f"{rule.id} {rule.title} ({rule.level_words})\n{rule.contract or 'any contract'}, {rule.section}\n")
        print_text(textwrap.fill(rule.why, 100))
        for heading, example in (("Right", rule.right), ("Wrong", rule.wrong)):
            if example:
                print_text(f"\n{heading}:\n{textwrap.indent(example, '    ')}")
    elif options.format == "json":
        names = ["id", "contract", "severity", "section", "title", "message", "why", "right", "wrong"]
        print_text(
            indented_json({"rules": [{name: getattr(rule, name) for name in names} for rule in catalog.values()]})
        )
    else:
        width = max(len(rule.title) for rule in catalog.values())
        for rule in catalog.values():
            contract = rule.contract or "any"
            print_line(f"{rule.id}  {rule.severity:<7}  {contract:<15}  {rule.title:<{width}}  {rule.section}", hang=8)
    return 0


def all_rules() -> dict[str, Rule]:
    """Return the rules about single documents, by id. Rules about links between tasks are not included."""
    from agentwatch.contracts.rules import read_rules
    from agentwatch.decisions.delivery import FORGED

    return read_rules() | {FORGED.id: FORGED}
