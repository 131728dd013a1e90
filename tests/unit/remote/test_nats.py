"""Hosts and screens hear each other over a real NATS server. With the accounts of `fleet config` a host can only speak
for itself, and only read messages to itself; and it is told if something is not set up as it has to be."""

import asyncio
import json
import random
import time
from pathlib import Path

import pytest
from nats.aio.client import Client

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from agentwatch.remote.host import Fleet
from agentwatch.remote.nats import Login, NatsEnd, NatsHub, TroubleError, ask_server, connect
from agentwatch.remote.nats_accounts import (
    STREAM,
    format_accounts,
    host_of,
    host_subject,
    screen_subject,
    store_subject,
)
from agentwatch.remote.protocol import PROTOCOL, Hello, Workspace, sign_frame
from agentwatch.state import workspace_id
from tests.broker import DAY, Broker, certify, jwts, key_of, new_key, running
from tests.unit.remote.between import Heard, starting, until

started = pytest.fixture(starting)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("broker"))


def kept(broker: Broker, login: Login | None = None) -> dict[str, int]:
    """Return how many messages are kept, by their subjects."""

    async def look(client: Client) -> dict[str, int]:
        return (await client.jetstream().stream_info(STREAM, subjects_filter=">")).state.subjects or {}

    return ask_server(broker.url, login or Login(), look)


def test_one_connection_hears_all_hosts_and_each_link_its_own(broker, started):
    keys, hub = [new_key() for _ in range(3)], NatsHub(broker.url, Login())
    ends = [NatsEnd(broker.url, key) for key in keys]
    for end in ends:
        started(end).is_up()
        for number in range(3):
            end.keep_hello(b"kept %d of " % number + end.host.encode())
    links = [hub.link(key.public) for key in keys]
    until(lambda: {store_subject(link.host) for link in links} <= kept(broker).keys())
    for end in ends[1:]:
        # After a host has ended, its last message is still known.
        end.stop()
    for link in links:
        heard = started(link)
        heard.has(b"kept 2 of " + link.host.encode())
        assert len(heard.messages) == 1
    other = NatsHub(broker.url, Login()).link(keys[0].public)
    here, there = started(other), Heard()
    here.is_up()
    links[0].receive = there.messages.append
    ends[0].send(b"only for one", hub.screen)
    there.has(b"only for one")
    assert b"only for one" not in here.messages


def test_names_of_workspaces_lead_to_no_directory_here(broker, tmp_path, monkeypatch, started):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Keys().create()
    key, own = new_key(), workspace_id(tmp_path)
    Keys().trust_key(Role.HOST, key.public, "box")
    known = [Workspace(id=name, path="/w", name="shop") for name in ("../../etc", "/etc", "", "..", own)]
    who = {"protocol": PROTOCOL, "agentwatch": "1.0", "host": "box", "host_key": key.public.text, "epoch": "e"}
    hello = Hello(**who, began_at=0.0, now=0.0, workspaces=tuple(known))
    end = NatsEnd(broker.url, key)
    started(end).is_up()
    end.keep_hello(sign_frame(hello, key))
    until(lambda: store_subject(end.host) in kept(broker))
    fleet = Fleet([parse(f"{broker.url}/box")])
    assert [place.workspace for place in fleet.wait_and_find().places] == [Path(f"/nats:box/{own}")]
    fleet.close()


# Encryption and credentials


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return the path of a certificate that would be trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "server.pem"


def why_not(server: str, login: Login | None = None) -> str:
    with pytest.raises(TroubleError) as error:
        ask_server(server, login or Login(), lambda client: client.flush())
    return str(error.value)


def test_over_tls_with_a_creds_file_both_hear_each_other(file, tmp_path, capsys, caplog, started):
    creds = tmp_path / "kim.creds"
    known, text = jwts()
    creds.write_text(text)
    creds.chmod(0o600)
    login = Login(creds=str(creds))
    with Broker(tmp_path / "broker", certify(file) + known) as broker:
        broker.make_store(login)
        host = new_key()
        end, link = NatsEnd(broker.url, host, login=login), NatsHub(broker.url, login).link(host.public)
        hears, shown, large = started(end), started(link), random.randbytes(1 << 19)
        hears.is_up()
        shown.is_up()
        end.send(large, link.screen)
        link.send(large)
        shown.has(large)
        hears.has(large)
        Keys().create()
        run(["doctor", "--nats", broker.url, "--creds", str(creds)])
        assert f"✓ connection: {broker.url} answers" in capsys.readouterr().out
        # An address with `tls://` encrypts, too.
        ask_server(broker.url.replace("nats://", "tls://"), login, lambda client: client.flush())
    # Log lines of libraries would be printed over the screen.
    assert "eof_received" not in caplog.text


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"ends": -DAY / 24}, "certificate has expired"),
        ({"begins": DAY / 24}, "certificate is not yet valid"),
        ({"address": "127.0.0.2"}, "IP address mismatch"),
    ],
)
def test_an_error_about_a_certificate_says_what_to_do(file, tmp_path, wishes, why):
    with Broker(tmp_path / "broker", certify(file, **wishes)) as broker:
        told = why_not(broker.url)
        assert f"TLS with {broker.url} fails ({why}" in told
        assert "look at its certificate" in told


