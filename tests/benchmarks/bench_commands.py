"""Commands compared with walking, reading and `json.loads` of 5,000 tasks, or of the lines of session stores up to 320
MB; for stores also with `agents-tree`, if it is installed or `AGENTS_TREE` names it."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.programs import walk_and_load, write
from tests.unit.agents.claude import Claude
from tests.unit.claude_code.building import Store, meta, packet, report

_CODES = (0, 3, 8)
"""Exit codes of success, of `wait` without a decision, and of `wait` if no decision is needed."""
_AGENTWATCH = str(Path(sys.executable).with_name("agentwatch"))
_EVERY = (["tree", "--json"], ["pending"], ["check"], ["wait", "t7", "--timeout", "0"], ["hook"])
_ROUNDS = 5
_NOISE = "A line of a tool's output that nobody needs to see twice, as long as such lines are.\n" * 24
_STORES = ((10, 20, 0), (50, 100, 0), (100, 500, 0), (284, 0, 320_000_000))


def _run(words: list[str], workspace: Path, home: Path, given: bytes = b""):
    """Run an installed command to its end, as a user who has no other programs."""
    # PYTHONDONTWRITEBYTECODE is left out because installed programs are compiled.
    left_out = ("XDG_", "CLAUDE", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    command = [*words, str(workspace)]
    ran = subprocess.run(command, env=environment | {"HOME": str(home)}, input=given, capture_output=True, check=False)
    assert ran.returncode in _CODES, command


def _processor() -> float:
    """Return the processor milliseconds that all ended child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


def files(root: Path, home: Path) -> Iterator[Row]:
    """Measure the time and the processor of each command in a workspace of 5,000 tasks."""
    write(root, 5_000)
    claude = Claude(home / ".claude", root, packet("t7"))
    claude.write_transcript()
    given = json.dumps(claude.stop(report("SUCCESS"))).encode()
    for words in _EVERY:
        command = partial(_run, [_AGENTWATCH, *words], root, home, given)
        command()
        before = _processor()
        read, took = interleaved([partial(walk_and_load, root), command], _ROUNDS)
        used = (_processor() - before) / _ROUNDS
        goal = 5.0 if words == ["check"] else 10.0
        for what, figure in (("", took), (", of the processor", used)):
            yield Row(f"{words[0]}, 5,000 tasks{what}", "os.walk, read, json.loads", read, figure, goal)


def _store(root: Path, agents: int, tools: int, least: int) -> Store:
    """Write a session of at least `least` bytes with so many children, each with so many tool calls and a return."""
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


def sessions(root: Path, agents: int, tools: int, least: int) -> Iterator[Row]:
    """Measure `tree --json` of a store; the goals are about the other program."""
    store, home = _store(root, agents, tools, least), root / "home"
    paths = sorted(store.home.rglob("*.jsonl"))

    def parsed():
        for path in paths:
            with path.open("rb") as file:
                for line in file:
                    json.loads(line)

    peers: dict[str, Callable[[], object]] = {"json.loads of every line": parsed}
    if (theirs := os.environ.get("AGENTS_TREE") or shutil.which("agents-tree")) is not None:
        peers["agents-tree"] = partial(_run, [theirs, "--json"], store.workspace, home)
    command = partial(_run, [_AGENTWATCH, "tree", "--json"], store.workspace, home)
    taken, *references = interleaved([command, *peers.values()], 3 if least else _ROUNDS)
    size = f"{sum(path.stat().st_size for path in paths) / 1e6:.1f} MB"
    for peer, reference in zip(peers, references, strict=True):
        yield Row(f"tree --json, {agents} children in {size}", peer, reference, taken)


def run() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        (home := Path(directory, "home")).mkdir()
        yield from files(Path(directory, "work"), home)
    for store in _STORES:
        with tempfile.TemporaryDirectory() as directory:
            yield from sessions(Path(directory), *store)
