"""Every command, as somebody types it: output, exit code, and the files that it writes; see `transcript`."""

from pathlib import Path

import pytest

from tests.goldens.transcript import Session, play
from tests.goldens.world import World

HERE = Path(__file__).parent


@pytest.mark.parametrize("group", sorted(path.stem for path in HERE.glob("*.txt")))
def test_commands_answer_as_in_the_transcript(tmp_path, golden, monkeypatch, group):
    world = World(tmp_path / "w", monkeypatch)
    world.use_key()
    world.copy_shop()
    golden.check(f"commands/{group}.txt", play(Session(world, monkeypatch), HERE / f"{group}.txt"))
