"""The manual beside this module: Markdown for `agentwatch help` and the help screen, and the JSON schemas.

`README.md` lists the topics.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from agentwatch.arguments import did_you_mean
from agentwatch.errors import UsageError
from agentwatch.text import clean, say

_HERE: Final = Path(__file__).parent
_SCHEMA: Final = ".schema.json"
_TOPIC: Final = re.compile(r"^- \[(\w+)\]", re.MULTILINE)
_COMMENT: Final = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_PICTURE: Final = re.compile(r"^!\[.*\]\(.*\)\n+", re.MULTILINE)
_WRAP: Final = re.compile(r"(?<=\S)\n *(?=[^\s#-])")
_LINK: Final = re.compile(r"\[(\w+)\]\(\w+\.md\)")


def topics() -> list[str]:
    """The names of all topics, in the order of the list."""
    return _TOPIC.findall((_HERE / "README.md").read_text("utf-8"))


def page(topic: str) -> str:
    """The page of a topic as Markdown for a terminal: without comments and pictures, and with other topics bare."""
    text = (_HERE / f"{topic}.md").read_text("utf-8")
    return _LINK.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", text)))


def unwrapped(topic: str) -> str:
    """The same, each paragraph and each entry of a list on one line, for a width that is not known here."""
    words = page(topic).split("```")
    return "```".join(part if number % 2 else _WRAP.sub(" ", part) for number, part in enumerate(words))


def print_page(topic: str | None) -> int:
    """Print a topic, or the list of all. Returns 0; raises UsageError for a topic that is not there."""
    if topic is not None and topic not in topics():
        hint = did_you_mean(topic.lower(), topics()) or f"the topics are {', '.join(topics())}"
        raise UsageError(f"there is no topic {clean(topic, 40)}; {hint}")
    say(page(topic or "README").rstrip())
    return 0


def schemas() -> list[str]:
    """The names of all JSON schemas."""
    return sorted(path.name.removesuffix(_SCHEMA) for path in _HERE.glob(f"*{_SCHEMA}"))


def print_schema(name: str | None) -> int:
    """Print a JSON schema, or the names of all. Returns 0; raises UsageError for one that is not there."""
    if name is None:
        say("\n".join(schemas()))
        return 0
    if name not in schemas():
        hint = did_you_mean(name.lower(), schemas()) or f"there are {', '.join(schemas())}"
        raise UsageError(f"there is no schema {clean(name, 40)}; {hint}")
    say((_HERE / f"{name}{_SCHEMA}").read_text("utf-8").rstrip())
    return 0
