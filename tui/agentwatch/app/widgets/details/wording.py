"""The words and pieces that several tabs share: states, severities, bases, attempts."""

from __future__ import annotations

from typing import Final

from textual.content import Content

from agentwatch.app import present
from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import plain
from agentwatch.contracts.shapes import Contract, Severity, TodoStatus
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.runtime import Agreement
from agentwatch.delegation.task import Attempt, Basis, State, Task

ACCENT: Final = "bold $text-accent"

BASIS_WORDS: Final[dict[Basis, str]] = {
    Basis.PACKET: "its packet names it as the parent",
    Basis.SESSION: "the session store links the two",
    Basis.DELEGATION_PATH: "its delegation path leads through it",
    Basis.DOTTED_PREFIX: "its id is the beginning of this one's",
    Basis.DIRECTORY: "this one lies in its directory",
    Basis.NONE: "a root: nothing names a parent",
}

SEVERITY_LOOKS: Final[dict[Severity, present.Look]] = {
    Severity.ERROR: present.Look("✗", "error", "text-error"),
    Severity.WARNING: present.Look("!", "warning", "text-warning"),
}

VERDICT_LOOKS: Final[dict[Verdict, present.Look]] = {
    Verdict.VERIFIED: present.Look("✓", "verified", "state-completed"),
    Verdict.CONTRADICTED: present.Look("⚑", "false", "state-contradicted"),
    Verdict.UNVERIFIABLE: present.Look("?", "unverifiable", "text-muted"),
}

MODEL_WORDS: Final = {
    Agreement.MATCHES: "✓ as recorded",
    Agreement.DIFFERS: "! differs: recorded as ",
    Agreement.UNKNOWN: "? unverifiable: no source tells",
}
"""How a reported model compares; behind the last word of DIFFERS comes the other one."""
MODE_WORDS: Final = {
    Agreement.MATCHES: "✓ as the handoff asked",
    Agreement.DIFFERS: "! differs: the handoff asked for ",
    Agreement.UNKNOWN: "? unverifiable: the handoff names no mode",
}

TODO_LOOKS: Final[dict[TodoStatus, present.Look]] = {
    TodoStatus.PENDING: present.Look("○", "pending", "text-muted"),
    TodoStatus.IN_PROGRESS: present.Look("◐", "in progress", "state-working"),
    TodoStatus.DONE: present.Look("✓", "done", "state-completed"),
}

CONTRACT_WORDS: Final[dict[Contract, str]] = {
    Contract.HANDOFF_PACKET: "handoff-packet (JSON)",
    Contract.RETURN_FORMAT: "return-format (Markdown)",
    Contract.SUBAGENT_RETURN: "subagent-return (JSON)",
    Contract.RETURN_META: "return-meta, a dialect of subagent-return (JSON)",
    Contract.REPORT_CONTRACT: "report-contract (JSON)",
}


def shown(look: present.Look) -> Content:
    """Glyph and word in their colour."""
    return Content.styled(f"{look.glyph} {look.word}", f"${look.color}")


def state(task: Task) -> Content:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    look = present.look(task)
    behind = present.LOOKS[task.state]
    content = shown(look)
    return content if look is behind else Content.assemble(content, "  ", shown(behind))


def state_word(which: State) -> Content:
    """Glyph and word of a state in its colour."""
    return shown(present.LOOKS[which])


def reported(task: Task) -> Content | None:
    """The document's own word for the state, where it is another one than ours."""
    word = task.reported_state
    if not word or word.casefold() == present.LOOKS[task.state].word:
        return None
    return Content.assemble(("reported ", FAINT), plain(word, 40))


def end_of(task: Task, attempt: Attempt) -> float | None:
    """When an attempt of a task ended. An early marker says that the child works; it is not the return yet."""
    if attempt.returned and attempt.state is not State.WORKING:
        return attempt.returned.at
    if attempt.run and attempt.run.ended_at is not None:
        return attempt.run.ended_at
    return task.ended_at if attempt is task.latest and task.own_state is State.CANCELED else None


def duration_of(task: Task, attempt: Attempt, now: float) -> str:
    """How long an attempt took, or has been running; `-` where its beginning is not known."""
    if attempt.started_at is None:
        return "-"
    end = end_of(task, attempt)
    return present.duration((now if end is None else end) - attempt.started_at)
