"""The command that answers what a program asks."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from agentwatch.cli.command import PLACE, YES, argument, command, flag, one_of
from agentwatch.cli.shared import (
    PLACEHOLDER,
    barred,
    confirmed,
    desk_in,
    fact_lines,
    passphrase,
    refuse_placeholder,
    refuse_uneven,
    require_yes,
    say_recorded,
    target_of,
)
from agentwatch.composition import desk_of, inbox_of, scanned
from agentwatch.config import Settings, load
from agentwatch.decisions.form import DIGITS, LONGEST, request_facts, words_of_request
from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Query, Request, RequestStage
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.requests.store import Inbox
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, exact, quoted, say
from agentwatch.view.words import plural

_DELIVERED_SECONDS: Final = 3.0


@command(
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
    exit_codes="exit codes: 0 recorded, 1 you said no, or the request does not take this answer, 4 nobody waits for an"
    " answer any more, 6 answered before, and differently, 2 wrong usage, or the key or the disk refused",
)
def answer(options: Namespace) -> int:
    """Answer a permission or a question of a program that waits for it, after one more question."""
    if options.rule is not None and not options.allow:
        raise UsageError("--rule belongs to --allow: it is what else is allowed")
    require_yes(options)
    settings = load()
    with target_of(options.path, settings) as (workspace, far):
        monitor = far.scanned(workspace, settings, passphrase()) if far is not None else None
        return answer_request(options, workspace, settings, monitor)


def answer_request(options: Namespace, workspace: Path, settings: Settings, far: Monitor | None) -> int:
    """Answer the request whose id starts so; `far` has looked at the workspace where it is on a host, which looks after
    the request itself. Returns the exit code; raises DecisionError and UsageError."""
    inbox = inbox_of(workspace) if far is None else None
    if far is None:
        desk = desk_of(workspace, settings, passphrase())
        monitor = scanned(workspace, settings, desk=desk, inspects=False, requests=True)
    else:
        monitor = far
    complain_of(monitor.problems)
    tasks = monitor.tree.tasks
    known = inbox.store.read() if inbox else [one for task in tasks.values() for one in task.requests if one.is_open]
    request = _find(known, options.request)
    action = Action.ALLOW if options.allow else Action.DENY if options.deny is not None else Action.ANSWER
    params, note = _params(request, options), options.deny or ""
    for line in _lines(request, action, params, note):
        say(line)
    if not options.yes and not confirmed("Record this answer?"):
        say("nothing is recorded")
        return ExitCode.NOT
    asked = monitor.tree.request(request.request_id)
    made = desk_in(monitor).answer(
        request,
        action,
        params,
        gone=partial(inbox.gone, request) if inbox is not None else lambda: None,
        task_id=request.session_id if asked is None else asked.task_id,
        attempt=1 if asked is None else max(tasks[asked.task_id].attempt, 1),
        note=note,
    )
    say_recorded(made, "request")
    if inbox is None:
        say("its host hands it to the program: `agentwatch pending` says when that was")
    else:
        _await_delivery(inbox, request.request_id)
    return ExitCode.DONE


def _find(requests: Iterable[Request], start: str) -> Request:
    """The request whose id starts so; raises UsageError where it is none, or one of several."""
    word = start.lower()
    fitting = [one for one in requests if one.request_id.startswith(word)] if len(word) >= DIGITS else []
    if len(fitting) != 1:
        why = f"{plural(len(fitting), 'request')} begin with {quoted(start)}; give more of its id"
        none = f"no request {quoted(start)} is open here (its id, or the first {DIGITS} digits of it)"
        raise UsageError(f"{why if fitting else none}; `agentwatch pending` lists those that wait")
    return fitting[0]


def _params(request: Request, options: Namespace) -> Params:
    """The parameters of the answer. Raises UsageError where the options are not those of its questions."""
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
    """The options of a question with what is said of each, a line each of foreign text, cut there."""
    for option in query.options:
        yield clean(f"{exact(option.label, longest)}{option.description and f': {option.description}'}", longest)


def _lines(request: Request, action: Action, params: Params, note: str) -> Iterator[str]:
    """The preview of an answer, and the whole request. Foreign text is indented behind a bar."""
    yield from fact_lines(request_facts(request, time.time()))
    rule = f", and for the rest of its session {exact(params.rule, len(params.rule))}" if params.rule else ""
    yield from ("", f"  Your answer: {action}{rule}")
    if note:
        yield from barred("Your words to the model", note)
    for one in params.answers:
        options = [each.label for query in request.queries if query.question == one.question for each in query.options]
        own = "" if one.answer in options else " (your own words)"
        yield f"  {quoted(one.question or '', 300)} → {clean(one.answer, len(one.answer))}{own}"
    for number, query in enumerate(request.queries, 1):
        yield from barred(f"Question {number}{', which takes several' if query.several else ''}", query.question)
        yield from (f"  │   - {one}" for one in options_of(query, LONGEST))
    for label, text in words_of_request(request):
        yield from barred(label, text)


def _await_delivery(inbox: Inbox, request_id: str) -> None:
    """Say whether the program that waits has the answer, once it has, or after a while."""
    end, stage = time.monotonic() + _DELIVERED_SECONDS, RequestStage.OFFERED
    while stage is RequestStage.OFFERED and time.monotonic() < end:
        time.sleep(0.05)
        request = inbox.store.find(request_id)
        stage = request.stage if request is not None else RequestStage.GONE
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
