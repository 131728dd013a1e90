"""The commands, each with its line in `agentwatch --help`; the module of that name is imported when one runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

GROUPS: Final = {
    "watch": {
        "relay [PATH ...]": "tell screens on other machines what is seen here",
        "[PATH ...]": "watch workspaces (default: this directory)",
        "demo": "watch a demo session, to see what it looks like",
        "replay FILE": "play a recorded session, with pause, step and speed",
    },
    "print and go": {
        "tree [PATH ...]": "print the tree once, as text or --json",
        "log [PATH]": "print every state change of files and sessions; --follow goes on",
        "report [PATH ...]": "write the session's account as Markdown, HTML or JSON",
        "check PATH ...": "check handoffs and returns like a linter",
        "rules": "list the rules that are checked",
        "sources [PATH]": "say which agents' sessions are read, and what is skipped",
        "schema [NAME]": "print a JSON schema; without NAME, list them",
        "help [TOPIC]": "read the manual; without TOPIC, list its topics",
        "completion SHELL": "print what makes bash, zsh or fish complete all of this",
    },
    "decide": {
        "pending [PATH ...]": "print what needs you, and the command that answers it",
        "decide TASK": "retry, escalate, abort, respond or accept",
        "answer REQUEST": "answer what a program asks: allow, deny, choose",
        "ack [TASK]": "have a task ask no more until it changes; no decision",
        "keys": "show the key that signs your decisions, or change it; trust keys of others",
        "fleet": "prepare a NATS server for hosts that only dial out",
        "doctor": "check this machine, or with --nats a server of a fleet",
        "attest TASK": "sign how a task stands, for others to verify",
        "verify [FILE]": "verify a decision, statements, or the ledger",
    },
    "for agents": {
        "wait TASK": "wait for your decision, and print it as JSON",
        "claim DECISION": "claim it, so that only one carries it out",
        "init [PATH]": "show or --write what makes an agent hand off, return and wait this way",
        "mcp [PATH]": "serve handoffs, returns and decisions to agents, over MCP",
        "hook": "answer a hook of Claude Code",
    },
}
"""By group and usage. Watching a workspace has no name."""

COMMANDS: Final = {
    "" if usage.startswith("[") else usage.split()[0]: summary
    for group in GROUPS.values()
    for usage, summary in group.items()
}
"""By name."""


def load_command(name: str) -> Any:
    """The module of a command: `ARGUMENTS`, `run`, its help as docstring, and maybe `EXIT_CODES` and more."""
    return import_module(f"agentwatch.cli.{name or 'watch'}")
