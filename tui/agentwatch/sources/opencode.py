"""The reader of OpenCode and Kilo Code, which keep their sessions in an SQLite database.

The database is read again when the `stat` of its files shows a write, each time with a new connection. A session that
has changed is read again as a whole."""

import errno
import fcntl
import json
import os
import re
import sqlite3
import stat
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from agentwatch.delegation.decision import Permit, Permitter
from agentwatch.delegation.events import Message, Run, RunState, StartedBy, Turn
from agentwatch.delegation.standing import IDLE
from agentwatch.disk import Fingerprint, spellings
from agentwatch.sources.sessions.entries import (
    CommandEnd,
    Entry,
    EntryKind,
    RunTranscript,
    WholeTranscript,
    main_argument,
)
from agentwatch.sources.sessions.fields import Fields, int_at, nested, object_in, question_text, string, sum_of, text
from agentwatch.sources.sessions.processes import is_on_local_disk
from agentwatch.sources.sessions.reader import Change, Progress, StoreReader, count_noun
from agentwatch.sources.sessions.runs import NO_ACCOUNT, NO_CALL, OPEN, Account, AgentCall, Keep, RunStatus, run_of
from agentwatch.sources.sessions.store import contains
from agentwatch.state import may_exist

LARGEST_RECORD = 16 * 1024 * 1024  # characters of JSON; only records with attached files are larger
_LATEST = 1 << 43  # milliseconds since 1970, in the year 2248; a later time is not plausible

_LOCKED_SECONDS = 0.1
_LONGEST_LOOK = 5.0  # a read is ended after so many seconds, because a forged database could make it endless
_STEPS = 100_000  # steps of SQLite's machine (a few milliseconds) between two checks of this limit
_USERS_LOCK = 128  # each process that uses the database locks this byte of its file `-shm` (UNIX_SHM_DMS in SQLite)
# The fcntl command that shows locks of all processes, including our own. Only Linux has it.
_ASK_FOR_LOCK = getattr(fcntl, "F_OFD_GETLK", None)
_LOCK = "hhqqi"  # struct flock: kind, origin, first byte, length, process

Signature = tuple[Fingerprint | None, ...]


class SessionRow(NamedTuple):
    """One session. Times are in epoch seconds. Any change in the session changes `mark`."""

    id: str
    parent_id: str | None
    title: str
    created: float
    mark: tuple[object, ...]


class Record(NamedTuple):
    """A message, or a part of a message. A part has the id of its message in `message_id`, and a message has "". Times
    are in epoch seconds, 0 if unknown. `data` is empty if it is no JSON object or too large. Later records have a
    greater `row`."""

    id: str
    message_id: str
    created: float
    updated: float
    data: Fields
    row: int


