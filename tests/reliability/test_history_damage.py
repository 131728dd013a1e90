"""A history in which any bytes are broken opens, says nothing false of being whole, and goes on recording."""

import os
import random
import shutil
from pathlib import Path

import pytest

from agentwatch.history.store import History
from tests.unit.history.recorded import META, Workspace, facts, meta, opened, packet, seen_in

_ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "20"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A history of some pages, closed."""
    state = tmp_path_factory.mktemp("sound") / "state"
    workspace = Workspace()
    history = opened(state)
    for number in range(40):
        seen = [
            workspace.seen(META, meta("partial", f"sess_{number}", "words " * 40)),
            workspace.seen(f"{number}.handoff.json", packet(f"task.{number}")),
        ]
        assert history.record(seen, workspace.text_of)
    return state


def check(state: Path):
    reading = History(state)
    seen_in(reading)
    history = opened(state)
    seen_in(history)
    history.recall()
    workspace = Workspace()
    last = workspace.seen("after.json", meta("blocked", "sess_after"))
    assert history.record([last], workspace.text_of), history.notice
    again = opened(state)
    assert facts(seen_in(again))[-1] == ("after.json", last.digest)
    assert again.text(last.digest) == workspace.text_of(last.digest)


def test_bytes_broken_at_many_offsets(sound, tmp_path):
    dice = random.Random(7)
    size = (sound / "history.db").stat().st_size
    offsets = [*range(0, 200, 7), *(dice.randrange(size) for _ in range(_ROUNDS * 10))]
    for number, offset in enumerate(offsets):
        state = tmp_path / str(number)
        shutil.copytree(sound, state)
        with (state / "history.db").open("r+b") as file:
            file.seek(offset)
            file.write(dice.randbytes(dice.choice((1, 4, 64, 4096))))
        check(state)
        shutil.rmtree(state)


def test_a_schema_that_is_no_text_is_damage(sound, tmp_path):
    state = tmp_path / "state"
    shutil.copytree(sound, state)
    text = (state / "history.db").read_bytes()
    # The name of an index is quoted in the error about its statement.
    broken = text.replace(b"indexobservations_path", b"index\xc7bservations_path").replace(
        b"CREATE INDEX", b"CREATE INDXX"
    )
    assert broken.count(b"\xc7bservations") == 1
    (state / "history.db").write_bytes(broken)
    check(state)


def test_files_cut_off_at_many_lengths(sound, tmp_path):
    dice = random.Random(8)
    size = (sound / "history.db").stat().st_size
    lengths = [0, 1, 16, 99, 100, 4095, 4096, *(dice.randrange(size) for _ in range(_ROUNDS * 2))]
    for number, length in enumerate(lengths):
        state = tmp_path / str(number)
        shutil.copytree(sound, state)
        os.truncate(state / "history.db", length)
        check(state)
        shutil.rmtree(state)
