"""What stands above a page: the head, with the task and what it needs from the operator, and the row of tab titles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from agentwatch.app.decision_words import receipt_line, warning
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.cells import clip, shown, summary
from agentwatch.app.widgets.details.blocks import ACCENT, LABEL_WIDTH, WIDE, faint, gist, in_color, plain
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.task import Task
from agentwatch.text import LINE_LIMIT, exact
from agentwatch.view import looks, times
from agentwatch.view.words import aside_words, decision_of, in_line, question_at, whereabouts

ID_CHARACTERS: Final = 1_000
AGENT_CELLS: Final = 24
ROOMY: Final = 20
"""Lines of the pane from which the head takes what it needs; in a lower one each part of it gets one line."""
AMPLE: Final = 28
"""Lines of the pane from which each part may take twice as many."""


class Head(Widget):
    """Always visible above the tabs. Its height is that of its lines."""

    DEFAULT_CSS = """
    Head { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown_task: Task | None = None
        self._now = 0.0
        self._height = ROOMY
        self._drawn = Content("")

    def show(self, task: Task | None, now: float, *, height: int) -> None:
        """Show the head of a task in a pane of so many lines; nothing is drawn if it has not changed."""
        self._shown_task, self._now, self._height = task, now, height
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
        return Content("\n").join(_lines(self._shown_task, self._now, width, self._height))


def _lines(task: Task, now: float, width: int, height: int) -> Iterator[Content]:
    yield _identity(task, width)
    roomy, more = height >= ROOMY, 2 if height >= AMPLE else 1
    yield from islice(_packed(_standing(task, now, wide=width >= WIDE), width), 2 if roomy else 1)
    hint, decision = task.retry.hint, decision_of(task)
    if roomy and (task.question or hint or decision):
        yield Content("")
    if task.ask:
        yield from _labelled(
            "NEEDS YOU",
            ACCENT,
            Content(in_line(task, question_at(task, now), LINE_LIMIT)),
            width,
            5 * more if roomy else 1,
        )
    elif task.question:
        aside = aside_words(task, now)
        words = Content(f"{aside}: " if aside else "") + Content(in_line(task, task.question, LINE_LIMIT))
        yield from _labelled("put aside" if aside else "history", FAINT, words, width, 2 * more if roomy else 1)
    if hint:
        yield from _labelled("hint", FAINT, gist(hint), width, 3 * more if roomy else 1)
    if decision is not None:
        yield from _decided(decision, now, width, more if roomy else 0)
    if roomy:
        yield Content("")


def _decided(decision: Decision, now: float, width: int, room: int) -> Iterator[Content]:
    """How far a decision has got. Without `room` there is one line only: what is wrong with it comes first."""
    trouble = warning(decision, now)
    if room or trouble is None:
        yield from _labelled("decided", FAINT, receipt_line(decision, now), width, 2 * room or 1)
    if trouble is not None:
        content = Content.styled(trouble, "$text-warning")
        yield from _labelled("" if room else "decided", FAINT, content, width, 3 * room or 1)


def _identity(task: Task, width: int) -> Content:
    """The id, cut at its beginning if it is too long, and the agent at the right edge where it fits.

    Where the tree calls it otherwise, such as by the title of a session, that name comes first.
    """
    agent = clip(shown(task.agent), AGENT_CELLS) if task.agent and width >= WIDE else ""
    room = width - cell_len(agent) - 2 if agent else width
    name = shown(exact(whereabouts(task.workspace) if task.workspace else task.own_id), ID_CHARACTERS)
    called = clip(summary(task.title), room) if task.title not in task.own_id else ""
    if called:
        name = clip(name, max(room - cell_len(called) - 2, 0))
    while cell_len(name) > max(room, 1):
        name = "…" + name[max(cell_len(name) - room, 1) + 1 :]
    words = Content.assemble((called, "bold"), "  ", (name, FAINT)) if called else Content.styled(name, "bold")
    return Content.assemble(words, " " * (width - words.cell_length - cell_len(agent)), (agent, FAINT)).rstrip()


def _standing(task: Task, now: float, *, wide: bool) -> Iterator[Content]:
    look, behind = looks.look(task), looks.LOOKS[task.state]
    yield in_color(look) if look is behind else Content.assemble(in_color(look), "  ", in_color(behind))
    # Nobody has handed a session out, so nobody can retry it.
    if task.attempts and not task.is_session:
        most = max(1 + task.retry.max_retries, task.attempt)
        yield Content.assemble(("attempt ", FAINT), f"{task.attempt} of {most}")
    if task.result and task.result.error_code:
        yield plain(task.result.error_code, 40).stylize("$text-error")
    if task.agent and not wide:
        yield plain(task.agent, AGENT_CELLS)
    if (since := times.stands_since(task)) is not None:
        yield faint(times.ago(since, now))


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
    if len(wrapped) > lines:
        wrapped = [*wrapped[: lines - 1], wrapped[lines - 1].truncate(width - 1) + "…"]
    yield from wrapped


TABS: Final = (
    ("overview", "Overview"),
    ("live", "Live"),
    ("handoff", "Handoff"),
    ("return", "Return"),
    ("attestation", "Attestation"),
    ("findings", "Findings"),
    ("attempts", "Attempts"),
    ("raw", "Raw"),
)
"""Id and title of every tab, in their order."""


class Count(NamedTuple):
    """What stands behind a title: the words and their style."""

    text: str
    style: str


_Titles = list[tuple[str, Content]]
"""Id and title of tabs."""
_Places = list[tuple[str, int, int]]
"""Ids of tabs, and the cells from which and to which their titles stand."""


class TabBar(Widget):
    """The titles with a line under the active one. If they do not fit, those around the active one are shown.

    One widget and no animation, so that a new count costs one line of drawing.
    """

    ALLOW_SELECT = False

    DEFAULT_CSS = """
    TabBar { height: 2; text-wrap: nowrap; pointer: pointer; }
    """

    active: reactive[str] = reactive("")
    counts: reactive[dict[str, Count]] = reactive[dict[str, Count]](dict)

    @dataclass
    class Chosen(Message):
        """A title was clicked."""

        tab_id: str

    def __init__(self, tabs: Sequence[tuple[str, str]] = TABS) -> None:
        super().__init__()
        self._tabs = tabs
        self.set_reactive(TabBar.active, tabs[0][0])

    def render(self) -> Content:
        content, places = self._titles()
        line = Content(" ") + Content.styled("─" * (self.content_size.width - 1), "$border-blurred")
        for tab_id, start, end in places:
            if tab_id == self.active:
                line = line[:start] + Content.styled("━" * (end - start), "$text-accent") + line[end:]
        return Content("\n").join([content, line])

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for tab_id, start, end in self._titles()[1]:
            if start - 1 <= offset.x <= end:
                self.post_message(self.Chosen(tab_id))
                return

    def _titles(self) -> tuple[Content, _Places]:
        """The titles that fit and where they stand: behind a blank, where that leaves room for all."""
        width = self.content_size.width - 1
        titles: _Titles = []
        # Counts that call for nobody go before a title does.
        for quiet, gap in ((True, 3), (True, 2), (True, 1), (False, 1)):
            titles = [(tab_id, self._title(tab_id, title, quiet=quiet)) for tab_id, title in self._tabs]
            if sum(len(title) + gap for _, title in titles) - gap <= width:
                return _placed(titles, gap, Content(" "))
        bare = [(tab_id, self._title(tab_id, title, quiet=False, counted=False)) for tab_id, title in self._tabs]
        used = sum(len(title) + 1 for _, title in bare) - 1
        if used <= width + 1:
            return _placed(bare, 1, Content(" " if used <= width else ""))
        first, last = self._window(titles, width - 4)
        content, places = _placed(titles[first:last], 1, faint(" ‹ " if first else " "))
        return content + faint(" ›" if last < len(titles) else ""), places

    def _window(self, titles: _Titles, room: int) -> tuple[int, int]:
        """The range of titles around the active one that fits: it grows to the right first, then to the left."""
        first = next(number for number, (tab_id, _) in enumerate(titles) if tab_id == self.active)
        last = first + 1
        room -= len(titles[first][1])
        while True:
            if last < len(titles) and len(titles[last][1]) < room:
                room -= 1 + len(titles[last][1])
                last += 1
            elif first and len(titles[first - 1][1]) < room:
                first -= 1
                room -= 1 + len(titles[first][1])
            else:
                return first, last

    def _title(self, tab_id: str, title: str, *, quiet: bool, counted: bool = True) -> Content:
        """A title; one that is not `counted` has the colour of its count, if that calls for somebody."""
        count = self.counts.get(tab_id)
        style = "bold" if tab_id == self.active else FAINT
        if not counted:
            return Content.styled(title, count.style if count and style == FAINT else style)
        content = Content.styled(title, style)
        return content + Content.assemble(" ", count) if count and (quiet or count.style != FAINT) else content


def _placed(titles: _Titles, gap: int, before: Content) -> tuple[Content, _Places]:
    places: _Places = []
    start = len(before)
    for tab_id, title in titles:
        places.append((tab_id, start, start + len(title)))
        start += len(title) + gap
    return before + Content(" " * gap).join([title for _, title in titles]), places
