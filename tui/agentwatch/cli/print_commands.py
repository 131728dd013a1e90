"""The commands that print and go: trees, logs, reports, checks. A face is imported only when it runs.

Whatever `--help` does not need is imported where it is used: that answer should cost little more than an interpreter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import (
    COMMANDS,
    PATH,
    PLACE,
    PLACES,
    SESSIONS,
    Argument,
    Command,
    argument,
    flag,
    load,
    one_of,
    scanned,
    selection_of,
    target_of,
    targets_of,
)
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.monitor import Monitor

_PRINT: Final = partial(Command, "print and go")

_IN_JSON: Final = ("handoff-packet", "subagent-return", "return-meta", "report-contract")
"""The contracts that have a schema; `contracts.rules` takes a while to load."""
_IN_MARKDOWN: Final = "return-format"
_JSON: Final = flag("--json", "print the documented JSON (schema_version 1)")


def _format(*names: str, default: str = "") -> Argument:
    return argument(
        "--format",
        "{" + ",".join(names) + "}",
        f"default: {default or names[0]}",
        choices=names,
        default=None if default else names[0],
    )


@_PRINT(
    "tree [PATH ...]", "print the tree once, as text or --json", PLACES, _JSON,
    flag("--fail", "exit with 1 when a task needs the operator, or not all can be read"),
    argument("--where", "QUERY", "only the tasks that match, with those above them: 'state:failed since:1h'",
             default=""), *SESSIONS,
)  # fmt: skip
def _tree(options: argparse.Namespace) -> int:
    """Print the delegation tree of a workspace once; of several, each below its path."""
    workspaces, addresses = targets_of(options.paths, load())
    from agentwatch.commands.several import print_each
    from agentwatch.commands.tree import print_tree
    from agentwatch.composition import connected, shown_worktrees
    from agentwatch.workspaces import Places

    def print_one(workspace: Path, say_document: Callable[[Mapping[str, Any]], None]) -> int:
        is_far = workspace in far.places
        looked = (
            far.scanned(workspace, load(), selection_of(options, addresses))
            if is_far
            else _looked_at(workspace, options)
        )
        monitor, left_out = looked, 0
        if not (monitor.host or monitor.tree.totals.tasks or options.json or selection_of(options) is None):
            # Nobody has counted the sessions that were not asked for: most of them were not even read.
            left_out = scanned(workspace, load(), inspects=False).tree.totals.tasks
        wishes = {"as_json": options.json, "fail": options.fail, "where": options.where}
        return print_tree(monitor, left_out=left_out, say_document=say_document, **wishes)

    def find() -> Places:
        return shown_worktrees(workspaces[0], load(), selection_of(options)) if workspaces else Places(())

    with connected(addresses) as far:
        return print_each([*workspaces, *far.places], print_one, as_json=options.json, names=far.names, find=find)


@_PRINT(
    "log [PATH]", "print every state change of files and sessions; --follow goes on", PLACE,
    flag("--json", "one JSON object a line"),
    flag("--activity", "also what working tasks do: each call, words and todo"),
    *one_of(flag("--follow", "go on with each change as it happens, until ctrl+c", short="-f"),
            argument("--export", "FILE", "write what was observed into a new FILE, for `replay FILE`")),
    *SESSIONS, stays=True,
)  # fmt: skip
def _log(options: argparse.Namespace) -> int:
    """Print every state change of the workspace's files, sessions and decisions, in order."""
    target = target_of(options.path, load())
    from agentwatch.commands.log import export_log, export_log_of_host, print_log, print_log_of_host

    wishes = {"as_json": options.json, "follow": options.follow, "activity": options.activity}
    if isinstance(target, tuple):
        from agentwatch.composition import connected

        selection = selection_of(options, [target])
        since = None if selection is None else selection.since
        with connected([target]) as far:
            place = far.only(target)
            if options.export is not None:
                return export_log_of_host(far.source(place), far.names[place], options.export)
            return print_log_of_host(far.source(place), load(), since, **wishes)
    if options.export is not None:
        return export_log(target, load(), selection_of(options), options.export)
    return print_log(target, load(), selection_of(options), **wishes)


