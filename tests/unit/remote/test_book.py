"""A tree that is made of a book equals one that has taken everything, and copies of a book find together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentwatch.remote.book import MOST_CHECKS, Book, Put
from agentwatch.remote.frames import Item
from agentwatch.remote.observed import is_told
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import BROKEN, Recorder, handoff, returned, todos
from tests.unit.delegation.test_interleaving import LINE, PATHS, histories, record

from agentwatch.contracts.shapes import Fields
from agentwatch.delegation.events import Checked, Event, Gone, Rules, Tick, Unreadable
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.delegation.tree import Tree
from agentwatch.remote import book as module
from agentwatch.view.document import tree_document

CONTENTS: list[Fields] = [
    handoff("a"),
    handoff("d"),
    handoff(None),
    todos("x", " "),
    todos("-"),
    returned("completed"),
    returned("failed", task_id="a"),
]
files = st.lists(
    st.tuples(
        st.sampled_from([*PATHS[:3], *PATHS[5:8]]),
        st.sampled_from([*range(len(CONTENTS)), *range(len(CONTENTS)), None, None, "unreadable"]),
    ),
    max_size=16,
)
"""Few contents in few files, so that files are renamed, come back and become something else."""


def filed(steps: list[tuple[str, int | str | None]]) -> list[Event]:
    recorder = Recorder()
    observed: list[Event] = []
    for path, step in steps:
        seen = recorder.seen(path, CONTENTS[step if isinstance(step, int) else 0])
        if isinstance(step, int):
            observed.append(seen._replace(digest=f"{step:064x}"))
        else:
            gone = Gone(seen.seq, seen.at, path)
            observed.append(gone if step is None else Unreadable(seen.seq, seen.at, path, BROKEN))
    return observed


pasts = histories.map(record) | files.map(filed)


def document_of(events: Iterable[Event]) -> dict[str, Any]:
    tree = Tree(Rules(history_before=LINE), remembers=True)
    for event in events:
        tree.add([event])
    tree.apply(Tick(10_000, 2_000.0))
    return tree_document(tree, "/w")


def kept(events: Iterable[Event], book: Book | None = None) -> tuple[Book, list[Item]]:
    """A book with these in it, and what it told."""
    book = book or Book()
    told = [book.take(one) for one in events if is_told(one)]  # type: ignore[arg-type]
    return book, [one for one in told if one is not None]


def copy_of(items: Iterable[Item]) -> Book:
    copy = Book()
    for item in items:
        copy.put(item)
    return copy


def is_the_same(one: Book, other: Book) -> bool:
    return (one.seq, one.mark, one.everything()) == (other.seq, other.mark, other.everything())


@given(pasts, st.lists(st.integers(0, 16)))
def test_a_tree_made_of_what_was_told_in_pieces_equals_it_too(events: list[Event], looks: list[int]) -> None:
    """Between two looks some of what was told is void already."""
    book, told, seq = Book(), list[Event](), 0
    for number, event in enumerate(events):
        book.take(event)  # type: ignore[arg-type]
        if number in looks or number == len(events) - 1:
            items = book.since(seq)
            assert items is not None
            told += [item.event for item in items]
            seq = book.seq
    assert document_of(told) == document_of(events)


@given(pasts, st.data())
def test_a_copy_finds_to_the_same_whatever_was_lost_doubled_and_mixed_up(
    events: list[Event], data: st.DataObject
) -> None:
    book, told = kept(events)
    copy = copy_of([])
    have = data.draw(st.integers(0, len(told)))
    for item in told[:have]:
        assert copy.put(item) is Put.NEXT
    arrived = data.draw(st.lists(st.sampled_from(told))) if told else []
    for item in arrived:
        copy.put(item)
    lacking = book.since(told[have - 1].seq if have else 0)
    assert lacking is not None
    for item in lacking:
        copy.put(item)
    assert is_the_same(copy, book)


def test_of_a_file_as_much_is_kept_as_the_tree_remembers_and_the_first_version_stays() -> None:
    recorder = Recorder()
    events = [recorder.seen("a.handoff.json", handoff("a", attempt=one)) for one in range(1, MAX_VERSIONS + 20)]
    book, told = kept(events)
    assert len(book) == MAX_VERSIONS
    assert next(book.events()) == events[0]
    assert document_of(book.events()) == document_of(events)
    assert is_the_same(copy_of(told), book)
    copy = copy_of(told[:30])
    for item in book.since(told[29].seq) or []:
        copy.put(item)
    assert is_the_same(copy, book)


def test_what_is_written_again_and_again_does_not_push_out_what_was_before() -> None:
    recorder = Recorder()
    first, second = (
        recorder.seen("a.handoff.json", handoff("a")),
        recorder.seen("a.handoff.json", handoff("a", mode="x")),
    )
    book, told = kept([first, *(second._replace(seq=9 + again) for again in range(MAX_VERSIONS + 5))])
    assert [item.event for item in told] == [first, second._replace(seq=9)]
    more = [Unreadable(1, 2.0, "a.handoff.json", BROKEN), second] * MAX_VERSIONS
    book, _ = kept(more, book)
    assert len(book) == 3
    assert next(book.events()) == first


def test_the_checks_of_one_file_are_bounded() -> None:
    checks = [Checked(seq, 1.0, "returns.md", f"{seq % 50}", ()) for seq in range(500)]
    book, told = kept(checks)
    assert len(book) == MOST_CHECKS
    assert is_the_same(copy_of(told), book)


def test_who_has_not_heard_of_an_end_that_is_forgotten_has_to_begin_anew(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_MOST_FORGOTTEN", 2)
    recorder = Recorder()
    undone = [recorder.gone(f"{name}.handoff.json")._replace(undone=True) for name in "abc"]
    book, told = kept([*(recorder.seen(one.path, handoff("t")) for one in undone), *undone])
    assert len(book) == 0
    assert book.since(told[2].seq) is None
    assert [item.event for item in book.since(told[3].seq) or []] == undone[1:]
    assert book.since(book.seq + 1) is None
