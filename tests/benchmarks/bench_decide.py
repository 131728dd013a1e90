"""From pressing the key to "recorded": a decision against writing, syncing and linking one file of its size."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

from agentwatch.decisions.record import Params, Subject
from agentwatch.decisions.service import LocalService
from agentwatch.delegation.decision import Action
from tests.benchmarks.measuring import Row, interleaved

_BYTES = b"x" * 1_500


def _durable(directory: Path, number: int) -> None:
    """The least that any durable record costs."""
    temporary, final = directory / f"{number}.tmp", directory / f"{number}.json"
    with temporary.open("wb") as file:
        file.write(_BYTES)
        file.flush()
        os.fsync(file.fileno())
    os.link(temporary, final)
    temporary.unlink()
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        workspace, plain = root / "work", root / "plain"
        workspace.mkdir()
        plain.mkdir()
        desk = LocalService(workspace, state=root / "state", configuration=root / "configuration")
        numbers = count()

        def decide() -> None:
            subject = Subject(desk.workspace_id, f"t{next(numbers)}", 1, "a" * 64, "b" * 64)
            desk.decide(subject, Action.RETRY, Params(), returned=lambda: "b" * 64)

        decide()
        reference, taken = interleaved([lambda: _durable(plain, next(numbers)), decide], 100)
    return [Row("a decision: signed, recorded, delivered", "one durable file", reference, taken)]
