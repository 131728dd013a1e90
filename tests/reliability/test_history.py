"""A history with broken bytes or a killed writer opens, has all acknowledged versions, and goes on recording."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agentwatch.history.store import History
from tests.unit.history.recorded import META, Workspace, facts, meta, opened, packet, seen_in

_ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "5"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return a history of some pages, closed."""
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


def check_broken(sound: Path, state: Path, how: Callable[[Path], object]):
    """Damage a copy of the history's file with `how`, and check the copy."""
    shutil.copytree(sound, state)
    how(state / "history.db")
    check(state)
    shutil.rmtree(state)


def test_bytes_broken_at_many_offsets(sound, tmp_path):
    dice = random.Random(7)
    size = (sound / "history.db").stat().st_size

    def write(path: Path, offset: int):
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(dice.randbytes(dice.choice((1, 4, 64, 4096))))

    # One broken byte at offset 63 would be the version of a newer schema.
    for offset in [*range(1, 200, 7), *(dice.randrange(size) for _ in range(_ROUNDS * 10))]:
        check_broken(sound, tmp_path / "state", partial(write, offset=offset))


def test_a_schema_that_is_no_text_is_damage(sound, tmp_path):
    def write(path: Path):
        # SQLite quotes the name of an index in an error about its statement.
        broken = path.read_bytes().replace(b"indexobservations_path", b"index\xc7bservations_path")
        assert broken.count(b"\xc7bservations") == 1
        path.write_bytes(broken.replace(b"CREATE INDEX", b"CREATE INDXX"))

    check_broken(sound, tmp_path / "state", write)


def test_files_cut_off_at_many_lengths(sound, tmp_path):
    dice = random.Random(8)
    size = (sound / "history.db").stat().st_size
    for length in [0, 1, 16, 99, 100, 4095, 4096, *(dice.randrange(size) for _ in range(_ROUNDS * 2))]:
        check_broken(sound, tmp_path / "state", partial(os.truncate, length=length))


_ROUNDS_EACH = 4
"""Writers killed on one history; each begins with the file that the last kill left."""
_ROOT = Path(__file__).parents[2]


def start(state: Path, name: str, batch: int) -> subprocess.Popen[str]:
    writer = "tests.unit.history.recorded"
    return subprocess.Popen(
        [sys.executable, "-m", writer, str(state), name, str(batch)], cwd=_ROOT, stdout=subprocess.PIPE, text=True
    )


def acknowledged_until_killed(writer: subprocess.Popen[str], batches: int) -> list[str]:
    """Read some acknowledgements, kill the writer during the next batch, and return all digests it acknowledged."""
    lines = [writer.stdout.readline() for _ in range(batches)]
    writer.kill()
    lines += writer.stdout.readlines()
    writer.stdout.close()
    assert writer.wait() == -9
    # A last line that the kill has cut off does not count.
    return [digest for line in lines if line.endswith("\n") for digest in line.split()]


def test_nothing_acknowledged_is_lost(tmp_path):
    dice = random.Random()
    for number in range(_ROUNDS):
        if number % _ROUNDS_EACH == 0:
            state = tmp_path / f"state-{number}"
            acknowledged: list[str] = []
        writer = start(state, f"w{number}", dice.choice((1, 3, 20)))
        acknowledged += acknowledged_until_killed(writer, dice.randrange(1, 25))
        history = opened(state)
        assert history.notice is None
        kept = [version.digest for version in seen_in(history)]
        # The versions come back in the order in which they were recorded.
        heard = set(acknowledged)
        assert [digest for digest in kept if digest in heard] == acknowledged


def test_two_writers_at_once_both_killed(tmp_path):
    dice = random.Random()
    for number in range(max(_ROUNDS // 5, 2)):
        state = tmp_path / f"state-{number // _ROUNDS_EACH}"
        writers = [start(state, f"{side}{number}", 3) for side in "ab"]
        heard = [acknowledged_until_killed(writer, dice.randrange(1, 20)) for writer in writers]
        history = opened(state)
        assert history.notice is None
        kept = [version.digest for version in seen_in(history)]
        for acknowledged in map(dict.fromkeys, heard):
            assert [digest for digest in kept if digest in acknowledged] == list(acknowledged)
        reading = History(state)
        assert [version.digest for version in seen_in(reading)] == kept
