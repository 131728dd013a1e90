"""What stands in the dialog of a request: its answers, its questions, and the call itself, whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget

from agentwatch.app.dialogs.fields import Choice, Options, Row, line_input
from agentwatch.app.dialogs.forms import BAR, QUOTED, Form, Question
from agentwatch.app.dialogs.frame import Wanted
from agentwatch.app.markdown_safe import FAINT, Line, Text
from agentwatch.app.widgets.cells import shown
from agentwatch.app.widgets.details.blocks import Block
from agentwatch.decisions.record import Answer, Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Query, Request, RequestKind
from agentwatch.text import exact, whole
from agentwatch.view.requests import whole_input
from agentwatch.view.words import plural

MOST_QUERIES: Final = 24
MOST_OPTIONS: Final = 60
"""Questions, and options of one, beyond which a request is answered in its program."""
LONGEST_RULE: Final = 1_000
_LONGEST: Final = 2_000
"""Characters of a question, a label or a description: all of it can be read, or it is not answered here."""
_GOES_ON: Final = "┊›"
"""In front of what goes on from the line above, which has not ended there."""

_DONE: Final = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}


def unfit(request: Request) -> str | None:
    """Why a request cannot be answered in a dialog, in a sentence; None where it can."""
    texts = [
        text for one in request.queries for text in (one.question, *(part for pair in one.options for part in pair))
    ]
    options = max((len(one.options) for one in request.queries), default=0)
    if len(request.queries) > MOST_QUERIES or options > MOST_OPTIONS or max(map(len, texts), default=0) > _LONGEST:
        return "what it asks is too long to be read here: answer it in its program"
    return None


class Rule(NamedTuple):
    """A rule that a request offers, and how it is called here."""

    name: str
    text: str


class _Asked:
    """One question with the fields of its answer."""

    def __init__(self, query: Query) -> None:
        self.query = query
        labels = [(exact(one.label, _LONGEST), shown(one.description, _LONGEST)) for one in query.options]
        self.options = Options(labels, several=query.several) if labels else None
        self.words = line_input("or in your own words" if labels else "your answer", max_length=4_000)

    @property
    def answers(self) -> list[str]:
        taken = self.options.taken if self.options is not None else []
        own = self.words.value.strip()
        return [*(self.query.options[number].label for number in taken), *([own] if own else [])]

    @property
    def first(self) -> Widget:
        return self.words if self.options is None else self.options


class RequestForm(Form):
    """The answers that a request takes. Nothing is chosen beforehand, but that a question is to be answered."""

    glyph = "■"
    note_placeholder = "to the model, with a denial"

    def __init__(self, request: Request) -> None:
        self.word = "Allow?" if request.kind is RequestKind.PERMISSION else "Answer"
        self.note_label = "words" if request.words and Action.DENY in request.actions else ""
        self.rules = rules_of(request)
        self._asked = [_Asked(query) for query in request.queries] if Action.ANSWER in request.actions else []
        self._ways: list[tuple[str, Action, str | None]] = []
        for action in request.actions:
            if action is Action.ALLOW:
                self._ways.append(("allow once", action, None))
            elif action is Action.ANSWER:
                self._ways.append(("answer it below", action, None))
            else:
                self._ways.append(("deny, with words" if request.words else "deny", action, None))
        if Action.ALLOW in request.actions:
            self._ways += [(f"allow by {rule.name}", Action.ALLOW, rule.text) for rule in self.rules]
        chosen = 0 if self._asked and self._ways[0][1] is Action.ANSWER else None
        self.choice = Choice([words for words, *_ in self._ways], chosen, id="answers-it")
        self.first = self._asked[0].first if chosen == 0 else self.choice

    @property
    def action(self) -> Action | None:
        """What is chosen, None where nothing is yet."""
        return None if self.choice.chosen is None else self._ways[self.choice.chosen][1]

    @property
    def done(self) -> str:
        """What the operator has done, in words that go on with the program."""
        return _DONE[self.action] if self.action is not None else ""

    def rows(self) -> Iterator[Row]:
        yield Row("answer", self.choice)

    def below(self) -> ComposeResult:
        if self._asked:
            with VerticalScroll(id="answers", can_focus=False) as answers:
                answers.border_title = "your answers, below its questions"
                for asked in self._asked:
                    yield Question(asked.query.question, _LONGEST)
                    if asked.options is not None:
                        yield asked.options
                    yield asked.words

    def params(self) -> Params:
        if self.action is Action.ANSWER:
            given = (Answer(one.query.question, answer) for one in self._asked for answer in one.answers)
            return Params(answers=tuple(given))
        return Params(rule=self._ways[self.choice.chosen][2] if self.choice.chosen is not None else None)

    def lacks(self) -> Wanted | None:
        """What is not filled in yet."""
        if self.action is None:
            return Wanted("choose an answer, with an arrow key", self.choice)
        blank = [one for one in self._asked if not one.answers] if self.action is Action.ANSWER else []
        if not blank:
            return None
        many = len(self._asked)
        reason = f"{len(blank)} of {plural(many, 'question')} not answered" if many > 1 else "answer its question"
        return Wanted(reason, blank[0].first)

    def field_of(self, question: str) -> Widget:
        """Where a question is answered."""
        return next((one.words for one in self._asked if one.query.question == question), self.choice)

    def twice(self) -> Wanted | None:
        """A question with two answers that takes one."""
        several = (one for one in self._asked if len(one.answers) > 1 and not one.query.several)
        one = next(several, None) if self.action is Action.ANSWER else None
        return Wanted("one answer: an option, or your own words", one.words) if one is not None else None


def rules_of(request: Request) -> list[Rule]:
    """Those that can be read in full."""
    whole = [rule for rule in request.rules if len(rule) < LONGEST_RULE]
    return [Rule(f"rule {number}" if len(whole) > 1 else "the rule", rule) for number, rule in enumerate(whole, 1)]


class Verbatim(NamedTuple):
    """Foreign text under a label of ours, whole, line by line: what goes on in another line is told from a new one."""

    label: str
    source: str

    def lines(self, width: int) -> Iterator[Line]:
        under, goes_on = " " * QUOTED + BAR, " " * QUOTED + _GOES_ON
        first = Content.styled(f"{self.label:<{QUOTED}}{BAR}", FAINT)
        for piece in whole(self.source):
            mark = first if piece.begins else Content.styled(goes_on, FAINT)
            part = Content.styled(piece.text, FAINT) if piece.counted else Content(piece.text)
            yield from Text(part, mark, goes_on, wrap=False).lines(width)
            first = Content.styled(under, FAINT)


def content(request: Request) -> Iterator[Block]:
    """The call itself, and what it is given besides; then what the model says of it, which rule would cover it, and the
    exact input. Questions stand above their answers."""
    if request.kind is RequestKind.PERMISSION:
        yield Verbatim("the call", request.shown or request.input)
        if request.beside:
            yield Verbatim("besides", "\n".join(map(str, request.beside)))
    if request.said:
        yield Verbatim("model says", request.said)
    if request.covered_by:
        yield Verbatim("own rules", f"none allows it; this would: {request.covered_by}")
    if request.kind is not RequestKind.QUESTION and (rest := whole_input(request)):
        yield Verbatim("as JSON", rest)
