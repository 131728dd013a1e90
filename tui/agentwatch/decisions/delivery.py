"""Decisions delivered into the workspace, where agents can read them: a mirror of the ledger that is never trusted.

    <workspace>/.agentwatch/decisions/<decision id>.json     the very bytes of the ledger's file
    <workspace>/.agentwatch/decisions/<decision id>.md       the same as a page, for people and agents

Agents can write there, so whatever differs from the ledger is told to the operator, and what is the ledger's is put
right again. Files of other names are left where they are.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.chain import Chain, ChainEntry, ProblemKind, RefusedError, verified
from agentwatch.decisions.envelope import LARGEST, Trust
from agentwatch.decisions.errors import LedgerError, reason, remedy
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.disk import DISK, DOT, TEMPORARY, Directory, Disk, NotADirectoryOfOursError, open_dot_directory
from agentwatch.text import clean, clean_lines, exact

NAME: Final = "decisions"
NOT_DELIVERED: Final = "recorded, not delivered: "
"""In front of the reason, for people."""

_MODE: Final = 0o644
_RECORD: Final = re.compile(r"([0-9a-f]{32})\.json\Z")
MOST: Final = 1_000
"""Foreign files that are told: more of them would say the same."""

UNVERIFIED: Final = "it is signed, and no key is in sight here to verify it with"
"""Of what may well be a decision of the operator's: a forgery is what a known key did not sign."""

_SIGNED: Final = "you signed it, and it is not in the ledger: it was copied here, or the ledger has lost it"
_FENCE: Final = re.compile("`{3,}")
_SAID: Final = {
    Action.RETRY: "Retry",
    Action.ESCALATE: "Escalate",
    Action.ABORT: "Abort",
    Action.RESPOND: "Answer",
    Action.ACCEPT: "Accept the return",
}


_TELLING: Final = ("CLAUDE.md", "AGENTS.md", ".mcp.json", "opencode.json", "opencode.jsonc", "kilo.json", "kilo.jsonc")
_MOST_TOLD: Final = 4 * 1024 * 1024


def is_told_of(workspace: Path) -> bool:
    """Whether a file of the workspace tells its agents of agentwatch, so that one may read decisions. Blocks."""
    with suppress(OSError), Directory.open(workspace) as directory:
        for name in _TELLING:
            with suppress(OSError):
                if b"agentwatch" in directory.read(name, _MOST_TOLD):
                    return True
    return False


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


Known = dict[str, tuple[int, ...]]
"""Names of files that were as they should be, and what of a file changes when somebody touches it."""


def mirror_missing(
    workspace: Path,
    chain: Chain,
    bytes_of: Callable[[ChainEntry], bytes],
    trust: Trust,
    *,
    disk: Disk = DISK,
    known: Known | None = None,
) -> Mirror:
    """Deliver every decision that is not in the mirror as it should be; tell what is not the ledger's. Never raises.

    `bytes_of` gives the bytes of a decision's file in the ledger. `known` is kept from call to call, so that only files
    that changed are read. Nothing is made where nothing was decided.
    """
    known = {} if known is None else known
    entries = chain.of_attempts
    delivered, pending, trouble = list[str](), list[str](), None
    try:
        with open_dot_directory(workspace, NAME, make=bool(entries), disk=disk) as directory:
            foreign = _foreign(directory, chain, trust)
            directory.sweep()
            for decision_id, entry in entries.items():
                try:
                    edited = _deliver(directory, entry, bytes_of, known)
                except (OSError, LedgerError) as error:
                    pending.append(decision_id)
                    trouble = _in_words(error)
                else:
                    foreign += [Forgery(_path(name), "it differed from the ledger; corrected") for name in edited]
                    delivered.append(decision_id)
    except OSError as error:
        if not entries and isinstance(error, FileNotFoundError):
            return Mirror()
        return Mirror(pending=tuple(entries), reason=_in_words(error))
    return Mirror(tuple(delivered), tuple(pending), trouble, tuple(foreign[:MOST]))


def forgeries(workspace: Path, chain: Chain | None, trust: Trust, disk: Disk = DISK) -> list[Forgery]:
    """The files of the mirror that are not the ledger's, as `mirror_missing` tells them; nothing is put right.

    Without a `chain`, the ledger is out of sight: then what the operator signed is none, nor is what is no decision;
    where no key is in sight either, what is signed is told as UNVERIFIED.
    """
    try:
        with open_dot_directory(workspace, NAME, disk=disk) as directory:
            if chain is None:
                records = [one for one in _foreign(directory, Chain(), trust) if _RECORD.search(one.path)]
                return [one for one in records if one.why != _SIGNED]
            lacking = (one for entry in chain.of_attempts.values() for one in _lacking(directory, entry, {}))
            edited = [Forgery(_path(name), "it differs from the ledger") for name, is_there in lacking if is_there]
            return [*_foreign(directory, chain, trust), *edited][:MOST]
    except OSError:
        # What is not to be seen is not delivered either, which is told where something is.
        return []


