"""The dialog in which the operator makes a decision. Only the key `ctrl+s` signs and records the decision.

The frame at the top has facts about the task, the operator's choices, and a line on the effect of the key. Below the
frame are the document to hand on, and the words of agents. A long text must be read to its end before the key works.
"""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from itertools import chain
from typing import Any, ClassVar

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.errors import NoWidget
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from agentwatch.app.actions import Home, Place, action_name, bindings
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.document import Document
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.details.blocks import TRUNCATED, Block, Page, Quotation, Text, lay_out, update_words
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions import policy
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.form import (
    DIGITS_OF_FILE,
    LONGEST,
    DecisionForm,
    Fact,
    Field,
    MissingStep,
    RequestForm,
    child_texts,
    decision_facts,
    fact,
    request_facts,
    request_texts,
    why_too_long,
)
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action, Request, RequestKind
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.monitor import Monitor
from agentwatch.text import clean, clean_name, clean_row, quote_text
from agentwatch.view.words import name_of, plural, program_of, short_span, stage_words

# Seconds from opening a dialog until its key works. A key meant for the previous screen must not record a decision.
ARMING_SECONDS = 0.6
LABEL = 10  # cells of the column with the labels of the frame
_WIDE = 110  # cells: from this width on, the words of agents are beside the document
_TALL = 24  # lines: in a lower window, the frame scrolls, and its last line is fixed at the bottom
_SMALLEST = 30, 10  # cells and lines: a smaller window is unreadable, so no decision can be recorded
# The most seconds for which later keys wait while a decision is recorded. A distant host may need more time.
_PATIENCE = 3.0
_PREFERRED_ACTIONS = (Action.RETRY, Action.RESPOND, Action.ACCEPT, Action.ESCALATE, Action.ABORT)

_DONE_WORDS = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}
_EFFECT_WORDS = {Action.ALLOW: "allows it, this once", Action.DENY: "denies it", Action.ANSWER: "answers it"}

DialogEnd = Enum("DialogEnd", "DECIDED SKIPPED LEFT")  # how the operator left a dialog


# Cases


class AttemptCase:
    """A decision about one attempt of a task. It remembers the attempt as it was when the dialog opened."""

    advice_on_change = "Leave with escape, look at it, and open this again."
    title = "the child's words"
    whose_questions = "the child's"
    advice_if_too_long = "shorten it with ctrl+e"
    blocks_to_read = 0

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, action: Action):
        self.monitor, self.desk, self.opened_task, self.action = monitor, desk, task, action
        self.subject = desk.subject(task)
        self.form = DecisionForm(task, self.subject, action, monitor.tree.tasks.values(), dict(monitor.settings.modes))

    @property
    def task(self) -> Task | None:
        """The task as it is now, or None if the task is gone."""
        return self.monitor.tree.tasks.get(self.subject.task_id)

    def find_change(self, now: float) -> str | None:  # noqa: ARG002 - only a request depends on the time
        """Return a sentence if the attempt has changed since the dialog opened. Return None if nothing has changed."""
        if (task := self.task) is None:
            return "The task is gone."
        subject, seen = self.desk.subject(task), self.subject
        if subject.attempt != seen.attempt:
            return f"Attempt {subject.attempt} has begun meanwhile."
        if subject.return_sha256 != seen.return_sha256:
            return "The return has changed since you opened this."
        if subject.handoff_sha256 != seen.handoff_sha256:
            return "The handoff has changed since you opened this."
        return f"It was decided meanwhile: {clean_row(task.binding.words)}." if task.binding else None

    def list_facts(self, now: float) -> Iterator[Fact]:
        """Return the facts about the task that the frame shows, each with a label."""
        where = "in the ledger, copy in .agentwatch/decisions"
        if self.monitor.host:
            where = f"in the ledger of {quote_text(self.monitor.host, 60)}, once it has checked this"
        elif self.monitor.settings.read_only:
            where = "in the ledger, nowhere else (read only)"
        writes = f"{self.subject.decision_id[:DIGITS_OF_FILE]}….json {where}"
        about = self.opened_task, self.task or self.opened_task, self.subject, self.action, self.form.params()
        return decision_facts(*about, now=now, writes=writes)

    def first_missing(self, note: str, unread: str) -> MissingStep | None:  # noqa: ARG002 - only for a request
        """Return the next step that the operator must take before the decision can be recorded, or None."""
        return self.form.missing_step(self.task, note) if self.task else None

    async def read_quotations(self) -> list[Block]:
        """Return the words of agents, as quotations with a bar before each line."""
        run, returned = self.opened_task.run, self.opened_task.latest.returned
        label, version = ("whole return", returned) if returned or not run else ("its answer", run.said)
        content = await asyncio.to_thread(self.monitor.content, version) if version is not None else None
        parts = [*child_texts(self.opened_task), *([(label, content)] if content else [])]
        return [Quotation(*part, wrap=True) for part in parts]

    def describe_effect(self) -> str:
        """Return words on the effect of the recording key."""
        return "records this decision; nothing is recorded before"

    async def record(self, document: str, note: str) -> DecisionMade:
        """Sign and record the decision. Raises DecisionError."""
        handed: dict[str, Any] = {self.form.spec.document: document} if document else {}
        params = replace(self.form.params(), **handed)
        return await self.monitor.decide(self.subject, self.action, params, note)

    def describe_outcome(self, decided: DecisionMade) -> str:
        """Return a sentence about the recorded decision."""
        delivered = "delivered" if decided.undelivered is None else f"not delivered: {clean(decided.undelivered, 500)}"
        return f"{self.form.spec.word} {quote_text(name_of(self.opened_task), 24)}: recorded, {delivered}."