def test_no_encryption_and_broken_credentials_are_named(broker, tmp_path):
    assert "does not encrypt, though its address says so" in why_not(broker.url.replace("nats://", "tls://"))
    file = tmp_path / "creds"
    for name, why in ((file, "No such file or directory"), (tmp_path, "Is a directory")):
        assert why_not(broker.url, Login(creds=str(name))) == f"the credentials {name} cannot be read: {why}"
    for data in (b"hello", b"\xff\xfe", b"-----BEGIN NATS USER JWT-----\nnonsense\n"):
        file.write_bytes(data)
        assert why_not(broker.url, Login(creds=str(file))).startswith(f"{file} is neither a .creds file")


# With accounts

KIM, BOX, OTHER, EVE = map(key_of, range(4))
AS_KIM, AS_BOX = Login(KIM), Login(BOX)
BOX_ID, OTHER_ID = host_of(BOX.public), host_of(OTHER.public)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """Run a server on which kim and two hosts have accounts, and each host has sent one message."""
    text = format_accounts([("kim # }", KIM.public)], [("box\n}", BOX.public), ("other", OTHER.public)])
    for broker in running(tmp_path_factory.mktemp("broker"), text, AS_KIM):
        for started in starting():
            for key in (BOX, OTHER):
                end = NatsEnd(broker.url, key)
                started(end).is_up()
                end.keep_hello(b"mine")
            while len(kept(broker, AS_KIM)) < 2:
                time.sleep(0.01)
        yield broker


async def hear(client: Client, *subjects: str) -> list[str]:
    """Return a list to which the subjects of all messages from now on are added as they come."""
    heard: list[str] = []

    async def note(message: object):
        heard.append(message.subject)

    for subject in subjects:
        await client.subscribe(subject, cb=note)
    await client.flush()
    return heard


async def say(broker: Broker, login: Login, *subjects: str, body: bytes = b'{"batch": 1}', reply: str = "stolen"):
    async with connect(broker.url, login, "evil") as client:
        for subject in subjects:
            await client.publish(subject, body, reply=reply)
        await client.flush()


async def has_come(client: Client, heard: list[str], subject: str) -> list[str]:
    """Wait until a message with this subject has come; all earlier ones have come by then, too."""
    async with asyncio.timeout(60):
        while subject not in heard:
            await client.flush()
    return heard


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
    before, end = kept(spoken, AS_KIM), screen_subject(BOX_ID, "end")

    async def listen(client: Client) -> list[str]:
        heard = await hear(client, "agentwatch.>")
        await say(spoken, AS_BOX, subject, end)
        return await has_come(client, heard, end)

    assert ask_server(spoken.url, AS_KIM, listen) == [end]
    assert kept(spoken, AS_KIM) == before


@pytest.mark.parametrize(
    ("subject", "body"), [(store_subject(BOX_ID), b"x"), (screen_subject(BOX_ID, "x"), b"x"), ("$JS.API.INFO", b"")]
)
def test_no_host_has_the_server_answer_to_another(spoken, subject, body):
    target = store_subject(OTHER_ID)

    async def read(client: Client) -> bytes:
        await say(spoken, AS_BOX, *[subject] * 5, body=body, reply=target)
        await asyncio.sleep(0.1)
        return (await client.jetstream().get_last_msg(STREAM, target)).data or b""

    assert ask_server(spoken.url, AS_KIM, read) == b"mine"


def test_a_host_hears_no_messages_from_or_to_others(spoken):
    own, other = host_subject(BOX_ID), host_subject(OTHER_ID)

    async def spy(client: Client) -> list[str]:
        heard = await hear(client, ">", "agentwatch.>", other, "$KV.>", "_INBOX.>", "$JS.>")
        await say(spoken, AS_KIM, other, screen_subject(OTHER_ID, "x"), own)
        return await has_come(client, heard, own)

    assert set(ask_server(spoken.url, AS_BOX, spy)) == {own}


def test_a_host_that_wipes_the_stream_by_a_header_is_refused(spoken):
    async def wipe(client: Client) -> bytes:
        return (await client.request(store_subject(BOX_ID), b"", timeout=5, headers={"Nats-Rollup": "all"})).data

    before = kept(spoken, AS_KIM)
    assert "rollup" in json.loads(ask_server(spoken.url, AS_BOX, wipe))["error"]["description"]
    assert kept(spoken, AS_KIM) == before


@pytest.mark.parametrize("login", [Login(EVE), Login()])
def test_a_key_outside_the_configuration_is_told_what_to_do(spoken, started, login):
    shown = started(NatsHub(spoken.url, login).link(BOX.public))
    shown.until(lambda: bool(shown.states))
    assert "does not know this key" in shown.states[0].words


def test_a_host_outside_the_configuration_has_never_spoken(spoken, started):
    eve, box = (started(NatsHub(spoken.url, AS_KIM).link(key.public)) for key in (EVE, BOX))
    eve.until(lambda: any("has never spoken on nats://127.0.0.1" in state.words for state in eve.states))
    box.until(lambda: bool(box.messages))
    assert {state.words for state in box.states} == {""}
