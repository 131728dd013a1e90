"""The file that the operator's commands are about, and the operator's editor on it."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from textual.app import App, SuspendNotSupported
from textual.screen import Screen

from agentwatch.evidence.git import TooSlowError, run
from agentwatch.shell import find_program, resolve_command
from agentwatch.sources.files.walk import to_name
from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_GIT_SECONDS: Final = 2.0


async def file_at_hand(screen: Screen[object], monitor: Monitor, *, names: bool = False) -> Path | str:
    """The file that is inspected; else the return of the selected task's latest attempt, else its handoff.

    If there is none, a sentence that says why; so it is with one on another machine, unless what `names` it is enough.
    The disk is asked in a thread.
    """
    inspected, task_id = getattr(screen, "inspected", None), getattr(screen, "task_id", None)
    task = monitor.tree.tasks.get(task_id) if isinstance(task_id, str) else None
    versions = (attempt.returned or attempt.handoff for attempt in reversed(task.attempts if task else []))
    version = next(filter(None, versions), None)
    if isinstance(inspected, Path) and await asyncio.to_thread(_is_file, inspected):
        return inspected
    if task is None:
        return "No task is selected."
    if task.workspace:
        return "This row is a workspace: no file speaks of it."
    if version is None:
        return "No file speaks of this task: it is only named in another's delegation path."
    own = monitor.of(task.task_id)[0]
    path = own.workspace / to_name(version.path)
    if own.host and not version.stored:
        where = f"{clean(version.path, 200)} is on {clean(own.host, 60)}"
        return path if names else f"{where}: it cannot be opened from here; the Raw tab has its text."
    if await asyncio.to_thread(_is_file, path):
        return path
    if version.stored:
        return "A session store keeps it, not a file of its own: the Raw tab has its text."
    return f"{clean(version.path, 200)} is no longer there; the Raw tab has its last content."


def _is_file(path: Path) -> bool:
    """Whether it can be opened by name; a name that the system refuses names no file."""
    try:
        return path.is_file()
    except OSError:
        return False


def editor_command(configured: str | None, environment: Mapping[str, str] | None = None) -> list[str]:
    """The words of the editor's command; empty if there is none on this machine.

    `$VISUAL`, `$EDITOR`, the configured one, git's, `vi`. Not `$GIT_EDITOR`: scripts set it so that git asks nothing.
    Raises ValueError if the command's quotation marks do not match.
    """
    environment = os.environ if environment is None else environment
    words = environment.get("VISUAL") or environment.get("EDITOR") or configured or _of_git(environment)
    if not words and find_program("vi", environment.get("PATH")) is not None:
        words = "vi"
    return shlex.split(words)


def _of_git(environment: Mapping[str, str]) -> str:
    """git's `core.editor`, as this user or this machine has it; empty if there is none.

    A workspace has no say in what is run here: git is asked for the two files that no agent's repository holds.
    """
    for scope in ("--global", "--system"):
        with suppress(OSError, TooSlowError):
            words = ["git", "config", scope, "--includes", "--get", "core.editor"]
            command = resolve_command(words, environment.get("PATH"))
            output = run(command, directory="/", seconds=_GIT_SECONDS, max_bytes=4_096, environment=environment)
            if output.code == 0 and (editor := output.text.decode(errors="replace").strip()):
                return editor
    return ""


def edit(command: list[str], path: Path) -> int:
    """Run the editor on a file and wait for it; its exit code. Raises OSError if it cannot be started."""
    # No shell: neither the file's name nor anything in it is ever a command. An absolute path is never an option.
    return subprocess.run([*resolve_command(command), str(path.absolute())], check=False).returncode  # noqa: S603


def hand_over(app: App[Any], configured: str | None, path: Path) -> str | None:
    """Give the terminal to the operator's editor on a file, until it ends.

    Returns what went wrong, a sentence; None if nothing did.
    """
    try:
        command = editor_command(configured)
    except ValueError as error:
        return f"The editor's command cannot be understood ({error}): correct it where it is set, or set $VISUAL."
    if not command:
        return "No editor is set, and there is no vi: set $VISUAL or $EDITOR, or `editor` in agentwatch's config.toml."
    return lend(app, command, path, "Set $VISUAL or $EDITOR.")


def lend(app: App[Any], command: list[str], path: Path, advice: str) -> str | None:
    """Give the terminal to a command on a file, until it ends.

    Returns what went wrong, a sentence, with advice where it cannot be started; None if nothing did.
    """
    name = clean(command[0], 80)
    try:
        with app.suspend():
            code = edit(command, path)
    except SuspendNotSupported:
        return f"The terminal cannot be handed over to {name} from here."
    except OSError as error:
        return f"{name} could not be started: {error.strerror}. {advice}"
    return f"{name} ended with exit code {code}." if code else None
