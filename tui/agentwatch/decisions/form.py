"""A decision as the operator fills it in: its fields, what is missing, and the document that it hands on. Pure.

The dialog and `agentwatch decide` fill in the same forms. Labels and words are ours; questions and options are foreign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from agentwatch.decisions import policy
from agentwatch.decisions.handoff import Proposal, next_handoff, report
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject, refusal
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Seen
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import Task
from agentwatch.view.words import plural

MOST_QUERIES: Final = 24
MOST_OPTIONS: Final = 60
"""Questions, and options of one, beyond which a request is answered in its program."""
LONGEST_RULE: Final = 1_000
LONGEST: Final = 2_000
"""Characters of a question, a label or a description: all of it can be read, or it is not answered here."""
_MOST_QUESTIONS: Final = 12
"""Questions of a child with a field of their own; those behind share one."""
_MITIGATIONS: Final = {
    None: "no",
    Mitigation.CHANGED_INPUTS: "changed inputs",
    Mitigation.REDUCED_SCOPE: "reduced scope",
    Mitigation.CORRECTED_CONSTRAINTS: "corrected constraints",
}


@dataclass
class Field:
    """Options to choose from, words to write, or both. `taken` are the places of those that are chosen."""

    key: str
    label: str = ""
    options: Sequence[tuple[str, str]] = ()
    """Words and description of each."""
    taken: list[int] = field(default_factory=list)
    several: bool = False
    placeholder: str = ""
    """Blank where nothing can be written."""
    text: str = ""
    question: str | None = None
    """Stands above."""

    @property
    def choice(self) -> int | None:
        """The place of the one that is taken."""
        return self.taken[0] if self.taken else None

    @property
    def answers(self) -> list[str]:
        """All that is chosen and written."""
        written = [self.text.strip()] if self.text.strip() else []
        return [*(self.options[number][0] for number in sorted(self.taken)), *written]


class Missing(NamedTuple):
    """What has to be done before a decision can be recorded, and the key of the field in which it can be done, with
    `.text` behind it for its words."""

    reason: str
    key: str = ""


class Face(NamedTuple):
    """How an action is called in a form, and its note; the label of a note that cannot be given is blank."""

    glyph: str
    word: str
    note: str = "note"
    placeholder: str = "in your words, for the agent that carries it out"
    document: str = ""
    """How sentences call the document that is handed on; blank where there is none."""
    title: str = ""


_NEXT: Final = "the next handoff: agents' words, as amended"
FACES: Final = {
    Action.RETRY: Face("↻", "Retry", document="handoff", title=_NEXT),
    Action.ESCALATE: Face("↑", "Escalate", document="handoff", title=_NEXT),
    Action.ABORT: Face("–", "Abort", "why", "stands in the report", "report", "the final error report"),
    Action.RESPOND: Face("»", "Answer", placeholder="anything else that you want to say"),
    Action.ACCEPT: Face("✓", "Accept", "because", "why it is good enough"),
}


class DecisionForm:
    """The form of an action about an attempt. `tasks` and `modes` are those among which a mode can be chosen."""

    def __init__(
        self,
        task: Task,
        subject: Subject,
        action: Action,
        tasks: Iterable[Task] = (),
        modes: Mapping[str, str] | None = None,
    ) -> None:
        self.task, self.subject, self._action = task, subject, action
        self.face = FACES[action]
        self.first = "note"
        """The field to begin with."""
        self.fields: list[Field] = []
        if action is Action.RETRY:
            words = [(name, "") for name in _MITIGATIONS.values()]
            self.fields.append(Field("mitigation", "different", words, [0]))
            if task.retry.hint:
                self.fields.append(Field("hint", "hint", [("hand it on", ""), ("leave it out", "")], [0]))
        elif action is Action.ESCALATE:
            self._add_modes(policy.offered_modes(task, tasks, modes or {}), modes or {})
        elif action is Action.ABORT:
            below = task.below.open if task.below else 0
            others = f" and the {plural(below, 'open task')} below it" if below else ""
            self.first = "sure"
            self.fields.append(Field("sure", "abort", [("no", ""), (f"yes, end this task{others}", "")], [0]))
        elif action is Action.RESPOND:
            self._add_questions(task.result.blockers if task.result else ())

    def _add_modes(self, offered: Sequence[str], configured: Mapping[str, str]) -> None:
        # One that was merely seen somewhere is nobody's advice: the operator takes it, or another.
        is_advised = bool(offered) and offered[0] in {FITTER, *configured}
        placeholder = "any other mode" if offered else "none was seen yet: which one?"
        options = [(mode, configured.get(mode, "")) for mode in offered]
        self.fields.append(Field("mode", "mode", options, [0] if is_advised else [], placeholder=placeholder))
        self.first = "note" if is_advised else "mode"

    def _add_questions(self, blockers: Sequence[str]) -> None:
        self.first = "0"
        for number, question in enumerate(blockers[:_MOST_QUESTIONS] or [None]):
            self.fields.append(Field(str(number), placeholder="your answer", question=question))
        if (others := len(blockers) - _MOST_QUESTIONS) > 0:
            words = f"your answer to the other {plural(others, 'question')}"
            self.fields.append(Field(str(_MOST_QUESTIONS), placeholder=words))

    @property
    def action(self) -> Action:
        return self._action

    def __getitem__(self, key: str) -> Field:
        return next(one for one in self.fields if one.key == key)

    def choose(self, *, mitigation: Mitigation | None = None, mode: str | None = None) -> None:
        """Fill in the fields that an action has."""
        if self.action is Action.RETRY:
            self["mitigation"].taken = [list(_MITIGATIONS).index(mitigation)]
        elif self.action is Action.ESCALATE:
            self["mode"].taken, self["mode"].text = [], mode or ""

    @property
    def mode(self) -> str | None:
        """The mode to escalate to: what was written comes before what was chosen."""
        return self["mode"].answers[-1] if self.action is Action.ESCALATE and self["mode"].answers else None

    def params(self) -> Params:
        """The parameters without a document: the policy asks for no more."""
        if self.action is Action.RETRY:
            return Params(mitigation=list(_MITIGATIONS)[self["mitigation"].choice or 0])
        if self.action is Action.RESPOND:
            answers = (Answer(one.question, one.text.strip()) for one in self.fields if one.text.strip())
            return Params(answers=tuple(answers))
        return Params(mode=self.mode)

    def recorded(self, document: str | None) -> Params:
        """The parameters with this document."""
        if self.action is Action.ABORT:
            return Params(report=document)
        return replace(self.params(), handoff=document or None) if self.face.document else self.params()

    def missing(self, task: Task, note: str) -> Missing | None:
        """The step that the operator has to take first, a sentence in small letters."""
        blank = [one for one in self.fields if not one.answers]
        key = blank[0].key if blank else next((one.key for one in self.fields if one.key != "hint"), "note")
        if reason := policy.refusal(task, self.action, self.params(), note):
            # With a mitigation it may be allowed: then the operator can do something about it here.
            is_allowed = policy.options(task, mitigation=Mitigation.REDUCED_SCOPE)[self.action].allowed
            return Missing(reason, key if is_allowed else "")
        if self.action is Action.ABORT and not self["sure"].choice:
            return Missing("say yes, with an arrow key on “abort”", key)
        if self.action is Action.RESPOND and blank:
            # An agent that gets only some answers would go on without the others.
            words = f"answer each of its {plural(len(self.fields), 'question')}: {len(blank)} left"
            return Missing(words, key)
        return None

    def propose(
        self, text_of: Callable[[Seen], str | None], note: str, failed: Sequence[Task], operator: str
    ) -> Proposal:
        """The document as the fields say it now. It may read files, and takes a while. Raises DecisionError."""
        if self.action is Action.ABORT:
            return report(self.task, failed, note=note, operator=operator)
        is_left_out = self.action is Action.RETRY and bool(self.task.retry.hint) and self["hint"].choice == 1
        hint = None if is_left_out else self.task.retry.hint
        return next_handoff(self.task, self.subject, text_of, note=note, hint=hint, mode=self.mode)


def unfit(request: Request) -> str | None:
    """Why a request cannot be answered in a dialog, in a sentence; None where it can."""
    texts = [
        text for one in request.queries for text in (one.question, *(part for pair in one.options for part in pair))
    ]
    options = max((len(one.options) for one in request.queries), default=0)
    if len(request.queries) > MOST_QUERIES or options > MOST_OPTIONS or max(map(len, texts), default=0) > LONGEST:
        return "what it asks is too long to be read here: answer it in its program"
    return None


class RequestForm:
    """The answers that a request takes. Nothing is chosen beforehand, but that a question is to be answered."""

    def __init__(self, request: Request) -> None:
        self.request = request
        note = "words" if request.words and Action.DENY in request.actions else ""
        word = "Allow?" if request.kind is RequestKind.PERMISSION else "Answer"
        self.face = Face("■", word, note, "to the model, with a denial")
        # Those that can be read in full.
        rules = [rule for rule in request.rules if len(rule) < LONGEST_RULE]
        self.rules = {f"rule {number}" if len(rules) > 1 else "the rule": rule for number, rule in enumerate(rules, 1)}
        names = {
            Action.ALLOW: "allow once",
            Action.DENY: "deny, with words" if request.words else "deny",
            Action.ANSWER: "answer it below",
        }
        self._ways: list[tuple[str, Action, str | None]] = [(names[one], one, None) for one in request.actions]
        if Action.ALLOW in request.actions:
            self._ways += [(f"allow by {name}", Action.ALLOW, rule) for name, rule in self.rules.items()]
        is_question = bool(request.queries) and self._ways[0][1] is Action.ANSWER
        way = Field("answer", "answer", [(words, "") for words, *_ in self._ways], [0] if is_question else [])
        queries = request.queries if Action.ANSWER in request.actions else ()
        self.questions = [
            Field(
                str(number),
                options=query.options,
                several=query.several,
                placeholder="or in your own words" if query.options else "your answer",
                question=query.question,
            )
            for number, query in enumerate(queries)
        ]
        self.fields = [way, *self.questions]
        self.first = "0" if is_question else "answer"

    @property
    def action(self) -> Action | None:
        """The way that is chosen, None where none is yet."""
        choice = self.fields[0].choice
        return None if choice is None else self._ways[choice][1]

    def params(self) -> Params:
        """The parameters to be recorded."""
        if self.action is Action.ANSWER:
            given = (Answer(one.question, answer) for one in self.questions for answer in one.answers)
            return Params(answers=tuple(given))
        choice = self.fields[0].choice
        return Params(rule=None if choice is None else self._ways[choice][2])

    def missing(self, note: str, unread: str) -> Missing | None:
        """The step that the operator has to take first; `unread` is the part of the call not in sight yet."""
        if self.action is None:
            return Missing("choose an answer, with an arrow key", "answer")
        if self.action is Action.ANSWER:
            if blank := [one for one in self.questions if not one.answers]:
                many = f"{len(blank)} of {plural(len(self.questions), 'question')} not answered"
                return Missing(many if len(self.questions) > 1 else "answer its question", blank[0].key)
            for one in self.questions:
                if len(one.answers) > 1 and not one.several:
                    return Missing("one answer: an option, or your own words", f"{one.key}.text")
        if note and self.action is not Action.DENY:
            return Missing("words go with a denial only: clear them, or deny", "note")
        if unread and self.action is Action.ALLOW:
            return Missing(unread, "words")
        reason = refusal(self.request, self.action, self.params(), note)
        return Missing(reason, self.first) if reason else None
