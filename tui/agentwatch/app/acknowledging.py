"""The commands "acknowledge", "snooze" and "undo" for tasks. They record no decision and reach no agent."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from agentwatch.app.app import AgentwatchApp
from agentwatch.delegation.standing import mark_of
from agentwatch.delegation.task import Task
from agentwatch.history.acknowledgements import AcknowledgeError, Acknowledgements, new_name
from agentwatch.text import clean, quote_text
from agentwatch.view.words import name_of, plural

_WIDTH = 72
_NAME_LENGTH = 40
_MORNING_HOUR = 9  # the hour (local time) at which "snooze until tomorrow" ends


class ChoiceScreen(ModalScreen[int | None]):
    """A small dialog with a few answers. Its result is the number of the chosen answer, or None.

    Title, answers and note must be cleaned text.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,ctrl+c", "leave", show=False)]

    DEFAULT_CSS = f"""
    ChoiceScreen {{ align: center middle; background: $background 70%; }}
    ChoiceScreen > #choice {{
        width: {_WIDTH}; max-width: 100%; height: auto; max-height: 100%; border: round $accent;
        background: $background; color: $foreground; padding: 0 1; overflow-y: auto; scrollbar-size-vertical: 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-muted;
    }}
    ChoiceScreen OptionList, ChoiceScreen OptionList:focus {{
        height: auto; max-height: 100%; border: none; padding: 0; background: $background; background-tint: transparent;
    }}
    ChoiceScreen #choice-note {{ height: auto; padding: 0 1; color: $text-muted; }}
    """

    def __init__(self, title: str, answers: Sequence[str], note: str):
        super().__init__()
        self._title, self._note = title, note
        self._answers = OptionList(*map(Content, answers))

    def compose(self) -> ComposeResult:
        with Vertical(id="choice") as frame:
            frame.border_title = self._title
            frame.border_subtitle = f"enter {self._title.split()[0].lower()} · esc leave"
            yield self._answers
            yield Static(Content(self._note), id="choice-note")

    def on_mount(self) -> None:
        self._answers.highlighted = 0

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.action_leave(event.option_index)

    def action_leave(self, number: int | None = None) -> None:
        # A key and a click may come together. For the second of the two, Textual would close the screen below.
        if self.is_active:
            self.dismiss(number)


async def acknowledge_snooze_or_undo(app: AgentwatchApp, how: str) -> None:
    """Run the command `how`: "acknowledge", "snooze" or "undo". The first two open a dialog. This function returns
    once the dialog is open, so that the dialog gets the next key."""
    task = app.monitor.tree.tasks.get(app.task_id or "")
    if how == "undo":
        await _warn_if_refused(app, _undo_latest(app))
    elif how == "acknowledge":
        await _offer_acknowledging(app, task)
    elif task is None:
        app.notify_unless_reading("No task is selected.")
    elif task.question is None or task.past:
        app.notify_unless_reading(f"{_quoted_name(task)} asks nothing that could be snoozed.")
    else:
        await _offer_snoozing(app, task)


async def _warn_if_refused(app: AgentwatchApp, command: Awaitable[None]) -> None:
    try:
        await command
    except AcknowledgeError as error:
        app.warn(clean(str(error), 300))


async def _ask_choice(app: AgentwatchApp, screen: ChoiceScreen, on_choice: Callable[[int], Awaitable[None]]) -> None:
    """Open a dialog. If the operator chooses an answer, call `on_choice` with the answer's number."""

    async def handle_choice(chosen: int | None) -> None:
        if chosen is not None:
            await _warn_if_refused(app, on_choice(chosen))

    await app.push_screen(screen, handle_choice)


