"""Reads the tool calls of agents from their transcripts."""

import math
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Call, Run
from agentwatch.evidence.disk import DOCUMENT
from agentwatch.evidence.output import Counts, counts_in
from agentwatch.evidence.shell import GIT_HOOKED, LONGEST, Command, Line, Words, changes_nothing, parse_line
from agentwatch.sources.sessions.entries import Act, ActKind, CommandEnd, Entry, RunTranscript, find_acts

_MOST = 20_000  # maximal number of acts (tool calls) of one attempt that are kept
_PRINTED = 16 * 1024  # characters that are kept of an output: its end, because a summary comes last
_SLACK = 1.0  # seconds by which a call may lie outside the times of its run
_LONGEST_ACT = 2_000

TranscriptOf = Callable[[Run], RunTranscript | None]

_HOOKED = re.compile(rf"\bgit\s(?:[^\n;&|]{{0,200}}\s)?(?:{GIT_HOOKED})\b")
_COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GITS_OWN = re.compile(r"^(?:\[.*|\s.*|\d+ files? changed.*|To .*|branch .*)$", re.MULTILINE)
_HOOK = re.compile(
    r"\b(?:tests?|pass(?:ed|ing|es)?|fail(?:ed|ing|ures?)?|hooks?|husky|lefthook|lint\w*|checks?)\b"
    r"|[\u2713\u2714\u2705]",
    re.IGNORECASE,
)


class LoggedAct(NamedTuple):
    """An act (a tool call) of an agent. For a command, `place` is its directory ("" if unknown), `code` is its exit
    code (None if unknown), and `output` is the end of its output. `hooked` tells whether git ran a hook."""

    act: Act
    call: Call
    line: Line | None = None
    command: Command = Command()
    place: str = ""
    code: int | None = None
    output: str = ""
    hooked: bool = False

    @property
    def at(self) -> float:
        return self.act.at

    @property
    def counts(self) -> Counts | None:
        """The numbers of tests in the output, or None."""
        return counts_in(self.output)

    @property
    def is_bad(self) -> bool:
        """Whether the command failed, or its output reports failures."""
        return bool(self.code or (self.counts and self.counts.failed))

    @property
    def words(self) -> str:
        """A phrase that says how the command ended."""
        counted = f" and {self.counts.words}" if self.counts else ""
        ended = "an exit code that does not show" if self.code is None else f"exit code {self.code}"
        return f"`{shorten(self.act.what)}` ended with {ended}{counted}"

    @property
    def parts(self) -> tuple[Words, ...] | None:
        """The commands of the shell line, or None if other commands may have run, too."""
        return self.line.parts if self.line and not self.hooked else None

    @property
    def latest_end(self) -> float:
        """The latest time at which the act may have ended. It is infinite if a command may run in the background."""
        if self.line and self.code is None:
            return math.inf
        return self.act.at if self.act.ended_at is None else self.act.ended_at

    @property
    def change(self) -> str:
        """Words that say how the act may have changed a file (documents are ignored), or ""."""
        what = shorten(self.act.what)
        if self.line:
            # `parts` is None after a hook, because hooks may format files.
            is_quiet = self.parts is not None and all(map(changes_nothing, self.parts))
            return "" if is_quiet else f"`{what}` may have changed files"
        if self.act.kind is ActKind.WRITE:
            return "" if self.act.failed or DOCUMENT.search(self.act.what) else f"{what} was changed"
        return f"{self.act.tool[:60]} may have changed files" if self.act.kind is ActKind.STRANGE else ""


class ToolLog(NamedTuple):
    """The acts of one attempt, in the order in which they began. If acts may be missing, `gap` is the reason, else "".
    If `is_partial`, the missing acts may have changed files."""

    acts: tuple[LoggedAct, ...] = ()
    gap: str = ""
    is_partial: bool = False

    @property
    def commands(self) -> list[LoggedAct]:
        """The acts that are commands."""
        return [one for one in self.acts if one.line]

    @property
    def changes(self) -> list[LoggedAct]:
        """The acts that may have changed a file."""
        return [one for one in self.acts if one.change]


