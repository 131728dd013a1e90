"""Pages that cover the main screen: the keys, the manual, and the files with problems."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from agentwatch import manual
from agentwatch.app.actions import COMMANDS, HELP, VIEWS, ActionSpec, key_label
from agentwatch.app.widgets.details.blocks import GAP, Block, Page, Text, markdown, paragraph, remark_left_out
from agentwatch.contracts.shapes import Finding
from agentwatch.text import clean

_KEYS = 15  # cells of the column with the keys
_SHOWN = 200  # the most files with a problem that are listed


def _bind_keys_of(command_id: str, action: str) -> Binding:
    """Return a binding that gives a command's keys another action. It also follows the operator's own keys."""
    return Binding(",".join(COMMANDS[command_id].keys), action, show=False, id=command_id)


class PageScreen(ModalScreen[None]):
    """Shows a page of safe text with a title."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", show=False),
        *(_bind_keys_of("help", "dismiss"), _bind_keys_of("quit", "dismiss")),
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
        self._first_text = title, list(blocks)

    def compose(self) -> ComposeResult:
        yield self._page

    def on_mount(self) -> None:
        self.show_text(*self._first_text)

    def show_text(self, title: str, blocks: Sequence[Block]) -> None:
        """Show another title and text. Scroll to the beginning of the text."""
        self._page.border_title = title
        self._page.show(blocks, keep_position=False)


def notice_blocks(notices: Sequence[Finding], own: Sequence[str]) -> Iterator[Block]:
    """Yield agentwatch's own messages (`own`), then each file that has a problem, with the problem."""
    if not notices and not own:
        yield Text(Content("Every file that looks like a handoff or a return could be read and belongs to a task."))
    for sentence in own:
        yield Text(Content(clean(sentence, 500)), Content.styled("! ", "bold $text-warning"), "  ")
    for placed in notices[:_SHOWN]:
        rule = Content.styled(f"{placed.rule}  ", "bold $accent")
        yield Text(Content.styled(clean(placed.path, 300), "bold"), rule, " " * len(rule))
        yield paragraph(Content.styled(clean(placed.message, 500), "$text-muted"), 2)
    yield from remark_left_out(len(notices), _SHOWN, ": `agentwatch check` and `agentwatch verify` list them")


class HelpScreen(PageScreen):
    """The help: the keys, and the topics of the manual."""

    BINDINGS: ClassVar[list[BindingType]] = [_bind_keys_of("right", "topic(1)"), _bind_keys_of("left", "topic(-1)")]

    def __init__(self, commands: Mapping[str, ActionSpec], views: Sequence[tuple[str, str]]):
        """`views` are the saved views: pairs of name and query."""
        super().__init__("Keys", help_blocks(commands, views), hint="← → manual   esc back")
        self._topics = [topic for topic in manual.topic_names() if topic != "keys"]
        self._shown = 0

    def action_topic(self, step: int) -> None:
        """Show the next topic of the manual (`step` 1), or the previous topic (-1)."""
        self._shown = (self._shown + step) % (len(self._topics) + 1)
        topic = self._topics[self._shown - 1]
        text = topic.capitalize(), list(markdown(manual.read_unwrapped(topic)))
        self.show_text(*(text if self._shown else self._first_text))


def help_blocks(commands: Mapping[str, ActionSpec], views: Sequence[tuple[str, str]]) -> Iterator[Block]:
    """Yield the help about the keys of these commands and about the saved views."""
    for heading, sentences in HELP.items():
        yield from _section_blocks(heading, [(commands[name].keys_label, words) for name, words in sentences.items()])
    if views:
        saved = zip(map(key_label, commands["views"].keys), views[:VIEWS], strict=False)
        yield from _section_blocks("Your views", [(key, clean(": ".join(view), 200)) for key, view in saved])
    yield from _section_blocks(
        "In a row", [("━━── 4/6", "Todos of the task that are done."), ("2 of 5", "Tasks below it that are completed.")]
    )
    yield from _section_blocks("Mouse", [("click", "Select a task; twice opens it."), ("click ▸", "Fold or unfold.")])


def _section_blocks(title: str, entries: list[tuple[str, str]]) -> Iterator[Block]:
    yield GAP
    yield paragraph(Content.styled(title, "bold $accent"))
    for name, words in entries:
        lead = Content.assemble("  ", (f"{name:<{_KEYS}}", "bold"))
        yield Text(Content.styled(words, "$text-muted"), lead, " " * len(lead))