async def _offer_acknowledging(app: AgentwatchApp, task: Task | None) -> None:
    """Open a dialog to acknowledge tasks. It offers all tasks that match the filter, and the selected task with all
    tasks below it. If a group is selected, it offers all tasks of this group."""
    now, tree, main = app.clock(), app.monitor.tree, app.main
    named: dict[str, Iterable[Task]] = {}
    if app.screen is main and main.active_query:
        name = f"all that {quote_text(main.active_query.text, _NAME_LENGTH)} finds"
        named[name] = [one for one in tree.tasks.values() if main.active_query.matches(one, now)]
    if task:
        more = ", with what is below it" if task.children else ""
        named[f"{_quoted_name(task)}{more}"] = (one for one, _ in tree.preorder([task.task_id]))
    elif (group := main.task_tree.cursor_group) is not None:
        tops = [root for root in main.task_tree.order.groups[group] if root in tree.tasks]
        named[f"all of {group.value}"] = (one for one, _ in tree.preorder(tops))
    offers: dict[str, dict[str, str]] = {}
    for name, tasks in named.items():
        # Only tasks that have a question or are new can be acknowledged.
        pending = [task for task in tasks if (task.question is not None and not task.acknowledged) or not task.seen]
        if pending:
            offers[f"{name}: {plural(len(pending), 'task')}"] = {task.task_id: mark_of(task) for task in pending}
    if not offers:
        app.notify_unless_reading("There is nothing to acknowledge here: nothing asks, and nothing is new.")
        return
    note = "It asks nothing until it changes, and is no longer new. This approves nothing and reaches no agent."

    async def record(chosen: int) -> None:
        words, name = list(offers)[chosen], new_name()
        await _record_marks(app, offers[words], lambda shelf, own: shelf.acknowledge(own, name))
        app.notify(f"Acknowledged {words}. Z undoes it.", markup=False)

    await _ask_choice(app, ChoiceScreen("Acknowledge", list(offers), note), record)


async def _offer_snoozing(app: AgentwatchApp, task: Task) -> None:
    now, marks = app.clock(), {task.task_id: mark_of(task)}
    day = (datetime.fromtimestamp(now) + timedelta(days=1)).replace(hour=_MORNING_HOUR, minute=0, second=0)  # noqa: DTZ006 - the operator's clock
    choices: dict[str, float | None] = {
        "for 30 minutes": now + 1_800,
        "for 2 hours": now + 7_200,
        f"until tomorrow, {_MORNING_HOUR}:00": day.timestamp(),
        "until it changes": None,
    }
    note = "It asks again at that time, or when it changes. This reaches no agent."

    async def record(chosen: int) -> None:
        words, until = list(choices.items())[chosen]
        await _record_marks(app, marks, lambda shelf, own: shelf.snooze(own, until))
        app.notify(f"Snoozed {words}: {_quoted_name(task)}. Z undoes it.", markup=False)

    await _ask_choice(app, ChoiceScreen(f"Snooze {_quoted_name(task)}", list(choices), note), record)


async def _undo_latest(app: AgentwatchApp) -> None:
    def undo_on_shelves() -> int:
        latest = [
            (last, shelf) for shelf in app.monitor.all_acknowledgements if (last := shelf.find_last()) is not None
        ]
        newest = max((last for last, _ in latest), key=lambda last: last.at, default=None)
        # One command may have acknowledged tasks of several workspaces. Each workspace has its own `Acknowledgements`.
        shelves = [shelf for last, shelf in latest if newest and last.name == newest.name]
        return sum(len(record.tasks) for shelf in shelves if (record := shelf.undo()) is not None)

    count = await asyncio.to_thread(undo_on_shelves)
    # Remove notifications that offer to undo the command with Z, because it is undone now.
    app.clear_notifications()
    app.notify_unless_reading(f"Undone: {plural(count, 'task')} as before." if count else "There is nothing to undo.")


async def _record_marks(
    app: AgentwatchApp, marks: Mapping[str, str], record: Callable[[Acknowledgements, dict[str, str]], None]
) -> None:
    """Call `record` once for each workspace, with the marks (versions) of its tasks. Raises AcknowledgeError."""
    by_shelf: dict[Acknowledgements, dict[str, str]] = {}
    for task_id, mark in marks.items():
        monitor, own_id = app.monitor.resolve_task(task_id)
        if monitor.acknowledgements:
            by_shelf.setdefault(monitor.acknowledgements, {})[own_id] = mark
    for shelf, own in by_shelf.items():
        await asyncio.to_thread(record, shelf, own)


def _quoted_name(task: Task) -> str:
    return quote_text(name_of(task), _NAME_LENGTH)
