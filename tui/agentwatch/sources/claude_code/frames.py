"""What the program wraps around an agent's words: hand-back frames, task notifications, error tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from agentwatch.sources.claude_code.wording import texts
from agentwatch.sources.sessions.fields import Fields, first_line, listed, mapping, text, whole

_FRAME: Final = "[Subagent hand-back]"
_INDENT: Final = "  "
_TRAILER: Final = re.compile(r"^agentId: ([\w@.-]{1,128})(?= |$)", re.MULTILINE)
_COMMAND: Final = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_ERROR_TAG: Final = "tool_use_error"
_LIMIT: Final = re.compile(r"^ *NOTE: (this agent stopped at its \d{1,9}-turn limit[^.\n]{0,100})", re.MULTILINE)
_NOTHING: Final = frozenset({"", "(Subagent completed but returned no output.)"})


def handed_back(blocks: list[str], result: Mapping[str, object]) -> str | None:
    """An agent's words out of the parent's copy, None where it has none.

    `blocks` are the texts of the tool result, `result` its structured form, which nested agents' parents do not have.
    """
    if isinstance(result.get("content"), list):
        parts = texts(result.get("content"))
        behind = len(parts) - (whole(result, "harnessTailCount") or 0)
        report = "\n".join(parts[(whole(result, "harnessNoteCount") or 0) : behind])
    else:
        report = _unframed("\n".join(block for block in blocks if not _TRAILER.match(block)))
    return report if report.strip() not in _NOTHING else None


def cut_short(blocks: list[str], result: Mapping[str, object]) -> str:
    """What the program notes above an agent's words where it did not let it finish, "" where it did."""
    if isinstance(result.get("content"), list):
        notes = "\n".join(texts(result.get("content"))[: whole(result, "harnessNoteCount") or 0])
    else:
        notes, framed, _ = "\n".join(blocks).partition(_FRAME)
        notes = notes if framed else ""
    found = _LIMIT.search(notes)
    return found[1] if found is not None else ""


def named_agent(blocks: list[str]) -> str | None:
    """The agent that a tool result names in the program's own line, which is never indented."""
    found = _TRAILER.findall(blocks[-1]) if blocks else []
    return found[-1] if found else None


def unwrapped_error(text: str) -> str:
    """The words of an error without the tag that may stand around them."""
    return first_line(text.replace(f"<{_ERROR_TAG}>", "").replace(f"</{_ERROR_TAG}>", ""))


def typed(prompt: str) -> str:
    """One line of what a human typed: a slash command is written into the transcript as tags."""
    if prompt.startswith("<command-"):
        parts = dict(_COMMAND.findall(prompt))
        return first_line(f"{parts.get('name', '')} {first_line(parts.get('args', ''))}")
    return first_line(prompt)


def asked(tool: str, given: Fields) -> str:
    """What a tool asks the human, in a few words."""
    if tool == "ExitPlanMode":
        return "an approval of its plan"
    questions = [text(mapping(question), "question") for question in listed(given, "questions")]
    return f"an answer: {first_line(next((question for question in questions if question), ''))}"


def _unframed(text: str) -> str:
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.startswith(_FRAME)), None)
    if start is None:
        return text
    report = []
    for line in lines[start + 1 :]:
        if line and not line.startswith(_INDENT):
            break
        report.append(line.removeprefix(_INDENT))
    return "\n".join(report)
