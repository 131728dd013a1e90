"""The dialog of a decision: a frame that foreign text cannot enter, and one key that signs and records.

From top to bottom: our own frame with the facts, the operator's choices and a line on what the key would do; then the
document that is handed on, and foreign words. Only `ctrl+s` records, and only after the operator could read all this.
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
from agentwatch.app.widgets.details.blocks import TRUNCATED, Block, Page, Quotation, Text, lay_out, show_words
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions import policy
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.form import (
    DIGITS_OF_FILE,
    LONGEST,
    DecisionForm,
    Fact,
    Field,
    Missing,
    RequestForm,
    fact,
    facts,
    request_facts,
    unfit,
    words_of_child,
    words_of_request,
)
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action, Request, RequestKind
from agentwatch.delegation.task import BETWEEN, Task
from agentwatch.monitor import Monitor
from agentwatch.text import clean, clean_name, clean_row, quote_text
from agentwatch.view.words import duration, name_of, plural, program_of, standing_words

# How long a dialog is in sight before its key works, so that keys meant for the screen below decide nothing.
ARMING_SECONDS = 0.6
LABEL = 10  # cells of the column with the labels
_WIDE = 110  # the fewest cells for which foreign words are shown beside the document
_TALL = 24  # the fewest screen lines that show the whole frame; in fewer, its last line is fixed below what scrolls
_LEAST = 30, 10  # in fewer cells and lines nothing can be recorded, because it could not be read
# The most seconds that keys typed after the recording key wait for it: a distant host may take longer.
_PATIENCE = 3.0
_LIKELY = (Action.RETRY, Action.RESPOND, Action.ACCEPT, Action.ESCALATE, Action.ABORT)

_DONE = {Action.ALLOW: "Allowed for", Action.DENY: "Denied to", Action.ANSWER: "Answered"}
_EFFECTS = {Action.ALLOW: "allows it, this once", Action.DENY: "denies it", Action.ANSWER: "answers it"}

End = Enum("End", "DECIDED SKIPPED LEFT")  # how a dialog was left, unless another action was chosen


# Cases


class AttemptCase:
    """A decision about one attempt of a task, as the attempt was when the dialog opened."""

    advice = "Leave with escape, look at it, and open this again."
    title = "the child's words"
    asker = "the child's"
    elsewhere = "shorten it with ctrl+e"
    to_read = 0

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, action: Action):
        self.monitor, self.desk, self.seen, self.action = monitor, desk, task, action
        self.subject = desk.subject(task)
        self.form = DecisionForm(task, self.subject, action, monitor.tree.tasks.values(), dict(monitor.settings.modes))

    @property
    def task(self) -> Task | None:
        """The task as it is now, None if it is gone."""
        return self.monitor.tree.tasks.get(self.subject.task_id)

    def change(self, now: float) -> str | None:  # noqa: ARG002 - only a request depends on the time
        """Return a sentence on what has changed since the dialog opened, None if nothing has."""
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

    def facts(self, now: float) -> Iterator[Fact]:
        """Return the facts for the frame."""
        where = "in the ledger, copy in .agentwatch/decisions"
        if self.monitor.host:
            where = f"in the ledger of {quote_text(self.monitor.host, 60)}, once it has checked this"
        elif self.monitor.settings.read_only:
            where = "in the ledger, nowhere else (read only)"
        writes = f"{self.subject.decision_id[:DIGITS_OF_FILE]}….json {where}"
        about = self.seen, self.task or self.seen, self.subject, self.action, self.form.params()
        return facts(*about, now=now, writes=writes)

    def missing(self, note: str, unread: str) -> Missing | None:  # noqa: ARG002 - only for a request
        """Return the step that the operator has to take first, None if there is none."""
        return self.form.missing(self.task, note) if self.task else None

    async def words(self) -> list[Block]:
        """Return the foreign words, each line behind a bar."""
        run, returned = self.seen.run, self.seen.latest.returned
        label, version = ("whole return", returned) if returned or not run else ("its answer", run.said)
        content = await asyncio.to_thread(self.monitor.content, version) if version is not None else None
        parts = [*words_of_child(self.seen), *([(label, content)] if content else [])]
        return [Quotation(*part, wrap=True) for part in parts]

    def effect(self) -> str:
        """Return words on the effect of the recording key when nothing is missing."""
        return "records this decision; nothing is recorded before"

    async def sign(self, document: str, note: str) -> DecisionMade:
        """Record the decision as it is filled in. Raises DecisionError."""
        handed: dict[str, Any] = {self.form.spec.document: document} if document else {}
        params = replace(self.form.params(), **handed)
        return await self.monitor.decide(self.subject, self.action, params, note)

    def outcome(self, decided: DecisionMade) -> str:
        """Return a sentence on the outcome."""
        delivered = "delivered" if decided.undelivered is None else f"not delivered: {clean(decided.undelivered, 500)}"
        return f"{self.form.spec.word} {quote_text(name_of(self.seen), 24)}: recorded, {delivered}."


class RequestCase:
    """The answer to one request, as the request was when the dialog opened, whatever else is asked meanwhile."""

    advice = "Leave with escape."
    asker = "its"
    elsewhere = "answer it in its program"

    def __init__(self, monitor: Monitor, desk: DecisionService, task: Task, request: Request):
        self.monitor, self.desk, self.request, self.form = monitor, desk, request, RequestForm(request)
        is_permission = request.kind is RequestKind.PERMISSION
        self.title = "what it wants to do" if is_permission else "what belongs to it"
        # The number of blocks of words that must have been in sight before the request can be allowed.
        self.to_read = 2 if request.beside else 1
        above = [monitor.tree.tasks[one] for one in reversed(monitor.tree.ancestors(task.task_id))]
        self._asker = quote_text(BETWEEN.join(one.called for one in (*above, task)), 200)

    def change(self, now: float) -> str | None:
        asked, seen = self.monitor.tree.request(self.request.request_id), self.request
        if asked is None:
            return "It is not offered any more."
        _, request = asked
        if not request.waits_for_operator:
            return f"It cannot be answered any more: {standing_words(request, now)}."
        if (request.input_sha256, request.shown) != (seen.input_sha256, seen.shown):
            return "It is not the one that you looked at."
        return "Its time is over: answer it in its terminal." if now >= (request.until or now + 1) else None

    def facts(self, now: float) -> Iterator[Fact]:
        return request_facts(self.request, now, self._asker)

    def missing(self, note: str, unread: str) -> Missing | None:
        """Return the step that the operator has to take first; `unread` says what was not in sight yet."""
        return self.form.missing(note.strip(), unread)

    async def words(self) -> list[Block]:
        """Return the whole call and what belongs to it."""
        return [Quotation(*part) for part in words_of_request(self.request)]

    def effect(self) -> str:
        if self.form.params().rule is not None:
            return "allows it, and what the rule covers"
        action = self.form.action or Action.ANSWER
        always = " (“always”: only in its program)" if action is Action.ALLOW and not self.form.rules else ""
        return _EFFECTS[action] + always

    async def sign(self, document: str, note: str) -> DecisionMade:  # noqa: ARG002 - an answer has no document
        """Record the answer. Raises DecisionError."""
        return await self.monitor.answer(self.request, self.form.action or Action.DENY, self.form.params(), note)

    def outcome(self, decided: DecisionMade) -> str:  # noqa: ARG002 - there is nothing to deliver
        request, done = self.request, _DONE[self.form.action or Action.DENY]
        query = request.queries[0].question if request.queries else request.shown or request.input
        return f"{done} {clean(program_of(request.source), 20)}: {quote_text(query, 30)}"


Case = AttemptCase | RequestCase


# The fields of a form


class Choice(Widget, can_focus=True):
    """The options of a field. Arrow keys take the next one; if several can be taken, arrows move and space takes.

    Our own options are put into lines, as many as fit; options of a program or child are listed one below the other, in
    full, because RadioSet and SelectionList would cut each to one line, and what cannot be read cannot be chosen.
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
        """An option was taken or given back."""

    def __init__(self, field: Field):
        super().__init__(id=f"field-{field.key}")
        self._field, self._at = field, field.choice

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self._lines(width))

    def action_step(self, by: int) -> None:
        """Take the next option (`by` 1) or the one before (-1); if several can be taken, only move to it."""
        at = self._at if self._at is not None else min(-by, 0)
        self._at = (at + by) % len(self._field.options)
        if not self._field.several:
            self._choose(self._at)
        self.refresh()

    def action_take(self) -> None:
        """Take the option under the cursor, or give it back."""
        if not self._field.several or self._at is None:
            self.action_step(1)
        if self._field.several and self._at is not None:
            self._choose(self._at)

    def on_click(self, event: events.Click) -> None:
        if (number := event.style.meta.get("choice")) is not None:
            self._choose(number)

    def _choose(self, number: int) -> None:
        field, self._at = self._field, number
        field.taken = sorted({*field.taken} ^ {number}) if field.several else [number]
        self.refresh()
        self.post_message(self.Changed())

    def _lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        field, marks = self._field, "□■" if self._field.several else "○●"
        for number, (label, description) in enumerate(field.options):
            is_taken = number in field.taken
            style = "bold $text-accent" if is_taken else "$text-muted"
            mark = Content.styled(f"{marks[is_taken]} ", style)
            if field.question is not None:
                here = Content("›" if field.several and number == self._at else " ")
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


