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


def read_changes(run: Run, transcript_of: TranscriptOf) -> list[tuple[float, float, str]] | None:
    """When a run began and ended what may have changed a file, and how; None where no log tells."""
    log = read_log([replace(run, rounds=())], transcript_of)
    return (
        None if log is None or log.is_partial else [(one.at, one.over_at, one.change) for one in log.done if one.change]
    )


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
    DeedKind.PERMISSION: re.compile(r"(?:sudo|chmod|chown|chgrp|setfacl|su|doas|setcap)(?= |\Z)"),
}
_SYSTEM: Final = re.compile(
    r"/(?:usr|bin|sbin|lib\w*|opt|proc|sys|dev|nix|snap|etc/(?:os-release|hosts|resolv\.conf))(?:/|\Z)"
)
_LED_BY: Final = re.compile(r"(?<=\Agit )(?:-[Cc] \S+ )+|\A(?:ba|z)?sh -l?c ")
_PATH: Final = re.compile(r"/|~|\.\.(?:/|\Z)")
_BREAKS: Final = re.compile(r"[;&|\n(){}`]+|\$\(")
_SAID: Final = {
    DeedKind.PUSH: r"(?:force-?)?push(?:ed|es|ing)?",
    DeedKind.DELETION: r"delet(?:ed?|es|ing|ions?)|remov(?:ed?|es|ing|als?)|rm|clean(?:ed|ing)? up|drop(?:ped|s|ping)?"
    r"|purg(?:ed?|ing)|discard(?:ed|s|ing)?|reset",
    DeedKind.PERMISSION: r"permissions?|chmod|chown|sudo|executable|mode bits?|privileg(?:es?|ed)|as root",
    DeedKind.NETWORK: r"(?:down|up)load(?:ed|s|ing)?|fetch(?:ed|es|ing)?|(?:re)?install(?:ed|s|ing)?|curl|wget|network"
    r"|internet|online|clon(?:ed?|ing)|pull(?:ed|s|ing)?|publish(?:ed|es|ing)?|web ?(?:sites?|pages?|search)|looked up",
    DeedKind.HOOK: r"(?:--)?no-verify|hooks?",
    DeedKind.OUTSIDE: r"\Z.",
}
"""A return that has such a word in a sentence that denies nothing speaks of it; what is outside is spoken of by its
name, and what is fetched by its host, too."""
_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nothing|none|neither|nor|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
_SENTENCE: Final = re.compile(r"[.!?;]\s|\n|,\s+(?:and|but)\s")


def unsaid_in(log: ToolLog, returned_text: str, workspace: str) -> tuple[Deed, ...]:
    """The deeds of a log that a return does not speak of, each once, in their order."""
    sentences = _SENTENCE.split(returned_text[:_LOOKED_AT].replace("*", ""))

    @cache
    def is_spoken_of(kind: DeedKind, name: str) -> bool:
        names = rf"|(?<![\w.-]){re.escape(name)}(?!/?[\w-])" if len(name) > 2 else ""
        word = rf"(?<![\w./-])(?:{_SAID[kind]})(?![\w-])(?![:\s]+(?:not|nothing|none|no|never)\b)"
        found = map(re.compile(f"(.*?)(?:{word}{names})", re.IGNORECASE).match, sentences)
        return any(one is not None and _DENIED.search(one[1]) is None for one in found)

    found: dict[tuple[DeedKind, str], Deed] = {}
    for done in log.done:
        what = " ".join(done.act.what.split())[:200]
        for kind, name in _deeds(done, workspace):
            if len(found) < _MOST_DEEDS and not is_spoken_of(kind, name):
                found.setdefault((kind, what), Deed(kind, what, done.call))
    return tuple(found.values())


def _deeds(done: Done, workspace: str) -> Iterator[tuple[DeedKind, str]]:
    """(kind, the name by which it may be spoken of, too) of all that an act did."""
    act, paths, place = done.act, list[str](), done.place or "/"
    if act.kind is ActKind.NETWORK:
        yield DeedKind.NETWORK, act.what.partition("://")[2].partition("/")[0]
    if act.kind is ActKind.WRITE and not act.failed:
        paths, place = [act.what], act.cwd or workspace
    for words in _commands(done.line) if done.line is not None else ():
        text = " ".join([posixpath.basename(words[0]), *words[1:]])
        inner = _LED_BY.sub("", text.removeprefix("sudo "))
        host = re.search(r"://([^/\s]+)", text)
        for kind, pattern in _DONE.items():
            if any(map(pattern.match, (text, inner))):
                yield kind, host[1] if host and kind is DeedKind.NETWORK else ""
        paths += [word for word in words[1:] if _PATH.match(word) and (done.place or word[0] != ".")]
    for path in paths:
        there = posixpath.join(place, path)
        is_inside = any(
            f"{one}/".startswith(f"{workspace}/") for one in (posixpath.normpath(there), os.path.realpath(there))
        )
        if path.startswith("~") or not (is_inside or re.search(r"\$|://", path) or _SYSTEM.match(there)):
            yield DeedKind.OUTSIDE, posixpath.basename(path.rstrip("/"))


def _commands(line: Line) -> Iterable[Sequence[str]]:
    """The words of the commands of a line; of one that is not understood, roughly."""
    pieces = _BREAKS.split(without_documents(line.text[:LONGEST]))
    return line.parts or filter(None, (re.sub(r"['\">]", " ", piece).split() for piece in pieces))
