"""What a host says reaches the screens of a fleet over a real NATS server, and what they say reaches the host."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agentwatch.remote.link import Link, RelayEnd
from agentwatch.remote.nats_connection import Login, asked
from agentwatch.remote.nats_end import NatsEnd
from agentwatch.remote.nats_link import NatsHub, NatsLink, hosts_of
from agentwatch.remote.nats_names import DECISIONS, STREAM, all_said_by, decided_for
from nats.aio.client import Client
from tests.broker import Broker, new_key, running
from tests.unit.remote.links import Heard

HOST = new_key()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from running(tmp_path_factory.mktemp("broker"))


@pytest.fixture
def started() -> Iterator[Callable[[Link | RelayEnd], Heard]]:
    """Starts ends, and stops them when the test is over."""
    ends: list[Link | RelayEnd] = []

    def start(end: Link | RelayEnd) -> Heard:
        heard = Heard()
        end.start(heard.take, heard.change)
        ends.append(end)
        return heard

    yield start
    for end in ends:
        began = time.monotonic()
        end.stop()
        assert time.monotonic() - began < 2  # a second, on a busy machine


Start = Callable[[Link | RelayEnd], Heard]


def link_to(broker: Broker, host: object = HOST) -> NatsLink:
    return NatsHub(broker.url, Login()).link(host.public)


def test_a_screen_that_comes_later_has_the_latest_of_each_key_at_once_and_then_follows(
    broker: Broker, started: Start
) -> None:
    host = new_key()
    end = NatsEnd(broker.url, host)
    started(end)
    for number in range(10):
        end.send(b"a%d" % number, "a", keep=True)
        end.send(b"b%d" % number, "b", keep=True)
    first = started(link_to(broker, host))
    first.has(b"a9", b"b9")
    later = started(link_to(broker, host))
    later.has(b"a9", b"b9")
    assert sorted(later.messages) == [b"a9", b"b9"]
    end.send(b"a10", "a", keep=True)
    first.has(b"a10")
    later.has(b"a10")


def test_a_decision_waits_for_a_host_that_is_away_and_comes_once(
    broker: Broker, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentwatch.remote.nats_link._AGAIN_SECONDS", 1e9)
    host = new_key()
    link = link_to(broker, host)
    started(link).is_up()
    for message in (b"lost", b"also lost"):
        link.send(message)
    for _ in range(5):
        link.send(b"retry t-7", keep=True)
    link.send(b"abort t-8", keep=True)
    end = NatsEnd(broker.url, host)
    heard = started(end)
    heard.has(b"abort t-8")
    link.send(b"watch")
    heard.has(b"watch")
    assert heard.messages == [b"retry t-7", b"abort t-8", b"watch"]


def test_a_decision_that_a_host_took_and_did_not_finish_comes_again(
    broker: Broker, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentwatch.remote.nats_link._ACK_SECONDS", 0.5)
    host = new_key()
    link = link_to(broker, host)
    started(link).is_up()
    begun, died = threading.Event(), threading.Event()

    def dies(_: bytes) -> None:
        begun.set()
        died.wait(20)

    first = NatsEnd(broker.url, host)
    first.start(dies, lambda _: None)
    link.send(b"retry t-7", keep=True)
    assert begun.wait(20)
    first.stop()
    died.set()
    started(NatsEnd(broker.url, host)).has(b"retry t-7")


def test_one_connection_hears_all_hosts_and_each_link_its_own(broker: Broker, started: Start) -> None:
    keys = [new_key() for _ in range(5)]
    for key in keys:
        end = NatsEnd(broker.url, key)
        started(end)
        end.send(b"hello", "hello", keep=True)
        end.send(end.host.encode(), "state", keep=True)
    hub = NatsHub(broker.url, Login())
    links = [hub.link(key.public) for key in keys]
    heard = [started(link) for link in links]
    for link, one in zip(links, heard, strict=True):
        one.has(link.host.encode(), b"hello")
        assert set(one.messages) == {link.host.encode(), b"hello"}
    assert {link.host for link in links} <= set(hosts_of(broker.url, Login()))


def test_what_is_said_lies_in_the_streams_as_it_is(broker: Broker, started: Start) -> None:
    host = new_key()
    end, link = NatsEnd(broker.url, host), link_to(broker, host)
    heard, shown = started(end), started(link)
    end.send(b"the state of t-7", "file:returns/t-7-named.md", keep=True)
    shown.has(b"the state of t-7")
    link.send(b"retry t-7", keep=True)
    heard.has(b"retry t-7")

    async def read(client: Client) -> list[bytes]:
        stream = client.jetstream()
        names = ((STREAM, all_said_by(end.host)), (DECISIONS, decided_for(end.host)))
        found = [await stream.get_last_msg(*name) for name in names]
        assert not any("t-7" in (one.subject or "") for one in found)
        return [one.data or b"" for one in found]

    assert asked(broker.url, Login(), read) == [b"the state of t-7", b"retry t-7"]


def test_after_a_broker_was_killed_all_that_was_said_meanwhile_is_there(tmp_path: Path, started: Start) -> None:
    broker = Broker(tmp_path).start().make_streams()
    try:
        end, link = NatsEnd(broker.url, HOST), link_to(broker)
        hears, shown = started(end), started(link)
        end.send(b"before", "before", keep=True)
        shown.has(b"before")
        hears.is_up()
        broker.kill()
        shown.until(lambda: not shown.states[-1].up)
        hears.until(lambda: not hears.states[-1].up)
        for number in range(100):
            end.send(b"meanwhile %d" % number, f"{number % 10}", keep=True)
        end.send(b"nobody hears this")
        broker.start()
        shown.has(*(b"meanwhile %d" % number for number in range(90, 100)))
        assert shown.states[-1].up
        assert b"nobody hears this" not in shown.messages
        later = started(link_to(broker))
        later.has(*(b"meanwhile %d" % number for number in range(90, 100)))
    finally:
        broker.stop()


def test_a_link_says_in_words_why_it_is_down_and_what_to_do(tmp_path: Path, started: Start) -> None:
    broker = Broker(tmp_path, jetstream=False)
    shown = started(link_to(broker))
    shown.until(lambda: bool(shown.states))
    assert "cannot be reached (Connection refused)" in shown.states[-1].words
    broker.start()
    try:
        shown.until(lambda: "has no JetStream" in shown.states[-1].words)
    finally:
        broker.stop()


def test_a_screen_that_comes_later_gets_more_than_the_server_gives_at_once(broker: Broker, started: Start) -> None:
    host = new_key()
    end = NatsEnd(broker.url, host)
    started(end).is_up()
    large = random.Random(1).randbytes(900_000)
    for number in range(40):
        end.send(b"%d " % number + large, f"{number}", keep=True)
    for number in range(1200):
        end.send(b"small %d" % number, f"small {number}", keep=True)
    shown = started(link_to(broker, host))
    shown.until(lambda: len(shown.messages) == 1240)
    assert {message[:3] for message in shown.messages if len(message) > 900_000} >= {b"0 " + large[:1], b"39 "}
