"""The session stores without a screen: what is read of them, what is not, and where nothing was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.sources import complain_of
from agentwatch.sources.sessions.reader import Found
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.text import clean, indented, say
from agentwatch.view.document import problem_documents

if TYPE_CHECKING:
    from agentwatch.view.documents import lists

_NOT_FOUND: Final = "not found"
_NOT_UNDERSTOOD: Final = "not understood"

Places = Mapping[str, Sequence[Path]]
"""By the name of a program."""


def print_sources(source: SessionsSource, looked_in: Places, not_understood: Places, *, as_json: bool) -> int:
    """Look into the session stores once and say what is there. Returns 1 if something could not be read.

    `looked_in` are the places of every program that is supported, by the name of its reader, `not_understood` those
    where others keep what nothing here reads.
    """
    source.scan()
    stores, problems = source.found(), source.problems
    source.close()
    known = {one.source for one in stores}
    stores += [
        Found(name, ", ".join(map(str, places)), 0, _NOT_FOUND)
        for name, places in looked_in.items()
        if not any(other == name or other.startswith(f"{name}-") for other in known)
    ]
    stores += [
        Found(name, ", ".join(map(str, places)), 0, _NOT_UNDERSTOOD)
        for name, places in not_understood.items()
        if name not in known
    ]
    if as_json:
        document: lists.Sources = {
            "sources": [
                {
                    "source": one.source,
                    "place": one.place,
                    "sessions": one.sessions,
                    "skipped": one.skipped,
                    "children": one.children,
                }
                for one in stores
            ],
            "trouble": [*map(str, problems)],
            "complete": not problems,
            "problems": problem_documents(problems),
        }
        say(indented(document))
        return 1 if problems else 0
    for one in stores:
        say(f"{clean(one.source, 24):<14} {_told(one)}")
    complain_of(problems)
    return 1 if problems else 0


def _told(one: Found) -> str:
    if one.skipped == _NOT_FOUND:
        return f"not found, looked in {clean(one.place)}"
    if one.skipped == _NOT_UNDERSTOOD:
        return f"found, but agentwatch does not understand its sessions yet: {clean(one.place)}"
    noun = "session" if one.sessions == 1 else "sessions"
    children = "child" if one.children == 1 else "children"
    skipped = f"  skipped: {clean(one.skipped)}" if one.skipped else ""
    return f"{one.sessions:>5} {noun:<8}  {one.children:>5} {children:<8}  {clean(one.place)}{skipped}"
