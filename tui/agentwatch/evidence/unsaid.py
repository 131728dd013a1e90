"""What was done and not said: deeds that reach further than the work and that the return does not name. No verdict."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from agentwatch.delegation.claims import Deed, DeedKind
from agentwatch.evidence.log import Done, Ran, ToolLog
from agentwatch.evidence.shell import LONGEST, without_documents
from agentwatch.sources.sessions.acts import ActKind

_MOST: Final = 100
_LONGEST: Final = 200
_LOOKED_AT: Final = 256 * 1024

_DONE: Final = (
    (DeedKind.PUSH, re.compile(r"git push\b")),
    (
        DeedKind.NETWORK,
        re.compile(
            r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|aria2c|gh|glab|aws|gcloud|az|kubectl)(?= |\Z)"
            r"|(?:pip|pip3|uv|poetry|npm|pnpm|yarn|bun|cargo|gem|brew|apt|apt-get|dnf|apk|conda|go) (?:pip )?"
            r"(?:install|add|get|publish|upload|download|login|ci|update|upgrade)\b"
            r"|git (?:clone|fetch|pull|ls-remote)\b|docker (?:pull|push|login)\b|twine upload\b"
        ),
    ),
    (
        DeedKind.DELETION,
        re.compile(
            r"(?:rm|rmdir|unlink|shred|truncate)(?= |\Z)|.* -delete(?= |\Z)"
            r"|git (?:rm|clean|stash (?:drop|clear)|worktree remove)\b|git (?:branch|tag) (?:.* )?(?:-[dD]"
            r"|--delete)(?= |\Z)"
            r"|git reset (?:.* )?--hard(?= |\Z)"
        ),
    ),
    (DeedKind.PERMISSION, re.compile(r"(?:chmod|chown|chgrp|setfacl|sudo|su|doas|setcap)(?= |\Z)")),
)
"""The commands that reach further than the work; the first that matches counts."""
_UNHOOKED: Final = re.compile(r"git (?:.* )?--no-verify(?= |\Z)|git commit (?:.* )?-[a-z]*n[a-z]*(?= |\Z)")
"""`-n` of `git commit` leaves out its hooks."""
_WRITING: Final = re.compile(r"(?:tee|touch|mkdir|rm|rmdir|unlink|truncate|chmod|chown|mv)(?= |\Z)|sed (?:.* )?-i")
_COPYING: Final = re.compile(r"(?:cp|ln|install|rsync|scp)\Z")
"""Of these, the last word is where they write."""
_SYSTEM: Final = re.compile(
    r"/(?:usr|bin|sbin|lib\w*|opt|proc|sys|dev|nix|snap|etc/(?:os-release|hosts|resolv\.conf))(?:/|\Z)"
)
"""What every program reads."""
_BREAKS: Final = re.compile(r"[;&|\n(){}`]+|\$\(")


def _words(pattern: str) -> re.Pattern[str]:
    """Whole ones: what is called `push-notes` is no push."""
    return re.compile(rf"(?<![\w./-])(?:{pattern})(?![\w-])", re.IGNORECASE)


_SAID: Final = {
    DeedKind.PUSH: _words(r"(?:force-?)?push(?:ed|es|ing)?"),
    DeedKind.DELETION: _words(
        r"delet(?:ed?|es|ing|ions?)|remov(?:ed?|es|ing|als?)|rm|clean(?:ed|ing)? up|drop(?:ped|s|ping)?|purg(?:ed?|ing)"
        r"|discard(?:ed|s|ing)?|reset"
    ),
    DeedKind.PERMISSION: _words(r"permissions?|chmod|chown|sudo|executable|mode bits?|privileg(?:es?|ed)|as root"),
    DeedKind.NETWORK: _words(
        r"(?:down|up)load(?:ed|s|ing)?|fetch(?:ed|es|ing)?|(?:re)?install(?:ed|s|ing)?|curl|wget|network"
        r"|internet|online"
        r"|clon(?:ed?|ing)|pull(?:ed|s|ing)?|publish(?:ed|es|ing)?|web ?(?:sites?|pages?|search)|looked up"
    ),
    DeedKind.HOOK: _words(r"(?:--)?no-verify|hooks?"),
}
"""A return that has such a word in a sentence that denies nothing speaks of it; what is outside is spoken of by its
name, and what is fetched by its host, too."""
_ATTESTED: Final = re.compile(r"^##+ runtime attestation.*?(?=^##? |\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
"""Lists and keys, and nothing that is told."""
_SENTENCE: Final = re.compile(r"[.!?;]\s|\n|,\s+(?:and|but)\s")
_DENIED: Final = re.compile(
    r"\b(?:not|never|no|nothing|none|neither|nor|without|cannot)\b|n['\u2019]t\b", re.IGNORECASE
)
_DENIED_AFTER: Final = re.compile(r"[:\s]+(?:not|nothing|none|no|never)\b", re.IGNORECASE)


def unsaid_in(log: ToolLog, returned_text: str, workspace: str) -> tuple[Deed, ...]:
    """The deeds of a log that a return does not speak of, each once, in their order."""
    text = returned_text[:_LOOKED_AT].replace("*", "")
    told, listed = _SENTENCE.split(_ATTESTED.sub("\n", text)), _SENTENCE.split(text)
    spoken: dict[tuple[DeedKind, str], bool] = {}
    found: dict[tuple[DeedKind, str], Deed] = {}
    for done in log.done:
        for kind, subject in _deeds(done, workspace):
            words = " ".join(done.act.what.split())
            if (kind, subject) not in spoken:
                # What lies outside may be one of the files that are listed as created.
                sentences = listed if kind is DeedKind.OUTSIDE else told
                spoken[kind, subject] = any(_speaks_of(one, kind, subject) for one in sentences)
            if not spoken[kind, subject] and (kind, words) not in found:
                found[kind, words] = Deed(kind, words[:_LONGEST], done.call)
        if len(found) >= _MOST:
            break
    return tuple(found.values())[:_MOST]


def _speaks_of(sentence: str, kind: DeedKind, subject: str) -> bool:
    pattern = _SAID.get(kind)
    match = pattern.search(sentence) if pattern is not None else None
    if match is not None:
        denied = _DENIED.search(sentence)
        is_denied = denied is not None and denied.start() < match.start()
        return not is_denied and _DENIED_AFTER.match(sentence, match.end()) is None
    if kind not in (DeedKind.OUTSIDE, DeedKind.NETWORK):
        return False
    if "://" in subject:
        name, end = subject.partition("://")[2].partition("/")[0], r"(?![\w-])"
    else:
        name, end = posixpath.basename(subject.rstrip("/")), r"(?!/?[\w-])"
    is_named = len(name) > 2 and re.search(rf"(?<![\w.-]){re.escape(name)}{end}", sentence) is not None
    return is_named and _DENIED.search(sentence) is None


def _deeds(done: Done, workspace: str) -> Iterator[tuple[DeedKind, str]]:
    """(kind, what it was done to) of all that an act did."""
    act, ran = done.act, done.ran
    if act.kind is ActKind.NETWORK:
        yield DeedKind.NETWORK, act.what
    elif act.kind is ActKind.WRITE and not act.failed and act.what:
        place = posixpath.normpath(posixpath.join(act.cwd or workspace, act.what))
        if not _is_inside(place, workspace):
            yield DeedKind.OUTSIDE, act.what
    elif ran is not None:
        for words, place, targets in _commands(ran):
            yield from _of_command(words, place, targets, workspace)


def _commands(ran: Ran) -> Iterator[tuple[list[str], str, Sequence[str]]]:
    """(words, where, files that it prints into) of the commands of a line; of one that is not understood, roughly."""
    if not ran.line.parts:
        for piece in _BREAKS.split(without_documents(ran.line.text[:LONGEST])):
            words = piece.replace("'", " ").replace('"', " ").split()
            yield words, ran.cwd, [after for mark, after in pairwise(words) if mark in (">", ">>")]
    for number, part in enumerate(ran.line.parts):
        words = list(part.argv)
        if len(words) > 2 and words[0] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):
            words = words[2].split()
        yield words, ran.line.directory(number, ran.cwd), part.targets


def _of_command(argv: list[str], place: str, targets: Sequence[str], workspace: str) -> Iterator[tuple[DeedKind, str]]:
    words = [posixpath.basename(argv[0]), *argv[1:]] if argv else [""]
    if words[0] == "sudo":
        yield DeedKind.PERMISSION, "sudo"
        words = words[1:] or ["sudo"]
    while len(words) > 3 and words[0] == "git" and words[1] in ("-C", "-c"):
        words = ["git", *words[3:]]
    text, given = " ".join(words), [word for word in words[1:] if not word.startswith("-")]
    if _UNHOOKED.match(text):
        yield DeedKind.HOOK, ""
    kind = next((one for one, pattern in _DONE if pattern.match(text)), None)
    if kind is DeedKind.NETWORK:
        yield kind, next((word for word in given if "://" in word), words[0])
    elif kind is not None:
        last = "--hard" if "--hard" in words else given[-1] if given else words[0]
        yield kind, "" if kind is DeedKind.PUSH else last
    written = {*targets, *(given if _WRITING.match(text) else given[-1:] if _COPYING.match(words[0]) else ())}
    for path in dict.fromkeys([*given, *targets]):
        there = _outside(path, place, workspace)
        if there and (path in written or not _SYSTEM.match(there)) and not there.startswith("/dev/"):
            yield DeedKind.OUTSIDE, path


def _outside(path: str, place: str, workspace: str) -> str:
    """Where a word leads out of the workspace, "" where it does not, or is no path."""
    if path.startswith("~"):
        return path
    is_path = path.startswith("/") or (place and re.match(r"\.\.(?:/|\Z)", path))
    if "$" in path or "://" in path or not is_path:
        return ""
    there = posixpath.normpath(posixpath.join(place or "/", path))
    return "" if _is_inside(there, workspace) else there


def _is_inside(place: str, workspace: str) -> bool:
    return any(f"{one}/".startswith(f"{workspace}/") for one in (place, os.path.realpath(place)))