class RequestCase:
    """The answer to one request of a program. It remembers the request as it was when the dialog opened."""

    advice_on_change = "Leave with escape."
    whose_questions = "its"
    advice_if_too_long = "answer it in its program"

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, request: Request):
        self.monitor, self.desk, self.request, self.form = monitor, desk, request, RequestForm(request)
        is_permission = request.kind is RequestKind.PERMISSION
        self.title = "what it wants to do" if is_permission else "what belongs to it"
        # The number of quotations that the operator must have seen before they can allow the request.
        self.blocks_to_read = 2 if request.beside else 1
        above = [monitor.tree.tasks[one] for one in reversed(monitor.tree.ancestors(task.task_id))]
        self._asking_path = quote_text(BETWEEN.join(one.row_title for one in (*above, task)), 200)

    def find_change(self, now: float) -> str | None:
        asked, seen = self.monitor.tree.find_request(self.request.request_id), self.request
        if asked is None:
            return "It is not offered any more."
        _, request = asked
        if not request.waits_for_operator:
            return f"It cannot be answered any more: {stage_words(request, now)}."
        if (request.input_sha256, request.shown) != (seen.input_sha256, seen.shown):
            return "It is not the one that you looked at."
        return "Its time is over: answer it in its terminal." if now >= (request.until or now + 1) else None

    def list_facts(self, now: float) -> Iterator[Fact]:
        return request_facts(self.request, now, self._asking_path)

    def first_missing(self, note: str, unread: str) -> MissingStep | None:
        """Return the step that the operator must take first, or None. `unread` tells which text they have not seen."""
        return self.form.missing_step(note.strip(), unread)

    async def read_quotations(self) -> list[Block]:
        """Return the whole call that the program wants to make, as quotations."""
        return [Quotation(*part) for part in request_texts(self.request)]

    def describe_effect(self) -> str:
        if self.form.params().rule is not None:
            return "allows it, and what the rule covers"
        action = self.form.action or Action.ANSWER
        always = " (“always”: only in its program)" if action is Action.ALLOW and not self.form.rules else ""
        return _EFFECT_WORDS[action] + always

    async def record(self, document: str, note: str) -> DecisionMade:  # noqa: ARG002 - an answer has no document
        """Sign and record the answer. Raises DecisionError."""
        return await self.monitor.answer(self.request, self.form.action or Action.DENY, self.form.params(), note)

    def describe_outcome(self, decided: DecisionMade) -> str:  # noqa: ARG002 - there is nothing to deliver
        request, done = self.request, _DONE_WORDS[self.form.action or Action.DENY]
        query = request.queries[0].question if request.queries else request.shown or request.input
        return f"{done} {clean(program_of(request.source), 20)}: {quote_text(query, 30)}"


