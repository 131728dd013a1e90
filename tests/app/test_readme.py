"""The README's table of keys is made from the commands. `python -m tests.app.test_readme` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from agentwatch.app.commands import COMMANDS, Group

README = Path(__file__).parents[2] / "README.md"
SECTION = re.compile(r"(?<=<!-- keys -->\n).*?(?=<!-- /keys -->)", re.DOTALL)


def keys_table() -> str:
    lines = ["| | keys | |", "| --- | --- | --- |"]
    for group in Group:
        commands = [command for command in COMMANDS if command.group is group]
        for number, command in enumerate(commands):
            keys = " ".join(f"`{key}`" for key in command.keys_label.split(" "))
            lines.append(f"| {group.value if number == 0 else ''} | {keys} | {command.tooltip} |")
    return "\n".join(lines) + "\n"


def test_the_readme_lists_the_keys_as_they_are() -> None:
    section = SECTION.search(README.read_text("utf-8"))
    assert section is not None
    assert section.group() == keys_table()


if __name__ == "__main__":
    README.write_text(SECTION.sub(lambda _: keys_table(), README.read_text("utf-8")), "utf-8")
