"""Logs of what agents did by their tools, read from transcripts, and the deeds that a return should speak of."""

from __future__ import annotations

import math
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from agentwatch.background import let_others_work
from agentwatch.delegation.events import Call, Deed, DeedKind
from agentwatch.delegation.run import Run
from agentwatch.evidence.disk import is_document
from agentwatch.evidence.output import REWROTE, Counts, counts_in
from agentwatch.evidence.shell import (
    GIT_HOOKED,
    LONGEST,
    Command,
    Line,
    Words,
    changes_nothing,
    kind_of,
    parse_line,
    without_documents,
)
from agentwatch.sources.sessions.entries import Act, ActKind, Ended, Entry, acts_in
from agentwatch.sources.sessions.following import RunTranscript

_MOST: Final = 20_000  # acts of one attempt that are kept
_PRINTED: Final = 16 * 1024  # characters at the end of an output that are kept: a summary stands last
_SLACK: Final = 1.0  # seconds by which a call may stand before the beginning of its round
_LONGEST_ACT: Final = 2_000

TranscriptOf = Callable[[Run], RunTranscript | None]

_HOOKED: Final = re.compile(rf"\bgit\s(?:[^\n;&|]{{0,200}}\s)?(?:{GIT_HOOKED})\b")


_COLORS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_GITS_OWN: Final = re.compile(r"^(?:\[.*|\s.*|\d+ files? changed.*|To .*|branch .*)$", re.MULTILINE)
_HOOK: Final = re.compile(
    r"\b(?:tests?|pass(?:ed|ing|es)?|fail(?:ed|ing|ures?)?|hooks?|husky|lefthook|lint\w*|checks?)\b"
    r"|[\u2713\u2714\u2705]",
    re.IGNORECASE,
)


# Logs


class Done(NamedTuple):
    """An act that happened; of a command, where it ran ("" where that is not told), its exit code, None where that is
    not told, the end of its output and the tests that it counts. `hooked`: git ran a hook."""

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
        """The tests that its output counts."""
        return counts_in(self.output)

    @property
    def is_bad(self) -> bool:
        """It failed, or counts failures."""
        return bool(self.code or (self.counts and self.counts.failed))

    @property
    def words(self) -> str:
        """How it ended."""
        counted = f" and {self.counts.words}" if self.counts is not None else ""
        ended = "an exit code that does not show" if self.code is None else f"exit code {self.code}"
        return f"`{short(self.act.what)}` ended with {ended}{counted}"

    @property
    def parts(self) -> tuple[Words, ...] | None:
        """The commands of its line, None where that may have started others."""
        return self.line.parts if self.line is not None and not self.hooked else None

    @property
    def over_at(self) -> float:
        """When it was over; of a command whose end is not known, never: it may go on in the background."""
        if self.line is not None and self.code is None:
            return math.inf
        return self.act.at if self.act.ended_at is None else self.act.ended_at

    @property
    def change(self) -> str:
        """In words, how it may have changed a file that is no document; "" where it did not."""
        what = short(self.act.what)
        if self.line is not None:
            # A hook may have formatted files.
            is_quiet = self.parts is not None and all(map(changes_nothing, self.parts))
            is_quiet = is_quiet and not (kind_of(self.command) and REWROTE.search(self.output))
            return "" if is_quiet else f"`{what}` may have changed files"
        if self.act.kind is ActKind.WRITE:
            return "" if self.act.failed or is_document(self.act.what) else f"{what} was changed"
        return f"{self.act.tool[:60]} may have changed files" if self.act.kind is ActKind.STRANGE else ""


class ToolLog(NamedTuple):
    """Calls in the order in which they began. `gap` says why something may have been run that is not in it, if so;
    `is_partial`: nor does anybody know what was changed."""

    done: tuple[Done, ...] = ()
    gap: str = ""
    is_partial: bool = False

    @property
    def ran(self) -> list[Done]:
        """The commands."""
        return [one for one in self.done if one.line is not None]

    @property
    def changes(self) -> list[Done]:
        """Everything that may have changed a file."""
        return [one for one in self.done if one.change]


def short(text: str) -> str:
    """A command line to quote."""
    text = " ".join(text.split())
    return text if len(text) <= 80 else f"{text[:79]}…"


def read_log(runs: Sequence[Run], transcript_of: TranscriptOf) -> ToolLog | None:
    """The log of the attempt whose run comes first, and of those that it asked, which follow; None where there is none.

    Blocks for as long as reading their transcripts takes.
    """
    gap, made = "", list[Done]()
    for run in runs:
        transcript = transcript_of(run)
        if transcript is None and run is runs[0]:
            return None
        try:
            made += _of_run(run, transcript.records()) if transcript is not None else ()
        except Exception as error:  # noqa: BLE001  what somebody else's reader gives must not end all checks
            gap = f"not all of its transcript can be read ({error})"
        gap = gap if transcript is not None else "an agent that it asked has no transcript"
    if len(made) > _MOST:
        gap = "it did too much to keep in mind"
    done = sorted((one for one in made[-_MOST:] if not one.act.refused), key=lambda one: (one.act.at, one.act.place))
    strange = (one.act.tool[:60] for one in done if one.act.kind is ActKind.STRANGE)
    is_partial = bool(gap)
    gap = gap or next((f"it used {tool}, and what that does is not known" for tool in strange), "")
    return ToolLog(tuple(done), gap, is_partial)


