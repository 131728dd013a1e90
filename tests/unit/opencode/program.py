"""A stand-in for OpenCode: writes sessions into a database as the program does, every change in its own transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentwatch.delegation.run import Run
from agentwatch.sources.opencode.opencode_reader import OpenCodeReader

NOW = 1_795_000_000_000

_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, directory text NOT NULL,
  title text NOT NULL, version text NOT NULL, agent text, time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE INDEX session_parent_idx ON session (parent_id);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX message_session_idx ON message (session_id);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE INDEX part_session_idx ON part (session_id);
CREATE INDEX part_message_id_id_idx ON part (message_id, id);
CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
  data text NOT NULL);
CREATE UNIQUE INDEX event_aggregate_seq_idx ON event (aggregate_id, seq);
CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL);
"""


class Program:
    """One process of the program. `now` is its clock, in milliseconds; it ticks with each change."""

    def __init__(self, database: Path, workspace: Path, *, journal: str = "wal") -> None:
        self.workspace = workspace
        self.now = NOW
        self._number = 0
        is_new = not database.exists()
        self.connection = sqlite3.connect(database, isolation_level=None)
        self.connection.execute(f"PRAGMA journal_mode = {journal}")
        # The power never goes here: nothing need wait for the disk.
        self.connection.execute("PRAGMA synchronous = off")
        if is_new:
            self.connection.executescript(_SCHEMA)

    def close(self) -> None:
        self.connection.close()

    def session(self, parent: str | None = None, title: str = "A session", directory: Path | None = None) -> str:
        name = self._name("ses")
        with self._change(name, "session.created.1", {"info": {"id": name}}):
            self.connection.execute(
                "INSERT INTO session VALUES (?, 'project', ?, ?, ?, '1.18.33', ?, ?, ?)",
                (
                    name,
                    parent,
                    str(directory or self.workspace),
                    title,
                    "general" if parent else "build",
                    self.now,
                    self.now,
                ),
            )
        return name

    def delete(self, session: str) -> None:
        owned = {"part": "session_id", "message": "session_id", "session": "id"}
        for table, column in {**owned, "event": "aggregate_id", "event_sequence": "aggregate_id"}.items():
            self.connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (session,))

    def message(self, session: str, data: dict[str, Any], name: str | None = None) -> str:
        """A new message, or a known one as it is from now on."""
        name = name or self._name("msg")
        with self._change(session, "message.updated.1", {"info": {"id": name, **data}}):
            self._write("message", name, (session,), data)
        return name

    def part(self, session: str, message: str, data: dict[str, Any], name: str | None = None) -> str:
        """A new part, or a known one as it is from now on."""
        name = name or self._name("prt")
        with self._change(session, "message.part.updated.1", {"part": {"id": name, "messageID": message, **data}}):
            self._write("part", name, (message, session), data)
        return name

    def remove_message(self, session: str, name: str) -> None:
        with self._change(session, "message.removed.1", {"messageID": name}):
            self.connection.execute("DELETE FROM part WHERE message_id = ?", (name,))
            self.connection.execute("DELETE FROM message WHERE id = ?", (name,))

    def ask(self, session: str, text: str, *, synthetic: bool = False) -> str:
        """A message of a person, of the parent or of the program itself."""
        message = self.message(session, {"role": "user", "time": {"created": self.now}, "agent": "general"})
        self.part(session, message, {"type": "text", "text": text, **({"synthetic": True} if synthetic else {})})
        return message

    def begin(self, session: str) -> str:
        """The session begins to answer."""
        return self.message(session, self._answer())

    def say(self, session: str, message: str, text: str) -> str:
        return self.part(session, message, {"type": "text", "text": text, "time": {"start": self.now, "end": self.now}})

    def finish(self, session: str, message: str, finish: str = "stop") -> None:
        tokens = {"total": 1015, "input": 10, "output": 5, "reasoning": 0, "cache": {"read": 1000, "write": 0}}
        answer = self._answer(finish=finish, tokens=tokens, completed=True)
        self.message(session, answer, message)

    def fail(self, session: str, message: str, name: str, words: str) -> None:
        answer = self._answer(error={"name": name, "data": {"message": words}}, completed=True)
        self.message(session, answer, message)

    def answer(self, session: str, text: str) -> str:
        """A whole answer at once."""
        message = self.begin(session)
        self.say(session, message, text)
        self.finish(session, message)
        return message

    def call(self, session: str, message: str, tool: str, name: str | None = None, **state: Any) -> str:
        """A tool call; with a name, how it has gone on."""
        state.setdefault("status", "running")
        state.setdefault("time", {"start": self.now, **({} if state["status"] == "running" else {"end": self.now})})
        data = {"type": "tool", "tool": tool, "callID": f"call_{message}_{tool}", "state": state}
        return self.part(session, message, data, name)

    def hand_out(
        self, session: str, message: str, child: str | None, prompt: str, name: str | None = None, **state: Any
    ) -> str:
        """A task call that runs in a child, or how it has gone on."""
        given = {"description": "A task", "prompt": prompt, "subagent_type": "general", **state.pop("given", {})}
        metadata = {} if child is None else {"metadata": {"sessionId": child, "parentSessionId": session}}
        return self.call(session, message, "task", name, **{"input": given, **metadata, **state})

    def delegate(self, session: str, message: str, prompt: str) -> tuple[str, str]:
        """A child that was asked, and the call that waits for it."""
        child = self.session(session, "A task (@general subagent)")
        call = self.hand_out(session, message, child, prompt)
        self.ask(child, prompt)
        return child, call

    def _answer(self, *, completed: bool = False, **more: Any) -> dict[str, Any]:
        time = {"created": self.now, **({"completed": self.now} if completed else {})}
        model = {"modelID": "model-x", "providerID": "provider-y"}
        return {"role": "assistant", "mode": "general", "agent": "general", "time": time, **model, **more}

    def _write(self, table: str, name: str, owners: tuple[str, ...], data: dict[str, Any]) -> None:
        marks = ", ".join("?" * (len(owners) + 4))
        self.connection.execute(
            f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET data = excluded.data, "
            "time_updated = excluded.time_updated",
            (name, *owners, self.now, self.now, json.dumps(data)),
        )

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}_{self.now:x}{self._number:06}"

    @contextmanager
    def _change(self, session: str, kind: str, data: dict[str, Any]) -> Iterator[None]:
        self.now += 1
        with self._transaction():
            yield
            self.connection.execute(
                "INSERT INTO event_sequence VALUES (?, 0) ON CONFLICT (aggregate_id) DO UPDATE SET seq = seq + 1",
                (session,),
            )
            self.connection.execute(
                "INSERT INTO event SELECT ?, aggregate_id, seq, ?, ? FROM event_sequence WHERE aggregate_id = ?",
                (self._name("evt"), kind, json.dumps({"sessionID": session, **data}), session),
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        yield
        self.connection.execute("COMMIT")


def framed(child: str, text: str, state: str = "completed") -> str:
    """The output of a task call."""
    tag = "task_error" if state == "error" else "task_result"
    return f'<task id="{child}" state="{state}">\n<{tag}>\n{text}\n</{tag}>\n</task>'


@dataclass
class Reading:
    """A reader, and what it has given so far."""

    reader: OpenCodeReader
    runs: dict[str, Run] = field(default_factory=dict)

    def read(self, seconds: float = 10.0) -> dict[str, Run]:
        """Read once, and give the runs there are now."""
        for change in self.reader.read(seconds):
            if change.run is None:
                del self.runs[change.key]
            else:
                self.runs[change.key] = change.run
        return self.runs

    def said(self, session: str) -> str | None:
        """What a session came to."""
        said = self.runs[session].said
        return self.reader.text(said.digest) if said is not None else None


def reading(workspace: Path, database: Path) -> Reading:
    """Read from the beginning."""
    return Reading(OpenCodeReader(workspace, database))


def fresh(workspace: Path, database: Path) -> dict[str, Run]:
    """The runs that somebody sees who has just come."""
    new = reading(workspace, database)
    try:
        return new.read()
    finally:
        new.reader.close()