Case = AttemptCase | RequestCase


# The fields of a form


class Choice(Widget, can_focus=True):
    """The options of a field. Arrow keys choose an option. In a multiple choice, arrows move, and space chooses.

    The options that a program or a child offers are shown in full, on lines of their own. Textual's RadioSet and
    SelectionList would cut an option to one line, but nobody should choose an option that they cannot read.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,down,l,j", "step(1)", show=False),
        Binding("left,up,h,k", "step(-1)", show=False),
        Binding("space", "take", show=False),
    ]

    DEFAULT_CSS = """
    Choice { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    Choice:focus { background: $cursor-row; }
    Choice:focus:ansi { text-style: underline; }
    """

    class Changed(Message):
        """The operator has chosen an option, or has undone this choice."""

    def __init__(self, field: Field):
        super().__init__(id=f"field-{field.key}")
        self._field, self._cursor = field, field.choice

    def render(self) -> Content:
        return Content("\n").join(self._make_lines(self.content_size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self._make_lines(width))

    def action_step(self, by: int) -> None:
        """Choose the next option (`by` 1) or the previous option (-1). In a multiple choice, only move the cursor."""
        at = self._cursor if self._cursor is not None else min(-by, 0)
        self._cursor = (at + by) % len(self._field.options)
        if not self._field.several:
            self._toggle_option(self._cursor)
        self.refresh()

    def action_take(self) -> None:
        """Choose the option under the cursor, or undo this choice."""
        if not self._field.several or self._cursor is None:
            self.action_step(1)
        if self._field.several and self._cursor is not None:
            self._toggle_option(self._cursor)

    def on_click(self, event: events.Click) -> None:
        if (number := event.style.meta.get("choice")) is not None:
            self._toggle_option(number)

    def _toggle_option(self, number: int) -> None:
        field, self._cursor = self._field, number
        field.chosen = sorted({*field.chosen} ^ {number}) if field.several else [number]
        self.refresh()
        self.post_message(self.Changed())

    def _make_lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        field, marks = self._field, "□■" if self._field.several else "○●"
        for number, (label, description) in enumerate(field.options):
            is_taken = number in field.chosen
            style = "bold $text-accent" if is_taken else "$text-muted"
            mark = Content.styled(f"{marks[is_taken]} ", style)
            if field.question is not None:
                here = Content("›" if field.several and number == self._cursor else " ")
                texts = [Text(Content.styled(clean_name(label, LONGEST), style * is_taken), here + mark, "  ┊ ")]
                if description:
                    about = Content.styled(clean_row(description, LONGEST), "$text-muted")
                    texts.append(Text(about, Content("  ┊ "), "  ┊ "))
            else:
                words = clean_row(f"{label} ({description})" if description else label)
                texts = [Text(Content.styled(words, style), mark, "  ")]
            click = Style.from_meta({"choice": number})
            laid = [line.content.stylize(click) for line in lay_out(texts, width)]
            is_short = field.question is None and len(laid) == 1
            if is_short and lines and lines[-1].cell_length + 2 + laid[0].cell_length <= width:
                laid = [Content("  ").join([lines.pop(), *laid])]
            lines += laid
        return lines


def _make_row(label: str, field: Widget) -> Horizontal:
    return Horizontal(Static(label, classes="label", markup=False), field, classes="row")


def _make_input(placeholder: str, key: str) -> Input:
    return Input(placeholder=placeholder, compact=True, select_on_focus=False, max_length=4_000, id=f"field-{key}")


def _widgets_of(field: Field) -> Iterator[Widget]:
    if field.options:
        yield Choice(field)
    if field.placeholder:
        yield _make_input(field.placeholder, f"{field.key}-text")


class DecisionScreen(ModalScreen[DialogEnd | Action]):
    """Shows the form of a decision. The result is how the operator left, or the action that they want instead.

    `place` has facts on where the task is. In a review, `queue` has this dialog's number and the number of all dialogs.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Home.DECIDE),
        # These keys scroll the text that must be read, whichever field has the focus.
        Binding("pagedown", "read(1)", show=False),
        Binding("pageup", "read(-1)", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = ""

    # Without a rule for `.row:focus-within` itself, Textual would not restyle the children of the row.
    DEFAULT_CSS = """
    DecisionScreen { align: center middle; background: $background; }
    DecisionScreen > .details--faint { color: $text-muted; }
    DecisionScreen:ansi > .details--faint { text-style: dim; }
    DecisionScreen > #decision { width: 1fr; height: 1fr; overflow-y: auto; scrollbar-size-vertical: 1; }
    DecisionScreen #below { height: 1fr; min-height: 8; layout: vertical; }
    DecisionScreen.-wide #below { layout: horizontal; }
    DecisionScreen.-wide Document, DecisionScreen.-wide #answers { height: 1fr; width: 3fr; }
    DecisionScreen.-wide #words { height: 1fr; width: 2fr; }
    DecisionScreen.-low #below { height: auto; }
    DecisionScreen.-low Document, DecisionScreen.-low #words { height: 8; }
    DecisionScreen.-low #answers { height: auto; }
    DecisionScreen #ours {
        height: auto; border: double $accent; padding: 0 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-accent;
    }
    DecisionScreen .row { height: auto; }
    DecisionScreen .row:focus-within { text-style: none; }
    DecisionScreen .row > .label { width: 10; color: $text-muted; }
    DecisionScreen .row:focus-within > .label { color: $text-accent; text-style: bold; }
    DecisionScreen #facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    DecisionScreen #standing { height: auto; }
    DecisionScreen #standing-low { display: none; height: auto; padding: 0 1; background: $panel; }
    DecisionScreen.-low #standing, DecisionScreen.-small > #decision { display: none; }
    DecisionScreen.-low #standing-low, DecisionScreen.-small #standing-low { display: block; }
    DecisionScreen.-small #standing-low { height: 1fr; }
    DecisionScreen #words { height: 1fr; }
    DecisionScreen #words.-empty, DecisionScreen.-reading #words { display: none; }
    DecisionScreen.-low.-reading Document { height: 14; }
    DecisionScreen #answers { height: 2fr; }
    DecisionScreen #words, DecisionScreen #answers {
        min-height: 4; border: round $line; border-title-color: $text-muted;
    }
    DecisionScreen #words:focus-within, DecisionScreen #answers:focus-within { border: round $text-muted; }
    DecisionScreen Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    DecisionScreen Input:focus { border: none; background: $cursor-row; background-tint: transparent; }
    DecisionScreen .question { height: auto; border-left: dashed $text-muted; padding-left: 1; }
    DecisionScreen #answers Input { margin-left: 2; }
    DecisionScreen:ansi Input { text-style: underline; }
    """

    def __init__(
        self, app: AgentwatchApp, case: Case, place: Sequence[Fact] = (), queue: tuple[int, int] | None = None
    ):
        super().__init__()
        self._app, self.case, self._place, self._queue = app, case, place, queue
        # The time at which the recording key begins to work, on the monotonic clock.
        self._armed_at = math.inf
        self._error = ""
        self._is_recording = self._is_read = self._was_early = False
        self._note = _make_input(case.form.spec.placeholder, "note")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True
        )
        self._unlock = _make_row("unlock", self._passphrase)
        self._unlock.display = False
        self._facts = Static(id="facts", markup=False)
        self._status_lines = Static(id="standing", markup=False), Static(id="standing-low", markup=False)
        self._page = Page()
        self._page.id = "field-words"
        self._document: Document | None = None
        if isinstance(case, AttemptCase) and case.form.spec.document:
            self._document = Document(case.form, case.monitor, case.desk.state, self._handle_new_text)
        self._footer = Footer(Place.DECIDE, lambda name: not self.check_action(app.commands[name].action, ()))

    # The screen

    def compose(self) -> ComposeResult:
        form = self.case.form
        with Vertical(id="decision"):
            with Vertical(id="ours") as frame:
                frame.border_title = f"◆ {form.spec.glyph} {form.spec.word}"
                yield self._facts
                for one in form.fields:
                    for number, widget in enumerate(_widgets_of(one) if one.label else ()):
                        yield _make_row("other" if number else one.label, widget)
                if self._document:
                    yield _make_row(self._document.label, self._document.status)
                if form.spec.note:
                    yield _make_row(form.spec.note, self._note)
                yield self._unlock
                yield self._status_lines[0]
            with Vertical(id="below"):
                if self._document:
                    yield self._document
                if asked := [one for one in form.fields if not one.label]:
                    with VerticalScroll(id="answers", can_focus=False) as answers:
                        is_asked = any(one.question is not None for one in asked)
                        below = f"your answers, below {self.case.whose_questions} questions"
                        answers.border_title = below if is_asked else "your words to the child"
                        for one in asked:
                            if one.question is not None:
                                yield Static(clean_row(one.question, LONGEST), classes="question", markup=False)
                            yield from _widgets_of(one)
                with Vertical(id="words") as words:
                    words.border_title = self.case.title
                    yield self._page
        yield self._status_lines[1]
        yield self._footer

    def _focus_field(self, key: str) -> None:
        names = f"field-{key.replace('.', '-')}"
        if key and (found := self.query(f"#{names}, #{names}-text")):
            self.set_focus(found.first())

    def on_mount(self) -> None:
        self.app.app_resume_signal.subscribe(self, lambda _app: self._restart_arming())
        self.set_interval(1.0, self.show_state)
        self._focus_field(self.case.form.first)
        self._read_words()
        for page in self.query("#decision, Page, TextArea"):
            self.watch(page, "scroll_y", self._show_state_soon, init=False)
        self.call_after_refresh(self._restart_arming)

    def _show_state_soon(self) -> None:
        self.call_after_refresh(self.show_state)

    @work
    async def _read_words(self) -> None:
        blocks = await self.case.read_quotations()
        # The operator may have left the dialog before the words were read.
        if self.is_attached:
            self._page.show(blocks, keep_position=False)
            self.query("#words").set_class(not blocks, "-empty")
            self._show_state_soon()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width >= _WIDE, "-wide")
        if width >= _WIDE:
            self.remove_class("-reading")
        self.set_class(height < _TALL, "-low")
        self.set_class(width < _SMALLEST[0] or height < _SMALLEST[1], "-small")
        self._show_state_soon()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _handle_change(self, event: Input.Changed | Choice.Changed) -> None:
        """Update the form and the document after a change by the operator, and remove the error message."""
        self._error = ""
        if isinstance(event, Input.Changed):
            for one in self.case.form.fields:
                if event.input.id == f"field-{one.key}-text":
                    one.text = event.value
        # The passphrase does not change the document.
        if self._document and event.control is not self._passphrase:
            # A changed field may put other words of agents into the document, so the operator must read it again.
            self._is_read = self._is_read and event.control is self._note
            self._document.propose_again(self._note.value)
        self.show_state()

    def _restart_arming(self, *, early: bool = False) -> None:
        """Block the recording key for a moment again. `early` is True if the operator has pressed the key too early."""
        self._was_early = early or (self._was_early and not self._is_armed)
        self._armed_at = self._app.steady() + ARMING_SECONDS
        # Textual's timers may fire half a millisecond early.
        self.set_timer(ARMING_SECONDS + 0.001, self.show_state)
        self.show_state()

    def _handle_new_text(self) -> None:
        """Require that the operator reads the document, because a host has just sent its text."""
        self._is_read = False
        self._restart_arming()

    @property
    def _is_armed(self) -> bool:
        return self._app.steady() >= self._armed_at

    @on(TreeUpdated)
    @on(Document.Checked)
    def show_state(self) -> None:
        """Update the facts, the frame and the status line. Do nothing before the dialog is drawn for the first time."""
        if self._armed_at == math.inf or not self.is_attached:
            return
        if self._document:
            self._document.show_status()
        frame, subtitle = self.query_one("#ours"), self._subtitle()
        # Textual would repaint the frame even for the same subtitle.
        if frame.border_subtitle != subtitle:
            frame.border_subtitle = subtitle
        update_words(self._facts, Content("\n").join(self._fact_lines()))
        standing = self._status_words()
        for one in self._status_lines:
            update_words(one, standing)
        self._footer.redraw()

    def _subtitle(self) -> str:
        """Return a line with this dialog's number in a review, and with the time left to answer other requests."""
        parts = [f"{self._queue[0]} of {self._queue[1]}"] if self._queue is not None else []
        own = self.case.request.request_id if isinstance(self.case, RequestCase) else None
        asked = chain(*(task.requests for task in self._app.monitor.tree.asking_tasks()))
        ends = [one.until for one in asked if one.is_answerable and one.until is not None and one.request_id != own]
        if ends:
            parts.append(f"■ {plural(len(ends), 'other request')}: {short_span(min(ends) - self._app.clock())} left")
        return "   ".join(parts)

    def _fact_lines(self) -> Iterator[Content]:
        width = max((self._facts.size.width or self.size.width - 6) - LABEL, 8)
        first, *others = self.case.list_facts(self._app.clock())
        for label, parts in (first, *self._place, *others):
            styled = [Content.styled(words, style if style in ("", "bold") else f"${style}") for words, style in parts]
            style = "$text-warning" if label == "beware" else "$text-muted"
            # Each line begins with a label of ours, so that untrusted words cannot look like a label.
            for number, line in enumerate(Content(" ").join(styled).wrap(width)):
                yield Content.styled(f"{'…' if number else label:<{LABEL}}", style) + line

    def _status_words(self) -> Content:
        """Return the last line of our frame: the effect of the recording key, or why the key has no effect now."""
        if self._is_recording:
            return Content("recording…")
        change = self.case.find_change(self._app.clock())
        # Show a change rather than an error. The change may be that the decision was recorded in spite of the error.
        if trouble := (change and f"{change} {self.case.advice_on_change}") or self._error:
            return Content.styled(f"✗ {trouble}", "bold $text-error")
        if self._was_early and not self._is_armed:
            return Content.styled("◌ too early, nothing is recorded: ctrl+s counts in a moment", "$text-warning")
        if missing := self._find_missing():
            return Content.styled(f"○ not yet: {missing.reason}", "$text-warning")
        if not self._is_armed:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), f" {self.case.describe_effect()}")

    def _find_missing(self) -> MissingStep | None:
        if self.has_class("-small"):
            return MissingStep(f"this window is too small, {_SMALLEST[0]} × {_SMALLEST[1]} is needed")
        # Call `_unread_words` in any case, because it also records that the operator has read the text.
        document = self._document
        if missing := self.case.first_missing(self._note.value, "" if document else self._unread_words()):
            return missing
        reason = document and (document.missing_reason() or self._unread_words())
        return MissingStep(reason, "document" if document and document.problems else "") if reason else None

    # Reading

    def action_read(self, pages: int) -> None:
        page: Page | TextArea = self._page
        if self._document and self._unread_words():
            page, _ = self._document.text_to_read
            self.set_class(not self.has_class("-wide"), "-reading")
        page.scroll_visible(animate=False)
        page.scroll_relative(y=pages * max(page.size.height - 1, 1), animate=False, immediate=True)

    def _unread_words(self) -> str:
        """Return words on the text that the operator has not seen yet, or "" if they have seen all of it."""
        if self._is_read or not (self._document or self.case.blocks_to_read):
            return ""
        own = self._document and self._document.text_to_read
        page, end = own or (self._page, self._page.line_count_of(self.case.blocks_to_read))
        lines = page.lines if isinstance(page, Page) else ("",)
        if any(line.startswith(TRUNCATED) for line in lines[: end + 1]):
            return f"it is too long to be read here: {self.case.advice_if_too_long}"
        left = end
        with suppress(NoWidget):
            place = self.find_widget(page)
            # In a low window, the page may be only partly in sight.
            in_sight = (place.visible_region.bottom - place.region.y) * bool(place.visible_region)
            left = end - int(page.scroll_offset.y) - in_sight
        if left > 0 or not lines:
            return f"{plural(max(left, 1), 'more line')} below: read to the end first (pagedown)"
        # Before the key works, nothing counts as read, because text may have been in sight for only a moment.
        self._is_read = self._is_armed
        if self._is_read:
            self.remove_class("-reading")
        return ""

    # Recording

    async def action_record(self) -> None:
        """Record the decision, unless the key comes too early or something is missing. Later keys wait until the
        decision is recorded, but at most `_PATIENCE` seconds."""
        if self._is_recording:
            return
        if not self._is_armed:
            self._restart_arming(early=True)
            return
        self._error = ""
        is_unchanged, missing = self.case.find_change(self._app.clock()) is None, self._find_missing()
        if is_unchanged and missing:
            self._focus_field(missing.key)
        self._is_recording = is_unchanged and missing is None
        self.show_state()
        if self._is_recording:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._record_decision().wait()), _PATIENCE)

    @work
    async def _record_decision(self) -> None:
        try:
            decided = await self._check_and_record()
        except DecisionError as error:
            decided, self._error = None, clean(str(error), 1_000)
        finally:
            self._is_recording = False
        if decided is None:
            self.show_state()
            return
        words = "\n".join(filter(None, (self.case.describe_outcome(decided), clean(decided.doubt or "", 500))))
        if decided.doubt is None and decided.undelivered is None:
            self.app.notify(words, markup=False)
        else:
            self._app.warn(words)
        self.leave(DialogEnd.DECIDED)

    async def _check_and_record(self) -> DecisionMade | None:
        """Check all conditions again and record the decision. Return None if a check fails. Raises DecisionError."""
        if not await self._unlock_key():
            return None
        document, note = self._document, self._note.value
        text = document.text if document else ""
        if document and not await document.is_unchanged(note):
            self._error = f"The {document.label} is not what you saw: read it, then press ctrl+s again."
            return None
        # Check again, because the task may have changed during the steps above.
        if not self._is_armed:
            self._error = "Nothing is recorded, because something changed: read it, then press ctrl+s again."
            return None
        if self.case.find_change(self._app.clock()) is not None or self._find_missing():
            return None
        return await self.case.record(text, note.strip())

    async def _unlock_key(self) -> bool:
        """Unlock the signing key with the typed passphrase. If the key stays locked, ask for the passphrase and return
        False. Raises KeyProblemError."""
        desk, field = self.case.desk, self._passphrase
        if field.value:
            with field.prevent(Input.Changed):
                passphrase, field.value = field.value, ""
            await asyncio.to_thread(desk.unlock, passphrase)
        why = await asyncio.to_thread(desk.why_locked)
        self._unlock.display = why is not None
        if why is not None:
            self.set_focus(field)
            self._error = f"{clean(why[:1].upper() + why[1:], 1_000)}: type its passphrase, then press ctrl+s."
        return why is None

    # Keys

    def leave(self, end: DialogEnd | Action) -> None:
        """Close this dialog, but only if it is on top. Otherwise Textual would close the screen above."""
        if self.is_active and not self._is_recording:
            self.dismiss(end)

    def action_leave(self) -> None:
        self.leave(DialogEnd.LEFT)

    def action_copy_or_leave(self) -> None:
        """Copy the text that is selected with the mouse. If no text is selected, leave."""
        try:
            self.action_copy_text()
        except SkipAction:
            self.leave(DialogEnd.LEFT)

    def action_skip(self) -> None:
        self.leave(DialogEnd.SKIPPED)

    def action_instead(self, number: int) -> None:
        """Change to the dialog of another action about the same attempt, if that action is possible."""
        case, action = self.case, OF_ATTEMPTS[number]
        if not isinstance(case, AttemptCase) or case.task is None or action is case.action:
            return
        if reason := why_not(case.task, action, self._app.clock()):
            self._app.warn(f"{SPECS[action].word}: {reason}.")
        else:
            self.leave(action)

    def action_changes(self) -> None:
        """Switch between the editor and the page of changes."""
        if self._document:
            self._document.toggle_changes()

    def action_edit_document(self) -> None:
        """Open the document in the operator's editor, and wait until the editor ends."""
        if self._document:
            self._app.warn(self._document.open_editor())
            # Keys that were meant for the editor must not record a decision.
            self._restart_arming()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Return whether the dialog has the action. Without a document, the document's keys go to the focused field."""
        name = action_name(action)
        if name == "skip":
            return self._queue is not None
        if name == "instead":
            return isinstance(self.case, AttemptCase)
        return name not in ("edit_document", "changes") or self._document is not None


