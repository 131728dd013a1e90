"""Tells an operator who looks elsewhere: by title, bell, and the notifications of the terminal or the desktop.

Quiet wins: an ask is told once, and only after it has stood for a while; several that come together are one
notification; where the operator is known to look at the screen, the screen is enough; nobody is reminded.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from agentwatch.app.untold import Untold, alarm_keys
from agentwatch.config import Settings
from agentwatch.delegation.task import Task
from agentwatch.shell import find_program, resolve_command
from agentwatch.state import claim_alarms, state_directory
from agentwatch.text import clean
from agentwatch.view.words import in_line, name_of, plural, program_of, question_at

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_PATIENCE: Final = 8.0
"""Seconds that a command may take: less than `PAUSE`, so that they never pile up."""

_NAMED: Final = 3
_NAME_LENGTH: Final = 40
_ASK_LENGTH: Final = 120

_HARMLESS: Final = str.maketrans({";": ",", "<": "‹", ">": "›", "&": "＆", "\\": "∖"})
"""What separates fields of the terminal's sequences, is markup to desktops, or an escape to `notify-send`."""


def plain(text: str, limit: int) -> str:
    """Foreign text as one short line that neither a terminal's sequence nor a desktop reads as anything but text."""
    return clean(text, limit).translate(_HARMLESS)


def window_title(workspace: str, asking: int) -> str:
    """`(2) agentwatch: shop`; without the number where nobody asks."""
    title = f"agentwatch: {plain(workspace, _NAME_LENGTH)}"
    return f"({asking}) {title}" if asking else title


def heading(workspace: str) -> str:
    """What stands over a notification."""
    return f"agentwatch {plain(workspace, _NAME_LENGTH)}"


def words(tasks: Sequence[Task], now: float) -> str:
    """One notification for all of these tasks, the most important first."""
    if len(tasks) == 1:
        asked = plain(in_line(tasks[0], question_at(tasks[0], now)), _ASK_LENGTH)
        return f"{_name(tasks[0])}{_program(tasks[0])} needs you: {asked}"
    names = ", ".join(map(_name, tasks[:_NAMED]))
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return f"{plural(len(tasks), 'task')} need you: {names}{more}"


def _name(task: Task) -> str:
    host = f"{plain(task.host, _NAME_LENGTH)}: " if task.host else ""
    return f"{host}{plain(name_of(task), _NAME_LENGTH)}"


def _program(task: Task) -> str:
    asks = task.request or task.run
    return f" ({plain(program_of(asks.source), _NAME_LENGTH)})" if asks is not None else ""


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
    settings: Settings, environment: Mapping[str, str], which: Callable[[str], str | None] = find_program
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
            resolve_command(command), stdin=quiet, stdout=quiet, stderr=quiet,
            start_new_session=True, timeout=_PATIENCE, check=False,
        ).returncode  # fmt: skip
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
        self._clock = clock
        self._steady = steady
        self._environment = os.environ if environment is None else environment
        self._command = desktop_command(self._settings, self._environment)
        self._untold = Untold(steady(), clock())
        self._title = ""

    @property
    def _name(self) -> str:
        return self._monitor.title.removesuffix("/")

    def focus(self, *, here: bool) -> None:
        """The terminal says whether its window has the focus."""
        self._untold.focus(here=here)

    def act(self) -> None:
        """The operator has pressed a key."""
        self._untold.act(self._steady())

    @property
    def is_waiting(self) -> bool:
        """Whether there is something to tell, sooner or later."""
        return self._untold.is_waiting

    def see(self, changed: Iterable[str]) -> None:
        """Tasks have changed: the title says at once how many ask, all else comes with `tell`."""
        tree, at = self._monitor.tree, self._steady()
        for task_id in changed:
            self._untold.see(task_id, tree.tasks.get(task_id), at)
        title = window_title(self._name, tree.totals.needs_operator)
        if self._settings.notify_title and title != self._title:
            self._title = title
            self._write(title_sequence(title))

    def tell(self) -> None:
        """Tell what is to be told by now; to be called about once a second while something `is_waiting`."""
        at = self._steady()
        if not self._untold.is_due(at):
            return
        tasks = self._untold.take(at, self._monitor.tree.asking())
        on_screen, self._untold.on_screen = self._untold.on_screen, []
        if self._settings.read_only or not any(task.alarms for task in (*tasks, *on_screen)):
            self._announce(tasks)
        else:
            self._claim(tasks, on_screen)

    def _claim(self, tasks: list[Task], on_screen: list[Task]) -> None:
        """Tell of these tasks, of alarms only where nobody has told of them before."""
        loop = asyncio.get_running_loop()
        keys = [(task, *self._keys(task)) for task in (*tasks, *on_screen)]

        def claim_all() -> None:
            by_workspace: dict[Path, set[str]] = {}
            for _, workspace, some in keys:
                by_workspace.setdefault(workspace, set()).update(some)
            states = {state_directory(workspace): some for workspace, some in by_workspace.items()}
            new = {key for state, some in states.items() for key in claim_alarms(state, some)}
            told = [task for task, _, some in keys[: len(tasks)] if not some or not new.isdisjoint(some)]
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._announce, told)

        Thread(target=claim_all, name="agentwatch-told", daemon=True).start()

    def _keys(self, task: Task) -> tuple[Path, set[str]]:
        """The alarms of a task, and the workspace that it belongs to."""
        monitor, task_id = self._monitor.of(task.task_id)
        return monitor.workspace, alarm_keys(task, task_id)

    def _announce(self, tasks: list[Task]) -> None:
        if tasks:
            if self._settings.notify_bell:
                self._bell()
            self._show(heading(self._name), words(tasks, self._clock()))

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
