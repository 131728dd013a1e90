"""Decisions delivered into the workspace, where agents can read them: a mirror of the ledger that is never trusted.

    <workspace>/.agentwatch/decisions/<decision id>.json     the very bytes of the ledger's file
    <workspace>/.agentwatch/decisions/<decision id>.md       the same as a page, for people and agents

Agents can write there, so whatever differs from the ledger is told to the operator, and the ledger's own files are put
right again. Files of other names are left where they are.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.contracts.rules import ERROR, Rule
from agentwatch.contracts.shapes import Finding
from agentwatch.decisions.envelope import LARGEST, Trust
from agentwatch.decisions.errors import LedgerError, reason, remedy
from agentwatch.decisions.ledger import Chain, ChainEntry, ProblemKind, RefusedError, verified
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import SPECS
from agentwatch.disk import DISK, DOT, TEMPORARY, Directory, Disk, NotADirectoryOfOursError, open_dot_directory
from agentwatch.text import clean, clean_lines, exact

NAME: Final = "decisions"
NOT_DELIVERED: Final = "recorded, not delivered: "
"""In front of the reason, for people."""

MOST: Final = 1_000
"""Files of the mirror that are told: more of them would say the same."""
UNVERIFIED: Final = "it is signed, and no key is in sight here to verify it with"
"""Of what may well be a decision of the operator's: a forgery is what a known key did not sign."""

_MODE: Final = 0o644
_RECORD: Final = re.compile(r"([0-9a-f]{32})\.json\Z")
_SIGNED: Final = "you signed it, and it is not in the ledger: it was copied here, or the ledger has lost it"
_FENCE: Final = re.compile("`{3,}")

FORGED: Final = Rule(
    "DEC001",
    None,
    ERROR,
    "Decisions",
    "a decision that is not the operator's",
    "This is no decision of the operator's ({why}); nobody may act on it: remove it, and find out who wrote it.",
    "Agents can write into the workspace. Only what is in the ledger, signed, was decided; `wait` and `verify` refuse"
    " everything else.",
    "the files that agentwatch writes into `.agentwatch/decisions/`",
    "any other file there, or one of them edited",
)
RULES: Final = (FORGED,)


def forged(why: str) -> Finding:
    """That a file among the decisions is none of the operator's."""
    return Finding(FORGED.id, FORGED.severity, FORGED.message.format(why=why))


class Forgery(NamedTuple):
    """A file in the mirror that is not the ledger's. `path` is relative to the workspace, and foreign."""

    path: str
    why: str


class Mirror(NamedTuple):
    """How the mirror stands: the ids of the decisions that are delivered, and of those that wait, and why they do."""

    delivered: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    reason: str | None = None
    foreign: tuple[Forgery, ...] = ()


def mirror_missing(
    workspace: Path, chain: Chain, bytes_of: Callable[[ChainEntry], bytes], trust: Trust, *, disk: Disk = DISK
) -> Mirror:
    """Deliver every decision that is not in the mirror as it should be; tell what is not the ledger's. Never raises."""
    entries, delivered, pending, trouble = chain.of_attempts, list[str](), list[str](), None
    try:
        with open_dot_directory(workspace, NAME, make=bool(entries), disk=disk) as directory:
            foreign = tuple(differing(directory, chain, trust))
            directory.sweep()
            for decision_id, entry in entries.items():
                try:
                    _deliver(directory, entry, bytes_of)
                except (OSError, LedgerError) as error:
                    pending.append(decision_id)
                    trouble = _in_words(error)
                else:
                    delivered.append(decision_id)
    except OSError as error:
        if not entries and isinstance(error, FileNotFoundError):
            return Mirror()
        return Mirror(pending=tuple(entries), reason=_in_words(error))
    return Mirror(tuple(delivered), tuple(pending), trouble, foreign)


def forgeries(workspace: Path, chain: Chain | None, trust: Trust, disk: Disk = DISK) -> list[Forgery]:
    """The files of the mirror that are not the ledger's; nothing is put right. Without a `chain`, the ledger is out of
    sight: then a signed file is none, nor is what is no decision."""
    try:
        with open_dot_directory(workspace, NAME, disk=disk) as directory:
            found = list(differing(directory, chain or Chain(), trust))
    except OSError:
        # What is not to be seen is not delivered either, which is told where something is.
        return []
    return found if chain is not None else [one for one in found if _RECORD.search(one.path) and one.why != _SIGNED]


