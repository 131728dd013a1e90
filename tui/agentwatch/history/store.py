"""Keeps the history of a workspace in an SQLite file: every handoff and return that was ever observed.

A new screen first applies the recorded events, whose numbers (`seq`) are negative. Sessions are private, so they are
not copied. Returns that break their contract are also appended to `.agentwatch/errors.json`. Each operation opens the
database anew: another process may have replaced it. Reading leaves no files, so it works in a sandbox.

The tables:

observations  versions of files, oldest record first. `digest` is null for a deleted file; `run`, `ordinal` are unused.
texts         the compressed document of each digest. The oldest are dropped first.
checks        the false claims of a return since a time, as a JSON list. `claims` is null if no claim is false.
times         `watched` is when the workspace was last watched.
asides        actions of the operator on tasks: acknowledged, snoozed, looked at (`seen`). Nothing before `began` is
              new. `undo` takes back the actions with its `name`. Earlier versions wrote `over`.
"""

import json
import os
import sqlite3
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from agentwatch.background import Pollable
from agentwatch.contracts.shapes import Return, Severity
from agentwatch.delegation.events import Checked, Claim, Event, Gone, Seen, has_false_claim
from agentwatch.delegation.links import ARTIFACT_MISSING, DUPLICATE_RETURN, MAX_VERSIONS, author_of, slot_of
from agentwatch.delegation.task import State, Task
from agentwatch.disk import DOT, Directory, NotADirectoryOfOursError, NotRegularError, open_dot_directory
from agentwatch.history.recording import outline_of, pack_text, read_version, unpack_text
from agentwatch.sources.files.source import HistorySnapshot, KnownFile
from agentwatch.sources.sessions.reader import adapter_of, is_time
from agentwatch.state import HISTORY, record_first_watch, state_directory

LIMIT_BYTES = 64 * 1024 * 1024  # the most bytes of compressed texts that are kept: about 50,000 returns

_LATEST_SECONDS = 60.0  # a change of a file is recorded within this time
_WAITING = 10_000  # events kept in memory while the disk refuses them; the oldest are dropped
# Selects for each file its last digest, the time of that digest, and whether the file still exists.
_LAST = """SELECT held.path, digest, at, held.id = latest FROM observations AS held JOIN
    (SELECT max(id) AS latest, max(CASE WHEN digest IS NOT NULL THEN id END) AS seen FROM observations GROUP BY path)
    ON held.id = seen"""
# Deletes the oldest texts beyond a total size, but keeps the last text of each file.
_SHRINK = f"""DELETE FROM texts WHERE digest NOT IN (SELECT digest FROM ({_LAST})) AND digest IN (
    SELECT digest FROM (SELECT digest, sum(length(packed)) OVER (ORDER BY last DESC) AS size FROM texts
    LEFT JOIN (SELECT digest, max(id) AS last FROM observations GROUP BY digest) USING (digest)) WHERE size > ?)"""  # noqa: S608

ERRORS = "errors.json"
MOST_ENTRIES = 1_000

_MAX_BYTES = 16 * 1024 * 1024
_LONGEST = 300  # characters of one text in an entry
_MOST_ERRORS = 10

Entry = dict[str, Any]
T = TypeVar("T")


# The SQLite file of a workspace. If the file is damaged, it is renamed, and a new file is begun.

APPLICATION_ID = 0x61677768  # `agwh`

MIGRATIONS = (
    """
    CREATE TABLE observations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, ordinal INTEGER NOT NULL, at REAL NOT NULL,
        path TEXT NOT NULL, digest TEXT, outline TEXT, UNIQUE (run, ordinal)
    );
    CREATE INDEX observations_path ON observations (path, id);
    CREATE INDEX observations_digest ON observations (digest);
    CREATE TABLE texts (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, packed BLOB NOT NULL);
    """,
    # These three migrations made tables that are not used any more.
    "",
    "",
    "",
    """
    CREATE TABLE times (name TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE asides (
        id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, at REAL NOT NULL, task_id BLOB NOT NULL DEFAULT x'',
        mark TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '', until REAL
    );
    CREATE INDEX asides_task ON asides (task_id);
    """,
    """
    CREATE TABLE checks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL, digest TEXT NOT NULL, at REAL NOT NULL, claims TEXT
    );
    CREATE INDEX checks_path ON checks (path, id);
    """,
)  # Never edit a migration: append a new one. `PRAGMA user_version` counts the applied migrations.

SCHEMA_VERSION = len(MIGRATIONS)