def _row(label: str, field: Widget) -> Horizontal:
    """Return a row of a label and a field."""
    return Horizontal(Static(label, classes="label", markup=False), field, classes="row")


def _input(placeholder: str, key: str) -> Input:
    return Input(placeholder=placeholder, compact=True, select_on_focus=False, max_length=4_000, id=f"field-{key}")


def _widgets_of(field: Field) -> Iterator[Widget]:
    if field.options:
        yield Choice(field)
    if field.placeholder:
        yield _input(field.placeholder, f"{field.key}-text")


class DecisionScreen(ModalScreen[End | Action]):
    """Shows the form of a case. Ends with how it was left, or with the action that the operator wants instead.

    `place` are facts on where the task is; `queue` is the dialog's number in a review, and how many there are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Home.DECIDE),
        # These keys scroll the text to be read, whichever field has the focus and takes the other keys.
        Binding("pagedown", "read(1)", show=False),
        Binding("pageup", "read(-1)", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = ""

    # `.row:focus-within` itself needs a rule, or Textual would not restyle its children.
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
        # When the recording key begins to work, on the monotonic clock; never before the dialog is in sight.
        self._armed_at = math.inf
        self._trouble = ""
        self._is_recording = self._is_read = self._was_early = False
        self._note = _input(case.form.spec.placeholder, "note")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True
        )
        self._unlock = _row("unlock", self._passphrase)
        self._unlock.display = False
        self._facts = Static(id="facts", markup=False)
        self._standings = Static(id="standing", markup=False), Static(id="standing-low", markup=False)
        self._page = Page()
        self._page.id = "field-words"
        self._document: Document | None = None
        if isinstance(case, AttemptCase) and case.form.spec.document:
            self._document = Document(case.form, case.monitor, case.desk.state, self._appear)
        self._footer = Footer(Place.DECIDE, lambda name: not self.check_action(app.commands[name].action, ()))

    # The screen

    def compose(self) -> ComposeResult:
        form = self.case.form
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {form.spec.glyph} {form.spec.word}"
                yield self._facts
                for one in form.fields:
                    for number, widget in enumerate(_widgets_of(one) if one.label else ()):
                        yield _row("other" if number else one.label, widget)
                if self._document:
                    yield _row(self._document.label, self._document.status)
                if form.spec.note:
                    yield _row(form.spec.note, self._note)
                yield self._unlock
                yield self._standings[0]
            with Vertical(id="below"):
                if self._document:
                    yield self._document
                if asked := [one for one in form.fields if not one.label]:
                    with VerticalScroll(id="answers", can_focus=False) as answers:
                        is_asked = any(one.question is not None for one in asked)
                        below = f"your answers, below {self.case.asker} questions"
                        answers.border_title = below if is_asked else "your words to the child"
                        for one in asked:
                            if one.question is not None:
                                yield Static(clean_row(one.question, LONGEST), classes="question", markup=False)
                            yield from _widgets_of(one)
                with Vertical(id="words") as words:
                    words.border_title = self.case.title
                    yield self._page
        yield self._standings[1]
        yield self._footer

    def _go_to(self, key: str) -> None:
        """Focus the field with this key."""
        names = f"field-{key.replace('.', '-')}"
        if key and (found := self.query(f"#{names}, #{names}-text")):
            self.set_focus(found.first())

    def on_mount(self) -> None:
        self.app.app_resume_signal.subscribe(self, lambda _app: self._arm())
        self.set_interval(1.0, self.look)
        self._go_to(self.case.form.first)
        self._read_words()
        for page in self.query("#decision, Page, TextArea"):
            self.watch(page, "scroll_y", self._look_soon, init=False)
        self.call_after_refresh(self._arm)

    def _look_soon(self) -> None:
        self.call_after_refresh(self.look)

    @work
    async def _read_words(self) -> None:
        blocks = await self.case.words()
        # The dialog may have been left meanwhile.
        if self.is_attached:
            self._page.show(blocks, keep=False)
            self.query("#words").set_class(not blocks, "-empty")
            self._look_soon()

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self.set_class(width >= _WIDE, "-wide")
        if width >= _WIDE:
            self.remove_class("-reading")
        self.set_class(height < _TALL, "-low")
        self.set_class(width < _LEAST[0] or height < _LEAST[1], "-small")
        self._look_soon()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self, event: Input.Changed | Choice.Changed) -> None:
        """Take in what the operator has changed, and drop the error before it."""
        self._trouble = ""
        if isinstance(event, Input.Changed):
            for one in self.case.form.fields:
                if event.input.id == f"field-{one.key}-text":
                    one.text = event.value
        # The passphrase is no part of the document.
        if self._document and event.control is not self._passphrase:
            # After any change but that of the note, the document may hold other words of agents, to be read again.
            self._is_read = self._is_read and event.control is self._note
            self._document.remake(self._note.value)
        self.look()

    def _arm(self, *, early: bool = False) -> None:
        """Start the time in which the recording key does not work, also when it was pressed too `early`."""
        self._was_early = early or (self._was_early and not self._is_armed)
        self._armed_at = self._app.steady() + ARMING_SECONDS
        # Textual's timers may fire half a millisecond early.
        self.set_timer(ARMING_SECONDS + 0.001, self.look)
        self.look()

    def _appear(self) -> None:
        """Note that a new document is there, which nobody has read yet."""
        self._is_read = False
        self._arm()

    @property
    def _is_armed(self) -> bool:
        return self._app.steady() >= self._armed_at

    @on(TreeUpdated)
    @on(Document.Checked)
    def look(self) -> None:
        """Update facts, frame and last line, but not before keys are heard: operators type once that line shows."""
        if self._armed_at == math.inf or not self.is_attached:
            return
        if self._document:
            self._document.show_status()
        ours, subtitle = self.query_one("#ours"), self._subtitle()
        # Textual would paint the frame anew even for an equal subtitle.
        if ours.border_subtitle != subtitle:
            ours.border_subtitle = subtitle
        show_words(self._facts, Content("\n").join(self._fact_lines()))
        standing = self._standing()
        for one in self._standings:
            show_words(one, standing)
        self._footer.redraw()

    def _subtitle(self) -> str:
        """Return the place in the review, and when the first of other requests with a time limit runs out."""
        parts = [f"{self._queue[0]} of {self._queue[1]}"] if self._queue is not None else []
        own = self.case.request.request_id if isinstance(self.case, RequestCase) else None
        asked = chain(*(task.requests for task in self._app.monitor.tree.asking()))
        ends = [one.until for one in asked if one.can_answer and one.until is not None and one.request_id != own]
        if ends:
            parts.append(f"■ {plural(len(ends), 'other request')}: {duration(min(ends) - self._app.clock())} left")
        return "   ".join(parts)

    def _fact_lines(self) -> Iterator[Content]:
        width = max((self._facts.size.width or self.size.width - 6) - LABEL, 8)
        first, *others = self.case.facts(self._app.clock())
        for label, parts in (first, *self._place, *others):
            styled = [Content.styled(words, style if style in ("", "bold") else f"${style}") for words, style in parts]
            style = "$text-warning" if label == "beware" else "$text-muted"
            # Each line begins with a label of ours, so foreign words cannot look like a label.
            for number, line in enumerate(Content(" ").join(styled).wrap(width)):
                yield Content.styled(f"{'…' if number else label:<{LABEL}}", style) + line

    def _standing(self) -> Content:
        """Return the last line of our frame: what the recording key would do, or why it does nothing."""
        if self._is_recording:
            return Content("recording…")
        change = self.case.change(self._app.clock())
        # The change comes first: it may tell what became of a decision after an error.
        if trouble := (change and f"{change} {self.case.advice}") or self._trouble:
            return Content.styled(f"✗ {trouble}", "bold $text-error")
        if self._was_early and not self._is_armed:
            return Content.styled("◌ too early, nothing is recorded: ctrl+s counts in a moment", "$text-warning")
        if missing := self._missing():
            return Content.styled(f"○ not yet: {missing.reason}", "$text-warning")
        if not self._is_armed:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), f" {self.case.effect()}")

    def _missing(self) -> Missing | None:
        if self.has_class("-small"):
            return Missing(f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed")
        # Ask this whatever is chosen, so that reading first and choosing then counts as read.
        document = self._document
        if missing := self.case.missing(self._note.value, "" if document else self._unread()):
            return missing
        reason = document and (document.missing() or self._unread())
        return Missing(reason, "document" if document and document.problems else "") if reason else None

    # Reading

    def action_read(self, pages: int) -> None:
        page: Page | TextArea = self._page
        if self._document and self._unread():
            page, _ = self._document.reading
            self.set_class(not self.has_class("-wide"), "-reading")
        page.scroll_visible(animate=False)
        page.scroll_relative(y=pages * max(page.size.height - 1, 1), animate=False, immediate=True)

    def _unread(self) -> str:
        """Return words on the part of the call or document that was not in sight yet, "" once its end was."""
        if self._is_read or not (self._document or self.case.to_read):
            return ""
        own = self._document and self._document.reading
        page, end = own or (self._page, self._page.end_of(self.case.to_read))
        lines = page.lines if isinstance(page, Page) else ("",)
        if any(line.startswith(TRUNCATED) for line in lines[: end + 1]):
            return f"it is too long to be read here: {self.case.elsewhere}"
        left = end
        with suppress(NoWidget):
            place = self.find_widget(page)
            # In a low window only a part of the page's own lines may be in sight.
            in_sight = (place.visible_region.bottom - place.region.y) * bool(place.visible_region)
            left = end - int(page.scroll_offset.y) - in_sight
        if left > 0 or not lines:
            return f"{plural(max(left, 1), 'more line')} below: read to the end first (pagedown)"
        # Not before the key works: until the facts are there, the text below may be in sight for a moment.
        self._is_read = self._is_armed
        if self._is_read:
            self.remove_class("-reading")
        return ""

    # Recording

    async def action_record(self) -> None:
        """Record the decision, unless the key comes too early, as one does that is held down since the dialog before.
        Later keys wait for this, at most `_PATIENCE` seconds."""
        if self._is_recording:
            return
        if not self._is_armed:
            self._arm(early=True)
            return
        self._trouble = ""
        is_same, missing = self.case.change(self._app.clock()) is None, self._missing()
        if is_same and missing:
            self._go_to(missing.key)
        self._is_recording = is_same and missing is None
        self.look()
        if self._is_recording:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._record().wait()), _PATIENCE)

    @work
    async def _record(self) -> None:
        try:
            decided = await self._sign()
        except DecisionError as error:
            decided, self._trouble = None, clean(str(error), 1_000)
        finally:
            self._is_recording = False
        if decided is None:
            self.look()
            return
        words = "\n".join(filter(None, (self.case.outcome(decided), clean(decided.doubt or "", 500))))
        if decided.doubt is None and decided.undelivered is None:
            self.app.notify(words, markup=False)
        else:
            self._app.complain(words)
        self.leave(End.DECIDED)

    async def _sign(self) -> DecisionMade | None:
        """Record the decision; return None if something is missing. Raises DecisionError."""
        if not await self._open_key():
            return None
        document, note = self._document, self._note.value
        text = document.text if document else ""
        if document and not await document.is_same(note):
            self._trouble = f"The {document.label} is not what you saw: read it, then press ctrl+s again."
            return None
        # Check again, because things may have changed during the reads above.
        if not self._is_armed:
            self._trouble = "Nothing is recorded, for something changed meanwhile: read it, then press ctrl+s again."
            return None
        if self.case.change(self._app.clock()) is not None or self._missing():
            return None
        return await self.case.sign(text, note.strip())

    async def _open_key(self) -> bool:
        """Unlock the signing key with the typed passphrase; return False and ask for it if it is missing. Raises
        KeyProblemError."""
        desk, field = self.case.desk, self._passphrase
        if field.value:
            with field.prevent(Input.Changed):
                passphrase, field.value = field.value, ""
            await asyncio.to_thread(desk.unlock, passphrase)
        why = await asyncio.to_thread(desk.why_locked)
        self._unlock.display = why is not None
        if why is not None:
            self.set_focus(field)
            self._trouble = f"{clean(why[:1].upper() + why[1:], 1_000)}: type its passphrase, then press ctrl+s."
        return why is None

    # Keys

    def leave(self, end: End | Action) -> None:
        """Leave, but only if this screen is on top: otherwise Textual would dismiss the screen above it."""
        if self.is_active and not self._is_recording:
            self.dismiss(end)

    def action_leave(self) -> None:
        self.leave(End.LEFT)

    def action_copy_or_leave(self) -> None:
        """Copy the text selected with the mouse, else leave; for a key that no field has taken."""
        try:
            self.action_copy_text()
        except SkipAction:
            self.leave(End.LEFT)

    def action_skip(self) -> None:
        self.leave(End.SKIPPED)

    def action_instead(self, number: int) -> None:
        """Open the dialog of another action about the same attempt."""
        case, action = self.case, OF_ATTEMPTS[number]
        if not isinstance(case, AttemptCase) or case.task is None or action is case.action:
            return
        if reason := why_not(case.task, action, self._app.clock()):
            self._app.complain(f"{SPECS[action].word}: {reason}.")
        else:
            self.leave(action)

    def action_changes(self) -> None:
        """Show the changes to the last handoff, or the editor again."""
        if self._document:
            self._document.toggle_changes()

    def action_edit_document(self) -> None:
        """Open the document in the operator's editor; the screen waits."""
        if self._document:
            self._app.complain(self._document.edit())
            # Keys typed for the editor must not decide here.
            self._arm()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Return whether this dialog has the action; without a document, the focused field gets the document's keys."""
        name = action_name(action)
        if name == "skip":
            return self._queue is not None
        if name == "instead":
            return isinstance(self.case, AttemptCase)
        return name not in ("edit_document", "changes") or self._document is not None


