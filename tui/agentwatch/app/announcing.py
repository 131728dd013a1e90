"""Carries notifications out: the window's title, the bell, the terminal's own notifications, the desktop's."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

from agentwatch.app.notifying import Untold, heading, window_title, words
from agentwatch.config import Settings
from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

KEEP_TITLE: Final = "\x1b[22;0t"
"""The terminal puts its title on a stack, if it has one."""

GIVE_TITLE_BACK: Final = "\x1b]0;\x1b\\\x1b[23;0t"
"""No title, and then the one on the stack: without a stack, many terminals show their own instead of none."""

_PATIENCE: Final = 8.0
"""Seconds that a command may take: less than the pause between two notifications, so that they never pile up."""


def title_sequence(title: str) -> str:
    """Name window and tab. The title holds no control character."""
    return f"\x1b]0;{title}\x1b\\"


def notification_sequence(head: str, text: str, environment: Mapping[str, str]) -> str:
    """Ask the terminal for a notification; empty if it cannot hear it. Neither text holds control characters or `;`.

    Never both of the sequences there are: several terminals know both and would notify twice.
    """
    if "TMUX" in environment:
        # It swallows both, and by default passes nothing through. The bell it hands on.
        return ""
    if environment.get("TERM_PROGRAM") == "iTerm.app" or environment.get("LC_TERMINAL") == "iTerm2":
        return f"\x1b]9;{head}: {text}\x1b\\"
    return f"\x1b]777;notify;{head};{text}\x1b\\"


def desktop_command(
    settings: Settings, environment: Mapping[str, str], which: Callable[[str], str | None] = shutil.which
) -> Callable[[str, str], list[str]] | None:
    """The command that notifies, of heading and text; None if there is none or none is wanted.

    By default there is one where a display is that the operator sees. Over SSH, only the terminal is sure to be one.
    """
    if settings.notify_desktop is False:
        return None
    if settings.notify_command:
        return lambda head, text: [*settings.notify_command, f"{head}: {text}"]
    has_display = bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))
    if settings.notify_desktop or (has_display and "SSH_CONNECTION" not in environment and which("notify-send")):
        return lambda head, text: ["notify-send", "--app-name=agentwatch", "--", head, text]
    return None


def run(command: Sequence[str]) -> str | None:
    """Run a command and wait for it, at most `_PATIENCE` seconds. Returns what went wrong, None if nothing did."""
    quiet = subprocess.DEVNULL
    name = clean(command[0], 80)
    try:
        # No shell, no terminal: a text of an agent is one argument and nothing else, and nothing writes on the screen.
        code = subprocess.run(  # noqa: S603
            command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, timeout=_PATIENCE, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return f"{name} took longer than {_PATIENCE:g} s"
    except (OSError, ValueError) as error:
        return f"{name} could not be started ({clean(str(error), 120)})"
    return f"{name} ended with exit code {code}" if code else None


class Announcer:
    """Tells the operator of one monitor. `write` takes what goes to the terminal as it is.

    `clock` gives seconds since the epoch, `steady` those of a clock that nobody sets. Everything but the command runs
    on the event loop.
    """

    def __init__(
        self,
        monitor: Monitor,
        write: Callable[[str], None],
        bell: Callable[[], None],
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._monitor = monitor
        self._settings = monitor.settings
        self._write = write
        self._bell = bell
        self._steady = steady
        self._environment = os.environ if environment is None else environment
        self._command = desktop_command(self._settings, self._environment)
        self._workspace = monitor.workspace.name or str(monitor.workspace)
        self._untold = Untold(steady(), clock())
        self._title = ""

    def focus(self, *, here: bool) -> None:
        """The terminal says whether its window has the focus."""
        self._untold.focus(here=here)

    def act(self) -> None:
        """The operator has pressed a key."""
        self._untold.act(self._steady())

    def see(self, changed: Iterable[str]) -> None:
        """Tasks have changed: the title says at once how many ask, all else comes with `tell`."""
        tree, at = self._monitor.tree, self._steady()
        for task_id in changed:
            self._untold.see(task_id, tree.tasks.get(task_id), at)
        title = window_title(self._workspace, tree.totals.needs_operator)
        if self._settings.notify_title and title != self._title:
            self._title = title
            self._write(title_sequence(title))

    def tell(self) -> None:
        """Tell what is to be told by now; to be called about once a second."""
        at = self._steady()
        if not self._untold.is_due(at):
            return
        tasks = self._untold.take(at, self._monitor.tree.asking())
        if tasks:
            if self._settings.notify_bell:
                self._bell()
            self._show(heading(self._workspace), words(tasks))

    def _show(self, head: str, text: str) -> None:
        """By one route, unless the settings ask for both: the terminal's where the desktop has none."""
        if self._command is None or self._settings.notify_terminal:
            self._ask_terminal(head, text)
        if self._command is not None:
            loop = asyncio.get_running_loop()
            command = self._command(head, text)

            def notify() -> None:
                trouble = run(command)
                # The loop is closed where the operator has left meanwhile.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(self._note, trouble, head, text)

            # Not a worker: leaving the program waits for those.
            Thread(target=notify, name="agentwatch-notify", daemon=True).start()

    def _ask_terminal(self, head: str, text: str) -> None:
        if self._settings.notify_terminal is not False:
            self._write(notification_sequence(head, text, self._environment))

    def _note(self, trouble: str | None, head: str, text: str) -> None:
        """A command has ended. One that fails is told once, and not tried again: the terminal takes its place."""
        if trouble is not None and self._command is not None:
            self._command = None
            self._monitor.complaints.append(f"No desktop notifications from now on: {trouble}")
            if not self._settings.notify_terminal:
                self._ask_terminal(head, text)
