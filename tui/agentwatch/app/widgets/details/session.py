"""What a session store tells of a task: what was asked and answered in words, and how the run went."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import Block, Gap, Heading, Rich, faint, field, plain, text
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.delegation.run import Message, Run, RunState


def asked(view: View, run: Run) -> Iterator[Block]:
    """What the run was asked for, if it was no packet."""
    if run.prompt is None:
        missing = run.prompt_missing or "the session store does not have it"
        yield text(Content.assemble(("What was asked is not known: ", FAINT), plain(missing)))
        return
    by = "a human" if run.parent_session is None else "its parent"
    yield text(faint(f"Asked by {by} in words, without a handoff packet:"))
    yield Gap()
    yield _words(view, run.prompt)


def answered(view: View, run: Run) -> Iterator[Block]:
    """What the run said, where that follows no contract."""
    if run.said is None:
        ended = run.state not in (RunState.SUBMITTED, RunState.WORKING)
        yield text(faint("It ended without an answer." if ended else "Nothing has come back yet."))
        if run.reason:
            yield text(plain(run.reason))
    else:
        yield text(faint("Its answer follows none of the contracts; these are its words:"))
        yield Gap()
        yield _words(view, run.said)
    for number, message in reversed(list(enumerate(run.earlier, 1))):
        yield Gap()
        yield Heading(f"Answer {number}", note=faint("in the same session, before it was sent on"))
        yield _words(view, message)


def facts(run: Run) -> Iterator[Block]:
    """Where the run is recorded, and what it took."""
    yield field(
        "source", Content.assemble(plain(run.source), ("   in the background" if run.background else "", FAINT))
    )
    if run.model:
        yield field("model", Content.assemble(plain(run.model), ("   (as recorded)", FAINT)))
    if run.tokens:
        yield field("tokens", Content(f"{run.tokens:,}"))
    if run.link:
        yield field("known by", plain(run.link))
    yield field("record", plain(run.place))


def _words(view: View, message: Message) -> Block:
    opened = view.opened(message)
    if opened is None:
        return READING
    return Rich(message.opening + " …" if opened.text is None else opened.text)
