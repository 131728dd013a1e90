"""Read the manual."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from agentwatch.cli.command import COMMANDS, argument, start
from agentwatch.manual import print_page, topics

ARGUMENTS: Final = (
    argument("topic", "TOPIC", "a topic, or a command (default: list the topics)", nargs="?", offers="topics"),
)


def run(options: Namespace) -> int:
    """Print a topic, the help of a command, or the list of topics."""
    if options.topic in COMMANDS and options.topic not in topics():
        return start(options.topic, ["--help"])
    return print_page(options.topic)
