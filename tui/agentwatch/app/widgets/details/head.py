"""The head of the details: which task, its state, its one sentence, and what it needs from the operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.cells import clip, shown, summary
from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import LABEL_WIDTH, WIDE, faint, gist, plain
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.task import Task
from agentwatch.text import exact
from agentwatch.view import times
from agentwatch.view.progress import decision_of

SUMMARY_LINES: Final = 3
ASK_LINES: Final = 3
HINT_LINES: Final = 2
ID_CHARACTERS: Final = 1_000
AGENT_CELLS: Final = 24
ROOMY: Final = 20
"""Lines of the pane from which the head takes what it needs; in a lower one each part of it gets one line."""


class Head(Widget):
    """Always visible above the tabs. Its height is that of its lines."""

    DEFAULT_CSS = """
    Head {
        height: auto;
        padding: 0 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown_task: Task | None = None
        self._now = 0.0
        self._roomy = True
        self._drawn = Content("")

    def show(self, task: Task | None, now: float, *, roomy: bool) -> None:
        """Show the head of a task; nothing is drawn if it has not changed."""
        self._shown_task, self._now, self._roomy = task, now, roomy
        content = self._content(self.content_size.width)
        if not content.is_same(self._drawn):
            # The height may be another one, and with it the place of the tabs.
            self.refresh(layout=content.plain.count("\n") != self._drawn.plain.count("\n"))

    def render(self) -> Content:
        self._drawn = self._content(self.content_size.width)
        return self._drawn

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return self._content(width).plain.count("\n") + 1

    def _content(self, width: int) -> Content:
        if self._shown_task is None or width <= 0:
            return Content("")
        return Content("\n").join(head_lines(self._shown_task, self._now, width, roomy=self._roomy))


def head_lines(task: Task, now: float, width: int, *, roomy: bool) -> Iterator[Content]:
    """The lines of the head at a width in cells."""
    yield _identity(task, width)
    yield from islice(_packed(_standing(task, now, wide=width >= WIDE), width), 2 if roomy else 1)
    result = task.result.summary if task.result else None
    if result:
        yield from _limited(gist(result), width, SUMMARY_LINES if roomy else 1)
    hint = task.retry.hint
    if roomy and (task.ask or hint or decision_of(task)):
        yield Content("")
    if task.ask:
        yield from _labelled("NEEDS YOU", wording.ACCENT, gist(task.ask), width, ASK_LINES if roomy else 1)
    if hint and (roomy or not task.ask):
        yield from _labelled("hint", FAINT, gist(hint), width, HINT_LINES if roomy else 1)
    if (decision := decision_of(task)) is not None:
        yield from _decided(decision, now, width, roomy=roomy)
    if roomy:
        yield Content("")


def _decided(decision: Decision, now: float, width: int, *, roomy: bool) -> Iterator[Content]:
    """How far a decision has got; if there is one line only, what is wrong with it comes first."""
    trouble = warning(decision, now)
    if roomy or trouble is None:
        yield from _labelled("decided", FAINT, receipt_line(decision, now), width, 2 if roomy else 1)
    if trouble is not None:
        content = Content.styled(trouble, "$text-warning")
        yield from _labelled("" if roomy else "decided", FAINT, content, width, 3 if roomy else 1)


def _identity(task: Task, width: int) -> Content:
    """The id, cut at its beginning if it is too long, and the agent at the right edge where it fits.

    Where the tree calls it otherwise, such as by the title of a session, that name comes first.
    """
    agent = clip(shown(task.agent), AGENT_CELLS) if task.agent and width >= WIDE else ""
    room = width - cell_len(agent) - 2 if agent else width
    name = shown(exact(task.task_id), ID_CHARACTERS)
    called = clip(summary(task.title), room) if task.title not in task.task_id else ""
    if called:
        name = clip(name, max(room - cell_len(called) - 2, 0))
    while cell_len(name) > max(room, 1):
        name = "…" + name[max(cell_len(name) - room, 1) + 1 :]
    words = Content.assemble((called, "bold"), "  ", (name, FAINT)) if called else Content.styled(name, "bold")
    return Content.assemble(words, " " * (width - words.cell_length - cell_len(agent)), (agent, FAINT)).rstrip()


def _standing(task: Task, now: float, *, wide: bool) -> Iterator[Content]:
    yield wording.state(task)
    said = wording.reported(task)
    if said and wide:
        yield said
    # Nobody has handed a session out, so nobody can retry it.
    if task.attempts and not task.is_session:
        yield Content.assemble(
            ("attempt ", FAINT), f"{task.attempt} of {max(1 + task.retry.max_retries, task.attempt)}"
        )
    if task.result and task.result.error_code:
        yield plain(task.result.error_code, 40).stylize("$text-error")
    if task.alive_at is not None:
        yield faint(times.ago(task.alive_at, now))


def _packed(parts: Iterable[Content], width: int) -> Iterator[Content]:
    """The parts in as few lines as they fit in, none of them broken in two."""
    gap = "   " if width >= WIDE else "  "
    line = Content("")
    for part in parts:
        if line and line.cell_length + len(gap) + part.cell_length > width:
            yield line.truncate(width, ellipsis=True)
            line = Content("")
        line = Content.assemble(line, gap, part) if line else part
    yield line.truncate(width, ellipsis=True)


def _labelled(label: str, style: str, content: Content, width: int, lines: int) -> Iterator[Content]:
    """A label and its text, which hangs behind it if there is room, else by two cells."""
    title = Content.styled(label, style)
    if width >= WIDE:
        title = title.pad_right(LABEL_WIDTH - len(label))
        for number, line in enumerate(_limited(content, width - LABEL_WIDTH, lines)):
            yield (Content(" " * LABEL_WIDTH) if number else title) + line
    else:
        yield from _limited(Content.assemble(title, "  ", content), width, lines)


def _limited(content: Content, width: int, lines: int) -> Iterator[Content]:
    """The content in at most so many lines; what does not fit is cut off with an ellipsis."""
    wrapped = content.wrap(max(width, 8))
    yield from wrapped[: lines - 1]
    if len(wrapped) > lines:
        rest = wrapped[lines - 1]
        yield rest.truncate(width - 1) + "…"
    elif len(wrapped) == lines:
        yield wrapped[-1]
