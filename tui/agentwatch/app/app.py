"""The app: one monitor on screen. It carries the monitor's updates to the screens and runs the program's commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import App, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import ModalScreen, Screen
from textual.theme import BUILTIN_THEMES
from textual.timer import Timer
from textual.widgets import OptionList
from textual.worker import Worker, WorkerState

from agentwatch.app import theming
from agentwatch.app.actions import ActionSpec, Home, bindings, with_views
from agentwatch.app.actions.keymap import keymap
from agentwatch.app.messages import (
    STILL_READING,
    Inspect,
    Missing,
    PageTranscript,
    ReadStep,
    Refused,
    ScreenComplete,
    TaskDecided,
    TreeUpdated,
)
from agentwatch.app.opening import Opening, OpeningScreen, leaves, opened
from agentwatch.app.terminal import Terminal, TerminalGuard, suspend_all
from agentwatch.app.typeahead import Answered, Typeahead, Typed
from agentwatch.app.updates import Updates
from agentwatch.config import config_directory, where
from agentwatch.state import attend_screens, in_home
from agentwatch.text import clean, words_of

if TYPE_CHECKING:
    from agentwatch.app.acknowledging import Acknowledger
    from agentwatch.app.screens.main import MainScreen
    from agentwatch.delegation.claims import Call
    from agentwatch.delegation.decision import Action
    from agentwatch.monitor import Monitor


class _Palette(CommandPalette):
    """The palette of commands, which ctrl+c closes as it closes every dialog."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "escape", show=False),
        Binding("pageup", "page('page_up')", show=False),
        Binding("pagedown", "page('page_down')", show=False),
    ]

    def action_page(self, move: str) -> None:
        # In a window without room for its list, Textual raises KeyError.
        if self.query_one(OptionList).size.height:
            self._action_command_list(move)

    def on_click(self, event: events.Click) -> None:
        # Textual asks which widget is there now: none, where the window has shrunk, which raises.
        event.prevent_default()
        if event.widget is self:
            self._action_escape()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close it where it is on top: keys and clicks come in after it was closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class AgentwatchApp(App[None]):
    """Shows a monitor; one that is yet to be opened, behind the first frame. `clock` gives seconds since the epoch,
    `steady` those of a clock that nobody sets."""

    TITLE = "agentwatch"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.APP)

    # Over the footer, whose words are always the same: no line that says something else is covered by one of a line.
    CSS = """
    ToastRack { margin-bottom: 0; }
    Toast { background: $panel; color: $foreground; padding: 0 1; max-width: 80%; }
    Tooltip { background: $panel; color: $foreground; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette > Vertical { background: $background; }
    """

    def __init__(
        self,
        monitor: Monitor | Opening,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._guard = TerminalGuard()
        super().__init__(driver_class=Terminal)
        self.animation_level = "none"
        self.settings = monitor.settings
        self._own_keys = keymap(monitor.settings.keys)
        self.commands = with_views(self._own_keys.commands, len(monitor.settings.views))
        """All commands, with the keys that hold."""
        self.clock = clock
        self.steady = steady
        self.when_shown: Callable[[], None] = lambda: None
        """Called after the first frame."""
        self.when_settled: Callable[[], None] = lambda: None
        """Called after the first scan."""
        self._updates: Updates | None = None
        self._telling: Timer | None = None
        """Runs while there is something to tell."""
        self._ours: asyncio.AbstractEventLoop | None = None
        self._theme_failures: list[str] = []
        self._typeahead = Typeahead(self, super().on_event)
        self._is_here: bool | None = None
        """Whether the terminal's window has the focus, as far as it has told."""
        self._opening: Opening | None = None
        """Until its screen is there."""
        self.failure: Exception | None = None
        """Why the monitor could not be opened, which has ended the app."""
        self._load_themes()
        if isinstance(monitor, Opening):
            self._opening = monitor
        else:
            self._take_monitor(monitor)

    def _take_monitor(self, monitor: Monitor) -> None:
        from agentwatch.app.notifying import Notifier  # not for the first frame

        self.monitor = monitor
        self._updates = Updates(self, monitor, self._refresh_screens, self._settle)
        self.notifier = Notifier(monitor, self._write, self.bell, clock=self.clock, steady=self.steady)
        if self._is_here is not None:
            self.notifier.queue.focus(here=self._is_here)

    @property
    def is_settled(self) -> bool:
        """Whether the first scan is over: from now on nothing folds by itself."""
        return self._updates is not None and self._updates.is_settled

    # Themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theming.variable_defaults()

    def _load_themes(self) -> None:
        own, self._theme_failures = theming.user_themes(config_directory() / "themes")
        themes = {theme.name: theme for theme in (*theming.shipped_themes(), *own)}
        for theme in themes.values():
            self.register_theme(theme)
        wanted = self.settings.theme or theming.DEFAULT_THEME
        if wanted not in themes:
            self._theme_failures.append(
                f"There is no theme {clean(wanted, 40)}; there are {', '.join(sorted(themes))}."
            )
            wanted = theming.DEFAULT_THEME
        if themes[wanted].dark and not themes[wanted].ansi:
            # As Textual begins. Setting the theme would style everything once more before the first frame.
            self.set_reactive(App.theme, wanted)
            self.add_class(f"-theme-{wanted}", update=False)
            self.stylesheet.set_variables(self.get_css_variables())
        else:
            self.theme = wanted
        # Textual's own know nothing of our states.
        for name in BUILTIN_THEMES:
            if name not in themes:
                self.unregister_theme(name)

    def suit_terminal(self) -> None:
        """On a terminal of sixteen colours, use those as they are, unless the operator has asked for a theme.

        So, too, where no colour is wanted: bold, dim and reverse say there what greys would not.
        """
        if self.settings.theme is None and (self.no_color or self.console.color_system == "standard"):
            self.theme = theming.SIXTEEN_COLOURS

    # Start and end

    def get_default_screen(self) -> Screen[None]:
        return self._new_main() if self._opening is None else OpeningScreen(self._opening.title)

    def _new_main(self) -> MainScreen:
        from agentwatch.app.screens.main import MainScreen  # not for the first frame

        self._main = MainScreen(self.monitor, self.clock)
        return self._main

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        if self.native_ansi_color:
            # Textual chose before there was a theme: the terminal's own colours as greys are black on black.
            filters = [NoColor() if isinstance(one, Monochrome) else one for one in filters]
        return [*filters, self._guard]

    def on_mount(self) -> None:
        self._ours = asyncio.get_running_loop()
        if changes := self._own_keys.changes:
            self.set_keymap(changes)
        if self._theme_failures:
            self.notify("\n".join(self._theme_failures), title="Themes", severity="warning", markup=False, timeout=12)
        self.screen_change_signal.subscribe(self, self._typeahead.take_screen)
        self.app_resume_signal.subscribe(self, self._come_back)
        self._telling = self.set_interval(1.0, self._tell, pause=True)
        self.call_after_refresh(self.when_shown)
        # After the first frame: the sources' first look takes what processor there is.
        self.call_after_refresh(self.run_worker, self._watch, name="watch", exit_on_error=False)

    async def _watch(self) -> None:
        if self._opening is not None:
            try:
                self._take_monitor(await asyncio.wrap_future(opened(self._opening)))
            except Exception as error:  # noqa: BLE001  who runs the app says what it is, on the screen below
                self.failure = error
                self.exit()
                return
            # Above the other, which nobody sees any more: to switch would parse all styles anew, twice.
            self.push_screen(self._new_main())
        self._say_what_is_wrong_in_settings()
        if self._updates is not None:
            await self._updates.run()

    def _say_what_is_wrong_in_settings(self) -> None:
        from agentwatch.view.query import view_faults  # not for the first frame

        self.monitor.complaints += map(str, self._own_keys.faults)
        faults = view_faults(self.settings.views)
        self.monitor.complaints += (f"{where(f'views.{name}')}: {fault}" for name, fault in faults.items())

    def ask_to_end(self) -> None:
        """End soon; any thread may call it, and as often as it likes."""
        if self._ours is not None:
            with suppress(RuntimeError):  # it has ended
                self._ours.call_soon_threadsafe(self.exit)

    # Updates

    def _refresh_screens(self, changed: frozenset[str]) -> None:
        self.announce(changed)
        for screen in self.screen_stack:
            screen.post_message(TreeUpdated(changed, settled=self.is_settled))

    def announce(self, changed: frozenset[str]) -> None:
        """These tasks have changed: an operator who looks elsewhere is told of those that ask."""
        self.notifier.update(changed)
        if self.notifier.queue.is_waiting and self._telling is not None:
            self._telling.resume()

    def _tell(self) -> None:
        self.notifier.notify()
        if not self.notifier.queue.is_waiting and self._telling is not None:
            self._telling.pause()

    def _write(self, sequence: str) -> None:
        """Send the terminal a sequence of ours, in order with what is drawn; the way in which `bell` does it."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_app_focus(self) -> None:
        self._focus(here=True)

    def on_app_blur(self) -> None:
        self._focus(here=False)

    def _focus(self, *, here: bool) -> None:
        self._is_here = here
        if self._updates is not None:
            self.notifier.queue.focus(here=here)

    async def on_event(self, event: events.Event) -> None:
        # One that was forwarded comes back up later than it was pressed.
        is_act = isinstance(event, events.Key | events.MouseDown) and not event.is_forwarded
        if is_act and self._updates is not None:
            self.notifier.queue.act(self.steady())
        if isinstance(event, Typed) and not event.is_forwarded:
            is_first = not self._typeahead.is_waiting
            if self._opening is not None and self.screen_stack and leaves(event, self.screen, is_first=is_first):
                self.exit()
            else:
                await self._typeahead.take(self._meant(event))
        else:
            await super().on_event(event)

    def _meant(self, typed: Typed) -> Typed:
        """Enter that was typed before the terminal was ours comes as ctrl+j, which the operator may use otherwise."""
        if getattr(typed, "key", "") != "ctrl+j" or any("ctrl+j" in one.keys.split(" ") for one in self.commands):
            return typed
        enter = events.Key("enter", "\r")
        enter.time = typed.time
        return enter

    @on(ScreenComplete)
    def _hear_what_was_typed(self) -> None:
        self._opening = None
        self._typeahead.begin()

    @on(Answered)
    async def _take_answer(self, answer: Answered) -> None:
        await self._typeahead.take_answer(answer)

    def _settle(self) -> None:
        self.when_settled()
        self._load_screens()

    @work(exit_on_error=False)
    async def _load_screens(self) -> None:
        """Have every screen at hand when its key is pressed: reading their code takes a moment."""
        names = [f"screens.{name}" for name in ("inspect", "pages")]
        for name in (*names, "dialogs.opening") if self.monitor.clerk else names:
            await asyncio.to_thread(import_module, f"agentwatch.app.{name}")

    @on(Worker.StateChanged)
    def _watch_ended(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.worker.name != "watch" or event.state is not WorkerState.ERROR or error is None:
            return
        reason = f"watching has ended, start agentwatch again ({words_of(error)})"
        self._main.header.failure = reason
        self._main.header.redraw()
        self.notify(reason, title="Degraded", severity="error", markup=False, timeout=12)

    # Commands

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for command in self.commands:
            if command.title and self.offers(command):
                run = partial(self._run_command, screen, command)
                # The palette reads both as markup, so no brackets here.
                more = "" if command.tooltip == f"{command.title}." else f"{command.tooltip} "
                yield SystemCommand(command.title, f"{more}Key: {command.key_label}", run)
        for name in sorted(self.available_themes):
            yield SystemCommand(
                f"Theme: {name}", "Use this theme until you leave.", partial(setattr, self, "theme", name)
            )

    def offers(self, command: ActionSpec) -> bool:
        """Whether there is such a command here."""
        return Home.REPLAY not in command.homes

    async def _run_command(self, screen: Screen[object], command: ActionSpec) -> None:
        from agentwatch.app.widgets.tree import TaskTree  # it is on the screen

        if Home.APP in command.homes or Home.REPLAY in command.homes:
            await self.run_action(command.action)
        elif Home.TREE in command.homes and screen is self._main:
            await self._main.task_tree.run_action(command.action)
        elif Home.CHART in command.homes and isinstance(screen.focused, TaskTree):
            await screen.focused.run_action(command.action)
        else:
            await screen.run_action(command.action)

    def action_suspend_process(self) -> None:
        """Go to the shell, until it wakes us."""
        # By its name: only a dialog with a document loads the code of it.
        if type(self.focused).__name__ == "TextArea":
            raise SkipAction
        is_possible = self._driver is not None and self._driver.can_suspend
        trouble = suspend_all() if is_possible else "agentwatch cannot be suspended here."
        if trouble is not None:
            self._complain(trouble)

    def _come_back(self, _app: App[object]) -> None:
        attend_screens(attended=True)
        self._focus(here=True)
        self.refresh(layout=True)

    def action_command_palette(self) -> None:
        # Not over a dialog: what is decided is left first.
        if not isinstance(self.screen, ModalScreen):
            self.push_screen(_Palette(id="--command-palette"))

    def action_help(self) -> None:
        from agentwatch.app.screens.pages import HelpScreen  # rarely wanted

        self.push_screen(HelpScreen(self.commands, self.settings.views))

    # About a task, on whichever screen it is selected

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
    def _page_transcript(self, event: PageTranscript) -> None:
        """Open a transcript in the operator's pager; the screen waits."""
        from agentwatch.app.editor import open_in_pager  # rarely wanted

        trouble = open_in_pager(self, event.transcript)
        if trouble is not None:
            self._complain(trouble)

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
            await self._acknowledger().acknowledge(tree.cursor_id, wide=True, group=group, roots=roots)
        elif not screen.is_modal:
            await self._acknowledger().acknowledge(getattr(screen, "task_id", None), wide=False)

    @work(group="aside", exclusive=True)
    async def action_snooze(self) -> None:
        """Put the selected task aside for a while."""
        if not self.screen.is_modal:
            await self._acknowledger().snooze(getattr(self.screen, "task_id", None))

    @work(group="aside.undo")
    async def action_undo_aside(self) -> None:
        """Take back what was put aside last."""
        if not self.screen.is_modal:
            self._main.task_tree.undo(await self._acknowledger().undo())

    def _acknowledger(self) -> Acknowledger:
        from agentwatch.app.acknowledging import Acknowledger  # not for the first frame

        return Acknowledger(self, self._main.sought, self.monitor, self.clock, self.steady)

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
            words = clean(str(file).removeprefix("/ssh:").removeprefix("/run:"))
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
