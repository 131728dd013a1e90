"""What stands in a dialog: the fields of its action, and what the child said, each line of it behind a bar of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.fields import Choice, Row, line_input
from agentwatch.app.markdown_safe import FAINT, Line, Text
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.policy import offered_modes
from agentwatch.decisions.proposal import Proposal, next_handoff, report
from agentwatch.decisions.record import Answer, Mitigation, Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import Task
from agentwatch.text import clean_lines
from agentwatch.view.looks import false_claims
from agentwatch.view.words import plural

MOST_LINES: Final = 400
"""Lines of a return that are shown beside a decision; the details have the rest."""
BAR: Final = "┊ "
"""In front of every line of foreign text."""
QUOTED: Final = 13
"""Cells of the column with the labels of what is quoted."""
_MODE_CELLS: Final = 24
_MOST_QUESTIONS: Final = 12
"""Questions with a field of their own; those behind share one."""
_LONGEST_QUESTION: Final = 600

_MITIGATIONS: Final = {
    None: "no",
    Mitigation.CHANGED_INPUTS: "changed inputs",
    Mitigation.REDUCED_SCOPE: "reduced scope",
    Mitigation.CORRECTED_CONSTRAINTS: "corrected constraints",
}


class Form:
    """The fields of a dialog. `first` has the focus at the beginning, None for the note."""

    glyph: ClassVar[str]
    word: str
    note_label: str = "note"
    """Blank where there is no note."""
    note_placeholder: ClassVar[str] = "in your words, for the agent that carries it out"
    first: Widget | None = None
    wanted: Widget | None = None
    """The field without which nothing is recorded; None for the note."""

    def rows(self) -> Iterator[Row]:
        """What stands above the note."""
        return iter(())

    def below(self) -> ComposeResult:
        """What stands between the frame and the words of others."""
        return iter(())

    def params(self) -> Params:
        """What is recorded, but for a document: the policy asks for no more."""
        return Params()

    def missing(self) -> str | None:
        """What the operator has to do first, a sentence in small letters; None if all is there."""
        return None

    def update(self) -> None:
        """Something has changed, or a second has passed."""


class AttemptForm(Form):
    """The fields of one action about an attempt."""

    document: Document | None = None
    """What is handed on, if anything is."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def below(self) -> ComposeResult:
        if self.document is not None:
            yield self.document

    def recorded(self, text: str) -> Params:
        """What is recorded with this document."""
        return self.params()._replace(handoff=text or None)

    def update(self) -> None:
        if self.document is not None:
            self.document.show_status()


class AcceptForm(AttemptForm):
    """A partial, invalid or contradicted return is good enough as it is: nothing more is asked of the child."""

    glyph, word = "✓", "Accept"
    note_label = "because"
    note_placeholder = "why it is good enough"


class RetryForm(AttemptForm):
    """The next attempt of the same task."""

    glyph, word = "↻", "Retry"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._mitigation = self.wanted = Choice(list(_MITIGATIONS.values()), id="mitigation")
        self._hint = Choice(("hand it on", "leave it out"), id="hint")
        self.document = Document(case, self._maker)

    def rows(self) -> Iterator[Row]:
        yield Row("different", self._mitigation)
        if self.case.seen.retry.hint:
            yield Row("hint", self._hint)

    def params(self) -> Params:
        return Params(mitigation=list(_MITIGATIONS)[self._mitigation.chosen or 0])

    def _maker(self, task: Task, note: str) -> Callable[[], Proposal]:
        hint = task.retry.hint if self._hint.chosen == 0 else None
        return lambda: next_handoff(task, self.case.subject, self.case.monitor.text, note=note, hint=hint)


class EscalateForm(AttemptForm):
    """The next attempt in another mode; a line fault goes to the fitter."""

    glyph, word = "↑", "Escalate"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._purposes = dict(case.monitor.settings.modes)
        self._modes = offered_modes(case.seen, case.monitor.tree.tasks.values(), self._purposes)
        # Agents have written these words: each is one option, with nothing of ours behind it on its line.
        # One that was merely seen somewhere is nobody's advice: the operator takes it, or another.
        is_advised = bool(self._modes) and self._modes[0] in {FITTER, *self._purposes}
        self._choice = Choice(
            [clip(shown(mode), _MODE_CELLS) for mode in self._modes], 0 if is_advised else None, id="modes"
        )
        placeholder = "any other mode" if self._modes else "none was seen yet: which one?"
        self._other = line_input(placeholder, max_length=200, id="mode")
        self._purpose = Static(id="purpose", markup=False)
        self.wanted = self._choice if self._modes else self._other
        self.first = None if is_advised else self.wanted
        self.document = Document(case, self._maker)

    def rows(self) -> Iterator[Row]:
        if self._modes:
            yield Row("mode", self._choice)
        yield Row("other" if self._modes else "mode", self._other)
        if any(self._purposes.values()):
            yield Row("it is for", self._purpose)

    def update(self) -> None:
        super().update()
        self._purpose.update(shown(self._purposes.get(self._mode or "", ""), 200) or "-")

    def params(self) -> Params:
        return Params(mode=self._mode)

    @property
    def _mode(self) -> str | None:
        """The mode to escalate to: what was written comes before what was chosen."""
        written, chosen = self._other.value.strip(), self._choice.chosen
        return written or (self._modes[chosen] if self._modes and chosen is not None else None)

    def _maker(self, task: Task, note: str) -> Callable[[], Proposal]:
        case, mode = self.case, self._mode
        return lambda: next_handoff(task, case.subject, case.monitor.text, note=note, hint=task.retry.hint, mode=mode)


