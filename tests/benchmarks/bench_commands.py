"""Commands in a workspace of 5,000 tasks against walking it, reading its files and `json.loads`, and what they take of
the processor. And a session of 320 MB."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.bench_scan import walk_and_load
from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import write
from tests.unit.agents.claude import Claude
from tests.unit.claude_code.building import Store, meta, packet, report

_REFERENCE: Final = "os.walk, read, json.loads"
_CODES: Final = (0, 3, 8)
"""Said, or there is nothing to wait for."""
_LARGE: Final = 320_000_000


class _Commands:
    """Commands about one workspace, of a user who has nothing else."""

    def __init__(self, workspace: Path, home: Path, given: bytes = b"") -> None:
        self._workspace, self._home, self._given = workspace, home, given
        self._environment: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CLAUDE"))},
            "HOME": str(home),
        }

    def run(self, words: Sequence[str]) -> None:
        """Run one to its end, as it is installed."""
        command = [str(Path(sys.executable).with_name("agentwatch")), *words, str(self._workspace)]
        environment = dict(self._environment)
        # Installed programs are compiled.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        ran = subprocess.run(
            command,
            env=environment,
            input=self._given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if ran.returncode not in _CODES:
            raise RuntimeError(f"{command} ended with {ran.returncode}")

    def rows(self, words: Sequence[str], reference: Callable[[], object], what: str, rounds: int) -> list[Row]:
        """A command against the reference, and its processor time."""
        told = " ".join(word for word in words if word not in {"--timeout", "0"})
        self.run(words)
        before = _processor()
        read, took = interleaved([reference, partial(self.run, words)], rounds)
        used = (_processor() - before) / rounds
        return [
            Row(f"{told}, {what}", _REFERENCE, read, took, 10.0),
            Row(f"{told}, {what}, of the processor", _REFERENCE, read, used, 10.0),
        ]


def _processor() -> float:
    """Milliseconds that all processes begun here, and ended, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


def _of_files(tasks: int, what: str, rounds: int, commands: Sequence[Sequence[str]]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root, home = Path(directory, "work"), Path(directory, "home")
        home.mkdir()
        write(root, tasks)
        claude = Claude(home / ".claude", root, packet("t7"))
        claude.write_transcript()
        told = _Commands(root, home, json.dumps(claude.stop(report("SUCCESS"))).encode())
        for words in commands:
            yield from told.rows(words, partial(walk_and_load, root), what, rounds)


def _large_session() -> list[Row]:
    """One transcript of 320 MB and 284 children."""
    with tempfile.TemporaryDirectory() as directory:
        store = Store(Path(directory))
        store.home = Path(directory, "home", ".claude")
        store.workspace.mkdir()
        session = store.session()
        session.asked("Do it all.")
        for number in range(284):
            call, agent_id = f"toolu_{number}", f"a{number:016x}"
            session.delegated(call, packet(f"t{number}"))
            agent = store.agent(agent_id, meta(call))
            agent.asked(packet(f"t{number}"))
            agent.said(report("SUCCESS"))
            session.returned(call, agent_id, report("SUCCESS"))
        session.used("Bash", "toolu_x", command="make")
        session.got("toolu_x", "A line of a tool's output, as long as such lines are.\n" * 36)
        store.save()
        noise = b"".join(session.path.read_bytes().splitlines(keepends=True)[-2:])
        with session.path.open("ab") as file:
            for _ in range((_LARGE - file.tell()) // len(noise)):
                file.write(noise)
        session.lines.clear()
        session.said("All done.")
        with session.path.open("ab") as file:
            file.write(b"".join(session.lines))
        files = sorted(store.home.rglob("*.jsonl"))
        told = _Commands(store.workspace, Path(directory, "home"))

        def split() -> int:
            return sum(path.read_bytes().count(b"\n") for path in files)

        words = ["tree", "--json"]
        told.run(words)
        alone, took = interleaved([split, partial(told.run, words)], 3)
    size = "a session of 320 MB, 284 children"
    return [
        Row(f"tree --json, {size}", "1 s", 1_000.0, took, 1.0),
        Row(f"tree --json, {size}", "reading it and counting its lines", alone, took),
    ]


_TREE: Final = ["tree", "--json"]
_EVERY: Final = (_TREE, ["pending"], ["check"], ["wait", "t7", "--timeout", "0"], ["hook"])


def run() -> Iterator[Row]:
    yield from _of_files(5_000, "5,000 tasks", 5, _EVERY)
    yield from _large_session()