def shorten(text: str) -> str:
    """Return a command line in at most 80 characters, to quote it."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def read_log(runs: Sequence[Run], transcript_of: TranscriptOf) -> ToolLog | None:
    """Return one log for all `runs`: the run of an attempt, and the runs that it started. Return None if the first run
    has no transcript. Blocks while it reads transcripts."""
    gap, made = "", list[LoggedAct]()
    for run in runs:
        transcript = transcript_of(run)
        if transcript is None and run is runs[0]:
            return None
        try:
            made += _read_acts(run, transcript.records()) if transcript else ()
        except Exception as error:  # noqa: BLE001  a faulty third-party reader must not stop all checks
            gap = f"not all of its transcript can be read ({error})"
        gap = gap if transcript else "an agent that it asked has no transcript"
    if len(made) > _MOST:
        gap = "it did too much to keep in mind"
    acts = sorted((one for one in made[-_MOST:] if not one.act.refused), key=lambda one: (one.act.at, one.act.place))
    strange = (one.act.tool[:60] for one in acts if one.act.kind is ActKind.STRANGE)
    is_partial = bool(gap)
    gap = gap or next((f"it used {tool}, and what that does is not known" for tool in strange), "")
    return ToolLog(tuple(acts), gap, is_partial)


def _read_acts(run: Run, records: Iterable[tuple[int, Sequence[Entry]]]) -> Iterator[LoggedAct]:
    """Yield the acts of a run. Skip acts of its session before or after the run: they belong to other attempts."""
    since = run.started_at - _SLACK if run.rounds else -math.inf
    until = run.ended_at + _SLACK if run.rounds and run.ended_at is not None else math.inf
    resolved = cache(os.path.realpath)
    for count, act in enumerate(find_acts(records)):
        if count % 100 == 0:
            let_others_work()
        if not since <= act.at <= until:
            continue
        call = Call(run.source, run.session_id, act.place, act.answered, act.at)
        logged = LoggedAct(act._replace(what=act.what[:_LONGEST_ACT], ended=None), call)
        if act.kind is ActKind.COMMAND:
            line, (code, output, _) = parse_line(act.what), act.ended or CommandEnd(None, "")
            cwd, output = resolved(act.cwd) if act.cwd else "", _COLORS.sub("", output[-_PRINTED:])
            logged = logged._replace(
                line=line,
                command=line.command,
                place=posixpath.normpath(posixpath.join(cwd, line.place)) if cwd or line.place[:1] == "/" else "",
                code=None if line.hides_exit_code else code,
                output=output,
                hooked=bool(_HOOKED.search(line.text[:LONGEST]) and _HOOK.search(_GITS_OWN.sub("", output))),
            )
        yield logged


class WorkspaceLogs:
    """Finds changes of files in the logs of all runs of a workspace. Each log is read again if its run has changed."""

    def __init__(self, runs: Callable[[], Iterable[Run]], transcript_of: TranscriptOf):
        self._runs, self._transcript_of = runs, transcript_of
        self._changes: dict[tuple[str, str], tuple[Run, list[tuple[float, float, str]] | None]] = {}

    def change_by_others(self, own: Iterable[Run], since: float, until: float) -> str:
        """Describe a change of files between two times by a run that is not in `own`. Return "" if there is none."""
        mine = {run.session for run in own}
        for run in self._runs():
            is_over = run.ended_at is not None and max(run.ended_at, run.updated_at) < since
            if run.session in mine or is_over or run.started_at > until:
                continue
            known = self._changes.get(run.session)
            if known is None or known[0] != run:
                log = read_log([replace(run, rounds=())], self._transcript_of)
                spans = None
                if log is not None and not log.is_partial:
                    spans = [(one.at, one.latest_end, one.change) for one in log.changes]
                known = self._changes[run.session] = run, spans
            if known[1] is None:
                return "another agent was at work, and no log tells what it did"
            # A command may have changed a file at any time while it ran.
            for began, over, change in known[1]:
                if began <= until and over > since:
                    return f"another agent: {change}"
        return ""