class AbortForm(AttemptForm):
    """The end of a task and of what is below it, with an error report. The key counts once it is confirmed in words."""

    glyph, word = "–", "Abort"
    note_label = "why"
    note_placeholder = "stands in the report"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        below = case.seen.below.open if case.seen.below else 0
        others = f" and the {plural(below, 'open task')} below it" if below else ""
        self._sure = self.first = self.wanted = Choice(("no", f"yes, end this task{others}"), id="sure")
        self.document = Document(case, self._maker, "report", "the final error report")

    def rows(self) -> Iterator[Row]:
        yield Row("abort", self._sure)

    def missing(self) -> str | None:
        return None if self._sure.chosen else "say yes, with an arrow key on “abort”"

    def recorded(self, text: str) -> Params:
        return Params(report=text)

    def _maker(self, task: Task, note: str) -> Callable[[], Proposal]:
        failed = list(self.case.monitor.tree.failed_below(task))
        return lambda: report(task, failed, note=note, operator=operator_name())


class RespondForm(AttemptForm):
    """The operator's answer below each thing that the child asks. The child goes on with them."""

    glyph, word = "»", "Answer"
    note_placeholder = "anything else that you want to say"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        blockers = case.seen.result.blockers if case.seen.result else ()
        questions: list[str | None] = list(blockers[:_MOST_QUESTIONS]) or [None]
        self._fields: list[tuple[str | None, Input]] = [(question, line_input("your answer")) for question in questions]
        if (others := len(blockers) - _MOST_QUESTIONS) > 0:
            self._fields.append((None, line_input(f"your answer to the other {plural(others, 'question')}")))
        self.first = self.wanted = self._fields[0][1]

    def below(self) -> ComposeResult:
        with VerticalScroll(id="answers", can_focus=False) as answers:
            answers.border_title = "your answers, below the child's questions"
            for question, field in self._fields:
                if question is not None:
                    yield Question(question)
                yield field

    def missing(self) -> str | None:
        """Every question needs its answer: an agent that gets only some would go on without the others."""
        blank = [field for _, field in self._fields if not field.value.strip()]
        self.wanted = blank[0] if blank else self._fields[0][1]
        if not blank:
            return None
        return f"answer each of its {plural(len(self._fields), 'question')}: {len(blank)} left"

    def params(self) -> Params:
        given = ((question, field.value.strip()) for question, field in self._fields)
        return Params(answers=tuple(Answer(question, answer) for question, answer in given if answer))


class Question(Widget):
    """What the child asks: each line of it begins behind the bar."""

    DEFAULT_CSS = "Question { height: auto; max-height: 6; text-wrap: nowrap; }"

    def __init__(self, source: str, longest: int = _LONGEST_QUESTION) -> None:
        super().__init__()
        self._source = Content(shown(source, longest))
        if longest > _LONGEST_QUESTION:
            self.styles.max_height = None

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self._lines(width))

    def _lines(self, width: int) -> list[Content]:
        return [Content.styled(BAR, FAINT) + line for line in self._source.wrap(max(width - len(BAR), 8))]


FORMS: Final[dict[Action, type[AttemptForm]]] = {
    Action.RETRY: RetryForm,
    Action.ESCALATE: EscalateForm,
    Action.ABORT: AbortForm,
    Action.RESPOND: RespondForm,
    Action.ACCEPT: AcceptForm,
}


# The child's words


class Quotation(NamedTuple):
    """Foreign text under a label of ours: whatever is in it, each of its lines begins behind the bar."""

    label: str
    source: str

    def lines(self, width: int) -> Iterator[Line]:
        shown, cut = clean_lines(self.source.removesuffix("\n"), MOST_LINES)
        under = " " * QUOTED + BAR
        first = Content.styled(f"{self.label:<{QUOTED}}{BAR}", FAINT)
        for line in shown:
            yield from Text(Content(line), first, under).lines(width)
            first = Content.styled(under, FAINT)
        if cut:
            yield Line(faint(cut))


def said(task: Task, returned: str | None) -> Iterator[Block]:
    """What the child says of this attempt. `returned` is the text of its return, None if it is not there (yet)."""
    result = task.result
    parts: list[tuple[str, str | None]] = []
    if result is None:
        yield text(faint("The child has returned nothing that can be read."))
    else:
        parts = [
            ("hint", result.retry_hint),
            ("blockers", "\n".join(result.blockers)),
            ("error code", result.error_code),
            ("error", result.error_message),
            ("summary", result.summary if result.summary != result.error_message else None),
            ("review", result.review_reason),
            ("confidence", f"{result.confidence:.2f}" if result.confidence is not None else None),
            ("limits", "\n".join(result.limitations)),
        ]
    lies = (f"{claim.path}: {claim.detail}" for claim in false_claims(task))
    errors = [placed.finding for placed in task.findings if placed.finding.severity is Severity.ERROR]
    places = [f", line {finding.line}" if finding.line else "" for finding in errors]
    broken = [f"{one.rule}{place}: {one.message}" for one, place in zip(errors, places, strict=True)]
    # A file that is missing is often claimed in several places.
    parts += [("false claims", "\n".join(dict.fromkeys(lies))), ("breaks rules", "\n".join(broken))]
    for label, source in (*parts, ("whole return", returned)):
        if source:
            yield Quotation(label, source)