def deliver(
    workspace: Path, entry: ChainEntry, bytes_of: Callable[[ChainEntry], bytes], disk: Disk = DISK
) -> str | None:
    """Deliver one decision. Returns None, or the reason why it waits. Never raises."""
    try:
        with open_dot_directory(workspace, NAME, make=True, disk=disk) as directory:
            _deliver(directory, entry, bytes_of, {})
    except (OSError, LedgerError) as error:
        return _in_words(error)
    return None


def _deliver(
    directory: Directory, entry: ChainEntry, bytes_of: Callable[[ChainEntry], bytes], known: Known
) -> list[str]:
    """Put both files there. Returns the names of those that were there otherwise."""
    edited = []
    for name, is_there in _lacking(directory, entry, known):
        if is_there:
            edited.append(name)
        _put(directory, name, bytes_of(entry) if name.endswith(".json") else page(entry.record))
    return edited


def _lacking(directory: Directory, entry: ChainEntry, known: Known) -> Iterator[tuple[str, bool]]:
    """The names of a decision's files that are not as they should be, and whether something is there."""
    for suffix in (".json", ".md"):
        name = f"{entry.record.decision_id}{suffix}"
        mark = None
        with suppress(FileNotFoundError):
            # The sha256 is that of one decision: where another took its place, the same file is as it should not be.
            mark = *directory.identity(name), int(entry.sha256, 16)
        if mark is not None and known.get(name) == mark:
            continue
        digest = _digest_of(directory, name)
        if digest == (entry.sha256 if suffix == ".json" else _digest(page(entry.record))):
            if mark is not None:
                known[name] = mark
            continue
        yield name, digest is not None


def _digest_of(directory: Directory, name: str) -> str | None:
    """The sha256 of a file, "" of what is no file or cannot be read, None where there is nothing."""
    try:
        return _digest(directory.read(name, LARGEST))
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _put(directory: Directory, name: str, data: bytes) -> None:
    try:
        directory.replace(name, data, _MODE)
    except IsADirectoryError:
        # No file can take its place. Renaming touches its name only, whatever is in it.
        directory.move(name, directory, f"{name}.{secrets.token_hex(4)}")
        directory.replace(name, data, _MODE)


def _foreign(directory: Directory, chain: Chain, trust: Trust) -> list[Forgery]:
    """The files that the ledger does not have."""
    ours = {f"{decision_id}{suffix}" for decision_id in chain.of_attempts for suffix in (".json", ".md")}
    names = [name for name in sorted(directory.names()) if name not in ours and not name.startswith(TEMPORARY)]
    return [Forgery(_path(name), why_foreign(directory, name, trust)) for name in names[:MOST]]


def why_foreign(directory: Directory, name: str, trust: Trust) -> str:
    """What a file of the mirror is that the ledger does not have."""
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


def _path(name: str) -> str:
    return f"{DOT}/{NAME}/{name}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _in_words(error: OSError | LedgerError) -> str:
    if isinstance(error, LedgerError):
        return str(error)
    if isinstance(error, NotADirectoryOfOursError):
        return reason(error)
    return f"the workspace: {reason(error)}; {remedy(error)}, it is tried again"


def page(record: Record) -> bytes:
    """The Markdown page of a decision: equal records have equal pages. Foreign text in it is made safe to show."""
    params = record.params
    lines = [f"# {_SAID[record.action]}: {exact(record.task_id)}, attempt {record.attempt}", ""]
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
    lines += [f"- {name}: {value}" for name, value in facts.items() if value]
    for title, text in (("Note", record.note), ("Amended handoff", params.handoff), ("Final report", params.report)):
        if text:
            lines += ["", f"## {title}", "", *_fenced(text)]
    if params.answers:
        lines += ["", "## Answers", ""]
        for question, answer in params.answers:
            lines.append(f"- {clean(question)}: {clean(answer)}" if question else f"- {clean(answer)}")
    counts = f"What counts is the signed `{record.decision_id}.json` beside it"
    lines += ["", f"A copy for reading. {counts}: agents get it verified from `agentwatch wait`."]
    return "\n".join((*lines, "")).encode()


def _fenced(text: str) -> list[str]:
    """The text in a fence that nothing in it can close."""
    shown, note = clean_lines(text.removesuffix("\n"))
    longest = max((len(run) for line in shown for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return [fence, *shown, fence, *([note] if note else [])]
