"""`agentwatch decide`: shows the operator what would be recorded, asks, records it and says what is true then."""

from __future__ import annotations

import sys
import termios
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from getpass import getpass
from pathlib import Path

from agentwatch import exit_codes
from agentwatch.commands.decide_wish import Wish, agrees, lines, params_of, plain_params
from agentwatch.composition import Load, desk_of
from agentwatch.config import Settings
from agentwatch.decisions import policy
from agentwatch.decisions.desk import Decided, Desk, operator_name, return_digest
from agentwatch.decisions.errors import DecisionError, NotAllowedError, ReturnChangedError
from agentwatch.decisions.record import AlreadyDecidedError, Record, Subject
from agentwatch.delegation.task import State, Task, Version
from agentwatch.errors import UsageError
from agentwatch.history.store import History
from agentwatch.monitor import Monitor
from agentwatch.sources.health import complain_of
from agentwatch.text import clean, complain, quoted, say

_CLAIMS_SUCCESS = (State.COMPLETED, State.PARTIAL)
_ASKS = "Passphrase of the key that signs decisions: "


def decide(
    workspace: Path,
    task_id: str,
    wish: Wish,
    *,
    settings: Settings,
    load: Load,
    seen: tuple[int | None, str | None],
    yes: bool,
) -> int:
    """Decide about the latest attempt of a task. Returns one of `exit_codes`.

    `seen` are the number of the attempt that the operator looked at and the sha256 of its return ("none" where there
    was none), None if they are not known. Raises DecisionError.
    """
    if not yes and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal to ask on; say --yes, and --return-sha256 with what you looked at")
    desk = desk_of(workspace, settings, partial(getpass, _ASKS) if sys.stdin.isatty() else None)
    look = partial(load, workspace, settings, desk=desk)
    monitor, task = _loaded(task_id, look)
    subject = desk.subject(task)
    attempt, digest = seen
    if attempt not in (None, subject.attempt):
        raise ReturnChangedError(
            f"not recorded: you looked at attempt {attempt}, and it is at attempt {subject.attempt}"
        )
    if digest not in (None, subject.return_sha256 or "none"):
        now = subject.return_sha256 or "none at all"
        raise ReturnChangedError(f"not recorded: the return has changed since you looked at it: it is {now} now")
    existing = _held(desk, subject)
    if existing is not None:
        if not agrees(wish, existing):
            raise AlreadyDecidedError(existing)
        say(f"recorded before: {_by(existing)}; decision {existing.decision_id}")
        _look_around(desk)
        return exit_codes.DONE
    reason = policy.refusal(task, wish.action, plain_params(wish, task), wish.note)
    if reason is not None:
        raise NotAllowedError(f"not recorded: {wish.action} is not possible here: {reason}")
    warnings = list(policy.options(task, mitigation=wish.mitigation)[wish.action].warnings)
    failed = list(monitor.tree.failed_below(task))
    params = params_of(wish, task, subject, operator_name(), _text_of(monitor), failed=failed, beware=warnings)
    places = [f"{clean(str(desk.ledger.directory))}  (the ledger, signed)"]
    if not settings.read_only:
        mirror = f"{clean(str(workspace))}/.agentwatch/decisions/{subject.decision_id}"
        places.append(f"{mirror}.json and .md  (for the agents)")
    for line in lines(task, subject, wish, params, warnings=warnings, places=places):
        say(line)
    if not yes and not _confirmed():
        say("nothing is recorded")
        return exit_codes.NOT
    returned = _returned(workspace, settings, task, look)
    why_locked = desk.why_locked()
    if why_locked is not None and desk.keys.in_keyring:
        complain(clean(why_locked))
    _tell(desk.decide(subject, wish.action, params, returned=returned, note=wish.note))
    if not settings.read_only:
        _look_around(desk)
    return exit_codes.DONE


def _confirmed() -> bool:
    """Ask on the terminal. Only `y` or `yes` is a yes, and nothing that was typed before the question."""
    # First this, as passphrases are asked for: after the question an answer could be thrown away.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write("\nRecord this decision? [y/N] ")
    sys.stdout.flush()
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        say("")
    return typed.strip().casefold() in ("y", "yes")


def _loaded(task_id: str, look: Callable[..., Monitor]) -> tuple[Monitor, Task]:
    monitor = look(inspects=False)
    complain_of(monitor.health.problems)
    task = _task(monitor, task_id)
    has_fitter = any(one.over for attempt in task.attempts for one in attempt.decisions)
    if task.own_state in _CLAIMS_SUCCESS or has_fitter:
        # Whether it may be retried, or has to be accepted, depends on whether what it or its fitter claims is true.
        monitor = look(inspects=True)
        task = _task(monitor, task_id)
    return monitor, task


def _task(monitor: Monitor, task_id: str) -> Task:
    task = monitor.tree.tasks.get(task_id)
    if task is None:
        where = clean(str(monitor.workspace))
        raise UsageError(
            f"no task {quoted(task_id)} is seen in {where}; `agentwatch pending` lists those that need you"
        )
    return task


def _held(desk: Desk, subject: Subject) -> Record | None:
    """The decision about this attempt that holds."""
    entry = desk.read().find(subject.decision_id)
    return None if entry is None or entry.record.is_expired(datetime.now(UTC)) else entry.record


def _returned(
    workspace: Path, settings: Settings, task: Task, look: Callable[..., Monitor]
) -> Callable[[], str | None]:
    """How to look at the return once more, when the decision is recorded."""
    returned = task.latest.returned if task.latest else None

    def now() -> str | None:
        if returned is None:
            return None
        if not returned.stored:
            return return_digest(workspace, returned.path, settings.max_bytes)
        again = look(inspects=False).tree.tasks.get(task.task_id)
        returned_now = again.latest.returned if again and again.latest else None
        return returned_now.digest if returned_now else None

    return now


def _tell(decided: Decided) -> None:
    record = decided.record
    if decided.fresh:
        say(f"recorded: decision {record.decision_id}")
    else:
        say(f"already decided, in the same way: {_by(record)}; decision {record.decision_id}")
    if decided.doubt is not None:
        complain(clean(decided.doubt))
    if decided.waits is not None:
        complain(clean(decided.waits))
    else:
        say("delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read")


def _look_around(desk: Desk) -> None:
    """Deliver what waits from before, and say what is in the mirror that nobody decided."""
    try:
        mirror = desk.mirror()
    except DecisionError as error:
        complain(clean(str(error)))
        return
    for forgery in mirror.foreign:
        complain(f"not yours: {clean(forgery.path)}: {clean(forgery.why)}")


def _by(record: Record) -> str:
    return f"{clean(record.operator, 60)} said {record.action} at {record.created_at}"


def _text_of(monitor: Monitor) -> Callable[[Version], str | None]:
    """Gives the text that a version had, from the history where the file is not that any more."""

    def text(version: Version) -> str | None:
        now = monitor.content(version)
        history = History.open_read_only(monitor.workspace) if now is None else None
        if history is None:
            return now
        with closing(history):
            return history.text(version.digest)

    return text
