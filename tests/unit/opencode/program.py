"""A stand-in for OpenCode: writes sessions into a database as the program does, every change in its own transaction."""

import json
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from agentwatch.delegation.events import Run
from agentwatch.sources.opencode import OpenCodeReader

NOW = 1_795_000_000_000
SCHEMA = Path(__file__).parents[2] / "goldens/sessions/stores/opencode/schema.sql"


def open_database(path: Path, journal: str = "wal") -> sqlite3.Connection:
    """A database with the tables of the program."""
    is_new = not path.exists()
    connection = sqlite3.connect(path, isolation_level=None)
    # The power never goes here: nothing need wait for the disk.
    connection.executescript(f"PRAGMA journal_mode = {journal}; PRAGMA synchronous = off")
    if is_new:
        connection.executescript(SCHEMA.read_text("utf-8"))
    return connection


class Program:
    """One process of the program. `now` is its clock, in milliseconds; it ticks with each change."""

    def __init__(self, database: Path, workspace: Path, *, journal: str = "wal"):
        self.workspace = workspace
        self.now = NOW
        self._number = 0
        self.connection = open_database(database, journal)

    def close(self):
        self.connection.close()

    def session(self, parent: str | None = None, title: str = "A session") -> str:
        name, agent = self._name("ses"), "general" if parent else "build"
        with self._change(name):
            self.connection.execute(
                "INSERT INTO session VALUES (?, 'project', ?, ?, ?, '1.18.33', ?, ?, ?)",
                (name, parent, str(self.workspace), title, agent, self.now, self.now),
            )
        return name

    def message(self, session: str, data: dict[str, Any], name: str | None = None) -> str:
        """A new message, or a known one as it is from now on."""
        return self._write("message", session, name or self._name("msg"), (session,), data)

    def part(self, session: str, message: str, data: dict[str, Any], name: str | None = None) -> str:
        """A new part, or a known one as it is from now on."""
        return self._write("part", session, name or self._name("prt"), (message, session), data)

    def remove_message(self, session: str, name: str):
        with self._change(session):
            self.connection.execute("DELETE FROM part WHERE message_id = ?", (name,))
            self.connection.execute("DELETE FROM message WHERE id = ?", (name,))

    def ask(self, session: str, text: str):
        """A message of a person or of the parent."""
        message = self.message(session, {"role": "user", "time": {"created": self.now}, "agent": "general"})
        self.part(session, message, {"type": "text", "text": text})

    def begin(self, session: str) -> str:
        """The session begins to answer."""
        return self.message(session, self._answer())

    def answer(self, session: str, text: str):
        """A whole answer at once."""
        message = self.begin(session)
        self.part(session, message, {"type": "text", "text": text, "time": {"start": self.now, "end": self.now}})
        self.finish(session, message)

    def finish(self, session: str, message: str):
        self.message(session, self._answer(finish="stop", completed=self.now), message)

    def call(self, session: str, message: str, tool: str, name: str | None = None, **state: Any) -> str:
        """A tool call; with a name, how it has gone on."""
        state = {"status": "running", "time": {"start": self.now}} | state
        if state["status"] != "running":
            state["time"] |= {"end": self.now}
        data = {"type": "tool", "tool": tool, "callID": f"call_{message}_{tool}", "state": state}
        return self.part(session, message, data, name)

    def hand_out(self, session: str, message: str, child: str, name: str | None = None, **state: Any) -> str:
        """A task call that runs in a child, or how it has gone on."""
        given = {"description": "A task", "prompt": "Please.", "subagent_type": "general"}
        metadata = {"sessionId": child, "parentSessionId": session}
        return self.call(session, message, "task", name, input=given, metadata=metadata, **state)

    def delegate(self, session: str, message: str, prompt: str = "Please.") -> tuple[str, str]:
        """A child that was asked, and the call that waits for it."""
        child = self.session(session, "A task (@general subagent)")
        call = self.hand_out(session, message, child)
        self.ask(child, prompt)
        return child, call

    def _answer(self, *, completed: int | None = None, **more: Any) -> dict[str, Any]:
        time = {"created": self.now} | ({"completed": completed} if completed else {})
        model = {"modelID": "model-x", "providerID": "provider-y"}
        return {"role": "assistant", "mode": "general", "agent": "general", "time": time, **model, **more}

    def _write(self, table: str, session: str, name: str, owners: tuple[str, ...], data: dict[str, Any]) -> str:
        marks = ", ".join("?" * (len(owners) + 4))
        with self._change(session):
            self.connection.execute(
                f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET data = excluded.data, "
                "time_updated = excluded.time_updated",
                (name, *owners, self.now, self.now, json.dumps(data)),
            )
        return name

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{self.now:x}{self._number:06}"

    @contextmanager
    def _change(self, session: str) -> Iterator[None]:
        self.now += 1
        self.connection.execute("BEGIN IMMEDIATE")
        yield
        self.connection.execute(
            "INSERT INTO event_sequence VALUES (?, 0) ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1",
            (session,),
        )
        self.connection.execute("COMMIT")


class Reading:
    """A reader, and all that it has given so far."""

    def __init__(self, workspace: Path, database: Path):
        self.reader = OpenCodeReader(workspace, database)
        self.runs: dict[str, Run] = {}

    def read(self, seconds: float = 10.0) -> dict[str, Run]:
        """Read once, and give the runs there are now."""
        for change in self.reader.read(seconds):
            if change.run is None:
                del self.runs[change.key]
            else:
                self.runs[change.key] = change.run
        return self.runs

    def said(self, session: str) -> str | None:
        """The last words of a session."""
        said = self.runs[session].said
        return self.reader.text(said.digest) if said is not None else None


def fresh(workspace: Path, database: Path) -> dict[str, Run]:
    """The runs that somebody sees who has just come."""
    new = Reading(workspace, database)
    with closing(new.reader):
        return new.read()


def write_without_end(database: Path, workspace: Path, seconds: float):
    """Be a program that is read beside, and killed. Prints in the end how often it found the database busy."""
    program = Program(database, workspace)
    # The patience that OpenCode has.
    program.connection.execute("PRAGMA busy_timeout = 5000")
    root = program.session()
    print("ready", flush=True)
    busy, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            asking = program.begin(root)
            child, call = program.delegate(root, asking, "Do it. " * 200)
            program.answer(child, "Done. " * 200)
            output = f'<task id="{child}" state="completed">\n<task_result>\nDone.\n</task_result>\n</task>'
            program.hand_out(root, asking, child, call, status="completed", output=output)
            program.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.OperationalError:
            busy += 1
    print(busy, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    write_without_end(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
