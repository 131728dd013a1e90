"""The line in which the operator writes the filter. It shows how many tasks the filter finds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from textual import events, on
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

from agentwatch.app.actions import Home, bindings
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean
from agentwatch.view.rows import OFFERED, Query, complete_query, parse

_LONGEST = 200  # the most characters of a filter
_LATEST_TASKS = 2_000  # the most tasks, latest first, whose values are offered as completions


class _Completion(Suggester):
    """Suggests the rest of the key or value that the operator writes."""

    def __init__(self, values: Callable[[str], Iterable[str]]):
        super().__init__(use_cache=False, case_sensitive=True)
        self._offered_values = values

    async def get_suggestion(self, value: str) -> str | None:
        return complete_query(value, self._offered_values)


class _Field(Input):
    """The text field of the filter. Keys that come right after enter go to the tree."""

    def __init__(self, done: Callable[[], None], **options: Any):
        super().__init__(**options)
        self._done = done

    async def action_submit(self) -> None:
        self._done()

    def on_key(self, event: events.Key) -> None:
        if not self.has_focus:
            event.prevent_default()
            event.stop()
            self.app.post_message(events.Key(event.key, event.character))


class FilterBar(Horizontal):
    """The line with the filter. It is hidden while there is no filter."""

    # If the operator presses enter before the app has set up the terminal, enter arrives as ctrl+j.
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Home.FILTER), Binding("ctrl+j", "done", show=False)]

    DEFAULT_CSS = """
    FilterBar { height: 1; background: $background; display: none; }
    FilterBar > #filter-mark { width: 3; color: $accent; text-style: bold; }
    FilterBar > Input {
        width: 1fr; min-width: 8; height: 1; border: none; padding: 0;
        background: $background; color: $foreground;
    }
    FilterBar > Input:focus { background-tint: transparent; border: none; }
    FilterBar > #filter-note {
        width: auto; max-width: 70%; padding: 0 1; color: $text-muted;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    FilterBar > #filter-note.-fault { color: $text-warning; }
    """

    @dataclass
    class Changed(Message):
        """The operator has changed the filter."""

        active_query: Query

    def __init__(self, tree: Tree, leave: Callable[[], None]):
        """`leave` is called when the operator goes back to the tree."""
        super().__init__()
        self.active_query = Query()  # the valid terms of the text
        self._tree = tree
        self._leave = leave
        self._field = _Field(
            self.action_done,
            placeholder="words, or state: is: agent: since: source: mode: path:",
            compact=True,
            select_on_focus=False,
            max_length=_LONGEST,
            suggester=_Completion(self._offered_values),
        )
        self._note = Static(id="filter-note", markup=False)
        self._fault = self._count_words = ""
        self._earlier: list[str] = []  # the filters with which the operator left the field, oldest first

    def compose(self) -> ComposeResult:
        yield Static(" / ", id="filter-mark", markup=False)
        yield self._field
        yield self._note

    def open_field(self) -> None:
        """Show the line, and focus the text field."""
        self.display = True
        self.screen.set_focus(self._field)

    def set_text(self, text: str = "") -> None:
        """Set another filter. An empty text clears the filter."""
        with self._field.prevent(Input.Changed):
            self._set_field(text[:_LONGEST])
        self._apply_text(self._field.value)

    def _set_field(self, text: str) -> None:
        self._field.value = text
        self._field.cursor_position = len(text)

    @on(Input.Changed)
    def _handle_text(self, event: Input.Changed) -> None:
        event.stop()
        self._apply_text(event.value)

    def _apply_text(self, text: str) -> None:
        query = parse(text)
        # While the last word can be completed, the operator is still writing, so show no fault.
        self._show_note("" if complete_query(text, self._offered_values) else query.fault)
        self.active_query = query
        self.post_message(self.Changed(query))
        self.display = bool(query or query.fault) or self._field.has_focus

    def show_count(self, matches: int | None) -> None:
        """Show how many tasks match. None stands for no filter."""
        self._count_words = "" if matches is None else f"{matches:,} found" if matches else "nothing matches"
        self._show_note(self._fault)

    def _show_note(self, fault: str) -> None:
        # A fault replaces the count.
        self._fault = clean(fault, _LONGEST)
        self._note.update(Content(self._fault or self._count_words))
        self._note.set_class(bool(fault), "-fault")

    def _offered_values(self, key: str) -> list[str]:
        """Return the values that tasks have for a filter key, as safe text. Return [] for a key that takes any text."""
        texts = OFFERED.get(key)
        if texts is None:
            return []
        # Read only the latest tasks, so that no key press waits for a large tree.
        latest = islice(reversed(self._tree.tasks.values()), _LATEST_TASKS)
        return sorted({clean(text, _LONGEST) for task in latest for text in texts(task) if text})

    @on(events.DescendantBlur)
    def _show_active_filter(self) -> None:
        if self._field.value != self.active_query.text:
            self.set_text(self.active_query.text)
        self.display = bool(self.active_query)

    # Keys

    def action_done(self) -> None:
        fault = parse(self._field.value).fault
        self._show_note(fault)
        if not fault:
            self.action_down()

    def action_down(self) -> None:
        self._apply_text(self._field.value)
        if query := self.active_query:
            self._earlier = [*(text for text in self._earlier if text != query.text), query.text]
        self._leave()

    def action_drop(self) -> None:
        self.set_text()
        self._leave()

    def action_complete(self) -> None:
        """Complete the last word. If there is nothing to complete, go to the tree."""
        longer = complete_query(self._field.value, self._offered_values) if self._field.cursor_at_end else None
        if longer is None:
            raise SkipAction
        self._set_field(longer)

    def action_earlier(self) -> None:
        """Bring back the latest of the earlier filters. If the field has an earlier filter, go back by one more."""
        text = self._field.value
        if self._earlier and (not text or text in self._earlier):
            self._set_field(self._earlier[(self._earlier.index(text) if text else 0) - 1])
