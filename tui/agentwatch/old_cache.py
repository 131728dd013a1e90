"""Removes the cache of command output that earlier versions left in the state directory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from stat import S_ISREG
from typing import Final

from agentwatch.disk import OPEN_DIRECTORY, TEMPORARY
from agentwatch.place import state_directories

_NAME: Final = re.compile(rf"[0-9a-f]{{8}}\+?|{re.escape(TEMPORARY)}[0-9a-f]{{16}}")


def remove_old_cache() -> None:
    """Remove its files by their names, and no others; a link in the place of its directory or a file stays."""
    with suppress(OSError):
        parent = os.open(state_directories(), OPEN_DIRECTORY)
        try:
            _remove_files(parent)
            with suppress(OSError):
                os.rmdir("answers", dir_fd=parent)
            if S_ISREG(os.lstat("answers.key", dir_fd=parent).st_mode):
                os.unlink("answers.key", dir_fd=parent)
        finally:
            os.close(parent)


def _remove_files(parent: int) -> None:
    with suppress(OSError):
        directory = os.open("answers", OPEN_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            for name in filter(_NAME.fullmatch, os.listdir(directory)):  # noqa: PTH208
                if S_ISREG(os.lstat(name, dir_fd=directory).st_mode):
                    os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)
