"""Asks on the terminal before something is done."""

from __future__ import annotations

import sys
import termios
from typing import Final

from agentwatch.errors import UsageError
from agentwatch.text import say

PLACEHOLDER: Final = "TEXT"
"""What stands in a printed line for words of the operator."""


def refuse_placeholder(*words: str) -> None:
    """Raises UsageError where one of the operator's words is the one that stands for them in a printed line."""
    if PLACEHOLDER in words:
        raise UsageError(f"not recorded: {PLACEHOLDER} stands for words of yours; write them in its place")


def confirmed(question: str) -> bool:
    """Ask on the terminal. Only `y` or `yes` is a yes, and nothing that was typed before the question."""
    # First this, as passphrases are asked for: after the question an answer could be thrown away.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write(f"\n{question} [y/N] ")
    sys.stdout.flush()
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        say("")
    return typed.strip().casefold() in ("y", "yes")
