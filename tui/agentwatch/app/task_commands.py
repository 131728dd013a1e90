"""The commands about a task, on whichever screen it is selected: what opens, and what is recorded of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import App

from agentwatch.app.messages import STILL_READING, Inspect, Missing, PageTranscript, ReadStep, Refused, TaskDecided
from agentwatch.app.typeahead import Typeahead
from agentwatch.state import in_home
from agentwatch.text import clean

if TYPE_CHECKING:
    from agentwatch.app.putting_aside import PuttingAside
    from agentwatch.app.screens.main import MainScreen
    from agentwatch.delegation.claims import Call
    from agentwatch.delegation.decision import Action
    from agentwatch.monitor import Monitor


class TaskCommands(App[None]):
    """What an app of a monitor does about its tasks."""

    monitor: Monitor
    clock: Callable[[], float]
    steady: Callable[[], float]
    _main: MainScreen
    _typeahead: Typeahead

    @on(Inspect)
    def _inspect(self, event: Inspect) -> None:
        if event.entry.call is not None:
            self._show_call(event, event.entry.call)
            return
        if host := self.monitor.of(event.task_id)[0].host:
            words = (
                f"{clean(event.entry.path, 200)} is on {clean(host, 60)}: what was found there about it stands here."
            )
            self._complain(words)
            return
        from agentwatch.app.screens.inspect import InspectScreen  # it needs what the details need

        self.push_screen(InspectScreen(self.monitor, self.clock, event))

    def _show_call(self, event: Inspect, call: Call) -> None:
        """Show what was done, as it stands in the transcript."""
        from agentwatch.app.screens.inspect import reading_of  # it needs what the details need

        wanted = reading_of(self.monitor, event, call)
        if wanted is None:
            self._complain("Its transcript is not to be had any more: what was found in it stands here.")
        else:
            self._read_step(wanted)

    @on(ReadStep)
    def _read_step(self, event: ReadStep) -> None:
        from agentwatch.app.screens.inspect import StepScreen  # it needs what the details need

        self.push_screen(StepScreen(self.monitor, self.clock, event, getattr(self.screen, "task_id", None)))

    @on(PageTranscript)
    @work(group="file", exclusive=True)
    async def _page_transcript(self, event: PageTranscript) -> None:
        """Open a transcript in the operator's pager; the screen waits."""
        from agentwatch.app.pager import open_in_pager  # rarely wanted

        trouble = await open_in_pager(self, event.transcript)
        if trouble is not None:
            self._complain(trouble)

    @property
    def is_settled(self) -> bool:
        """Whether the first scan is over: from now on nothing folds by itself."""
        raise NotImplementedError

    def action_decide(self, action: str) -> None:
        """Open the dialog of a decision about the selected task."""
        from agentwatch.app.decision_words import to_answer  # not for the first frame
        from agentwatch.delegation.decision import Action

        task_id = getattr(self.screen, "task_id", None)
        if action == Action.RESPOND and not self.screen.is_modal:
            task_id = to_answer(self.monitor.tree, task_id, self.clock()) or task_id
        if not isinstance(task_id, str):
            if not self.screen.is_modal:
                self._miss("No task is selected.", warns=True)
        else:
            self._open_dialogs([task_id], Action(action))

    @work(group="aside", exclusive=True)
    async def action_acknowledge(self) -> None:
        """Put the selected task or group, or what the filter finds, aside until it changes."""
        screen, tree = self.screen, self._main.task_tree
        if screen is self._main:
            group, roots = tree.cursor_group or "", tree.group_roots()
            await self._putting_aside().acknowledge(tree.cursor_id, wide=True, group=group, roots=roots)
        elif not screen.is_modal:
            await self._putting_aside().acknowledge(getattr(screen, "task_id", None), wide=False)

    @work(group="aside", exclusive=True)
    async def action_snooze(self) -> None:
        """Put the selected task aside for a while."""
        if not self.screen.is_modal:
            await self._putting_aside().snooze(getattr(self.screen, "task_id", None))

    @work(group="aside.undo")
    async def action_undo_aside(self) -> None:
        """Take back what was put aside last."""
        if not self.screen.is_modal:
            self._main.task_tree.undo(await self._putting_aside().undo())

    def _putting_aside(self) -> PuttingAside:
        from agentwatch.app.putting_aside import PuttingAside  # not for the first frame

        return PuttingAside(self, self._main.sought, self.monitor, self.clock, self.steady)

    def action_review(self) -> None:
        """Decide about the marked tasks, or all that need the operator, one after another."""
        task_ids = list(self._main.marked) or list(self.monitor.tree.queue)
        if not task_ids:
            self._miss("Nobody needs you now, and no task is marked.")
        elif not self.screen.is_modal:
            self._open_dialogs(task_ids, marked=bool(self._main.marked))

    @on(TaskDecided)
    def _unmark(self, event: TaskDecided) -> None:
        self._main.task_tree.unmark(event.task_id)

    def _open_dialogs(self, task_ids: Sequence[str], action: Action | None = None, *, marked: bool = False) -> None:
        if self.monitor.clerk is None:
            self._miss("Nothing can be decided here: nobody would carry it out.", warns=True)
        else:
            self._open_each(task_ids, action, marked=marked)

    @work(group="decide", exclusive=True)
    async def _open_each(self, task_ids: Sequence[str], action: Action | None, *, marked: bool) -> None:
        # The dialogs need the models of the contracts: a tenth of a second when the first one opens. What is typed
        # meanwhile is not meant for the tree.
        with self._typeahead.held():
            await asyncio.to_thread(import_module, "agentwatch.app.dialogs.opening")
        from agentwatch.app.dialogs.opening import Opener  # imported on the line above

        opener = Opener(self, self.monitor, self.clock, self.steady, self._typeahead.refuse)
        await opener.decide(task_ids, action, marked=marked)

    @work(group="file", exclusive=True)
    async def action_edit(self) -> None:
        """Open the selected task's file in the operator's editor; the screen waits."""
        from agentwatch.app.editor import file_at_hand, hand_over  # rarely wanted

        file = await file_at_hand(self.screen, self.monitor)
        if isinstance(file, str):
            self._say_missing(Missing(file, warns=True))
        elif (trouble := hand_over(self, self.monitor.settings.editor, file)) is not None:
            self._complain(trouble)

    @work(group="file", exclusive=True)
    async def action_copy_path(self) -> None:
        """Put the path of the selected task's file on the clipboard."""
        from agentwatch.app.editor import file_at_hand  # rarely wanted

        file = await file_at_hand(self.screen, self.monitor, names=True)
        if isinstance(file, str):
            self._say_missing(Missing(file, warns=True))
        else:
            # What is pasted into a shell must not hold a line break or an escape: cleaned, it may name no file. On
            # another machine it is as `scp` takes it.
            words = clean(str(file).removeprefix("/ssh:"))
            self.copy_to_clipboard(words)
            self.notify(in_home(words), title="Copied", markup=False, timeout=3)

    @on(Refused)
    def _take_refusal(self) -> None:
        self._typeahead.refuse()

    def _miss(self, words: str, *, warns: bool = False) -> None:
        """No dialog opens."""
        self._typeahead.refuse()
        self._say_missing(Missing(words, warns))

    @on(Missing)
    def _say_missing(self, event: Missing) -> None:
        if not self.is_settled:
            self.notify(STILL_READING, markup=False, timeout=2)
        elif event.warns:
            self._complain(event.words)
        else:
            self.notify(event.words, markup=False, timeout=3)

    def _complain(self, words: str) -> None:
        self.notify(words, severity="warning", markup=False, timeout=6)
