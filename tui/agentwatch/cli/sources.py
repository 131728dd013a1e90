"""The command that lists where sessions of agent programs were found."""

from argparse import Namespace

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, command, flag
from agentwatch.cli.shared import report_problems
from agentwatch.composition import open_sessions
from agentwatch.console import print_line
from agentwatch.sources.sessions.reader import Found
from agentwatch.sources.sessions.registry import session_paths
from agentwatch.text import clean, indented_json, print_text
from agentwatch.view.document import problem_documents
from agentwatch.view.words import plural


@command(
    PATH, flag("--json", "print JSON"), exit_codes="exit codes: 0 printed, 1 something could not be read, 2 wrong usage"
)
def sources(options: Namespace) -> int:
    """Say which agents' sessions were found, which are read, and which are skipped and why."""
    source = open_sessions(workspace_at(options.path))
    source.scan()
    stores, problems = source.found(), source.problems
    source.close()
    known = {one.source for one in stores}
    for name, places in session_paths().items():
        if not any(other == name or other.startswith(f"{name}-") for other in known):
            stores.append(Found(name, ", ".join(map(str, places)), 0, "not found"))
    if options.json:
        document = {
            "sources": [one._asdict() for one in stores],
            "trouble": [*map(str, problems)],
            "complete": not problems,
            "problems": [one.to_json() for one in problem_documents(problems)],
        }
        print_text(indented_json(document))
        return 1 if problems else 0
    for one in stores:
        counted = f"{plural(one.sessions, 'session')}, {one.children} below"
        skipped = f"  skipped: {clean(one.skipped)}" if one.skipped else ""
        print_line(f"{clean(one.source, 24):<14} {counted:<24}  {clean(one.place)}{skipped}", hang=15)
    return report_problems(problems)
