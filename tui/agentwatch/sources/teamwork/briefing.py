"""What the Markdown files of a role say: who it is, who asked for it, whom it asked, and when it was last alive."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentwatch.contracts.findings import Judgement
from agentwatch.contracts.markdown_source import lines_of
from agentwatch.contracts.shapes import Todo
from agentwatch.contracts.todos import read_checklist
from agentwatch.sources.sessions.fields import moment

ID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_BULLET: Final = r"(?im)^[ \t]*[-*][ \t]+\**"
_ARCHETYPE: Final = re.compile(_BULLET + r"Archetype\**:\**[ \t]*(\S.{0,100})$")
_CURRENT_PARENT: Final = re.compile(
    r"(?im)^##[^\n]*Current Parent[^\n]*\n(?:[^#\n][^\n]*\n|\n){0,5}?[^\n]*?(" + ID + ")"
)
_ORIGINAL_PARENT: Final = re.compile(_BULLET + r"Original parent(?: conversation ID)?\**:\**[^\n]*?(" + ID + ")")
_OWN_TIMER: Final = re.compile(f"({ID})/task-\\d")
_CHILD: Final = re.compile(_BULLET + r"(?:Orchestrator|Victory Auditor)\**:\**[ \t]*(" + ID + ")")
_PHASE: Final = re.compile(
    r"(?im)^##[^\n]*Project Status[^\n]*\n(?:[^#\n][^\n]*\n|\n){0,5}?[-*][ \t]+\**Phase\**:\**[ \t]*(\S[^\n]*)"
)
_ITS_END: Final = re.compile(r"(?i)(?:complete|done|finish|deliver|closed|victory confirmed)")
_ROSTER: Final = re.compile(r"(?im)^##[^\n]*Team Roster[^\n]*\n((?:[ \t]*\n|[ \t]*\|[^\n]*(?:\n|\Z))+)")
_VISITED: Final = re.compile(r"(?i)Last visited\**:\**[ \t]*(\d{4}-\d\d-\d\d[T ][^\s|)]{4,20})")
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)")
_STATUS: Final = re.compile(
    # A heading with the word below it, a bullet, a row of a table or a bare line.
    r"(?im)^[ \t>|#*_-]*(?:(?:final|overall|current)[ \t]+)?"
    r"(?:status|state|verdict|result|outcome|statut|état|résultat|estado|resultado|stato|esito|risultato"
    r"|zustand|ergebnis|статус|результат|状态|状態|ステータス|结果|結果|상태|결과|trạng thái|kết quả)"
    r"[ \t*_|]*(?:[:：|-][ \t*_`|]*|\n(?:[ \t]*\n)?[ \t>*_`-]*)([^\n|]{1,200})"
)
_FAILING: Final = re.compile(
    r"(?i)(?:[❌✗✘🔴⛔][\ufe0f \t]*)?(?:failed|failure|errored|fehlgeschlagen|gescheitert"
    r"|échoué|échec|fallido|fallida|falló|fracaso|falhou|falha|fallito|fallita|провал|неудач|не выполнен"
    r"|失败|失敗|실패|thất bại|(?:fail|error|fehler|ошибка)(?=\W*$|[ \t]*[:：(（–—-]))|[❌✗✘⛔]"
)
_MOST_ROWS: Final = 1000
_MOST_LINES: Final = 5000
_LOOKED_AT: Final = 100_000


class RosterRow(NamedTuple):
    """A row of an orchestrator's `## Team Roster`. Texts are foreign."""

    agent: str
    status: str
    conversation: str | None


class Briefing(NamedTuple):
    """What BRIEFING.md says. Conversations are ids of the program that runs the agents, in small letters.

    `parents` are the conversations that asked for this role, the current one first; `own` are its own, as far as it
    says so by naming its timers; `started` are those that it started without a roster. `goes_on`: it watches over a
    project that is in some phase before its end, whatever it has handed over until now.
    """

    archetype: str | None = None
    parents: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    roster: tuple[RosterRow, ...] = ()
    goes_on: bool = False


def read_briefing(text: str) -> Briefing:
    """Find what is known of it; the rest of the file is free text."""
    archetype = _ARCHETYPE.search(text)
    parents = [named[1].lower() for named in (_CURRENT_PARENT.search(text), _ORIGINAL_PARENT.search(text)) if named]
    phase = _PHASE.search(text)
    return Briefing(
        archetype[1].strip() if archetype else None,
        tuple(dict.fromkeys(parents)),
        tuple(dict.fromkeys(name.lower() for name in _OWN_TIMER.findall(text))),
        tuple(name.lower() for name in _CHILD.findall(text)),
        _roster(text),
        phase is not None and not _ITS_END.match(phase[1]),
    )


def last_visited(text: str) -> float | None:
    """The heartbeat in progress.md, in seconds since the epoch."""
    times = [moment(time) for time in _VISITED.findall(text)]
    return max((time for time in times if time is not None), default=None)


def first_time(text: str) -> float | None:
    """The first time that is written in a text: a request begins with the one when it was made."""
    time = _TIME.search(text, 0, 2000)
    return moment(time[1]) if time else None


def failing_status(text: str) -> str:
    """The words of the last status line of a handoff where they say, in a language known here, that the work failed;
    else "". Only a status that stands for itself counts, no word within a sentence about something else."""
    statuses = _STATUS.findall(text, 0, _LOOKED_AT)
    words = statuses[-1].strip(" \t*_`") if statuses else ""
    return words if _FAILING.match(words) else ""


def checklist(text: str) -> tuple[Todo, ...] | None:
    """The checkboxes of progress.md, None where there are none. What else stands there is no fault."""
    return read_checklist(lines_of(text)[:_MOST_LINES], Judgement(), alone=True) or None


def _roster(text: str) -> tuple[RosterRow, ...]:
    section = _ROSTER.search(text)
    if section is None:
        return ()
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in section[1].splitlines() if "|" in line
    ]
    if len(rows) < 2:
        return ()
    columns = {name.lower(): number for number, name in reversed(list(enumerate(rows[0])))}
    members = []
    for row in rows[1 : _MOST_ROWS + 1]:
        agent = _cell(row, columns.get("agent"))
        if agent and not set(agent) <= set("-: "):
            conversation = re.search(ID, _cell(row, columns.get("conv id")))
            status = _cell(row, columns.get("status")).lower()
            members.append(RosterRow(agent, status, conversation[0].lower() if conversation else None))
    return tuple(members)


def _cell(row: list[str], column: int | None) -> str:
    return row[column] if column is not None and column < len(row) else ""
