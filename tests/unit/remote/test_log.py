"""A tree that is made of a log equals one that has taken everything, and logs that were told the same are the same."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Fields
from agentwatch.delegation.events import Checked, Event, Gone, Ran, Rules, Seen, Tick, Unreadable
from agentwatch.delegation.links import MAX_VERSIONS
from agentwatch.delegation.tree import Tree
from agentwatch.remote.log import Log
from agentwatch.remote.protocol import entry_of
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import BROKEN, Recorder, handoff, returned, todos
from tests.unit.delegation.test_interleaving import LINE, PATHS, histories, record

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
    tree = Tree(Rules(history_before=LINE))
    for event in events:
        tree.add([event])
    tree.apply(Tick(10_000, 2_000.0))
    return tree_document(tree, "/w")


def log_of(events: Iterable[Event]) -> tuple[Log, list[Any]]:
    """A log of these, and what of them counts."""
    log = Log()
    entries = filter(None, map(entry_of, events))
    return log, [counts for entry in entries if (counts := log.add(entry.event)) is not None]


@given(pasts, st.integers(0, 16))
def test_who_comes_in_the_middle_sees_what_the_others_see(events, at):
    log, counts = log_of(events[:at])
    assert document_of(log.events()) == document_of(events[:at])
    copy, told = Log(), log.events()
    for event in told:
        copy.add(event)
    for one in events[at:]:
        if (entry := entry_of(one)) is not None and (counts := log.add(entry.event)) is not None:
            told.append(counts)
            copy.add(counts)
    assert copy.events() == log.events()
    assert copy.held == log.held
    assert document_of(told) == document_of(log.events()) == document_of(events)


def test_of_a_file_as_much_is_kept_as_the_tree_remembers():
    recorder = Recorder()
    events = [recorder.seen("a.handoff.json", handoff("a", attempt=one)) for one in range(1, MAX_VERSIONS + 20)]
    log, _ = log_of([event for event in events for _ in range(2)])
    assert len(log.events()) == MAX_VERSIONS
    assert log.events()[0] == events[0]
    assert document_of(log.events()) == document_of(events)


def test_of_equal_versions_only_a_return_is_sent_on_again():
    for document, count in ((returned("failed"), 2), (handoff("a"), 1)):
        recorder = Recorder()
        _, counts = log_of([recorder.seen("a.json", document)._replace(digest="0" * 64) for _ in range(2)])
        assert len(counts) == count


def test_checks_are_bounded_and_what_went_takes_no_room():
    log, _ = log_of([Checked(seq, 1.0, "returns.md", f"{seq % 400}", ()) for seq in range(500)])
    assert len(log.events()) == MAX_VERSIONS
    see = Recorder().seen
    log, _ = log_of([Unreadable(1, 2.0, "a.json", BROKEN), see("a.json", handoff("a")), Ran(3, 1.0, "s:1", None)])
    assert [type(one) for one in log.events()] == [Seen]
    assert +log.held == Counter(tasks=1, MiB=log.held["MiB"])