def _of_run(run: Run, records: Iterable[tuple[int, Sequence[Entry]]]) -> Iterator[Done]:
    """The acts of a run; what its session did in rounds before or after is another attempt's."""
    since = run.started_at - _SLACK if run.rounds else -math.inf
    until = run.ended_at + _SLACK if run.rounds and run.ended_at is not None else math.inf
    resolved = cache(os.path.realpath)
    for count, act in enumerate(acts_in(records)):
        if count % 100 == 0:
            let_others_work()
        if not since <= act.at <= until:
            continue
        call = Call(run.source, run.session_id, act.place, act.answered, act.at)
        done = Done(act._replace(what=act.what[:_LONGEST_ACT], ended=None), call)
        if act.kind is ActKind.COMMAND:
            line, (code, output, _) = parse_line(act.what), act.ended or Ended(None, "")
            cwd, output = resolved(act.cwd) if act.cwd else "", _COLORS.sub("", output[-_PRINTED:])
            done = done._replace(
                line=line,
                command=line.command,
                place=posixpath.normpath(posixpath.join(cwd, line.place)) if cwd or line.place[:1] == "/" else "",
                code=None if line.hides else code,
                output=output,
                hooked=bool(_HOOKED.search(line.text[:LONGEST]) and _HOOK.search(_GITS_OWN.sub("", output))),
            )
        yield done


class WorkspaceLogs:
    """The changes that the logs of a workspace's runs show, each log read again only where its run is another."""

    def __init__(self, runs: Callable[[], Iterable[Run]], transcript_of: TranscriptOf) -> None:
        self._runs, self._transcript_of = runs, transcript_of
        self._changes: dict[tuple[str, str], tuple[Run, list[tuple[float, float, str]] | None]] = {}

    def changed(self, own: Iterable[Run], since: float, until: float | None) -> str:
        """Changes by other than the `own` runs in a span of time, in words; "" for none."""
        mine, last = {run.session for run in own}, math.inf if until is None else until
        for run in self._runs():
            is_over = run.ended_at is not None and max(run.ended_at, run.updated_at) < since
            if run.session in mine or is_over or run.started_at > last:
                continue
            known = self._changes.get(run.session)
            if known is None or known[0] != run:
                log = read_log([replace(run, rounds=())], self._transcript_of)
                spans = None
                if log is not None and not log.is_partial:
                    spans = [(one.at, one.over_at, one.change) for one in log.changes]
                known = self._changes[run.session] = run, spans
            if known[1] is None:
                return "another agent was at work, and no log tells what it did"
            # A command may have changed a file at any time until it was over.
            for began, over, change in known[1]:
                if began <= last and over > since:
                    return f"another agent: {change}"
        return ""


# Deeds that reach further than the work

