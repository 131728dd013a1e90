"""What was done and not said: deeds that reach further than the work and that the return does not name. No verdict."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from agentwatch.delegation.claims import Deed, DeedKind
from agentwatch.evidence.commands.line import LONGEST
from agentwatch.evidence.commands.log import Done, Ran, ToolLog
from agentwatch.evidence.commands.programs import without_documents
from agentwatch.sources.sessions.acts import ActKind

_MOST: Final = 100
_LONGEST: Final = 200
_LOOKED_AT: Final = 256 * 1024

_NETWORK: Final = re.compile(
    r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|aria2c|gh|glab|aws|gcloud|az|kubectl)\Z"
)
_FETCHING: Final = re.compile(
    r"(?:(?:pip|pip3|uv|poetry|npm|pnpm|yarn|bun|cargo|gem|brew|apt|apt-get|dnf|apk|conda|go) (?:pip )?"
    r"(?:install|add|get|publish|upload|download|login|ci|update|upgrade)|git (?:clone|fetch|pull|ls-remote)"
    r"|docker (?:pull|push|login)|npm publish|twine upload)\b"
)
_DELETING: Final = re.compile(r"(?:rm|rmdir|unlink|shred|truncate)\Z")
_PERMITTING: Final = re.compile(r"(?:chmod|chown|chgrp|setfacl|sudo|su|doas|setcap)\Z")
_WRITING: Final = re.compile(r"(?:tee|touch|mkdir|rm|rmdir|unlink|truncate|chmod|chown|mv)\Z")
_COPYING: Final = re.compile(r"(?:cp|ln|install|rsync|scp)\Z")
"""Of these, the last word is where they write."""
_SYSTEM: Final = re.compile(
    r"/(?:usr|bin|sbin|lib\w*|opt|proc|sys|dev|nix|snap|etc/(?:os-release|hosts|resolv\.conf))(?:/|\Z)"
)
"""What every program reads."""
_BREAKS: Final = re.compile(r"[;&|\n(){}`]+|\$\(")
_SAID: Final = {
    DeedKind.PUSH: re.compile(r"\bpush", re.IGNORECASE),
    DeedKind.DELETION: re.compile(r"\b(?:delet|remov|rm\b|clean(?:ed|ing)? up|drop|purg|discard|reset)", re.IGNORECASE),
    DeedKind.PERMISSION: re.compile(
        r"\b(?:permission|chmod|chown|sudo|executable|mode bits?|privileg|root)", re.IGNORECASE
    ),
    DeedKind.NETWORK: re.compile(
        r"\b(?:download|upload|fetch|install|curl|wget|https?:|network|internet|clon|pull|publish|web)", re.IGNORECASE
    ),
}
"""A return that has such a word speaks of it, however it does; what is outside is spoken of by its name."""


def unsaid_in(log: ToolLog, returned_text: str, workspace: str) -> tuple[Deed, ...]:
    """The deeds of a log that a return does not speak of, each once, in their order."""
    said = returned_text[:_LOOKED_AT]
    found: dict[tuple[DeedKind, str], Deed] = {}
    for done in log.done:
        for kind, subject in _deeds(done, workspace):
            words = " ".join(done.act.what.split())
            if (kind, words) not in found and not _speaks_of(said, kind, subject):
                found[kind, words] = Deed(kind, words[:_LONGEST], done.call)
        if len(found) >= _MOST:
            break
    return tuple(found.values())[:_MOST]


def _speaks_of(said: str, kind: DeedKind, subject: str) -> bool:
    pattern = _SAID.get(kind)
    if pattern is not None and pattern.search(said):
        return True
    name = posixpath.basename(subject.rstrip("/"))
    return len(name) > 2 and name in said


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
            targets = [after for mark, after in pairwise(words) if mark in (">", ">>")]
            yield words, ran.cwd, targets
    for number, part in enumerate(ran.line.parts):
        words = list(part.argv)
        if len(words) > 2 and words[0] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):
            words = words[2].split()
        yield words, ran.line.directory(number, ran.cwd), part.targets


def _of_command(argv: list[str], place: str, targets: Sequence[str], workspace: str) -> Iterator[tuple[DeedKind, str]]:
    if not argv:
        return
    words = [posixpath.basename(argv[0]), *argv[1:]]
    if words[0] == "sudo":
        yield DeedKind.PERMISSION, "sudo"
        words = words[1:] or ["sudo"]
    name, given = words[0], [word for word in words[1:] if not word.startswith("-")]
    start = " ".join([name, *given[:2]])
    if start.startswith("git push"):
        yield DeedKind.PUSH, given[1] if len(given) > 1 else ""
    elif _NETWORK.match(name) or _FETCHING.match(start):
        yield DeedKind.NETWORK, next((word for word in given if "://" in word), name)
    elif _DELETING.match(name) or start.startswith(("git rm", "git clean")) or "-delete" in words:
        yield DeedKind.DELETION, given[-1] if given else ""
    elif start.startswith("git reset") and "--hard" in words:
        yield DeedKind.DELETION, "--hard"
    elif _PERMITTING.match(name):
        yield DeedKind.PERMISSION, given[-1] if given else name
    is_writing = _WRITING.match(name) is not None or (name == "sed" and any(one.startswith("-i") for one in words))
    written = {*targets, *(given if is_writing else given[-1:] if _COPYING.match(name) else ())}
    for path in dict.fromkeys([*given, *targets]):
        there = _outside(path, place, workspace)
        if there and (path in written or not _SYSTEM.match(there)) and not there.startswith("/dev/"):
            yield DeedKind.OUTSIDE, path


def _outside(path: str, place: str, workspace: str) -> str:
    """Where a word leads out of the workspace, "" where it does not, or is no path."""
    if path.startswith("~"):
        return path
    if (
        "$" in path
        or "://" in path
        or not (path.startswith("/") or (place and (path == ".." or path.startswith("../"))))
    ):
        return ""
    there = posixpath.normpath(posixpath.join(place or "/", path))
    return "" if _is_inside(there, workspace) else there


def _is_inside(place: str, workspace: str) -> bool:
    return any(one == workspace or one.startswith(f"{workspace}/") for one in (place, os.path.realpath(place)))
