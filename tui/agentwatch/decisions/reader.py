"""Reads decisions for agents: finds the operator's verified decision, and tells the agent what to do.

If the ledger can be read, only its decisions are valid. A sandbox may hide the ledger and the signing key. Then the
signed copies in the workspace (the mirror) are valid, verified with a public key from the environment. If the key can
be read but the ledger cannot, no decision is valid. A time-out is no approval and no refusal: the agent asks again.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.decisions.delivery import CLAIM, Claim, ReceiptBook, ReceiptError, read_mirror
from agentwatch.decisions.envelope import ID_ENV, KEYS_ENV, Trust, parse_trust
from agentwatch.decisions.errors import KeyProblemError, LedgerError, reason
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import NAME, ChainEntry, ChainProblem, Ledger, ProblemKind
from agentwatch.decisions.record import Record, decision_of
from agentwatch.delegation.decision import SPECS, Action, Stage
from agentwatch.delegation.events import Decided
from agentwatch.delegation.standing import FITTER, calls_fitter
from agentwatch.delegation.task import AT_WORK, State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.disk import DISK, DOT, Disk, open_dot_directory
from agentwatch.errors import ExitCode
from agentwatch.state import state_directory, workspace_id
from agentwatch.text import clean, clean_name, quote_text

POLL_SECONDS = 0.2
HANDOFFS = "handoffs"  # the directory in `.agentwatch` for amended handoffs
MIRROR = "mirror"

_WORD = re.compile(r"[\w./:@+-]+")
_HAVE_ENDED = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
_UNKNOWN_TASK = "no such task is seen in the files of this workspace: is its id spelled right, has it returned?"
CALL_AGAIN = "call `agentwatch wait` again; this is neither an approval nor a refusal"


class LookupResult(NamedTuple):
    """The result of looking for a decision. `place` is the ledger or the mirror. `record` is the valid decision.
    `expired` is an expired decision: the operator has to decide again. `refused` are invalid files. If nothing was
    found, `detail` says which place was read."""

    place: str
    record: Record | None = None
    expired: Record | None = None
    refused: tuple[ChainProblem, ...] = ()
    detail: str = ""

    @property
    def any_record(self) -> Record | None:
        """The valid decision or the expired decision, or None."""
        return self.record or self.expired


class Question(NamedTuple):
    """The attempt about which an agent wants a decision. A field that is None or empty restricts nothing.

    A decision fits only if the digest of its return is in `returns` (None stands for no return). Decisions about
    attempts before `since` do not fit. Decisions whose ids are in `carried_out` or `over` (their fitter has ended) do
    not fit. If the attempt has no result (`is_final`), an abort fits with any return and any handoff.
    """

    task_id: str | None
    attempt: int | None = None
    returns: tuple[str | None, ...] = ()
    handoff_sha256: str | None = None
    since: int = 1
    decision_id: str | None = None
    over: frozenset[str] = frozenset()
    carried_out: frozenset[str] = frozenset()
    is_final: bool = False
    program: str = ""  # the task's agent program, if several programs use this task id

    def fits(self, record: Record) -> bool:
        reports = self.is_final and record.action is Action.ABORT
        return (
            # The answer to a program's request is no decision about an attempt.
            not record.request
            and (self.task_id is None or record.task_id in (self.task_id, f"{self.task_id}#{self.program}"))
            and self.attempt in (None, record.attempt)
            and (not self.returns or record.return_sha256 in self.returns or reports)
            and (record.handoff_sha256 in (None, self.handoff_sha256 or record.handoff_sha256) or reports)
            and self.since <= record.attempt
            and self.decision_id in (None, record.decision_id)
            and record.decision_id not in self.carried_out
            and not (record.decision_id in self.over and calls_fitter(record.action, record.params.mode))
        )


class Reader:
    """Reads the decisions of one workspace for agents. Its `name` in receipts is `wait`, `mcp` or the like.

    In the `environment`, `AGENTWATCH_PUBLIC_KEY` may give more trusted keys. `AGENTWATCH_WORKSPACE_ID` may give the id
    of the workspace, if it is mounted at another path.
    """

    def __init__(
        self,
        workspace: Path,
        name: str = "",
        *,
        read_only: bool = False,
        state: Path | None = None,
        configuration: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        disk: Disk = DISK,
    ):
        self._name = name
        self.state = state or state_directory(workspace)
        self._workspace = workspace
        self._workspace_id = environment.get(ID_ENV) or workspace_id(workspace)
        self._ledger = Ledger(self.state, self._workspace_id, disk)
        self._keys = Keys(configuration, disk)
        self._given = environment.get(KEYS_ENV, "")
        self._disk = disk
        self._read_only = read_only
        self._book = ReceiptBook(workspace, self.state, disk, read_only=read_only)

    def find(self, question: Question) -> LookupResult:
        """Return the newest decision that fits the question. Raise KeyProblemError if a trusted key is malformed."""
        trust = self._load_trust()
        place, records, refused = self._read_records(trust)
        fitting = filter(question.fits, records)
        if record := max(fitting, key=lambda record: (record.attempt, record.seq), default=None):
            return LookupResult(place, *((None, record) if record.is_expired(datetime.now(UTC)) else (record,)))
        why = "" if trust.keys else f", or the key is out of sight: in a sandbox, give its public half in {KEYS_ENV}"
        return LookupResult(place, refused=tuple(refused), detail=f"(looked into the {place}){why}")

    def wait(
        self,
        question: Question,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> LookupResult:
        """Call `find` until it returns a decision, for at most `timeout` seconds. Raise KeyProblemError like `find`."""
        end = clock() + timeout
        while not (found := self.find(question)).any_record and (left := end - clock()) > 0:
            sleep(min(POLL_SECONDS, left))
        return found

    def _load_trust(self) -> Trust:
        known = Trust()
        # A sandbox may hide the user's keys. Then only the keys in the environment are used.
        with suppress(KeyProblemError):
            known = self._keys.trust()
        return known.merged_with(parse_trust(self._given))

    def _read_records(self, trust: Trust) -> tuple[str, list[Record], list[ChainProblem]]:
        """Return the place that was used (ledger or mirror), its decisions about attempts, and the refused files."""
        mirrored, chain = list[ChainEntry | ChainProblem](), None
        # Read the mirror before the ledger. Then a decision that is recorded between the two is not refused.
        try:
            with open_dot_directory(self._workspace, NAME, disk=self._disk) as directory:
                mirrored += read_mirror(directory, trust, self._workspace_id)
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                why = f"the mirror cannot be read: {reason(error)}"
                mirrored.append(ChainProblem(NAME, ProblemKind.UNREADABLE, why))
        with suppress(LedgerError, OSError):
            chain = self._ledger.read(trust) if os.path.exists(self._ledger.directory) else None
        known, problems = (chain.about_attempts, chain.problems) if chain else ({}, ())
        mirrored = [one for one in mirrored if one.name.removesuffix(".json") not in known]
        copies = [one for one in mirrored if isinstance(one, ChainEntry)]
        told = (one for one in (*mirrored, *problems) if isinstance(one, ChainProblem))
        refused = [one for one in told if one.kind is not ProblemKind.STRAY]
        if not chain and not self._keys.can_read_private():
            return MIRROR, [one.record for one in copies], refused
        # Refuse the copies that the ledger does not have. If the signing key can be read, no sandbox hides the ledger.
        # So the ledger is lost, and the operator may have decided otherwise.
        why = "does not have it" if chain else "is gone or cannot be read: put it back, or decide again"
        why = f"it is signed, and the ledger {self._ledger.directory} {why}"
        refused += [ChainProblem(one.name, ProblemKind.STRAY, why) for one in copies]
        return "ledger", [entry.record for entry in known.values()], refused

    def add_decisions(self, tree: Tree, task_id: str) -> None:
        """Add the decisions about a task to a tree. The tree needs them to tell the task's attempts apart."""
        records = [one for one in self._read_records(self._load_trust())[1] if one.task_id == task_id]
        receipts = self._book.read(records)
        decisions = [decision_of(one, receipts[one.decision_id]) for one in records]
        tree.apply(*(Decided(0, one.at, one.decision_id, one) for one in decisions))

    def write_handoff(self, record: Record) -> str | None:
        """Write the amended handoff of a decision into the workspace, and return its path. Return None if there is no
        handoff, or if it cannot be written. The decision's own file has the text of the handoff, too."""
        handoff = record.params.handoff
        if handoff is None or self._read_only:
            return None
        name = f"{record.decision_id}.handoff.{file_ending(handoff)}"
        with suppress(OSError), open_dot_directory(self._workspace, HANDOFFS, make=True) as directory:
            # Always replace the file, because somebody may have edited it.
            directory.replace(name, handoff.encode(), 0o644)
            return str(self._workspace / DOT / HANDOFFS / name)
        return None

    def answer(self, found: LookupResult, task: Task | None, task_id: str) -> tuple[ExitCode, dict[str, Any]]:
        """Return the exit code of `agentwatch wait` and the JSON document that it prints.

        For a valid decision, `pending` is False. The document then has the record's keys, `place`, `handoff_path` and
        `do_now`. Otherwise it has `do_now`, and either `expired` or the task's state.
        """
        if record := found.record:
            path = self.write_handoff(record)
            how = {"place": found.place, "handoff_path": path, "do_now": instruction(record, path)}
            # Leave out the signed request: it only repeats the decision.
            said = {name: value for name, value in record.document().items() if name != "signed_request"}
            return ExitCode.DONE, {"pending": False, **said, **how}
        if record := found.expired:
            known = {name: getattr(record, name) for name in ("decision_id", "task_id", "attempt", "expires_at")}
            do = f"the decision held until {record.expires_at}; do not act on it: tell the operator to decide again"
            return ExitCode.EXPIRED, {"pending": True, "expired": known, "do_now": do}
        refused = [{"name": one.name, "kind": one.kind.value, "message": one.message} for one in found.refused]
        code, do = ExitCode.PENDING, CALL_AGAIN
        detail = f"{describe_unreturned(task) or 'the operator has not decided yet'} {found.detail}"
        told = {"refused": refused} if refused else {"detail": detail}
        state = task.own_state.value if task else None
        if refused:
            code, do = ExitCode.REFUSED, f"do not act on the refused files; {CALL_AGAIN}"
        if not task:
            do = f"{_UNKNOWN_TASK} If both: {do}"
        elif not refused and needs_no_decision(task):
            code, nothing = ExitCode.UNASKED, "nothing is asked of the operator"
            told = {"detail": f"{nothing} about it"}
            do = f"go on: {quote_text(task_id)} is {state}, and {nothing}, so do not wait"
        about = {"do_now": do, "task_id": task_id, "state": state, "unasked": code is ExitCode.UNASKED}
        return code, {"pending": True, **told, **about}

    def write_receipt(self, found: LookupResult, by: str, stage: Stage = Stage.READ) -> str | None:
        """Write the receipt that the decision was read or carried out. Return the reason if this fails, else None."""
        if record := found.any_record:
            told, inside = f"{stage}.{self._name}", found.place == MIRROR and stage is Stage.READ
            try:
                self._book.write_receipt(record.decision_id, told, by, since=record.created_at, inside=inside)
            except ReceiptError as error:
                return str(error)
        return None

    def claim(self, record: Record, by: str) -> Claim:
        """Claim a decision, so that only one agent carries it out. Return who was first. May raise ReceiptError."""
        return self._book.write_receipt(record.decision_id, CLAIM, by, since=record.created_at)


