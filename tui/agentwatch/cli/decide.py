"""The commands that record a decision about a task, or an answer to a program's request."""

import asyncio
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agentwatch.cli.command import PLACE, TASK, YES, Argument, argument, command, flag, one_of
from agentwatch.cli.shared import PLACEHOLDER, desk_in, passphrase, subject_of, task_in
from agentwatch.composition import build_desk, check_claims
from agentwatch.config import load
from agentwatch.console import ask_to_confirm
from agentwatch.decisions import form, policy
from agentwatch.decisions.errors import NotAllowedError, ReturnChangedError
from agentwatch.decisions.form import AmendError, Fact, final_report, handoff_problems, next_handoff, words_of_child
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import AlreadyDecidedError, Answer, Mitigation, Params, Record, Subject
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action, Query, Request
from agentwatch.delegation.task import Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import print_problems
from agentwatch.text import clean, clean_name, print_error, print_text, quote_text, safe_pieces
from agentwatch.view.words import plural


def _option(action: Action) -> Argument:
    metavar, text = SPECS[action].option
    if not metavar:
        return flag(f"--{action}", text)
    return argument(f"--{action}", metavar, text, action="append" if "answers" in SPECS[action].takes else "store")


@command(
    TASK,
    PLACE,
    *one_of(*map(_option, OF_ATTEMPTS), required=True),
    argument("--mitigation", None, "the material change in this retry", choices=[*map(str, Mitigation)]),
    argument("--note", "TEXT", "your words to the agent; they also go into the handoff", default=""),
    argument("--handoff", "FILE", "your own handoff for the next attempt"),
    argument("--return-sha256", "HEX", "sha256 of the return that you looked at, or `none`; refused if it differs"),
    argument("--attempt", "N", "the attempt that you looked at; refused if it is another now", type=int),
    YES,
    exit_codes="exit codes: 0 recorded, 1 you said no, or the retry policy does not allow it, 6 another decision"
    " was recorded before, 7 the return is not the one you looked at, 2 wrong usage, or the key or the disk refused",
)
def decide(options: Namespace) -> int:
    """Decide about the latest attempt of a task, after you have confirmed it."""
    with deciding_in(options) as look:
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
        if entry and not entry.record.is_expired(datetime.now(UTC)):
            if not _agrees(entry.record, action, params, note):
                raise AlreadyDecidedError(entry.record)
            # The same decision is recorded already: deliver it now if that failed before.
            params, note = entry.record.params, entry.record.note
        else:
            if why := policy.refusal(task, action, params, note):
                raise NotAllowedError(f"not recorded: {action} is not possible here: {why}")
            params = _with_document(task, subject, params, options, monitor)
            where = f"{clean(str(desk.state))}/decisions"
            if monitor.host:
                where = f"the ledger of {quote_text(monitor.host, 60)}, once it has checked this"
            at, writes = datetime.now(UTC).timestamp(), f"{subject.decision_id}.json in {where}"
            facts = form.facts(task, task, subject, action, params, now=at, writes=writes)
            lines = fact_lines([form.fact("decision", str(action)), *facts])
            if not confirmed(options, [*lines, *_signed_lines(note, params, task)], "decision"):
                return ExitCode.NOT

        def returned() -> str | None:
            """Return the sha256 of the task's present return; a session's return is read from its store again."""
            before = task.latest.returned
            return (look() if before and before.stored else monitor).returned_now(task.task_id)()

        made = desk.decide(subject, action, params, returned=returned, note=note)
        say_recorded(made, "decision")
        if made.undelivered:
            print_error(f"recorded, not delivered: {made.undelivered}")
        else:
            print_text(
                "delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read"
            )
        return ExitCode.DONE


def _action(options: Namespace) -> Action:
    """Return the chosen action. Raises UsageError if other options do not go with it."""
    action = next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False))
    for name in ("mitigation", "handoff"):
        if getattr(options, name) and name not in SPECS[action].takes:
            raise UsageError(f"--{name} does not go with --{action}")
    value = getattr(options, action)
    refuse_placeholder(options.note, *(value if isinstance(value, list) else [value]))
    return action


