"""Command lines to copy: exact for the shell, and harmless to the terminal that shows them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable

from agentwatch.text import clean

_LONGEST = 100_000


def command_line(words: Iterable[str]) -> str:
    """The words as one line for sh, bash and zsh. Raises UnicodeEncodeError for what no argument can hold."""
    return " ".join(_word(word) for word in words)


def _word(word: str) -> str:
    plain = shlex.quote(word)
    if clean(plain, _LONGEST) == plain and "\N{NO-BREAK SPACE}" not in plain:
        return plain
    # As bytes in $'…', which no shell takes for anything else and no terminal for an order.
    return "$'" + "".join(_shown(byte) for byte in os.fsencode(word)) + "'"


def _shown(byte: int) -> str:
    character = chr(byte)
    return character if character.isascii() and (character.isalnum() or character in " -_./:,@") else f"\\x{byte:02x}"
