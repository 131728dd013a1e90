"""What is known of each file, and what a look at one gives: an observation, a wait, or nothing."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Finding, Reading, Return
from agentwatch.delegation import identity
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.sources.files.dating import Dating
from agentwatch.sources.files.names import looks_like_ours, to_path
from agentwatch.sources.files.read import BehindLinkError, FileRefusedError, FileText, read_file
from agentwatch.sources.files.rules import CHANGING, NOT_READABLE, NOT_UNDERSTOOD
from agentwatch.sources.files.scan import fingerprint
from agentwatch.sources.files.settings import FilesSettings

Reader = Callable[[str, str], Reading | None]
"""Text and path of a file to what is recognised in it."""

Keep = Callable[[str, str | None, str], None]
"""Takes the digest, the text and the path of a document that was observed."""

TICK_NS: Final = 20_000_000
"""The kernel stamps times in steps of up to 10 ms: a change right after a look may leave every stamp as it was."""

_RETRY_SECONDS: Final = 0.1
"""When a file that changed during each attempt to read it is looked at again."""


@dataclass(slots=True)
class KnownFile:
    """The state of one file between two looks."""

    fingerprint: int | None = None
    """None: look at it whenever there is an occasion."""
    racy: bool = False
    """It changed so shortly before it was read that the next change may not show in its fingerprint."""
    digest: str | None = None
    """Of what was read last, whatever it was."""
    shown: str | Finding | None = None
    """The last observation: the digest of what was seen, or why it could not be read; None for neither."""
    at: float | None = None
    """Since when it holds what was read last, in seconds since the epoch; None where that was not told."""
    incomplete: bool = False
    """What was seen broke off in the middle."""
    written_ns: int | None = None
    """When what was seen was written, by the file's own time; None where that is not known."""
    due: float | None = None
    """While what was read last is withheld: when it is emitted if it stays so, on the monotonic clock."""