_NEWEST = 50  # if the version number is larger, the file is damaged
_BUSY_SECONDS = 5.0
# Somebody may have damaged or exchanged the file: run nothing in its schema, and check its cells. SQLite makes no
# temporary files in a shared directory.
_SETTINGS = """PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;
    PRAGMA synchronous = EXTRA"""


class UnusableError(Exception):
    """The database cannot be read or written. The message gives the reason and the remedy."""


class Database:
    """The SQLite file in a state directory. Any thread may call the methods."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.path = directory / HISTORY
        self.set_aside = ""  # a sentence for the operator after a damaged file was renamed, else ""
        self._examined: tuple[int, int] | None = None  # device and inode of the file that was found undamaged

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run `work` on the database and return its result. Return None if there is no file. Raise UnusableError."""
        try:
            self.path.stat()
            with self._connect() as connection:
                return work(connection)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnusableError(f"the history cannot be read: {self.path}: {reason}") from error

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction, and return its result. Replace a missing or damaged file."""
        try:
            # Take the lock: another process may find the same damage, and would rename the new file.
            with Directory.open_or_make(self.directory) as directory, directory.locked():
                for _ in range(3):
                    try:
                        return self._write(work)
                    except sqlite3.Error as error:
                        if not _is_damage(error):
                            raise UnusableError(
                                f"{self.path}: {error}; free space or permissions, then start again"
                            ) from error
                        aside = f"history.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.db"
                        # Move the journal first: SQLite would apply a leftover journal to the new file.
                        for suffix in ("-journal", "-wal", "-shm", ""):
                            with suppress(FileNotFoundError):
                                directory.move(f"{HISTORY}{suffix}", directory, f"{aside}{suffix}")
                        why = f"the history was damaged ({error}) and set aside as {aside}"
                        self.set_aside = f"{why}; a new one was begun"
        except OSError as error:
            reason = error.strerror or str(error)
            raise UnusableError(f"{self.directory}: {reason}; make it a directory that you may write to") from error
        raise UnusableError(f"{self.directory}: a new history is damaged at once; check the disk")

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        # Create the file here with a fixed mode, which its journal inherits. Never open an existing file: closing it
        # would release the locks that another thread holds through SQLite.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with self._connect() as connection:
            status = self.path.stat()
            if self._examined != (status.st_dev, status.st_ino):
                if (version := check_file(connection)) < SCHEMA_VERSION:
                    with connection:
                        _migrate(connection, version)
                # This fails while an earlier version of agentwatch has the file open.
                with suppress(sqlite3.OperationalError):
                    connection.execute("PRAGMA journal_mode = DELETE")
                self._examined = status.st_dev, status.st_ino
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        address = f"file:{quote(os.fsencode(self.path.absolute()))}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            connection.executescript(_SETTINGS)
            if SCHEMA_VERSION < version_of(connection) <= _NEWEST:
                raise UnusableError(f"{self.path} was written by a newer agentwatch; update this one")
            yield connection
        except UnicodeDecodeError as error:
            # Do not show SQLite's message, which quotes the broken text.
            raise sqlite3.DatabaseError("its structure is broken") from error
        finally:
            connection.close()


def check_file(connection: sqlite3.Connection) -> int:
    """Return the version of an undamaged database, or 0 for an empty file. Raise sqlite3.Error if it is damaged."""
    application, version = _select_value(connection, "PRAGMA application_id"), version_of(connection)
    if not application and not version and not _select_value(connection, "SELECT count(*) FROM sqlite_master"):
        return 0
    if application != APPLICATION_ID or not 0 < version <= _NEWEST:
        raise sqlite3.DatabaseError("it is not a history of agentwatch")
    if _select_value(connection, "PRAGMA quick_check(1)") != "ok":
        raise sqlite3.DatabaseError("its structure is broken")
    return version


def query(connection: sqlite3.Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of a query. Return [] if the database is older than the table. Raise sqlite3.Error."""
    try:
        return connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if str(error).startswith("no such") and version_of(connection) < SCHEMA_VERSION:
            return []
        raise


