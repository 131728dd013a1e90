"""The line in which the operator writes the filter, with the number of tasks that it finds."""

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
from agentwatch.view.rows import OFFERED, Query, complete, parse

_LONGEST = 200  # the most characters of a filter
_LATEST = 2_000  # the number of latest tasks whose values are offered


class _Completion(Suggester):
    """Suggests the rest of a key or value, shown behind the cursor."""

    def __init__(self, values: Callable[[str], Iterable[str]]):
        super().__init__(use_cache=False, case_sensitive=True)
        self._values = values

    async def get_suggestion(self, value: str) -> str | None:
        return complete(value, self._values)


class _Field(Input):
    """An input that passes keys on if it has lost the focus: those typed right after enter, which goes to the tree."""

    def __init__(self, done: Callable[[], None], **how: Any):
        super().__init__(**how)
        self._done = done

    async def action_submit(self) -> None:
        self._done()

    def on_key(self, event: events.Key) -> None:
        if not self.has_focus:
            event.prevent_default()
            event.stop()
            self.app.post_message(events.Key(event.key, event.character))


class FilterBar(Horizontal):
    """The line of the filter, hidden while there is no filter."""

    # Enter comes as ctrl+j if it was typed before the app had set up the terminal.
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
        """The operator wants another filter."""

        sought: Query

    def __init__(self, tree: Tree, leave: Callable[[], None]):
        """`leave` is called when the operator goes back to the tree."""
        super().__init__()
        self.sought = Query()  # the active filter: the valid terms of the text
        self._tree = tree
        self._leave = leave
        self._field = _Field(
            self.action_done,
            placeholder="words, or state: is: agent: since: source: mode: path:",
            compact=True,
            select_on_focus=False,
            max_length=_LONGEST,
            suggester=_Completion(self._values),
        )
        self._note = Static(id="filter-note", markup=False)
        self._fault = self._found = ""
        self._earlier: list[str] = []  # the filters that were kept, oldest first

    def compose(self) -> ComposeResult:
        yield Static(" / ", id="filter-mark", markup=False)
        yield self._field
        yield self._note

    def write(self) -> None:
        """Show the line and focus its field."""
        self.display = True
        self.screen.set_focus(self._field)

    def seek(self, text: str = "") -> None:
        """Set another filter; an empty text clears it."""
        with self._field.prevent(Input.Changed):
            self._put(text[:_LONGEST])
        self._ask_for(self._field.value)

    def _put(self, text: str) -> None:
        self._field.value = text
        self._field.cursor_position = len(text)

    @on(Input.Changed)
    def _take_text(self, event: Input.Changed) -> None:
        event.stop()
        self._ask_for(event.value)

    def _ask_for(self, text: str) -> None:
        query = parse(text)
        # Show no fault while the last word can be completed.
        self._show_note("" if complete(text, self._values) else query.fault)
        self.sought = query
        self.post_message(self.Changed(query))
        self.display = bool(query or query.fault) or self._field.has_focus

    def show_count(self, matches: int | None) -> None:
        """Say how many tasks match."""
        self._found = "" if matches is None else f"{matches:,} found" if matches else "nothing matches"
        self._show_note(self._fault)

    def _show_note(self, fault: str) -> None:
        # A fault takes the place of the count.
        self._fault = clean(fault, _LONGEST)
        self._note.update(Content(self._fault or self._found))
        self._note.set_class(bool(fault), "-fault")

    def _values(self, key: str) -> list[str]:
        """Return the values that tasks have for a key, as safe text; [] for a key that takes any text."""
        texts = OFFERED.get(key)
        if texts is None:
            return []
        # Look only at the latest tasks, so that a key press does not wait for a large tree.
        latest = islice(reversed(self._tree.tasks.values()), _LATEST)
        return sorted({clean(text, _LONGEST) for task in latest for text in texts(task) if text})

    @on(events.DescendantBlur)
    def _show_what_is_on(self) -> None:
        if self._field.value != self.sought.text:
            self.seek(self.sought.text)
        self.display = bool(self.sought)

    # Keys

    def action_done(self) -> None:
        fault = parse(self._field.value).fault
        self._show_note(fault)
        if not fault:
            self.action_down()

    def action_down(self) -> None:
        self._ask_for(self._field.value)
        if self.sought:
            self._earlier = [*(text for text in self._earlier if text != self.sought.text), self.sought.text]
        self._leave()

    def action_drop(self) -> None:
        self.seek()
        self._leave()

    def action_complete(self) -> None:
        """Complete the last word; if there is nothing to complete, the key goes to the tree, as elsewhere."""
        longer = complete(self._field.value, self._values) if self._field.cursor_at_end else None
        if longer is None:
            raise SkipAction
        self._put(longer)

    def action_earlier(self) -> None:
        """Put the latest kept filter into an empty field; if one is there, the filter kept before it."""
        text = self._field.value
        if self._earlier and (not text or text in self._earlier):
            self._put(self._earlier[(self._earlier.index(text) if text else 0) - 1])
