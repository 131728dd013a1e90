"""The store of an agent program, written step by step, the same story for all programs, and a watch that looks at it.

`stores/<program>.txt` holds the files that each program writes: a line of `append` in two parts, a file of `write` at
once, `sql` in transactions of its own; the part behind `+++` removes the second session."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from agentwatch.delegation.events import Ran
from agentwatch.delegation.tree import Tree
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from agentwatch.sources.codex import CodexReader
from agentwatch.sources.copilot import CopilotReader
from agentwatch.sources.gemini import GeminiReader
from agentwatch.sources.opencode import OpenCodeReader
from agentwatch.sources.qwen import QwenReader
from agentwatch.sources.roo import RooReader
from agentwatch.sources.sessions.reader import SessionReader
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.sources.sessions.store import slug
from agentwatch.view.document import tree_document

NOW = 2_000_000_000.0
"""A time later than all events of a story."""
THOUGHT = "It looks well kept. I would leave it as it is."
OTHER = "shelf.dust"
"""The task of the second session, which is removed in the end."""

STORY: Mapping[str, Sequence[str]] = {
    "shop.search": ["failed", "completed"],
    "shop.index": ["completed"],
    "shop.index.words": ["completed"],
    "shop.cart": ["canceled"],
    "shop.pay": ["working"],
}
"""The states of the attempts of each task. The search was tried again in a new session. The index was sent on in its
own session, and another agent did its words. The cart was aborted, and the paying is still at work. A further agent
answers in prose."""

SCHEMA = Path(__file__).parents[2] / "goldens/sessions/stores/opencode/schema.sql"
_NUMBER = "NUMBER"
PROGRAMS: dict[str, tuple[Callable[[Path, Path], SessionReader], str]] = {
    "claude-code": (ClaudeCodeReader, f"projects/{{slug}}-work/agent-{_NUMBER}.jsonl"),
    "codex": (CodexReader, f"sessions/rollout-2027-01-15T08-00-00-{_NUMBER}.jsonl"),
    "copilot": (CopilotReader, f"session-state/events-{_NUMBER}.jsonl"),
    "gemini": (GeminiReader, f"tmp/work-1/chats/session-{_NUMBER}.jsonl"),
    "opencode": (lambda workspace, place: OpenCodeReader(workspace, place / "opencode.db"), "opencode.db"),
    "qwen-code": (QwenReader, f"projects/{{slug}}-work/agent-{_NUMBER}.jsonl"),
    "roo": (RooReader, f"tasks/junk-{_NUMBER}/history_item.json"),
}
"""For each program its reader, and the place for garbage in its store."""


def open_database(path: Path, journal: str = "wal") -> sqlite3.Connection:
    """Open a database with the tables of OpenCode."""
    is_new = not path.exists()
    connection = sqlite3.connect(path, isolation_level=None)
    # There is no power failure here, so no write need wait for the disk.
    connection.executescript(f"PRAGMA journal_mode = {journal}; PRAGMA synchronous = off")
    if is_new:
        connection.executescript(SCHEMA.read_text("utf-8"))
    return connection


def begin_session(database: sqlite3.Connection, name: str, workspace: Path, at: float):
    row = (name, str(workspace), at * 1000, at * 1000)
    database.execute("INSERT INTO session VALUES (?, 'project', NULL, ?, 'A session', '1.18.33', 'build', ?, ?)", row)


def change(database: sqlite3.Connection, session: str, statements: str):
    """Change a session as OpenCode does."""
    count = f"UPDATE event_sequence SET seq = seq + 1 WHERE aggregate_id = '{session}'"
    database.executescript(f"BEGIN IMMEDIATE; {statements}; {count}; COMMIT")


def write_without_end(root: Path, seconds: float):
    """Write like OpenCode until killed, and print after `seconds` how often the database was busy."""
    store = Store("opencode", root)
    store.finish()
    # OpenCode has the same time-out.
    store.database.execute("PRAGMA busy_timeout = 5000")
    part, session = store.database.execute("SELECT id, session_id FROM part ORDER BY id DESC").fetchone()
    print("ready", flush=True)
    busy, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            more = f"UPDATE part SET data = json_set(data, '$.more', hex(randomblob(900))) WHERE id = '{part}'"
            change(store.database, session, more)
            store.database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.OperationalError:
            busy += 1
    print(busy, flush=True)
    sys.stdin.read()


class Store:
    """The store of a program in an empty directory; each step of `story` is one write."""

    def __init__(self, program: str, root: Path):
        self.workspace, self.place = root / "work", root / "store"
        self.workspace.mkdir()
        self.place.mkdir()
        self._reader, garbage = PROGRAMS[program]
        self._watches: list[Watch] = []
        text = (Path(__file__).parent / "stores" / f"{program}.txt").read_text(encoding="utf-8")
        text = text.replace("ROOT_DIR", str(root)).replace("{slug}", slug(str(root)))
        story, _, self._forgetting = text.partition("+++\n")
        self._garbage = self.place / garbage.replace("{slug}", slug(str(root)))
        # The database is open as long as the program runs.
        self.database = open_database(self._garbage) if program == "opencode" else None
        self.story = self._written(story)

    def finish(self):
        """Write the rest of the story."""
        for _ in self.story:
            pass

    def forget(self):
        """Remove the second session with all its tasks."""
        for _ in self._written(self._forgetting):
            pass

    def watch(self) -> Watch:
        """Return a new watch."""
        self._watches.append(Watch(self._reader(self.workspace, self.place)))
        return self._watches[-1]

    def seen_at_once(self) -> dict[str, Any]:
        """Return the tree that a new watch shows."""
        watch = self.watch()
        watch.look()
        return watch.document

    def end(self):
        """End the program."""
        if self.database is not None:
            self.database.close()

    def close(self):
        """End the program and then all watches, as a program and its readers in one process share its locks."""
        self.end()
        for watch in self._watches:
            watch.source.close()

    def spoil(self, random: Random):
        """Add garbage at a place where the program could have left it; half-written lines stay unchanged."""
        if self.database is not None:
            _spoil_rows(self.database, random)
            return
        found = sorted(self._garbage.parent.rglob("*.jsonl"))
        whole = next(filter(_ends_a_line, random.sample(found, len(found))), None)
        if whole and random.random() < 0.6:
            with whole.open("ab") as file:
                file.write(random.choice(GARBAGE) + b"\n")
            return
        path = Path(str(self._garbage).replace(_NUMBER, str(random.randrange(1_000))))
        path = whole.with_name(path.name) if whole else path
        if path.exists() or path.is_symlink():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        match random.randrange(3):
            case 0:
                path.mkdir()
            case 1:
                path.symlink_to("/etc/hostname")
            case _:
                path.write_bytes(b"\n".join(random.sample(GARBAGE, 4)))

    def _written(self, text: str) -> Iterator[None]:
        for one in re.split(r"^--- ", text, flags=re.MULTILINE)[1:]:
            first, _, body = one.partition("\n")
            ((how, name),) = json.loads(first).items()
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if how == "delete":
                path.unlink()
            elif how == "sql" and self.database is not None:
                self.database.executescript(body)
                yield
            elif how == "write":
                new = path.with_suffix(".new")
                new.write_text(body, encoding="utf-8")
                new.replace(path)
                yield
            for line in body.encode().splitlines(keepends=True) if how == "append" else ():
                for part in (line[: len(line) // 2], line[len(line) // 2 :]):
                    with path.open("ab") as file:
                        file.write(part)
                    yield


def _ends_a_line(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes().endswith(b"\n")


def _spoil_rows(database: sqlite3.Connection, random: Random):
    """Add a row of garbage below the rows that are there, under a name of its own."""
    table = random.choice(["session", "message", "part"])
    known = [row[0] for row in database.execute("SELECT id FROM session UNION SELECT id FROM message")]

    def value(column: str) -> object:
        if column in ("session_id", "message_id") and known:
            return random.choice(known)
        return f"zzz_{random.randrange(1_000)}" if column == "id" else random.choice(VALUES)

    values = [value(column[1]) for column in database.execute(f"PRAGMA table_info({table})").fetchall()]
    database.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(values))})", values)


class Watch:
    """Looks at a store from time to time, and keeps the tree of all events so far."""

    def __init__(self, reader: SessionReader):
        self.source = SessionsSource(lambda known, _: () if known else (reader,), clock=lambda: NOW)
        self.tree = Tree()
        self.runs: dict[str, Ran] = {}

    def look(self) -> int:
        """Look once, and return the number of changes."""
        runs = {event.path: event for event in self.source.scan().events if isinstance(event, Ran)}
        gone = [ran._replace(run=None) for path, ran in self.runs.items() if path not in runs]
        news = [ran for path, ran in runs.items() if path not in self.runs or ran.run != self.runs[path].run]
        if news or gone:
            self.tree.apply(*news, *gone)
            self.__dict__.pop("document", None)
        self.runs = runs
        return len(news) + len(gone)

    @cached_property
    def document(self) -> dict[str, Any]:
        return tree_document(self.tree, "workspace")

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        return {task["task_id"]: task for task in self.document["tasks"]}

    @property
    def digests(self) -> set[str]:
        """Return the digests of all prompts and returns."""
        runs = [ran.run for ran in self.runs.values() if ran.run is not None]
        told = [one for run in runs for one in (run.prompt, run.said, *(turn.said for turn in run.rounds[:-1]))]
        attempts = [attempt for task in self.tasks.values() for attempt in task["attempts"]]
        returned = {digest for attempt in attempts if (digest := attempt["return_sha256"]) is not None}
        return {one.digest for one in told if one is not None} | returned


GARBAGE = (
    b"{",
    b"null",
    b"[]",
    b'"a text"',
    b"\xff\xfe\x00\x01",
    b"[" * 3_000,
    b"9" * 5_000,
    b'{"type":[],"message":{"content":7},"payload":"x"}',
    b'{"type":"nothing that is known","timestamp":{"a":1}}',
    b'{"type":"assistant","message":{"content":[3,{"type":"text"}]},"isSidechain":0}',
    b'{"timestamp":"yesterday","type":"event_msg","payload":{"type":"task_complete"}',
)
"""Lines that no program writes on purpose."""
VALUES = ("", "{", "[]", 7, -1, 2**62, 1.5, b"\xff\x00", '{"role": [], "type": {}, "time": 5}', "[" * 3_000)
"""Values of columns that no program writes on purpose."""

if __name__ == "__main__":
    write_without_end(Path(sys.argv[1]), float(sys.argv[2]))
