"""Decide about the latest attempt of a task, after one more question."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.cli.command import PLACE, TASK, YES, argument, flag, one_of
from agentwatch.cli.shared import confirmed, is_on_terminal, passphrase, target_of
from agentwatch.composition import check_claims, desk_of, scanned
from agentwatch.config import Settings, load
from agentwatch.decisions import policy
from agentwatch.decisions.delivery import NOT_DELIVERED
from agentwatch.decisions.desk import operator_name, return_digest
from agentwatch.decisions.errors import DecisionError, NotAllowedError, ReturnChangedError
from agentwatch.decisions.face import OperatorDesk
from agentwatch.decisions.ledger import NAME as LEDGER
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import AlreadyDecidedError, Mitigation, Record
from agentwatch.delegation.decision import OF_ATTEMPTS
from agentwatch.delegation.task import State, Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.cli.decide_wish import Wish
    from agentwatch.composition import Load

ARGUMENTS: Final = (
    TASK,
    PLACE,
    *one_of(
        flag("--retry", "one more attempt, with an amended handoff"),
        argument("--escalate", "MODE", "hand it to another mode; `fitter` restores a line", offers="modes"),
        flag("--abort", "end it, with a final error report"),
        argument("--respond", "TEXT", "answer its blocker; again for the next one", action="append"),
        flag("--accept", "take its return as it is; needs --note"),
        required=True,
    ),
    argument(
        "--mitigation",
        "",
        "what is materially different in this retry",
        choices=("changed_inputs", "reduced_scope", "corrected_constraints"),
    ),
    argument("--note", "TEXT", "what you want to say to it; also into the handoff", default=""),
    argument("--handoff", "FILE", "your own handoff for the next attempt"),
    argument("--return-sha256", "HEX", "of the return that you looked at, or `none`; refused if it differs"),
    argument("--attempt", "N", "the one that you looked at; refused if it is another", type=int),
    YES,
)
EXIT_CODES: Final = (
    "exit codes: 0 recorded, 1 you said no, or the retry policy does not allow it, 6 decided before, and differently, 7"
    " the return is not the one you looked at, 2 wrong usage, or the key or the disk refused"
)
_CLAIMS_SUCCESS: Final = (State.COMPLETED, State.PARTIAL)
_LARGEST_HANDOFF: Final = 1024 * 1024


def run(options: Namespace) -> int:
    """Decide here or on a host. Raises UsageError and DecisionError."""
    digest = options.return_sha256
    if digest not in (None, "none") and (len(digest) != 64 or not set(digest) <= set("0123456789abcdef")):
        raise UsageError("--return-sha256 takes all 64 hex digits; `agentwatch tree --json` has them")
    settings = load()
    with target_of(options.path, settings) as (workspace, far):
        # Its models take a while to load.
        from agentwatch.cli.decide_wish import Wish

        wish = Wish(
            action=next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False)),
            mode=options.escalate,
            answers=tuple(options.respond or ()),
            mitigation=Mitigation(options.mitigation) if options.mitigation else None,
            note=options.note,
            handoff=None if options.handoff is None else _read_handoff(options.handoff),
        )
        look: Load
        if far is None:
            desk = desk_of(workspace, settings, passphrase())
            look = partial(scanned, workspace, settings, desk=desk, requests=True)
        else:
            monitor = far.scanned(workspace, settings, passphrase=passphrase())
            look = lambda **_: monitor  # noqa: E731  it was looked at once for all
        seen = (options.attempt, digest)
        return decide(look, options.task, wish, settings=settings, seen=seen, yes=options.yes)


def _read_handoff(path: str) -> tuple[str, str]:
    """The text of the operator's own file, and its name."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_HANDOFF + 1)
        if len(data) > _LARGEST_HANDOFF:
            raise UsageError(f"{path}: larger than {_LARGEST_HANDOFF:,} bytes, which no agent reads")
        return data.decode(), file.name
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give --handoff a file that can be read") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 ({error.reason}); save it as UTF-8") from error


