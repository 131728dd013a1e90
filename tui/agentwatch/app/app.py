"""The app: shows one monitor, passes its updates to the screens, and runs the commands that work on every screen."""

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
from agentwatch.app.actions import HELP, ActionSpec, Home, Place, action_name, bindings, textual_keymap, with_keys
from agentwatch.app.messages import STILL_READING, Inspect, Missing, PageTranscript, ReadStep, TreeUpdated
from agentwatch.app.terminal import Terminal, TerminalGuard, suspend_all
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

_PATIENCE = 0.5  # the most seconds that a key waits for keys before it
_REFRESH = 1 / 30  # the fewest seconds between two refreshes; the first after a pause comes at once
_REST = 4.0
# After a refresh, wait `_REST` times as long as it took, at most `_LONGEST` seconds: even with many updates on a busy
# machine, drawing then takes a fifth of the time, and keys do not wait for it.
_LONGEST = 1 / 4
_SETTLED = 0.3  # the first scan counts as over after so many seconds without an update, or after ten times as many


class Opening(NamedTuple):
    """A function `open` that makes the monitor in a thread; `title` names what is watched, as far as known."""

    settings: Settings
    title: str
    open: Callable[[], Monitor]


def opened(opening: Opening) -> Future[Monitor]:
    """Start a thread that loads the screen and opens the monitor. It takes a tenth of a second, in which keys may be
    pressed. It may write nothing, because an operator who leaves meanwhile does not wait for it."""
    monitor: Future[Monitor] = Future()
    monitor.set_running_or_notify_cancel()

    def open_it() -> None:
        try:
            for name in ("notifying", "screens.main"):
                import_module(f"agentwatch.app.{name}")
            monitor.set_result(opening.open())
        except BaseException as error:  # noqa: BLE001  raised where the future is awaited
            monitor.set_exception(error)

    Thread(target=open_it, name="agentwatch-opening", daemon=True).start()
    return monitor


class OpeningScreen(Screen[None]):
    """The header and the footer of a main screen that has just started."""

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
        # Keys wait for the main screen, so clicks must do nothing yet.
        footer.disabled = True
        yield footer


