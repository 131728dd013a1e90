"""What `init` would change in a workspace: each file as it is and as it would be. Reads, and writes nothing."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.agents.setup.programs import ByHand, Program
from agentwatch.agents.setup.splice import BrokenError, JsonEntry, Wish, added, removed
from agentwatch.disk import Directory, NotRegularError

BACKUP: Final = ".agentwatch.bak"
_LARGEST: Final = 4 * 1024 * 1024
_MODE: Final = 0o755
_BEGIN: Final = "<!-- agentwatch: begin -->"
_END: Final = "<!-- agentwatch: end -->"
"""Around what is ours in a Markdown file: nobody sees these when it is shown."""

_BLOCK: Final = re.compile(rf"{re.escape(_BEGIN)}.*?{re.escape(_END)}", re.DOTALL)
_WITH_GAP: Final = re.compile(rf"(?:\r?\n)*{_BLOCK.pattern}(?:\r?\n)?", re.DOTALL)


class Edit(NamedTuple):
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
    told = program.told
    steps = [_step(workspace, program.instructions, told, partial(_with_block, told), _without_block, remove=remove)]
    for file in program.files:
        path = next((one for one in file.paths if os.path.exists(workspace / one)), file.paths[-1])
        do, undo = partial(_edited, added, file.wishes), partial(_edited, removed, file.wishes)
        steps.append(_step(workspace, path, _shown(file.wishes), do, undo, remove=remove))
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


def _step(workspace: Path, path: str, lines: str, do: Edited, undo: Edited, *, remove: bool) -> Step:
    """The edit of one file, or `lines` for a person where it cannot be edited."""
    try:
        text, backup = _read(workspace, path), _read(workspace, path + BACKUP)
        return Edit(path, text, _undone(text, backup, do, undo) if remove else do(text or ""), backup)
    except (OSError, UnicodeDecodeError, BrokenError) as error:
        return ByHand(path, lines, _why(error))


def _edited(edit: Callable[[str, tuple[Wish, ...]], str], wishes: tuple[Wish, ...], text: str) -> str:
    return edit(text or "{}\n", wishes)


def _undone(text: str | None, backup: str | None, do: Edited, undo: Edited) -> str | None:
    """The text of before: the very bytes where nobody else has changed it since, else without what is ours."""
    if text is None:
        return None
    # What an older agentwatch had written is nothing of before.
    is_before = backup is not None and undo(backup) == backup
    if backup is not None and is_before and do(backup) == text:
        return backup
    if not is_before and do("") == text:
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
        inner[wish.path[-1]] = [wish.value] if isinstance(wish, JsonEntry) else wish.value
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _why(error: Exception) -> str:
    if isinstance(error, BrokenError):
        return f"it cannot be edited safely: {error}"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, NotRegularError) or getattr(error, "errno", None) in (errno.ELOOP, errno.ENOTDIR):
        return "it is a link or no file, and nothing is written through links"
    return f"it cannot be read: {error}"


def _with_block(block: str, text: str) -> str:
    """The text with the block: where it was before, else at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    new = newline.join((_BEGIN, *block.strip().split("\n"), _END))
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: new, text, count=1)
    if not text:
        return new + newline
    gap = newline if text.endswith("\n") else newline * 2
    return f"{text}{gap}{new}{newline}"


def _without_block(text: str) -> str:
    """The text without the block."""
    gap = _WITH_GAP.search(text)
    if gap is None:
        return text
    before, behind = text[: gap.start()], text[gap.end() :]
    newline = "\r\n" if "\r\n" in text else "\n"
    return before + (newline if before else "") + behind