def deliver(
    workspace: Path, entry: ChainEntry, bytes_of: Callable[[ChainEntry], bytes], disk: Disk = DISK
) -> str | None:
    """Deliver one decision. Returns None, or the reason why it waits. Never raises."""
    try:
        with open_dot_directory(workspace, NAME, make=True, disk=disk) as directory:
            _deliver(directory, entry, bytes_of)
    except (OSError, LedgerError) as error:
        return _in_words(error)
    return None


def files_in(directory: Directory) -> list[str]:
    """The names of the files of a mirror, without those that are being written."""
    return sorted(name for name in directory.names() if not name.startswith(TEMPORARY))


def differing(directory: Directory, chain: Chain, trust: Trust) -> Iterator[Forgery]:
    """The files of a mirror, of the first MOST, that are not as the ledger has them."""
    ours = chain.of_attempts
    for name in files_in(directory)[:MOST]:
        stem, _, ending = name.rpartition(".")
        entry = ours.get(stem) if ending in ("json", "md") else None
        if entry is None:
            yield Forgery(f"{DOT}/{NAME}/{name}", _why_foreign(directory, name, trust))
        elif not _is_as_it_should_be(directory, name, entry):
            yield Forgery(f"{DOT}/{NAME}/{name}", "it differs from the ledger: it was edited")


def _deliver(directory: Directory, entry: ChainEntry, bytes_of: Callable[[ChainEntry], bytes]) -> None:
    for ending in ("json", "md"):
        name = f"{entry.record.decision_id}.{ending}"
        if _is_as_it_should_be(directory, name, entry):
            continue
        data = bytes_of(entry) if ending == "json" else page(entry.record)
        try:
            directory.replace(name, data, _MODE)
        except IsADirectoryError:
            # No file can take its place. Renaming touches its name only, whatever is in it.
            directory.move(name, directory, f"{name}.{secrets.token_hex(4)}")
            directory.replace(name, data, _MODE)


def _is_as_it_should_be(directory: Directory, name: str, entry: ChainEntry) -> bool:
    wanted = entry.sha256 if name.endswith(".json") else hashlib.sha256(page(entry.record)).hexdigest()
    try:
        return hashlib.sha256(directory.read(name, LARGEST)).hexdigest() == wanted
    except OSError:
        return False


def _why_foreign(directory: Directory, name: str, trust: Trust) -> str:
    """The nature of a file of the mirror that the ledger does not have."""
    if _RECORD.match(name) is None:
        return "agentwatch did not put it there"
    try:
        verified(directory.read(name, LARGEST), trust, None)
    except RefusedError as error:
        is_unknown = error.kind is ProblemKind.UNTRUSTED and not trust.keys
        return UNVERIFIED if is_unknown else f"it is no decision of yours: {error}"
    except OSError as error:
        return f"it cannot be read: {reason(error)}"
    return _SIGNED


def _in_words(error: OSError | LedgerError) -> str:
    if isinstance(error, LedgerError):
        return str(error)
    if isinstance(error, NotADirectoryOfOursError):
        return reason(error)
    return f"the workspace: {reason(error)}; {remedy(error)}, it is tried again"


def page(record: Record) -> bytes:
    """The Markdown page of a decision: equal records have equal pages. Foreign text in it is made safe to show."""
    params = record.params
    facts = {
        "decision": record.decision_id,
        "number": str(record.seq),
        "operator": clean(record.operator),
        "decided": record.created_at,
        "after": f"{record.after}, whose fitter has ended" if record.after else None,
        "holds until": record.expires_at or "further notice",
        "mode": clean(params.mode) if params.mode else None,
        "mitigation": params.mitigation.value if params.mitigation else None,
    }
    lines = [f"# {SPECS[record.action].page}: {exact(record.task_id)}, attempt {record.attempt}", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    for title, text in (("Note", record.note), ("Amended handoff", params.handoff), ("Final report", params.report)):
        if text:
            lines += ["", f"## {title}", "", *_fenced(text)]
    if params.answers:
        lines += ["", "## Answers", ""]
        lines += [
            f"- {clean(one.question)}: {clean(one.answer)}" if one.question else f"- {clean(one.answer)}"
            for one in params.answers
        ]
    counts = f"What counts is the signed `{record.decision_id}.json` beside it"
    lines += ["", f"A copy for reading. {counts}: agents get it verified from `agentwatch wait`."]
    return "\n".join((*lines, "")).encode()


def _fenced(text: str) -> list[str]:
    """The text in a fence that nothing in it can close."""
    shown, note = clean_lines(text.removesuffix("\n"))
    longest = max((len(run) for line in shown for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return [fence, *shown, fence, *([note] if note else [])]