def _migrate(connection: sqlite3.Connection, version: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in "".join(MIGRATIONS[version:]).split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _select_value(connection: sqlite3.Connection, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


def version_of(connection: sqlite3.Connection) -> int:
    """Return the number of applied migrations. Raise sqlite3.Error."""
    return int(_select_value(connection, "PRAGMA user_version"))


def _is_damage(error: sqlite3.Error) -> bool:
    """Tell whether an error means a damaged file, not a full or busy disk."""
    # The statements of this module are correct. If one fails, the tables are not those of agentwatch.
    is_wrong = getattr(error, "sqlite_errorcode", 0) & 0xFF in (0, sqlite3.SQLITE_ERROR)
    return isinstance(error, sqlite3.DatabaseError) and (is_wrong or not isinstance(error, sqlite3.OperationalError))


# Content of the database


class History(Database):
    """The recorded events of a workspace. One thread writes, and any thread may read. `notice` tells of errors."""

    def __init__(self, directory: Path, *, limit: int = LIMIT_BYTES):
        """Create the object. `limit` is the most bytes of compressed texts that are kept."""
        super().__init__(directory)
        self._limit = limit
        # Events that are not on the disk yet, with their compressed texts.
        self._waiting: deque[tuple[Seen | Gone | Checked, bytes | None]] = deque(maxlen=_WAITING)
        self._problem = ""
        # Whether the workspace was read to the end once, so that no file is missing in the history.
        self.is_complete = False

    @property
    def notice(self) -> str | None:
        """A message if the history was damaged or cannot be used, else None. It may quote untrusted text."""
        return self._problem or self.set_aside or None

    def open_for_writing(self) -> None:
        """Create the database if it is missing, check it, and delete surplus texts."""
        try:
            self.write(lambda connection: connection.execute(_SHRINK, (self._limit,)))
        except UnusableError as error:
            self._problem = f"attempts are remembered only until agentwatch ends: {error}"

    def record(self, events: Iterable[Event], text_of: Callable[[str], str | None]) -> bool:
        """Record the events of files and claims. Return False if writing failed; the next call tries again."""
        for event in events:
            if isinstance(event, Seen | Gone | Checked):
                text = text_of(event.digest) if isinstance(event, Seen) else None
                self._waiting.append((event, None if text is None else pack_text(text)))
        if not self._waiting:
            return True
        try:
            self.write(lambda connection: _write_versions(connection, self._waiting, self.is_complete))
        except UnusableError as error:
            self._problem = f"the last attempts are not saved yet: {error}"
            return False
        self._waiting.clear()
        self._problem = ""
        return True

    def recall(self, about: str | None = None) -> HistorySnapshot:
        """Return all recorded events. If `about` is a task id, return only events in the task's directories."""
        return self._read(lambda connection: _select_recorded(connection, about), HistorySnapshot())

    def text(self, digest: str) -> str | None:
        """Return the text with a digest. Return None if the text was dropped or never recorded."""
        return self._read(lambda connection: _select_text(connection, digest), None)

    def _read(self, work: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        try:
            found = self.read(work)
        except UnusableError as error:
            self._problem = str(error)
            return nothing
        return nothing if found is None else found


def _write_versions(
    connection: sqlite3.Connection, events: Iterable[tuple[Seen | Gone | Checked, bytes | None]], is_complete: bool
) -> None:
    for event, packed in events:
        if isinstance(event, Checked):
            _write_check(connection, event)
            continue
        path, digest = event.path, event.digest if isinstance(event, Seen) else None
        newest = "SELECT digest, at < ? FROM observations WHERE path = ? ORDER BY id DESC LIMIT 1"
        before, is_later = connection.execute(newest, (event.at, path)).fetchone() or (None, True)
        if isinstance(event, Seen):
            # Record an equal return that was written later: it may belong to another attempt.
            is_known = digest == before and not (is_later and isinstance(event.document, Return))
            # Another process may have recorded the same version, and later versions after it.
            same = "SELECT 1 FROM observations WHERE path = ? AND digest = ? AND at = ?"
            is_known = is_known or connection.execute(same, (path, digest, event.at)).fetchone() is not None
        else:
            is_known = before is None or not is_later
        if is_known:
            continue
        connection.execute(
            "INSERT INTO observations (run, ordinal, at, path, digest, outline)"
            " VALUES ('', (SELECT coalesce(max(id), 0) + 1 FROM observations), ?, ?, ?, ?)",
            (event.at, path, digest, outline_of(event) if isinstance(event, Seen) else None),
        )
        _drop_surplus_rows(connection, "observations", path)
        if packed is not None:
            connection.execute("INSERT OR IGNORE INTO texts (digest, packed) VALUES (?, ?)", (digest, packed))
    _write_watch_time(connection, is_complete)


def _write_check(connection: sqlite3.Connection, event: Checked) -> None:
    """Record a return's false claims at its first check, and later when the first appears or the last goes."""
    # A session's path may have untrusted text, so it is stored as bytes.
    path, false = event.path.encode("utf-8", "surrogatepass"), [one for one in event.claims if has_false_claim((one,))]
    newest = "SELECT claims IS NOT NULL FROM checks WHERE path = ? AND digest = ? ORDER BY id DESC LIMIT 1"
    before = connection.execute(newest, (path, event.digest)).fetchone()
    if not before or before[0] != bool(false):
        claims = json.dumps(false, ensure_ascii=False).encode(errors="replace") if false else None
        values = path, event.digest, event.at, claims
        connection.execute("INSERT INTO checks (path, digest, at, claims) VALUES (?, ?, ?, ?)", values)
        _drop_surplus_rows(connection, "checks", path)


def _drop_surplus_rows(connection: sqlite3.Connection, table: str, path: str | bytes) -> None:
    """Delete rows of one file beyond MAX_VERSIONS. The first row and the latest rows stay."""
    rows = query(connection, f"SELECT id FROM {table} WHERE path = ? ORDER BY id", path)  # noqa: S608
    old = rows[1 : max(len(rows) - MAX_VERSIONS + 1, 1)]
    connection.executemany(f"DELETE FROM {table} WHERE id = ?", old)  # noqa: S608


def _write_watch_time(connection: sqlite3.Connection, is_complete: bool) -> None:
    for name in ("watched", "complete") if is_complete else ("watched",):
        connection.execute("INSERT OR REPLACE INTO times VALUES (?, ?)", (name, time.time()))


def _select_text(connection: sqlite3.Connection, digest: str) -> str | None:
    rows = query(connection, "SELECT packed FROM texts WHERE digest = ?", digest)
    return unpack_text(rows[0][0]) if rows else None


def _select_recorded(connection: sqlite3.Connection, about: str | None) -> HistorySnapshot:
    # Use one transaction, so that a version which another screen records now is in all results or in none.
    connection.execute("BEGIN")
    rows = query(connection, "SELECT id, at, path, digest, outline FROM observations ORDER BY id")
    last = query(connection, _LAST)
    times = dict(query(connection, "SELECT name, at FROM times"))
    checks = [] if about is not None else query(connection, "SELECT path, digest, at, claims FROM checks ORDER BY id")
    connection.execute("COMMIT")
    limited_to = None
    quoted = json.dumps(about, ensure_ascii=False)[1:-1]
    # The directories with files that may belong to the task. A file can belong only to a task of its own directory.
    directories = {
        slot_of(path)[0]
        for _, _, path, digest, outline in (rows if about is not None and "complete" in times else ())
        if (about or "") in path or (digest and (outline is None or quoted in outline))
    }
    if directories:
        limited_to = directories, times["complete"] - _LATEST_SECONDS
        rows = [row for row in rows if slot_of(row[2])[0] in directories]
    files = {
        path: KnownFile(digest=digest, shown=digest if is_there else None, at=at if isinstance(at, float) else None)
        for path, digest, at, is_there in last
        if digest and isinstance(digest, str)
    }
    return HistorySnapshot([*_parse_events(connection, rows, checks)], files, times.get("watched"), limited_to)


def _parse_events(
    connection: sqlite3.Connection, rows: Sequence[tuple[Any, ...]], checks: Iterable[tuple[Any, ...]]
) -> Iterator[Event]:
    """Yield the events of these rows, parsed with the current contracts. Skip unreadable rows."""
    checked = defaultdict[tuple[str, str], list[Checked]](list)
    for path, digest, at, claims in checks:
        with suppress(ValueError, TypeError):
            false = adapter_of(tuple[Claim, ...]).validate_json(claims) if claims else ()
            one = Checked(0, float(at), str(path, "utf-8", "surrogatepass"), digest, false)
            checked[one.path, digest].append(one)
    for row_id, at, path, digest, outline in rows:
        seq = row_id - rows[-1][0] - 1
        if not (isinstance(at, float) and isinstance(path, str)):
            continue
        if digest is None:
            yield Gone(seq, at, path)
        elif isinstance(digest, str):
            reading = read_version(path, outline, partial(_select_text, connection, digest))
            if reading:
                yield Seen(seq, at, path, digest, reading.document, reading.findings, not reading.complete)
            yield from checked.pop((path, digest), ())
    for left in checked.values():
        yield from left


class Recorder(History, Pollable):
    """Records the events of a watched workspace. If `read_only`, writes nothing into the workspace itself."""

    def __init__(self, workspace: Path, text_of: Callable[[str], str | None], *, read_only: bool = False):
        super().__init__(state_directory(workspace))
        self._workspace, self._text_of, self._read_only = workspace, text_of, read_only
        self._events: deque[Event] = deque()
        self._entries: deque[Entry] = deque()
        self._unreported: str | None = None

    @property
    def notice(self) -> str | None:  # type: ignore[override]
        return super().notice or self._unreported

    def open(self) -> HistorySnapshot:
        """Open the history for writing, and return its content. Blocks."""
        if not self._read_only:
            record_first_watch(self.directory, time.time())
        self.open_for_writing()
        return self.recall()

    def queue_events(self, events: Iterable[Event]) -> None:
        """Remember these events. The next `poll` records them. Any thread may call it."""
        self._events.extend(events)

    def queue_faults(self, tasks: Iterable[Task]) -> None:
        """Remember the broken returns of these tasks. The next `poll` appends them to errors.json."""
        if not self._read_only:
            self._entries += [entry for task in tasks for entry in fault_entries(task)]

    def poll(self) -> Sequence[Event]:
        """Write the remembered events and faults to the disk. Blocks."""
        if self._events:
            self.record([self._events.popleft() for _ in range(min(len(self._events), _WAITING))], self._text_of)
        if entries := [self._entries.popleft() for _ in range(len(self._entries))]:
            self._unreported = append_errors(self._workspace, entries)
        return ()

    def close(self) -> None:
        self.record((), self._text_of)
        # If this write fails, the next start shows a few old tasks as new.
        with suppress(UnusableError):
            self.write(lambda connection: _write_watch_time(connection, self.is_complete))


# errors.json is valid JSON at all times. Its content is untrusted, because agents can write the file.


def fault_entries(task: Task) -> list[Entry]:
    """Return entries of errors.json: one for each attempt of the task with a return that breaks its contract."""
    entries: list[Entry] = []
    for attempt in task.attempts:
        if (returned := attempt.returned) is None:
            continue
        paths = {returned.path, attempt.rival.path if attempt.rival else ""}
        placed = [one for one in task.findings if one.path in paths]
        broken = [one for one in placed if attempt is task.latest and one.rule == ARTIFACT_MISSING.id]
        if attempt.state is State.INVALID and not attempt.ended_without_result:
            own = [one for one in returned.findings if one.severity is Severity.ERROR]
            # Two contradictory returns are both valid documents, but leave the task without a result.
            broken = own or [one for one in placed if one.severity is Severity.ERROR or one.rule == DUPLICATE_RETURN.id]
        if not broken:
            continue
        agent = (author_of(attempt.result) if attempt.result else None) or task.agent
        # Use 0 for an impossible time: anybody can set a file's time to any year.
        at = returned.at if is_time(returned.at) else 0
        entries.append(
            {
                "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
                "agent": agent and agent[:_LONGEST],
                "task_id": task.task_id[:_LONGEST],
                "path": returned.path[:_LONGEST],
                "digest": returned.digest,
                "rules": list(dict.fromkeys(one.rule for one in broken)),
                "errors": [
                    {"rule": one.rule, "line": one.line, "message": one.message[:_LONGEST]}
                    for one in broken[:_MOST_ERRORS]
                ],
                # The contract asks for this (subagent-return, "Validation Failures").
                "recommendation": f"Fix {agent or task.task_id} subagent return format"[:_LONGEST],
            }
        )
    return entries


def append_errors(workspace: Path, new: Sequence[Entry]) -> str | None:
    """Append the new entries to errors.json. Return a message for the operator, or None. Blocks."""
    notice = None
    try:
        with open_dot_directory(workspace, make=True) as directory:
            directory.remove_abandoned()
            try:
                text = _errors_text(json.loads(directory.read(ERRORS, _MAX_BYTES))["errors"], new)
            except FileNotFoundError:
                text = _errors_text([], new)
            except (NotRegularError, PermissionError, ValueError, TypeError, KeyError, RecursionError):
                # Rename errors.json. This is safe even if it is a link, a pipe, a directory or a large file.
                aside = f"errors.broken-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.json"
                directory.move(ERRORS, directory, aside)
                notice = f"{DOT}/{ERRORS} was broken and set aside as {aside}; a new one was begun"
                text = _errors_text([], new)
            if text:
                directory.replace(ERRORS, text.encode("ascii"), 0o644)
    except NotADirectoryOfOursError as error:
        return error.strerror
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{DOT}/{ERRORS} cannot be written: {reason}; free space or correct the permissions"
    return notice


def _errors_text(before: Sequence[Entry], new: Sequence[Entry]) -> str:
    """Return the text of errors.json with the new entries. Return "" if no entry is new."""
    entries: dict[tuple[str, str], Entry] = {}
    for one in (*before, *new):
        entries.setdefault((one["task_id"], one["digest"]), one)
    if len(entries) == len(before):
        return ""
    # Joined by hand: `json.dumps` with indentation takes ten times as long.
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in [*entries.values()][-MOST_ENTRIES:])
    return f'{{"schema_version": 1, "errors": [\n{lines}\n]}}\n'
