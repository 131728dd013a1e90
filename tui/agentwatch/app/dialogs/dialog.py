"""The dialog that signs something: a frame that foreign text cannot enter, and the one key that records.

From top to bottom: the frame of ours with the facts, the operator's choices and what is true now; then what is handed
on, and foreign words. Only `ctrl+s` decides, not before the operator could have read what it is about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import ClassVar, Final

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
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.cases import BAR, SHORT, AttemptCase, Case, RequestCase
from agentwatch.app.dialogs.document import Document, Said
from agentwatch.app.guards import Arming, leave
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.details.blocks import FAINT
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.form import LONGEST, Field, Missing
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action
from agentwatch.text import clean, exact
from agentwatch.view.words import plural

LABEL: Final = 10
"""Cells of the column with the labels."""
_GAP: Final = 2
_MODE_CELLS: Final = 40
_TOAST: Final = 54
_OF_TOAST: Final = 0.7
"""Cells of a toast that is one line, and the part of the screen's."""
_WIDE: Final = 110
"""Cells from which foreign words stand beside what is handed on."""
_TALL: Final = 24
"""Lines of screen from which the whole frame is in sight: in fewer its last line stands below what scrolls."""
_LEAST: Final = 30, 10
"""Cells and lines of screen below which nothing is recorded: what it is about could not be read."""
_PAGES: Final = {"pagedown": 1, "pageup": -1}

_STYLES: Final = {"": "", "bold": "bold"}

End = Enum("End", "DECIDED SKIPPED LEFT")
"""How a dialog was left, where not for another action."""


def _line_input(placeholder: str, **options: object) -> Input:
    return Input(placeholder=placeholder, compact=True, select_on_focus=False, **options)  # type: ignore[arg-type]