class ForeignDatabase:
    """A database of another program. It is only read."""

    _shared: int | None = None  # the open file `-shm`; closing it would drop all locks of our process on the file

    def __init__(self, path: Path):
        self._given = path

    @property
    def _path(self) -> str:
        """The real path: if the database is a symbolic link, its log is beside the target."""
        return os.path.realpath(self._given)

    def signature(self) -> Signature:
        """Return the fingerprints of the database, its log and its journal, or None for a missing file. A write changes
        the result, unless the clock shows the same time as at the write before."""
        return tuple(_fingerprint_of(self._path + suffix) for suffix in ("", "-wal", "-journal"))

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection whose queries all see the same state. Any thread may call this. Raise OSError or
        sqlite3.Error if the database cannot be read."""
        path, before = self._path, self.signature()
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
            raise OSError("it is no regular file")
        is_closed = before[1:] == (None, None)
        is_shared = before[1] is not None and os.path.exists(f"{path}-shm")
        options = "&immutable=1" if is_closed else "&readonly_shm=1" if is_shared else ""
        address = f"file:{quote(os.fsencode(path))}?mode=ro{options}"
        connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_LOCKED_SECONDS)
        try:
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            end = time.monotonic() + _LONGEST_LOOK
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            # `trusted_schema` stays on: without it, SQLite refuses Kilo's schema, which has an index on json_extract.
            connection.executescript("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; BEGIN")
            yield connection
        finally:
            connection.close()
        if is_closed and self.signature() != before:
            raise OSError("it changed while it was read")

    def has_users(self) -> bool | None:
        """Tell whether any process has the database open. None if unknown."""
        path = self._path
        try:
            if _ASK_FOR_LOCK is None:
                return None
            if not os.path.exists(f"{path}-shm"):
                # The last user of a database removes `-shm` if the database has a log. Byte 18 is then 2.
                with open(path, "rb") as file:  # noqa: PTH123
                    return False if file.read(19)[18:] == b"\2" else None
            if self._shared is None or not os.path.samestat(os.fstat(self._shared), os.stat(f"{path}-shm")):  # noqa: PTH116
                self.close()
                self._shared = os.open(f"{path}-shm", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _USERS_LOCK, 1, 0)
            kind = struct.unpack(_LOCK, fcntl.fcntl(self._shared, _ASK_FOR_LOCK, asked))[0]
        except OSError:
            return None
        # On a shared disk, a program on another machine may use the database. We cannot see its lock.
        return True if kind != fcntl.F_UNLCK else False if is_on_local_disk(Path(path)) else None

    def close(self) -> None:
        if self._shared is not None:
            os.close(self._shared)
            self._shared = None


def find_directories(connection: sqlite3.Connection) -> list[tuple[str, float]]:
    """Return the working directories of all sessions, each with the time of the last change (epoch seconds)."""
    rows = connection.execute("SELECT directory, max(time_updated) FROM session GROUP BY directory")
    return [(place, to_seconds(at)) for place, at in rows if isinstance(place, str)]


def find_sessions(connection: sqlite3.Connection, is_ours: Callable[[str], bool]) -> dict[str, SessionRow]:
    """Return the sessions in directories for which `is_ours` is true, and all their children, the oldest first."""
    ours = [place for place, _ in find_directories(connection) if is_ours(place)]
    is_numbered = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'event_sequence'").fetchone()
    mark = "(SELECT seq FROM event_sequence WHERE aggregate_id = session.id)" if is_numbered else "NULL"
    rows = connection.execute(
        "WITH RECURSIVE ours(id) AS (SELECT id FROM session WHERE directory IN (SELECT value FROM json_each(?)) "  # noqa: S608
        "UNION SELECT session.id FROM session JOIN ours ON session.parent_id = ours.id) "
        f"SELECT id, parent_id, title, time_created, time_updated, {mark} "
        "FROM session WHERE id IN ours ORDER BY time_created, id",
        (json.dumps(ours),),
    )
    found = {}
    for row in rows:
        name, parent, title = (value if isinstance(value, str) else "" for value in row[:3])
        if name:
            found[name] = SessionRow(name, parent or None, title, to_seconds(row[3]), row)
    return found


def read_records(connection: sqlite3.Connection, session: str) -> tuple[list[Record], list[Record]]:
    """Return the messages of a session, and the parts of these messages. Both are in the order of their ids."""

    def read(table: str, above: str) -> list[Record]:
        rows = connection.execute(
            f"SELECT id, {above}, time_created, time_updated, rowid, "  # noqa: S608
            f"CASE WHEN length(data) <= {LARGEST_RECORD} THEN data END FROM {table} WHERE session_id = ? ORDER BY id",
            (session,),
        )
        return [
            Record(str(key), str(message), to_seconds(created), to_seconds(updated), object_in(data), row)
            for key, message, created, updated, row, data in rows
        ]

    return read("message", "''"), read("part", "message_id")


def to_seconds(value: object) -> float:
    """Convert a time from milliseconds to seconds. Return 0 if the value is no plausible time."""
    return value / 1000 if type(value) in (int, float) and 0 < value < _LATEST else 0.0  # type: ignore[operator]


def _fingerprint_of(path: str) -> Fingerprint | None:
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116
        # The ctime is left out: if root reads a database, SQLite changes the ctime.
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None


_RACY_SECONDS = 2.0  # for so many seconds after a change, `stat` may not show the next change: read again anyway
_BUSY_SECONDS = 5.0  # a locked or otherwise unreadable database is reported only after so many seconds
_CANCELED = ("Task cancelled", "Tool execution aborted", "Tool execution was interrupted")  # errors of stopped calls
_LEFT_BEHIND = RunStatus(RunState.FAILED, "left behind unfinished: its parent went on without it")
_PATIENCE = 3.0  # a call without any sign of work for so many seconds probably waits for a permission
_SUFFIX = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")  # the ending of a child's title
# Tools that show their work within a second. If such a tool shows nothing, it probably waits for a permission.
_AT_ONCE = ("bash", "edit", "write", "patch", "apply_patch", "multiedit", "read", "glob", "grep", "list")
_OVER = ("completed", "error")
_CONTINUED = ("tool-calls", "unknown")
_FRAME = re.compile(
    r'<task id="(?P<id>[^"\n]{1,200})" state="(?P<state>[a-z]{1,20})">\n(?:<summary>[^\n]*</summary>\n)?'
    r"<(?P<tag>task_result|task_error)>\n(?P<body>.*)\n</(?P=tag)>",
    re.DOTALL,
)
_RULE = "The user has specified a rule"
_REFUSED = ("The user rejected", "The user dismissed", _RULE)  # beginnings of the errors of refused calls
_FEEDBACK = " with the following feedback: "
_LONGEST = 2_000


class OpenCodeReader(StoreReader):
    """Reads one workspace's sessions from one database. `name` is the name of the source."""

    _seen: Signature | None = None
    _seen_at = 0.0
    _refusal = ""
    _read_at = float("-inf")  # the time of the last successful read, on the monotonic clock

    def __init__(self, workspace: Path, database: Path, name: str = "opencode"):
        super().__init__()
        self.name = name
        self.progress = Progress(0, 0)  # in bytes; `done` is 0 until all sessions have been read
        self._path = database.absolute()
        self._database = ForeignDatabase(self._path)
        self._places = spellings(workspace)
        self._rows: dict[str, SessionRow] = {}  # all sessions at the time of the last read
        self._sessions: dict[str, Session] = {}  # the sessions that were read so far, some perhaps in an older state
        self._runs: dict[str, Run] = {}

    @property
    def trouble(self) -> str | None:  # type: ignore[override]
        """A sentence about sessions or records that cannot be read, or None."""
        name, unread = self._path.name, sum(session.unread for session in self._sessions.values())
        if self._refusal and time.monotonic() >= self._read_at + _BUSY_SECONDS:
            return f"{name} cannot be read: {self._refusal}."
        return f"{name} has {count_noun(unread, 'record')} that cannot be read." if unread else None

    def read(self, seconds: float) -> Sequence[Change]:
        """Return the runs that have changed. Even if `seconds` is short, read at least one changed session."""
        signature = self._database.signature()
        is_calm = signature == self._seen and time.monotonic() - self._seen_at > _RACY_SECONDS
        is_news = not is_calm or self.progress.done < self.progress.total
        if is_news:
            self._read_changed_sessions(signature, time.monotonic() + seconds)
        if self._refusal:
            return ()
        if is_news or any(session.waits for session in self._sessions.values()):
            self._runs = self._fold_runs()
        runs = dict(self._runs)
        # A session that has ended its turn a short time ago is included, because a human may still use it.
        just = time.time() - IDLE
        still_open = [
            key
            for key, run in runs.items()
            if run.state in OPEN
            or (run.state is RunState.ENDED and run.parent_session is None and run.updated_at > just)
        ]
        if still_open and self._database.has_users() is False:
            # The program has ended. So it writes nothing more, and nobody can answer the questions of these runs.
            runs |= {key: replace(runs[key], process_gone=True, waiting="") for key in still_open}
        return self.update_runs(runs)

    def stores(self) -> Sequence[str]:
        return [str(self._path)] if may_exist(self._path) else []

    def transcript(self, run: Run) -> RunTranscript:
        """Return the transcript of a run."""
        return PartsTranscript(run.session_id, self._path, self._database)

    def close(self) -> None:
        self._database.close()

    def _read_changed_sessions(self, signature: Signature, end: float) -> None:
        """Read the changed sessions until the time `end`, the youngest session first."""
        read, is_behind = dict[str, Session](), False
        try:
            with self._database.connect() as connection:
                self._rows = find_sessions(connection, lambda one: any(contains(place, one) for place in self._places))
                for name, row in reversed(self._rows.items()):
                    if name not in self._sessions or self._sessions[name].row != row:
                        is_behind = bool(read) and time.monotonic() >= end
                        if is_behind:
                            break
                        read[name] = Session(row, read_records(connection, name), self.keep_message, self._places)
        except FileNotFoundError:
            self._rows = {}
        except (sqlite3.Error, OSError) as error:
            self._seen, self._refusal = None, getattr(error, "strerror", None) or str(error)
            return
        if signature != self._seen:
            self._seen, self._seen_at = signature, time.monotonic()
        self._refusal, self._read_at = "", time.monotonic()
        self._sessions = {name: one for name, one in (self._sessions | read).items() if name in self._rows}
        size = signature[0][2] if signature[0] else 0
        self.progress = Progress(0 if is_behind else size, size)

    def _fold_runs(self) -> dict[str, Run]:
        runs: dict[str, Run] = {}
        for name, row in self._rows.items():
            above = row.parent_id or ""
            session, parent = self._sessions.get(name), self._sessions.get(above)
            if session is None or (parent is None and above in self._rows):
                continue
            call = parent.tasks.get(name) if parent else None
            run = runs[name] = run_of(
                session,
                call or NO_CALL,
                _status_of(session, call, parent, runs.get(above)),
                source=self.name,
                session_id=name,
                parent=row.parent_id,
                place=str(self._path),
                title=_SUFFIX.sub("", row.title),
                agent=session.agent,
            )
            for task in session.tasks.values():
                # A call that has neither a session nor an end is left out, because it may still get a session.
                status = session.ends.get(task.id) or (_LEFT_BEHIND if _is_left_behind(task, session, run) else None)
                if status and task.child not in self._rows:
                    runs[task.id] = run_of(
                        NO_ACCOUNT,
                        task,
                        status,
                        source=self.name,
                        session_id=task.child or task.id,
                        parent=name,
                        place=run.place,
                    )
        return runs


