"""The cache of output of older versions is removed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.commands.stage import Stage

OURS = ("0a1b2c3d", "0a1b2c3d+", ".writing-0123456789abcdef")


def filled(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).write_bytes(b"kept")
    return directory


@pytest.mark.parametrize("others", [(), ("notes.txt", "0A1B2C3D", "0a1b2c3d.bak")])
def test_the_old_cache_is_removed_and_nothing_else(tmp_path: Path, others: tuple[str, ...]) -> None:
    stage = Stage(tmp_path / "here")
    answers = filled(stage.state.parent / "answers", *OURS, *others)
    (answers.parent / "answers.key").write_bytes(b"k" * 32)
    if others:
        (answers / "ffffffff").symlink_to(stage.workspace / "api.return.md")
    assert stage.decide("--abort").code == 0
    left = {path.name for path in answers.iterdir()} if others else {path.name for path in answers.parent.iterdir()}
    assert left == ({*others, "ffffffff"} if others else {stage.state.name})
    assert (stage.workspace / "api.return.md").exists()


def test_nothing_behind_a_linked_cache_is_removed(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "here")
    target = filled(tmp_path / "strangers", *OURS)
    stage.state.parent.mkdir(parents=True)
    (stage.state.parent / "answers").symlink_to(target)
    assert stage.decide("--abort").code == 0
    assert {path.name for path in target.iterdir()} == set(OURS)