class Choice(Widget, can_focus=True):
    """The options of a field. Arrow keys take the next one; where several can be taken, they move, and space takes.

    Those of ours flow, as many in a line as there is room for; those of an asker stand one below the other, whole:
    RadioSet and SelectionList would cut each to one line, and who cannot read them cannot choose.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,down,l,j", "step(1)", "Next", show=False),
        Binding("left,up,h,k", "step(-1)", "Previous", show=False),
        Binding("space", "take", "Take", show=False),
    ]

    DEFAULT_CSS = """
    Choice { height: auto; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    Choice:focus { background: $cursor-row; }
    Choice:focus:ansi { text-style: underline; }
    """

    class Changed(Message):
        """Another one was taken."""

    def __init__(self, field: Field) -> None:
        super().__init__(id=f"field-{field.key}" if field.key.isdigit() else field.key)
        self._field, self._at = field, field.choice

    def render(self) -> Content:
        rows = self._rows(self.content_size.width)
        return Content("\n").join(Content(" " * _GAP).join([part for _, part in row]) for row in rows)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self._rows(width))

    def action_step(self, by: int) -> None:
        """Go to the next one, or the one before."""
        before = self._at if self._at is not None else -1 if by > 0 else 0
        self._go((before + by) % len(self._field.options))

    def action_take(self) -> None:
        """Take the one under the cursor, or give it back."""
        if not self._field.several or self._at is None:
            self.action_step(1)
        if self._field.several and self._at is not None:
            self._toggle(self._at)

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        start = 0
        for number, part in self._rows(self.content_size.width)[offset.y] if offset is not None else ():
            if offset is not None and start <= offset.x < start + part.cell_length:
                self._go(number)
                if self._field.several:
                    self._toggle(number)
            start += part.cell_length + _GAP

    def _go(self, number: int) -> None:
        self._at = number
        if not self._field.several and self._field.taken != [number]:
            self._field.taken = []
            self._toggle(number)
        self.refresh()

    def _toggle(self, number: int) -> None:
        self._field.taken = sorted(set(self._field.taken) ^ {number})
        self.refresh()
        self.post_message(self.Changed())

    def _rows(self, width: int) -> list[list[tuple[int, Content]]]:
        """The lines, each of the parts of options."""
        rows: list[list[tuple[int, Content]]] = []
        marks = ("□", "■") if self._field.several else ("○", "●")
        for number, (label, description) in enumerate(self._field.options):
            taken = number in self._field.taken
            style = "bold $text-accent" if taken else "" if self._field.question is not None else "$text-muted"
            if self._field.question is None:
                whole = f"{label} ({description})" if description else label
                words = clip(shown(whole), _MODE_CELLS if description else max(width - 2, _MODE_CELLS))
                part = Content.styled(f"{marks[taken]} {words}", style)
                used = sum(one.cell_length + _GAP for _, one in rows[-1]) if rows else width
                if used + part.cell_length > width:
                    rows.append([])
                rows[-1].append((number, part))
                continue
            here = "›" if self._field.several and number == self._at else " "
            room = max(width - 5, 8)
            lines = [Content.styled(line.plain, style) for line in Content(exact(label, LONGEST)).wrap(room)]
            about = Content(shown(description, LONGEST)).wrap(room)
            lines += [Content.styled(line.plain, "$text-muted") for line in about if line]
            rows.append([(number, Content.assemble((f"{here}{marks[taken]} ", style or "$text-muted"), lines[0]))])
            rows += [[(number, Content.assemble(("  ┊ ", "$text-muted"), line))] for line in lines[1:]]
        return rows


class Question(Static):
    """A question of an asker: each line of it begins behind the bar."""

    DEFAULT_CSS = "Question { height: auto; text-wrap: nowrap; }"

    def __init__(self, source: str) -> None:
        super().__init__(markup=False)
        self._source = Content(shown(source, LONGEST))

    def render(self) -> Content:
        return self._behind(self.content_size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return self._behind(width).plain.count("\n") + 1

    def _behind(self, width: int) -> Content:
        lines = self._source.wrap(max(width - len(BAR), 8))
        return Content("\n").join([Content.styled(BAR, FAINT) + line for line in lines])


class Row(Horizontal):
    """A label of ours and a field of the operator's."""

    # Textual looks at the children anew only where the row itself has a rule for its focus.
    DEFAULT_CSS = f"""
    Row {{ height: auto; }}
    Row:focus-within {{ text-style: none; }}
    Row > .label {{ width: {LABEL}; color: $text-muted; }}
    Row:focus-within > .label {{ color: $text-accent; text-style: bold; }}
    """

    def __init__(self, label: str, field: Widget) -> None:
        super().__init__(Static(label, classes="label", markup=False), field)


class DecisionScreen(ModalScreen[End | Action]):
    """Shows the form of a case. Ends with how it was left, or with the action that is wanted instead.

    `clock` gives seconds since the epoch, `steady` those of a clock that nobody sets. `queue` is its place in a review,
    and how many there are.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.DECIDE)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"details--faint"}
    AUTO_FOCUS = ".first"

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
    DecisionScreen.-low.-wide #below { height: 12; }
    DecisionScreen.-low.-wide Document, DecisionScreen.-low.-wide #answers, DecisionScreen.-low.-wide #words {
        height: 1fr;
    }
    DecisionScreen #ours {
        height: auto; border: double $accent; padding: 0 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-accent;
    }
    DecisionScreen #facts { height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    DecisionScreen #standing { height: auto; }
    DecisionScreen #standing-low { display: none; height: auto; padding: 0 1; background: $panel; }
    DecisionScreen.-low #standing, DecisionScreen.-small > #decision { display: none; }
    DecisionScreen.-low #standing-low, DecisionScreen.-small #standing-low { display: block; }
    DecisionScreen.-small #standing-low { height: 1fr; }
    DecisionScreen #words { height: 1fr; }
    DecisionScreen #answers { height: 2fr; }
    DecisionScreen #words, DecisionScreen #answers {
        min-height: 4; border: round $line; border-title-color: $text-muted;
    }
    DecisionScreen #words:focus-within, DecisionScreen #answers:focus-within { border: round $text-muted; }
    DecisionScreen Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    DecisionScreen Input:focus { border: none; background: $cursor-row; background-tint: transparent; }
    DecisionScreen .-wanted, DecisionScreen Input.-wanted:focus { background: $error 25%; }
    DecisionScreen #answers Input { margin-left: 2; }
    DecisionScreen:ansi Input { text-style: underline; }
    """

    def __init__(
        self,
        case: Case,
        clock: Callable[[], float],
        steady: Callable[[], float],
        queue: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(classes="-request" if isinstance(case, RequestCase) else "")
        self.case, self.form, self._clock, self._queue = case, case.form, clock, queue
        self.seen_at: float | None = None
        """When it was on the screen for the first time, by the clock of events: it hears nothing that was typed before.
        """
        self._arming = Arming(self, steady, self.look)
        self._trouble = ""
        self._recording = self._is_decided = self._is_read = False
        self._note = _line_input(self.form.spec.placeholder, id="note")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True
        )
        self._unlock = Row("unlock", self._passphrase)
        self._unlock.display = False
        self._facts = Said(id="facts", markup=False)
        self._page = Page()
        self._document: Document | None = None
        if isinstance(case, AttemptCase) and case.form.spec.document:
            self._document = Document(case.form, case.monitor, case.desk.state)
        self._standings = Said(id="standing", markup=False), Said(id="standing-low", markup=False)
        self._inputs: dict[str, Input] = {}
        self._choices: dict[str, Choice] = {}
        for one in self.form.fields:
            if one.options:
                self._choices[one.key] = Choice(one)
            if one.placeholder:
                self._inputs[one.key] = _line_input(one.placeholder, max_length=4_000 if one.key != "mode" else 200)
        first = self._choices.get(self.form.first) or self._inputs.get(self.form.first) or self._note
        first.add_class("first")
        self._wanted: Missing | None = None
        """Show what was missing when the key that records was pressed, where one looks."""
        self._footer = Footer(
            Place.DECIDE, is_useless=self.is_useless, refused=lambda: self._wanted.reason if self._wanted else ""
        )

    @property
    def note(self) -> str:
        return self._note.value

    # The screen

    def compose(self) -> ComposeResult:
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {self.form.spec.glyph} {self.form.spec.word}"
                if self._queue is not None:
                    ours.border_subtitle = f"{self._queue[0]} of {self._queue[1]}"
                yield self._facts
                yield from self._rows()
                if self._document is not None:
                    yield Row(self._document.label, self._document.status)
                if self.form.spec.note:
                    yield Row(self.form.spec.note, self._note)
                yield self._unlock
                yield self._standings[0]
            with Vertical(id="below"):
                if self._document is not None:
                    yield self._document
                yield from self._answers()
                with Vertical(id="words") as words:
                    words.border_title = self.case.title
                    yield self._page
        yield self._standings[1]
        yield self._footer

    def _rows(self) -> Iterator[Row]:
        for one in self.form.fields:
            if one.label and one.options:
                yield Row(one.label, self._choices[one.key])
            if one.label and one.placeholder:
                yield Row("other" if one.options else one.label, self._inputs[one.key])

    def _answers(self) -> ComposeResult:
        asked = [one for one in self.form.fields if not one.label]
        if asked:
            with VerticalScroll(id="answers", can_focus=False) as answers:
                whose = "its" if isinstance(self.case, RequestCase) else "the child's"
                answers.border_title = f"your answers, below {whose} questions"
                for one in asked:
                    if one.question is not None:
                        yield Question(one.question)
                    if one.options:
                        yield self._choices[one.key]
                    yield self._inputs[one.key]

    def on_mount(self) -> None:
        self.app.app_resume_signal.subscribe(self, lambda _app: self._arming.begin())
        self.set_interval(1.0, self.look)
        self._read_words()
        for scrolls in (self._page, self.query_one("#decision")):
            self.watch(scrolls, "scroll_y", self._scrolled, init=False)
        self.screen_layout_refresh_signal.subscribe(self, lambda _screen: self._say_what_is_left())
        self.call_after_refresh(self._be_seen)

    @work
    async def _read_words(self) -> None:
        blocks = await self.case.words()
        # It may have been left meanwhile.
        if self.is_attached and (words := self.query("#words")):
            self._page.show(blocks, keep=False)
            words.set(display=bool(blocks))

    def _be_seen(self) -> None:
        self.seen_at = time.monotonic()
        self._arming.begin()
        self.look()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "-wide")
        self.set_class(event.size.height < _TALL, "-low")
        was_small = self.has_class("-small")
        self.set_class(event.size.width < _LEAST[0] or event.size.height < _LEAST[1], "-small")
        if was_small and not self.has_class("-small"):
            # What was out of sight has lost the focus.
            self.call_after_refresh(self.focus_next, self.AUTO_FOCUS)
        self.call_after_refresh(self.look)

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self, event: Input.Changed | Choice.Changed) -> None:
        """The operator has changed something: what was wrong before may be right now."""
        for one in self.form.fields:
            if one.key in self._inputs:
                one.text = self._inputs[one.key].value
        self._trouble = ""
        self._mark(None)
        # A passphrase is no part of it.
        if self._document is not None and not (isinstance(event, Input.Changed) and event.input.password):
            self._document.remake(self.note)
        self.look()
        if self.focused is not None and self.has_class("-low"):
            # What is written may be out of sight, once the facts above have the lines that they need.
            self.call_after_refresh(self.focused.scroll_visible, animate=False)

    @on(TreeUpdated)
    @on(Document.Checked)
    def look(self) -> None:
        """Say what is true now, once keys are heard: the operator types as soon as the last line stands."""
        if self.seen_at is None or not self.is_attached:
            return
        if self._document is not None:
            self._document.show_status()
        if self._wanted is not None and self._missing() != self._wanted:
            self._mark(None)
        width = (self._facts.size.width or self.size.width - 6) - LABEL
        is_cut = self._is_cut and isinstance(self.case, RequestCase)
        cautions = ["it is longer than what is shown below"] if is_cut else []
        lines = []
        for label, parts in self.case.facts(self._clock(), cautions, low=self.has_class("-low")):
            words = Content(" ").join([Content.styled(said, _STYLES.get(style, f"${style}")) for said, style in parts])
            style = "$text-warning" if label == "beware" else "$text-muted"
            # Each line begins with a label of ours: foreign words cannot look like one.
            for number, line in enumerate(words.wrap(max(width, 8))):
                lines.append(Content.styled(f"{'…' if number else label:<{LABEL}}", style) + line)
        self._facts.tell(Content("\n").join(lines))
        for standing in self._standings:
            standing.tell(self._standing())
        self._footer.redraw()

    @on(Document.Appeared)
    def _begin_reading(self) -> None:
        self._arming.begin()
        if self._document is not None:
            self._document.is_unread = False

    def _standing(self) -> Content:
        """The last line that is ours: what the key would do, or why it does nothing."""
        if self._recording:
            return Content("recording…")
        if self._trouble:
            return Content.styled(f"✗ {self._trouble}", "bold $text-error")
        if change := self.case.change(self._clock()):
            return Content.styled(f"✗ {change} {self.case.advice}", "bold $text-error")
        if missing := self._missing():
            return Content.styled(f"○ not yet: {missing.reason}", "$text-warning")
        if not self._arming.is_over:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), f" {self.case.effect()}")

    def _missing(self) -> Missing | None:
        if self.has_class("-small"):
            return Missing(f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed")
        if isinstance(self.case, RequestCase):
            # Whatever is chosen: who reads it first, and chooses then, has read it.
            return self.case.form.missing(self.note.strip(), self._unread(self.case))
        if not isinstance(self.case, AttemptCase) or self.case.task is None:
            return Missing("the task has gone")
        if missing := self.case.form.missing(self.case.task, self.note):
            return missing
        reason = self._document.missing() if self._document is not None else None
        return Missing(reason, "document" if self._document and self._document.problems else "") if reason else None

    def _mark(self, wanted: Missing | None) -> None:
        """Say at its field what is missing, and go there; None: nothing is."""
        self.query(".-wanted").remove_class("-wanted")
        self._wanted = wanted
        if wanted is None or not wanted.key:
            return
        others = {"note": self._note, "words": self._page, "document": self._document and self._document.area}
        inputs = self._inputs.get(wanted.key.removesuffix(".text"))
        field = self._choices.get(wanted.key) or inputs or others.get(wanted.key)
        if field is not None:
            field.add_class("-wanted")
            if isinstance(field, Input):
                field.placeholder = wanted.reason
            field.focus()
            self.call_after_refresh(field.scroll_visible, animate=False)

    # Reading

    def on_key(self, event: events.Key) -> None:
        """Whatever has the focus: what is decided on can be read, and the next key chooses."""
        if event.key in _PAGES:
            event.stop()
            self._page.scroll_visible(animate=False)
            self._page.action_move_pages(_PAGES[event.key])

    def _scrolled(self) -> None:
        self._say_what_is_left()
        self.call_after_refresh(self.look)

    def _say_what_is_left(self) -> None:
        left = len(self._page.lines) - self._page.top - self._page.height
        below = f"{plural(left, 'more line')}: pagedown" if left > 0 else ""
        words = self.query_one("#words")
        if isinstance(self.case, RequestCase) and words.border_subtitle != below:
            words.border_subtitle = below

    @property
    def _is_cut(self) -> bool:
        lines = self._page.lines
        return bool(lines) and lines[-1].startswith("truncated: ")

    def _unread(self, case: RequestCase) -> str:
        """The part of the call that was not in sight yet, "" once its end was."""
        lines = self._page.lines
        ends = [number for number, line in enumerate(lines) if number and not line.startswith(" ")]
        end = ends[case.to_read - 1] if len(ends) >= case.to_read else len(lines)
        if lines and lines[min(end, len(lines) - 1)].startswith("truncated: "):
            return "it is too long to be read here: answer it in its program"
        is_short = case.to_read == 1 and len(case.call) <= SHORT
        if is_short and self.has_class("-low") and self._in_sight(self._facts) >= self._facts.size.height:
            self._is_read = True
        left = end - (self._page.top + self._in_sight(self._page) if lines else 0)
        self._is_read = self._is_read or (bool(lines) and left <= 0)
        return "" if self._is_read else f"{plural(max(left, 1), 'more line')} below: read to the end first (pagedown)"

    def _in_sight(self, widget: Widget) -> int:
        """Which line of a widget is the last in sight, counted from its first; 0 if none is."""
        try:
            place = self.find_widget(widget)
        except NoWidget:
            return 0
        return place.visible_region.bottom - place.region.y if place.visible_region else 0

    # Recording

    def action_record(self) -> None:
        """Record the decision. A key that is held down, from the dialog before perhaps, decides nothing."""
        if self._recording:
            return
        if not self._arming.is_over:
            self._arming.begin()
            self.look()
            return
        self._trouble = ""
        if self.case.change(self._clock()) is None:
            wanted = self._missing()
            self._mark(wanted)
            if wanted is None:
                self._recording = True
                self._record()
        self.look()

    @work
    async def _record(self) -> None:
        decided = None
        try:
            decided = await self._sign()
        except DecisionError as error:
            self._trouble = clean(str(error), 1_000)
        finally:
            self._recording = False
        if decided is None:
            self.look()
            return
        outcome = self.case.outcome(decided, min(int(self.size.width * _OF_TOAST), _TOAST))
        words = "\n".join(filter(None, (outcome, clean(decided.doubt or "", 500))))
        if decided.doubt is None and decided.undelivered is None:
            self.app.notify(words, markup=False, timeout=4)
        else:
            self.app.notify(words, severity="warning", markup=False, timeout=12)
        self._leave_decided()

    async def _sign(self) -> DecisionMade | None:
        """Record it; None if something is missing. Raises DecisionError."""
        if locked := await self._open_key():
            self._trouble = locked
            return None
        document = self._document
        shown_text = document.text if document is not None else ""
        is_sound = document is None or await document.is_sound(self.note)
        if document is not None and document.text != shown_text:
            self._trouble = f"The {document.label} is not what you saw: read it, then press ctrl+s again."
        # What was found true before the disk was asked may be so no more.
        is_changed = self.case.change(self._clock()) is not None or not self._arming.is_over
        if not is_sound or is_changed or self._missing() is not None:
            return None
        return await self.case.sign(shown_text, self.note.strip())

    async def _open_key(self) -> str | None:
        """Unlock the key that signs, with the passphrase that was typed. Returns why it cannot sign yet, a sentence.

        Raises KeyProblemError.
        """
        desk, field = self.case.desk, self._passphrase
        if not field.value:
            why = await asyncio.to_thread(desk.why_locked)
            if why is None:
                return None
            self._unlock.display = True
            field.focus()
            return f"{clean(why[:1].upper() + why[1:], 1_000)}: type its passphrase, then press ctrl+s."
        with field.prevent(Input.Changed):
            passphrase, field.value = field.value, ""
        await asyncio.to_thread(desk.unlock, passphrase)
        self._unlock.display = False
        return None

    def _leave_decided(self) -> None:
        self._is_decided = True
        leave(self, End.DECIDED)

    def on_screen_resume(self) -> None:
        """It was below another screen when it was decided."""
        if self._is_decided:
            leave(self, End.DECIDED)

    # Keys

    def action_leave(self) -> None:
        if not self._recording:
            leave(self, End.LEFT)

    def action_copy_or_leave(self) -> None:
        """Handle a key that no field takes: copy the selection of the mouse, else leave."""
        try:
            self.action_copy_text()
        except SkipAction:
            self.action_leave()

    def action_skip(self) -> None:
        if self._queue is not None and not self._recording:
            leave(self, End.SKIPPED)

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()

    def action_instead(self, number: int) -> None:
        """Decide otherwise about the same attempt."""
        case, action = self.case, OF_ATTEMPTS[number]
        if self._recording or not isinstance(case, AttemptCase) or case.task is None:
            return
        reason = "this is its dialog" if action is case.action else why_not(case.task, action, self._clock())
        if reason is None:
            leave(self, action)
        else:
            words = f"{SPECS[action].word}: {reason}."
            self.app.notify(words, severity="warning", markup=False, timeout=6)

    def action_changes(self) -> None:
        """Show what is changed in the last handoff, or go on editing."""
        if self._document is not None:
            self._document.toggle_changes()
            self._footer.redraw()

    @work(group="edit", exclusive=True)
    async def action_edit_document(self) -> None:
        """Open the document in the operator's editor; the screen waits."""
        if self._document is not None:
            # Whatever was typed for the editor is not meant for this dialog.
            trouble = await self._document.edit(ended=self._arming.begin)
            if trouble is not None:
                self.app.notify(trouble, severity="warning", markup=False, timeout=6)
            self.look()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Without a document its keys are those of the field that has the focus."""
        if action == "instead":
            return isinstance(self.case, AttemptCase)
        return self._document is not None or action not in {"edit_document", "changes"}

    def is_useless(self, command_id: str) -> bool:
        """Whether a key does nothing here: the footer leaves it out."""
        return (
            (command_id == "dialog.record" and self.has_class("-small"))
            or (command_id == "dialog.skip" and self._queue is None)
            or (command_id == "dialog.instead" and not isinstance(self.case, AttemptCase))
            or (command_id in {"dialog.edit", "dialog.changes"} and self._document is None)
        )
