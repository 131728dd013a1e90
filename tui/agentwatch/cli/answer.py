"""The command that answers what a program asks."""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator

from agentwatch.cli.command import PLACE, YES, argument, command, flag, one_of
from agentwatch.cli.shared import (
    PLACEHOLDER,
    barred,
    confirmed,
    deciding_in,
    fact_lines,
    refuse_placeholder,
    refuse_uneven,
    say_recorded,
)
from agentwatch.decisions.form import DIGITS, LONGEST, request_facts, words_of_request
from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Query, Request
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view.words import plural


@command(
    argument("request", "REQUEST", "its id, or the first 8 digits of it"),
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
    with deciding_in(options) as look:
        return answer_request(options, look())


def answer_request(options: Namespace, monitor: Monitor) -> int:
    """Answer the request whose id starts so. Returns the exit code; raises DecisionError and UsageError."""
    complain_of(monitor.problems)
    request = _find([one for task in monitor.tree.tasks.values() for one in task.requests], options.request)
    action = Action.ALLOW if options.allow else Action.DENY if options.deny is not None else Action.ANSWER
    params, note = _params(request, options), options.deny or ""
    if not confirmed(options, _lines(request, action, params, note), "answer"):
        return ExitCode.NOT
    made = asyncio.run(monitor.answer(request, action, params, note))
    say_recorded(made, "request")
    say("`agentwatch pending` says when its program has it")
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
        yield f"  {quoted(one.question or '', 300)} → {clean(one.answer, len(one.answer))}"
    for number, query in enumerate(request.queries, 1):
        yield from barred(f"Question {number}{', which takes several' if query.several else ''}", query.question)
        yield from (f"  │   - {one}" for one in options_of(query, LONGEST))
    for label, text in words_of_request(request):
        yield from barred(label, text)


def ways_of(request: Request) -> list[list[str]]:
    """The options that answer it, the plain one first. Words in capitals are for the operator to replace."""
    deny = ["--deny", PLACEHOLDER] if request.words else ["--deny"]
    options = ["--option", PLACEHOLDER] * max(len(request.queries), 1)
    known = {Action.ALLOW: ["--allow"], Action.DENY: deny, Action.ANSWER: options}
    return [known[action] for action in request.actions if action in known]
