"""A screen shows the same of a host as the host itself, whatever happens on the way."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch import __version__
from agentwatch.contracts.shapes import Fields
from agentwatch.delegation.events import Checked, Event, Gone, Ran, Rules, RunState, Seen, Unreadable
from agentwatch.delegation.links import MAX_VERSIONS
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.remote.host import RemoteSource
from agentwatch.remote.log import Log
from agentwatch.remote.pipe import LinkState
from agentwatch.remote.protocol import entry_of, sign_frame, unpack_frame
from agentwatch.sources import Health
from tests.broker import new_key
from tests.unit.delegation.events import BROKEN, Recorder, handoff, returned, todos
from tests.unit.delegation.test_interleaving import LINE, PATHS, Running, histories, lived, record
from tests.unit.remote.between import KEY, Host, MemoryEnd, MemoryLink, Screen, Time, document_of, pair

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
"""A few contents in a few files, so that files are renamed, come back and change."""


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


def shown(events: Iterable[Event]) -> dict[str, Any]:
    tree = Tree(Rules(history_before=LINE))
    for event in events:
        tree.add_events([event])
    return document_of(tree, 2_000.0)


def log_of(events: Iterable[Any]) -> Log:
    log = Log()
    for entry in filter(None, map(entry_of, events)):
        log.add(entry.event)
    return log


@given(pasts, st.integers(0, 16))
def test_a_late_copy_of_the_log_shows_the_same(events, at):
    log = log_of(events[:at])
    assert shown(log.events()) == shown(events[:at])
    told = log.events()
    copy = log_of(told)
    for one in events[at:]:
        if (entry := entry_of(one)) is not None and (counts := log.add(entry.event)) is not None:
            told.append(counts)
            copy.add(counts)
    assert copy.events() == log.events()
    assert copy.amounts == log.amounts
    assert shown(told) == shown(log.events()) == shown(events)


def test_the_log_keeps_as_much_as_the_tree_remembers():
    see = Recorder().seen
    events = [see("a.handoff.json", handoff("a", attempt=one)) for one in range(1, MAX_VERSIONS + 20)]
    log = log_of([event for event in events for _ in range(2)])
    assert len(log.events()) == MAX_VERSIONS
    assert log.events()[0] == events[0]
    assert shown(log.events()) == shown(events)
    log = log_of([Checked(seq, 1.0, "returns.md", f"{seq % 400}", ()) for seq in range(500)])
    assert len(log.events()) == MAX_VERSIONS
    # A file that is readable again and a removed run take no room.
    log = log_of([Unreadable(1, 2.0, "a.json", BROKEN), events[0]._replace(path="a.json"), Ran(3, 1.0, "s:1", None)])
    assert [type(one) for one in log.events()] == [Seen]
    assert +log.amounts == Counter(tasks=1, MiB=log.amounts["MiB"])


# On the way


def passes(host: Host, screen: Screen, seconds: float):
    """Let time pass on both sides, a beat at a time, and deliver everything."""
    for _ in range(int(seconds / 2.5)):
        for time in {host.time, screen.time}:
            time.at += 2.5
        host.tell()
        host.beat()
        screen.host.tick()
        screen.exchange()


OTHER = new_key()


class World:
    """A host, a screen, and the acts that happen between them."""

    def __init__(self, events: list[Event]):
        self.left = events
        self.seen: list[Event] = []
        self.host, self.screen = pair()
        self.delivered: list[bytes] = []

    def happen(self, what: str, number: int):
        link, host = self.screen.link, self.host
        waiting, said = link.waiting, link.said
        match what:
            case "see":
                some, self.left = self.left[: number + 1], self.left[number + 1 :]
                self.seen += some
                host.see(some)
            case "deliver" if waiting:
                self.delivered.append(waiting[0])
                link.deliver()
            case "replay" if self.delivered:
                waiting.insert(0, self.delivered[number * 7 % len(self.delivered)])
            case "forge" if waiting:
                # One forger has another key, and another one changes a bit of the signature.
                forged = sign_frame(unpack_frame(waiting[0][96:]), OTHER)
                waiting[:0] = [forged, waiting[0][:50] + bytes([waiting[0][50] ^ 1]) + waiting[0][51:]]
            case "lose" if waiting:
                del waiting[number % len(waiting)]
            case "double" if waiting:
                waiting.insert(number, waiting[number % len(waiting)])
            case "late" if waiting:
                waiting.append(waiting.pop(number % len(waiting)))
            case "hear" if said:
                link.hear(number % len(said))
            case "unheard" if said:
                del said[number % len(said)]
            case "cut":
                link.cut()
            case "connect":
                link.connect()
            case "restart":
                # A new run of the relay observes everything anew.
                self.host = Host(host.time)
                link.reach(self.host.end)
                self.host.see(self.seen, settled=number > 2)
            case "wait":
                host.time.at += number
            case "tick":
                self.screen.host.tick()
                host.beat()


FAULTS = (
    "see", "deliver", "lose", "double", "late", "hear", "unheard", "replay", "forge", "cut", "connect", "restart",
    "wait", "tick",
)  # fmt: skip


@given(pasts, st.lists(st.tuples(st.sampled_from(FAULTS), st.integers(0, 5)), max_size=60))
def test_after_any_faults_the_screen_shows_what_the_host_does(events, faults):
    world = World(events)
    for what, number in (*faults, ("see", len(events)), ("connect", 0)):
        world.happen(what, number)
    host, screen = world.host, world.screen
    passes(host, screen, 120)
    assert screen.document() == host.document()
    assert screen.health == host.part.log.standing.health  # type: ignore[union-attr]
    assert screen.tree.lost_since is None


def work(host: Host):
    """Let the host observe a task at work, one that has returned, and the run of a session."""
    see = Recorder().seen
    host.see(
        [
            see("a.handoff.json", handoff("a")),
            see("b.handoff.json", handoff("a.b")),
            see("b.return.md", returned("failed", task_id="a.b")),
            lived(9, Running("s1", RunState.WORKING, None, False, None), {}),
        ]
    )


@pytest.fixture
def working():
    """Return a host with work, and a screen that shows it."""
    host, screen = pair()
    work(host)
    screen.exchange()
    return host, screen


def test_a_relay_started_anew_replaces_the_other_at_once(working):
    host, screen = working
    shown, batches = screen.document(), len(screen.batches)
    again = Host(host.time)
    screen.move(again)
    again.see([], settled=False)
    screen.exchange()
    # The old tasks stay until the new ones are there.
    assert screen.document() == shown
    work(again)
    passes(again, screen, 2.5)
    assert screen.document() == again.document() == host.document()
    assert [batch.starts_over for batch in screen.batches[batches:] if batch.events] == [True]


def test_a_workspace_that_is_relayed_no_more_stays_as_it_was(working):
    host, screen = working
    tasks, again = screen.document()["tasks"], Host(host.time)
    again.drop()
    screen.move(again)
    screen.exchange()
    assert (screen.document()["tasks"], screen.source.workspace_id) == (tasks, "")
    assert (screen.health.mode, "it relays no" in screen.health.detail) == ("degraded", True)


def test_a_host_that_is_gone_is_lost_since_it_was_heard_last(working):
    host, screen = working
    heard_at = host.time.at
    host.time.at += 4
    screen.link.cut()
    screen.host.tick()
    assert screen.told == []
    host.time.at += 3
    screen.host.tick()
    assert (screen.told, screen.tree.lost_since) == (["Lost"], heard_at)
    assert screen.tree.tasks["a"].state is State.UNKNOWN
    words = "build1 cannot be reached: the cable was cut"
    assert (screen.health.mode, screen.health.detail, screen.health.problems[0].message) == ("degraded", words, words)
    host.time.at += 100
    screen.host.tick()
    screen.link.connect()
    assert screen.told == ["Lost"]
    screen.exchange()
    assert (screen.told, screen.tree.lost_since) == (["Lost", "Reached"], None)
    assert screen.document() == host.document()
    # The run of the relay is the same, so nothing is sent twice.
    assert sum(isinstance(one, Seen) for batch in screen.batches for one in batch.events) == 3


@pytest.mark.parametrize("words", ["", "it has never spoken there"])
def test_a_slow_connection_leaves_the_whole_time_to_answer(words):
    time = Time()
    screen = Screen(MemoryLink(MemoryEnd()), time)
    time.at += 19
    screen.host.tick()
    assert (screen.told, screen.health) == ([], Health("starting", "connecting to build1"))
    screen.link.connect()
    screen.link.change(LinkState(up=True, words=words))
    time.at += 19
    screen.host.tick()
    assert screen.told == []
    time.at += 2
    screen.host.tick()
    why = f"build1 cannot be reached: {words or 'it does not answer'}"
    assert (screen.told, screen.health.detail) == (["Lost"], why)


def test_a_clock_in_a_wrong_year_has_to_be_set():
    host = Host(Time(0.0))
    screen = Screen(MemoryLink(host.end), Time())
    screen.link.connect()
    passes(host, screen, 30)
    assert screen.health.detail == "build1 cannot be reached: its clock is wrong: set it there"
    host.time.at = screen.time.at
    passes(host, screen, 5)
    assert screen.host.lost_since is None


def test_times_of_a_host_are_shown_by_our_clock():
    host = Host(Time())
    screen = Screen(MemoryLink(host.end), Time(host.time.at + 100))
    screen.link.connect()
    work(host)
    passes(host, screen, 30)
    there, here = (
        [datetime.fromisoformat(task["updated_at"]).timestamp() for task in one.document()["tasks"]]
        for one in (host, screen)
    )
    assert here == pytest.approx([at + 100 for at in there], abs=3)


def test_a_recording_of_yesterday_is_no_host_that_answers():
    """An attacker on the way has kept all messages, and plays them to a new screen."""
    host, screen = pair()
    work(host)
    recorded = [*screen.link.waiting, sign_frame(host.hello(), KEY)]
    host.beat()
    new = Screen(MemoryLink(MemoryEnd()), Time(host.time.at + 86_400))
    new.link.connect()
    for message in (*recorded, *screen.link.waiting):
        new.link.receive(message)
    new.time.at += 20
    new.host.tick()
    assert (new.told, new.tree.lost_since) == (["Lost"], new.time.at - 20)
    assert not new.tree.tasks
    # The screen says how many tasks there were.
    assert new.health.mode == "degraded"
    assert "tasks, 1 of them asked you when it was heard last" in new.health.detail


def test_another_key_than_before_is_not_believed():
    host, screen = pair()
    assert screen.host.key == KEY.public
    fake = Host(host.time, OTHER)
    screen.move(fake)
    work(fake)
    passes(fake, screen, 20)
    assert not screen.tree.tasks
    assert screen.told == ["Lost"]
    _, screen = pair(key=OTHER.public)
    screen.host.tick()
    assert screen.health.detail == (
        "build1 is not believed: it signs with another key than it had before, or its agentwatch is older;"
        " update agentwatch there, or if you know of a new key: `agentwatch keys distrust build1 --host`,"
        " then start again"
    )
    assert screen.host.hello is None


def test_stopping_a_source_ends_no_connection_of_another():
    _, screen = pair()
    second, never = RemoteSource(screen.host), RemoteSource(screen.host)
    second.start(lambda _: None)
    never.stop()
    for _ in range(2):
        screen.source.stop()
    assert screen.link.is_up
    second.stop()
    assert not screen.link.is_up


def test_the_facts_about_a_host_have_its_connection_and_trust():
    own, here = new_key().public, Time()
    host = Host(Time(here.at + 7200))
    screen = Screen(MemoryLink(host.end), here, own_key=lambda: own.text)
    assert screen.host.connection_facts == [("agentwatch", "")]
    screen.link.connect()
    for deciders in ((), (own.keyid,), ()):
        passes(host, screen, 10)
        host.beat(*deciders)
        screen.exchange()
        known = dict(screen.host.connection_facts)
        assert (known["agentwatch"], known["clock"]) == (f"{__version__} on build1", "2h ahead of yours")
        assert known["round trip"].endswith(" ms")
        assert ("your key may decide there" in known["trust"]) == (screen.host.refusal == "") == bool(deciders)
    assert f"build1 does not trust your key: on it, `agentwatch keys trust {own.text}" in (screen.host.refusal or "")
