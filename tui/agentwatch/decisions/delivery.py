"""The mirror (copies of decisions in the workspace, for agents) and receipts, which say how far a decision has got.

    <workspace>/.agentwatch/decisions/<decision id>.json     a copy of the ledger's file
    <workspace>/.agentwatch/decisions/<decision id>.md       the decision as a page, for people and agents
    <state directory>/receipts/<decision id>.<stage>[.<reader>].json          written by agentwatch
    <workspace>/.agentwatch/receipts/<the same names>                         written by an agent, no proof

The mirror is never trusted, because agents can write there. agentwatch reports each difference from the ledger to the
operator, and restores edited copies. It leaves files with other names where they are.

A decision goes through four stages: recorded, delivered, read, acted. Each stage has one receipt, the first that was
written. An agent's claim proves only that somebody has read the decision. The next attempt proves that the decision is
carried out. The answer to a program's request is never in the mirror, and its receipts are only in the state directory.
After a decision has expired, the operator may decide again under the same id. The new receipts then have the time of
the new decision in their names.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from agentwatch.contracts.rules import ERROR, Rule
from agentwatch.contracts.shapes import Finding
from agentwatch.decisions.envelope import LARGEST, Trust
from agentwatch.decisions.errors import DecisionError, LedgerError, reason, remedy
from agentwatch.decisions.ledger import NAME, Chain, ChainEntry, ChainProblem, Ledger, ProblemKind, read_entry
from agentwatch.decisions.record import Record, Time, format_time, parse_time
from agentwatch.delegation.decision import SPECS, Receipt, Stage
from agentwatch.disk import DISK, DOT, TEMPORARY, Directory, Disk, NotADirectoryOfOursError, open_dot_directory
from agentwatch.text import clean, clean_lines, clean_name

MIRROR = f"{DOT}/{NAME}"
RECEIPTS = "receipts"
NOT_DELIVERED = "recorded, not delivered: "  # begins a message to people; the reason follows
UNWRITTEN = "agentwatch was told to write nothing into the workspace"

MOST = 20_000  # maximal number of files that are read in a directory

_MODE = 0o644
_FENCE = re.compile("`{3,}")

_LARGEST_RECEIPT = 4_096
_LONGEST = 200
_FILE = re.compile(r"([0-9a-f]{32})\.(json|md)\Z")
_RECEIPT = re.compile(r"([0-9a-f]{32})\.(delivered|read|acted|claim)(?:\.([a-z0-9_-]{1,32}))?\.json\Z")
CLAIM = "claim"

FORGED = Rule(
    "DEC001",
    None,
    ERROR,
    "Decisions",
    "a file is not the operator's decision",
    "This file is not the operator's decision ({why}); nobody may act on it: remove it, and find out who wrote it.",
    "Agents can write into the workspace. Only what is in the ledger, signed, was decided; `wait` and `verify` refuse"
    " everything else.",
    "the files that agentwatch writes into `.agentwatch/decisions/`",
    "any other file there, or one of them edited",
)


def forgery_finding(why: str) -> Finding:
    """Return the finding that a file in the mirror is not a decision of the operator."""
    return Finding(FORGED.id, FORGED.severity, FORGED.message.format(why=why))


class Mirror(NamedTuple):
    """The mirror's state: ids of undelivered decisions (`pending`) with the `reason`, and forged files (`foreign`)."""

    pending: tuple[str, ...] = ()
    reason: str | None = None
    foreign: tuple[ChainProblem, ...] = ()


def deliver_missing(workspace: Path, ledger: Ledger, chain: Chain, trust: Trust) -> Mirror:
    """Write each decision that the mirror lacks, and restore edited copies. Return the mirror's state. Never raise."""
    entries, why, foreign = chain.about_attempts, None, tuple[ChainProblem, ...]()
    pending = dict.fromkeys(entries)
    try:
        with open_dot_directory(workspace, NAME, make=bool(entries), disk=ledger.disk) as directory:
            foreign = tuple(find_differences(directory, chain, trust, ledger.workspace_id))
            directory.remove_abandoned()
            for decision_id, entry in entries.items():
                try:
                    for name in (f"{decision_id}.json", f"{decision_id}.md"):
                        if not _matches_ledger(directory, name, entry):
                            data = ledger.read_bytes(entry) if name.endswith("json") else render_page(entry.record)
                            directory.replace(name, data, _MODE)
                    del pending[decision_id]
                except (OSError, LedgerError) as error:
                    why = _describe_error(error)
    except OSError as error:
        why = _describe_error(error) if entries or not isinstance(error, FileNotFoundError) else None
    return Mirror(tuple(pending), why, foreign)


