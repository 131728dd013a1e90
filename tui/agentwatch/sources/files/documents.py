"""The documents of a workspace: what is known of each file, and the events that reading it again makes."""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import NamedTuple

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Document, Fields, Finding, OpenDocument, Return, TodoList
from agentwatch.delegation import links
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.disk import Fingerprint, fingerprint
from agentwatch.sources.files.read import (
    CHANGING,
    NOT_READABLE,
    NOT_UNDERSTOOD,
    BehindLinkError,
    FileRefusedError,
    FileText,
    looks_like_ours,
    read_file,
    to_name,
    to_path,
)

Reader = Callable[[str, str], Document | None]  # Text and path of a file to what is recognised in it
Committed = Callable[[str, float], float | None]
"""The name of a file and when it was written, to when the commit was made that it still holds; None: not known."""

_TICK_NS = 20_000_000
"""The kernel stamps times in steps of up to 10 ms: a change right after a file was read may leave every stamp as it
was."""
_FIRST = 1_577_836_800.0  # 2020 began: before that no agent handed work to another
_LATE_SECONDS = 60.0  # Before now, that the time of a new change may say; one that is older was set, or kept


class Elsewhere(NamedTuple):
    """Known files that need no look: those outside these directories, if they last changed `before` (epoch seconds)."""

    directories: Set[str]
    before: float


@dataclass(slots=True)
class KnownFile:
    """The state of one file. Without a `fingerprint` it is read again whenever there is an occasion.

    `digest` is of what was read last, and `at` since when it holds that (epoch seconds). `shown` is the last event: the
    digest of what was seen, `incomplete` if it broke off, or why it could not be read."""

    digest: str | None = None
    shown: str | Finding | None = None
    at: float | None = None
    fingerprint: Fingerprint | None = None
    incomplete: bool = False


class Recalled(NamedTuple):
    """All that a history tells at one moment. `files` are by path: what is not `shown` was gone. `watched_at` is when
    they were last looked at (epoch seconds), `elsewhere` of one task only."""

    events: Sequence[Event] = ()
    files: Mapping[str, KnownFile] = {}
    watched_at: float | None = None
    elsewhere: Elsewhere | None = None


