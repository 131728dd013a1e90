"""The keys that put asks aside: acknowledge, snooze, and undo. Nothing of it is a decision or reaches an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentwatch.app.leaving import leave
from agentwatch.app.messages import Missing
from agentwatch.app.typeahead import Arming
from agentwatch.delegation.asks import mark_of
from agentwatch.delegation.links import below
from agentwatch.delegation.task import Task
from agentwatch.history.acknowledgements import AcknowledgeError, Acknowledgement, Acknowledgements, new_name
from agentwatch.text import clean, quoted
from agentwatch.view.times import ago
from agentwatch.view.words import name_of, plural

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree
    from agentwatch.monitor import Monitor
    from agentwatch.view.query import Query

_WIDTH: Final = 72
_NAME_LENGTH: Final = 40
_SLICE: Final = 500
"""Tasks that are looked at in a go, before keys are."""
_MORNING: Final = 9
"""The hour at which tomorrow begins, on the operator's clock."""


class Heap(NamedTuple):
    """Tasks that can be acknowledged together, and what they are called. `marks` are by the task's id on the screen."""

    name: str
    marks: Mapping[str, str]
    asking: int
    past: int


class ChoiceScreen(ModalScreen[int | None]):
    """A small question of ours with a few answers; ends with the number of the one that was chosen, or None.

    Its texts must be safe.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", show=False),
        Binding("down,j,tab", "move(1)", show=False),
        Binding("up,k,shift+tab", "move(-1)", show=False),
        Binding("escape,q,ctrl+c", "leave", show=False),
        *(Binding(str(number + 1), f"choose({number})", show=False) for number in range(9)),
    ]

    DEFAULT_CSS = f"""
    ChoiceScreen {{ align: center middle; background: $background 70%; }}
    ChoiceScreen > #choice {{
        width: {_WIDTH}; max-width: 100%; height: auto; max-height: 100%; border: round $accent;
        background: $background; color: $foreground; padding: 0 1; overflow-y: auto; scrollbar-size-vertical: 1;
        border-title-color: $text-accent; border-title-style: bold; border-subtitle-color: $text-muted;
    }}
    ChoiceScreen Static {{ height: auto; width: 1fr; padding: 0 1; }}
    ChoiceScreen .-chosen {{ background: $cursor-row; text-style: bold; }}
    ChoiceScreen:ansi .-chosen {{ text-style: reverse; }}
    ChoiceScreen #choice-note {{ color: $text-muted; }}
    """

    def __init__(self, title: str, answers: Sequence[str], note: str, key: str, steady: Callable[[], float]) -> None:
        super().__init__()
        self._arming = Arming(self, steady, self._look)
        self._title, self._answers, self._note, self._key = title, answers, note, key
        self._chosen = 0

    def compose(self) -> ComposeResult:
        with Vertical(id="choice") as frame:
            frame.border_title = self._title
            for number, answer in enumerate(self._answers):
                words = f"{number + 1}  {answer}" if len(self._answers) > 1 else answer
                yield Static(Content(words), classes="-chosen" if number == 0 and len(self._answers) > 1 else "")
            yield Static(Content(self._note), id="choice-note")

    def on_mount(self) -> None:
        self._look()
        self.call_after_refresh(self._begin)
        self.app.app_resume_signal.subscribe(self, lambda _app: self._begin())

    def _begin(self) -> None:
        self._arming.begin()
        self._look()

    def _look(self) -> None:
        """Say what enter does."""
        does = f"enter {self._key}" if self._arming.is_over else "read it first: enter counts in a moment"
        self.query_one("#choice").border_subtitle = f"{does} · esc leave"

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            leave(self, None)

    def action_move(self, step: int) -> None:
        answers = list(self.query("#choice > Static").results(Static))[: len(self._answers)]
        self._chosen = (self._chosen + step) % len(answers)
        for number, answer in enumerate(answers):
            answer.set_class(number == self._chosen and len(answers) > 1, "-chosen")

    def action_choose(self, number: int | None = None) -> None:
        if not self._arming.is_over:
            self._begin()
        elif number is None or number < len(self._answers):
            leave(self, self._chosen if number is None else number)

    def action_leave(self) -> None:
        leave(self, None)


class PuttingAside:
    """What the keys do. `sought` is the filter that is on; `clock` gives seconds since the epoch, `steady` those of a
    clock that nobody sets."""

    def __init__(
        self,
        app: App[None],
        sought: Query,
        monitor: Monitor,
        clock: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._app, self._sought, self._monitor, self._clock, self._steady = app, sought, monitor, clock, steady
        self._tree = monitor.tree

    async def acknowledge(self, task_id: str | None, *, wide: bool, group: str = "", roots: Sequence[str] = ()) -> None:
        """Ask what is to be acknowledged, and put it aside: the selected task with what is below it; first, where it is
        `wide`, what the filter finds; on the heading of a `group`, its `roots` with what is below them."""
        if not self._can():
            return
        heaps: list[Heap] = []
        scopes = list(self._scopes(task_id, wide=wide))
        if roots:
            scopes.append((f"all of {group}", _with_below(self._tree, roots)))
        for name, tasks in scopes:
            heap = await self._heap(name, tasks)
            if heap.marks and heap.marks not in [one.marks for one in heaps]:
                heaps.append(heap)
        if not heaps:
            self._miss("There is nothing to acknowledge here: nothing asks, and nothing is new.")
            return
        answers = [f"{heap.name}: {stops(heap)}" for heap in heaps]
        note = "This approves nothing and reaches no agent. What changes asks again."
        chosen = await self._app.push_screen_wait(
            ChoiceScreen("Acknowledge", answers, note, "acknowledge", self._steady)
        )
        if chosen is not None:
            name = new_name()
            said = f"Acknowledged: {stops(heaps[chosen])}. Z undoes it."
            await self._put(heaps[chosen].marks, lambda shelf, marks: shelf.acknowledge(marks, name), said)

    async def snooze(self, task_id: str | None) -> None:
        """Ask for how long, and put the selected task aside."""
        task = self._tree.tasks.get(task_id or "")
        if not self._can():
            return
        if task is None:
            self._miss("No task is selected.", warns=True)
            return
        if task.question is None or task.past:
            self._say(f"{_name(task)} asks nothing that could be snoozed.")
            return
        marks, ways = {task.task_id: mark_of(task)}, snoozes(self._clock())
        title, answers = f"Snooze {_name(task)}", [words for words, _ in ways]
        note = "It asks again then, or when it changes. This reaches no agent."
        chosen = await self._app.push_screen_wait(ChoiceScreen(title, answers, note, "snooze", self._steady))
        if chosen is not None:
            words, until = ways[chosen]
            said = f"Snoozed {words}: {_name(task)}. Z undoes it."
            await self._put(marks, lambda shelf, marks: shelf.snooze(marks, until), said)

    async def undo(self) -> list[str]:
        """Take back what was put aside last. Returns the ids of the tasks that had been."""
        undone: list[Acknowledgement] = []

        def act() -> None:
            latest = [(last, shelf) for shelf in self._monitor.shelves if (last := shelf.last()) is not None]
            newest = max((last for last, _ in latest), key=lambda last: last.at, default=None)
            # One key may have put tasks of several workspaces aside.
            shelves = [shelf for last, shelf in latest if newest is not None and last.name == newest.name]
            undone.extend(record for shelf in shelves if (record := shelf.undo()) is not None)

        if self._can() and await self._do(act):
            # That it can be undone is said no more.
            self._app.clear_notifications()
            if undone:
                self._say(undo_words(undone, self._clock()))
            else:
                self._miss("There is nothing to undo.")
        own_ids = {own_id for record in undone for own_id in record.tasks}
        return [task_id for task_id, task in self._tree.tasks.items() if task.own_id in own_ids]

    async def _put(
        self, marks: Mapping[str, str], put: Callable[[Acknowledgements, dict[str, str]], None], said: str
    ) -> None:
        """Put tasks aside, each by the id that its own workspace knows it by, and say so."""
        by_shelf: dict[Acknowledgements, dict[str, str]] = {}
        for task_id, mark in marks.items():
            monitor, own_id = self._monitor.of(task_id)
            if monitor.shelf is not None:
                by_shelf.setdefault(monitor.shelf, {})[own_id] = mark

        def act() -> None:
            for shelf, own in by_shelf.items():
                put(shelf, own)

        if await self._do(act):
            is_kept = all(shelf.is_kept for shelf in by_shelf)
            self._say(said if is_kept else f"{said} It counts on this screen only: nothing is written here.")

    async def _do(self, act: Callable[[], None]) -> bool:
        """Act in a thread. Returns whether it could be done."""
        try:
            await asyncio.to_thread(act)
        except AcknowledgeError as error:
            self._say(clean(str(error), 300), warns=True)
            return False
        return True

    def _scopes(self, task_id: str | None, *, wide: bool) -> Iterator[tuple[str, Iterable[Task]]]:
        sought, now = self._sought, self._clock()
        if wide and sought:
            found = (task for task in list(self._tree.tasks.values()) if sought.matches(task, now))
            yield f"all that {quoted(sought.text, _NAME_LENGTH)} finds", found
        task = self._tree.tasks.get(task_id or "")
        if task is not None:
            more = ", with what is below it" if task.children else ""
            yield f"{_name(task)}{more}", _with_below(self._tree, [task.task_id])

    async def _heap(self, name: str, tasks: Iterable[Task]) -> Heap:
        """Those of the tasks about which something is open or new."""
        marks: dict[str, str] = {}
        asking = past = 0
        for number, task in enumerate(tasks, 1):
            if not number % _SLICE:
                await asyncio.sleep(0)
            is_open = task.question is not None and not task.acknowledged
            if is_open or not task.seen:
                marks[task.task_id] = mark_of(task)
                asking += task.ask is not None
                past += is_open and task.past
        return Heap(name, marks, asking, past)

    def _can(self) -> bool:
        if not self._monitor.shelves:
            self._miss("Nothing can be put aside here.", warns=True)
        return bool(self._monitor.shelves)

    def _miss(self, words: str, *, warns: bool = False) -> None:
        self._app.post_message(Missing(words, warns))

    def _say(self, words: str, *, warns: bool = False) -> None:
        self._app.notify(words, severity="warning" if warns else "information", markup=False, timeout=6 if warns else 4)


def _with_below(tree: Tree, task_ids: Sequence[str]) -> list[Task]:
    above = [task_id for task_id in task_ids if task_id in tree.tasks]
    return [tree.tasks[one] for task_id in above for one in (task_id, *below(tree.tasks, task_id))]


def stops(heap: Heap) -> str:
    """What acknowledging does, without the promise that it does no more."""
    new = len(heap.marks) - heap.asking - heap.past
    parts = [
        f"{plural(heap.asking, 'task')} {'stops' if heap.asking == 1 else 'stop'} asking" if heap.asking else "",
        f"{plural(heap.past, 'past question')} {'is' if heap.past == 1 else 'are'} reviewed" if heap.past else "",
        f"{plural(new, 'task')} {'is' if new == 1 else 'are'} new no more" if new else "",
    ]
    return ", ".join(part for part in parts if part)


def snoozes(now: float) -> list[tuple[str, float | None]]:
    """For how long one can snooze: words, and until when (epoch seconds; None until it changes)."""
    here = datetime.fromtimestamp(now).astimezone()
    morning = (here + timedelta(days=1)).replace(hour=_MORNING, minute=0, second=0, microsecond=0, tzinfo=None)
    return [
        ("for 30 minutes", now + 1_800),
        ("for 2 hours", now + 7_200),
        (f"until tomorrow, {_MORNING}:00", morning.astimezone().timestamp()),
        ("until it changes", None),
    ]


def undo_words(records: Sequence[Acknowledgement], now: float) -> str:
    """What was taken back: one record, or several that belong together."""
    did, count = f"{records[0].did} {ago(records[0].at, now)}", sum(len(record.tasks) for record in records)
    return f"Undone: {plural(count, 'task')} {did} {'asks' if count == 1 else 'ask'} again."


def _name(task: Task) -> str:
    return quoted(name_of(task), _NAME_LENGTH)
