"""After a power failure at any moment, each decision reported as recorded is there, whole, and the ledger goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.ledger import Ledger
from agentwatch.disk import Disk
from tests.unit.decisions.made import RETURN, Operator

TASKS = ("first", "second", "third")
_MOST_STEPS = 5


@dataclass
class Node:
    """A file with its content or a directory with its names, both in the present state and in the last synced one."""

    is_directory: bool = False
    data: bytes = b""
    names: dict[str, Node] = field(default_factory=dict)
    synced_data: bytes = b""
    synced_names: dict[str, Node] = field(default_factory=dict)
    unsynced: list[dict[str, Node | None]] = field(default_factory=list)
    """Changes of names since the last sync; each is one atomic step."""

    def sync(self):
        self.synced_data = self.data
        self.synced_names = dict(self.names)
        self.unsynced = []


def apply(names: dict[str, Node], step: dict[str, Node | None]):
    for name, node in step.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class Forgetful(Disk):
    """Works on a real directory, and keeps a model beside it of the data that has to survive a power failure.

    `after` is called after each call that changes something. A mutant leaves out the syncs of files or directories."""

    def __init__(self, root: Path, *, syncs_files: bool = True, syncs_directories: bool = True):
        self.root = Node(is_directory=True)
        self.after: Callable[[], None] = lambda: None
        self._path = root
        self._syncs = {False: syncs_files, True: syncs_directories}
        self._open: dict[int, Node] = {}

    def _change(self, directory: Node, **step: Node | None):
        directory.unsynced.append(step)
        apply(directory.names, step)
        self.after()

    def _node(self, path: Any, dir_fd: int | None) -> tuple[Node, str]:
        """Return the directory node that holds a path, and the name in it."""
        if dir_fd is not None:
            return self._open[dir_fd], os.fspath(path)
        node, parts = self.root, Path(path).relative_to(self._path).parts
        for part in parts[:-1]:
            node = node.names[part]
        return node, parts[-1] if parts else ""

    def _found(self, path: Any, dir_fd: int | None) -> Node | None:
        parent, name = self._node(path, dir_fd)
        return parent.names.get(name) if name else parent

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
        descriptor = os.open(path, flags, mode, dir_fd=dir_fd)
        if dir_fd is None and self._path not in (Path(path), *Path(path).parents):
            return descriptor
        node = self._found(path, dir_fd)
        if node is None:
            parent, name = self._node(path, dir_fd)
            node = Node()
            self._change(parent, **{name: node})
        self._open[descriptor] = node
        return descriptor

    def close(self, descriptor: int):  # type: ignore[override]
        self._open.pop(descriptor, None)
        os.close(descriptor)

    def write(self, descriptor: int, data: Any) -> int:  # type: ignore[override]
        count = os.write(descriptor, data)
        self._open[descriptor].data += bytes(data[:count])
        self.after()
        return count

    def fsync(self, descriptor: int):  # type: ignore[override]
        node = self._open.get(descriptor)
        if node is not None and self._syncs[node.is_directory]:
            node.sync()
            self.after()

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None):  # type: ignore[override]
        os.mkdir(path, mode, dir_fd=dir_fd)
        parent, name = self._node(path, dir_fd)
        self._change(parent, **{name: Node(is_directory=True)})

    def link(self, source: Any, target: Any, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool):  # type: ignore[override]
        os.link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)
        self._change(self._open[dst_dir_fd], **{target: self._found(source, src_dir_fd)})

    def rename(self, source: Any, target: Any, *, src_dir_fd: int, dst_dir_fd: int):  # type: ignore[override]
        os.rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        assert src_dir_fd == dst_dir_fd, "the model knows renames within one directory only"
        self._change(self._open[dst_dir_fd], **{target: self._found(source, src_dir_fd), source: None})

    def unlink(self, path: Any, *, dir_fd: int):  # type: ignore[override]
        os.unlink(path, dir_fd=dir_fd)
        self._change(self._open[dir_fd], **{path: None})

    def _nodes(self, node: Node) -> Iterator[Node]:
        yield node
        for child in node.names.values():
            yield from self._nodes(child)

    def states(self) -> list[State]:
        """Return the states that a power failure could leave now: synced changes, and none, some or all other ones."""
        longest = max(len(node.unsynced) for node in self._nodes(self.root))
        # The system may write later names before earlier ones, and names before the content of their files.
        return [
            tuple(left(self.root, mask, kept)) for mask in range(2 ** min(longest, _MOST_STEPS)) for kept in (0, 0.5, 1)
        ]


State = tuple[tuple[str, bytes | None], ...]
"""Directories and files by their paths; None is a directory."""


def left(node: Node, mask: int, kept: float, path: str = "") -> Iterator[tuple[str, bytes | None]]:
    """Yield the rest of a directory: the unsynced steps whose bit is set, and the share `kept` of unsynced data."""
    names = dict(node.synced_names)
    for bit, step in enumerate(node.unsynced):
        if mask >> bit & 1:
            apply(names, step)
    for name, child in sorted(names.items()):
        if child.is_directory:
            yield f"{path}{name}/", None
            yield from left(child, mask, kept, f"{path}{name}/")
        else:
            rest = child.data[len(child.synced_data) :]
            yield f"{path}{name}", child.synced_data + rest[: int(len(rest) * kept)]


def remembered(root: Path, **mutation: bool) -> tuple[Operator, dict[State, frozenset[str]]]:
    """Return each state that a power failure could leave while three decisions are made, with the tasks reported by
    then.

    If a state can be left at several moments, the last one counts, as most tasks had been reported then."""
    (root / "state").mkdir(parents=True)
    disk = Forgetful(root / "state", **mutation)
    operator = Operator(root, disk)
    found: dict[State, frozenset[str]] = {}
    said: set[str] = set()

    def look():
        found.update(dict.fromkeys(disk.states(), frozenset(said)))

    disk.after = look
    for task in TASKS:
        recorded = operator.decide(task)
        assert recorded.fresh
        assert recorded.doubt is None
        said.add(task)
        look()
    return operator, found


def is_bad(operator: Operator, root: Path, state: State, said: frozenset[str]) -> bool:
    """Whether a decision is lost, broken or doubled in the state after the failure."""
    root.mkdir(parents=True)
    for path, data in state:
        (root / path).mkdir(mode=0o700) if data is None else (root / path).write_bytes(data)
    ledger = Ledger(root / operator.state.relative_to(operator.root / "state"), operator.workspace_id)
    chain = ledger.read(operator.trust)
    there = [entry.record.task_id for entry in chain.entries]
    if chain.problems or not said <= set(there):
        return True
    try:
        for task in TASKS:
            ledger.append(operator.draft(task), operator.key, operator.trust, lambda: RETURN)
    except DecisionError:
        return True
    chain = ledger.read(operator.trust)
    return bool(chain.problems) or sorted(entry.record.task_id for entry in chain.entries) != sorted(TASKS)


def bad_states(root: Path, **mutation: bool) -> tuple[int, int]:
    """Return the numbers of bad states and of all states."""
    operator, found = remembered(root / "made", **mutation)
    bad = sum(is_bad(operator, root / f"{number}", *state) for number, state in enumerate(found.items()))
    return bad, len(found)


def test_a_power_failure_loses_breaks_and_doubles_nothing(tmp_path):
    bad, count = bad_states(tmp_path)
    assert bad == 0
    assert count >= 30


@pytest.mark.parametrize("left_out", ["syncs_files", "syncs_directories"])
def test_without_a_sync_a_power_failure_loses_decisions(tmp_path, left_out):
    bad, _ = bad_states(tmp_path, **{left_out: False})
    assert bad > 0
