"""With the accounts that `fleet config` prints, a host says only what is its own, and reads only what is for it."""

import asyncio
import json
import time

import pytest
from nats.aio.client import Client

from agentwatch.remote.nats import Login, NatsEnd, NatsHub, asked, connected
from agentwatch.remote.nats_accounts import STREAM, accounts, host_of, host_subject, screen_subject, store_subject
from tests.broker import Broker, key_of, running
from tests.unit.remote.links import Heard

KIM, BOX, OTHER, EVE = map(key_of, range(4))
SECONDS = 60
BOX_ID, OTHER_ID = host_of(BOX.public), host_of(OTHER.public)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A server on which everybody is somebody, and each host has told one thing."""
    text = accounts([("kim # }", KIM.public)], [("box\n}", BOX.public), ("other", OTHER.public)])
    for broker in running(tmp_path_factory.mktemp("broker"), text, Login(KIM)):
        for count, key in enumerate((BOX, OTHER), 1):
            end, heard = NatsEnd(broker.url, key), Heard()
            end.start(heard.receive, heard.change)
            heard.is_up()
            end.keep(b"mine")
            while len(subjects(broker)) < count:
                time.sleep(0.01)
            end.stop()
        yield broker


def subjects(broker: Broker) -> dict[str, int]:
    async def look(client: Client) -> dict[str, int]:
        return (await client.jetstream().stream_info(STREAM, subjects_filter=">")).state.subjects or {}

    return asked(broker.url, Login(KIM), look)


@pytest.mark.parametrize(
    "subject",
    [
        store_subject(OTHER_ID),
        screen_subject(OTHER_ID, "end"),
        host_subject(OTHER_ID),
        host_subject(BOX_ID),
        f"$JS.API.STREAM.PURGE.{STREAM}",
        f"$JS.API.STREAM.DELETE.{STREAM}",
        f"$JS.API.STREAM.MSG.GET.{STREAM}",
    ],
)
def test_a_host_that_speaks_for_another_is_heard_by_nobody(spoken, subject):
    before = subjects(spoken)
    heard: list[str] = []

    async def listen(client: Client):
        async def hear(message: object):
            heard.append(message.subject)

        await client.subscribe("agentwatch.>", cb=hear)
        await client.flush()
        async with connected(spoken.url, Login(BOX), "evil") as evil:
            await evil.publish(subject, b'{"batch": 1}', reply="stolen")
            # Whatever the first did was done before this is heard.
            await evil.publish(screen_subject(BOX_ID, "end"), b"end")
            await evil.flush()
        async with asyncio.timeout(SECONDS):
            while screen_subject(BOX_ID, "end") not in heard:
                await client.flush()

    asked(spoken.url, Login(KIM), listen)
    assert heard == [screen_subject(BOX_ID, "end")]
    assert subjects(spoken) == before


@pytest.mark.parametrize(
    ("subject", "body"), [(store_subject(BOX_ID), b"x"), (screen_subject(BOX_ID, "x"), b"x"), ("$JS.API.INFO", b"")]
)
def test_no_host_has_the_server_answer_to_another(spoken, subject, body):
    target = store_subject(OTHER_ID)

    async def aim(client: Client):
        for _ in range(5):
            await client.publish(subject, body, reply=target)
        await client.flush()
        await asyncio.sleep(0.1)

    async def read(client: Client) -> bytes:
        return (await client.jetstream().get_last_msg(STREAM, target)).data or b""

    asked(spoken.url, Login(BOX), aim)
    assert asked(spoken.url, Login(KIM), read) == b"mine"


def test_a_host_hears_nothing_that_is_said_by_or_to_others(spoken):
    async def spy(client: Client) -> list[str]:
        heard: list[str] = []

        async def hear(message: object):
            heard.append(message.subject)

        for subject in (">", "agentwatch.>", host_subject(OTHER_ID), "$KV.>", "_INBOX.>", "$JS.>"):
            await client.subscribe(subject, cb=hear)
        await client.flush()
        async with connected(spoken.url, Login(KIM), "kim") as kim:
            for subject in (host_subject(OTHER_ID), screen_subject(OTHER_ID, "x"), host_subject(BOX_ID)):
                await kim.publish(subject, b"x")
            await kim.flush()
        async with asyncio.timeout(SECONDS):
            while host_subject(BOX_ID) not in heard:
                await client.flush()
        return heard

    assert set(asked(spoken.url, Login(BOX), spy)) == {host_subject(BOX_ID)}


def test_a_host_that_wipes_the_stream_by_a_header_is_refused(spoken):
    async def wipe(client: Client) -> bytes:
        return (await client.request(store_subject(BOX_ID), b"", timeout=5, headers={"Nats-Rollup": "all"})).data

    before = subjects(spoken)
    assert "rollup" in json.loads(asked(spoken.url, Login(BOX), wipe))["error"]["description"]
    assert subjects(spoken) == before


def test_who_is_not_in_the_configuration_is_told_what_to_do(spoken):
    for login in (Login(EVE), Login()):
        link, shown = NatsHub(spoken.url, login).link(BOX.public), Heard()
        link.start(shown.receive, shown.change)
        shown.until(lambda shown=shown: bool(shown.states))
        link.stop()
        assert "does not know this key" in shown.states[0].words


def test_a_host_that_is_not_in_the_configuration_has_never_spoken(spoken):
    links = {key: NatsHub(spoken.url, Login(KIM)).link(key.public) for key in (EVE, BOX)}
    heard = {key: Heard() for key in links}
    for key, link in links.items():
        link.start(heard[key].receive, heard[key].change)
    heard[EVE].until(
        lambda: "has never spoken on nats://127.0.0.1" in heard[EVE].states[-1].words if heard[EVE].states else False
    )
    heard[BOX].until(lambda: bool(heard[BOX].messages))
    assert {state.words for state in heard[BOX].states} == {""}
    for link in links.values():
        link.stop()
