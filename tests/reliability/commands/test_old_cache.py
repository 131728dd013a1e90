"""The cache that older versions kept in the state directory is removed, and nothing else. Users have it: keep this."""

from pathlib import Path

import pytest

from tests.reliability.commands.stage import Stage

OURS = ("0a1b2c3d", "0a1b2c3d+", ".writing-0123456789abcdef")


@pytest.fixture
def stage(tmp_path):
    made = Stage(tmp_path / "here")
    made.state.parent.mkdir(parents=True)
    (made.state.parent / "answers.key").write_bytes(b"k" * 32)
    return made


def filled(directory: Path, *names: str) -> Path:
    directory.mkdir()
    for name in names:
        (directory / name).write_bytes(b"kept")
    return directory


def test_the_old_cache_is_removed(stage):
    filled(stage.state.parent / "answers", *OURS)
    assert stage.decide("--abort").code == 0
    assert [path.name for path in stage.state.parent.iterdir()] == [stage.state.name]


def test_files_with_other_names_stay_beside_the_old_cache(stage):
    answers = filled(stage.state.parent / "answers", *OURS, "notes.txt", "0A1B2C3D", "0a1b2c3d.bak")
    (answers / "ffffffff").symlink_to(stage.workspace / "api.return.md")
    (answers / "eeeeeeee").mkdir()
    assert stage.decide("--abort").code == 0
    assert {path.name for path in answers.iterdir()} == {
        "notes.txt",
        "0A1B2C3D",
        "0a1b2c3d.bak",
        "ffffffff",
        "eeeeeeee",
    }
    assert (stage.workspace / "api.return.md").exists()


def test_nothing_behind_a_linked_cache_is_removed(stage, tmp_path):
    target = filled(tmp_path / "strangers", *OURS)
    (stage.state.parent / "answers").symlink_to(target)
    for command in (["tree"], ["pending"], ["check"]):
        stage.run(*command, stage.workspace)
    assert stage.decide("--abort").code == 0
    assert {path.name for path in target.iterdir()} == set(OURS)