_MOST_DEEDS: Final = 100
_LOOKED_AT: Final = 256 * 1024
_DONE: Final = {
    DeedKind.HOOK: re.compile(r"git (?:.* )?--no-verify(?= |\Z)|git commit (?:.* )?-[a-z]*n[a-z]*(?= |\Z)"),
    DeedKind.PUSH: re.compile(r"git push\b"),
    DeedKind.NETWORK: re.compile(
        r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|aria2c|gh|glab|aws|gcloud|az|kubectl)(?= |\Z)"
        r"|(?:pip|pip3|uv|poetry|npm|pnpm|yarn|bun|cargo|gem|brew|apt|apt-get|dnf|apk|conda|go) (?:pip )?(?:install"
        r"|add|get|publish|upload|download|login|ci|update|upgrade)\b|git (?:clone|fetch|pull|ls-remote)\b"
        r"|docker (?:pull|push|login)\b|twine upload\b"
    ),
    DeedKind.DELETION: re.compile(
        r"(?:rm|rmdir|unlink|shred|truncate)(?= |\Z)|.* -delete(?= |\Z)|git (?:rm|clean|stash (?:drop|clear)"
        r"|worktree remove)\b|git reset (?:.* )?--hard(?= |\Z)|git (?:branch|tag) (?:.* )?(?:-[dD]|--delete)(?= |\Z)"
    ),
    DeedKind.PERMISSION: re.compile(r"(?:chmod|chown|chgrp|setfacl|su|doas|setcap)(?= |\Z)"),
}
_SYSTEM: Final = re.compile(
    r"/(?:usr|bin|sbin|lib\w*|opt|proc|sys|dev|nix|snap|etc/(?:os-release|hosts|resolv\.conf))(?:/|\Z)"
)
_BREAKS: Final = re.compile(r"[;&|\n(){}`]+|\$\(")
_SAID: Final = {
    DeedKind.PUSH: r"(?:force-?)?push(?:ed|es|ing)?",
    DeedKind.DELETION: r"delet(?:ed?|es|ing|ions?)|remov(?:ed?|es|ing|als?)|rm|clean(?:ed|ing)? up|drop(?:ped|s|ping)?"
    r"|purg(?:ed?|ing)|discard(?:ed|s|ing)?|reset",
    DeedKind.PERMISSION: r"permissions?|chmod|chown|sudo|executable|mode bits?|privileg(?:es?|ed)|as root",
    DeedKind.NETWORK: r"(?:down|up)load(?:ed|s|ing)?|fetch(?:ed|es|ing)?|(?:re)?install(?:ed|s|ing)?|curl|wget|network"
    r"|internet|online|clon(?:ed?|ing)|pull(?:ed|s|ing)?|publish(?:ed|es|ing)?|web ?(?:sites?|pages?|search)|looked up",
    DeedKind.HOOK: r"(?:--)?no-verify|hooks?",
}
"""A return that has such a word in a sentence that denies nothing speaks of it; what is outside is spoken of by its
name, and what is fetched by its host, too."""
_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nothing|none|neither|nor|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
_ATTESTED: Final = re.compile(r"^##+ runtime attestation.*?(?=^##? |\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_NOTHING: Final = r"\Z."
_SENTENCE: Final = re.compile(r"[.!?;]\s|\n|,\s+(?:and|but)\s")


def unsaid_in(log: ToolLog, returned_text: str, workspace: str) -> tuple[Deed, ...]:
    """The deeds of a log that a return does not speak of, each once, in their order."""
    text = returned_text[:_LOOKED_AT].replace("*", "")
    listed, sentences = _SENTENCE.split(text), _SENTENCE.split(_ATTESTED.sub("\n", text))

    @cache
    def is_spoken_of(kind: DeedKind, subject: str) -> bool:
        word = rf"(?<![\w./-])(?:{_SAID.get(kind, _NOTHING)})(?![\w-])(?![:\s]+(?:not|nothing|none|no|never)\b)"
        name = rf"(?<![\w.-]){re.escape(subject)}(?!/?[\w-])" if len(subject) > 2 else _NOTHING
        some = listed if kind is DeedKind.OUTSIDE else sentences
        found = map(re.compile(f"(.*?)(?:{word}|{name})", re.IGNORECASE).match, some)
        return any(one is not None and _DENIED.search(one[1]) is None for one in found)

    found: dict[tuple[DeedKind, str], Deed] = {}
    for done in log.done:
        what = " ".join(done.act.what.split())[:200]
        for kind, subject in _deeds(done, workspace):
            if len(found) < _MOST_DEEDS and (kind, what) not in found and not is_spoken_of(kind, subject):
                found[kind, what] = Deed(kind, what, done.call)
    return tuple(found.values())


def _deeds(done: Done, workspace: str) -> Iterator[tuple[DeedKind, str]]:
    """(kind, the name by which it may be spoken of, too) of all that an act did."""
    act = done.act
    if act.kind is ActKind.NETWORK:
        yield DeedKind.NETWORK, act.what.partition("://")[2].partition("/")[0]
    if act.kind is ActKind.WRITE and not act.failed:
        yield from _outside(act.what, act.cwd or workspace, workspace)
    for words in _commands(done.line) if done.line is not None else ():
        text = " ".join([posixpath.basename(words[0]), *words[1:]])
        if text.startswith("sudo "):
            yield DeedKind.PERMISSION, ""
        text = re.sub(r"\Agit (?:-[Cc] \S+ )+", "git ", text.removeprefix("sudo "))
        host = re.search(r"://([^/\s]+)", text)
        kinds = [kind for kind, pattern in _DONE.items() if pattern.match(text)]
        yield from ((kind, host[1] if host and kind is DeedKind.NETWORK else "") for kind in kinds)
        for word in words[1:]:
            if re.match(r"/|~|\.\.(?:/|\Z)" if done.place else r"/|~", word):
                yield from _outside(word, done.place or "/", workspace)


def _outside(path: str, directory: str, workspace: str) -> Iterator[tuple[DeedKind, str]]:
    place = posixpath.join(directory, path)
    is_inside = any(
        f"{one}/".startswith(f"{workspace}/") for one in (posixpath.normpath(place), os.path.realpath(place))
    )
    if path.startswith("~") or not (is_inside or re.search(r"\$|://", path) or _SYSTEM.match(place)):
        yield DeedKind.OUTSIDE, posixpath.basename(path.rstrip("/"))


def _commands(line: Line) -> Iterator[list[str]]:
    """The words of the commands of a line; of one that is not understood, roughly."""
    if line.parts is None:
        pieces = _BREAKS.split(without_documents(line.text[:LONGEST]))
        yield from (words for piece in pieces if (words := re.sub(r"['\">]", " ", piece).split()))
    for part in line.parts or ():
        is_shell = re.fullmatch(r"(?:ba|z)?sh -l?c", " ".join(part[:2])) is not None
        yield part[2].split() if is_shell and part[2:] else list(part)