class Session(Account):
    """The account (state) of one session, made of all its messages and their parts."""

    agent: str | None = None
    last_answer = ""  # the id of the model's last message; calls in earlier messages are no longer open
    unread = 0  # the number of unreadable records
    uses_tools = False  # whether the model's last message calls a tool

    def __init__(
        self, row: SessionRow, records: tuple[Sequence[Record], Sequence[Record]], keep: Keep, places: Sequence[str]
    ):
        super().__init__(keep, places, is_agent=row.parent_id is not None)
        self.row = row
        self.started_at = self.updated_at = row.created
        self.tasks: dict[str, AgentCall] = {}  # calls that start a child, by the child's id, or by the call's id
        self.waits: list[tuple[float, str]] = []  # what the session probably waits for, and from which time on
        self._fold(*records)

    @property
    def waiting(self) -> str:
        now = time.time()
        return next((words for at, words in self.waits if now >= at), "")

    def _fold(self, messages: Sequence[Record], parts: Sequence[Record]) -> None:
        parts_of = defaultdict[str, list[Record]](list)
        for part in parts:
            parts_of[part.message_id].append(part)
        summaries = [message for message in messages if message.data.get("summary") is True]
        # Leave out each summary and the message that asked for it: both are no part of the conversation.
        excluded = {message.id for message in summaries} | {text(message.data, "parentID") for message in summaries}
        for message in sorted(messages, key=lambda one: (_time_in(one.data, "created") or one.created, one.id)):
            at = _time_in(message.data, "created") or message.created
            self.updated_at = max(self.updated_at, at, message.updated)
            self.open.clear()
            is_user = message.data.get("role") == "user"
            self.unread += not message.data
            if not is_user and message.id not in excluded:
                self.last_answer, self.uses_tools = message.id, False
                self.waits.clear()
            words = [said for part in parts_of[message.id] for said in self._add_part(part, message.id, at, is_user)]
            if is_user:
                self.agent = self.agent or text(message.data, "agent")
                if message.id not in excluded:
                    self._add_prompt(self.keep("\n".join(words), at) if words else None, at)
            else:
                self._add_usage(message.data)
                if message.id not in excluded:
                    self._add_answer(message, words, at)

    def _add_prompt(self, prompt: Message | None, at: float) -> None:
        self.prompt = self.prompt or prompt
        # In a session that a human began, only the first prompt is kept.
        asked = prompt if self.is_agent else None
        asker = StartedBy.PARENT if asked else StartedBy.PROGRAM
        if self.begun and self.begun.prompt is None and self.state in OPEN:
            # The last round has neither a prompt nor an end. Its records may be unreadable, so replace the round.
            self.begun = Turn(at, asked, asker)
        else:
            self.begin_round(at, asked, asker)
        self.state = RunState.WORKING if self.last_answer else RunState.SUBMITTED
        self.answer, self.ended_at, self.reason = None, None, ""

    def _add_usage(self, data: Fields) -> None:
        self.agent = text(data, "agent") or self.agent
        provider, model = text(data, "providerID"), text(data, "modelID")
        self.model = f"{provider}/{model}" if provider and model else model
        tokens = nested(data, "tokens")
        # Tokens that are read from the cache are not counted.
        self.tokens += sum_of(tokens, "input", "output", "reasoning") + sum_of(nested(tokens, "cache"), "write")

    def _add_answer(self, message: Record, words: Sequence[str], at: float) -> None:
        data = message.data
        self.begun = self.begun or Turn(at)
        finish, completed, self.reason = text(data, "finish"), _time_in(data, "completed"), _error_in(data)
        self.answer, self.state, self.ended_at = None, RunState.WORKING, completed or None
        if self.reason:
            is_aborted = nested(data, "error").get("name") == "MessageAbortedError"
            self.state = RunState.CANCELED if is_aborted else RunState.FAILED
        elif completed and finish is not None and finish not in _CONTINUED:
            self.state = RunState.ENDED
            if words:
                # The program gives only the last text to the parent.
                self.answer = self.keep_lazily(words[-1], completed)

    def _add_part(self, part: Record, message_id: str, at: float, is_asked: bool) -> list[str]:
        """Update the state from a part. Return the texts in it that a human or a model wrote."""
        data, said = part.data, list(entries(part.data, part.created, is_asked=is_asked))
        self.updated_at = max(self.updated_at, part.updated)
        for entry in said:
            self.add_entry(entry)
        self.unread += not data
        if data.get("type") == "tool":
            self.uses_tools = True
            self._add_tool_call(part, message_id, *said)
        elif data.get("synthetic") is True and (frame := _FRAME.match(string(data, "text"))):
            # In this text, the program reports the end of a background child.
            is_error = frame["state"] == "error"
            self.ends[frame["id"]] = _failure(frame["body"], at) if is_error else RunStatus(RunState.ENDED, ended_at=at)
        return [entry.text for entry in said if entry.kind in (EntryKind.PROMPT, EntryKind.WORDS)]

    def _add_tool_call(self, part: Record, message_id: str, call: Entry, *results: Entry) -> None:
        state, given = nested(part.data, "state"), call.given
        status, metadata = text(state, "status"), nested(state, "metadata")
        if status == "running" and (waits := _describe_wait(call.tool, given, metadata)):
            self.waits.append((0.0 if call.tool == "question" else call.at + _PATIENCE, waits))
        self.permits.extend(_make_permit(call, result, metadata) for result in results)
        if call.tool == "task":
            frame = _FRAME.match(string(state, "output"))
            child = text(metadata, "sessionId") or (frame["id"] if frame else None)
            self.tasks[child or part.id] = AgentCall(
                part.id,
                call.at,
                prompt=self.keep(string(given, "prompt"), call.at),
                agent_type=text(given, "subagent_type"),
                title=text(given, "description"),
                background=given.get("background") is True or metadata.get("background") is True,
                child=child,
                waits_in=message_id if status in ("pending", "running") else "",
            )
            for result in results:
                if result.ended is None:
                    self.ends[part.id] = _failure(result.text, result.at)
                elif frame is None or frame["state"] != "running":
                    words = frame["body"] if frame else ""
                    said = self.keep(words, result.at) if words.strip() else None
                    self.ends[part.id] = RunStatus(RunState.ENDED, "", said, result.at)


