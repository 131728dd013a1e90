"""The app: shows the tasks of one monitor, tells the screens of changes, and runs commands that all screens share."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events, on, work
from textual.actions import SkipAction
from textual.app import App, ComposeResult, SystemCommand
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.containers import Container
from textual.content import Content
from textual.filter import LineFilter, Monochrome, NoColor
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES
from textual.widgets import Input, OptionList, Static

from agentwatch.app import theming
from agentwatch.app.actions import HELP, ActionSpec, Home, Place, action_name, apply_user_keys, bindings, textual_keymap
from agentwatch.app.messages import STILL_READING, InspectClaim, NoEffect, PageTranscript, ReadStep, TreeUpdated
from agentwatch.app.terminal import Terminal, TerminalGuard, suspend_process_group
from agentwatch.app.widgets.footer import Footer
from agentwatch.config import config_directory, locate_setting
from agentwatch.state import abbreviate_home, set_attended
from agentwatch.text import clean, clean_row, describe_error

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.app.notifying import Notifier
    from agentwatch.app.screens.main import MainScreen
    from agentwatch.config import Settings
    from agentwatch.delegation.decision import Action
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

_KEY_WAIT = 0.5  # the most seconds for which a key waits until a text field has processed earlier keys
# After each drawing, the app pauses for `_PAUSE_FACTOR` times as long as the drawing took, within two limits (seconds).
# So drawing takes at most a fifth of the time, and keys need not wait.
_PAUSE_FACTOR = 4.0
_SHORTEST_PAUSE = 1 / 30
_LONGEST_PAUSE = 1 / 4
_QUIET_SECONDS = 0.3  # the first scan is over after this time without updates, at the latest after ten times as long


class Opening(NamedTuple):
    """How to open the monitor after the first frame. `open` is called in a thread. The first frame shows `title`."""

    settings: Settings
    title: str
    open: Callable[[], Monitor]


def start_opening(opening: Opening) -> Future[Monitor]:
    """Start a thread that loads the main screen and opens the monitor. Return a future for the monitor. The thread must
    not write files, because the process may end before the thread has ended."""
    monitor: Future[Monitor] = Future()
    monitor.set_running_or_notify_cancel()

    def open_monitor() -> None:
        try:
            for name in ("notifying", "screens.main"):
                import_module(f"agentwatch.app.{name}")
            monitor.set_result(opening.open())
        except BaseException as error:  # noqa: BLE001  the code that awaits the future gets the error
            monitor.set_exception(error)

    Thread(target=open_monitor, name="agentwatch-opening", daemon=True).start()
    return monitor


class OpeningScreen(Screen[None]):
    """The first frame: header and footer of the main screen, until the main screen is loaded."""

    DEFAULT_CSS = """
    OpeningScreen { layout: vertical; background: $background; }
    OpeningScreen #title { height: 1; text-wrap: nowrap; }
    """

    def __init__(self, title: str):
        super().__init__()
        self._title = title

    def compose(self) -> ComposeResult:
        title = (clean_row(self._title), "$text-muted")
        yield Static(Content.assemble((" agentwatch  ", "bold"), title, ("   ○ starting", "$text-muted")), id="title")
        yield Container()
        # There are no notices yet.
        footer = Footer(Place.EMPTY, is_hidden=lambda command_id: command_id == "notices")
        # Until the main screen is open, keys wait for it, and clicks must do nothing.
        footer.disabled = True
        yield footer


class _CommandPalette(CommandPalette):
    """The palette of commands. ctrl+c closes the palette, as it closes every dialog."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "escape", show=False),
        Binding("pageup", "page('page_up')", show=False),
        Binding("pagedown", "page('page_down')", show=False),
    ]

    def action_page(self, move: str) -> None:
        # Textual raises KeyError if the list has no height. Textual has no public action that moves in the list.
        if self.query_one(OptionList).size.height:
            self._action_command_list(move)

    def on_click(self, event: events.Click) -> None:
        # Textual's own handler raises an error if the window has shrunk since the click.
        event.prevent_default()
        if event.widget is self:
            self.dismiss()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette if it is on top. Keys and clicks may still arrive after the palette was closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class AgentwatchApp(App[None]):
    """The app that shows a monitor. With an `Opening`, the app opens the monitor after the first frame.

    `clock` gives epoch seconds. `steady` gives the seconds of a monotonic clock.
    """

    TITLE = "agentwatch"
    COMMAND_PALETTE_BINDING = "ctrl+p"
    BINDINGS = bindings(Home.APP)

    CSS = """
    ToastRack { margin-bottom: 1; }
    Toast { background: $panel; color: $foreground; padding: 0 1; max-width: 80%; }
    Tooltip { background: $panel; color: $foreground; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette > Vertical { background: $background; }
    """

    monitor: Monitor
    main: MainScreen
    is_played = False  # whether the app shows a recording or the demo

    def __init__(
        self,
        monitor: Monitor | Opening,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ):
        self._guard = TerminalGuard()
        super().__init__(driver_class=Terminal)
        self.animation_level = "none"
        self.settings = monitor.settings
        self.commands, self._faults = apply_user_keys(monitor.settings.keys)  # all actions with the operator's keys
        self.set_keymap(textual_keymap(self.commands))
        self.clock, self.steady = clock, steady
        self.when_shown: Callable[[], None] = lambda: None  # called after the first frame
        # Called when everything that existed at the start is read and checked.
        self.when_settled: Callable[[], None] = lambda: None
        self.notifier: Notifier | None = None  # None until there is a monitor
        self.is_settled = False  # whether the first scan of files and sessions is over
        self._loop: asyncio.AbstractEventLoop | None = None
        # An event that is set while changes wait to be shown, and the ids of the changed tasks.
        self._has_changes, self._changed_ids = asyncio.Event(), set[str]()
        self._opening: Opening | None = None  # None once the main screen is open
        self._typed_ahead: list[events.Key | events.Paste] = []  # keys and pastes that wait for the main screen
        self._is_text_key = False  # whether the latest key is a character that a text field would take
        self.failure: Exception | None = None  # the error that kept the monitor from opening and ended the app
        self._faults += self._load_themes()
        if isinstance(monitor, Opening):
            self._opening = monitor
        else:
            self._use_monitor(monitor)

    def _use_monitor(self, monitor: Monitor) -> None:
        from agentwatch.app.notifying import Notifier  # not needed for the first frame

        self.monitor = monitor
        self.notifier = Notifier(monitor, self._write_to_terminal, self.bell, clock=self.clock, steady=self.steady)

    # Themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # The defaults are for variables that a theme lacks. Textual's own styles use the two ansi variables without
        # declaring these variables.
        default = next(theme for theme in theming.shipped_themes() if theme.name == theming.DEFAULT_THEME)
        return {"ansi-background": "ansi_default", "ansi-foreground": "ansi_default", **default.variables}

    def _load_themes(self) -> list[str]:
        own, failures = theming.user_themes(config_directory() / "themes")
        themes = {theme.name: theme for theme in (*theming.shipped_themes(), *own)}
        for theme in themes.values():
            self.register_theme(theme)
        wanted = self.settings.theme or theming.DEFAULT_THEME
        if wanted not in themes:
            failures.append(f"There is no theme {clean(wanted, 40)}; there are {', '.join(sorted(themes))}.")
            wanted = theming.DEFAULT_THEME
        if themes[wanted].dark and not themes[wanted].ansi:
            # Set the theme without Textual's watcher, which would style everything again before the first frame.
            self.set_reactive(App.theme, wanted)
            self.add_class(f"-theme-{wanted}", update=False)
            self.stylesheet.set_variables(self.get_css_variables())
        else:
            self.theme = wanted
        # Textual's own themes lack colours for the states of tasks.
        for name in BUILTIN_THEMES.keys() - themes.keys():
            self.unregister_theme(name)
        return failures

    def adapt_to_terminal(self) -> None:
        """Use the theme of sixteen colours if the terminal has only sixteen, or if the operator wants no colours. Do
        nothing if the settings name a theme."""
        if self.settings.theme is None and (self.no_color or self.console.color_system == "standard"):
            self.theme = theming.SIXTEEN_COLOURS

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        if self.native_ansi_color:
            # Textual chose `Monochrome` before the theme was set. It would show the sixteen colours as black on black.
            filters = [NoColor() if isinstance(one, Monochrome) else one for one in filters]
        return [*filters, self._guard]

    # Start and end

    def get_default_screen(self) -> Screen[None]:
        return self._make_main_screen() if self._opening is None else OpeningScreen(self._opening.title)

    def _make_main_screen(self) -> MainScreen:
        from agentwatch.app.screens.main import MainScreen  # not needed for the first frame

        self.main = MainScreen(self.monitor, self.clock)
        return self.main

    def on_mount(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.app_resume_signal.subscribe(self, self._handle_resume)
        self.call_after_refresh(self.when_shown)
        # Start after the first frame, because the first scan keeps the processor busy.
        self.call_after_refresh(self.run_worker, self._watch_monitor, name="watch", exit_on_error=False)

    async def _watch_monitor(self) -> None:
        from agentwatch.view.rows import view_faults  # not needed for the first frame

        if self._opening is not None:
            try:
                self._use_monitor(await asyncio.wrap_future(start_opening(self._opening)))
            except Exception as error:  # noqa: BLE001  `run_app` raises it when the screen is gone
                self.failure = error
                self.exit()
                return
            # Push the main screen above the opening screen: `switch_screen` would parse all styles twice.
            await self.push_screen(self._make_main_screen())
            self._opening = None
            for typed in self._typed_ahead:
                self.post_message(typed)
        if self.notifier:
            self.set_interval(1.0, self.notifier.notify)
        faults = view_faults(self.settings.views)
        self.monitor.complaints += self._faults
        self.monitor.complaints += (f"{locate_setting(f'views.{name}')}: {fault}" for name, fault in faults.items())
        self.run_worker(self._show_changes(), exit_on_error=False)
        try:
            async for changed in self.monitor.updates():
                self._changed_ids |= changed
                self._has_changes.set()
        except Exception as error:  # noqa: BLE001  the operator keeps the screen, and sees the error
            failure = f"watching has ended, start agentwatch again ({describe_error(error)})"
            self.monitor.health = self.monitor.health._replace(mode="degraded", detail=failure)
            self.notify(failure, title="Degraded", severity="error", markup=False, timeout=12)

    def request_exit(self) -> None:
        """Ask the app to end soon. Any thread may call this method, even several times."""
        if self._loop:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.exit)

    # Updates

    @property
    def is_idle(self) -> bool:
        """Whether the screens have been told of all changes."""
        return not self._has_changes.is_set()

    async def _show_changes(self) -> None:
        """Send changes to the screens in an endless loop, with pauses. Also notice the end of the first scan."""
        scan_ends_by, drawing_seconds = math.inf, 0.0

        def measure_drawing(started_at: float) -> None:
            nonlocal drawing_seconds
            drawing_seconds = time.monotonic() - started_at

        while True:
            patience = None
            if not self.is_settled and self.monitor.health.mode != "starting":
                scan_ends_by = min(scan_ends_by, time.monotonic() + 10 * _QUIET_SECONDS)
                patience = min(_QUIET_SECONDS, scan_ends_by - time.monotonic())
            try:
                await asyncio.wait_for(self._has_changes.wait(), patience)
            except TimeoutError:
                self.finish_first_scan()
                continue
            self._post_changes()
            self.call_after_refresh(measure_drawing, time.monotonic())
            await asyncio.sleep(min(max(drawing_seconds * _PAUSE_FACTOR, _SHORTEST_PAUSE), _LONGEST_PAUSE))

    def _post_changes(self) -> None:
        changed, self._changed_ids = frozenset(self._changed_ids), set()
        self._has_changes.clear()
        # Skip the opening screen. After a message to a lower screen, Textual repaints all screens above that screen.
        for screen in self.screen_stack[self.screen_stack.index(self.main) :]:
            screen.post_message(TreeUpdated(changed, settled=self.is_settled))

    def finish_first_scan(self) -> None:
        """Tell the screens that the first scan is over, and load the code of the other screens."""
        if not self.is_settled:
            self.is_settled = True
            self._post_changes()
            self._load_screens()

    @work(exit_on_error=False)
    async def _load_screens(self) -> None:
        """Load the code of all screens, so that they open at once when their key is pressed."""
        for name in ("screens.timeline", "screens.inspect", "screens.pages", "dialogs.dialog"):
            await asyncio.to_thread(import_module, f"agentwatch.app.{name}")
        while not self.monitor.is_settled:  # noqa: ASYNC110  the monitor's threads cannot set an event of the loop
            await asyncio.sleep(_QUIET_SECONDS)
        self.when_settled()

    # Notifications

    def _write_to_terminal(self, sequence: str) -> None:
        """Send a control sequence to the terminal, after all earlier drawing."""
        # `_driver` is private, but Textual has no public method for this.
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(events.AppFocus)
    @on(events.AppBlur)
    def _record_focus(self, event: events.Event) -> None:
        if self.notifier:
            self.notifier.queue.set_focus(here=isinstance(event, events.AppFocus))

    # Keys

    async def on_event(self, event: events.Event) -> None:
        # Skip forwarded events, because this method has already handled them when the key was pressed.
        if isinstance(event, events.Key | events.Paste | events.MouseDown) and not event.is_forwarded:
            self._is_text_key = isinstance(event, events.Key) and event.is_printable
            if self.notifier:
                self.notifier.queue.record_key(self.steady())
            if self._opening is not None and not isinstance(event, events.MouseDown):
                self._keep_typed(event)
                return
        await super().on_event(event)

    def _keep_typed(self, typed: events.Key | events.Paste) -> None:
        """Keep a key or paste for the main screen. A quit key ends the app at once. Once a key is kept, only ctrl+c
        does: the kept key may open a text field, and `q` may be meant for this field."""
        quit_keys = self.commands["quit"].keys
        if isinstance(typed, events.Key) and typed.key in (quit_keys if not self._typed_ahead else quit_keys[-1:]):
            self.exit()
        else:
            self._typed_ahead.append(typed)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run the binding of a key before the next key is read. If this key opens a screen, the next key goes to that
        screen. Textual would send both keys to the focused widget."""
        if await super()._check_bindings(key, priority):
            return True
        if priority and self.focused is not None and self.focused.check_consume_key("a", "a"):
            if self._is_text_key or not isinstance(self.focused, Input):
                return False
            # Wait until the field has processed the text that was typed before this key.
            written = asyncio.Event()
            if self.focused.call_later(written.set):
                with suppress(TimeoutError):
                    await asyncio.wait_for(written.wait(), _KEY_WAIT)
        return priority and await super()._check_bindings(key)

    # Commands

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for name, command in self.commands.items():
            is_near = not {Home.APP, Home.MAIN, Home.TREE, Home.REPLAY}.isdisjoint(command.homes)
            if is_near and not command.is_numbered and name not in HELP["Move"] and self.has_command(command):
                # The palette reads both texts as markup, so they must not hold brackets.
                run = partial(self._run_command, screen, command)
                yield SystemCommand(
                    command.words.partition(";")[0].capitalize(), f"{command.tooltip} Key: {command.key_label}", run
                )
        for name in sorted(self.available_themes):
            run_theme = partial(setattr, self, "theme", name)
            yield SystemCommand(f"Theme: {name}", "Use this theme until you leave.", run_theme)

    def has_command(self, command: ActionSpec) -> bool:
        """Return whether this app has the command. Only the app of a replay has the commands of a replay."""
        return Home.REPLAY not in command.homes

    async def _run_command(self, screen: Screen[object], command: ActionSpec) -> None:
        tree = self.main.task_tree if screen is self.main else None
        nodes = (screen.focused, tree, screen, self)
        await self.run_action(
            command.action, next(one for one in nodes if hasattr(one, f"action_{action_name(command.action)}"))
        )

    def action_suspend_process(self) -> None:
        """Suspend the process and go to the shell."""
        # Compare class names, so that the code of TextArea is loaded only for a dialog that needs it.
        if type(self.focused).__name__ == "TextArea":
            raise SkipAction
        # `_driver` is private, but no public attribute tells whether the app can be suspended.
        if not (self._driver is not None and self._driver.can_suspend and suspend_process_group()):
            self.warn("agentwatch cannot be suspended here.")

    def _handle_resume(self, _app: App[object]) -> None:
        set_attended(attended=True)
        self.post_message(events.AppFocus())
        self.refresh(layout=True)

    def action_command_palette(self) -> None:
        # The operator has to leave a dialog before the palette can open.
        if not self.screen.is_modal:
            self.push_screen(_CommandPalette(id="--command-palette"))

    def action_help(self) -> None:
        from agentwatch.app.screens.pages import HelpScreen  # rarely needed

        self.push_screen(HelpScreen(self.commands, self.settings.views))

    # Commands about the selected task of any screen

    @property
    def task_id(self) -> str | None:
        """The id of the selected task."""
        return getattr(self.screen, "task_id", None)

    @on(InspectClaim)
    def _show_claim(self, event: InspectClaim) -> None:
        """Show the file or the tool call that a claim is about."""
        from agentwatch.app.screens.inspect import make_claim_screen, step_of_claim  # slow to load, like the details

        if step := step_of_claim(self.monitor, event):
            self._show_step(step)
        elif event.claim.call is None and not self.monitor.resolve_task(event.task_id)[0].host:
            self.push_screen(make_claim_screen(self.monitor, self.clock, event.task_id, event.claim))
        else:
            self.warn(f"{clean(event.claim.path, 200)} cannot be opened here: the details say what was found.")

    @on(ReadStep)
    def _show_step(self, event: ReadStep) -> None:
        from agentwatch.app.screens.inspect import InspectScreen, make_step_page  # slow to load, like the details

        self.push_screen(InspectScreen(self.monitor, self.clock, self.task_id, partial(make_step_page, event)))

    @on(PageTranscript)
    def _open_pager(self, event: PageTranscript) -> None:
        from agentwatch.app.editor import open_in_pager  # rarely needed

        self.warn(open_in_pager(self, event.transcript))

    async def action_decide(self, action: str) -> None:
        """Open the dialog of a decision about the selected task."""
        from agentwatch.app.decision_words import task_to_answer  # not needed for the first frame
        from agentwatch.delegation.decision import Action

        task_id = self.task_id
        if action == Action.RESPOND:
            task_id = task_to_answer(self.monitor.tree, task_id, self.clock()) or task_id
        await self._open_dialogs([task_id] if task_id is not None else [], Action(action), "No task is selected.")

    async def action_review(self) -> None:
        """Open dialogs about the marked tasks, one by one. If none is marked, take all that need the operator."""
        task_ids = list(self.main.marked) or self.monitor.tree.queue
        await self._open_dialogs(task_ids, None, "Nobody needs you now, and no task is marked.")

    async def _open_dialogs(self, task_ids: Sequence[str], action: Action | None, if_none: str) -> None:
        from agentwatch.app.dialogs.dialog import Review  # slow to load: it needs the models of the contracts

        if not task_ids:
            self.notify_unless_reading(if_none)
        elif not self.screen.is_modal:
            await Review(self, task_ids, action).open_next(action)

    async def action_aside(self, how: str) -> None:
        """Run the command `how`: "acknowledge", "snooze" or "undo"."""
        from agentwatch.app.acknowledging import acknowledge_snooze_or_undo  # not needed for the first frame

        if not self.monitor.all_acknowledgements:
            self.notify_unless_reading("Nothing can be put aside here.")
        elif not self.screen.is_modal:
            await acknowledge_snooze_or_undo(self, how)

    def action_file(self, how: str) -> None:
        """Open the selected task's file in the operator's editor (`how` "edit"), or copy its path ("copy")."""
        # Look the task up now, because the next key may select another task.
        task = self.monitor.tree.tasks.get(self.task_id or "")
        self._open_or_copy(how, getattr(self.screen, "inspected", None), task)

    @work(group="file")
    async def _open_or_copy(self, how: str, inspected: Path | None, task: Task | None) -> None:
        from agentwatch.app.editor import find_task_file, open_in_editor  # rarely needed

        file = await find_task_file(inspected, task, self.monitor, name_suffices=how == "copy")
        if isinstance(file, str):
            self.notify_unless_reading(file)
        elif how == "edit":
            self.warn(open_in_editor(self, self.settings.editor, file))
        else:
            # The operator may paste the path into a shell, so it must not contain line breaks or escapes.
            # A path on another machine gets the form that `scp` takes.
            words = clean(str(file).removeprefix("/ssh:").removeprefix("/run:"))
            self.copy_to_clipboard(words)
            self.notify(f"Copied the path of {clean(file.name, 80)}: {abbreviate_home(words)}", markup=False)

    @on(NoEffect)
    def _handle_no_effect(self, event: NoEffect) -> None:
        self.notify_unless_reading(event.words)

    @work(group="connect", exclusive=True)
    async def action_connect(self) -> None:
        """Try now to reach the unreachable hosts, before the next automatic try."""
        names = await asyncio.to_thread(self.monitor.reconnect)
        shown = f"{', '.join(names[:3])}{f' and {len(names) - 3:,} more' if names[3:] else ''}"
        self.notify(f"Connecting again: {clean(shown, 200)}" if names else "No host is off.", markup=False)

    def notify_unless_reading(self, words: str) -> None:
        """Show why a key had no effect. During the first scan, say instead that agentwatch is still reading."""
        self.notify(words if self.is_settled else STILL_READING, markup=False)

    def warn(self, words: str | None) -> None:
        """Show a warning. For None, show nothing."""
        if words is not None:
            self.notify(words, severity="warning", markup=False)
