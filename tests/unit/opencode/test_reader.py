"""Sessions as the program leaves them, read as runs."""

from __future__ import annotations

from pathlib import Path

from tests.unit.opencode.program import Program
from tests.unit.opencode.reading import Reading


def test_what_was_found_is_told(program: Program, watched: Reading, database: Path) -> None:
    program.session()
    watched.read()
    (found,) = watched.reader.found()
    assert (found.source, found.place, found.sessions, found.skipped) == ("opencode", str(database), 1, "")
    assert watched.reader.progress.done == watched.reader.progress.total > 0


def test_a_database_that_is_not_there_yet_is_no_trouble(watched: Reading, database: Path) -> None:
    assert not watched.read()
    assert watched.reader.trouble is None
    assert not watched.reader.found()


def test_much_is_read_in_pieces_and_each_of_them_gives_something(program: Program, watched: Reading) -> None:
    for _ in range(30):
        root = program.session()
        program.ask(root, "Please.")
        program.answer(root, "Done.")
    steps = 0
    while watched.reader.progress.done < watched.reader.progress.total or not steps:
        before = watched.reader.progress.done
        watched.read(0)
        assert watched.reader.progress.done >= before
        steps += 1
    assert steps > 10
    assert len(watched.runs) == 30