@_PRINT(
    "report [PATH ...]", "write the session's account as Markdown, HTML or JSON", PLACES,
    _format("md", "json", "html", default="by the ending of FILE, else md"),
    argument("--output", "FILE", "default: standard output"), *SESSIONS,
)  # fmt: skip
def _report(options: argparse.Namespace) -> int:
    """Write the account of a session, for a pull request or a post-mortem."""
    workspaces, addresses = targets_of(options.paths, load())
    from agentwatch.composition import connected, shown_worktrees
    from agentwatch.report.face import Reported, past_of, write_report

    reported = [Reported(_looked_at(one, options), past_of(one)) for one in workspaces]
    if len(workspaces) == 1 and not addresses:
        found = shown_worktrees(workspaces[0], load(), selection_of(options))
        worktrees = [_looked_at(place.workspace, options) for place in found.places]
        reported = [reported[0]._replace(worktrees=worktrees)]
    with connected(addresses) as far:
        for place in far.places:
            monitor = far.scanned(place, load(), selection_of(options, addresses))
            reported.append(Reported(monitor, far.source(place).scan().events))
    return write_report(reported, options.format, options.output, now=time.time())


@_PRINT(
    "check PATH ...", "check handoffs and returns like a linter",
    argument("paths", "PATH", "files, or directories that are searched", nargs="+"),
    _format("text", "json", "github"),
)  # fmt: skip
def _check(options: argparse.Namespace) -> int:
    """Check handoffs and returns against their contracts."""
    from agentwatch.commands.check import check

    return check(options.paths, options.format)


@_PRINT(
    "rules", "list the rules that are checked",
    argument("--explain", "ID", "why the rule is there, with a right and a wrong example", offers="rules"),
    argument("--schema", "CONTRACT", f"its JSON Schema: {', '.join(_IN_JSON)}", choices=(*_IN_JSON, _IN_MARKDOWN)),
    _format("text", "json"),
)  # fmt: skip
def _rules(options: argparse.Namespace) -> int:
    """List the rules, explain one, or print the JSON Schema of a contract."""
    from agentwatch.commands.rules import explain, list_rules
    from agentwatch.manual import print_schema

    if options.schema == _IN_MARKDOWN:
        raise UsageError(
            "return-format is Markdown and has no JSON Schema; `agentwatch help contracts` has a whole example,"
            " and `agentwatch check FILE` judges yours"
        )
    if options.schema:
        return print_schema(options.schema)
    return explain(options.explain) if options.explain else list_rules(options.format)


@_PRINT(
    "sources [PATH]", "say which agents' sessions are read, and what is skipped", PATH, flag("--json", "print JSON")
)
def _sources(options: argparse.Namespace) -> int:
    """Say which agents' sessions were found where, what is read, what is skipped and why."""
    workspace = workspace_at(options.path)
    from agentwatch.commands.sources import print_sources
    from agentwatch.composition import sessions_of
    from agentwatch.sources.sessions.registry import looked_in, not_understood

    return print_sources(sessions_of(workspace), looked_in(), not_understood(workspace), as_json=options.json)


@_PRINT(
    "schema [NAME]", "print a JSON schema; without NAME, list them",
    argument("name", "NAME", "of a contract, of what a command prints, or of a file", nargs="?", offers="schemas"),
)  # fmt: skip
def _schema(options: argparse.Namespace) -> int:
    """Print the JSON schema of a contract, of what a command prints, or of a file that agentwatch writes."""
    from agentwatch.manual import print_schema

    return print_schema(options.name)


@_PRINT(
    "help [TOPIC]", "read the manual; without TOPIC, list its topics",
    argument("topic", "TOPIC", "a topic, or a command (default: list the topics)", nargs="?", offers="topics"),
)  # fmt: skip
def _help(options: argparse.Namespace) -> int:
    """Read the manual."""
    from agentwatch.manual import print_page, topics

    if options.topic in COMMANDS and options.topic not in topics():
        return COMMANDS[options.topic].start(["--help"])
    return print_page(options.topic)


@_PRINT(
    "completion SHELL", "print what makes bash, zsh or fish complete all of this",
    argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")), behind="words",
)  # fmt: skip
def _completion(options: argparse.Namespace) -> int:
    """Print a script that makes a shell complete commands, options, task ids, modes, rules, agents and themes.
    With -- WORD ..., print what the last word of a command line could be."""
    from agentwatch.cli.completion import offer, print_script

    return print_script(options.shell) if options.words is None else offer(options.shell, options.words)


def _looked_at(workspace: Path, options: argparse.Namespace) -> Monitor:
    """The workspace, its sessions and what is decided, as they are now."""
    from agentwatch.composition import known_desk

    return scanned(workspace, load(), selection_of(options), desk=known_desk(workspace))