def _status_of(session: Session, call: AgentCall | None, parent: Session | None, above: Run | None) -> RunStatus:
    """Return the status of a session, from its own last message and from the report to its parent."""
    own = RunStatus(session.state, session.reason, session.said, session.ended_at)
    if call is None or parent is None or own.state not in (*OPEN, RunState.ENDED):
        return own
    # The report is stored under the call's id. If the child runs in the background, it is stored under the child's id.
    report = parent.ends.get(call.id) or parent.ends.get(session.row.id)
    if report and session.begun and (report.ended_at or 0.0) < session.begun.began_at:
        # The report is about an earlier round.
        report = None
    if report is None and own.state is RunState.ENDED:
        # If a model says "stop" but calls a tool, the program continues the turn.
        return RunStatus(RunState.WORKING) if session.uses_tools else own
    if report is None:
        return _LEFT_BEHIND if _is_left_behind(call, parent, above) else own
    if own.state is RunState.ENDED and report.state is not RunState.FAILED:
        return own._replace(said=own.said or report.said)
    return report


def _failure(error: str, at: float) -> RunStatus:
    state = RunState.CANCELED if error.startswith(_CANCELED) else RunState.FAILED
    return RunStatus(state, error.strip()[:_LONGEST] or "it failed", None, at)


def _is_left_behind(call: AgentCall, parent: Session, above: Run | None) -> bool:
    """Tell whether a call has no result although its parent has ended or gone on: then the program was killed."""
    is_over = (above is not None and above.state not in OPEN) or call.waits_in != parent.last_answer
    return bool(call.waits_in) and is_over


