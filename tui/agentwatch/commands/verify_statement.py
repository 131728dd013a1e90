"""`agentwatch verify` of statements: who signed them, and whether what they are about is still the same here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentwatch.decisions.desk import Desk
from agentwatch.decisions.envelope import Trust
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.others import Role
from agentwatch.decisions.statement import Statement, subject_of, verified
from agentwatch.delegation.tree import Tree
from agentwatch.text import Check, bad, good, note, quoted
from agentwatch.view.words import plural, state_words


def of_statements(data: bytes, tree: Tree, desk: Desk, trust: Trust) -> Iterator[Check]:
    """Each line of a file. Beside the keys of `trust`, those of hosts count, which say what goes on there."""
    hosts = {one.public.keyid: one for one in desk.keys.others(Role.HOST)}
    trust = trust.with_more(Trust(tuple(one.trusted for one in hosts.values())))
    names = {keyid: f"the key of {quoted(one.name)}" for keyid, one in hosts.items()}
    here = {
        artifact["name"]: artifact["digest"]["sha256"] for task in tree.tasks.values() for artifact in subject_of(task)
    }
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            statement, keyid = verified(line, trust)
        except DecisionError as error:
            yield bad("signature", f"line {number}: {error}")
            continue
        stated = state_words(statement.state, contradicted=statement.contradicted)
        said = f"{stated}: {quoted(statement.task_id)}, attempt {statement.attempt}, at {statement.made_at}"
        yield good("signature", f"{said}, signed with {names.get(keyid, 'your key')} {keyid[:16]}…")
        is_of_here = statement.workspace_id == desk.workspace_id
        if not is_of_here:
            yield note("workspace", f"it was made in another one, {quoted(statement.workspace_id)}; files are compared")
        else:
            yield from _since(statement, tree)
        yield from _of_files(statement, here, is_of_here=is_of_here)


def _since(statement: Statement, tree: Tree) -> Iterator[Check]:
    task = tree.tasks.get(statement.task_id)
    if task is not None and (task.state, task.attempt) != (statement.state, statement.attempt):
        yield note("state", f"it has gone on since: {task.state} now, attempt {task.attempt}")


def _of_files(statement: Statement, here: Mapping[str, str], *, is_of_here: bool) -> Iterator[Check]:
    """What a statement of this workspace is about has to be here; a copy may hold less."""
    found = {name: here.get(name) for name, _ in statement.subject}
    for name, digest in statement.subject:
        if found[name] is None and is_of_here:
            yield bad("subject", f"{quoted(name)} cannot be compared: it is not here any more, or cannot be read")
        elif found[name] is None:
            yield note("subject", f"{quoted(name)} is not here, so nothing is known of it")
        elif found[name] != digest:
            yield bad("subject", f"{quoted(name)} is another one here: it was changed, or this is another attempt")
    if same := sum(found[name] == digest for name, digest in statement.subject):
        yield good("subject", f"{plural(same, 'document')} here as stated")
