"""The commands that sign statements, and verify what was signed."""

import hashlib
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument, command, flag
from agentwatch.cli.shared import passphrase_prompt, report_problems
from agentwatch.composition import build_desk, scan_workspace
from agentwatch.config import load
from agentwatch.console import print_checks
from agentwatch.decisions.delivery import MIRROR
from agentwatch.decisions.envelope import KEYS_ENV, STATEMENT_TYPE, Trust, parse_trust, seal
from agentwatch.decisions.errors import DecisionError, reason
from agentwatch.decisions.keys import Role
from agentwatch.decisions.ledger import verify_record
from agentwatch.decisions.record import Record
from agentwatch.decisions.service import DecisionService
from agentwatch.decisions.statement import Statement, is_statement, statement_of, subject_of, verify_statement
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.tree import Tree
from agentwatch.disk import Directory
from agentwatch.errors import ExitCode, UsageError
from agentwatch.history.recording import write_new_file
from agentwatch.text import Check, bad, clean, good, note, print_text, quote_text
from agentwatch.view.document import task_document
from agentwatch.view.words import plural

# Files with more bytes are not read. The limit is enough for ten thousand statements.
_MOST_BYTES = 64 * 1024 * 1024


@command(
    argument("file", "FILE", "a decision, or statements of `attest`; a directory counts as PATH", nargs="?"),
    PATH,
    flag("--set-aside", "move damaged files of the ledger to aside/; look at them first, and try a backup"),
    exit_codes="exit codes: 0 all is well, 1 something is not, 2 wrong usage",
)
def verify(options: Namespace) -> int:
    """Verify a FILE with a decision or statements. Without FILE, verify the ledger and the copies in the workspace."""
    file, path = options.file, options.path
    if file is not None and os.path.isdir(file):
        file, path = None, file
    workspace = workspace_at(path)
    desk = DecisionService(workspace, read_only=True)
    if options.set_aside:
        if file is not None:
            raise UsageError("--set-aside is about the whole ledger; give no FILE")
        names = desk.ledger.set_aside(desk.keys.trust())
        for name in names:
            print_text(f"{clean(name)}: set aside; what was decided there must be decided again")
        if not names:
            print_text("nothing in the ledger had to be set aside")
        return ExitCode.DONE
    # Trust the keys of this user and the keys that the environment names.
    trust = desk.keys.trust().merged_with(parse_trust(os.environ.get(KEYS_ENV, "")))
    if file is None:
        forged = [bad("mirror", f"{MIRROR}/{one.message}") for one in desk.update_mirror(writes=False).foreign]
        return print_checks([*check_ledger(desk), *forged])
    try:
        with Directory.open(Path(file).parent) as directory:
            data = directory.read(Path(file).name, _MOST_BYTES)
    except OSError as error:
        why = f"{file}: {reason(error)}; give a file of a decision or of statements, or none to verify the ledger"
        raise UsageError(why) from error
    tree = scan_workspace(workspace, load(), desk=desk, inspects=False, requests=True).tree
    return print_checks((_check_statements if is_statement(data) else _check_decision)(data, tree, desk, trust))


def _check_decision(data: bytes, tree: Tree, desk: DecisionService, trust: Trust) -> Iterator[Check]:
    try:
        record, keyid = verify_record(data, trust, None)
    except DecisionError as error:
        yield bad("signature", str(error))
        return
    asked, is_expired = record.request, record.is_expired(datetime.now(UTC))
    what = f"{record.action} of {quote_text(record.task_id)}, attempt {record.attempt}"
    if asked:
        what = f"{record.action} of a {asked.kind} of {quote_text(asked.program)}, session {quote_text(asked.session)}"
    by = f"by {quote_text(record.operator, 60)}{' on another machine' if record.signed_request else ''}"
    yield good("signature", f"{what}, {by}, signed with your key {keyid[:16]}…")
    if record.workspace_id != desk.workspace_id:
        yield bad("workspace", f"it is about another one, {quote_text(record.workspace_id)}")
        return
    yield _check_recorded(record, data, desk)
    # Only the process that made the request uses its answer, so an expired answer is no fault.
    end = bad if is_expired and not asked else good
    yield end("expiry", f"it {'held' if is_expired else 'holds'} until {record.expires_at or 'further notice'}")
    if asked:
        yield good("input", f"the exact input has the sha256 {asked.input_sha256}")
    else:
        yield _check_return(record, tree, desk)


def _check_recorded(record: Record, data: bytes, desk: DecisionService) -> Check:
    if not os.path.exists(desk.ledger.directory) and not desk.keys.can_read_private():
        return note("ledger", f"{desk.ledger.directory} cannot be looked at from here")
    chain = desk.read()
    entry = next((one for one in chain.entries if one.sha256 == hashlib.sha256(data).hexdigest()), None)
    if not entry:
        return bad("ledger", "it is not in it: an old copy, or one of a decision that was set aside")
    if chain.latest[record.decision_id] is not entry:
        return bad("ledger", f"number {record.seq}, and the same has been decided again since")
    return good("ledger", f"number {record.seq}, byte for byte")


def _check_return(record: Record, tree: Tree, desk: DecisionService) -> Check:
    task = tree.tasks.get(record.task_id)
    attempt = next((one for one in task.attempts if one.number == record.attempt), None) if task else None
    if not (task and attempt):
        return note("return", "the attempt is not seen here any more")
    if (attempt.returned.digest if attempt.returned else None) == record.return_sha256:
        return good("return", "it is still the one that was decided about")
    is_read = desk.receipts([record])[record.decision_id][-1].stage in (Stage.READ, Stage.ACTED)
    is_same = attempt.handoff and attempt.handoff.digest == record.handoff_sha256
    if attempt is not task.latest or (is_read and is_same):
        return note("return", "it is another one now, given after the decision")
    return bad("return", "it has changed since the decision, so the decision does not hold for it")


