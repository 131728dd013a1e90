"""What `init` would change in a workspace: each file as it is and as it would be. Reads, and writes nothing."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentwatch.agents.setup.block import with_block, without_block
from agentwatch.agents.setup.programs import ByHand, Json, Program
from agentwatch.agents.setup.splice import Entry, Wish, added, removed
from agentwatch.contracts.json_text import BrokenError
from agentwatch.disk import Directory, NotRegularError

BACKUP: Final = ".agentwatch.bak"
_LARGEST: Final = 4 * 1024 * 1024
_MODE: Final = 0o755


@dataclass(frozen=True, slots=True)
class Edit:
    """One file, relative to the workspace. None stands for no file.

    `backup` is what lies beside it from before the first edit, as far as it does.
    """

    path: str
    before: str | None
    after: str | None
    backup: str | None

    @property
    def changes(self) -> bool:
        return self.before != self.after


Step = Edit | ByHand
Edited = Callable[[str], str]


def plan(workspace: Path, program: Program, *, remove: bool) -> list[Step]:
    """The steps of setting a program up, or of removing what was set up."""
    steps = [_instructions(workspace, program, remove=remove)]
    steps += [_json(workspace, file, remove=remove) for file in program.files]
    return steps + list(() if remove else program.by_hand)


@contextmanager
def directory_of(workspace: Path, path: str, *, make: bool = False) -> Iterator[tuple[Directory, str]]:
    """The directory of a file in the workspace, through no link, and the name in it. Raises OSError."""
    *parents, name = path.split("/")
    directory = Directory.open(workspace)
    for parent in parents:
        with directory as above:
            directory = above.child(parent, make=_MODE if make else None)
    with directory:
        yield directory, name


def _instructions(workspace: Path, program: Program, *, remove: bool) -> Step:
    path, told = program.instructions, program.told
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
    except (OSError, UnicodeDecodeError) as error:
        return ByHand(path, told, _why(error))
    if not remove:
        return Edit(path, text, with_block(text or "", told), backup)
    return Edit(path, text, _undone(text, backup, lambda of: with_block(of, told), without_block), backup)


def _json(workspace: Path, file: Json, *, remove: bool) -> Step:
    path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
        if not remove:
            return Edit(path, text, added(text or "{}\n", file.wishes), backup)
        after = _undone(text, backup, lambda of: added(of or "{}\n", file.wishes), lambda of: removed(of, file.wishes))
        return Edit(path, text, after, backup)
    except (OSError, UnicodeDecodeError, BrokenError) as error:
        return ByHand(path, _shown(file.wishes), _why(error))


def _undone(text: str | None, backup: str | None, do: Edited, undo: Edited) -> str | None:
    """The text of before: the very bytes where nobody else has changed it since, else without what is ours."""
    if text is None:
        return None
    if backup is not None and do(backup) == text:
        return backup
    if backup is None and do("") == text:
        # We made it.
        return None
    return undo(text)


def _read(workspace: Path, path: str) -> str | None:
    try:
        with directory_of(workspace, path) as (directory, name):
            # Line ends are kept as they are.
            return directory.read(name, _LARGEST).decode()
    except FileNotFoundError:
        return None


def _shown(wishes: tuple[Wish, ...]) -> str:
    """The wishes as one object, for a person to copy from."""
    whole: dict[str, Any] = {}
    for wish in wishes:
        inner = whole
        for key in wish.path[:-1]:
            inner = inner.setdefault(key, {})
        inner[wish.path[-1]] = [wish.value] if isinstance(wish, Entry) else wish.value
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _why(error: Exception) -> str:
    if isinstance(error, BrokenError):
        return f"it cannot be edited safely: {error}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, NotRegularError) or (
        isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENOTDIR)
    ):
        return "it is a link or no file, and nothing is written through links"
    return f"it cannot be read: {error}"