def question_about(tree: Tree, task_id: str, attempt: int | None) -> Question:
    """Return the question about an attempt of a task. If `attempt` is None, ask about the latest attempt. Its number
    may be higher than in the tree, because a sandbox may hide attempts."""
    task = tree.tasks.get(task_id)
    known = {one.number: one for one in task.attempts} if task else {}
    latest, question = max(known, default=1), Question(task_id, attempt, over=tree.ended_escalations(task_id))
    if asked := known.get(attempt or latest):
        returns = (asked.returned.digest,) if asked.returned else ()
        final = asked.has_no_result
        question = question._replace(returns=returns, handoff_sha256=asked.packet_digest, is_final=final)
    return question._replace(since=latest) if attempt is None else question


def needs_no_decision(task: Task | None) -> bool:
    """Tell whether a task has ended and does not need the operator, so that no decision will come."""
    return task is not None and task.own_state in _HAVE_ENDED and task.question is None


def describe_unreturned(task: Task | None) -> str:
    """Return a sentence if a task has not returned yet, and "" otherwise."""
    if not task or task.question or task.own_state not in AT_WORK:
        return ""
    state = "at work" if task.own_state is State.WORKING else task.own_state
    return f"{quote_text(task.task_id)} is {state}, and has not returned"


def instruction(record: Record, handoff_path: str | None = None) -> str:
    """Return one sentence that tells the agent how to carry a decision out."""
    # An id of several words could pass for a part of the sentence, so quote it.
    task = clean_name(record.task_id)
    if not _WORD.fullmatch(task):
        task = quote_text(record.task_id, 200)
    note = ", and the operator's note in `note`," if record.note.strip() else ""
    given = f"with the last handoff, its decision_id set to {record.decision_id}{note.removesuffix(',')}"
    if record.handoff_sha256 is None:
        given = f"with the last prompt and the line decision_id: {record.decision_id}{note.removesuffix(',')}"
    if record.params.handoff is not None:
        given = f"with the handoff in {'params.handoff' if handoff_path is None else 'the file handoff_path'}"
    template = SPECS[record.action].do_now
    if calls_fitter(record.action, record.params.mode):
        template = f"start the {FITTER} {{given}}, and once it has returned, wait for the next decision about {{task}}"
    return template.format(
        task=task,
        after=record.attempt + 1,
        given=given,
        mode=clean(record.params.mode or ""),
        answers=f"params.answers{note}",
        decision_id=record.decision_id,
    )


def file_ending(text: str) -> str:
    """Return the ending for a document's file: `json` if the text begins like a JSON object, else `md`."""
    return "json" if text.lstrip("\ufeff \t\r\n")[:1] == "{" else "md"
