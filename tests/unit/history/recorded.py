"""Events with texts behind them, as a source makes them."""

import hashlib
import json
import sys
from itertools import count
from pathlib import Path

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Finding
from agentwatch.delegation.events import Event, Gone, Seen
from agentwatch.history.store import History

META = "specs/7_api/.return-meta.json"


class Workspace:
    """Returns events with rising `seq`, one second apart, and keeps their texts."""

    def __init__(self):
        self.seq = 0
        self.texts: dict[str, str] = {}

    def seen(self, path: str, text: str, *findings: Finding, at: float | None = None) -> Seen:
        self.seq += 1
        digest = digest_of(text)
        self.texts[digest] = text
        reading = read_document(text, path)
        assert reading is not None
        at = 1_000.0 + self.seq if at is None else at
        return Seen(self.seq, at, path, digest, reading.document, (*findings, *reading.findings), not reading.complete)

    def gone(self, path: str) -> Gone:
        self.seq += 1
        return Gone(self.seq, 1_000.0 + self.seq, path)

    def text_of(self, digest: str) -> str | None:
        return self.texts.get(digest)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def meta(status: str, session: str = "sess_1", summary: str = "the work", agent: str = "coder") -> str:
    """Return a `.return-meta.json` as found on disk."""
    fields = {
        "status": status,
        "summary": summary,
        "artifacts": [],
        "metadata": {"session_id": session, "delegation_depth": 0, "delegation_path": [agent], "agent_type": agent},
    }
    return json.dumps(fields)


def packet(task_id: str, objective: str = "build it", attempt: int | None = None) -> str:
    """Return a handoff."""
    lists = ("evidence", "success_criteria", "risks", "constraints", "deliverables", "dependencies", "notes")
    fields = {"handoff_schema": "composability.handoff_packet.v1", "task_id": task_id, "objective": objective}
    numbered = {} if attempt is None else {"attempt": attempt}
    return json.dumps({**fields, **dict.fromkeys(lists, ()), **numbered})


def opened(state: Path, **more: int) -> History:
    """Return a history for writing."""
    history = History(state, **more)
    history.open_for_writing()
    return history


def seen_in(history: History) -> list[Seen]:
    """Return the versions in a history, in the order recorded."""
    return [one for one in history.recall().events if isinstance(one, Seen)]


def facts(versions: list[Seen]) -> list[tuple[str, str]]:
    """Return the paths and digests of versions, without times."""
    return [(version.path, version.digest) for version in versions]


def main(state: Path, name: str, batch: int):
    history = History(state, limit=512 * 1024)
    history.open_for_writing()
    workspace = Workspace()
    for number in count():
        events: list[Event] = []
        for step in range(batch):
            path = f"{name}/{number % 7}-{step}.json"
            events.append(workspace.seen(path, meta("partial", f"sess_{name}_{number}_{step}")))
        if number % 5 == 4:
            events.append(workspace.gone(f"{name}/{number % 7}-0.json"))
        if not history.record(events, workspace.text_of):
            sys.exit(f"not recorded: {history.notice}")
        digests = [one.digest for one in events if not isinstance(one, Gone)]
        sys.stdout.write(" ".join(digests) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