def _checked_task(monitor: Monitor, task_id: str) -> Task:
    """Return a task after checking its claims and those of its fitter, because possible decisions depend on them."""
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
    """Whether a recorded decision has the same action, and the same values as far as they are given."""
    given = [(note, record.note)]
    given += [(getattr(params, one), getattr(record.params, one)) for one in SPECS[action].takes]
    return record.action is action and all(one == recorded for one, recorded in given if one)


def _with_document(task: Task, subject: Subject, params: Params, options: Namespace, monitor: Monitor) -> Params:
    """Return the parameters with the next attempt's handoff or the final error report, if the action needs one. Raises
    AmendError, and UsageError if the given handoff is not sound."""
    document, note = SPECS[_action(options)].document, options.note
    if document == "report":
        failed = list(monitor.tree.failed_below(task))
        return replace(params, report=final_report(task, failed, note=note, operator=operator_name()).text)
    if not document:
        return params
    if params.handoff:
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
    """Yield all the texts that will be signed, and the words of the child."""
    texts = [
        ("The note", note),
        *((f"To {quote_text(one.question or 'it', 300)}", one.answer) for one in params.answers),
        ("The final error report", params.report),
        ("The handoff for the next attempt", params.handoff),
        ("The child's words", "\n".join(f"{label}: {text}" for label, text in words_of_child(task))),
    ]
    for title, text in texts:
        if text:
            yield from barred(title, text)


@command(
    argument("request", "REQUEST", "the id of the request, or its first 8 digits"),
    PLACE,
    *one_of(
        flag("--allow", "allow it, once"),
        argument("--deny", "TEXT", "deny it, with words to the model if the program takes any", nargs="?", const=""),
        argument(
            "--option",
            "TEXT",
            "answer a question, with one of its options or your own words; once for each question; several choices"
            " each on a line of its own",
            action="append",
        ),
        required=True,
    ),
    argument("--rule", "RULE", "with --allow: a rule of the request, to allow its calls for the rest of the session"),
    YES,
    exit_codes="exit codes: 0 recorded, 1 you said no, or the request does not take this answer, 4 nobody waits for an"
    " answer any more, 6 another answer was recorded before, 2 wrong usage, or the key or the disk refused",
)
def answer(options: Namespace) -> int:
    """Answer a permission or a question for which a program waits, after you have confirmed the answer."""
    if options.rule and not options.allow:
        raise UsageError("--rule belongs to --allow: it allows other calls, too")
    with deciding_in(options) as look:
        monitor = look()
        print_problems(monitor.problems)
        request = _find([one for task in monitor.tree.tasks.values() for one in task.requests], options.request)
        action = Action.ALLOW if options.allow else Action.DENY if options.deny is not None else Action.ANSWER
        params, note = _params(request, options), options.deny or ""
        if not confirmed(options, _lines(request, action, params, note), "answer"):
            return ExitCode.NOT
        say_recorded(asyncio.run(monitor.answer(request, action, params, note)), "request")
    print_text("`agentwatch pending` says when its program has it")
    return ExitCode.DONE


def _find(requests: Iterable[Request], start: str) -> Request:
    """Return the request whose id begins with `start`. Raises UsageError if none or several fit."""
    word = start.lower()
    fitting = [one for one in requests if one.request_id.startswith(word)] if len(word) >= form.DIGITS else []
    if len(fitting) != 1:
        why = f"{plural(len(fitting), 'request')} begin with {quote_text(start)}; give more of its id"
        none = f"no request {quote_text(start)} is open here (its id, or the first {form.DIGITS} digits of it)"
        raise UsageError(f"{why if fitting else none}; `agentwatch pending` lists those that wait")
    return fitting[0]


def _params(request: Request, options: Namespace) -> Params:
    """Return the parameters of an answer. Raises UsageError if there is not one option for each question."""
    labels = {option.label for query in request.queries for option in query.options}
    texts = options.option or ()
    refuse_placeholder(*{options.deny, *texts} - labels)
    if not texts:
        return Params(rule=options.rule)
    refuse_uneven("--option", texts, [query.question for query in request.queries])
    answers = [
        Answer(query.question, line)
        for query, text in zip(request.queries, texts, strict=True)
        for line in (filter(str.strip, text.splitlines()) if query.several else [text])
    ]
    return Params(answers=tuple(answers))