class _Palette(CommandPalette):
    """The palette of commands; ctrl+c closes it, like every dialog."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "escape", show=False),
        Binding("pageup", "page('page_up')", show=False),
        Binding("pagedown", "page('page_down')", show=False),
    ]

    def action_page(self, move: str) -> None:
        # Textual raises KeyError if the window has no room for the list, and has no public action for this.
        if self.query_one(OptionList).size.height:
            self._action_command_list(move)

    def on_click(self, event: events.Click) -> None:
        # Textual's own handler looks up the widget at the click, which raises if the window has shrunk.
        event.prevent_default()
        if event.widget is self:
            self.dismiss()

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close the palette if it is on top; keys and clicks may still arrive after it was closed."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class AgentwatchApp(App[None]):
    """Shows a monitor, or opens it behind the first frame. `clock` gives epoch seconds, `steady` seconds of a monotonic
    clock."""

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
        self.commands, self._faults = with_keys(monitor.settings.keys)  # all actions with the operator's keys
        self.set_keymap(textual_keymap(self.commands))
        self.clock, self.steady = clock, steady
        self.when_shown: Callable[[], None] = lambda: None  # called after the first frame
        # Called when everything present at the start is read and checked.
        self.when_settled: Callable[[], None] = lambda: None
        self.notifier: Notifier | None = None  # None until there is a monitor
        self.is_settled = False  # whether the first scan is over: from then on nothing folds by itself
        self._loop: asyncio.AbstractEventLoop | None = None
        # Set while changes are to be shown, and the ids of the changed tasks.
        self._news, self._changed = asyncio.Event(), set[str]()
        self._opening: Opening | None = None  # None once the main screen is there
        self._typed: list[events.Key | events.Paste] = []  # keys and pastes that came before the main screen
        self._is_text = False  # whether the key being handled may be text
        self.failure: Exception | None = None  # the error that kept the monitor from opening and ended the app
        self._faults += self._load_themes()
        if isinstance(monitor, Opening):
            self._opening = monitor
        else:
            self._use_monitor(monitor)

    def _use_monitor(self, monitor: Monitor) -> None:
        from agentwatch.app.notifying import Notifier  # not needed for the first frame

        self.monitor = monitor
        self.notifier = Notifier(monitor, self._write, self.bell, clock=self.clock, steady=self.steady)

    # Themes

    def get_theme_variable_defaults(self) -> dict[str, str]:
        # Defaults for variables that a theme lacks. Textual's styles for themes of sixteen colours use the two ansi
        # variables without declaring them.
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
            # Textual starts with a dark theme. Setting `theme` would style everything again before the first frame.
            self.set_reactive(App.theme, wanted)
            self.add_class(f"-theme-{wanted}", update=False)
            self.stylesheet.set_variables(self.get_css_variables())
        else:
            self.theme = wanted
        # Textual's own themes lack the colours of our states.
        for name in BUILTIN_THEMES.keys() - themes.keys():
            self.unregister_theme(name)
        return failures

    def suit_terminal(self) -> None:
        """Use the theme of sixteen colours if the terminal has no more or the user wants none, unless a theme is set:
        it uses bold, dim and reverse where greys would not be seen."""
        if self.settings.theme is None and (self.no_color or self.console.color_system == "standard"):
            self.theme = theming.SIXTEEN_COLOURS

    def get_line_filters(self) -> Sequence[LineFilter]:
        filters = super().get_line_filters()
        if self.native_ansi_color:
            # Textual chose its filter before the theme was set; as greys, the terminal's colours are black on black.
            filters = [NoColor() if isinstance(one, Monochrome) else one for one in filters]
        return [*filters, self._guard]

    # Start and end

    def get_default_screen(self) -> Screen[None]:
        return self._new_main() if self._opening is None else OpeningScreen(self._opening.title)

    def _new_main(self) -> MainScreen:
        from agentwatch.app.screens.main import MainScreen  # not needed for the first frame

        self.main = MainScreen(self.monitor, self.clock)
        return self.main

    def on_mount(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.app_resume_signal.subscribe(self, self._come_back)
        self.call_after_refresh(self.when_shown)
        # Start after the first frame, because the first look of the sources takes all the processor.
        self.call_after_refresh(self.run_worker, self._watch, name="watch", exit_on_error=False)

    async def _watch(self) -> None:
        from agentwatch.view.rows import view_faults  # not needed for the first frame

        if self._opening is not None:
            try:
                self._use_monitor(await asyncio.wrap_future(opened(self._opening)))
            except Exception as error:  # noqa: BLE001  `terminal.run` raises it after the screen is gone
                self.failure = error
                self.exit()
                return
            # Push it above the opening screen: switching screens would parse all styles twice.
            await self.push_screen(self._new_main())
            self._opening = None
            for typed in self._typed:
                self.post_message(typed)
        if self.notifier:
            self.set_interval(1.0, self.notifier.notify)
        faults = view_faults(self.settings.views)
        self.monitor.complaints += self._faults
        self.monitor.complaints += (f"{locate_setting(f'views.{name}')}: {fault}" for name, fault in faults.items())
        self.run_worker(self._show_changes(), exit_on_error=False)
        try:
            async for changed in self.monitor.updates():
                self._changed |= changed
                self._news.set()
        except Exception as error:  # noqa: BLE001  the operator keeps the screen, and sees why nothing more comes
            failure = f"watching has ended, start agentwatch again ({describe_error(error)})"
            self.monitor.health = self.monitor.health._replace(mode="degraded", detail=failure)
            self.notify(failure, title="Degraded", severity="error", markup=False, timeout=12)

    def ask_to_end(self) -> None:
        """Ask the app to end soon. Any thread may call this, any number of times."""
        if self._loop:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.exit)

    # Updates

    @property
    def is_idle(self) -> bool:
        """Whether all updates so far are shown."""
        return not self._news.is_set()

    async def _show_changes(self) -> None:
        """Show changes as often as the eye can follow, and find out when the first scan is over."""
        settled_by, took = math.inf, 0.0

        def note_drawn(begun: float) -> None:
            nonlocal took
            took = time.monotonic() - begun

        while True:
            patience = None
            if not self.is_settled and self.monitor.health.mode != "starting":
                settled_by = min(settled_by, time.monotonic() + 10 * _SETTLED)
                patience = min(_SETTLED, settled_by - time.monotonic())
            try:
                await asyncio.wait_for(self._news.wait(), patience)
            except TimeoutError:
                self.settle()
                continue
            self._show()
            self.call_after_refresh(note_drawn, time.monotonic())
            await asyncio.sleep(min(max(took * _REST, _REFRESH), _LONGEST))

    def _show(self) -> None:
        changed, self._changed = frozenset(self._changed), set()
        self._news.clear()
        # Skip the opening screen: a message to a lower screen makes Textual paint all screens above it anew.
        for screen in self.screen_stack[self.screen_stack.index(self.main) :]:
            screen.post_message(TreeUpdated(changed, settled=self.is_settled))

    def settle(self) -> None:
        """Note that the first scan is over, show its result, and load the other screens."""
        if not self.is_settled:
            self.is_settled = True
            self._show()
            self._load_screens()

    @work(exit_on_error=False)
    async def _load_screens(self) -> None:
        """Load the code of all screens, so that they open at once when their key is pressed."""
        for name in ("screens.timeline", "screens.inspect", "screens.pages", "dialogs.dialog"):
            await asyncio.to_thread(import_module, f"agentwatch.app.{name}")
        while not self.monitor.is_settled:  # noqa: ASYNC110  the monitor's threads cannot set an event of the loop
            await asyncio.sleep(_SETTLED)
        self.when_settled()

    # The operator who looks elsewhere

    def _write(self, sequence: str) -> None:
        """Send a sequence to the terminal in order with what is drawn, as `App.bell` does; no public method can."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(events.AppFocus)
    @on(events.AppBlur)
    def _note_focus(self, event: events.Event) -> None:
        if self.notifier:
            self.notifier.queue.focus(here=isinstance(event, events.AppFocus))

    # Keys

    async def on_event(self, event: events.Event) -> None:
        # A forwarded event was handled here before, when the key was pressed.
        if isinstance(event, events.Key | events.Paste | events.MouseDown) and not event.is_forwarded:
            self._is_text = isinstance(event, events.Key) and event.is_printable
            if self.notifier:
                self.notifier.queue.act(self.steady())
            if self._opening is not None and not isinstance(event, events.MouseDown):
                self._type_ahead(event)
                return
        await super().on_event(event)

    def _type_ahead(self, typed: events.Key | events.Paste) -> None:
        """Keep a key or paste for the main screen; a quit key leaves at once. After other keys only the last quit key
        does, ctrl+c, because a letter may be text for a field that they open."""
        leaving = self.commands["quit"].keys
        if isinstance(typed, events.Key) and typed.key in (leaving if not self._typed else leaving[-1:]):
            self.exit()
        else:
            self._typed.append(typed)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        """Run the binding of a key before the next key is read, so that the next key goes to what this one opens.

        Textual would send both keys to the focus before the first has had an effect. No public method runs a binding.
        """
        if await super()._check_bindings(key, priority):
            return True
        if priority and self.focused is not None and self.focused.check_consume_key("a", "a"):
            if self._is_text or not isinstance(self.focused, Input):
                return False
            # Wait until the field has got the text that was typed before this key.
            written = asyncio.Event()
            if self.focused.call_later(written.set):
                with suppress(TimeoutError):
                    await asyncio.wait_for(written.wait(), _PATIENCE)
        return priority and await super()._check_bindings(key)

    # Commands

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for name, command in self.commands.items():
            is_near = not {Home.APP, Home.MAIN, Home.TREE, Home.REPLAY}.isdisjoint(command.homes)
            if is_near and not command.is_numbered and name not in HELP["Move"] and self.offers(command):
                # The palette reads both texts as markup, so they must not hold brackets.
                run = partial(self._run_command, screen, command)
                yield SystemCommand(
                    command.words.partition(";")[0].capitalize(), f"{command.tooltip} Key: {command.key_label}", run
                )
        for name in sorted(self.available_themes):
            run_theme = partial(setattr, self, "theme", name)
            yield SystemCommand(f"Theme: {name}", "Use this theme until you leave.", run_theme)

    def offers(self, command: ActionSpec) -> bool:
        """Whether this app has the command."""
        return Home.REPLAY not in command.homes

    async def _run_command(self, screen: Screen[object], command: ActionSpec) -> None:
        tree = self.main.task_tree if screen is self.main else None
        nodes = (screen.focused, tree, screen, self)
        await self.run_action(
            command.action, next(one for one in nodes if hasattr(one, f"action_{action_name(command.action)}"))
        )

    def action_suspend_process(self) -> None:
        """Suspend the process and go to the shell."""
        # A check by name, because only a dialog with a document loads the code of TextArea.
        if type(self.focused).__name__ == "TextArea":
            raise SkipAction
        # A private attribute, because no public one says whether the app can be suspended.
        if not (self._driver is not None and self._driver.can_suspend and suspend_all()):
            self.complain("agentwatch cannot be suspended here.")

    def _come_back(self, _app: App[object]) -> None:
        set_attended(attended=True)
        self.post_message(events.AppFocus())
        self.refresh(layout=True)

    def action_command_palette(self) -> None:
        # The palette does not open over a dialog, which has to be left first.
        if not self.screen.is_modal:
            self.push_screen(_Palette(id="--command-palette"))

    def action_help(self) -> None:
        from agentwatch.app.screens.pages import HelpScreen  # rarely needed

        self.push_screen(HelpScreen(self.commands, self.settings.views))

    # About a task, on whichever screen it is selected

    @property
    def task_id(self) -> str | None:
        """The id of the selected task."""
        return getattr(self.screen, "task_id", None)

    @on(Inspect)
    def _inspect(self, event: Inspect) -> None:
        """Show the file of a claim, or the call in the transcript on which it rests."""
        from agentwatch.app.screens.inspect import claim_screen, reading_of  # slow to load, like the details

        if step := reading_of(self.monitor, event):
            self._read_step(step)
        elif event.claim.call is None and not self.monitor.of(event.task_id)[0].host:
            self.push_screen(claim_screen(self.monitor, self.clock, event.task_id, event.claim))
        else:
            self.complain(f"{clean(event.claim.path, 200)} cannot be opened here: the details say what was found.")

    @on(ReadStep)
    def _read_step(self, event: ReadStep) -> None:
        from agentwatch.app.screens.inspect import InspectScreen, write_step  # slow to load, like the details

        self.push_screen(InspectScreen(self.monitor, self.clock, self.task_id, partial(write_step, event)))

    @on(PageTranscript)
    def _page_transcript(self, event: PageTranscript) -> None:
        """Open a transcript in the operator's pager; the screen waits."""
        from agentwatch.app.editor import open_in_pager  # rarely needed

        self.complain(open_in_pager(self, event.transcript))

    async def action_decide(self, action: str) -> None:
        """Open the dialog of a decision about the selected task."""
        from agentwatch.app.decision_words import to_answer  # not needed for the first frame
        from agentwatch.delegation.decision import Action

        task_id = self.task_id
        if action == Action.RESPOND:
            task_id = to_answer(self.monitor.tree, task_id, self.clock()) or task_id
        await self._decide([task_id] if task_id is not None else [], Action(action), "No task is selected.")

    async def action_review(self) -> None:
        """Open dialogs about the marked tasks, or about all that need the operator, one after another."""
        task_ids = list(self.main.marked) or self.monitor.tree.queue
        await self._decide(task_ids, None, "Nobody needs you now, and no task is marked.")

    async def _decide(self, task_ids: Sequence[str], action: Action | None, nothing: str) -> None:
        from agentwatch.app.dialogs.dialog import Review  # slow to load: it needs the models of the contracts

        if not task_ids:
            self.say(nothing)
        elif not self.screen.is_modal:
            await Review(self, task_ids, action).open(action)

    async def action_aside(self, how: str) -> None:
        """Acknowledge the selected task or group or the filter's tasks; snooze a task; or undo the latest of these."""
        from agentwatch.app.acknowledging import put_aside  # not needed for the first frame

        if not self.monitor.shelves:
            self.say("Nothing can be put aside here.")
        elif not self.screen.is_modal:
            await put_aside(self, how)

    def action_file(self, how: str) -> None:
        """Open the selected task's file in the operator's editor, while the screen waits, or copy its path."""
        # Look the task up now, because the next key may select another one.
        task = self.monitor.tree.tasks.get(self.task_id or "")
        self._use_file(how, getattr(self.screen, "inspected", None), task)

    @work(group="file")
    async def _use_file(self, how: str, inspected: Path | None, task: Task | None) -> None:
        from agentwatch.app.editor import file_at_hand, hand_over  # rarely needed

        file = await file_at_hand(inspected, task, self.monitor, names=how == "copy")
        if isinstance(file, str):
            self.say(file)
        elif how == "edit":
            self.complain(hand_over(self, self.settings.editor, file))
        else:
            # Cleaned, because a text for the shell must not hold line breaks or escapes, even if it then names no file.
            # A path on another machine gets the form that `scp` takes.
            words = clean(str(file).removeprefix("/ssh:").removeprefix("/run:"))
            self.copy_to_clipboard(words)
            self.notify(f"Copied the path of {clean(file.name, 80)}: {abbreviate_home(words)}", markup=False)

    @on(Missing)
    def _say_missing(self, event: Missing) -> None:
        self.say(event.words)

    @work(group="connect", exclusive=True)
    async def action_connect(self) -> None:
        """Try at once to reach the unreachable hosts."""
        names = await asyncio.to_thread(self.monitor.reconnect)
        shown = f"{', '.join(names[:3])}{f' and {len(names) - 3:,} more' if names[3:] else ''}"
        self.notify(f"Connecting again: {clean(shown, 200)}" if names else "No host is off.", markup=False)

    def say(self, words: str) -> None:
        """Say that a key has nothing to do, or that agentwatch still reads if the first look is not over."""
        self.notify(words if self.is_settled else STILL_READING, markup=False)

    def complain(self, words: str | None) -> None:
        """Say in `words` that something could not be done; say nothing for None."""
        if words is not None:
            self.notify(words, severity="warning", markup=False)
