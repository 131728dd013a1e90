"""Session stores: `tree --json` against `json.loads` of every line, and `agents-tree --json` on the same store, where
that program is installed (`AGENTS_TREE` names it); one of 320 MB, too."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Row, interleaved
from tests.unit.claude_code.building import Store, meta, packet, report

_NOISE = "A line of a tool's output that nobody needs to see twice, as long as such lines are.\n" * 24
_LARGE = 320_000_000


def _store(root: Path, agents: int, tools: int, least: int = 0) -> Store:
    """One session with so many children, each with so many tool calls before it returns; of so many bytes at least."""
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
    session.used("Bash", "toolu_x", command="make")
    session.got("toolu_x", _NOISE)
    store.save()
    noise = b"".join(session.path.read_bytes().splitlines(keepends=True)[-2:])
    with session.path.open("ab") as file:
        for _ in range(max(least - file.tell(), 0) // len(noise)):
            file.write(noise)
    return store


def _run(command: list[str], home: Path) -> bytes:
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    # Installed programs are compiled; a checkout is only from the second run on, and only where that may be written.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


def _tree(store: Store, home: Path, paths: list[Path], what: str, rounds: int) -> Iterator[Row]:
    """The goals are about the other program."""

    def parsed():
        for path in paths:
            with path.open("rb") as file:
                for line in file:
                    json.loads(line)

    peers: dict[str, Callable[[], object]] = {"json.loads of every line": parsed}
    if (theirs := os.environ.get("AGENTS_TREE") or shutil.which("agents-tree")) is not None:
        peers["agents-tree"] = partial(_run, [theirs, "--json", str(store.workspace)], home)
    command = [str(Path(sys.executable).with_name("agentwatch")), "tree", "--json", str(store.workspace)]
    taken, *references = interleaved([partial(_run, command, home), *peers.values()], rounds)
    for peer, reference in zip(peers, references, strict=True):
        yield Row(f"tree --json, {what}", peer, reference, taken)


def run() -> Iterator[Row]:
    for agents, tools, least in ((10, 20, 0), (50, 100, 0), (100, 500, 0), (284, 0, _LARGE)):
        with tempfile.TemporaryDirectory() as directory:
            store = _store(Path(directory), agents, tools, least)
            paths = sorted(store.home.rglob("*.jsonl"))
            size = f"{sum(path.stat().st_size for path in paths) / 1e6:.1f} MB"
            yield from _tree(store, Path(directory, "home"), paths, f"{agents} children in {size}", 3 if least else 5)