def _make_permit(call: Entry, result: Entry, metadata: Fields) -> Permit:
    """Return a permit, which tells whether a call was allowed. Only Kilo Code stores whether a human was asked."""
    is_refused = result.refused or metadata.get("dismissed") is True
    # If a call failed or was stopped, it is unknown whether the call had been allowed.
    allowed = None if result.ended is None and not is_refused else not is_refused
    is_rule = result.text.startswith(_RULE) or text(nested(metadata, "approval"), "source") not in (None, "manual")
    words = result.text.partition(_FEEDBACK)[2][:_LONGEST] if result.refused else ""
    by = Permitter.RULE if is_rule else Permitter.UNKNOWN
    return Permit(call.call, call.tool, "", allowed, by, result.at, words)


def _describe_wait(tool: str, given: Fields, metadata: Fields) -> str:
    """Describe what a running call probably waits for. Return "" if the call may be working."""
    if tool == "question":
        return question_text(given)
    # When a call really starts to work, Kilo writes the approval into its metadata, or the shell writes its output.
    if metadata or tool not in (*_AT_ONCE, "task"):
        return ""
    what = "" if tool == "task" else main_argument(tool, given)
    return f"a permission, it seems: {tool} {what}".rstrip()


def _time_in(fields: Fields, key: str) -> float:
    return to_seconds(nested(fields, "time").get(key))


