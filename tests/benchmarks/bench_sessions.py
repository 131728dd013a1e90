"""Session stores: `tree --json` against `json.loads` of every line, and `agents-tree --json` on the same store, where
that program is installed (`AGENTS_TREE` names it); first sight, steady state and idle cost of a reader against what
nobody can do without; a `wait` beside large sessions."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import Row, interleaved
from tests.unit.claude_code.building import Store, meta, packet, report

_NOISE = "A line of a tool's output that nobody needs to see twice, as long as such lines are.\n" * 24


def _store(root: Path, agents: int, tools: int) -> Store:
    """One session with so many children, each with so many tool calls before it returns."""
    store = Store(root)
    store.home = root / "home" / ".claude"
    store.workspace.mkdir(parents=True)
    session = store.session()
    session.asked("Do it all.")
    for number in range(agents):
        call, agent_id = f"toolu_{number}", f"a{number:016x}"
        session.delegated(call, packet(f"t{number}"))
        agent = store.agent(agent_id, meta(call))
        agent.asked(packet(f"t{number}"))
        for tool in range(tools):
            agent.used("Bash", f"{call}_{tool}", command="make")
            agent.got(f"{call}_{tool}", _NOISE)
        agent.said(report("SUCCESS"))
        session.returned(call, agent_id, report("SUCCESS"))
    session.said("All done.")
    store.save()
    return store


def _run(command: list[str], home: Path, code: int = 0) -> bytes:
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    # Installed programs are compiled; a checkout is only from the second run on, and only where that may be written.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ran = subprocess.run(command, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if ran.returncode != code:
        raise RuntimeError(f"{command} ended with {ran.returncode}")
    return ran.stdout


_GROWTH: Final = """
import sys
from pathlib import Path
import agentwatch.contracts.reading
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader

def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

before = most()
ClaudeCodeReader(Path(sys.argv[1]), Path(sys.argv[2])).read(600.0)
print(most() - before)
"""
"""Prints by how many KB the memory of a process grows when it sees a store for the first time. Not by getrusage: there
a process begins with what the one that started it had."""


def _split(paths: list[Path]) -> int:
    return sum(len(path.read_bytes().split(b"\n")) for path in paths)


def _first_sight(store: Store, paths: list[Path], size: str) -> Row:
    megabytes = sum(path.stat().st_size for path in paths) / 1e6
    reference, taken = interleaved([lambda: _split(paths), lambda: store.reader().read(600.0)], 5)
    what = f"first sight of {size}: {megabytes / taken * 1e3:.0f} MB/s"
    if sys.platform == "linux":
        command = [sys.executable, "-c", _GROWTH, str(store.workspace), str(store.home)]
        grown = int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout) / 1e3
        what += f", +{grown:.1f} MB of memory"
    return Row(what, "reading it and splitting its lines", reference, taken)


def _steady(store: Store, paths: list[Path], size: str) -> list[Row]:
    reader = store.reader()
    reader.read(600.0)
    path = paths[-1]
    line = next(line for line in path.read_bytes().splitlines() if b"tool_use" in line)
    written = itertools.count()

    def new_line() -> bytes:
        return re.sub(rb"(uuid-|msg_)", rb"\g<1>%d-" % next(written), line) + b"\n"

    def read_alone() -> None:
        data = new_line()
        with path.open("ab") as file:
            file.write(data)
        with path.open("rb") as file:
            file.seek(-len(data), os.SEEK_END)
            json.loads(file.read())

    def told() -> None:
        with path.open("ab") as file:
            file.write(new_line())
        if not reader.read(600.0):
            raise RuntimeError("a line was not told")

    def idle() -> None:
        if reader.read(600.0):
            raise RuntimeError("nothing was written")

    alone = interleaved([read_alone], 50)[0]
    reader.read(600.0)
    taken = interleaved([told], 50)[0]
    looked, idled = interleaved([lambda: [path.stat() for path in paths], idle], 50)
    return [
        Row(f"one more line in {size} → told", "appending, reading and parsing that line", alone, taken),
        Row(f"a look at {size} without news, {len(paths)} files", "the status of each file", looked, idled),
    ]


def _wait(store: Store, agentwatch: str, home: Path, size: str) -> Row:
    """A `wait` that nobody has decided about yet: what the sessions hold does not matter then."""
    with tempfile.TemporaryDirectory() as empty:
        commands = [[agentwatch, "wait", "t1", place, "--timeout", "0"] for place in (empty, str(store.workspace))]
        alone, beside = interleaved([partial(_run, command, home, 3) for command in commands], 7)
    return Row(f"wait beside {size} of sessions, undecided", "wait where there are none", alone, beside)


def _tree(store: Store, agentwatch: str, home: Path, paths: list[Path], what: str) -> list[Row]:
    """The goals are about the other program."""
    command = [agentwatch, "tree", "--json", str(store.workspace)]

    def parsed() -> None:
        for path in paths:
            with path.open("rb") as file:
                for line in file:
                    json.loads(line)

    peers: dict[str, Callable[[], object]] = {"json.loads of every line": parsed}
    if (theirs := os.environ.get("AGENTS_TREE") or shutil.which("agents-tree")) is not None:
        peers["agents-tree"] = partial(_run, [theirs, "--json", str(store.workspace)], home)
    taken, *references = interleaved([partial(_run, command, home), *peers.values()], 5)
    return [
        Row(f"tree --json, {what}", peer, reference, taken) for peer, reference in zip(peers, references, strict=True)
    ]


def run() -> Iterator[Row]:
    # Both as they are installed.
    agentwatch = str(Path(sys.executable).with_name("agentwatch"))
    for agents, tools in ((10, 20), (50, 100), (100, 500)):
        with tempfile.TemporaryDirectory() as directory:
            store = _store(Path(directory), agents, tools)
            home = Path(directory) / "home"
            paths = sorted(path for path in store.home.rglob("*.jsonl"))
            size = f"{sum(path.stat().st_size for path in paths) / 1e6:.1f} MB"
            yield _first_sight(store, paths, size)
            found = len(json.loads(_run([agentwatch, "tree", "--json", str(store.workspace)], home))["tasks"])
            if found != agents + 1:
                raise RuntimeError(f"{found} tasks instead of {agents + 1}")
            yield _wait(store, agentwatch, home, size)
            yield from _tree(store, agentwatch, home, paths, f"{agents} children in {size}")
            yield from _steady(store, paths, size)
