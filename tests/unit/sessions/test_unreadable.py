"""What a session store holds and nobody can read is told, and what was known of it stays."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from tests.closing import closed
from tests.unit.sessions.store import Store
from tests.unit.sessions.test_conformance import built, every_store


@contextmanager
def finished(program: str) -> Iterator[tuple[Store, list[Path]]]:
    """A store with the whole story, of a program that has ended, and what belongs to its sessions, outermost first."""
    with built(program) as store:
        store.finish()
        store.end()
        found = [store.place, *sorted(store.place.rglob("*"))]
        # A log's shared memory is made anew each time.
        yield store, [path for path in found if not path.name.endswith(("-shm", "-wal"))]


@every_store
def test_what_is_closed_is_told_and_stays_in_the_tree_that_had_it(program):
    with finished(program) as (store, places):
        whole, told = store.seen_at_once()["tasks"], 0
        before = store.watch()
        before.look()
        for path in places:
            watch = store.watch()
            with closed(path):
                watch.look()
                assert watch.document["tasks"] == whole or watch.source.problems, path
                told += bool(watch.source.problems)
                before.look()
                assert before.document["tasks"] == whole, path
            before.look()
            assert before.document["tasks"] == whole, path
            assert before.source.problems == (), path
        assert told >= 2


@every_store
def test_whatever_is_damaged_the_tree_is_whole_or_something_is_told(program):
    random = Random(1)
    with finished(program) as (store, places):
        whole = store.seen_at_once()["tasks"]
        for path in filter(Path.is_file, places):
            before = path.read_bytes()
            path.write_bytes(random.randbytes(len(before) // 2) + b"\n" + random.randbytes(len(before) // 2) + b"\n")
            watch = store.watch()
            watch.look()
            assert watch.document["tasks"] == whole or watch.source.problems, path
            path.write_bytes(before)


def test_half_a_document_changes_nothing_of_what_is_known():
    with finished("roo") as (store, places):
        watch = store.watch()
        watch.look()
        whole = watch.document["tasks"]
        for path in filter(Path.is_file, places):
            path.write_bytes(path.read_bytes()[:-2])
            watch.look()
            assert watch.document["tasks"] == whole, path
            assert watch.source.problems, path
