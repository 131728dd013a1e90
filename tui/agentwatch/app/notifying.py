"""Notifies an operator who looks elsewhere: by title, bell, and the notifications of the terminal or the desktop.

It rather stays quiet: a question is notified once, and only after it has been open for a while; several questions at
once make one notification; an operator who looks at the screen is not notified; nobody is reminded.
"""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from math import inf
from threading import Thread

from agentwatch.config import Settings
from agentwatch.delegation.task import Shown, Task
from agentwatch.monitor import Monitor
from agentwatch.shell import find_program, resolve_command
from agentwatch.text import clean
from agentwatch.view.words import in_line, name_of, plural, question_at

STANDS = 2.0  # seconds for which a question must be open before it is notified
PAUSE = 10.0  # seconds between two notifications, and after the last key if it is unknown which window has the focus
START = 60.0  # seconds after the start in which questions from before the start, though read late, are not notified
_PATIENCE = 8.0  # seconds that a command may take: less than `PAUSE`, so that commands never pile up

_NAMED = 3
_NAME_LENGTH = 40
_ASK_LENGTH = 120

# Replaces separators of terminal sequences, markup of desktops, and escapes of `notify-send`.
_HARMLESS = str.maketrans({";": ",", "<": "‹", ">": "›", "&": "＆", "\\": "∖"})


def plain(text: str, limit: int) -> str:
    """Return foreign text as one short line that is plain text in a terminal's sequence and for a desktop."""
    return clean(text, limit).translate(_HARMLESS)


def words(tasks: Sequence[Task], now: float) -> str:
    """Return the text of one notification for all these tasks, given the most important first."""
    # A question comes before a session that has only ended its turn.
    tasks = (asking := [one for one in tasks if one.shown is not Shown.IDLE]) or tasks
    if len(tasks) == 1:
        asked = plain(in_line(tasks[0], question_at(tasks[0], now)), _ASK_LENGTH)
        return f"{_name(tasks[0])} {f'needs you: {asked}' if asking else 'has ended its turn'}"
    names = ", ".join(map(_name, tasks[:_NAMED]))
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return f"{plural(len(tasks), 'task')} {'need you' if asking else 'have ended their turn'}: {names}{more}"


def _name(task: Task) -> str:
    host = f"{plain(task.host, _NAME_LENGTH)}: " if task.host else ""
    return f"{host}{plain(name_of(task), _NAME_LENGTH)}"


