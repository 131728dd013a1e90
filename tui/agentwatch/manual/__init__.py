"""Reads the manual's pages (Markdown) and the JSON schemas, which are in this directory.

`README.md` lists the topics.
"""

import re
from pathlib import Path

_HERE = Path(__file__).parent
_SCHEMA = ".schema.json"
_TOPIC = re.compile(r"^- \[(\w+)\]", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n*", re.DOTALL)
_PICTURE = re.compile(r"^!\[.*\]\(.*\)\n+", re.MULTILINE)
_WRAP = re.compile(r"(?<=\S)\n *(?=[^\s#-])")
_LINK = re.compile(r"\[(\w+)\]\(\w+\.md\)")


def topic_names() -> list[str]:
    """Return the names of all topics, in the order of `README.md`."""
    return _TOPIC.findall((_HERE / "README.md").read_text("utf-8"))


def read_page(topic: str) -> str:
    """Return a page as Markdown for a terminal. Comments, pictures and the targets of links are left out."""
    text = (_HERE / f"{topic}.md").read_text("utf-8")
    return _LINK.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", text)))


def read_unwrapped(topic: str) -> str:
    """Return a page with each paragraph and list entry on one line, for a caller that wraps lines itself."""
    words = read_page(topic).split("```")
    return "```".join(part if number % 2 else _WRAP.sub(" ", part) for number, part in enumerate(words))


def schema_names() -> list[str]:
    """Return the names of all JSON schemas."""
    return sorted(path.name.removesuffix(_SCHEMA) for path in _HERE.glob(f"*{_SCHEMA}"))


def read_schema(name: str) -> str:
    """Return the text of a JSON schema."""
    return (_HERE / f"{name}{_SCHEMA}").read_text("utf-8")
