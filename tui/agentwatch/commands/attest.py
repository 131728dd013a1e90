"""`agentwatch attest`: signs how tasks stand, for somebody who has neither this machine nor agentwatch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch import __version__
from agentwatch.decisions.chain import ChainEntry
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.envelope import STATEMENT_TYPE, seal
from agentwatch.decisions.errors import DecisionError, reason
from agentwatch.decisions.statement import statement_of, subject_of
from agentwatch.decisions.statements import keep
from agentwatch.delegation.task import Task
from agentwatch.errors import ExitCode, UsageError
from agentwatch.history.recording import write_new
from agentwatch.monitor import Monitor
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, quoted, say
from agentwatch.view.document import task_document
from agentwatch.view.words import plural

if TYPE_CHECKING:
    from agentwatch.view.documents import signed

_NOTHING: Final = "nobody wrote a handoff or a return of it, so there is nothing that a statement could be about"


def attest(monitor: Monitor, desk: Desk, task_id: str | None, output: str | None) -> int:
    """Sign a statement about one task, or about all, into a new file or, with None, to standard output.

    Returns 1 where not all could be read, which the statements say, too; else 0. Raises UsageError and DecisionError.
    """
    subjects = {task.task_id: subject_of(task) for task in _tasks(monitor, task_id)}
    subjects = {name: subject for name, subject in subjects.items() if subject}
    if not subjects:
        raise UsageError(f"{clean(task_id or 'these tasks', 80)}: {_NOTHING}")
    envelopes = _signed(monitor, desk, subjects)
    text = b"".join(envelopes.values()).decode("ascii")
    if output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(output), [text])
        say(f"{plural(len(envelopes), 'statement')} in {clean(output)}, signed with {desk.keys.show().keyid[:16]}…")
    try:
        keep(desk.state, envelopes)
    except OSError as error:
        complain(f"{clean(str(desk.state))} cannot be written ({reason(error)}): reports will not name what was signed")
    complain_of(monitor.problems)
    return ExitCode.NOT if monitor.problems else ExitCode.DONE


def _tasks(monitor: Monitor, task_id: str | None) -> Iterable[Task]:
    if task_id is None:
        return (task for task, _ in monitor.tree.preorder())
    task = monitor.tree.tasks.get(task_id)
    if task is None:
        raise UsageError(f"there is no task {quoted(task_id, 80)} here; `agentwatch tree` lists them")
    return [task]


def _signed(monitor: Monitor, desk: Desk, subjects: Mapping[str, Sequence[signed.Artifact]]) -> dict[str, bytes]:
    decided: defaultdict[str, list[ChainEntry]] = defaultdict(list)
    chain = desk.read()
    if chain.problems:
        raise DecisionError(
            f"nothing is signed over a damaged ledger: {chain.problems[0].message}; `agentwatch verify`"
        )
    for entry in chain.entries:
        decided[entry.record.task_id].append(entry)
    key, now = desk.key(), datetime.now(UTC)
    envelopes = {}
    for name, subject in subjects.items():
        payload = statement_of(
            task_document(monitor.tree, monitor.tree.tasks[name]), subject, decided[name],
            complete=not monitor.problems, workspace_id=desk.workspace_id, version=__version__, now=now,
        )  # fmt: skip
        envelopes[name] = seal(payload, key, STATEMENT_TYPE)
    return envelopes
