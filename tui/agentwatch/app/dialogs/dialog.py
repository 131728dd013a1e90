"""The dialog that signs something: a frame that foreign text cannot enter, and the one key that records.

From top to bottom: the frame of ours with the facts, the operator's choices and what is true now; then what is handed
on, and foreign words. Only `ctrl+s` decides, not before the operator could have read what it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

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
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, Place, bindings, command_of
from agentwatch.app.decision_words import why_not
from agentwatch.app.dialogs.cases import AttemptCase, Case, RequestCase
from agentwatch.app.dialogs.document import Document, tell
from agentwatch.app.messages import TreeUpdated
from agentwatch.app.widgets.cells import clip, shown
from agentwatch.app.widgets.details.blocks import Text, lay_out
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.decisions import policy
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.form import LONGEST, Field, Missing, unfit
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action
from agentwatch.text import clean, exact, quoted
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.app.app import AgentwatchApp

ARMING_SECONDS: Final = 0.6
"""How long a dialog is in sight before its key counts: keys that were meant for the screen below decide nothing."""
LABEL: Final = 10
"""Cells of the column with the labels."""
_MODE_CELLS: Final = 40
_WIDE: Final = 110
"""Cells from which foreign words stand beside what is handed on."""
_TALL: Final = 24
"""Lines of screen from which the whole frame is in sight: in fewer its last line stands below what scrolls."""
_LEAST: Final = 30, 10
"""Cells and lines of screen below which nothing is recorded: what it is about could not be read."""
_LIKELY: Final = (Action.RETRY, Action.RESPOND, Action.ACCEPT, Action.ESCALATE, Action.ABORT)

End = Enum("End", "DECIDED SKIPPED LEFT")
"""How a dialog was left, where not for another action."""


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
        super().__init__(id=f"field-{field.key}")
        self._field, self._at = field, field.choice

    def render(self) -> Content:
        return Content("\n").join(self._lines(self.content_size.width))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        return len(self._lines(width))

    def _next(self, by: int) -> int:
        before = self._at if self._at is not None else -1 if by > 0 else 0
        return (before + by) % len(self._field.options)

    def action_step(self, by: int) -> None:
        """Take the next one, or the one before; where several can be taken, go there."""
        if not self._field.several:
            self._choose(self._next(by))
        self._at = self._next(by) if self._field.several else self._at
        self.refresh()

    def action_take(self) -> None:
        """Take the one under the cursor, or give it back."""
        self._choose(self._at if self._field.several and self._at is not None else self._next(1))

    def on_click(self, event: events.Click) -> None:
        if (number := event.style.meta.get("choice")) is not None:
            self._choose(number)

    def _choose(self, number: int) -> None:
        field, self._at = self._field, number
        field.taken = sorted(set(field.taken) ^ {number}) if field.several else [number]
        self.refresh()
        self.post_message(self.Changed())

    def _lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        field, marks = self._field, ("□", "■") if self._field.several else ("○", "●")
        for number, (label, description) in enumerate(field.options):
            mark, click = marks[number in field.taken], Style.from_meta({"choice": number})
            style = (
                "bold $text-accent" if number in field.taken else "" if field.question is not None else "$text-muted"
            )
            if field.question is not None:
                here = "›" if field.several and number == self._at else " "
                first = Content.styled(f"{here}{mark} ", style or "$text-muted")
                words = Text(Content.styled(exact(label, LONGEST), style), first, "  ┊ ")
                about = Text(Content.styled(shown(description, LONGEST), "$text-muted"), Content("  ┊ "), "  ┊ ")
                laid = lay_out([words, *([about] if description else [])], width)
                lines += (line.content.stylize(click) for line in laid)
                continue
            room = _MODE_CELLS if description else max(width - 2, _MODE_CELLS)
            said = clip(shown(f"{label} ({description})" if description else label), room)
            part = Content.styled(f"{mark} {said}", style).stylize(click)
            if lines and lines[-1].cell_length + 2 + part.cell_length <= width:
                lines[-1] = Content("  ").join([lines[-1], part])
            else:
                lines.append(part)
        return lines


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

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(Home.DECIDE),
        # Whatever has the focus: what is decided on can be read, and the next key chooses.
        Binding("pagedown", "read(1)", show=False),
        Binding("pageup", "read(-1)", show=False),
    ]
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
    DecisionScreen .question { height: auto; border-left: dashed $text-muted; padding-left: 1; }
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
        super().__init__()
        self.case, self._clock, self._steady, self._queue = case, clock, steady, queue
        self._armed_at: float | None = None
        """When its key counts, by `steady`; None before it was seen, when it hears nothing."""
        self._trouble = ""
        self._is_recording = self._is_read = False
        self._wanted: Missing | None = None
        """The step that was missing when the key that records was pressed."""
        self._note = Input(placeholder=case.form.spec.placeholder, compact=True, select_on_focus=False, id="note")
        self._passphrase = Input(
            placeholder="the passphrase of the key that signs decisions", password=True, compact=True
        )
        self._unlock = Row("unlock", self._passphrase)
        self._unlock.display = False
        self._facts = Static(id="facts", markup=False)
        self._standings = Static(id="standing", markup=False), Static(id="standing-low", markup=False)
        self._page = Page()
        self._document: Document | None = None
        if isinstance(case, AttemptCase) and case.form.spec.document:
            self._document = Document(case.form, case.monitor, case.desk.state, self._arm)
        self._widgets: dict[str, Widget] = {}
        """The widgets by the keys of `Missing`."""
        for one in case.form.fields:
            if one.options:
                self._widgets[one.key] = Choice(one)
            if one.placeholder:
                self._widgets[f"{one.key}.text"] = Input(
                    placeholder=one.placeholder, compact=True, select_on_focus=False, max_length=4_000
                )
        self._widgets |= {"note": self._note, "words": self._page}
        if self._document is not None:
            self._widgets["document"] = self._document.area
        (self._widget(case.form.first) or self._note).add_class("first")
        self._footer = Footer(
            Place.DECIDE,
            is_useless=lambda command_id: not self.check_action(command_of(self.app, command_id).action, ()),
            refused=lambda: self._wanted.reason if self._wanted else "",
        )

    # The screen

    def compose(self) -> ComposeResult:
        form = self.case.form
        with Vertical(id="decision"):
            with Vertical(id="ours") as ours:
                ours.border_title = f"◆ {form.spec.glyph} {form.spec.word}"
                if self._queue is not None:
                    ours.border_subtitle = f"{self._queue[0]} of {self._queue[1]}"
                yield self._facts
                for one in form.fields:
                    for number, widget in enumerate(self._of(one) if one.label else ()):
                        yield Row("other" if number else one.label, widget)
                if self._document is not None:
                    yield Row(self._document.label, self._document.status)
                if form.spec.note:
                    yield Row(form.spec.note, self._note)
                yield self._unlock
                yield self._standings[0]
            with Vertical(id="below"):
                if self._document is not None:
                    yield self._document
                if asked := [one for one in form.fields if not one.label]:
                    with VerticalScroll(id="answers", can_focus=False) as answers:
                        answers.border_title = f"your answers, below {self.case.asker} questions"
                        for one in asked:
                            if one.question is not None:
                                yield Static(shown(one.question, LONGEST), classes="question", markup=False)
                            yield from self._of(one)
                with Vertical(id="words") as words:
                    words.border_title = self.case.title
                    yield self._page
        yield self._standings[1]
        yield self._footer

    def _widget(self, key: str) -> Widget | None:
        return self._widgets.get(key) or self._widgets.get(f"{key}.text")

    def _of(self, field: Field) -> Iterator[Widget]:
        return (self._widgets[key] for key in (field.key, f"{field.key}.text") if key in self._widgets)

    def on_mount(self) -> None:
        self.app.app_resume_signal.subscribe(self, lambda _app: self._arm())
        self.set_interval(1.0, self.look)
        self._read_words()
        for scrolls in (self._page, self.query_one("#decision")):
            self.watch(scrolls, "scroll_y", self._look_soon, init=False)
        self.call_after_refresh(self._arm)

    def _look_soon(self) -> None:
        self.call_after_refresh(self.look)

    @work
    async def _read_words(self) -> None:
        blocks = await self.case.words()
        # It may have been left meanwhile.
        if self.is_attached and (words := self.query("#words")):
            self._page.show(blocks, keep=False)
            words.set(display=bool(blocks))
            self._look_soon()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= _WIDE, "-wide")
        self.set_class(event.size.height < _TALL, "-low")
        self.set_class(event.size.width < _LEAST[0] or event.size.height < _LEAST[1], "-small")
        self._look_soon()

    @on(Input.Changed)
    @on(Choice.Changed)
    def _take_change(self, event: Input.Changed | Choice.Changed) -> None:
        """The operator has changed something: what was wrong before may be right now."""
        for one in self.case.form.fields:
            if isinstance(written := self._widgets.get(f"{one.key}.text"), Input):
                one.text = written.value
        self._trouble, self._wanted = "", None
        # A passphrase is no part of it.
        if self._document is not None and not (isinstance(event, Input.Changed) and event.input.password):
            self._document.remake(self._note.value)
        self.look()

    def _arm(self) -> None:
        """The moment in which the key does not count begins, or begins again: it is in sight now."""
        self._armed_at = self._steady() + ARMING_SECONDS
        # Timers of Textual may go off half a millisecond early.
        self.set_timer(ARMING_SECONDS + 0.001, self.look)
        self.look()

    @property
    def _is_armed(self) -> bool:
        return self._armed_at is not None and self._steady() >= self._armed_at

    @on(TreeUpdated)
    @on(Document.Checked)
    def look(self) -> None:
        """Say what is true now, once keys are heard: the operator types as soon as the last line stands."""
        if self._armed_at is None or not self.is_attached:
            return
        cautions: list[str] = []
        if self._document is not None:
            self._document.show_status()
        if self.case.to_read:
            page, count = self._page, self._page.virtual_size.height
            if page.line(max(count - 1, 0)).content.plain.startswith("truncated: "):
                cautions.append("it is longer than what is shown below")
            left = count - page.top - page.height
            self.query_one("#words").border_subtitle = f"{plural(left, 'more line')}: pagedown" if left > 0 else ""
        if self._wanted is not None and self._missing() != self._wanted:
            self._wanted = None
        tell(self._facts, Content("\n").join(self._fact_lines(cautions)))
        standing = self._standing()
        for one in self._standings:
            tell(one, standing)
        self._footer.redraw()

    def _fact_lines(self, cautions: Sequence[str]) -> Iterator[Content]:
        width = max((self._facts.size.width or self.size.width - 6) - LABEL, 8)
        for label, parts in self.case.facts(self._clock(), cautions):
            styled = [Content.styled(words, style if style in ("", "bold") else f"${style}") for words, style in parts]
            style = "$text-warning" if label == "beware" else "$text-muted"
            # Each line begins with a label of ours: foreign words cannot look like one.
            for number, line in enumerate(Content(" ").join(styled).wrap(width)):
                yield Content.styled(f"{'…' if number else label:<{LABEL}}", style) + line

    def _standing(self) -> Content:
        """The last line that is ours: what the key would do, or why it does nothing."""
        if self._is_recording:
            return Content("recording…")
        change = self.case.change(self._clock())
        if trouble := self._trouble or (change and f"{change} {self.case.advice}"):
            return Content.styled(f"✗ {trouble}", "bold $text-error")
        if missing := self._missing():
            return Content.styled(f"○ not yet: {missing.reason}", "$text-warning")
        if not self._is_armed:
            return Content.styled("◌ read it first: ctrl+s counts in a moment", "$text-muted")
        return Content.assemble(("◆ ctrl+s", "bold $text-accent"), f" {self.case.effect()}")

    def _missing(self) -> Missing | None:
        if self.has_class("-small"):
            return Missing(f"this window is too small, {_LEAST[0]} × {_LEAST[1]} is needed")
        # Whatever is chosen: who reads it first, and chooses then, has read it.
        if missing := self.case.missing(self._note.value, self._unread()):
            return missing
        reason = self._document.missing() if self._document is not None else None
        return Missing(reason, "document" if self._document and self._document.problems else "") if reason else None

    # Reading

    def action_read(self, pages: int) -> None:
        self._page.scroll_visible(animate=False)
        self._page.action_move_pages(pages)

    def _unread(self) -> str:
        """The part of the call that was not in sight yet, "" once its end was."""
        if self._is_read or not self.case.to_read:
            return ""
        lines, page = self._page.lines, self._page
        # Only the first line of a block begins with words.
        ends = [number for number, line in enumerate(lines) if number and not line.startswith(" ")]
        end = ends[self.case.to_read - 1] if len(ends) >= self.case.to_read else len(lines)
        if lines and lines[min(end, len(lines) - 1)].startswith("truncated: "):
            return "it is too long to be read here: answer it in its program"
        left = max(end, 1)
        try:
            place = self.find_widget(page)
            # In a low window only a part of the page may be in sight.
            left = end - page.top - (place.visible_region.bottom - place.region.y) * bool(place.visible_region)
        except NoWidget:
            pass
        if not lines or left > 0:
            return f"{plural(max(left, 1), 'more line')} below: read to the end first (pagedown)"
        # Before, the frame may be there without its facts, and what stands below them in sight for a moment.
        self._is_read = self._is_armed
        return ""

    # Recording

    def action_record(self) -> None:
        """Record the decision. A key that is held down, from the dialog before perhaps, decides nothing."""
        if self._is_recording:
            return
        if not self._is_armed:
            self._arm()
            return
        self._trouble = ""
        if self.case.change(self._clock()) is None:
            self._wanted = self._missing()
            if self._wanted is None:
                self._is_recording = True
                self._record()
            elif widget := self._widget(self._wanted.key):
                widget.focus()
        self.look()

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
            self.app.notify(words, markup=False, timeout=4)
        else:
            self.app.notify(words, severity="warning", markup=False, timeout=12)
        self._leave(End.DECIDED)

    async def _sign(self) -> DecisionMade | None:
        """Record it; None if something is missing. Raises DecisionError."""
        if locked := await self._open_key():
            self._trouble = locked
            return None
        document, note = self._document, self._note.value
        shown_text = document.text if document is not None else ""
        is_sound = document is None or await document.is_sound(note)
        if document is not None and document.text != shown_text:
            self._trouble = f"The {document.label} is not what you saw: read it, then press ctrl+s again."
        # What was found true before the disk was asked may be so no more.
        is_changed = self.case.change(self._clock()) is not None or not self._is_armed
        if not is_sound or is_changed or self._missing() is not None:
            return None
        return await self.case.sign(shown_text, self._note.value.strip())

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

    # Keys

    def _leave(self, end: End | Action) -> None:
        """Leave where it is on top: Textual would dismiss the screen above it."""
        if self.is_active and not self._is_recording:
            self.dismiss(end)

    def action_leave(self) -> None:
        self._leave(End.LEFT)

    def action_copy_or_leave(self) -> None:
        """Handle a key that no field takes: copy the selection of the mouse, else leave."""
        try:
            self.action_copy_text()
        except SkipAction:
            self._leave(End.LEFT)

    def action_skip(self) -> None:
        self._leave(End.SKIPPED)

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()

    def action_instead(self, number: int) -> None:
        """Decide otherwise about the same attempt."""
        case, action = self.case, OF_ATTEMPTS[number]
        if not isinstance(case, AttemptCase) or case.task is None:
            return
        reason = "this is its dialog" if action is case.action else why_not(case.task, action, self._clock())
        if reason is None:
            self._leave(action)
        else:
            words = f"{SPECS[action].word}: {reason}."
            self.app.notify(words, severity="warning", markup=False, timeout=6)

    def action_changes(self) -> None:
        """Show what is changed in the last handoff, or go on editing."""
        if self._document is not None:
            self._document.toggle_changes()
            self._footer.redraw()

    def action_edit_document(self) -> None:
        """Open the document in the operator's editor; the screen waits."""
        if self._document is not None:
            if trouble := self._document.edit():
                self.app.notify(trouble, severity="warning", markup=False, timeout=6)
            # Whatever was typed for the editor is not meant for this dialog.
            self._arm()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """Without a document its keys are those of the field that has the focus."""
        is_possible = {
            "record": not self.has_class("-small"),
            "skip": self._queue is not None,
            "instead": isinstance(self.case, AttemptCase),
            "edit_document": self._document is not None,
            "changes": self._document is not None,
        }
        return is_possible.get(action, True)


