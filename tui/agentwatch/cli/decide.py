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
from agentwatch.cli.shared import PLACEHOLDER, open_subject, passphrase_prompt, require_desk, require_task
from agentwatch.composition import build_desk, check_claims
from agentwatch.config import load
from agentwatch.console import ask_to_confirm
from agentwatch.decisions import form, policy
from agentwatch.decisions.errors import NotAllowedError, ReturnChangedError
from agentwatch.decisions.form import AmendError, Fact, child_texts, final_report, handoff_problems, next_handoff
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


def _action_option(action: Action) -> Argument:
    metavar, text = SPECS[action].option
    if not metavar:
        return flag(f"--{action}", text)
    return argument(f"--{action}", metavar, text, action="append" if "answers" in SPECS[action].takes else "store")


@command(
    TASK,
    PLACE,
    *one_of(*map(_action_option, OF_ATTEMPTS), required=True),
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
    """Decide about the latest attempt of a task. You confirm the decision before it is recorded."""
    with open_to_decide(options) as scan:
        action, note = _chosen_action(options), options.note
        value, takes = getattr(options, action), SPECS[action].takes
        monitor = scan()
        task, desk = _find_checked_task(monitor, options.task), require_desk(monitor)
        subject = desk.subject(task)
        attempt, digest = subject.attempt, subject.return_sha256 or "none"
        if options.attempt not in (None, attempt) or options.return_sha256 not in (None, digest):
            now = f"it is at attempt {attempt}, and its return is {digest}"
            raise ReturnChangedError(f"not recorded: the return has changed since you looked at it: {now}")
        params = Params(
            mitigation=options.mitigation and Mitigation(options.mitigation),
            handoff=options.handoff and _read_text(options.handoff),
            mode=value if "mode" in takes else None,
            answers=tuple(_make_answers(value, task)) if "answers" in takes else (),
        )
        entry = desk.read().latest.get(subject.decision_id)
        if entry and not entry.record.is_expired(datetime.now(UTC)):
            if not _is_same_decision(entry.record, action, params, note):
                raise AlreadyDecidedError(entry.record)
            # The same decision is recorded already. Deliver it again, because the first delivery may have failed.
            params, note = entry.record.params, entry.record.note
        else:
            if why := policy.why_refused(task, action, params, note):
                raise NotAllowedError(f"not recorded: {action} is not possible here: {why}")
            params = _add_document(task, subject, params, options, monitor)
            where = f"{clean(str(desk.state))}/decisions"
            if monitor.host:
                where = f"the ledger of {quote_text(monitor.host, 60)}, once it has checked this"
            at, writes = datetime.now(UTC).timestamp(), f"{subject.decision_id}.json in {where}"
            facts = form.decision_facts(task, task, subject, action, params, now=at, writes=writes)
            lines = fact_lines([form.fact("decision", str(action)), *facts])
            if not confirm(options, [*lines, *_preview_signed_texts(note, params, task)], "decision"):
                return ExitCode.NOT

        def find_return_digest() -> str | None:
            """Return the sha256 of the task's current return."""
            before = task.latest.returned
            return (scan() if before and before.stored else monitor).digest_reader(task.task_id)()

        made = desk.decide(subject, action, params, find_digest=find_return_digest, note=note)
        print_recorded(made, "decision")
        if made.undelivered:
            print_error(f"recorded, not delivered: {made.undelivered}")
        else:
            print_text(
                "delivered: `agentwatch wait` gives it to the agents, and `agentwatch pending` says when it was read"
            )
        return ExitCode.DONE


def _chosen_action(options: Namespace) -> Action:
    """Return the action that the options name. Raise UsageError if another option does not fit the action."""
    action = next(one for one in OF_ATTEMPTS if getattr(options, one) not in (None, False))
    for name in ("mitigation", "handoff"):
        if getattr(options, name) and name not in SPECS[action].takes:
            raise UsageError(f"--{name} does not go with --{action}")
    value = getattr(options, action)
    refuse_placeholder(options.note, *(value if isinstance(value, list) else [value]))
    return action


def _find_checked_task(monitor: Monitor, task_id: str) -> Task:
    """Find a task. Check its claims and the claims of tasks that repair it, because the policy needs the verdicts."""
    task = require_task(monitor, task_id)
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


def _make_answers(texts: Sequence[str], task: Task) -> Iterator[Answer]:
    blockers = task.result.blockers if task.result else ()
    if blockers:
        require_all_answered("--respond", texts, blockers)
    yield from map(Answer, blockers or [None] * len(texts), texts)


def _is_same_decision(record: Record, action: Action, params: Params, note: str) -> bool:
    """Tell whether a recorded decision has this action, and the same value for each parameter that is given."""
    given = [(note, record.note)]
    given += [(getattr(params, one), getattr(record.params, one)) for one in SPECS[action].takes]
    return record.action is action and all(one == recorded for one, recorded in given if one)


def _add_document(task: Task, subject: Subject, params: Params, options: Namespace, monitor: Monitor) -> Params:
    """Return `params` with the document that the action needs: the next handoff or the final error report. Raise
    UsageError or AmendError if the handoff has problems."""
    document, note = SPECS[_chosen_action(options)].document, options.note
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


def _preview_signed_texts(note: str, params: Params, task: Task) -> Iterator[str]:
    """Yield the lines of a preview: all texts that will be signed, and the child agent's words."""
    texts = [
        ("The note", note),
        *((f"To {quote_text(one.question or 'it', 300)}", one.answer) for one in params.answers),
        ("The final error report", params.report),
        ("The handoff for the next attempt", params.handoff),
        ("The child's words", "\n".join(f"{label}: {text}" for label, text in child_texts(task))),
    ]
    for title, text in texts:
        if text:
            yield from quote_block(title, text)


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
    """Answer a permission or a question for which a program waits. You confirm the answer before it is recorded."""
    if options.rule and not options.allow:
        raise UsageError("--rule belongs to --allow: it allows other calls, too")
    with open_to_decide(options) as scan:
        monitor = scan()
        print_problems(monitor.problems)
        request = _find_request([one for task in monitor.tree.tasks.values() for one in task.requests], options.request)
        action = Action.ALLOW if options.allow else Action.DENY if options.deny is not None else Action.ANSWER
        params, note = _answer_params(request, options), options.deny or ""
        if not confirm(options, _preview_answer(request, action, params, note), "answer"):
            return ExitCode.NOT
        print_recorded(asyncio.run(monitor.answer(request, action, params, note)), "request")
    print_text("`agentwatch pending` says when its program has it")
    return ExitCode.DONE


def _find_request(requests: Iterable[Request], start: str) -> Request:
    """Return the request whose id begins with `start`. Raise UsageError unless exactly one request fits."""
    word = start.lower()
    fitting = [one for one in requests if one.request_id.startswith(word)] if len(word) >= form.DIGITS else []
    if len(fitting) != 1:
        why = f"{plural(len(fitting), 'request')} begin with {quote_text(start)}; give more of its id"
        none = f"no request {quote_text(start)} is open here (its id, or the first {form.DIGITS} digits of it)"
        raise UsageError(f"{why if fitting else none}; `agentwatch pending` lists those that wait")
    return fitting[0]


def _answer_params(request: Request, options: Namespace) -> Params:
    """Return the parameters of an answer. Raise UsageError unless there is one answer for each question."""
    labels = {option.label for query in request.queries for option in query.options}
    texts = options.option or ()
    refuse_placeholder(*{options.deny, *texts} - labels)
    if not texts:
        return Params(rule=options.rule)
    require_all_answered("--option", texts, [query.question for query in request.queries])
    answers = [
        Answer(query.question, line)
        for query, text in zip(request.queries, texts, strict=True)
        for line in (filter(str.strip, text.splitlines()) if query.several else [text])
    ]
    return Params(answers=tuple(answers))


def option_lines(query: Query, longest: int) -> Iterator[str]:
    """Yield a safe line of at most `longest` characters for each option of a question."""
    for option in query.options:
        yield clean(f"{clean_name(option.label, longest)}{option.description and f': {option.description}'}", longest)


def _preview_answer(request: Request, action: Action, params: Params, note: str) -> Iterator[str]:
    """Yield the lines that show an answer and the whole request. A bar marks each line of untrusted text."""
    yield from fact_lines(form.request_facts(request, time.time()))
    rule = f", and for the rest of its session {clean_name(params.rule, len(params.rule))}" if params.rule else ""
    yield from ("", f"  Your answer: {action}{rule}")
    if note:
        yield from quote_block("Your words to the model", note)
    for one in params.answers:
        yield f"  {quote_text(one.question or '', 300)} → {clean(one.answer, len(one.answer))}"
    for number, query in enumerate(request.queries, 1):
        yield from quote_block(f"Question {number}{', which takes several' if query.several else ''}", query.question)
        yield from (f"  │   - {one}" for one in option_lines(query, form.LONGEST))
    for label, text in form.request_texts(request):
        yield from quote_block(label, text)


def answer_options(request: Request) -> list[list[str]]:
    """Return the command-line options for each possible answer. Words in capitals stand for the operator's words."""
    deny = ["--deny", PLACEHOLDER] if request.words else ["--deny"]
    options = ["--option", PLACEHOLDER] * max(len(request.queries), 1)
    known = {Action.ALLOW: ["--allow"], Action.DENY: deny, Action.ANSWER: options}
    return [known[action] for action in request.actions if action in known]


# Shared by both commands


@contextmanager
def open_to_decide(options: Namespace) -> Iterator[Callable[[], Monitor]]:
    """Yield a function that reads the workspace. The monitor that the function returns can sign decisions. Raise
    UsageError if there is no terminal to ask on and `--yes` was not given. May raise the errors of `open_subject`."""
    if not (options.yes or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("there is no terminal to ask on; say --yes")
    settings, secret = load(), passphrase_prompt()
    with open_subject(options.path, settings) as subject:
        open_desk = partial(build_desk, settings=settings, passphrase=secret)
        yield partial(subject.scan, open_desk, secret, inspects=False)


def fact_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """Yield a line for each fact (a label and its text) of a preview."""
    for label, parts in facts:
        yield f"  {label:<11}{' '.join(words for words, _ in parts)}"


def quote_block(title: str, text: str) -> Iterator[str]:
    """Yield a title and, below it, the whole untrusted text. A bar begins each line of the text."""
    yield from ("", f"  {title}:")
    for piece in safe_pieces(text):
        yield f"    {piece.text}" if piece.counted else f"  {'│ ' if piece.begins else '│›'}{piece.text}"


def refuse_placeholder(*words: str | None) -> None:
    """Raise UsageError if a word is still a placeholder, such as TEXT, of a printed command line."""
    for word in {*words} & {PLACEHOLDER, "MODE"}:
        raise UsageError(f"not recorded: {word} stands for words of yours; write them in its place")


def require_all_answered(option: str, answers: Sequence[str], questions: Sequence[str]) -> None:
    """Raise UsageError unless there is one answer for each question."""
    if len(answers) != len(questions):
        given = f"{plural(len(answers), 'answer')} to {plural(len(questions), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one, 300)}" for number, one in enumerate(questions, 1))
        raise UsageError(f"not recorded: {given}; give one {option} for each, in this order:{asked}")


def print_recorded(made: DecisionMade, what: str) -> None:
    """Print the id of the recorded decision. If the same decision was recorded before, print also who made it."""
    record = made.record
    before = "" if made.fresh else f"before: {clean(record.operator, 60)} said {record.action} at {record.created_at}; "
    print_text(f"recorded: {before}{what} {record.decision_id}")
    if made.doubt:
        print_error(made.doubt)


def confirm(options: Namespace, preview: Iterable[str], what: str) -> bool:
    """Print a preview, and tell whether the operator confirms it. `--yes` confirms without a question."""
    for line in preview:
        print_text(line)
    if options.yes:
        return True
    if ask_to_confirm(f"Record this {what}?"):
        return True
    print_text("nothing is recorded")
    return False
