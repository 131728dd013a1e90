"""A page over the details: one claimed file and its git diff, or one entry of a transcript."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.editor import HEADS
from agentwatch.app.messages import Inspect, ReadStep
from agentwatch.app.screens.base import MonitorScreen
from agentwatch.app.widgets.details.blocks import (
    FAINT,
    MARKED,
    Block,
    Page,
    Text,
    caution,
    heading,
    in_color,
    listing,
    markdown,
    plain,
    read_git,
    remark,
    text,
)
from agentwatch.app.widgets.details.pane import ENDED
from agentwatch.app.widgets.details.tabs import about, claimed
from agentwatch.app.widgets.footer import Footer
from agentwatch.delegation.events import Claim
from agentwatch.evidence.git import difference, file_text
from agentwatch.monitor import Monitor
from agentwatch.sources.files.read import system_name
from agentwatch.sources.sessions.entries import EntryKind, Step, format_arguments, make_step, shell_command
from agentwatch.text import clean_lines
from agentwatch.view.words import VERDICTS, in_units, local


class Written(NamedTuple):
    """A head and the blocks of the page below it; with `at_end`, the page opens at its end."""

    head: Content
    blocks: Sequence[Block]
    at_end: bool = False


class InspectScreen(MonitorScreen[None]):
    """Shows the page that the first of `pages` writes; a key switches to the next. Each reads anew, in a thread."""

    BINDINGS = bindings(Home.INSPECT)

    DEFAULT_CSS = "InspectScreen #page-head { height: auto; max-height: 8; padding: 0 1 1 1; }"

    inspected: Path | None = None  # the file that is shown, None if none may be shown

    def __init__(
        self, monitor: Monitor, clock: Callable[[], float], task_id: str | None, *pages: Callable[[], Written]
    ):
        super().__init__(monitor, clock)
        self._task_id, self._pages, self._shown = task_id, pages, 0
        self._head = Static(id="page-head", markup=False)
        self._page = Page()
        self.footer = Footer(Place.INSPECT, is_hidden=self.is_hidden_or_refused)

    @property
    def task_id(self) -> str | None:
        return self._task_id

    def is_hidden(self, command_id: str) -> bool:
        is_of_file = command_id in ("inspect.switch", "edit", "copy")
        return (is_of_file and len(self._pages) == 1) or super().is_hidden(command_id)

    def compose(self) -> ComposeResult:
        yield from (self.header.data_bind(MonitorScreen.facts), self._head, self._page, self.footer)

    def on_mount(self) -> None:
        self.set_focus(self._page)
        self._page.show([remark("reading…")], keep=False)
        self._read()

    @work(exclusive=True)
    async def _read(self) -> None:
        """Write the page, and scroll to the first line that the claim names or, for a command, to the end."""
        written = await asyncio.to_thread(self._pages[self._shown])
        self._head.update(written.head)
        self._page.show(written.blocks, keep=False)
        marked = next((at for at, line in enumerate(self._page.lines) if line.startswith(MARKED)), 0)
        # Scroll only after the refresh, because the head may take lines from the page.
        self.call_after_refresh(
            self._page.scroll_to, y=len(self._page.lines) if written.at_end else max(marked - 3, 0), animate=False
        )

    def action_switch(self) -> None:
        """Switch between the file and its diff."""
        self._shown = (self._shown + 1) % len(self._pages)
        self._read()


def claim_screen(monitor: Monitor, clock: Callable[[], float], task_id: str, claim: Claim) -> InspectScreen:
    """Return a screen that shows the file of a claim and its diff."""
    workspace, name = monitor.of(task_id)[0].workspace, system_name(claim.file or claim.path)
    task = monitor.tree.tasks.get(task_id)
    since = task.latest.handed_off_at if task else None
    titles = "File", f"Difference since the {'last commit' if since is None else 'handoff'}"

    def head(shown: str) -> Content:
        tabs = (Content.styled(title, "bold" if title == shown else FAINT) for title in titles)
        return Content.assemble(_head_of(claim), "\n\n", Content("   ").join(tabs))

    def write_file() -> Written:
        found = file_text(workspace, name)
        screen.inspected = None if found.problem else workspace / name
        lines, note = clean_lines(found.text.removesuffix("\n"))
        note = "truncated: the file is longer than is shown" if found.truncated else note
        shown = listing(lines, marked=claim.lines or (0, -1)) if found.text else [_nothing(found.problem)]
        return Written(head(titles[0]), [*shown, *([caution(note)] if note else [])])

    def write_changes() -> Written:
        found = difference(workspace, name, since)
        changes = read_git(found.text)
        blocks = [text(changes.counted), *changes.noted] if changes.rows else [_nothing(found.problem)]
        return Written(head(titles[1]), blocks)

    screen = InspectScreen(monitor, clock, task_id, write_file, write_changes)
    return screen


def _nothing(problem: str) -> Text:
    return text(Content(problem or "There is no text to show."))


def _head_of(claim: Claim) -> Content:
    """Return the name of a claim, its verdict, and the reason for it."""
    verdict = in_color(VERDICTS[claim.verdict])
    return Content.assemble(claimed(claim).stylize("bold"), "\n", verdict, "   ", about(claim))


def reading_of(monitor: Monitor, wanted: Inspect) -> ReadStep | None:
    """Return the message that shows the call on which a claim rests; None without its transcript."""
    (own, _), call = monitor.of(wanted.task_id), wanted.claim.call
    run = next(iter(own.tree.runs.of_session((call.source, call.session_id))), None) if call else None
    transcript = own.transcript(run) if run else None
    if call is None or run is None or transcript is None:
        return None
    name = run.place.rpartition("/")[2]
    place = f"{name}, {'byte' if name.endswith('.jsonl') else 'record'} {call.place[0]:,}"
    return ReadStep(transcript, Step(call.place, EntryKind.CALL, call.at, answered=call.answered), place, wanted.claim)


def write_step(wanted: ReadStep) -> Written:
    """Return the page of a transcript's entry as it is now. Blocks."""
    step, whole, is_command = wanted.step, wanted.transcript.read_step(wanted.step), False
    if whole is None:
        blocks = [caution("It is not in the transcript any more. Its line said:"), text(plain(step.about))]
    else:
        # If the transcript was not read before, the step's kind and words are known only now.
        step = make_step(step.place, whole.said, step.answered, whole.result)
        blocks = list((markdown if step.kind is EntryKind.WORDS else _verbatim)(whole.said.text))
    mark, style = ENDED[step.outcome]
    parts = [(HEADS.get(step.kind, ""), "bold"), (local(step.at) if step.at else "", FAINT)]
    if step.kind is EntryKind.CALL:
        took = "" if step.ended_at is None else f"took {in_units(step.ended_at - step.at)}"
        parts = [
            (plain(f"{step.tool} {step.about}".rstrip()).plain, "bold"),
            parts[1],
            (took, FAINT),
            (f"{mark} {step.outcome}", style),
        ]
        if whole is not None:
            came = whole.result and (whole.result.text.strip() or "It gave nothing back.")
            given, is_command = format_arguments(whole.said.given) or "nothing", bool(shell_command(whole.said.given))
            blocks = [*heading("Given"), *_verbatim(given)]
            blocks += [*heading("Result"), *_verbatim(came or "There is none yet.")]
    head = Content("   ").join(Content.styled(*part) for part in parts if part[0])
    where = f"\nin {plain(wanted.place).plain}" if wanted.place else ""
    of_claim = _head_of(wanted.claim) + Content("\n") if wanted.claim is not None else ""
    return Written(Content.assemble(of_claim, head, (where, FAINT)), blocks, at_end=is_command)


def _verbatim(source: str) -> Iterator[Text]:
    """Yield sanitised lines, otherwise unchanged; a line that is too wide continues on the next row."""
    lines, note = clean_lines(source.rstrip())
    yield from (Text(Content(line), wrap=False) for line in lines)
    yield from [caution(note)] if note else []