# Opening it


async def review(app: AgentwatchApp, task_ids: Sequence[str], action: Action | None = None) -> None:
    """Open a dialog for each of these tasks, the next when the one before is decided or skipped.

    Without an `action`, each dialog is for what the contracts suggest for its task; the operator can take another.
    A task whose program asks has a dialog for each of its requests. What can no longer be decided when its turn comes
    is left out. Run it in a worker.
    """
    turns: list[tuple[str, str | None]] = []
    for task_id in task_ids:
        task = app.monitor.tree.tasks.get(task_id)
        asked = [one.request_id for one in task.requests if one.can_answer] if task and action is None else []
        turns += [(task_id, request_id) for request_id in asked or (None,)]
    decided = 0
    for number, (task_id, request_id) in enumerate(turns, start=1):
        queue = (number, len(turns)) if len(turns) > 1 else None
        end: End | Action | None = action
        while isinstance(case := _case_of(app, task_id, request_id, end), Case):
            end = await app.push_screen_wait(DecisionScreen(case, app.clock, app.steady, queue))
            if isinstance(end, End):
                break
        if isinstance(case, str):
            app.complain(case)
        if end is End.DECIDED:
            decided += 1
            app.unmark(task_id)
        if end is End.LEFT:
            break
    if len(turns) > 1:
        left = len(turns) - decided
        words = f"Review over: {decided:,} decided{f', {left:,} left as they were' if left else ''}."
        app.notify(words, markup=False, timeout=4)


