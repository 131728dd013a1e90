"""Commands in a workspace of 5,000 tasks against walking it, reading its files and `json.loads`, and what they take of
the processor."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Row, interleaved
from tests.benchmarks.workspaces import walk_and_load, write
from tests.unit.agents.claude import Claude
from tests.unit.claude_code.building import packet, report

_CODES = (0, 3, 8)
"""Said, or there is nothing to wait for."""
_EVERY = (["tree", "--json"], ["pending"], ["check"], ["wait", "t7", "--timeout", "0"], ["hook"])
_ROUNDS = 5


def _run(words: Sequence[str], workspace: Path, home: Path, given: bytes):
    """Run one to its end, as it is installed, of a user who has nothing else."""
    # Installed programs are compiled.
    left_out = ("XDG_", "CLAUDE", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    command = [str(Path(sys.executable).with_name("agentwatch")), *words, str(workspace)]
    ran = subprocess.run(command, env=environment | {"HOME": str(home)}, input=given, capture_output=True, check=False)
    if ran.returncode not in _CODES:
        raise RuntimeError(f"{command} ended with {ran.returncode}")


def _processor() -> float:
    """Milliseconds that all processes begun here, and ended, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1_000


def run() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as directory:
        root, home = Path(directory, "work"), Path(directory, "home")
        home.mkdir()
        write(root, 5_000)
        claude = Claude(home / ".claude", root, packet("t7"))
        claude.write_transcript()
        given = json.dumps(claude.stop(report("SUCCESS"))).encode()
        for words in _EVERY:
            command = partial(_run, words, root, home, given)
            command()
            before = _processor()
            read, took = interleaved([partial(walk_and_load, root), command], _ROUNDS)
            used = (_processor() - before) / _ROUNDS
            goal = 5.0 if words == ["check"] else 10.0
            for what, figure in (("", took), (", of the processor", used)):
                yield Row(f"{words[0]}, 5,000 tasks{what}", "os.walk, read, json.loads", read, figure, goal)