def notification_sequence(head: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that makes the terminal notify, "" if none works. `head` and `text` must be `plain`.

    There are two sequences; never send both, because several terminals know both and would notify twice.
    """
    if "TMUX" in environment:
        # tmux swallows both sequences and by default passes nothing through; only the bell gets through.
        return ""
    if environment.get("TERM_PROGRAM") == "iTerm.app" or environment.get("LC_TERMINAL") == "iTerm2":
        return f"\x1b]9;{head}: {text}\x1b\\"
    return f"\x1b]777;notify;{head};{text}\x1b\\"


def desktop_command(settings: Settings, environment: Mapping[str, str]) -> Callable[[str, str], list[str]] | None:
    """Return a function from heading and text to the command that notifies; None if there is none or none is wanted.

    By default there is one if this machine has a display, but not over SSH, where the operator may not see it.
    """
    if settings.notify_desktop is False:
        return None
    if settings.notify_command:
        return lambda head, text: [*settings.notify_command, f"{head}: {text}"]
    has_display = "SSH_CONNECTION" not in environment and not {"DISPLAY", "WAYLAND_DISPLAY"}.isdisjoint(environment)
    if settings.notify_desktop or (has_display and find_program("notify-send", environment.get("PATH"))):
        return lambda head, text: ["notify-send", "--app-name=agentwatch", "--", head, text]
    return None


class NotificationQueue:
    """Decides of which questions an operator who looks elsewhere is notified, and when. No I/O, no clock.

    `at` is in seconds of a monotonic clock; `started_at` is the start in epoch seconds, to compare with times of files.
    """

    def __init__(self, at: float, started_at: float):
        self._opened_at, self._started_at = at, started_at
        self._since: dict[str, float] = {}  # for each open question, when it was first seen
        self._told: set[str] = set()
        self._notified_at = -inf
        # None until the terminal says whether its window has the focus.
        self._focus: bool | None = None
        # An operator who has just started the program looks at the screen.
        self._acted_at = at

    def focus(self, *, here: bool) -> None:
        """Note that the terminal's window has got or lost the focus."""
        self._focus = here
        if not here:
            self._acted_at = -inf

    def act(self, at: float) -> None:
        """Note that the operator has pressed a key."""
        self._acted_at = at
        if self._focus is not None:
            self._focus = True

    def pop(self, at: float, tasks: Sequence[Task]) -> list[Task]:
        """Return those of the asking `tasks` of which the operator must be notified now, in one notification. Call it
        about once a second; each question is returned once."""
        since: dict[str, float] = {}
        new: dict[str, Task] = {}
        for task in tasks:
            asked_at = max((one.asked_at for one in task.requests if one.is_open), default=task.updated_at)
            is_old = at < self._opened_at + START and max(asked_at, task.updated_at) < self._started_at
            for ask in _asks_of(task):
                since[ask] = self._since.get(ask, at)
                if is_old and ask not in self._since:
                    self._told.add(ask)
                if ask not in self._told:
                    new[ask] = task
        self._since = since
        is_free = self._focus or at >= max(self._notified_at, self._acted_at) + PAUSE
        if not is_free or all(at < since[ask] + STANDS for ask in new):
            return []
        self._told |= new.keys()
        if self._focus:
            return []
        self._notified_at = at
        return list({task.task_id: task for task in new.values()}.values())


def _asks_of(task: Task) -> set[str]:
    """Return the keys of a task's open questions, so that each is notified once. They come from its requests; without
    requests from its dead process (one that lived on gets a new key), otherwise from its question."""
    asks = {one.request_id for one in task.requests if one.waits_for_operator}
    if not asks and task.gone and task.run:
        asks = {f"{task.run.session_id} {task.run.updated_at}"}
    if task.shown is Shown.IDLE:
        asks = asks or {f"{task.task_id} {task.ended_at}"}
    return asks or {f"{task.task_id} {task.attempt} {task.own_state} {None if task.contradicted else task.ask}"}


class Notifier:
    """Notifies the operator of one monitor. `write` sends a sequence to the terminal unchanged.

    `clock` gives epoch seconds, `steady` seconds of a monotonic clock.
    """

    def __init__(
        self,
        monitor: Monitor,
        write: Callable[[str], None],
        bell: Callable[[], None],
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
        environment: Mapping[str, str] = os.environ,
    ):
        self._monitor, self._settings, self._environment = monitor, monitor.settings, environment
        self._write, self._bell, self._clock, self._steady = write, bell, clock, steady
        self._command = desktop_command(self._settings, environment)
        self._name = plain(monitor.title.removesuffix("/"), _NAME_LENGTH)
        self._title = ""
        self.queue = NotificationQueue(steady(), clock())

    def notify(self) -> None:
        """Show the number of asking tasks in the title, and notify of what is due; call it about once a second. It
        notifies by the desktop, else by the terminal, and by both only if the settings say so."""
        tree, settings = self._monitor.tree, self._settings
        asking = f"({tree.totals.needs_operator}) " if tree.totals.needs_operator else ""
        title = f"\x1b]0;{asking}agentwatch: {self._name}\x1b\\"
        if settings.notify_title and title != self._title:
            self._title = title
            self._write(title)
        told = list(tree.asking())
        if settings.notify_turns and tree.totals.shown[Shown.IDLE]:
            told += [one for one in tree.tasks.values() if one.shown is Shown.IDLE and not one.needs_operator]
        if not (tasks := self.queue.pop(self._steady(), told)):
            return
        if settings.notify_bell:
            self._bell()
        head, text = f"agentwatch {self._name}", words(tasks, self._clock())
        if settings.notify_terminal is not False and (self._command is None or settings.notify_terminal):
            self._write(notification_sequence(head, text, self._environment))
        if self._command is not None:
            # A thread and not a Textual worker, because leaving the program would wait for a worker.
            command = self._command(head, text)
            Thread(target=self._run, args=(command,), name="agentwatch-notify", daemon=True).start()

    def _run(self, command: Sequence[str]) -> None:
        """Run a notification command; blocks. If it fails, report that once and use the terminal from now on."""
        quiet = subprocess.DEVNULL
        try:
            # Without a shell, an agent's text is only one argument; without a terminal, nothing writes on the screen.
            subprocess.run(  # noqa: S603
                resolve_command(command), stdin=quiet, stdout=quiet, stderr=quiet,
                start_new_session=True, timeout=_PATIENCE, check=True,
            )  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            if self._command is not None:
                self._command = None
                why = f"{clean(command[0], 80)} failed ({clean(str(error), 160)})"
                self._monitor.complaints.append(f"No desktop notifications from now on: {why}")
