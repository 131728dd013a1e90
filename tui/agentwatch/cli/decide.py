"""Decide about the latest attempt of a task, after one more question."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.cli.command import PLACE, TASK, YES, Argument, argument, flag, one_of
from agentwatch.cli.shared import (
    barred,
    confirmed,
    fact_lines,
    is_on_terminal,
    passphrase,
    refuse_placeholder,
    target_of,
)
from agentwatch.composition import check_claims, desk_of, scanned
from agentwatch.config import Settings, load
from agentwatch.decisions.errors import DecisionError, NoAnswerError, NotAllowedError, ReturnChangedError
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action
from agentwatch.delegation.task import State, Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, exact, quoted, say
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.record import Answer, Params, Record, Subject
    from agentwatch.decisions.service import DecisionService

MODE: Final = "MODE"
"""The placeholder for a mode in a printed line."""
MITIGATIONS: Final = ("changed_inputs", "reduced_scope", "corrected_constraints")


def _option(action: Action) -> Argument:
    metavar, text = SPECS[action].option
    if not metavar:
        return flag(f"--{action}", text)
    if "answers" in SPECS[action].takes:
        return argument(f"--{action}", metavar, text, action="append")
    return argument(f"--{action}", metavar, text, offers="modes")


ARGUMENTS: Final = (
    TASK,
    PLACE,
    *one_of(*(_option(action) for action in OF_ATTEMPTS), required=True),
    argument("--mitigation", "", "what is materially different in this retry", choices=MITIGATIONS),
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
_MOST_PROBLEMS: Final = 5


class Wish(NamedTuple):
    """The decision that the operator asks for. `answers` are in the order of the blockers; `handoff` is a text and its
    name; `attempt` and `digest` are those that were looked at, None if that is not known."""

    action: Action
    mode: str | None = None
    answers: tuple[str, ...] = ()
    mitigation: str | None = None
    note: str = ""
    handoff: tuple[str, str] | None = None
    attempt: int | None = None
    digest: str | None = None


def run(options: Namespace) -> int:
    """Decide here or on a host. Raises UsageError and DecisionError."""
    digest = options.return_sha256
    if digest not in (None, "none") and (len(digest) != 64 or not set(digest) <= set("0123456789abcdef")):
        raise UsageError("--return-sha256 takes all 64 hex digits; `agentwatch tree --json` has them")
    settings = load()
    with target_of(options.path, settings) as (workspace, far):
        action = next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False))
        given = getattr(options, action)
        takes = SPECS[action].takes
        if options.mitigation and "mitigation" not in takes:
            raise UsageError("--mitigation belongs to --retry: it is what makes another retry worth it")
        if options.handoff is not None and "handoff" not in takes:
            raise UsageError("--handoff belongs to --retry and --escalate: nothing else begins another attempt")
        refuse_placeholder(options.note, *(given if "answers" in takes else ()))
        if "mode" in takes and given == MODE:
            raise UsageError(f"not recorded: {MODE} stands for a mode; name one in its place")
        wish = Wish(
            action,
            mode=given if "mode" in takes else None,
            answers=tuple(given) if "answers" in takes else (),
            mitigation=options.mitigation,
            note=options.note,
            handoff=None if options.handoff is None else _read_handoff(options.handoff),
            attempt=options.attempt,
            digest=digest,
        )
        look: Load
        if far is None:
            desk = desk_of(workspace, settings, passphrase())
            look = partial(scanned, workspace, settings, desk=desk, requests=True)
        else:
            monitor = far.scanned(workspace, settings, passphrase=passphrase())
            look = lambda **_: monitor  # noqa: E731  it was looked at once for all
        return decide(look, options.task, wish, settings=settings, yes=options.yes)


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


def decide(look: Load, task_id: str, wish: Wish, *, settings: Settings, yes: bool) -> int:
    """Decide about the latest attempt of a task. Returns one of `ExitCode`. Raises DecisionError."""
    from agentwatch.decisions import policy
    from agentwatch.decisions.form import fact, facts, words_of_child
    from agentwatch.decisions.record import AlreadyDecidedError, Mitigation, Params

    monitor, task = _loaded(task_id, look)
    if not (yes or is_on_terminal()):
        raise UsageError("there is no terminal to ask on; say --yes, and --return-sha256 with what you looked at")
    if monitor.clerk is None:
        raise ValueError(monitor)
    desk = monitor.clerk.desk
    if (unreachable := desk.unreachable) is not None:
        raise DecisionError(f"not recorded: {unreachable}")
    subject = desk.subject(task)
    if wish.attempt not in (None, subject.attempt):
        now = f"it is at attempt {subject.attempt}"
        raise ReturnChangedError(f"not recorded: you looked at attempt {wish.attempt}, and {now}")
    if wish.digest not in (None, subject.return_sha256 or "none"):
        now = subject.return_sha256 or "none at all"
        raise ReturnChangedError(f"not recorded: the return has changed since you looked at it: it is {now} now")
    entry = desk.read().latest.get(subject.decision_id)
    if entry is not None and not entry.record.is_expired(datetime.now(UTC)):
        if not agrees(wish, entry.record):
            raise AlreadyDecidedError(entry.record)
        say(f"recorded before: {_by(entry.record)}; decision {subject.decision_id}")
        _look_around(desk)
        return ExitCode.DONE
    mitigation = Mitigation(wish.mitigation) if wish.mitigation else None
    given = Params(mitigation=mitigation, mode=wish.mode, answers=tuple(_answers(wish, task)))
    if (reason := policy.refusal(task, wish.action, given, wish.note)) is not None:
        raise NotAllowedError(f"not recorded: {wish.action} is not possible here: {reason}")
    params = params_of(task, subject, wish, given, monitor)
    where = f"{clean(str(desk.state))}/decisions{'' if settings.read_only else ', copy in .agentwatch/decisions'}"
    if monitor.host:
        where = f"the ledger of {quoted(monitor.host, 60)}, once it has checked this"
    writes = f"{subject.decision_id}.json in {where}"
    told = facts(task, task, subject, wish.action, params, now=datetime.now(UTC).timestamp(), writes=writes)
    noted = [fact("note", exact(wish.note))] if wish.note else []
    for line in fact_lines([fact("decision", str(wish.action)), *told, *noted]):
        say(line)
    for line in lines(wish, params, words_of_child(task)):
        say(line)
    if not yes and not confirmed("Record this decision?"):
        say("nothing is recorded")
        return ExitCode.NOT
    returned = _returned(monitor, settings, task, look)
    if (why_locked := desk.why_locked()) is not None:
        complain(clean(why_locked))
    _report(desk.decide(subject, wish.action, params, returned=returned, note=wish.note))
    if not settings.read_only:
        _look_around(desk)
    return ExitCode.DONE


def _report(decided: DecisionMade) -> None:
    if decided.fresh:
        say(f"recorded: decision {decided.record.decision_id}")
    else:
        say(f"already decided, in the same way: {_by(decided.record)}; decision {decided.record.decision_id}")
    if decided.doubt is not None:
        complain(clean(decided.doubt))
    if decided.undelivered is not None:
        complain(clean(f"recorded, not delivered: {decided.undelivered}"))
    else:
        say("delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read")


def _loaded(task_id: str, look: Load) -> tuple[Monitor, Task]:
    monitor = look(inspects=False)
    complain_of(monitor.health.problems)
    task = monitor.tree.tasks.get(task_id)
    has_fitter = task is not None and any(one.over for attempt in task.attempts for one in attempt.decisions)
    if task is not None and (task.own_state in _CLAIMS_SUCCESS or has_fitter):
        # Whether it may be retried, or has to be accepted, depends on whether its claims, or those of its fitter, are
        # true, and that on when its handoff was given. A host has told it already.
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


def agrees(wish: Wish, record: Record) -> bool:
    """Whether a wish agrees with the record. Parts that it does not mention agree."""
    recorded = record.params
    pairs = (
        (wish.note, record.note),
        (wish.mitigation, recorded.mitigation),
        (wish.mode, recorded.mode),
        (wish.answers, tuple(one.answer for one in recorded.answers)),
        (wish.handoff and wish.handoff[0], recorded.handoff),
    )
    return wish.action is record.action and all(said == known for said, known in pairs if said)


def _answers(wish: Wish, task: Task) -> Iterator[Answer]:
    from agentwatch.decisions.record import Answer

    blockers = task.result.blockers if task.result else ()
    if wish.answers and len(blockers) > 1 and len(wish.answers) < len(blockers):
        given = f"{plural(len(wish.answers), 'answer')} to {plural(len(blockers), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one, 300)}" for number, one in enumerate(blockers, 1))
        raise UsageError(f"not recorded: {given}; give one --respond for each, in this order:{asked}")
    if blockers and len(wish.answers) > len(blockers):
        raise UsageError(
            f"{len(wish.answers)} answers are given, and it asks {len(blockers)}; put them into one --respond"
        )
    questions = (*blockers, *(None for _ in wish.answers))
    yield from (Answer(question, answer) for question, answer in zip(questions, wish.answers, strict=False))


def params_of(task: Task, subject: Subject, wish: Wish, given: Params, monitor: Monitor) -> Params:
    """All parameters, with the amended handoff of the next attempt, or the final error report. Raises AmendError, and
    UsageError where a handoff was given that is not sound."""
    from agentwatch.decisions.form import propose, with_document
    from agentwatch.decisions.handoff import AmendError, handoff_problems
    from agentwatch.decisions.service import operator_name

    if not SPECS[wish.action].document:
        return given
    if wish.handoff is not None:
        text, name = wish.handoff
        if problems := handoff_problems(task, subject, name, text, mode=wish.mode):
            raise UsageError(f"{name} cannot be handed on:{_shown(problems)}")
        return with_document(wish.action, given, text)
    more: dict[str, Any] = {"note": wish.note, "failed": list(monitor.tree.failed_below(task))}
    try:
        proposal = propose(task, subject, wish.action, wish.mode, monitor.text, operator=operator_name(), **more)
    except (AmendError, NoAnswerError) as error:
        raise AmendError(f"{error}, and give --handoff FILE") from error
    if problems := proposal.problems(proposal.text):
        raise AmendError(
            f"the last handoff is not sound, so it cannot be amended; give --handoff FILE:{_shown(problems)}"
        )
    return with_document(wish.action, given, proposal.text)


def _shown(problems: list[str]) -> str:
    return "".join(f"\n  {problem}" for problem in problems[:_MOST_PROBLEMS])


def lines(wish: Wish, params: Params, said: list[tuple[str, str]]) -> Iterator[str]:
    """The texts that will be signed, whole, and the words of the child."""
    answers = [(f"To {quoted(one.question or 'it', 300)}", one.answer) for one in params.answers]
    documents = [("The final error report", params.report), ("The handoff for the next attempt", params.handoff)]
    for title, text in (("The note", wish.note), *answers, *documents):
        if text:
            yield from ("", f"  {title}:", *barred(text))
    if said:
        yield from ("", "  The child's words:")
        for label, text in said:
            yield from barred(f"{label}: {text}")


def _returned(monitor: Monitor, settings: Settings, task: Task, look: Load) -> Callable[[], str | None]:
    """How to look at the return once more, when the decision is recorded. A host looks at its own itself."""
    from agentwatch.decisions.service import return_digest

    returned = task.latest.returned if task.latest else None
    if monitor.host or returned is None:
        return lambda: returned.digest if returned is not None else None
    if not returned.stored:
        return lambda: return_digest(monitor.workspace, returned.path, settings.max_bytes)

    def now() -> str | None:
        again = look(inspects=False).tree.tasks.get(task.task_id)
        returned_now = again.latest.returned if again and again.latest else None
        return returned_now.digest if returned_now else None

    return now


def _look_around(desk: DecisionService) -> None:
    """Deliver what waits from before, and name what is in the mirror that nobody decided."""
    from agentwatch.decisions.delivery import MIRROR

    try:
        mirror = desk.mirror()
    except DecisionError as error:
        complain(clean(str(error)))
        return
    for forgery in mirror.foreign:
        complain(f"not yours: {MIRROR}/{clean(forgery.name)}: {clean(forgery.why)}")


def _by(record: Record) -> str:
    return f"{clean(record.operator, 60)} said {record.action} at {record.created_at}"
