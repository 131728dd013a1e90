"""A decision as a page that people and agents can read. It is a copy: the signed file beside it is what counts."""

from __future__ import annotations

import re
from typing import Final

from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.text import clean, clean_lines, exact

_FENCE: Final = re.compile("`{3,}")
_SAID: Final = {
    Action.RETRY: "Retry",
    Action.ESCALATE: "Escalate",
    Action.ABORT: "Abort",
    Action.RESPOND: "Answer",
    Action.ACCEPT: "Accept the return",
}


def page(record: Record) -> bytes:
    """The Markdown page of a decision: equal records have equal pages. Foreign text in it is made safe to show."""
    params = record.params
    lines = [f"# {_SAID[record.action]}: {exact(record.task_id)}, attempt {record.attempt}", ""]
    facts = {
        "decision": record.decision_id,
        "number": str(record.seq),
        "operator": clean(record.operator),
        "decided": record.created_at,
        "after": f"{record.after}, whose fitter has ended" if record.after else None,
        "holds until": record.expires_at or "further notice",
        "mode": clean(params.mode) if params.mode else None,
        "mitigation": params.mitigation.value if params.mitigation else None,
    }
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    for title, text in (("Note", record.note), ("Amended handoff", params.handoff), ("Final report", params.report)):
        if text:
            lines += ["", f"## {title}", "", *_fenced(text)]
    if params.answers:
        lines += ["", "## Answers", ""]
        lines += [f"- {_answered(one.question)}{clean(one.answer)}" for one in params.answers]
    counts = f"What counts is the signed `{record.decision_id}.json` beside it"
    lines += ["", f"A copy for reading. {counts}: agents get it verified from `agentwatch wait`."]
    return "\n".join((*lines, "")).encode()


def _answered(question: str | None) -> str:
    return f"{clean(question)}: " if question else ""


def _fenced(text: str) -> list[str]:
    """The text in a fence that nothing in it can close."""
    shown, note = clean_lines(text.removesuffix("\n"))
    longest = max((len(run) for line in shown for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return [fence, *shown, fence, *([note] if note else [])]
