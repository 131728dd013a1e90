"""The commands that prove: what is signed for others, and what of all that was signed holds."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, Command, argument, flag, load, scanned
from agentwatch.errors import UsageError

_DECIDE: Final = partial(Command, "decide")


@_DECIDE(
    "attest TASK", "sign how a task stands, for others to verify",
    argument("task", "TASK", "the task id; with --all, a directory is taken for PATH", offers="tasks", nargs="?"), PATH,
    flag("--all", "of every task with a handoff or a return, a line each"),
    argument("--output", "FILE", "a new file (default: standard output)", short="-o"),
    codes="exit codes: 0 signed, 1 signed, and something could not be read, 2 wrong usage, or the key or the disk"
    " refused",
)  # fmt: skip
def _attest(options: argparse.Namespace) -> int:
    """Sign in-toto statements: state, findings, verdicts and decisions of tasks, and the digests of their handoffs and
    returns. Whoever has your public key can verify them, with agentwatch or without."""
    task = options.task
    if options.all and task is not None:
        if not os.path.isdir(task) or options.path != ".":
            raise UsageError("name a task or say --all: one of the two")
        options.path, task = task, None
    if not options.all and task is None:
        raise UsageError("name a task, or say --all\ntry: agentwatch attest --help")
    workspace, settings = workspace_at(options.path), load()
    from agentwatch.commands.attest import attest
    from agentwatch.commands.decide import passphrase
    from agentwatch.composition import desk_of

    desk = desk_of(workspace, settings, passphrase())
    return attest(scanned(workspace, settings, desk=desk), desk, task, options.output)


@_DECIDE(
    "verify [FILE]", "verify a decision, statements, or the ledger",
    argument("file", "FILE", "a decision, or statements of `attest`; a directory is taken for PATH", nargs="?"), PATH,
    flag("--set-aside", "move what is wrong in the ledger to aside/, when you have looked at it and have no backup"),
    codes="exit codes: 0 all is well, 1 something is not, 2 wrong usage",
)  # fmt: skip
def _verify(options: argparse.Namespace) -> int:
    """Verify the file of a decision, or of statements; without one, the whole ledger and what lies in the workspace."""
    file = options.file
    if file is not None and os.path.isdir(file):
        file, options.path = None, file
    workspace = workspace_at(options.path)
    from agentwatch.commands.verify import set_aside, verify_all, verify_file
    from agentwatch.decisions.desk import Desk

    desk = Desk(workspace, read_only=True)
    if options.set_aside:
        if file is not None:
            raise UsageError("--set-aside is about the whole ledger; give no FILE")
        return set_aside(desk)
    if file is None:
        return verify_all(workspace, desk)
    return verify_file(file, scanned(workspace, load(), desk=desk, inspects=False).tree, desk)
