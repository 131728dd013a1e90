"""Pages of our own words over the main screen: the keys and the manual, and what is wrong with files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from agentwatch import manual
from agentwatch.app.actions import COMMANDS, HELP, VIEWS, ActionSpec, key_label
from agentwatch.app.widgets.details.blocks import GAP, Block, Text, lay_out, left_out, markdown, text
from agentwatch.contracts.shapes import Finding
from agentwatch.text import clean

_WIDTH: Final = 84
_EDGES: Final = 6
"""Cells of border, padding, and the scroll bar with a blank before it."""
_KEYS: Final = 15
"""Cells of the column with the keys."""
_SHOWN: Final = 200
"""Files with a problem that are listed."""


def _as(command_id: str, action: str) -> Binding:
    """The keys of a command, also those of the operator's own, for something else."""
    return Binding(",".join(COMMANDS[command_id].keys), action, show=False, id=command_id)


class PageScreen(ModalScreen[None]):
    """Shows the blocks that `write` makes, of safe text, under a title of ours. Escape closes it, ctrl+c all."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False),
        # That leaves agentwatch: of the keys that leave it, the others only close.
        Binding("ctrl+c", "copy_or_quit", show=False),
        *(_as("help", "dismiss"), _as("quit", "dismiss")),
    ]

    DEFAULT_CSS = f"""
    PageScreen {{ align: center middle; background: $background 70%; }}
    PageScreen > #page {{
        width: {_WIDTH}; max-width: 100%; height: auto; max-height: 100%;
        border: round $line; background: $background; color: $foreground; padding: 0 1; scrollbar-size-vertical: 1;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $text-muted;
    }}
    PageScreen #page-text {{ height: auto; width: 1fr; }}
    """

    def __init__(self, title: str, blocks: Iterable[Block], hint: str = "esc back") -> None:
        super().__init__()
        self._blocks = list(blocks)
        # Held, not looked for: at the end of the app a size still arrives when they are no longer on the screen.
        self._text = Static(id="page-text", markup=False)
        self._page = VerticalScroll(self._text, id="page")
        self._page.border_title, self._page.border_subtitle = title, hint

    def compose(self) -> ComposeResult:
        yield self._page

    def on_mount(self) -> None:
        self._page.focus()

    def on_resize(self, event: events.Resize) -> None:
        self._fill(event.size.width)

    def turn_to(self, title: str, blocks: Iterable[Block]) -> None:
        """Show another text from its beginning."""
        self._blocks = list(blocks)
        self._page.border_title = title
        self._page.scroll_home(animate=False)
        self._fill(self.size.width)

    def _fill(self, width: int) -> None:
        lines = lay_out(self._blocks, min(width, _WIDTH) - _EDGES)
        self._text.update(Content("\n").join(line.content for line in lines))

    async def action_copy_or_quit(self) -> None:
        """Copy what is selected with the mouse, else leave agentwatch."""
        try:
            self.action_copy_text()
        except SkipAction:
            await self.app.action_quit()


def notices_of(notices: Sequence[Finding], own: Sequence[str]) -> Iterator[Block]:
    """Each file with what is wrong with it and what to do; before, what agentwatch says of itself."""
    if not notices and not own:
        yield text(Content("Every file that looks like a handoff or a return could be read and belongs to a task."))
    for sentence in own:
        yield Text(Content(clean(sentence, 500)), Content.styled("! ", "bold $text-warning"), "  ")
    for placed in notices[:_SHOWN]:
        rule = Content.styled(f"{placed.rule}  ", "bold $accent")
        yield Text(Content.styled(clean(placed.path, 300), "bold"), rule, " " * len(rule))
        yield text(Content.styled(clean(placed.message, 500), "$text-muted"), 2)
    yield from left_out(len(notices), _SHOWN, ": `agentwatch check` lists all")


class HelpScreen(PageScreen):
    """The keys, then the topics of the manual."""

    BINDINGS: ClassVar[list[BindingType]] = [_as("right", "topic(1)"), _as("left", "topic(-1)")]

    def __init__(self, commands: Mapping[str, ActionSpec], views: Sequence[tuple[str, str]]) -> None:
        """`views` are the saved ones: the name of each, and what it looks for."""
        self._keys = list(help_blocks(commands, views))
        super().__init__("Keys", self._keys, hint="← → manual   esc back")
        self._topics = ("keys", *(topic for topic in manual.topics() if topic != "keys"))
        self._shown = 0

    def action_topic(self, step: int) -> None:
        """Go on to the next topic, or back."""
        self._shown = (self._shown + step) % len(self._topics)
        topic = self._topics[self._shown]
        self.turn_to(topic.capitalize(), markdown(manual.unwrapped(topic)) if self._shown else self._keys)


def help_blocks(
    commands: Mapping[str, ActionSpec] = COMMANDS, views: Sequence[tuple[str, str]] = ()
) -> Iterator[Block]:
    """What the help shows of these commands, with the saved views."""
    for heading, sentences in HELP.items():
        yield from _section(heading, [(commands[name].keys_label, words) for name, words in sentences.items()])
    if views:
        saved = zip(map(key_label, commands["views"].keys), views[:VIEWS], strict=False)
        yield from _section("Your views", [(key, clean(": ".join(view), 200)) for key, view in saved])
    yield from _section("Mouse", [("click", "Select a task; twice opens it."), ("click ▸", "Fold or unfold.")])


def _section(title: str, entries: list[tuple[str, str]]) -> Iterator[Block]:
    yield GAP
    yield text(Content.styled(title, "bold $accent"))
    for name, words in entries:
        lead = Content.assemble("  ", (f"{name:<{_KEYS}}", "bold"))
        yield Text(Content.styled(words, "$text-muted"), lead, " " * len(lead))
