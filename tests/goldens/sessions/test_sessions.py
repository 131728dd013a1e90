"""Stores of the agent programs, step by step as they grow, and the tree that agentwatch shows of each.

`stores/<program>/<topic>.txt` holds the stores: a case begins with `===`, a file with `---`, a further look with `+++`.
"""

import base64
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.goldens.trees.machine import Machine

STORES = Path(__file__).parent / "stores"
NOW = {
    "claude-code": 1_772_366_700.0,
    "copilot": 1_795_348_860.0,
    "gemini": 1_795_348_860.0,
    "qwen-code": 1_795_348_860.0,
    "codex": 1_800_000_300.0,
    "opencode": 1_795_000_040.0,
    "roo": 1_800_000_300.0,
}
"""The time of the look at each program's store, soon after the last event in it."""
PLACES = {
    "claude-code": "home/.claude",
    "copilot": "home/.copilot",
    "gemini": "home/.gemini",
    "qwen-code": "home/.qwen",
    "codex": "home/.codex",
    "opencode": "home/.local/share/opencode/opencode.db",
    "roo": "home/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
}

ROOT_LENGTH = 150
"""Characters of the path of a case's directory: Claude Code cuts the names that it makes of long paths."""

# A command that ends closes its copies of databases only with its process, which goes on here.
pytestmark = pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")


class Case(NamedTuple):
    program: str
    topic: str
    name: str
    head: dict[str, Any]
    steps: list[str]


def cases() -> Iterator[Case]:
    for path in sorted(STORES.glob("*/*.txt")):
        for case in re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            first, _, rest = case.partition("\n")
            name, _, head = first.partition(' {"workspace"')
            steps = re.split(r"^\+\+\+\n", rest, flags=re.MULTILINE)
            yield Case(path.parent.name, path.stem, name, json.loads(f'{{"workspace"{head}'), steps)


def change(machine: Machine, case: Case, step: str):
    """Bring the store on disk to the next step."""
    for one in re.split(r"^--- ", step, flags=re.MULTILINE)[1:]:
        first, _, text = one.partition("\n")
        what: dict[str, Any] = json.loads(first)
        data = base64.b64decode(text) if "base64" in what else text.encode()
        data = data.removesuffix(b"\n") if "torn" in what else data
        (how,) = what.keys() & {"write", "append", "delete", "sql"}
        path = what[how].replace(case.head["home"], case.head.get("place", PLACES[case.program]), 1)
        if how == "delete":
            (machine.root / machine.filled(path.encode()).decode()).unlink()
        elif how == "sql":
            build(machine, path, machine.filled(data).decode(), what.get("schema"))
        else:
            machine.write(path, data, append=how == "append", at=what.get("mtime"))


def build(machine: Machine, path: str, rows: str, schema: str | None):
    place = machine.root / path
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(place)
    made = (STORES / schema / "schema.sql").read_text() if schema else ""
    connection.executescript(f"PRAGMA synchronous = OFF; BEGIN; {made} COMMIT; {rows}")
    connection.close()
    machine.touch(place)


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.program}-{case.topic}-{case.name[:60]}")
def test_sessions(case, tmp_path, monkeypatch, golden):
    root = tmp_path / "r".ljust(ROOT_LENGTH - len(str(tmp_path)) - 1, "r")
    root.mkdir()
    machine = Machine(root, monkeypatch, case.head.get("now", NOW[case.program]))
    workspace = case.head["workspace"]
    (root / workspace).mkdir(parents=True)
    shown = []
    for step in case.steps:
        change(machine, case, step)
        shown.append(machine.shown("tree", "--json", f"ROOT_DIR/{workspace}"))
        machine.now += 1.0
    shown.append(machine.shown("log", "--activity", f"ROOT_DIR/{workspace}"))
    golden.check(f"sessions/{case.program}/{case.topic}.json", shown, case.name)
