"""What a host says reaches the screens of a fleet over a real NATS server, and what they say reaches the host."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nats.aio.client import Client
from tests.broker import Broker, new_key, running
from tests.unit.remote.links import Heard

from agentwatch.decisions.envelope import SigningKey
from agentwatch.remote.nats import Login, NatsEnd, NatsHub, NatsLink, asked
from agentwatch.remote.nats_accounts import STREAM, store_subject
from agentwatch.remote.pipe import Link

Start = Callable[[Link], Heard]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from running(tmp_path_factory.mktemp("broker"))


@pytest.fixture
def started() -> Iterator[Start]:
    """Starts ends, and stops them when the test is over."""
    ends: list[Link] = []

    def start(end: Link) -> Heard:
        heard = Heard()
        end.start(heard.receive, heard.change)
        ends.append(end)
        return heard

    yield start
    for end in ends:
        began = time.monotonic()
        end.stop()
        assert time.monotonic() - began < 2  # a second, on a busy machine


def link_to(broker: Broker, host: SigningKey) -> NatsLink:
    return NatsHub(broker.url, Login()).link(host.public)


def test_one_connection_hears_all_hosts_and_each_link_its_own_and_what_was_kept(broker: Broker, started: Start) -> None:
    keys, hub = [new_key() for _ in range(3)], NatsHub(broker.url, Login())
    ends = [NatsEnd(broker.url, key) for key in keys]
    for end in ends:
        started(end).is_up()
        for number in range(3):
            end.keep(b"kept %d of " % number + end.host.encode())
    links = [hub.link(key.public) for key in keys]

    async def is_kept(client: Client) -> int:
        return sum(((await client.jetstream().stream_info(STREAM, store_subject("*"))).state.subjects or {}).values())

    while asked(broker.url, Login(), is_kept) < len(keys):
        time.sleep(0.01)
    for end in ends[1:]:
        # Of a host that is off, the last word is known.
        end.stop()
    for link in links:
        heard = started(link)
        heard.has(b"kept 2 of " + link.host.encode())
        assert len(heard.messages) == 1
        link.send(b"hello")
    other = NatsHub(broker.url, Login()).link(keys[0].public)
    here, there = started(other), Heard()
    here.is_up()
    links[0].receive = there.receive
    ends[0].send(b"only for one", hub.screen)
    there.has(b"only for one")
    assert b"only for one" not in here.messages


def test_after_a_broker_was_killed_both_ends_are_up_again_and_large_messages_pass(
    tmp_path: Path, started: Start
) -> None:
    broker, host = Broker(tmp_path).start().make_store(), new_key()
    try:
        end, link = NatsEnd(broker.url, host), link_to(broker, host)
        hears, shown = started(end), started(link)
        hears.is_up()
        shown.is_up()
        broker.kill()
        for one in (hears, shown):
            one.until(lambda one=one: not one.states[-1].up)  # type: ignore[misc]
        end.send(b"nobody hears this", link.screen)
        broker.start()
        hears.is_up()
        shown.is_up()
        large = random.Random(1).randbytes(1 << 19)
        end.send(large, link.screen)
        link.send(large)
        shown.has(large)
        hears.has(large)
        assert b"nobody hears this" not in shown.messages
    finally:
        broker.stop()


def test_a_link_says_in_words_why_it_is_down_and_needs_no_store(tmp_path: Path, started: Start) -> None:
    broker = Broker(tmp_path, jetstream=False)
    shown = started(link_to(broker, new_key()))
    shown.until(lambda: bool(shown.states))
    assert "cannot be reached (Connection refused)" in shown.states[-1].words
    broker.start()
    try:
        shown.is_up()
    finally:
        broker.stop()
