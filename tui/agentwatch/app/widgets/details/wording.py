"""The words and pieces that several tabs share: states, severities, bases, attempts."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import plain
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.task import Attempt, State, Task
from agentwatch.view import looks, times
from agentwatch.view.runtime import Agreement

ACCENT: Final = "bold $text-accent"

MODEL_WORDS: Final = {
    Agreement.MATCHES: "✓ as recorded",
    Agreement.DIFFERS: "! differs: recorded as ",
    Agreement.UNKNOWN: "? unverifiable: no source says",
}
"""How a reported model compares; behind the last word of DIFFERS comes the other one."""
MODE_WORDS: Final = {
    Agreement.MATCHES: "✓ as the handoff asked",
    Agreement.DIFFERS: "! differs: the handoff asked for ",
    Agreement.UNKNOWN: "? unverifiable: the handoff names no mode",
}

CONTRACT_WORDS: Final[dict[Contract, str]] = {
    Contract.HANDOFF_PACKET: "handoff-packet (JSON)",
    Contract.RETURN_FORMAT: "return-format (Markdown)",
    Contract.SUBAGENT_RETURN: "subagent-return (JSON)",
    Contract.RETURN_META: "return-meta, a dialect of subagent-return (JSON)",
    Contract.REPORT_CONTRACT: "report-contract (JSON)",
}


def shown(look: looks.Look) -> Content:
    """Glyph and word in their colour."""
    return Content.styled(f"{look.glyph} {look.word}", f"${look.color}")


def state(task: Task) -> Content:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    look = looks.look(task)
    behind = looks.LOOKS[task.state]
    content = shown(look)
    return content if look is behind else Content.assemble(content, "  ", shown(behind))


def state_word(which: State) -> Content:
    """Glyph and word of a state in its colour."""
    return shown(looks.LOOKS[which])


def reported(task: Task) -> Content | None:
    """The document's own word for the state, if it is another one than ours."""
    word = task.reported_state
    if not word or word.casefold() == looks.LOOKS[task.state].word:
        return None
    return Content.assemble(("reported ", FAINT), plain(word, 40))


def took(task: Task, attempt: Attempt, now: float) -> Content:
    """How long an attempt took, or has been running; `-` where that is not known."""
    lasted = times.took(task, attempt, now)
    so_far = " so far" if lasted is not None and lasted.so_far else ""
    return Content.assemble(times.duration(lasted.seconds if lasted is not None else None), (so_far, FAINT))
