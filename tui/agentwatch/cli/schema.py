"""Print the JSON schema of a contract, of what a command prints, or of a file that agentwatch writes."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from agentwatch.cli.command import argument
from agentwatch.manual import print_schema

ARGUMENTS: Final = (argument("name", "NAME", "of a contract, of what a command prints, or of a file", nargs="?"),)


def run(options: Namespace) -> int:
    """Print a schema, or the names of all."""
    return print_schema(options.name)
