"""What code of others prints goes nowhere: in the output of a command it is taken for ours, on a terminal it acts.

`contextlib.redirect_stdout` would take what our own threads print, too. So the standard streams are wrapped, once, and
what they do depends on the thread that asks them.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, Any


class _Thread(threading.local):
    runs_code_of_others = False


_thread = _Thread()


class _Stream:
    """A standard stream, or nowhere, method by method: also `buffer` and `fileno()`."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(_nowhere() if _thread.runs_code_of_others else self._stream, name)


@contextmanager
def unheard() -> Iterator[None]:
    """Until then, what this thread prints goes nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Stream):
            setattr(sys, name, _Stream(stream))
    before, _thread.runs_code_of_others = _thread.runs_code_of_others, True
    try:
        yield
    finally:
        _thread.runs_code_of_others = before


@cache
def _nowhere() -> IO[str]:
    return open(os.devnull, "w", encoding="utf-8", errors="backslashreplace")  # noqa: PTH123  never closed
