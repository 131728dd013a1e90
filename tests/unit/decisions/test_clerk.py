"""What a running monitor is told of the files that agents put among the decisions."""

from __future__ import annotations

from pathlib import Path

from agentwatch.decisions.clerk import Clerk
from agentwatch.decisions.delivery import MOST
from agentwatch.decisions.desk import Desk


def test_whoever_forges_without_end_is_told_of_until_the_point_is_made(tmp_path: Path) -> None:
    mirror = tmp_path / "shop" / ".agentwatch" / "decisions"
    mirror.mkdir(parents=True)
    clerk = Clerk(Desk(tmp_path / "shop", state=tmp_path / "state", configuration=tmp_path / "config"))
    told = 0
    for begun in range(3):
        forged = [mirror / f"{begun}-{number}.txt" for number in range(MOST // 2 + 1)]
        for file in forged:
            file.touch()
        told += len(clerk.look())
        for file in forged:
            file.unlink()
    assert told == MOST