class Review:
    """Opens dialogs about some tasks, one after another.

    Without an `action`, each dialog opens with the action that the contracts suggest. A task with open requests gets a
    dialog for each request. If nothing can be decided about a task at its turn, the task is skipped.
    """

    def __init__(self, app: AgentwatchApp, task_ids: Sequence[str], action: Action | None):
        self._app, self._action, self._turn = app, action, 0
        self._turns: list[tuple[str, str | None]] = []
        for task_id in task_ids:
            task = app.monitor.tree.tasks.get(task_id)
            asked = [one.request_id for one in task.requests if one.is_answerable] if task and action is None else []
            self._turns += [(task_id, request_id) for request_id in asked or (None,)]

    async def open_next(self, action: Action | None) -> None:
        """Open the dialog for the present task or request. If nothing can be decided about it, take the next."""
        app, count, tasks = self._app, len(self._turns), self._app.monitor.tree.tasks
        for at in range(self._turn, count):
            self._turn, (task_id, request_id) = at, self._turns[at]
            case = _make_case(app, task_id, request_id, action)
            if isinstance(case, Case):
                top = tasks.get(tasks[task_id].scope) if task_id in tasks else None
                place = [fact("in", quote_text(top.title, 200))] if top else []
                if case.monitor.host:
                    place.append(fact("host", quote_text(case.monitor.host, 200), "bold"))
                queue = (at + 1, count) if count > 1 else None
                await app.push_screen(DecisionScreen(app, case, place, queue), self._handle_end)
                return
            app.warn(case)
            action = self._action

    async def _handle_end(self, end: DialogEnd | Action | None) -> None:
        if isinstance(end, Action):
            await self.open_next(end)
            return
        if end is DialogEnd.DECIDED:
            self._app.main.task_tree.unmark(self._turns[self._turn][0])
        self._turn += 1
        if end is not DialogEnd.LEFT:
            await self.open_next(self._action)


