"""Pages over the main screen: the keys and the manual, and the problems of files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from agentwatch import manual
from agentwatch.app.actions import COMMANDS, HELP, VIEWS, ActionSpec, key_label
from agentwatch.app.widgets.details.blocks import GAP, Block, Page, Text, left_out, markdown, text
from agentwatch.contracts.shapes import Finding
from agentwatch.text import clean

_KEYS = 15  # cells of the column with the keys
_SHOWN = 200  # the most files with a problem that are listed


def _as(command_id: str, action: str) -> Binding:
    """Return a binding of a command's keys, also if the operator has set them, to another action."""
    return Binding(",".join(COMMANDS[command_id].keys), action, show=False, id=command_id)


class PageScreen(ModalScreen[None]):
    """Shows blocks of safe text under a title."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False),
        *(_as("help", "dismiss"), _as("quit", "dismiss")),
    ]

    DEFAULT_CSS = """
    PageScreen { align: center middle; background: $background 70%; }
    PageScreen > Page {
        width: 84; max-width: 100%; height: auto; max-height: 100%;
        border: round $line; background: $background; color: $foreground; padding: 0 1;
        border-title-color: $foreground; border-title-style: bold; border-subtitle-color: $text-muted;
    }
    """

    def __init__(self, title: str, blocks: Iterable[Block], hint: str = "esc back"):
        super().__init__()
        self._page = Page()
        self._page.border_subtitle, self._page.max_width = hint, 78
        self._begin = title, list(blocks)

    def compose(self) -> ComposeResult:
        yield self._page

    def on_mount(self) -> None:
        self.turn_to(*self._begin)

    def turn_to(self, title: str, blocks: Sequence[Block]) -> None:
        """Show a text from its beginning."""
        self._page.border_title = title
        self._page.show(blocks, keep=False)


def notices_of(notices: Sequence[Finding], own: Sequence[str]) -> Iterator[Block]:
    """Yield our own notices, then each file with its problem and what to do."""
    if not notices and not own:
        yield text(Content("Every file that looks like a handoff or a return could be read and belongs to a task."))
    for sentence in own:
        yield Text(Content(clean(sentence, 500)), Content.styled("! ", "bold $text-warning"), "  ")
    for placed in notices[:_SHOWN]:
        rule = Content.styled(f"{placed.rule}  ", "bold $accent")
        yield Text(Content.styled(clean(placed.path, 300), "bold"), rule, " " * len(rule))
        yield text(Content.styled(clean(placed.message, 500), "$text-muted"), 2)
    yield from left_out(len(notices), _SHOWN, ": `agentwatch check` and `agentwatch verify` list them")


class HelpScreen(PageScreen):
    """The keys, then the topics of the manual."""

    BINDINGS: ClassVar[list[BindingType]] = [_as("right", "topic(1)"), _as("left", "topic(-1)")]

    def __init__(self, commands: Mapping[str, ActionSpec], views: Sequence[tuple[str, str]]):
        """`views` are the saved views: pairs of name and query."""
        super().__init__("Keys", help_blocks(commands, views), hint="← → manual   esc back")
        self._topics = [topic for topic in manual.topic_names() if topic != "keys"]
        self._shown = 0

    def action_topic(self, step: int) -> None:
        """Go to the next topic (`step` 1), or the one before (-1)."""
        self._shown = (self._shown + step) % (len(self._topics) + 1)
        topic = self._topics[self._shown - 1]
        text = topic.capitalize(), list(markdown(manual.read_unwrapped(topic)))
        self.turn_to(*(text if self._shown else self._begin))


def help_blocks(commands: Mapping[str, ActionSpec], views: Sequence[tuple[str, str]]) -> Iterator[Block]:
    """Yield the help on the keys of these commands, and on the saved views."""
    for heading, sentences in HELP.items():
        yield from _section(heading, [(commands[name].keys_label, words) for name, words in sentences.items()])
    if views:
        saved = zip(map(key_label, commands["views"].keys), views[:VIEWS], strict=False)
        yield from _section("Your views", [(key, clean(": ".join(view), 200)) for key, view in saved])
    yield from _section(
        "In a row", [("━━── 4/6", "Todos of the task that are done."), ("2 of 5", "Tasks below it that are completed.")]
    )
    yield from _section("Mouse", [("click", "Select a task; twice opens it."), ("click ▸", "Fold or unfold.")])


def _section(title: str, entries: list[tuple[str, str]]) -> Iterator[Block]:
    yield GAP
    yield text(Content.styled(title, "bold $accent"))
    for name, words in entries:
        lead = Content.assemble("  ", (f"{name:<{_KEYS}}", "bold"))
        yield Text(Content.styled(words, "$text-muted"), lead, " " * len(lead))
