"""A store of an agent program, written step by step, the story that all can tell, and somebody who looks at it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from agentwatch.delegation.events import Ran
from agentwatch.delegation.tree import Tree
from agentwatch.sources.sessions.reader import SessionReader
from agentwatch.sources.sessions.source import SessionsSource
from agentwatch.view.document import tree_document

NOW: Final = 2_000_000_000.0
"""Later than everything that happens in a story."""

SEARCH, INDEX, WORDS, CART, PAY = "shop.search", "shop.index", "shop.index.words", "shop.cart", "shop.pay"
LOOK: Final = "Look around and say what you think."
THOUGHT: Final = "It looks well kept. I would leave it as it is."
OTHER: Final = "shelf.dust"
"""The task of the second session, which is removed in the end."""

STORY: Final[Mapping[str, Sequence[str]]] = {
    SEARCH: ["failed", "completed"],
    INDEX: ["completed"],
    WORDS: ["completed"],
    CART: ["canceled"],
    PAY: ["working"],
}
"""The states of the attempts of each task. SEARCH was tried again in a new session, INDEX was sent on in its own and
had WORDS done by another agent, CART was aborted, PAY is still being worked on. Beside them one answers in prose."""


@dataclass
class Store:
    """A store in a directory of the test. `story` writes it, one write each step."""

    workspace: Path
    place: Path
    """The directory in which the program keeps everything."""
    reader: Callable[[], SessionReader]
    story: Iterator[None]
    spoil: Callable[[Random], None]
    """Adds something that is no use, where a program could have left it. Lines that are half written are let be."""
    forget: Callable[[], None]
    """Removes a session with all that it asked for; there are others."""
    tasks: Mapping[str, Sequence[str]] = field(default_factory=lambda: STORY)
    """Those that packets were handed over for, and the states of the attempts of each, once all is written."""
    end: Callable[[], None] = lambda: None
    """The program ends."""
    watches: list[Watch] = field(default_factory=list)

    def finish(self) -> None:
        """Write what is not written yet."""
        for _ in self.story:
            pass

    def watch(self) -> Watch:
        """Somebody who comes now."""
        self.watches.append(Watch(self))
        return self.watches[-1]

    def seen_at_once(self) -> Tree:
        """The tree of somebody who has just come."""
        watch = self.watch()
        watch.look()
        return watch.document

    def close(self) -> None:
        """The program ends, and all go home. Not before: a program and its readers in one process share its locks."""
        self.end()
        for watch in self.watches:
            watch.source.close()


class Watch:
    """Somebody who looks at a store from time to time, and the tree of what was told by then."""

    def __init__(self, store: Store) -> None:
        self.source = SessionsSource(lambda known, _: () if known else (store.reader(),), clock=lambda: NOW)
        self.tree = Tree()
        self.runs: dict[str, Ran] = {}

    def look(self) -> int:
        """Look once. Returns how much was told."""
        runs = {event.path: event for event in self.source.scan().events if isinstance(event, Ran)}
        gone = [ran._replace(run=None) for path, ran in self.runs.items() if path not in runs]
        news = [ran for path, ran in runs.items() if path not in self.runs or ran.run != self.runs[path].run]
        for event in (*news, *gone):
            self.tree.apply(event)
        self.runs = runs
        return len(news) + len(gone)

    @property
    def document(self) -> dict[str, Any]:
        return tree_document(self.tree, "workspace")

    @property
    def tasks(self) -> dict[str, dict[str, Any]]:
        return {task["task_id"]: task for task in self.document["tasks"]}

    @property
    def digests(self) -> set[str]:
        """Those of all that was handed over or back."""
        runs = [ran.run for ran in self.runs.values() if ran.run is not None]
        earlier = [one.said for run in runs for one in run.rounds[:-1]]
        messages = [
            one for one in (*earlier, *(one for run in runs for one in (run.prompt, run.said))) if one is not None
        ]
        tasks = [attempt for task in self.tasks.values() for attempt in task["attempts"]]
        returned = {digest for attempt in tasks if (digest := attempt["return_sha256"]) is not None}
        return {message.digest for message in messages} | returned


def packet(task_id: str) -> str:
    """A prompt that hands a packet over."""
    handed = {"handoff_schema": "composability.handoff_packet.v1", "task_id": task_id, "objective": f"Do {task_id}."}
    return f"```json\n{json.dumps(handed)}\n```\n\nAnswer in the agreed format.\n"


def report(state: str = "SUCCESS", summary: str = "Done.") -> str:
    """A return."""
    retry = "retry_recommended: no\n" if state == "ERROR" else ""
    attested = (
        "runtime_model_reported: x\nruntime_mode_reported: code\nfiles_created:\n- (none)\nfiles_modified:\n- (none)"
    )
    return (
        f"## Status\nstate: {state}\nsummary: {summary}\n{retry}\n## Deliverables\n- (none)\n\n"
        f"## Evidence\n- README.md\n\n## Runtime Attestation\n{attested}\n"
    )


GARBAGE: Final = (
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
"""Lines that no program wrote on purpose."""


def torn(path: Path, data: bytes) -> Iterator[None]:
    """Append to a file in two writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in (data[: len(data) // 2], data[len(data) // 2 :]):
        with path.open("ab") as file:
            file.write(part)
        yield


def spoil_lines(directory: Path, name: str, random: Random) -> None:
    """A line of garbage behind a whole line of some file, or something that only looks like a file of the program.

    `name` has a place for a number.
    """
    whole = [path for path in sorted(directory.rglob("*.jsonl")) if path.is_file() and _ends_a_line(path)]
    number = random.randrange(1_000)
    if whole and random.random() < 0.6:
        with random.choice(whole).open("ab") as file:
            file.write(random.choice(GARBAGE) + b"\n")
        return
    path = random.choice(whole).with_name(name.format(number)) if whole else directory / name.format(number)
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


def _ends_a_line(path: Path) -> bool:
    return not path.is_symlink() and path.read_bytes().endswith(b"\n")