def _case_of(
    app: AgentwatchApp, task_id: str, request_id: str | None, action: End | Action | None
) -> Case | str | None:
    """The case of a task's request, or of an action about its attempt; a sentence where it cannot be decided now,
    None where it is gone."""
    monitor, own_id = app.monitor.of(task_id)
    task, now, tasks = monitor.tree.tasks.get(own_id), app.clock(), app.monitor.tree.tasks
    asked = [one for one in task.requests if one.can_answer and request_id in (None, one.request_id)] if task else []
    if task is None or (request_id is not None and not asked):
        return None
    if not isinstance(action, Action):
        likely = (policy.suggested(task) or Action.ACCEPT, *_LIKELY)
        action = next((one for one in likely if why_not(task, one, now) is None), likely[0])
        # What its program waits for comes before all else that could be decided about it.
        action = Action.RESPOND if task.request is not None else action
    is_request = bool(asked) and action is Action.RESPOND
    reason = unfit(asked[0]) if is_request else why_not(task, action, now)
    if monitor.clerk is None:
        reason = "its workspace is not being watched yet"
    elif monitor.clerk.desk.unreachable is not None:
        reason = clean(monitor.clerk.desk.unreachable, 400)
    if reason is not None or monitor.clerk is None:
        return f"{SPECS[action].word} {quoted(task.title if task.workspace else own_id, 60)}: {reason}."
    scope = tasks[task_id].scope if task_id in tasks else ""
    where = tasks[scope].title if scope in tasks else ""
    if is_request:
        return RequestCase(monitor, monitor.clerk.desk, where, task, asked[0])
    return AttemptCase(monitor, monitor.clerk.desk, where, task, action)
