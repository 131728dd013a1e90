"""The command that decides about a task."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from agentwatch.cli.command import PLACE, TASK, YES, Argument, argument, command, flag, one_of
from agentwatch.cli.shared import (
    barred,
    confirmed,
    deciding_in,
    desk_in,
    fact_lines,
    refuse_placeholder,
    refuse_uneven,
    say_recorded,
    task_in,
)
from agentwatch.composition import check_claims
from agentwatch.decisions import policy
from agentwatch.decisions.errors import DecisionError, NotAllowedError, ReturnChangedError
from agentwatch.decisions.form import (
    AmendError,
    fact,
    facts,
    final_report,
    handoff_problems,
    next_handoff,
    words_of_child,
)
from agentwatch.decisions.record import AlreadyDecidedError, Answer, Mitigation, Params, Record, Subject
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action
from agentwatch.delegation.task import Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.text import clean, complain, quoted, say


def _option(action: Action) -> Argument:
    metavar, text = SPECS[action].option
    if not metavar:
        return flag(f"--{action}", text)
    return argument(f"--{action}", metavar, text, action="append" if "answers" in SPECS[action].takes else "store")


@command(
    TASK,
    PLACE,
    *one_of(*map(_option, OF_ATTEMPTS), required=True),
    argument("--mitigation", None, "what is materially different in this retry", choices=[*map(str, Mitigation)]),
    argument("--note", "TEXT", "what you want to say to it; also into the handoff", default=""),
    argument("--handoff", "FILE", "your own handoff for the next attempt"),
    argument("--return-sha256", "HEX", "of the return that you looked at, or `none`; refused if it differs"),
    argument("--attempt", "N", "the one that you looked at; refused if it is another", type=int),
    YES,
    exit_codes="exit codes: 0 recorded, 1 you said no, or the retry policy does not allow it, 6 decided before, and"
    " differently, 7 the return is not the one you looked at, 2 wrong usage, or the key or the disk refused",
)
def decide(options: Namespace) -> int:
    """Decide about the latest attempt of a task, after one more question."""
    with deciding_in(options) as look:
        return _decide(options, look)


def _decide(options: Namespace, look: Callable[[], Monitor]) -> int:
    """Decide in a workspace that `look` reads. Returns the exit code; raises DecisionError and UsageError."""
    action, note = _action(options), options.note
    value, takes = getattr(options, action), SPECS[action].takes
    monitor = look()
    task, desk = _checked_task(monitor, options.task), desk_in(monitor)
    subject = desk.subject(task)
    attempt, digest = subject.attempt, subject.return_sha256 or "none"
    if options.attempt not in (None, attempt) or options.return_sha256 not in (None, digest):
        now = f"it is at attempt {attempt}, and its return is {digest}"
        raise ReturnChangedError(f"not recorded: the return has changed since you looked at it: {now}")
    params = Params(
        mitigation=options.mitigation and Mitigation(options.mitigation),
        handoff=options.handoff and _read_text(options.handoff),
        mode=value if "mode" in takes else None,
        answers=tuple(_answers(value, task)) if "answers" in takes else (),
    )
    entry = desk.read().latest.get(subject.decision_id)
    if entry is not None and not entry.record.is_expired(datetime.now(UTC)):
        if not _agrees(entry.record, action, params, note):
            raise AlreadyDecidedError(entry.record)
        # Recorded before: what was not delivered then is delivered now.
        params, note = entry.record.params, entry.record.note
    else:
        if (why := policy.refusal(task, action, params, note)) is not None:
            raise NotAllowedError(f"not recorded: {action} is not possible here: {why}")
        params = _with_document(task, subject, params, options, monitor)
        where = f"{clean(str(desk.state))}/decisions"
        if monitor.host:
            where = f"the ledger of {quoted(monitor.host, 60)}, once it has checked this"
        at, writes = datetime.now(UTC).timestamp(), f"{subject.decision_id}.json in {where}"
        told = [fact("decision", str(action)), *facts(task, task, subject, action, params, now=at, writes=writes)]
        if not confirmed(options, [*fact_lines(told), *_signed_lines(note, params, task)], "decision"):
            return ExitCode.NOT
    if (why := desk.why_locked()) is not None:
        complain(clean(why))

    def returned() -> str | None:
        """The sha256 of the return as it is now. What a session gave back is read from its store again."""
        before = task.latest.returned
        return (look() if before and before.stored else monitor).returned_now(task.task_id)()

    made = desk.decide(subject, action, params, returned=returned, note=note)
    say_recorded(made, "decision")
    with suppress(DecisionError):
        # What was not delivered before, or was edited since, is put right.
        desk.mirror()
    if made.undelivered is not None:
        complain(clean(f"recorded, not delivered: {made.undelivered}"))
    else:
        say("delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read")
    return ExitCode.DONE


def _action(options: Namespace) -> Action:
    """The action that is asked for. Raises UsageError where other options do not go with it."""
    action = next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False))
    for name in ("mitigation", "handoff"):
        if getattr(options, name) is not None and name not in SPECS[action].takes:
            raise UsageError(f"--{name} does not go with --{action}")
    value = getattr(options, action)
    refuse_placeholder(options.note, *(value if isinstance(value, list) else [value]))
    return action


def _checked_task(monitor: Monitor, task_id: str) -> Task:
    """A task, with its claims checked and those of its fitter: on them depends what may be decided."""
    task = task_in(monitor, task_id)
    if not monitor.host:
        tasks = monitor.tree.tasks.values()
        check_claims(
            monitor, [task_id, *(one.task_id for one in tasks if one.packet and one.packet.restores == task_id)]
        )
        task = monitor.tree.tasks[task_id]
    return task


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}; give --handoff a file of UTF-8 that can be read") from error


def _answers(texts: Sequence[str], task: Task) -> Iterator[Answer]:
    blockers = task.result.blockers if task.result else ()
    if blockers:
        refuse_uneven("--respond", texts, blockers)
    yield from map(Answer, blockers or [None] * len(texts), texts)


def _agrees(record: Record, action: Action, params: Params, note: str) -> bool:
    """Whether the same is recorded; what was not given agrees."""
    given = [(note, record.note)]
    given += [(getattr(params, one), getattr(record.params, one)) for one in SPECS[action].takes]
    return record.action is action and all(one == recorded for one, recorded in given if one)


def _with_document(task: Task, subject: Subject, params: Params, options: Namespace, monitor: Monitor) -> Params:
    """The parameters with the handoff of the next attempt, or the final error report. Raises AmendError, and UsageError
    where a handoff was given that is not sound."""
    document, note = SPECS[_action(options)].document, options.note
    if document == "report":
        failed = list(monitor.tree.failed_below(task))
        return replace(params, report=final_report(task, failed, note=note, operator=operator_name()).text)
    if not document:
        return params
    if params.handoff is not None:
        name = Path(options.handoff).name
        if problems := handoff_problems(task, subject, name, params.handoff, mode=params.mode):
            raise UsageError("\n  ".join((f"{name} cannot be handed on:", *problems[:5])))
        return params
    proposal = next_handoff(task, subject, monitor.text, note=note, hint=task.retry.hint, mode=params.mode)
    if problems := proposal.problems(proposal.text):
        why = "the last handoff is not sound, so it cannot be amended; give --handoff FILE:"
        raise AmendError("\n  ".join((why, *problems[:5])))
    return replace(params, handoff=proposal.text or None)


def _signed_lines(note: str, params: Params, task: Task) -> Iterator[str]:
    """The texts that will be signed, whole, and the words of the child."""
    texts = [
        ("The note", note),
        *((f"To {quoted(one.question or 'it', 300)}", one.answer) for one in params.answers),
        ("The final error report", params.report),
        ("The handoff for the next attempt", params.handoff),
        ("The child's words", "\n".join(f"{label}: {text}" for label, text in words_of_child(task))),
    ]
    for title, text in texts:
        if text:
            yield from barred(title, text)
