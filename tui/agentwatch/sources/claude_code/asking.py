"""Which agent of a session asks the person at its terminal for something, and for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from agentwatch.sources.claude_code.frames import asked
from agentwatch.sources.sessions.fields import Fields, first_line, text
from agentwatch.sources.sessions.processes import Wait

QUESTIONS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that do nothing but ask; a use of any other may need a permission."""

_SUBJECTS: Final = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "skill")
_LONGEST: Final = 200

_SLACK: Final = 2.0
"""Seconds from the use of a tool to the question about it. It is longer where hooks or a classifier judge first, and
for the later ones of several in one message."""


class Use(NamedTuple):
    """A use of a tool that has no result yet. `words` is what a question asks, else the use in a few words.

    `at` is in seconds since the epoch. Texts are foreign and unsanitised.
    """

    at: float
    words: str
    is_question: bool


def use_of(tool: str, given: Fields, at: float) -> Use:
    """A use of a tool as the transcript has it."""
    if tool in QUESTIONS:
        return Use(at, asked(tool, given), True)
    subject = next((found for key in _SUBJECTS if (found := text(given, key))), "")
    return Use(at, f"{tool} {first_line(subject, _LONGEST)}".strip(), False)


def asker(open_uses: Mapping[str, Sequence[Use]], wait: Wait) -> tuple[str | None, str]:
    """Who waits, out of the agents that work, and for what. None where it cannot be told.

    The program does not say it. A use that came long before it began to wait is at work, unless there is no other.
    """
    for earliest in (wait.since - _SLACK, 0.0):
        recent = {agent: [use for use in uses if use.at >= earliest] for agent, uses in open_uses.items()}
        chosen = {agent: uses for agent, uses in recent.items() if uses}
        if len(chosen) == 1:
            ((agent, (first, *others)),) = chosen.items()
            if first.is_question:
                return agent, first.words
            # Several of one message are asked about in their order, but some of them may be at work.
            return agent, f"{wait.what}{', it seems' if others else ''}: {first.words}"
        if chosen:
            return None, f"{wait.what}; which of its agents asks is not known"
    return None, wait.what