def check_ledger(desk: DecisionService) -> Iterator[Check]:
    """Check the whole ledger. May raise DecisionError."""
    chain, where = desk.read(), clean(str(desk.ledger.directory))
    if chain.entries:
        decisions = plural(len(chain.entries), "decision")
        yield good("ledger", f"{decisions} in {where}, each signed, and each following the one before it")
    elif not chain.problems:
        yield good("ledger", f"nothing has been decided in {where}")
    for problem in chain.problems:
        yield bad("ledger", f"{problem.message} ({problem.kind})")


def _check_statements(data: bytes, tree: Tree, desk: DecisionService, trust: Trust) -> Iterator[Check]:
    """Check each line of a file of statements. A statement may also be signed with the key of a trusted host."""
    hosts = desk.keys.known_keys(Role.HOST)
    trust = trust.merged_with(Trust(tuple(hosts)))
    names = {one.public.keyid: f"the key of {quote_text(one.name)}" for one in hosts}
    digests = {one["name"]: one["digest"]["sha256"] for task in tree.tasks.values() for one in subject_of(task)}
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            statement, keyid = verify_statement(line, trust)
        except DecisionError as error:
            yield bad("signature", f"line {number}: {error}")
            continue
        stated = f"{statement.state}, contradicted" if statement.contradicted else statement.state
        said = f"{stated}: {quote_text(statement.task_id)}, attempt {statement.attempt}, at {statement.made_at}"
        yield good("signature", f"{said}, signed with {names.get(keyid, 'your key')} {keyid[:16]}…")
        is_same_workspace, task = statement.workspace_id == desk.workspace_id, tree.tasks.get(statement.task_id)
        if not is_same_workspace:
            yield note(
                "workspace", f"it was made in another one, {quote_text(statement.workspace_id)}; files are compared"
            )
        elif task and (task.state, task.attempt) != (statement.state, statement.attempt):
            yield note("state", f"it has gone on since: {task.state} now, attempt {task.attempt}")
        yield from _check_documents(statement, digests, is_same_workspace=is_same_workspace)


def _check_documents(statement: Statement, digests: Mapping[str, str], *, is_same_workspace: bool) -> Iterator[Check]:
    """Compare a statement's documents with the documents in this workspace. A missing document is a fault only if the
    statement is about this workspace."""
    for name, digest in statement.subject:
        if name not in digests:
            missing = "cannot be compared: it is not here any more, or cannot be read"
            yield (bad if is_same_workspace else note)("subject", f"{quote_text(name)} {missing}")
        elif digests[name] != digest:
            yield bad("subject", f"{quote_text(name)} is another one here: it was changed, or this is another attempt")
    if same := sum(digests.get(name) == digest for name, digest in statement.subject):
        yield good("subject", f"{plural(same, 'document')} here as stated")


@command(
    argument("task", "TASK", "the task id; with --all, PATH", nargs="?"),
    PATH,
    flag("--all", "sign every task with a handoff or a return, a line each"),
    argument("--output -o", "FILE", "a new file (default: standard output)"),
    exit_codes="exit codes: 0 signed, 1 signed, and something could not be read, 2 wrong usage, or the key or the disk"
    " refused",
)
def attest(options: Namespace) -> int:
    """Sign in-toto statements: state, findings, verdicts and decisions of tasks, and the digests of their handoffs and
    returns. Anybody with your public key can verify them, with agentwatch or without.
    """
    if not (options.task or options.all):
        raise UsageError("name a task, or say --all\ntry: agentwatch attest --help")
    workspace, settings = workspace_at(options.task or "." if options.all else options.path), load()
    desk = build_desk(workspace, settings, passphrase_prompt())
    monitor = scan_workspace(workspace, settings, desk=desk, requests=True)
    tasks = [task for task, _ in monitor.tree.preorder() if options.all or task.task_id == options.task]
    if not tasks and not options.all:
        raise UsageError(f"there is no task {quote_text(options.task, 80)} here; `agentwatch tree` lists them")
    tasks = [task for task in tasks if subject_of(task)]
    if not tasks:
        raise UsageError("nobody wrote a handoff or a return, so there is nothing that a statement could be about")
    chain = desk.read()
    if chain.problems:
        why = chain.problems[0].message
        raise DecisionError(f"nothing is signed over a damaged ledger: {why}; `agentwatch verify`")
    key, now, envelopes = desk.load_key(), datetime.now(UTC), list[bytes]()
    for task in tasks:
        payload = statement_of(
            task_document(monitor.tree, task).to_json(),
            subject_of(task),
            [entry for entry in chain.entries if entry.record.task_id == task.task_id],
            complete=not monitor.problems,
            workspace_id=desk.workspace_id,
            now=now,
        )
        envelopes.append(seal(payload, key, STATEMENT_TYPE))
    text = b"".join(envelopes).decode("ascii")
    if not options.output:
        print_text(text.removesuffix("\n"))
    else:
        write_new_file(Path(options.output), [text])
        signed = f"{plural(len(envelopes), 'statement')} in {clean(options.output)}"
        print_text(f"{signed}, signed with {key.public.keyid[:16]}…")
    return report_problems(monitor.problems)
