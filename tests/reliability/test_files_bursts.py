"""The files source under bursts, losses and exchanges: in the end nothing is missing. `AGENTWATCH_ROUNDS=50 pytest
tests/reliability/test_files_bursts.py` repeats each test with other random numbers."""

import os
import random
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.unit.files.watching import EVERY_WAY, PATIENCE, Receiver, descriptors, on_disk, packet, watching, write

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is a part of Linux")

ROUNDS = range(int(os.environ.get("AGENTWATCH_ROUNDS", "1")))

EVERY_ROUND = pytest.mark.parametrize("seed", ROUNDS)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def until_like_disk(receiver: Receiver, root: Path):
    expected = on_disk(root)
    receiver.until(lambda it: it.present == expected)


@EVERY_WAY
@EVERY_ROUND
def test_a_burst_of_new_directories_is_complete(root, settings, seed):
    with watching(root, settings) as receiver:
        for number in range(500):
            write(root / f"task-{number}" / "return.json", packet(f"{seed}.{number}"))
        until_like_disk(receiver, root)
    assert len(receiver.present) == 500


def test_after_an_overflow_nothing_is_missing(root):
    def flood(_: Receiver) -> bool:
        """While the source waits to deliver the first file, the kernel keeps a limited number of events."""
        write(root / "first.json", packet("first"))
        time.sleep(1.0)
        for number in range(60_000 if len(ROUNDS) > 1 else 20_000):
            os.utime(root / f"{number % 20}" / "old.json")
        for number in range(500):
            write(root / f"{number % 20}" / f"{number}.json", packet(str(number)))
        return True

    with watching(root) as receiver:
        for number in range(20):
            write(root / f"{number}" / "old.json", packet("old"))
        until_like_disk(receiver, root)
        receiver.until(flood)
        until_like_disk(receiver, root)
        assert receiver.mode == "live"


@EVERY_WAY
@EVERY_ROUND
def test_after_any_sequence_of_changes_it_shows_what_is_on_disk(root, settings, seed):
    chance = random.Random(seed)
    (root.parent / "aside").mkdir()
    with watching(root, settings) as receiver:
        for step in range(400):
            change(root, chance, step)
            if step % 100 == 99:
                until_like_disk(receiver, root)


def change(root: Path, chance: random.Random, step: int):
    """Make one of the changes that agents, editors and version control make in a workspace."""
    names = [root / "/".join(chance.choices("abc", k=chance.randint(1, 3))) for _ in range(2)]
    one, other = names
    file = one / f"{chance.choice('xyz')}.json"
    kind = chance.choice(["write"] * 6 + ["atomic", "delete", "rename", "move", "remove", "exchange", "away", "link"])
    try:
        if kind == "write":
            write(file, packet(str(step)))
        elif kind == "atomic":
            write(file.with_suffix(".tmp"), packet(str(step)))
            file.with_suffix(".tmp").replace(file)
        elif kind == "delete":
            file.unlink()
        elif kind == "rename":
            file.rename(other / "x.json")
        elif kind == "move":
            one.rename(other)
        elif kind == "remove":
            shutil.rmtree(one)
        elif kind == "exchange":
            one.rename(root.parent / "aside" / str(step))
            other.rename(one)
            (root.parent / "aside" / str(step)).rename(other)
        elif kind == "away":
            one.rename(root.parent / "aside" / str(step))
        elif kind == "link":
            one.symlink_to(root.parent / "aside")
    except OSError:
        # The file for this change is missing or of another kind, so nothing changes.
        return


@EVERY_WAY
def test_descriptors_and_watches_do_not_grow(root, settings):
    with watching(root, settings) as receiver:
        write(root / "x.json", packet("x"))
        until_like_disk(receiver, root)
        before = descriptors()
        for turn in range(5):
            for number in range(20):
                write(root / f"{number}" / "a" / "x.json", packet(f"{turn}.{number}"))
            until_like_disk(receiver, root)
            for number in range(20):
                shutil.rmtree(root / f"{number}")
            until_like_disk(receiver, root)
        deadline = time.monotonic() + PATIENCE
        while descriptors() > before:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_an_agent_that_writes_hostile_files_hides_no_others(root):
    stop, enough = threading.Event(), threading.Event()

    def attack():
        number = 0
        while not stop.is_set():
            number += 1
            if number == 500:
                enough.set()
            base = os.fsencode(root)
            for path in (b"/\xff.json", b"/\x1b]0;x\x07.return.md", b"/new\nline.json"):
                with open(base + path, "wb") as file:  # noqa: PTH123  the name is no text
                    file.write(b"\xff" * (number % 50))
            (root / "link.return.md").unlink(missing_ok=True)
            (root / "link.return.md").symlink_to("/etc/passwd" if number % 2 else ".")
            (root / "swap").unlink() if (root / "swap").is_symlink() else shutil.rmtree(
                root / "swap", ignore_errors=True
            )
            if number % 2:
                (root / "swap").symlink_to("/")
            else:
                write(root / "swap" / "etc" / "x.json", packet("x"))

    attacker = threading.Thread(target=attack)
    with watching(root) as receiver:
        attacker.start()
        try:
            for number in range(50):
                write(root / "good" / f"{number}.json", packet(str(number)))
            assert enough.wait(PATIENCE)
            receiver.until(lambda it: sum(path.startswith("good/") for path in it.present) == 50)
        finally:
            stop.set()
            attacker.join()
        # A return that is a link is a problem until it is removed.
        shutil.rmtree(root / "swap", ignore_errors=True)
        (root / "link.return.md").unlink(missing_ok=True)
        receiver.until(lambda it: it.mode == "live")
    assert not any("passwd" in repr(item) for item in receiver.events)
    places = {problem.place for batch in receiver.batches for problem in batch.health.problems}
    assert places <= {str(root / "link.return.md")}
