"""Deeds of a log that reach further than the work and that the return does not speak of. No verdict."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from agentwatch.delegation.claims import Deed, DeedKind
from agentwatch.evidence.log import Done, ToolLog
from agentwatch.evidence.shell import LONGEST, Line, without_documents
from agentwatch.sources.sessions.entries import ActKind

_MOST: Final = 100
_LONGEST: Final = 200
_LOOKED_AT: Final = 256 * 1024

_DONE: Final = {
    DeedKind.HOOK: re.compile(r"git (?:.* )?--no-verify(?= |\Z)|git commit (?:.* )?-[a-z]*n[a-z]*(?= |\Z)"),
    DeedKind.PUSH: re.compile(r"git push\b"),
    DeedKind.NETWORK: re.compile(
        r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|netcat|telnet|ftp|aria2c|gh|glab|aws|gcloud|az|kubectl)(?= |\Z)"
        r"|(?:pip|pip3|uv|poetry|npm|pnpm|yarn|bun|cargo|gem|brew|apt|apt-get|dnf|apk|conda|go) (?:pip )?"
        r"(?:install|add|get|publish|upload|download|login|ci|update|upgrade)\b"
        r"|git (?:clone|fetch|pull|ls-remote)\b|docker (?:pull|push|login)\b|twine upload\b"
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
    sentences = _SENTENCE.split(_ATTESTED.sub("\n", text)), _SENTENCE.split(text)

    @cache
    def is_spoken_of(kind: DeedKind, subject: str) -> bool:
        word = rf"(?<![\w./-])(?:{_SAID.get(kind, _NOTHING)})(?![\w-])(?![:\s]+(?:not|nothing|none|no|never)\b)"
        name = rf"(?<![\w.-]){re.escape(subject)}(?!/?[\w-])" if len(subject) > 2 else _NOTHING
        pattern, some = re.compile(f"(.*?)(?:{word}|{name})", re.IGNORECASE), sentences[kind is DeedKind.OUTSIDE]
        return any(one is not None and _DENIED.search(one[1]) is None for one in map(pattern.match, some))

    found: dict[tuple[DeedKind, str], Deed] = {}
    for done in log.done:
        what = " ".join(done.act.what.split())[:_LONGEST]
        for kind, subject in _deeds(done, workspace):
            if len(found) < _MOST and (kind, what) not in found and not is_spoken_of(kind, subject):
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
