"""What a session store holds and nobody can read is told, and what was known of it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.closing import closed
from tests.unit.sessions.store import Store, Watch
from tests.unit.sessions.test_conformance import Build, built, every_store

Spoil = Callable[[Path], None]


@contextmanager
def finished(build: Build) -> Iterator[Store]:
    """A store with the whole story, of a program that has ended."""
    with built(build) as store:
        store.finish()
        store.end()
        yield store


def everything_in(store: Store) -> list[Path]:
    """What belongs to the sessions of the workspace, outermost first; a log's shared memory is made anew each time."""
    found = [store.place, *sorted(store.place.rglob("*"))]
    return [path for path in found if path.is_dir() or (path.is_file() and not path.name.endswith(("-shm", "-wal")))]


def is_told(watch: Watch) -> bool:
    return bool(watch.source.problems)


@every_store
def test_whatever_is_closed_the_tree_is_whole_or_something_is_told(build: Build) -> None:
    with finished(build) as store:
        whole = store.seen_at_once()["tasks"]
        told = 0
        for path in everything_in(store):
            watch = store.watch()
            with closed(path):
                watch.look()
                assert watch.document["tasks"] == whole or is_told(watch), path
                told += is_told(watch)
        assert told >= 2


@every_store
def test_what_is_closed_while_it_is_watched_stays_in_the_tree_until_it_can_be_read_again(build: Build) -> None:
    with finished(build) as store:
        watch = store.watch()
        watch.look()
        whole = watch.document["tasks"]
        for path in everything_in(store):
            with closed(path):
                watch.look()
                assert watch.document["tasks"] == whole, path
            watch.look()
            assert watch.document["tasks"] == whole, path
            assert watch.source.problems == (), path


@every_store
def test_whatever_is_damaged_the_tree_is_whole_or_something_is_told(build: Build) -> None:
    random = Random(1)
    with finished(build) as store:
        whole = store.seen_at_once()["tasks"]
        for path in [path for path in everything_in(store) if path.is_file()]:
            before = path.read_bytes()
            path.write_bytes(random.randbytes(len(before) // 2) + b"\n" + random.randbytes(len(before) // 2) + b"\n")
            watch = store.watch()
            watch.look()
            # Notes without a form are free text: whatever stands in them was read.
            assert watch.document["tasks"] == whole or is_told(watch) or path.suffix == ".md", path
            path.write_bytes(before)
