"""Answer a permission or a question of a program that waits for it, after one more question."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.cli.command import PLACE, YES, argument, flag, one_of
from agentwatch.cli.shared import (
    PLACEHOLDER,
    barred,
    confirmed,
    fact_lines,
    is_on_terminal,
    passphrase,
    refuse_placeholder,
    target_of,
)
from agentwatch.composition import desk_of, inbox_of, scanned
from agentwatch.config import Settings, load
from agentwatch.decisions.errors import DecisionError, NotAllowedError, RequestGoneError
from agentwatch.decisions.form import DIGITS, LONGEST, request_facts, words_of_request
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import AlreadyDecidedError, Answer, Params, refusal
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Query, Request, RequestStage
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.requests.store import Inbox
from agentwatch.text import clean, complain, exact, quoted, say
from agentwatch.view.words import plural

ARGUMENTS: Final = (
    argument("request", "REQUEST", "its id, or the first 8 digits of it", offers="requests"),
    PLACE,
    *one_of(
        flag("--allow", "allow it, once"),
        argument("--deny", "TEXT", "deny it, with words to the model where it takes any", nargs="?", const=""),
        argument(
            "--option",
            "TEXT",
            "answer its question, with an option of it or your own words; again for the next question; several choices"
            " a line each",
            action="append",
        ),
        required=True,
    ),
    argument("--rule", "RULE", "with --allow: what else is allowed for the rest of its session, as the request has it"),
    YES,
)
EXIT_CODES: Final = (
    "exit codes: 0 recorded, 1 you said no, or the request does not take this answer, 4 nobody waits for an answer any"
    " more, 6 answered before, and differently, 2 wrong usage, or the key or the disk refused"
)
_DELIVERED_SECONDS: Final = 3.0
_PAUSE_SECONDS: Final = 0.05


class Wish(NamedTuple):
    """The answer that the operator asks for. `options` are in the order of the questions."""

    action: Action
    note: str = ""
    options: tuple[str, ...] = ()
    rule: str | None = None


def run(options: Namespace) -> int:
    """Answer here or on a host. Raises UsageError and DecisionError."""
    if options.rule is not None and not options.allow:
        raise UsageError("--rule belongs to --allow: it is what else is allowed")
    action = Action.ALLOW if options.allow else Action.ANSWER if options.option is not None else Action.DENY
    wish, settings = Wish(action, options.deny or "", tuple(options.option or ()), options.rule), load()
    with target_of(options.path, settings) as (workspace, far):
        monitor = far.scanned(workspace, settings, passphrase=passphrase()) if far is not None else None
        return answer(workspace, options.request, wish, settings=settings, yes=options.yes, far=monitor)


def answer(
    workspace: Path, start: str, wish: Wish, *, settings: Settings, yes: bool, far: Monitor | None = None
) -> int:
    """Answer the request whose id starts so; `far` has looked at the workspace where it is on a host, which looks after
    the request itself. Returns one of `ExitCode`. Raises DecisionError and UsageError."""
    inbox = inbox_of(workspace) if far is None else None
    desk: DecisionService | None = far.clerk.desk if far is not None and far.clerk is not None else None
    desk = desk or desk_of(workspace, settings, passphrase())
    if (unreachable := desk.unreachable) is not None:
        raise DecisionError(f"not recorded: {unreachable}")
    if inbox is not None:
        known = inbox.store.read()
        for problem in inbox.store.problems:
            complain(clean(problem))
    else:
        known = [one for task in far.tree.tasks.values() for one in task.requests if one.is_open] if far else []
    request = found(known, start)
    params = params_of(request, wish)
    if not (yes or is_on_terminal()):
        raise UsageError("there is no terminal to ask on; say --yes")
    gone = partial(inbox.gone, request) if inbox is not None else lambda: None
    entry = desk.read().latest.get(request.request_id)
    before = None if entry is None or entry.record.is_expired(datetime.now(UTC)) else entry.record
    if before is not None and (before.action, before.params, before.note) != (wish.action, params, wish.note):
        raise AlreadyDecidedError(before)
    # An answer that was given in the same way counts, however the request ended.
    why = None if before is not None else gone()
    if why is not None:
        raise RequestGoneError(f"not recorded: {why}")
    if (why := refusal(request, wish.action, params, wish.note)) is not None:
        raise NotAllowedError(f"not recorded: {why}")
    for line in lines(request, wish, params, time.time()):
        say(line)
    if not yes and not confirmed("Record this answer?"):
        say("nothing is recorded")
        return ExitCode.NOT
    tree = scanned(workspace, settings, inspects=False, requests=True).tree if far is None else far.tree
    asked = tree.request(request.request_id)
    task_id = request.session_id if asked is None else asked.task_id
    attempt = 1 if asked is None else max(tree.tasks[task_id].attempt, 1)
    made = desk.answer(request, wish.action, params, gone=gone, task_id=task_id, attempt=attempt, note=wish.note)
    _tell(inbox, made)
    return ExitCode.DONE


def found(requests: Iterable[Request], start: str) -> Request:
    """The request whose id starts so; raises UsageError where it is none, or one of several."""
    word = start.lower()
    fitting = [one for one in requests if one.request_id.startswith(word)] if len(word) >= DIGITS else []
    if len(fitting) == 1:
        return fitting[0]
    known = "`agentwatch pending` lists those that wait"
    if fitting:
        raise UsageError(f"{plural(len(fitting), 'request')} begin with {quoted(start)}; give more of its id; {known}")
    raise UsageError(f"no request {quoted(start)} is open here (its id, or the first {DIGITS} digits of it); {known}")


def params_of(request: Request, wish: Wish) -> Params:
    """The parameters of the answer. Raises UsageError where the options are not those of its questions."""
    labels = {option.label for query in request.queries for option in query.options}
    if PLACEHOLDER not in labels:
        refuse_placeholder(wish.note, *wish.options)
    if wish.action is not Action.ANSWER:
        return Params(rule=wish.rule)
    queries = request.queries
    if len(wish.options) != len(queries):
        given = f"{plural(len(wish.options), 'answer')} to {plural(len(queries), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one.question, 300)}" for number, one in enumerate(queries, 1))
        raise UsageError(f"not recorded: {given}; give one --option for each, in this order:{asked}")
    answers: list[Answer] = []
    for query, text in zip(queries, wish.options, strict=True):
        chosen = [line for line in text.splitlines() if line.strip()] if query.several else [text]
        if joined := next((one for one in chosen if _is_joined(one, query)), None):
            how = "write each on a line of its own" if query.several else "it takes one"
            raise UsageError(f"not recorded: {quoted(joined, 300)} is several options of its question: {how}")
        answers += [Answer(query.question, one) for one in chosen]
    return Params(answers=tuple(answers))


def _is_joined(text: str, query: Query) -> bool:
    """Whether a text that is no option is made of several, and of nothing else but separators."""
    labels = sorted((option.label for option in query.options), key=len, reverse=True)
    if text in labels or not any(label in text for label in labels):
        return False
    for label in labels:
        text = text.replace(label, "")
    return not text.strip(", ;\n")


def options_of(query: Query, longest: int) -> Iterator[str]:
    """The options of a question with what is said of each, a line each of foreign text, cut there."""
    for option in query.options:
        yield clean(f"{exact(option.label, longest)}{option.description and f': {option.description}'}", longest)


def lines(request: Request, wish: Wish, params: Params, now: float) -> Iterator[str]:
    """The preview of an answer, and the whole request. Foreign text is indented behind a bar."""
    yield from fact_lines(request_facts(request, now))
    rule = f", and for the rest of its session {exact(wish.rule, len(wish.rule))}" if wish.rule else ""
    words = ", with words to the model:" if wish.note else ""
    yield from ("", f"  Your answer: {wish.action}{rule}{words}", *(barred(wish.note) if wish.note else ()))
    for one in params.answers:
        options = [each.label for query in request.queries if query.question == one.question for each in query.options]
        own = "" if one.answer in options else " (your own words)"
        yield f"  {quoted(one.question or '', 300)} → {clean(one.answer, len(one.answer))}{own}"
    for number, query in enumerate(request.queries, 1):
        several = ", which takes several" if query.several else ""
        yield from ("", f"  Question {number}{several}:", *barred(query.question))
        yield from (f"  │   - {one}" for one in options_of(query, LONGEST))
    for label, text in words_of_request(request):
        yield from ("", f"  {label}:", *barred(text))


def _tell(inbox: Inbox | None, made: DecisionMade) -> None:
    record = made.record
    before = "" if made.fresh else f"before: {clean(record.operator, 60)} said so at {record.created_at}; "
    say(f"recorded: {before}request {record.decision_id}")
    if made.doubt is not None:
        complain(clean(made.doubt))
    if inbox is None:
        say("its host hands it to the program: `agentwatch pending` says when that was")
        return
    end = time.monotonic() + _DELIVERED_SECONDS
    while True:
        request = inbox.store.find(record.decision_id)
        stage = request.stage if request is not None else RequestStage.GONE
        if stage is not RequestStage.OFFERED or time.monotonic() >= end:
            break
        time.sleep(_PAUSE_SECONDS)
    if stage is RequestStage.DELIVERED:
        say("delivered: its program has the answer")
    elif stage is RequestStage.OFFERED:
        say("not delivered yet: `agentwatch pending` says when its program has it")
    else:
        complain("not delivered: the request ended meanwhile, so this answers nothing")


def ways_of(request: Request) -> list[list[str]]:
    """The options that answer it, the plain one first. Words in capitals are for the operator to replace."""
    deny = ["--deny", PLACEHOLDER] if request.words else ["--deny"]
    options = ["--option", PLACEHOLDER] * max(len(request.queries), 1)
    known = {Action.ALLOW: ["--allow"], Action.DENY: deny, Action.ANSWER: options}
    return [known[action] for action in request.actions if action in known]