class Documents:
    """The files of one workspace, by their names relative to the root; it makes the observations."""

    def __init__(
        self, root: str, settings: FilesSettings, read_document: Reader, keep: Keep, dating: Dating | None = None
    ) -> None:
        self.dating = dating or Dating()
        self._root = root
        self._settings = settings
        self._read_document = read_document
        self._keep = keep
        self._due: dict[str, float] = {}
        self._made: list[Event] = []
        self._seq = 0
        self.files: dict[str, KnownFile] = {}
        self.unread: dict[str, str] = {}
        """Why files were wanted and could not be read, whatever they are called: what they hold is not known."""

    @property
    def next_due(self) -> float:
        """When the first withheld file is to be looked at, on the monotonic clock."""
        return min(self._due.values(), default=math.inf)

    def due(self, now: float) -> list[str]:
        """The withheld files whose time has come."""
        return [path for path, due in self._due.items() if due <= now]

    def made(self) -> list[Event]:
        """The observations since the last call."""
        made, self._made = self._made, []
        return made

    def look(self, path: str, status: os.stat_result) -> None:
        """Read a file if it may have changed; `status` is what lstat says now.
        Raises FileNotFoundError where it is gone by now, BehindLinkError where it is not where its path says."""
        file = self.files.setdefault(path, KnownFile())
        now = time.monotonic()
        expired = file.due is not None and file.due <= now
        if file.fingerprint == fingerprint(status) and not file.racy and not expired:
            return
        looked_ns = time.time_ns()
        try:
            text = read_file(self._root, path, self._settings.max_bytes)
            self.unread.pop(path, None)
            file.fingerprint = text.fingerprint
            file.racy = looked_ns - text.changed_ns < TICK_NS
            self._take(path, file, text, expired=expired)
        except FileRefusedError as error:
            if isinstance(error, BehindLinkError):
                raise
            if error.rule is not CHANGING or expired:
                self._refuse(path, file, error, status)
                return
            file.fingerprint = None
            file.due = file.due or now + self._settings.settle_seconds
            self._due[path] = min(now + _RETRY_SECONDS, file.due)

    def unreachable(self, path: str, error: OSError) -> None:
        """Not even lstat reaches the file any more, though it may be there."""
        if path in self.files:
            refusal = FileRefusedError(NOT_READABLE, reason=os.strerror(error.errno or 0), lasting=False)
            self._refuse(path, self.files[path], refusal, None)

    def drop(self, path: str) -> None:
        """The file is not there any more."""
        file = self.files.pop(path, None)
        if file is not None:
            self.unread.pop(path, None)
            self._due.pop(path, None)
            self._hide(path, file)

    def _take(self, path: str, file: KnownFile, text: FileText, *, expired: bool) -> None:
        """Decide what becomes of what was read. `expired`: it has been withheld long enough."""
        same = text.digest == file.digest
        if same and not expired and not (file.due is None and self._is_rewritten(file, text)):
            if file.due is not None:
                self._due[path] = file.due
            else:
                file.written_ns = text.mtime_ns
            return
        reading = self._recognise(path, text)
        is_nothing = reading is None and not isinstance(file.shown, str)
        if same or is_nothing or (reading is not None and reading.complete):
            self._settle(path, file, text.digest)
            if reading is not None:
                self._show(path, file, text, reading)
            else:
                self._hide(path, file)
            return
        # Half of a document, or something else where a document was: perhaps somebody is about to write the rest.
        rest = self._rest(text, known=file.digest is not None)
        file.digest = text.digest
        file.due = self._due[path] = time.monotonic() + rest
        if rest <= 0:
            self._take(path, file, text, expired=True)

    def _is_rewritten(self, file: KnownFile, text: FileText) -> bool:
        """Whether a file was written since it was shown, and holds the same: perhaps a child has failed as before."""
        since = self.dating.looked_ns if file.written_ns is None else file.written_ns
        return file.shown == text.digest and since is not None and text.mtime_ns > since

    def _recognise(self, path: str, text: FileText) -> Reading | None:
        try:
            return self._read_document(text.text, to_path(path))
        except Exception as error:  # no content that an agent writes may hide the work of the others
            raise FileRefusedError(NOT_UNDERSTOOD, fault=type(error).__name__) from error

    def _rest(self, text: FileText, *, known: bool) -> float:
        """Seconds until what was read may be taken as it is. A file first seen may have rested long before."""
        if known:
            return self._settings.settle_seconds
        age = time.time() - max(text.mtime_ns, text.changed_ns) / 1e9
        return self._settings.settle_seconds - max(age, 0.0)

    def _settle(self, path: str, file: KnownFile, digest: str | None) -> None:
        file.digest = digest
        file.due = None
        self._due.pop(path, None)

    def _show(self, path: str, file: KnownFile, text: FileText, reading: Reading) -> None:
        incomplete = not reading.complete
        is_again = self._is_rewritten(file, text) and isinstance(reading.document, Return)
        file.written_ns = text.mtime_ns
        if file.shown == text.digest and file.incomplete == incomplete and not is_again:
            return
        if not reading.document.recognised and not isinstance(reading.document, Return):
            # Nothing of a packet or a checklist is in it: that is all there is to say of it.
            self._complain(path, file, reading.findings[0], min(text.mtime_ns / 1e9, time.time()))
            return
        self._keep(text.digest, text.text, path)
        # The very string that the observation carries: there is one for each document of the workspace.
        file.shown = file.digest = text.digest
        file.incomplete = incomplete
        at = self.dating.at(path, text.digest, text.mtime_ns / 1e9, reading.document, time.time(), is_again=is_again)
        findings = reading.findings
        if all(finding.rule != "DOC003" for finding in findings):  # a contract's rule against the U+FFFD of SRC006
            findings = (*text.findings, *findings)
        seen = Seen(self._next_seq(), at, to_path(path), text.digest, reading.document, findings, incomplete)
        self._made.append(seen)

    def _refuse(self, path: str, file: KnownFile, error: FileRefusedError, status: os.stat_result | None) -> None:
        """The file is not read. Said of those that look like ours, or were."""
        file.fingerprint = fingerprint(status) if status is not None and error.lasting else None
        file.racy = False
        self._settle(path, file, None)
        is_ours = file.shown is not None or looks_like_ours(path)
        is_wanted = identity.is_under_contract(path) or isinstance(file.shown, str)
        # Any other file that is written all the time is somebody's log.
        has_failed = error.rule is NOT_READABLE or (is_ours and error.rule in (CHANGING, NOT_UNDERSTOOD))
        if has_failed or is_wanted:
            self.unread[path] = error.message
        else:
            self.unread.pop(path, None)
        if is_ours:
            now = time.time()
            self._complain(path, file, error.finding, now if status is None else min(status.st_mtime, now))

    def _complain(self, path: str, file: KnownFile, finding: Finding, at: float) -> None:
        if file.shown != finding:
            file.shown = finding
            self._made.append(Unreadable(self._next_seq(), at, to_path(path), finding))

    def _hide(self, path: str, file: KnownFile) -> None:
        if file.shown is not None:
            file.shown = None
            self._made.append(Gone(self._next_seq(), time.time(), to_path(path)))

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq
