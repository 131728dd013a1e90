"""The delegation tree under the operator's keys: cursor, folds, marks, a filter, and following what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, work
from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from agentwatch.app.actions import Home, bindings
from agentwatch.app.messages import Missing
from agentwatch.app.widgets.filter_bar import find
from agentwatch.app.widgets.rows import Heading, RowId, Splice
from agentwatch.app.widgets.tree_view import TreeView
from agentwatch.view.groups import Group
from agentwatch.view.query import Query

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_SEARCH_PAUSE: Final = 0.5
"""Seconds between two searches while a filter is on and a large tree keeps changing."""
_LOOKS_BACK: Final = 5.0
"""Seconds after which a filter by time is searched again, though nothing has changed."""
_SMALL: Final = 2_000
"""Tasks up to which a search is over in a slice, so that none has to be saved."""


class TaskTree(TreeView):
    """The tree. `clock` gives seconds since the epoch."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.TREE)

    follows: var[bool] = var(False)

    class Opened(Message):
        """A row was clicked twice."""

    @dataclass
    class Filtered(Message):
        """A search has ended; so many tasks match by themselves. None if no filter is on."""

        matches: int | None

    class Marked(Message):
        """A task was marked for the review, or is so no more."""

    class FollowEnded(Message):
        """The operator moved the cursor, so it no longer follows."""

    def __init__(self, tree: Tree, clock: Callable[[], float]) -> None:
        super().__init__(tree, clock)
        self._filter = Query()
        self._searched_at = 0.0
        self._is_searching = False
        self._search_again = False
        self._undone: set[str] = set()
        """The tasks of which the tree has to hear yet that something was taken back."""

    # What others ask and tell

    @property
    def marked(self) -> tuple[str, ...]:
        """The ids of the tasks that are marked for the review, in the order in which they were."""
        return tuple(task_id for task_id in self._marked if task_id in self._tree.tasks)

    def refresh_tasks(self, changed: Collection[str], *, settled: bool) -> None:
        """Show what changed in the tree. `settled`: the first scan is over, nothing folds by itself any more."""
        self._changed.update(changed)
        is_undone = not self._undone.isdisjoint(changed)
        splices = self._outline.hold(None) if is_undone else []
        splices += self._outline.apply(changed)
        if settled:
            splices += self._outline.settle(self.size.height)
        self._take_splices(splices, is_update=not is_undone)
        if is_undone:
            self._undone.difference_update(changed)
            self._let_go()
        if not self._is_placed:
            self._put_first()
            self._is_placed = settled
            self._let_go()
        self._show_live(bool(splices))
        if self.follows:
            self._follow(changed)
        if self._filter and changed:
            self._search(later=True)
        if splices or self.follows:
            self._draw()
        else:
            self._draw_changed()

    def undo(self, task_ids: Iterable[str]) -> None:
        """The operator has taken back what was done to these tasks: each goes where it belongs when the tree says so,
        whatever the cursor is on."""
        self._undone = set(task_ids)
        self._take_splices(self._outline.hold(None))
        self._let_go()
        self._draw()

    def select(self, task_id: str) -> None:
        """Put the cursor on a task and unfold what hides it; nothing if the filter hides it, or it is gone."""
        if task_id not in self._tree.tasks:
            return
        self._is_placed = True
        self._use()
        self._take_splices(self._outline.reveal(task_id))
        self._go_to(self.shown_as(task_id), jumps=True)

    def set_filter(self, sought: Query) -> None:
        """Show only what the filter matches, and what is above it. An empty one shows everything."""
        self._filter = sought
        self._is_placed = True
        self._use()
        if sought:
            self._search(later=False)
            return
        self.workers.cancel_group(self, "search")
        self._is_searching = False
        self._take_splices(self._outline.show_only(None))
        self._draw()
        self.post_message(self.Filtered(None))

    def due(self, now: float) -> float:
        due = super().due(now)
        return min(due, self._searched_at + _LOOKS_BACK) if self._filter.looks_back else due

    def tick(self) -> None:
        super().tick()
        if self._filter.looks_back and abs(self._clock() - self._searched_at) >= _LOOKS_BACK:
            self._search(later=True)

    # Keys

    def action_move_by(self, rows: int) -> None:
        self._walk(self._cursor.row + rows)

    def action_move_pages(self, pages: int) -> None:
        self._walk(self._cursor.row + pages * max(self.size.height - 1, 1))

    def action_first_line(self) -> None:
        self._walk(0)

    def action_last_line(self) -> None:
        self._walk(len(self._outline.rows) - 1)

    def action_open(self) -> None:
        """A task's details; what is below a heading."""
        if self.cursor_group is not None:
            self.action_toggle_fold()
        else:
            self.post_message(self.Opened())

    def action_cursor_left(self) -> None:
        outline, row_id = self._outline, self._cursor.row_id
        row = None if row_id is None else outline.rows.get(row_id)
        if row is None:
            return
        if outline.has_children(row.row_id) and not outline.is_folded(row.row_id):
            self.action_toggle_fold()
        elif (above := outline.above(row)) is not None and above in outline.rows:
            self._walk(outline.rows.index(above))

    def action_cursor_right(self) -> None:
        row_id = self._cursor.row_id
        if row_id is None or not self._outline.has_children(row_id):
            return
        if self._outline.is_folded(row_id):
            self.action_toggle_fold()
        else:
            self._walk(self._cursor.row + 1)

    def action_toggle_fold(self) -> None:
        if self._cursor.row_id is not None:
            self._scroll_to_cursor()
            self._toggle(self._cursor.row_id)

    def action_history(self) -> None:
        """Go to the history and open it."""
        heading = Heading(Group.HISTORY)
        if heading not in self._outline.rows:
            runs = self._outline.order.tallies[Group.HISTORY].runs
            words = "All that is here is history." if runs else "There is no history: nothing here is that old."
            self.post_message(Missing(words))
            return
        self._walk(self._outline.rows.index(heading))
        self._take_splices(self._outline.unfold(heading))
        # As much of it as there is room for.
        self._show_from(min(self._cursor.row, max(len(self._outline.rows) - self.size.height, 0)))
        self._draw()

    def action_mark(self) -> None:
        if self._cursor.task_id in self._marked:
            self.unmark(self._cursor.task_id)
        elif self._cursor.task_id is not None:
            self._marked[self._cursor.task_id] = None
            self._draw()
            self.post_message(self.Marked())

    def unmark(self, task_id: str) -> None:
        """Take the mark of a task away."""
        if task_id in self._marked:
            del self._marked[task_id]
            self._draw()
            self.post_message(self.Marked())

    def action_fold_all(self) -> None:
        self._take_all_folds(self._outline.fold_all())

    def action_unfold_all(self) -> None:
        self._take_all_folds(self._outline.unfold_all())

    def _take_all_folds(self, splices: list[Splice]) -> None:
        self._use()
        self._take_splices(splices)
        self._scroll_to_cursor()
        self._draw()

    def _walk(self, row: int) -> None:
        """Move the cursor because the operator says so."""
        self._is_placed = True
        self._use()
        if self.follows:
            self.follows = False
            self.post_message(self.FollowEnded())
        self._go(row)

    def _toggle(self, row_id: RowId) -> None:
        self._use()
        fold = self._outline.unfold if self._outline.is_folded(row_id) else self._outline.fold
        self._take_splices(fold(row_id))
        self._draw()

    def on_click(self, event: events.Click) -> None:
        if event.y == self._note_line:
            self._walk(0)
            return
        row = self._offset + event.y
        if not 0 <= row < len(self._outline.rows):
            return
        clicked = self._outline.rows[row]
        arrow = self._columns.indent(max(clicked.depth, 0))
        if arrow <= event.x < arrow + 2 and self._outline.has_children(clicked.row_id):
            self._toggle(clicked.row_id)
            return
        self._walk(row)
        if event.chain == 2:
            self.action_open()

    def on_mouse_scroll_down(self) -> None:
        self._use()

    def on_mouse_scroll_up(self) -> None:
        self._use()

    # Following

    def watch_follows(self) -> None:
        self._draw()

    def _follow(self, changed: Collection[str]) -> None:
        """Go to the task that gave the last sign of life of its own."""
        tasks = [task for task_id in changed if (task := self._tree.tasks.get(task_id)) and not task.inferred]
        latest = max(tasks, key=lambda task: (task.updated_at, task.first_seq), default=None)
        if latest is None or not self._filter.matches(latest, self._clock()):
            return
        self._take_splices(self._outline.reveal(latest.task_id))
        self._go_to(self.shown_as(latest.task_id), jumps=True)

    # Search

    def _search(self, *, later: bool) -> None:
        """Look for what the filter matches. `later`: the tree has changed, and may go on changing."""
        if later and self._is_searching:
            self._search_again = True
            return
        self._is_searching = True
        self._find(later=later, before=self._cursor.row_id)

    @work(group="search", exclusive=True)
    async def _find(self, *, later: bool, before: RowId | None) -> None:
        while True:
            if later and len(self._tree.tasks) > _SMALL:
                await asyncio.sleep(_SEARCH_PAUSE)
            self._search_again = False
            self._searched_at = self._clock()
            shown, matches = await find(self._tree, self._filter, self._searched_at, self._outline.row_of)
            has_moved = self._cursor.row_id != before
            self._take_splices(self._outline.show_only(shown), is_update=later)
            # An operator who has gone to a task meanwhile sees it selected: the next key is about that one.
            if not (later or has_moved):
                self._go_to_match()
            self._draw()
            self.post_message(self.Filtered(matches))
            if not self._search_again:
                break
            later = True
        self._is_searching = False

    def _go_to_match(self) -> None:
        """Put the cursor on the first match, if it is not on one."""
        if self._cursor.task_id is not None and self._is_match([self._cursor.task_id]):
            self._scroll_to_cursor()
            return
        for position, row in enumerate(self._outline.rows.slice(0, self.row_count)):
            if row.task_id is not None and self._is_match((row.task_id, *row.chain)):
                self._go(position, jumps=True)
                return

    def _is_match(self, task_ids: Collection[str]) -> bool:
        """Whether the filter matches one of these tasks by itself."""
        tasks = (self._tree.tasks.get(task_id) for task_id in task_ids)
        return any(task is not None and self._filter.matches(task, self._clock()) for task in tasks)
