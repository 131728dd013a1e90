"""Notifies an operator who does not look at the screen: by title, bell, and a message of the terminal or desktop.

The operator is notified once of each question, after the question has been open for a while. Questions that come
together share one notification. An operator who looks at the screen gets no notification.
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
from agentwatch.view.words import ask_line, name_of, plural, question_at

MIN_OPEN = 2.0  # seconds for which a question must be open before the operator is notified
# The fewest seconds between two notifications. If the focus is not known, also from a key press to a notification.
PAUSE = 10.0
START = 60.0  # seconds after the start in which questions from before the start cause no notification
_PATIENCE = 8.0  # the most seconds of a notification command: less than `PAUSE`, so that two commands never overlap

_MAX_NAMED = 3
_NAME_LENGTH = 40
_ASK_LENGTH = 120

# Replacements for characters that have a special meaning for terminals, desktops or `notify-send`.
_REPLACEMENTS = str.maketrans({";": ",", "<": "‹", ">": "›", "&": "＆", "\\": "∖"})


def plain_line(text: str, limit: int) -> str:
    """Return untrusted text as one short line without characters that a terminal or a desktop reads as markup."""
    return clean(text, limit).translate(_REPLACEMENTS)


def notification_words(tasks: Sequence[Task], now: float) -> str:
    """Return the text of one notification about `tasks`. The first of `tasks` must be the most important task."""
    # If any task needs the operator, leave out sessions that have only ended their turn.
    tasks = (asking := [one for one in tasks if one.shown is not Shown.IDLE]) or tasks
    if len(tasks) == 1:
        asked = plain_line(ask_line(tasks[0], question_at(tasks[0], now)), _ASK_LENGTH)
        return f"{_name_with_host(tasks[0])} {f'needs you: {asked}' if asking else 'has ended its turn'}"
    names = ", ".join(map(_name_with_host, tasks[:_MAX_NAMED]))
    more = f" and {len(tasks) - _MAX_NAMED} more" if len(tasks) > _MAX_NAMED else ""
    return f"{plural(len(tasks), 'task')} {'need you' if asking else 'have ended their turn'}: {names}{more}"


def _name_with_host(task: Task) -> str:
    host = f"{plain_line(task.host, _NAME_LENGTH)}: " if task.host else ""
    return f"{host}{plain_line(name_of(task), _NAME_LENGTH)}"


def notification_sequence(head: str, text: str, environment: Mapping[str, str]) -> str:
    """Return the control sequence that makes this terminal show a notification, or "" in tmux. `head` and `text` must
    come from `plain_line`. Several terminals understand both OSC 9 and OSC 777, so only one of the two is sent."""
    if "TMUX" in environment:
        # By default, tmux passes neither sequence on to the terminal.
        return ""
    if environment.get("TERM_PROGRAM") == "iTerm.app" or environment.get("LC_TERMINAL") == "iTerm2":
        return f"\x1b]9;{head}: {text}\x1b\\"
    return f"\x1b]777;notify;{head};{text}\x1b\\"


def desktop_command(settings: Settings, environment: Mapping[str, str]) -> Callable[[str, str], list[str]] | None:
    """Return a function that makes the command of a desktop notification from a heading and a text. Return None if
    the settings forbid desktop notifications. Without a setting, also return None if no desktop was found."""
    if settings.notify_desktop is False:
        return None
    if settings.notify_command:
        return lambda head, text: [*settings.notify_command, f"{head}: {text}"]
    has_display = "SSH_CONNECTION" not in environment and not {"DISPLAY", "WAYLAND_DISPLAY"}.isdisjoint(environment)
    if settings.notify_desktop or (has_display and find_program("notify-send", environment.get("PATH"))):
        return lambda head, text: ["notify-send", "--app-name=agentwatch", "--", head, text]
    return None


class NotificationQueue:
    """Decides which questions need a notification now. It does no I/O, and callers pass the present time.

    `at` is the present time on a monotonic clock. `started_at` is the start of the program in epoch seconds.
    """

    def __init__(self, at: float, started_at: float):
        self._opened_at, self._started_at = at, started_at
        self._since: dict[str, float] = {}  # when each question was first seen, by question key
        self._handled: set[str] = set()  # the keys of questions that need no notification any more
        self._notified_at = -inf
        # None until the terminal says whether its window has the focus.
        self._focus: bool | None = None
        # The start counts as a key press, because the operator then looks at the screen.
        self._acted_at = at

    def set_focus(self, *, here: bool) -> None:
        """Record whether the terminal's window has the focus (`here`)."""
        self._focus = here
        if not here:
            self._acted_at = -inf

    def record_key(self, at: float) -> None:
        """Record that the operator has pressed a key at this time."""
        self._acted_at = at
        if self._focus is not None:
            self._focus = True

    def take_due(self, at: float, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks that need a notification now, once for each question. `tasks` are all tasks that have a
        question. Call this about once a second."""
        since: dict[str, float] = {}
        new: dict[str, Task] = {}
        for task in tasks:
            asked_at = max((one.asked_at for one in task.requests if one.is_open), default=task.updated_at)
            is_old = at < self._opened_at + START and max(asked_at, task.updated_at) < self._started_at
            for key in _question_keys(task):
                since[key] = self._since.get(key, at)
                if is_old and key not in self._since:
                    self._handled.add(key)
                if key not in self._handled:
                    new[key] = task
        self._since = since
        is_free = self._focus or at >= max(self._notified_at, self._acted_at) + PAUSE
        if not is_free or all(at < since[key] + MIN_OPEN for key in new):
            return []
        self._handled |= new.keys()
        if self._focus:
            return []
        self._notified_at = at
        return list({task.task_id: task for task in new.values()}.values())


def _question_keys(task: Task) -> set[str]:
    """Return a key for each open question of a task. The same question always has the same key."""
    keys = {one.request_id for one in task.requests if one.waits_for_operator}
    if not keys and task.gone and task.run:
        keys = {f"{task.run.session_id} {task.run.updated_at}"}
    if task.shown is Shown.IDLE:
        keys = keys or {f"{task.task_id} {task.ended_at}"}
    return keys or {f"{task.task_id} {task.attempt} {task.own_state} {None if task.contradicted else task.ask}"}


class Notifier:
    """Notifies the operator of questions in the tasks of one monitor.

    `write` sends a control sequence to the terminal. `clock` gives epoch seconds. `steady` reads a monotonic clock.
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
        self._workspace_name = plain_line(monitor.title.removesuffix("/"), _NAME_LENGTH)
        self._title = ""
        self.queue = NotificationQueue(steady(), clock())

    def notify(self) -> None:
        """Update the terminal's title, and notify the operator if a question needs it. Call this about once a second.
        A notification goes to the desktop if possible, and otherwise to the terminal. The settings can ask for both."""
        tree, settings = self._monitor.tree, self._settings
        asking = f"({tree.totals.needs_operator}) " if tree.totals.needs_operator else ""
        title = f"\x1b]0;{asking}agentwatch: {self._workspace_name}\x1b\\"
        if settings.notify_title and title != self._title:
            self._title = title
            self._write(title)
        notifiable = list(tree.asking_tasks())
        if settings.notify_turns and tree.totals.shown[Shown.IDLE]:
            notifiable += [one for one in tree.tasks.values() if one.shown is Shown.IDLE and not one.needs_operator]
        if not (tasks := self.queue.take_due(self._steady(), notifiable)):
            return
        if settings.notify_bell:
            self._bell()
        head, text = f"agentwatch {self._workspace_name}", notification_words(tasks, self._clock())
        if settings.notify_terminal is not False and (self._command is None or settings.notify_terminal):
            self._write(notification_sequence(head, text, self._environment))
        if self._command is not None:
            # Use a thread, because the program would wait for a Textual worker before it ends.
            command = self._command(head, text)
            Thread(target=self._run_command, args=(command,), name="agentwatch-notify", daemon=True).start()

    def _run_command(self, command: Sequence[str]) -> None:
        """Run a notification command and wait. If it fails, report this, and notify in the terminal from now on."""
        quiet = subprocess.DEVNULL
        try:
            # There is no shell, so untrusted text is only an argument. The command has no terminal to write to.
            subprocess.run(  # noqa: S603
                resolve_command(command), stdin=quiet, stdout=quiet, stderr=quiet,
                start_new_session=True, timeout=_PATIENCE, check=True,
            )  # fmt: skip
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            if self._command is not None:
                self._command = None
                why = f"{clean(command[0], 80)} failed ({clean(str(error), 160)})"
                self._monitor.complaints.append(f"No desktop notifications from now on: {why}")
