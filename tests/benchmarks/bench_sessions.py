"""Session stores: `tree --json` against `agents-tree --json` on the same store, where that program is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

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


def _run(command: list[str], home: Path) -> bytes:
    environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


def _agents(tree: list[dict[str, object]]) -> int:
    return sum(1 + _agents(node["children"]) for node in tree)  # type: ignore[arg-type]


def run() -> list[Row]:
    rows = []
    theirs = os.environ.get("AGENTS_TREE") or shutil.which("agents-tree")
    for agents, tools, size in ((10, 20, "0.4 MB"), (100, 500, "100 MB")):
        with tempfile.TemporaryDirectory() as directory:
            store = _store(Path(directory), agents, tools)
            workspace, home = str(store.workspace), Path(directory) / "home"
            ours = [sys.executable, "-m", "agentwatch", "tree", "--json", workspace]
            found = len(json.loads(_run(ours, home))["tasks"])
            if found != agents + 1:
                raise RuntimeError(f"{found} tasks instead of {agents + 1}")
            if theirs is None:
                (taken,) = interleaved([lambda: _run(ours, home)], 3)  # noqa: B023
                rows.append(
                    Row(f"tree --json, {agents} children in {size}", "nothing: no agents-tree here", taken, taken)
                )
                continue
            peer = [theirs, "--json", workspace]
            seen = sum(_agents(session["agents"]) for session in json.loads(_run(peer, home))["sessions"])
            reference, taken = interleaved([lambda: _run(peer, home), lambda: _run(ours, home)], 3)  # noqa: B023
            rows.append(
                Row(f"tree --json, {agents} children in {size} (they: {seen})", "agents-tree", reference, taken)
            )
    return rows