class Review:
    """Opens dialogs about tasks, each when the one before is decided or skipped.

    Without an `action`, each dialog opens with the action that the contracts suggest; the operator can choose another.
    A task with open requests has a dialog for each. A task that cannot be decided when its turn comes is left out.
    """

    def __init__(self, app: AgentwatchApp, task_ids: Sequence[str], action: Action | None):
        self._app, self._action, self._at = app, action, 0
        self._turns: list[tuple[str, str | None]] = []
        for task_id in task_ids:
            task = app.monitor.tree.tasks.get(task_id)
            asked = [one.request_id for one in task.requests if one.can_answer] if task and action is None else []
            self._turns += [(task_id, request_id) for request_id in asked or (None,)]

    async def open(self, action: Action | None) -> None:
        """Open the next dialog that is possible, from the present turn on."""
        app, count, tasks = self._app, len(self._turns), self._app.monitor.tree.tasks
        for at in range(self._at, count):
            self._at, (task_id, request_id) = at, self._turns[at]
            case = _case_of(app, task_id, request_id, action)
            if isinstance(case, Case):
                top = tasks.get(tasks[task_id].scope) if task_id in tasks else None
                place = [fact("in", quote_text(top.title, 200))] if top else []
                if case.monitor.host:
                    place.append(fact("host", quote_text(case.monitor.host, 200), "bold"))
                queue = (at + 1, count) if count > 1 else None
                await app.push_screen(DecisionScreen(app, case, place, queue), self._go_on)
                return
            app.complain(case)
            action = self._action

    async def _go_on(self, end: End | Action | None) -> None:
        if isinstance(end, Action):
            await self.open(end)
            return
        if end is End.DECIDED:
            self._app.main.task_tree.unmark(self._turns[self._at][0])
        self._at += 1
        if end is not End.LEFT:
            await self.open(self._action)


