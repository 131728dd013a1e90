"""The command that signs statements."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from agentwatch import __version__
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument, command, flag
from agentwatch.cli.shared import passphrase, report_problems
from agentwatch.composition import desk_of, scanned
from agentwatch.config import load
from agentwatch.decisions.envelope import STATEMENT_TYPE, seal
from agentwatch.decisions.errors import DecisionError, reason
from agentwatch.decisions.statement import keep, statement_of, subject_of
from agentwatch.errors import UsageError
from agentwatch.history.recording import write_new
from agentwatch.text import clean, complain, quoted, say
from agentwatch.view.document import task_document
from agentwatch.view.words import plural


@command(
    argument("task", "TASK", "the task id; with --all, PATH", nargs="?"),
    PATH,
    flag("--all", "of every task with a handoff or a return, a line each"),
    argument("--output -o", "FILE", "a new file (default: standard output)"),
    exit_codes="exit codes: 0 signed, 1 signed, and something could not be read, 2 wrong usage, or the key or the disk"
    " refused",
)
def attest(options: Namespace) -> int:
    """Sign in-toto statements: state, findings, verdicts and decisions of tasks, and the digests of their handoffs and
    returns. Whoever has your public key can verify them, with agentwatch or without.
    """
    if options.task is None and not options.all:
        raise UsageError("name a task, or say --all\ntry: agentwatch attest --help")
    workspace, settings = workspace_at(options.task or "." if options.all else options.path), load()
    desk = desk_of(workspace, settings, passphrase())
    monitor = scanned(workspace, settings, desk=desk, requests=True)
    tasks = [task for task, _ in monitor.tree.preorder() if options.all or task.task_id == options.task]
    if not tasks and not options.all:
        raise UsageError(f"there is no task {quoted(options.task, 80)} here; `agentwatch tree` lists them")
    tasks = [task for task in tasks if subject_of(task)]
    if not tasks:
        raise UsageError("nobody wrote a handoff or a return, so there is nothing that a statement could be about")
    chain = desk.read()
    if chain.problems:
        why = chain.problems[0].message
        raise DecisionError(f"nothing is signed over a damaged ledger: {why}; `agentwatch verify`")
    key, now, envelopes = desk.key(), datetime.now(UTC), dict[str, bytes]()
    for task in tasks:
        payload = statement_of(
            task_document(monitor.tree, task).plain(),
            subject_of(task),
            [entry for entry in chain.entries if entry.record.task_id == task.task_id],
            complete=not monitor.problems,
            workspace_id=desk.workspace_id,
            version=__version__,
            now=now,
        )
        envelopes[task.task_id] = seal(payload, key, STATEMENT_TYPE)
    text = b"".join(envelopes.values()).decode("ascii")
    if options.output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(options.output), [text])
        signed = f"{plural(len(envelopes), 'statement')} in {clean(options.output)}"
        say(f"{signed}, signed with {key.public.keyid[:16]}…")
    try:
        keep(desk.state, envelopes)
    except OSError as error:
        complain(f"{clean(str(desk.state))} cannot be written ({reason(error)}): reports will not name what was signed")
    return report_problems(monitor.problems)