def read_mirror(directory: Directory, trust: Trust, workspace_id: str) -> Iterator[ChainEntry | ChainProblem]:
    """Read at most MOST files of a mirror. For each, yield its verified decision, or a problem."""
    for name in sorted(name for name in directory.names() if not name.startswith(TEMPORARY))[:MOST]:
        match = _FILE.match(name)
        if not match or match[2] == "md":
            yield ChainProblem(name, ProblemKind.STRAY, "agentwatch did not put it there")
            continue
        with suppress(FileNotFoundError):
            found = read_entry(directory, name, trust, workspace_id)
            if isinstance(found, ChainEntry) and found.record.request:
                found = ChainProblem(name, ProblemKind.MISPLACED, "an answer to a request, which is never put here")
            yield found


def find_differences(directory: Directory, chain: Chain, trust: Trust, workspace_id: str) -> Iterator[ChainProblem]:
    """Compare a mirror with the ledger. Yield a problem for each file that differs."""
    for found in read_mirror(directory, trust, workspace_id):
        name, match = found.name, _FILE.match(found.name)
        if match and (entry := chain.about_attempts.get(match[1])):
            if not _matches_ledger(directory, name, entry):
                yield ChainProblem(name, ProblemKind.FORGED, "it differs from the ledger: it was edited")
        elif isinstance(found, ChainProblem):
            yield found
        else:
            why = "you signed it, and it is not in the ledger: it was copied here, or the ledger has lost it"
            yield ChainProblem(name, ProblemKind.STRAY, why)


def _matches_ledger(directory: Directory, name: str, entry: ChainEntry) -> bool:
    wanted = entry.sha256 if name.endswith(".json") else hashlib.sha256(render_page(entry.record)).hexdigest()
    with suppress(OSError):
        return hashlib.sha256(directory.read(name, LARGEST)).hexdigest() == wanted
    return False


def _describe_error(error: OSError | LedgerError) -> str:
    if isinstance(error, NotADirectoryOfOursError):
        return reason(error)
    return f"the workspace: {reason(error)}; {remedy(error)}" if isinstance(error, OSError) else str(error)