def decide(
    look: Load, task_id: str, wish: Wish, *, settings: Settings, seen: tuple[int | None, str | None], yes: bool
) -> int:
    """Decide about the latest attempt of a task. Returns one of `ExitCode`.

    `seen` are the number of the attempt that the operator looked at and the sha256 of its return ("none" where there
    was none), None if they are not known. Raises DecisionError.
    """
    from agentwatch.cli.decide_wish import agrees, lines, params_of, plain_params

    monitor, task = _loaded(task_id, look)
    if not (yes or is_on_terminal()):
        raise UsageError("there is no terminal to ask on; say --yes, and --return-sha256 with what you looked at")
    if monitor.clerk is None:
        raise ValueError(monitor)
    desk, workspace = monitor.clerk.desk, monitor.workspace
    if (unreachable := desk.unreachable) is not None:
        raise DecisionError(f"not recorded: {unreachable}")
    subject = desk.subject(task)
    attempt, digest = seen
    if attempt not in (None, subject.attempt):
        now = f"it is at attempt {subject.attempt}"
        raise ReturnChangedError(f"not recorded: you looked at attempt {attempt}, and {now}")
    if digest not in (None, subject.return_sha256 or "none"):
        now = subject.return_sha256 or "none at all"
        raise ReturnChangedError(f"not recorded: the return has changed since you looked at it: it is {now} now")
    entry = desk.read().latest.get(subject.decision_id)
    if entry is not None and not entry.record.is_expired(datetime.now(UTC)):
        if not agrees(wish, entry.record):
            raise AlreadyDecidedError(entry.record)
        say(f"recorded before: {_by(entry.record)}; decision {subject.decision_id}")
        _look_around(desk)
        return ExitCode.DONE
    reason = policy.refusal(task, wish.action, plain_params(wish, task), wish.note)
    if reason is not None:
        raise NotAllowedError(f"not recorded: {wish.action} is not possible here: {reason}")
    warnings = list(policy.options(task, mitigation=wish.mitigation)[wish.action].warnings)
    failed = list(monitor.tree.failed_below(task))
    operator = operator_name()
    params = params_of(wish, task, subject, operator, monitor.text, failed=failed, beware=warnings)
    places = [f"{clean(str(desk.state / LEDGER))}  (the ledger, signed)"]
    if monitor.host:
        places = [f"the ledger of {clean(monitor.host)}, once it has checked your signature"]
    elif not settings.read_only:
        mirror = f"{clean(str(workspace))}/.agentwatch/decisions/{subject.decision_id}"
        places.append(f"{mirror}.json and .md  (for the agents)")
    for line in lines(task, subject, wish, params, warnings=warnings, places=places):
        say(line)
    if not yes and not confirmed("Record this decision?"):
        say("nothing is recorded")
        return ExitCode.NOT
    returned = _returned(monitor, settings, task, look)
    why_locked = desk.why_locked()
    if why_locked is not None and desk.keys.in_keyring:
        complain(clean(why_locked))
    _tell(desk.decide(subject, wish.action, params, returned=returned, note=wish.note))
    if not settings.read_only:
        _look_around(desk)
    return ExitCode.DONE


def _loaded(task_id: str, look: Load) -> tuple[Monitor, Task]:
    monitor = look(inspects=False)
    complain_of(monitor.health.problems)
    task = monitor.tree.tasks.get(task_id)
    has_fitter = task is not None and any(one.over for attempt in task.attempts for one in attempt.decisions)
    if task is not None and (task.own_state in _CLAIMS_SUCCESS or has_fitter):
        # Whether it may be retried, or has to be accepted, depends on whether what it or its fitter claims is true, and
        # that on when its handoff was given. A host has told it already.
        monitor = look(inspects=False, dates=True)
        tasks = monitor.tree.tasks
        if not monitor.host:
            fitters = (one.task_id for one in tasks.values() if one.packet and one.packet.restores == task_id)
            check_claims(monitor, [task_id, *fitters])
        task = tasks.get(task_id)
    if task is None:
        unseen = f"no task {quoted(task_id)} is seen in {clean(str(monitor.workspace))}"
        raise UsageError(f"{unseen}; `agentwatch pending` lists those that need you")
    return monitor, task


def _returned(monitor: Monitor, settings: Settings, task: Task, look: Load) -> Callable[[], str | None]:
    """How to look at the return once more, when the decision is recorded. What is on a host, that looks at itself."""
    returned = task.latest.returned if task.latest else None
    if monitor.host:
        return lambda: returned.digest if returned is not None else None

    def now() -> str | None:
        if returned is None:
            return None
        if not returned.stored:
            return return_digest(monitor.workspace, returned.path, settings.max_bytes)
        again = look(inspects=False).tree.tasks.get(task.task_id)
        returned_now = again.latest.returned if again and again.latest else None
        return returned_now.digest if returned_now else None

    return now


def _tell(decided: DecisionMade) -> None:
    record = decided.record
    if decided.fresh:
        say(f"recorded: decision {record.decision_id}")
    else:
        say(f"already decided, in the same way: {_by(record)}; decision {record.decision_id}")
    if decided.doubt is not None:
        complain(clean(decided.doubt))
    if decided.undelivered is not None:
        complain(clean(f"{NOT_DELIVERED}{decided.undelivered}"))
    else:
        say("delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read")


def _look_around(desk: OperatorDesk) -> None:
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