def options_of(query: Query, longest: int) -> Iterator[str]:
    """Yield a safe line for each option of a question: its label and description, cut after `longest` characters."""
    for option in query.options:
        yield clean(f"{clean_name(option.label, longest)}{option.description and f': {option.description}'}", longest)


def _lines(request: Request, action: Action, params: Params, note: str) -> Iterator[str]:
    """Yield the preview of an answer and the whole request. Foreign text is indented behind a bar."""
    yield from fact_lines(form.request_facts(request, time.time()))
    rule = f", and for the rest of its session {clean_name(params.rule, len(params.rule))}" if params.rule else ""
    yield from ("", f"  Your answer: {action}{rule}")
    if note:
        yield from barred("Your words to the model", note)
    for one in params.answers:
        yield f"  {quote_text(one.question or '', 300)} → {clean(one.answer, len(one.answer))}"
    for number, query in enumerate(request.queries, 1):
        yield from barred(f"Question {number}{', which takes several' if query.several else ''}", query.question)
        yield from (f"  │   - {one}" for one in options_of(query, form.LONGEST))
    for label, text in form.words_of_request(request):
        yield from barred(label, text)


def ways_of(request: Request) -> list[list[str]]:
    """Return the command-line options for each possible answer, the plain one first. The operator replaces words in
    capitals."""
    deny = ["--deny", PLACEHOLDER] if request.words else ["--deny"]
    options = ["--option", PLACEHOLDER] * max(len(request.queries), 1)
    known = {Action.ALLOW: ["--allow"], Action.DENY: deny, Action.ANSWER: options}
    return [known[action] for action in request.actions if action in known]


# Shared by both commands


@contextmanager
def deciding_in(options: Namespace) -> Iterator[Callable[[], Monitor]]:
    """Yield a function that reads one workspace with a desk that can sign. Raises as `subject_of`, and UsageError if
    there is neither a terminal to ask on nor `--yes`."""
    if not (options.yes or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("there is no terminal to ask on; say --yes")
    settings, secret = load(), passphrase()
    with subject_of(options.path, settings) as subject:
        open_desk = partial(build_desk, settings=settings, passphrase=secret)
        yield partial(subject.scan, open_desk, secret, inspects=False)


def fact_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield the facts of a preview, a line each."""
    for label, parts in facts:
        yield f"  {label:<11}{' '.join(words for words, _ in parts)}"


def barred(title: str, text: str) -> Iterator[str]:
    """Yield a title and below it a whole foreign text, each line behind a bar."""
    yield from ("", f"  {title}:")
    for piece in safe_pieces(text):
        yield f"    {piece.text}" if piece.counted else f"  {'│ ' if piece.begins else '│›'}{piece.text}"


def refuse_placeholder(*words: str | None) -> None:
    """Raise UsageError if one of the operator's words is still the placeholder of a printed command line."""
    for word in {*words} & {PLACEHOLDER, "MODE"}:
        raise UsageError(f"not recorded: {word} stands for words of yours; write them in its place")


def refuse_uneven(option: str, answers: Sequence[str], questions: Sequence[str]) -> None:
    """Raise UsageError unless there is one answer for each question."""
    if len(answers) != len(questions):
        given = f"{plural(len(answers), 'answer')} to {plural(len(questions), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one, 300)}" for number, one in enumerate(questions, 1))
        raise UsageError(f"not recorded: {given}; give one {option} for each, in this order:{asked}")


def say_recorded(made: DecisionMade, what: str) -> None:
    """Say which decision was recorded now, or that the same one was recorded before."""
    record = made.record
    before = "" if made.fresh else f"before: {clean(record.operator, 60)} said {record.action} at {record.created_at}; "
    print_text(f"recorded: {before}{what} {record.decision_id}")
    if made.doubt:
        print_error(made.doubt)


def confirmed(options: Namespace, preview: Iterable[str], what: str) -> bool:
    """Print a preview, and return whether the operator confirms it on the terminal or gave `--yes`."""
    for line in preview:
        print_text(line)
    if options.yes:
        return True
    if ask_to_confirm(f"Record this {what}?"):
        return True
    print_text("nothing is recorded")
    return False
