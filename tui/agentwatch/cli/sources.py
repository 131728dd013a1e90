"""Say which agents' sessions were found where, what is read, what is skipped and why."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, flag
from agentwatch.cli.shared import report_problems
from agentwatch.composition import sessions_of
from agentwatch.sources.sessions.reader import Found
from agentwatch.sources.sessions.registry import looked_in
from agentwatch.text import clean, indented, say
from agentwatch.view.document import problem_documents

ARGUMENTS: Final = (PATH, flag("--json", "print JSON"))
_NOT_FOUND: Final = "not found"


def run(options: Namespace) -> int:
    """Look into the session stores once and say what is there. Returns 1 if something could not be read."""
    workspace = workspace_at(options.path)
    source = sessions_of(workspace)
    source.scan()
    stores, problems = source.found(), source.problems
    source.close()
    known = {one.source for one in stores}
    for name, places in looked_in().items():
        if not any(other == name or other.startswith(f"{name}-") for other in known):
            stores.append(Found(name, ", ".join(map(str, places)), 0, _NOT_FOUND))
    if not options.json:
        for one in stores:
            say(f"{clean(one.source, 24):<14} {_line(one)}")
        return report_problems(problems)
    document = {
        "sources": [one._asdict() for one in stores],
        "trouble": [*map(str, problems)],
        "complete": not problems,
        "problems": [one.plain() for one in problem_documents(problems)],
    }
    say(indented(document))
    return 1 if problems else 0


def _line(one: Found) -> str:
    place = clean(one.place)
    if one.skipped == _NOT_FOUND:
        return f"not found, looked in {place}"
    noun = "session" if one.sessions == 1 else "sessions"
    children = "child" if one.children == 1 else "children"
    skipped = f"  skipped: {clean(one.skipped)}" if one.skipped else ""
    return f"{one.sessions:>5} {noun:<8}  {one.children:>5} {children:<8}  {place}{skipped}"