def _make_case(app: AgentwatchApp, task_id: str, request_id: str | None, action: Action | None) -> Case | str | None:
    """Return the case that a dialog shows: a request of the task, or an action about the task's attempt. Return a
    sentence if nothing can be decided now. Return None if the task or the request is gone."""
    monitor, own_id = app.monitor.resolve_task(task_id)
    task, now = monitor.tree.tasks.get(own_id), app.clock()
    asked = [one for one in task.requests if one.is_answerable and request_id in (None, one.request_id)] if task else []
    if task is None or (request_id is not None and not asked):
        return None
    if action is None:
        likely = (policy.suggest_action(task) or Action.ACCEPT, *_PREFERRED_ACTIONS)
        action = next((one for one in likely if why_not(task, one, now) is None), likely[0])
        # A request of the task's program comes before any other decision about the task.
        action = Action.RESPOND if task.request else action
    is_request = bool(asked) and action is Action.RESPOND
    reason = why_too_long(asked[0]) if is_request else why_not(task, action, now)
    # If the task is on another machine, `clerk` belongs to that host, and knows whether the host can be reached.
    clerk = monitor.monitor_of_row(task_id).decision_watcher
    if monitor.decision_watcher is None or clerk is None:
        reason = "its workspace is not being watched yet"
    elif clerk.desk.unreachable is not None:
        reason = clean(clerk.desk.unreachable, 400)
    if reason is not None or monitor.decision_watcher is None:
        return f"{SPECS[action].word} {quote_text(task.title if task.workspace else own_id, 60)}: {reason}."
    if is_request:
        return RequestCase(monitor, monitor.decision_watcher.desk, task, asked[0])
    return AttemptCase(monitor, monitor.decision_watcher.desk, task, action)