def _case_of(app: AgentwatchApp, task_id: str, request_id: str | None, action: Action | None) -> Case | str | None:
    """Return the case of a task's request, or of an action about its attempt; a sentence if it cannot be decided now;
    None if it is gone."""
    monitor, own_id = app.monitor.of(task_id)
    task, now = monitor.tree.tasks.get(own_id), app.clock()
    asked = [one for one in task.requests if one.can_answer and request_id in (None, one.request_id)] if task else []
    if task is None or (request_id is not None and not asked):
        return None
    if action is None:
        likely = (policy.suggested(task) or Action.ACCEPT, *_LIKELY)
        action = next((one for one in likely if why_not(task, one, now) is None), likely[0])
        # A request of the task's program comes before any other decision about the task.
        action = Action.RESPOND if task.request else action
    is_request = bool(asked) and action is Action.RESPOND
    reason = unfit(asked[0]) if is_request else why_not(task, action, now)
    # The row of a host uses the host's clerk, which says why nothing can be decided there.
    clerk = monitor.behind(task_id).clerk
    if monitor.clerk is None or clerk is None:
        reason = "its workspace is not being watched yet"
    elif clerk.desk.unreachable is not None:
        reason = clean(clerk.desk.unreachable, 400)
    if reason is not None or monitor.clerk is None:
        return f"{SPECS[action].word} {quote_text(task.title if task.workspace else own_id, 60)}: {reason}."
    if is_request:
        return RequestCase(monitor, monitor.clerk.desk, task, asked[0])
    return AttemptCase(monitor, monitor.clerk.desk, task, action)
