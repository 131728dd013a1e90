"""A screen with the file of one claim and its git diff, or with one entry of a transcript."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.editor import HEADINGS
from agentwatch.app.messages import InspectClaim, ReadStep
from agentwatch.app.screens.base import MonitorScreen
from agentwatch.app.widgets.details.blocks import (
    FAINT,
    MARKED,
    Block,
    Page,
    Text,
    caution,
    heading,
    look_words,
    markdown,
    paragraph,
    parse_git_diff,
    remark,
    safe_line,
    source_lines,
)
from agentwatch.app.widgets.details.pane import OUTCOME_MARKS
from agentwatch.app.widgets.details.tabs import claim_path, claim_reason
from agentwatch.app.widgets.footer import Footer
from agentwatch.delegation.events import Claim
from agentwatch.evidence.git import difference, file_text
from agentwatch.monitor import Monitor
from agentwatch.sources.files.read import system_name
from agentwatch.sources.sessions.entries import EntryKind, Step, format_arguments, make_step, shell_command
from agentwatch.text import clean_lines
from agentwatch.view.words import VERDICTS, format_local, long_span


class PageContent(NamedTuple):
    """The head of a page, and the blocks below the head. If `at_end` is True, the page opens at its end."""

    head: Content
    blocks: Sequence[Block]
    at_end: bool = False


class InspectScreen(MonitorScreen[None]):
    """Shows one page. A key switches to the next page. Each function in `pages` makes one page, in a thread."""

    BINDINGS = bindings(Home.INSPECT)

    DEFAULT_CSS = "InspectScreen #page-head { height: auto; max-height: 8; padding: 0 1 1 1; }"

    inspected: Path | None = None  # the file that the page shows, or None if the file cannot be shown

    def __init__(
        self, monitor: Monitor, clock: Callable[[], float], task_id: str | None, *pages: Callable[[], PageContent]
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
        self._page.show([remark("reading…")], keep_position=False)
        self._show_page()

    @work(exclusive=True)
    async def _show_page(self) -> None:
        """Make and show the page. Scroll to the lines that the claim names, or to the end of a command's output."""
        content = await asyncio.to_thread(self._pages[self._shown])
        self._head.update(content.head)
        self._page.show(content.blocks, keep_position=False)
        marked = next((at for at, line in enumerate(self._page.lines) if line.startswith(MARKED)), 0)
        # Scroll after the refresh, because the head may have changed the height of the page.
        self.call_after_refresh(
            self._page.scroll_to, y=len(self._page.lines) if content.at_end else max(marked - 3, 0), animate=False
        )

    def action_switch(self) -> None:
        """Switch between the file and its diff."""
        self._shown = (self._shown + 1) % len(self._pages)
        self._show_page()


def make_claim_screen(monitor: Monitor, clock: Callable[[], float], task_id: str, claim: Claim) -> InspectScreen:
    """Return a screen that shows the file of a claim and its diff."""
    workspace, name = monitor.resolve_task(task_id)[0].workspace, system_name(claim.file or claim.path)
    task = monitor.tree.tasks.get(task_id)
    since = task.latest.handed_off_at if task else None
    titles = "File", f"Difference since the {'last commit' if since is None else 'handoff'}"

    def head(shown: str) -> Content:
        tabs = (Content.styled(title, "bold" if title == shown else FAINT) for title in titles)
        return Content.assemble(_claim_head(claim), "\n\n", Content("   ").join(tabs))

    def make_file_page() -> PageContent:
        found = file_text(workspace, name)
        screen.inspected = None if found.problem else workspace / name
        lines, note = clean_lines(found.text.removesuffix("\n"))
        note = "truncated: the file is longer than is shown" if found.truncated else note
        shown = source_lines(lines, marked=claim.lines or (0, -1)) if found.text else [_no_text_block(found.problem)]
        return PageContent(head(titles[0]), [*shown, *([caution(note)] if note else [])])

    def make_diff_page() -> PageContent:
        found = difference(workspace, name, since)
        changes = parse_git_diff(found.text)
        blocks = [paragraph(changes.counts), *changes.blocks] if changes.rows else [_no_text_block(found.problem)]
        return PageContent(head(titles[1]), blocks)

    screen = InspectScreen(monitor, clock, task_id, make_file_page, make_diff_page)
    return screen


def _no_text_block(problem: str) -> Text:
    return paragraph(Content(problem or "There is no text to show."))


def _claim_head(claim: Claim) -> Content:
    verdict = look_words(VERDICTS[claim.verdict])
    return Content.assemble(claim_path(claim).stylize("bold"), "\n", verdict, "   ", claim_reason(claim))


def step_of_claim(monitor: Monitor, wanted: InspectClaim) -> ReadStep | None:
    """Return the message that shows the tool call behind a claim. Return None if no transcript has the call."""
    (own, _), call = monitor.resolve_task(wanted.task_id), wanted.claim.call
    run = next(iter(own.tree.runs.runs_of_session((call.source, call.session_id))), None) if call else None
    transcript = own.transcript(run) if run else None
    if call is None or run is None or transcript is None:
        return None
    name = run.place.rpartition("/")[2]
    place = f"{name}, {'byte' if name.endswith('.jsonl') else 'record'} {call.place[0]:,}"
    return ReadStep(transcript, Step(call.place, EntryKind.CALL, call.at, answered=call.answered), place, wanted.claim)


def make_step_page(wanted: ReadStep) -> PageContent:
    """Return the page of one entry of a transcript. Call this in a thread, because it reads the transcript."""
    step, whole, is_command = wanted.step, wanted.transcript.read_step(wanted.step), False
    if whole is None:
        blocks = [caution("It is not in the transcript any more. Its line said:"), paragraph(safe_line(step.about))]
    else:
        # A step that was made from a claim has no kind and no words until the transcript is read.
        step = make_step(step.place, whole.said, step.answered, whole.result)
        blocks = list((markdown if step.kind is EntryKind.WORDS else _verbatim_lines)(whole.said.text))
    mark, style = OUTCOME_MARKS[step.outcome]
    parts = [(HEADINGS.get(step.kind, ""), "bold"), (format_local(step.at) if step.at else "", FAINT)]
    if step.kind is EntryKind.CALL:
        took = "" if step.ended_at is None else f"took {long_span(step.ended_at - step.at)}"
        parts = [
            (safe_line(f"{step.tool} {step.about}".rstrip()).plain, "bold"),
            parts[1],
            (took, FAINT),
            (f"{mark} {step.outcome}", style),
        ]
        if whole is not None:
            result = whole.result and (whole.result.text.strip() or "It gave nothing back.")
            given, is_command = format_arguments(whole.said.given) or "nothing", bool(shell_command(whole.said.given))
            blocks = [*heading("Given"), *_verbatim_lines(given)]
            blocks += [*heading("Result"), *_verbatim_lines(result or "There is none yet.")]
    head = Content("   ").join(Content.styled(*part) for part in parts if part[0])
    where = f"\nin {safe_line(wanted.place).plain}" if wanted.place else ""
    claim_head = _claim_head(wanted.claim) + Content("\n") if wanted.claim is not None else ""
    return PageContent(Content.assemble(claim_head, head, (where, FAINT)), blocks, at_end=is_command)


def _verbatim_lines(source: str) -> Iterator[Text]:
    lines, note = clean_lines(source.rstrip())
    yield from (Text(Content(line), wrap=False) for line in lines)
    yield from [caution(note)] if note else []
