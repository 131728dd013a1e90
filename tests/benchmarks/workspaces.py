"""Workspaces of any size, for measuring."""

import json
import os
import time
from pathlib import Path

from agentwatch.sources.files.read import DEFAULT_PRUNED

_RETURN = """\
## Status
state: {state}
task_id: {task_id}
summary: Did what was asked for in {task_id}.
retry_recommended: no

## Deliverables
- {made} - what was asked for

## Evidence
- docs/design.md - read

## Runtime Attestation
runtime_model_reported: some/model
runtime_mode_reported: {mode}
files_created:
- {made}
files_modified:
- (none)
"""


def returned(number: int, *, mode: str = "code") -> str:
    """The return of a task of `write`; `mode` is what a row calls its agent."""
    state = "ERROR" if number % 300 == 0 else "SUCCESS"
    made = f"group{number // 100}/t{number}/return.md"  # a claim that is true
    return _RETURN.format(state=state, task_id=f"t{number}", mode=mode, made=made)


def place(root: Path, number: int) -> Path:
    """Where `write` puts a task."""
    return root / f"group{number // 100}" / f"t{number}"


def write(root: Path, tasks: int, *, age: float = 0.0):
    """A workspace on disk: a directory a task with a packet and a return, `age` seconds old; one of 300 has failed."""
    at = time.time() - age
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "design.md").write_text("# Design\n", "utf-8")
    for number in range(tasks):
        directory = place(root, number)
        directory.mkdir(parents=True)
        packet = {
            "task_id": f"t{number}",
            "objective": f"Do part {number}.",
            "evidence": [{"path": "docs/design.md", "purpose": "the design", "required": True}],
            "success_criteria": ["It works"],
            "risks": [{"risk": "It does not", "mitigation": "Test it"}],
        }
        (directory / "handoff.json").write_text(json.dumps(packet), "utf-8")
        (directory / "return.md").write_text(returned(number), "utf-8")
        if age:
            for name in ("handoff.json", "return.md"):
                os.utime(directory / name, (at, at))


def walk_and_load(root: Path):
    """Walk a workspace, read its files, and parse what is JSON: what nobody can do without."""
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in DEFAULT_PRUNED]
        for name in files:
            if name.endswith((".json", ".md")):
                data = Path(directory, name).read_bytes()
                if name.endswith(".json"):
                    json.loads(data)