def _error_in(data: Fields) -> str:
    """Return the text of a message's error, or "" if the message has no error."""
    error = nested(data, "error")
    words = text(nested(error, "data"), "message") or text(error, "name")
    return (words or ("it failed" if data.get("error") is not None else ""))[:_LONGEST]


def entries(part: Fields, at: float, *, is_asked: bool = False) -> Iterator[Entry]:
    """Yield the entries of a part, in order. After a call comes its result. `at` is the time of the part (epoch
    seconds). If `is_asked`, the message is from a human or the parent."""
    words = string(part, "text")
    match part.get("type"):
        case "text" if words.strip():
            is_own = part.get("synthetic") is True or part.get("ignored") is True
            yield Entry(at, EntryKind.NOTE if is_own else EntryKind.PROMPT if is_asked else EntryKind.WORDS, words)
        case "reasoning" if words.strip():
            yield Entry(at, EntryKind.THOUGHT, words)
        case "tool":
            yield from _entries_of_call(part, at)
        case "retry":
            yield Entry(at, EntryKind.NOTE, _error_in(part) or "an error", failed=True)


def _entries_of_call(part: Fields, at: float) -> Iterator[Entry]:
    state, call = nested(part, "state"), text(part, "callID") or "call"
    at, status = _time_in(state, "start") or at, state.get("status")
    yield Entry(at, EntryKind.CALL, "", call, string(part, "tool"), nested(state, "input"))
    if status not in _OVER:
        return
    metadata, error = nested(state, "metadata"), string(state, "error")
    words, code = error or string(state, "output"), int_at(metadata, "exit")
    ended = (
        CommandEnd(code, text(metadata, "output") or words, metadata.get("truncated") is True)
        if status == "completed"
        else None
    )
    refused = error.startswith(_REFUSED)
    failed = status == "error" or bool(code)
    end = _time_in(state, "end") or at
    yield Entry(end, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)


class PartsTranscript(WholeTranscript):
    """The transcript of a session, from its parts, in the order in which they were first written."""

    def __init__(self, session: str, path: Path, database: ForeignDatabase):
        super().__init__(path)
        self._session = session
        self._database = database

    def stamp(self) -> object:
        self._path.stat()
        return self._database.signature()

    def _load(self) -> Iterator[tuple[int, Sequence[Entry] | None]]:
        try:
            with self._database.connect() as connection:
                places = connection.execute("SELECT directory FROM session WHERE id = ?", (self._session,)).fetchone()
                messages, parts = read_records(connection, self._session)
        except (sqlite3.Error, ValueError) as error:
            raise OSError(errno.EIO, str(error)) from error
        asked = {one.id for one in messages if one.data.get("role") == "user"}
        for part in sorted(parts, key=lambda part: part.row):
            said = entries(part.data, part.created, is_asked=part.message_id in asked)
            entered = [one._replace(cwd=str(places[0])) if places else one for one in said]
            yield part.row, entered if part.data else None