class ParsedDocuments:
    """Reads the documents of a workspace, and remembers the `most` that were read last, so that each is parsed once for
    the tree and the evidence."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._known: dict[str, tuple[str, OpenDocument | None]] = {}

    def open(self, text: str, name: str) -> OpenDocument | None:
        """Recognise a text, as `read_document` does."""
        from agentwatch.contracts.reading import read_document

        with self._lock:
            known = self._known.pop(name, None)
            if known is None or known[0] != text:
                known = text, read_document(text, name)
            self._known[name] = known
            if len(self._known) > self._most:
                del self._known[next(iter(self._known))]
            return known[1]


class Documents:
    """The files of one workspace by their names, and since when each holds what it does (epoch seconds). All but
    `content` belongs to one thread."""

    settle_seconds = 2.0  # How long a half-written file must rest before it is shown as broken
    most_text_bytes = 1024 * 1024
    """Of the texts last read, until the history has recorded them: what a file still holds is read from it again."""

    def __init__(
        self, root: str, settings: Settings, read_document: Reader | None, committed: Committed | None
    ) -> None:
        self._root, self._settings = root, settings
        self._read_document, self._committed = read_document, committed
        self._places: dict[str, tuple[str, float]] = {}  # By digest: the file that held it last, and since when
        self._last: dict[str, tuple[str, float, float]] = {}
        """By file: the digest of what it held last, since when, and until when it was certainly not written again."""
        self._elsewhere: Elsewhere | None = None
        self.watched_until: float | None = None  # The workspace was watched before, until then; None where it was not
        self.is_watching = False  # All that was there has been read: from now on every change is seen as it happens
        self.events: list[Event] = []
        self._seq = count(1)
        self._texts: dict[str, str] = {}
        self._text_bytes = 0
        self.files: dict[str, KnownFile] = {}
        self.withheld: dict[str, float] = {}
        """Files of which what was read last is told only if it stays so until then, on the monotonic clock."""
        self.unread: dict[str, str] = {}
        """Why files were wanted and could not be read, whatever they are called: what they hold is not known."""

    def remember(self, recalled: Recalled) -> None:
        """Take over what was known of the files at the last look, before any is read. Without a file the first look is
        perhaps still going on."""
        self._elsewhere = recalled.elsewhere
        if recalled.files:
            self.watched_until = recalled.watched_at
        for path, file in recalled.files.items():
            name = to_name(path)
            if file.digest and file.at is not None:
                self._last[name] = file.digest, file.at, max(file.at, recalled.watched_at or 0.0)
                if file.shown is not None:
                    self._places[file.digest] = name, file.at
            if not file.digest or file.shown is not None:
                self.files[name] = file

    def content(self, digest: str) -> str | None:
        """The text of a digest, None where it is neither kept nor in its file any more. It may read that file; any
        thread may call it."""
        text = self._texts.get(digest)
        if text is None and digest in self._places:
            with suppress(FileRefusedError, FileNotFoundError):
                read = read_file(self._root, self._places[digest][0])
                return read.text if read.digest == digest else None
        return text

    def absolute(self, path: str) -> str:
        # Not the root with a slash at its end: that would follow it where it is a link by now.
        return f"{self._root.rstrip('/')}/{path}" if path else self._root

    def status(self, path: str) -> os.stat_result | None:
        try:
            return os.lstat(self.absolute(path))
        except OSError:
            return None

    def may_differ(self, path: str, status: os.stat_result | None) -> bool:
        """Whether a file has perhaps changed since it was read; `status` is what lstat says now."""
        file = self.files.get(path)
        if file is None or path in self.withheld or status is None:
            return True
        elsewhere = self._elsewhere
        if elsewhere is not None and file.shown is not None and status.st_ctime < elsewhere.before:
            return links.slot(to_path(path))[0] in elsewhere.directories
        return file.fingerprint != fingerprint(status)

    def read(self, path: str) -> None:
        """Read a file if it may have changed; it is gone where it is not where its path says."""
        file, status = self.files.setdefault(path, KnownFile()), self.status(path)
        if not self.may_differ(path, status):
            return
        began_ns = time.time_ns()
        try:
            text = read_file(self._root, path, self._settings.max_bytes)
            self.unread.pop(path, None)
            # Changed so shortly before it was read that the next change may not show in its fingerprint.
            is_racy = began_ns - text.fingerprint[1] < _TICK_NS
            file.fingerprint = None if is_racy else text.fingerprint
            self._apply(path, file, text)
        except (FileNotFoundError, BehindLinkError):
            self.drop(path)
        except FileRefusedError as error:
            now = time.monotonic()
            due = self.withheld.setdefault(path, now + self.settle_seconds)
            if error.rule != CHANGING or due <= now:
                self._refuse(path, file, error, status)

    def drop(self, path: str) -> None:
        """The file is not there any more."""
        file = self.files.pop(path, None)
        if file is not None:
            self.unread.pop(path, None)
            self.withheld.pop(path, None)
            self._complain(path, file, None, time.time())

    def _apply(self, path: str, file: KnownFile, text: FileText) -> None:
        """Decide what becomes of what was read."""
        written, same = text.fingerprint[0] / 1e9, text.digest == file.digest
        # Written since it was shown, and holding the same: perhaps a child has failed as before.
        is_again = file.shown == text.digest and written > self._last.get(path, ("", 0.0, math.inf))[2]
        due, now = self.withheld.get(path), time.monotonic()
        if same and (not is_again if due is None else due > now):
            return
        if self._read_document is None:
            # In the source's thread: the models of the contracts take as long to load as a screen to appear.
            from agentwatch.contracts.reading import read_document

            self._read_document = read_document
        try:
            reading = self._read_document(text.text, to_path(path))
        except Exception as error:  # no content that an agent writes may hide the work of the others
            raise FileRefusedError(NOT_UNDERSTOOD, fault=type(error).__name__) from error
        # Half of a document, or something else where a document was: perhaps somebody is about to write the rest. A
        # file first seen may have rested long before.
        is_half = isinstance(file.shown, str) if reading is None else not reading.complete
        rest = self.settle_seconds
        if file.digest is None:
            rest -= max(time.time() - max(text.fingerprint[:2]) / 1e9, 0.0)
        file.digest = text.digest
        if is_half and not same and rest > 0:
            self.withheld[path] = now + rest
            return
        self.withheld.pop(path, None)
        if reading is None:
            self._complain(path, file, None, time.time())
            return
        is_return = isinstance(reading.document, Return)
        if not reading.document.recognised and not is_return:
            # Nothing of a packet or a checklist is in it: that is all there is to say of it.
            self._complain(path, file, reading.findings[0], min(written, time.time()))
        elif file.shown != text.digest or file.incomplete == reading.complete or (is_return and is_again):
            if text.digest not in self._texts:
                self._texts[text.digest] = text.text
                self._text_bytes += len(text.text)
                while self._text_bytes > self.most_text_bytes and len(self._texts) > 1:
                    self._text_bytes -= len(self._texts.pop(next(iter(self._texts))))
            # The very string that the event carries: there is one for each document of the workspace.
            file.shown, file.incomplete = text.digest, not reading.complete
            at = self._date(path, text.digest, written, reading.document, is_again=is_return and is_again)
            findings, seq = (*text.findings, *reading.findings), next(self._seq)
            self.events.append(Seen(seq, at, to_path(path), text.digest, reading.document, findings, file.incomplete))

    def _refuse(self, path: str, file: KnownFile, error: FileRefusedError, status: os.stat_result | None) -> None:
        """The file is not read. Told of those that look like ours, or were."""
        file.fingerprint = fingerprint(status) if status is not None and error.lasting else None
        file.digest = None
        self.withheld.pop(path, None)
        self.unread.pop(path, None)
        is_ours = file.shown is not None or looks_like_ours(path)
        is_wanted = links.is_under_contract(path) or isinstance(file.shown, str)
        # Any other file that is written all the time is somebody's log.
        if is_wanted or error.rule == NOT_READABLE or (is_ours and error.rule in (CHANGING, NOT_UNDERSTOOD)):
            self.unread[path] = error.message
        if is_ours:
            now = time.time()
            self._complain(path, file, error.finding, now if status is None else min(status.st_mtime, now))

    def _complain(self, path: str, file: KnownFile, finding: Finding | None, at: float) -> None:
        """Tell why the file cannot be read; None: that it is gone."""
        if file.shown != finding:
            file.shown, seq, path = finding, next(self._seq), to_path(path)
            self.events.append(Gone(seq, at, path) if finding is None else Unreadable(seq, at, path, finding))

    def _date(self, name: str, digest: str, written: float, document: Fields, *, is_again: bool) -> float:
        """Since when a file holds this, which was `written` by the file's own time; `is_again`: once more."""
        # At the first look it was perhaps copied: what the document says, or git, comes before the time of the file.
        # Later that must fit: nobody puts a failure into the past. Being moved is no sign of life.
        now = time.time()
        written = min(written, now)
        held, at, until = self._last.get(name, ("", 0.0, 0.0))
        if held != digest or written > until or is_again:
            place, at = self._places.get(digest, (name, 0.0))
            there, _, kept_until = self._last.get(place, ("", 0.0, 0.0))
            # The same checklist may be that of many tasks: only one that was moved kept its time.
            is_own = isinstance(document, TodoList) and (there != digest or written > kept_until)
            if place == name or held == digest or is_own:
                since = now - _LATE_SECONDS if self.is_watching else self.watched_until
                stated = document.stated_at if isinstance(document, Return) else None
                if since is not None:
                    at = written if written >= since else now
                elif stated is not None and _FIRST <= stated <= written:
                    at = stated
                else:
                    committed = self._committed(name, written) if self._committed is not None else None
                    at = written if committed is None else min(committed, written)
            self._last[name] = digest, at, max(at, written)
        self._places[digest] = name, at
        return at
