"""What an attempt and the agents that it asked did by their tools, read once; of what was printed, only the summary."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from agentwatch.background import let_others_work
from agentwatch.delegation.claims import Call
from agentwatch.delegation.run import Run
from agentwatch.evidence.commands.line import LONGEST, CommandLine, parse
from agentwatch.evidence.commands.outcomes import Counts, counts_in, faults_in, shows_hook, was_cut, was_forgiven
from agentwatch.evidence.commands.programs import (
    Program,
    changes_nothing,
    may_start,
    program,
    surely_checks_nothing,
)
from agentwatch.evidence.commands.tables import GIT_HOOKED
from agentwatch.sources.sessions.acts import Act, ActKind, acts_in
from agentwatch.sources.sessions.doing import Entry
from agentwatch.sources.sessions.following import RunTranscript

_MOST: Final = 20_000
"""Acts of one attempt that are kept."""
_SLACK: Final = 1.0
"""Seconds by which a call may stand before the beginning of its round."""
_LONGEST: Final = 2_000
"""Characters of a command or path that are kept for what the return does not say."""

_DOCUMENTS: Final = re.compile(
    r"(?:\.(?:md|markdown|mdx|rst)|\.(?:handoff|return|report)\.json|return-meta[\w.-]*\.json)\Z", re.IGNORECASE
)
"""Files that no test is about: what the agent writes of its work, it writes last."""

_HOOKED: Final = re.compile(rf"\bgit\s(?:[^\n;&|]{{0,200}}\s)?(?:{'|'.join(sorted(GIT_HOOKED))})\b")

TranscriptOf = Callable[[Run], RunTranscript | None]
_Records = Iterable[tuple[int, Sequence[Entry]]]


def is_document(path: str) -> bool:
    """Whether a file is one that no test is about."""
    return _DOCUMENTS.search(path) is not None


class Ran(NamedTuple):
    """A command that was run, with what came of it. `programs` are those of the parts of the line.

    Times are epoch seconds; `over_at` is None where its end is not told. `code` is the exit code of the whole line,
    None where it is not told. `counts` and `faults` are what its output says at its end, `is_cut` that not all is kept.
    `hooked`: its output shows that git ran a hook, `forgiven` that a failure in it may have been ignored.
    """

    line: CommandLine
    programs: tuple[Program, ...]
    cwd: str
    at: float
    over_at: float | None
    code: int | None
    counts: Counts | None
    faults: bool | None
    is_cut: bool
    call: Call
    hooked: bool = False
    forgiven: bool = False


class Done(NamedTuple):
    """An act that happened, without what it printed; `ran` where it is a command."""

    act: Act
    call: Call
    ran: Ran | None = None


class ToolLog(NamedTuple):
    """What was done, in the order in which it was begun. `refused` are the lines that nobody allowed to run.

    `gap` says why something may have been run that is not in it, "" where all is. `is_partial`: something of what was
    done is missing, so that nobody knows what was changed. `looked`: files were looked at by tools that are no shell.
    """

    done: tuple[Done, ...] = ()
    refused: tuple[CommandLine, ...] = ()
    gap: str = ""
    is_partial: bool = False
    looked: bool = False

    @property
    def ran(self) -> list[Ran]:
        return [one.ran for one in self.done if one.ran is not None]

    def changes(self) -> Iterator[tuple[float, str, Call]]:
        """When something was done that may have changed a file, which one ("" where that is not known), and by what."""
        for act, call, ran in self.done:
            over_at = act.at if act.ended_at is None else act.ended_at
            if ran is not None:
                # Where it is not known how it ended, it may go on in the background.
                over_at = math.inf if ran.code is None else over_at
                parts = ran.line.parts
                # A hook may have formatted what it was given.
                if (
                    ran.hooked
                    or not ran.line.plain
                    or any(part.hidden or not changes_nothing(part.argv) for part in parts)
                ):
                    yield over_at, "", call
            elif act.kind is ActKind.STRANGE or (act.kind is ActKind.WRITE and not act.failed):
                yield over_at, act.what if act.kind is ActKind.WRITE else "", call


def read_log(runs: Sequence[Run], transcript_of: TranscriptOf) -> ToolLog | None:
    """The log of the attempt whose run comes first, and of those that it asked, which follow; None where there is none.

    Blocks for as long as reading their transcripts takes.
    """
    gaps: list[str] = []
    made: list[Done] = []
    looked = False
    for number, run in enumerate(runs):
        transcript = transcript_of(run)
        if transcript is None:
            if number == 0:
                return None
            gaps.append("an agent that it asked has no transcript")
            continue
        try:
            acts = list(_of_run(run, transcript.records()))
        except Exception as error:  # noqa: BLE001  what somebody else's reader gives must not end all checks
            gaps.append(f"not all of its transcript can be read ({error})")
            continue
        looked = looked or any(one.act.kind is ActKind.LOOK for one in acts)
        made += (one for one in acts if one.act.kind is not ActKind.LOOK)
        if len(made) > _MOST:
            gaps.append("it did too much to keep in mind")
            del made[:-_MOST]
    is_partial = bool(gaps)
    made.sort(key=lambda one: (one.act.at, one.act.place))
    strange = (one.act.tool[:60] for one in made if one.act.kind is ActKind.STRANGE and not one.act.refused)
    gaps += (f"it used {tool}, and what that does is not known" for tool in strange)
    refused = [one.act for one in made if one.act.refused and one.act.kind is ActKind.COMMAND]
    done = (one for one in made if not one.act.refused)
    return ToolLog(tuple(done), tuple(parse(act.what) for act in refused), gaps[0] if gaps else "", is_partial, looked)


class Others:
    """What the other agents of a workspace changed by their tools, each log read again only where its run differs.

    `runs` are all of the workspace. One thread uses it.
    """

    def __init__(self, runs: Callable[[], Iterable[Run]], transcript_of: TranscriptOf, workspace: str) -> None:
        self._runs = runs
        self._transcript_of = transcript_of
        self._workspace = workspace
        self._changes: dict[tuple[str, str], tuple[Run, list[tuple[float, float, str]] | None]] = {}

    def changed(self, own: Iterable[Run], since: float, until: float | None) -> str:
        """What any but the `own` runs may have changed in a span of time, in words; "" for nothing."""
        mine = {(run.source, run.session_id) for run in own}
        last = math.inf if until is None else until
        for run in self._runs():
            is_over = run.ended_at is not None and max(run.ended_at, run.updated_at) < since
            if (run.source, run.session_id) in mine or is_over or run.started_at > last:
                continue
            changes = self._of(run)
            if changes is None:
                return "another agent was at work, and no log tells what it did"
            # A command may have changed a file at any time until it was over.
            paths = [path for began_at, over_at, path in changes if began_at <= last and over_at > since]
            if paths:
                what = next(filter(None, paths), "")
                return f"another agent changed {what}" if what else "another agent may have changed files"
        return ""

    def _of(self, run: Run) -> list[tuple[float, float, str]] | None:
        """(when it was begun, when it was over, what was changed) of a run; None where that is not known."""
        key = run.source, run.session_id
        known = self._changes.get(key)
        if known is None or known[0] != run:
            log = read_log([replace(run, rounds=())], self._transcript_of)
            changes = None if log is None or log.is_partial else list(self._inside(log))
            known = self._changes[key] = run, changes
        return known[1]

    def _inside(self, log: ToolLog) -> Iterator[tuple[float, float, str]]:
        for over_at, path, call in log.changes():
            place = os.path.realpath(os.path.join(self._workspace, path))  # noqa: PTH118  a path as it was given
            if not path or (place.startswith(f"{self._workspace}/") and not is_document(path)):
                yield call.at, over_at, path


def _of_run(run: Run, records: _Records) -> Iterator[Done]:
    """The acts of a run; what its session did in rounds before or after is another attempt's."""
    since = run.started_at - _SLACK if run.rounds else float("-inf")
    until = run.ended_at + _SLACK if run.rounds and run.ended_at is not None else float("inf")
    # Agents call the same commands over and over, in one directory.
    started_by, resolved = cache(_started_by), cache(os.path.realpath)
    for act in acts_in(_gently(records)):
        if since <= act.at <= until:
            call = Call(run.source, run.session_id, act.place, act.answered, act.at)
            ran = None
            if act.kind is ActKind.COMMAND and not act.refused:
                ran = _ran(act, call, started_by(act.what), resolved(act.cwd) if act.cwd else "")
            yield Done(act._replace(what=act.what[:_LONGEST], ended=None), call, ran)


def _gently(records: _Records) -> _Records:
    for number, one in enumerate(records):
        if number % 200 == 0:
            let_others_work()
        yield one


_Started = tuple[CommandLine, tuple[Program, ...], bool]


def _started_by(text: str) -> _Started:
    """A line, its programs, and whether one of them may test or check."""
    line = parse(text)
    may_check = not line.plain or not all(surely_checks_nothing(part.argv) for part in line.parts)
    checks = may_check and (line.plain or may_start(line.text, ()))
    return line, tuple(program(part.words) for part in line.parts), checks


def _ran(act: Act, call: Call, started: _Started, cwd: str) -> Ran:
    ended, (line, programs, checks) = act.ended, started
    output = ended.output if ended is not None and checks else ""
    return Ran(
        line=line,
        programs=programs,
        cwd=cwd,
        at=act.at,
        over_at=act.ended_at,
        code=ended.exit_code if ended is not None else None,
        counts=counts_in(output) if output else None,
        faults=faults_in(output) if output else None,
        is_cut=ended is not None and (ended.is_cut or was_cut(output)),
        call=call,
        hooked=ended is not None and _HOOKED.search(line.text[:LONGEST]) is not None and shows_hook(ended.output),
        forgiven=was_forgiven(output),
    )
