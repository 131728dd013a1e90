"""Answer: each thing that the child asks, with the operator's answer below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import Input

from agentwatch.app.dialogs.case import Case
from agentwatch.app.dialogs.frame import DecisionScreen
from agentwatch.app.dialogs.words import BAR
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.cells import shown
from agentwatch.decisions.record import Answer, Params

_MOST: Final = 12
"""Questions with a field of their own; more are answered in the note."""
_LONGEST: Final = 600


class Question(Widget):
    """What the child asks: each line of it begins behind the bar."""

    DEFAULT_CSS = """
    Question { height: auto; max-height: 6; text-wrap: nowrap; }
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = Content(shown(source, _LONGEST))

    def render(self) -> Content:
        return self._content(self.content_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return self._content(width).plain.count("\n") + 1

    def _content(self, width: int) -> Content:
        bar = Content.styled(BAR, FAINT)
        return Content("\n").join([bar + line for line in self._source.wrap(max(width - len(BAR), 8))])


class RespondScreen(DecisionScreen):
    """The child goes on with the answers."""

    AUTO_FOCUS = "#answers Input"
    note_placeholder: ClassVar[str] = "anything else that you want to say"

    DEFAULT_CSS = """
    RespondScreen #answers { height: 2fr; min-height: 4; border: round $line; border-title-color: $text-muted; }
    RespondScreen.-wide #answers { height: 1fr; width: 3fr; }
    RespondScreen.-low #answers { height: auto; }
    RespondScreen.-low.-wide #answers { height: 1fr; }
    RespondScreen #answers:focus-within { border: round $text-muted; }
    RespondScreen #answers Input {
        width: 1fr; height: 1; border: none; padding: 0; margin-left: 2; background: $panel;
    }
    RespondScreen #answers Input:focus { border: none; background: $cursor-row; background-tint: transparent; }
    RespondScreen:ansi #answers Input { text-style: underline; }
    """

    def __init__(
        self, case: Case, clock: Callable[[], float], steady: Callable[[], float], queue: tuple[int, int] | None = None
    ) -> None:
        super().__init__(case, clock, steady, queue)
        result = self._task_seen.result if self._task_seen else None
        self._questions: list[str | None] = list(result.blockers[:_MOST] if result else ()) or [None]
        self._fields = [
            Input(placeholder="your answer", compact=True, select_on_focus=False) for _question in self._questions
        ]

    def below(self) -> ComposeResult:
        with VerticalScroll(id="answers", can_focus=False) as answers:
            answers.border_title = "your answers, below the child's questions"
            for question, field in zip(self._questions, self._fields, strict=True):
                if question is not None:
                    yield Question(question)
                yield field

    def plain_params(self) -> Params:
        given = ((question, field.value.strip()) for question, field in zip(self._questions, self._fields, strict=True))
        return Params(answers=tuple(Answer(question, answer) for question, answer in given if answer))