def render_page(record: Record) -> bytes:
    """Return a decision as a Markdown page, with untrusted text made safe. Equal decisions have equal pages."""
    params, spec = record.params, SPECS[record.action]
    facts = {
        "decision": record.decision_id,
        "number": record.seq,
        "operator": clean(record.operator),
        "decided": record.created_at,
        "after": f"{record.after}, whose fitter has ended" if record.after else None,
        "holds until": record.expires_at or "further notice",
        "mode": params.mode and clean(params.mode),
        "mitigation": params.mitigation,
    }
    lines = [f"# {spec.page or spec.word}: {clean_name(record.task_id)}, attempt {record.attempt}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    for title, text in (("Note", record.note), ("Amended handoff", params.handoff), ("Final report", params.report)):
        if text:
            shown, note = clean_lines(text.removesuffix("\n"))
            # The fence is longer than any fence in the text, so nothing in the text can close it.
            fence = "`" * (max((len(run) for line in shown for run in _FENCE.findall(line)), default=2) + 1)
            lines += ["", f"## {title}", "", fence, *shown, fence, *filter(None, [note])]
    if params.answers:
        said = [": ".join(map(clean, filter(None, (one.question, one.answer)))) for one in params.answers]
        lines += ["", "## Answers", "", *(f"- {words}" for words in said)]
    counts = f"What counts is the signed `{record.decision_id}.json` beside it"
    lines += ["", f"A copy for reading. {counts}: agents get it verified from `agentwatch wait`."]
    return "\n".join((*lines, "")).encode()


# Receipts


class Claim(NamedTuple):
    """The result of writing a receipt. `won` tells whether the caller was first. `by` and `at` are the first writer's
    name and time (untrusted text)."""

    won: bool
    by: str
    at: str


class _ReceiptFields(BaseModel):
    by: str
    at: Time


class ReceiptError(DecisionError):
    """A receipt could not be written anywhere."""


class ReceiptBook:
    """The receipts of one workspace. If `read_only`, no receipt is written into the workspace itself."""

    def __init__(self, workspace: Path, state: Path, disk: Disk = DISK, *, read_only: bool = False):
        self._read_only = read_only
        self._receipts = state / RECEIPTS
        self._disk = disk
        self._open_in_workspace = partial(open_dot_directory, workspace, RECEIPTS, disk=disk)

    def write_receipt(
        self, decision_id: str, stage: str, by: str, *, since: str, inside: bool = False, private: bool = False
    ) -> Claim:
        """Write the receipt of a stage unless one exists, and return who wrote it first. Raise ReceiptError on failure.

        `since` is the time of the decision. The stage may end with a dot and the reader's name, at most 15
        lower-case letters. The receipt goes into the state directory. If that cannot be written, or if the caller is
        `inside` a sandbox, the receipt goes into the workspace. A `private` receipt never goes into the workspace.

        With the stage CLAIM, a caller reserves the decision for itself. Exactly one caller wins. A caller that can
        write both directories must be first in both. So a caller inside and a caller outside a sandbox never both win.
        """
        places = [partial(Directory.open_or_make, self._receipts, self._disk)]
        places += [] if self._read_only or private else [partial(self._open_in_workspace, make=True)]
        if inside or stage == CLAIM:
            places = places[1:] + ([] if inside else places[:1])
        trouble, told = OSError(0, UNWRITTEN), None
        for place in places:
            try:
                with place() as directory:
                    told = _publish_receipt(directory, decision_id, stage, by[:_LONGEST], since)
            except OSError as error:
                trouble = error
                continue
            if stage != CLAIM or not told.won:
                break
        if not told:
            why = f"neither {self._receipts} nor the workspace can be written: {reason(trouble)}; {remedy(trouble)}"
            raise ReceiptError(f"the decision holds, and nobody can tell what becomes of it: {why}")
        return told

    def read(self, records: Iterable[Record]) -> dict[str, tuple[Receipt, ...]]:
        """Return the receipts of decisions by decision id: one for each reached stage, in the order of the stages."""
        records = list(records)
        receipts = {
            one.decision_id: {
                Stage.RECORDED: Receipt(Stage.RECORDED, parse_time(one.created_at).timestamp(), one.operator)
            }
            for one in records
        }
        with suppress(OSError), Directory.open(self._receipts, self._disk) as directory:
            _add_receipts(receipts, directory, claimed=False)
        with suppress(OSError), self._open_in_workspace() as directory:
            public = {one.decision_id: receipts[one.decision_id] for one in records if not one.request}
            _add_receipts(public, directory, claimed=True)
        for one in records:
            if one.request:
                # A claimed decision was read. But a hook or a connection claims an answer before the agent reads it.
                receipts[one.decision_id].pop(Stage.READ, None)
        return {key: tuple(told[stage] for stage in Stage if stage in told) for key, told in receipts.items()}


def _publish_receipt(directory: Directory, decision_id: str, stage: str, by: str, since: str) -> Claim:
    directory.remove_abandoned()
    # No receipt is older than its decision, even if the clock was set back. The texts sort like the times.
    at, kind, about = max(format_time(datetime.now(UTC)), since), stage.partition(".")[0], f"{decision_id}.{stage}"
    fields = {"version": 1, "decision_id": decision_id, "receipt": kind, "by": by, "at": at}
    # The first name may belong to an expired decision with the same id. Then the second name is used.
    anew = f"{'.' if kind == stage else '-'}{since.lower().replace('-', '').replace(':', '')}"
    for name in (f"{about}.json", f"{about}{anew}.json"):
        if name not in directory.names():
            with suppress(FileExistsError):
                directory.publish(name, f"{json.dumps(fields)}\n".encode("ascii"), _MODE)
                return Claim(True, by, at)
        holds = _read_receipt(directory, name)
        if not "" < holds.at < since:
            break
    return holds


def _read_receipt(directory: Directory, name: str) -> Claim:
    """Return the writer and the time of an existing receipt. For an unreadable receipt, return "somebody" and ""."""
    with suppress(OSError, ValidationError):
        told = _ReceiptFields.model_validate_json(directory.read(name, _LARGEST_RECEIPT))
        return Claim(False, told.by[:_LONGEST], told.at)
    return Claim(False, "somebody", "")


def _add_receipts(receipts: dict[str, dict[Stage, Receipt]], directory: Directory, *, claimed: bool) -> None:
    for name in sorted(directory.names())[:MOST]:
        match = _RECEIPT.match(name)
        if not match or match[1] not in receipts:
            continue
        told, kind = receipts[match[1]], match[2]
        _, by, at = _read_receipt(directory, name)
        if not at or (told_at := parse_time(at).timestamp()) < told[Stage.RECORDED].at:
            continue
        # An agent that claims to have acted has certainly read the decision. Only later events show whether it acted.
        is_read = kind == CLAIM or (claimed and kind == Stage.ACTED)
        stage = Stage.READ if is_read else Stage(kind)
        taken_by = by if kind == CLAIM else ""
        receipt = Receipt(stage, told_at, by, claimed or stage is Stage.ACTED, taken_by)
        held = told.get(stage, receipt)
        first = min(held, receipt, key=lambda one: (one.claimed, one.at))
        told[stage] = first._replace(taken_by=held.taken_by or taken_by)
