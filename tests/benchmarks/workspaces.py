"""Workspaces of any size, for measuring."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

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


def returned(number: int, *, failed: bool = False, mode: str = "code") -> str:
    """What a task of `write` returns; `mode` is what a row calls its agent."""
    state = "ERROR" if failed or number % 300 == 0 else "SUCCESS"
    made = f"group{number // 100}/t{number}/return.md"  # a claim that is true
    return _RETURN.format(state=state, task_id=f"t{number}", mode=mode, made=made)


def place(root: Path, number: int) -> Path:
    """Where `write` puts a task."""
    return root / f"group{number // 100}" / f"t{number}"


def write(root: Path, tasks: int, noise: int = 0, *, failed: bool = False, age: float = 0.0) -> None:
    """A workspace on disk: a directory a task with a packet and a return, and `noise` other files in each.

    One of 300 has failed, or all. The files were written `age` seconds ago.
    """
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
        (directory / "return.md").write_text(returned(number, failed=failed), "utf-8")
        if age:
            for name in ("handoff.json", "return.md"):
                os.utime(directory / name, (at, at))
        for other in range(noise):
            (directory / f"noise{other}.py").write_text("x = 1\n", "utf-8")
