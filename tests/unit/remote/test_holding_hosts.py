"""A connection lasts while one source needs it: one that was never begun, or is stopped twice, ends no other's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker import new_key

from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import named, parse
from agentwatch.remote.host import Fleet, RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, Receive, command
from agentwatch.remote.protocol import PROTOCOL, Hello, Workspace
from agentwatch.state import workspace_id


class Quiet(Link):
    """A link on which nothing is heard."""

    def __init__(self) -> None:
        self.is_on = False

    def start(self, receive: Receive, change: Change) -> None:
        self.is_on = True

    def send(self, message: bytes, to: str = "") -> None:
        pass

    def stop(self) -> None:
        self.is_on = False


def test_a_source_that_is_stopped_before_it_began_or_twice_ends_no_connection_of_another() -> None:
    link = Quiet()
    host = RemoteHost(link, "build1")
    first, second, never = (RemoteSource(host) for _ in range(3))
    first.start(lambda _: None)
    second.start(lambda _: None)
    never.stop()
    first.stop()
    first.stop()
    assert link.is_on
    second.stop()
    assert not link.is_on


def test_what_a_host_calls_its_workspaces_leads_to_no_directory_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key = new_key()
    Keys().create()
    Keys().trust_other(Role.HOST, key.public, "box")
    monkeypatch.setattr("agentwatch.remote.nats.NatsHub.link", lambda _hub, _key: Quiet())
    fleet = Fleet([parse("nats://broker/box")])
    own = workspace_id(tmp_path)
    known = [Workspace(id=name, path="/w", name="shop") for name in ("../../etc", "/etc", "", "..", own)]
    who = {"protocol": PROTOCOL, "agentwatch": "1.0", "host": "box", "host_key": key.public.text, "epoch": "e"}
    hello = Hello(**who, began_at=0.0, now=0.0, workspaces=tuple(known))
    fleet._brokered["box"].host.hello = hello
    assert [place.workspace for place in fleet.find().places] == [Path(f"/nats:box/{own}")]
    fleet.close()


def test_several_workspaces_of_one_host_share_a_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    box = named([("box", ("run", "/work", "docker", "exec", "-i", "box"))])["box"]
    fleet = Fleet([*map(parse, ("ssh://build1/a", "ssh://kim@build2/a", "ssh://build1/b/a")), *box])
    places = fleet.find().places
    assert [place.name for place in places] == ["build1: a", "build1: /b/a", "build2: a", "box: work"]
    hosts = [fleet.source(place.workspace).host for place in places]
    assert hosts[0] is hosts[1]
    assert len(set(hosts)) == 3
    assert command(box[0], ["relay"])[:5] == ["docker", "exec", "-i", "box", "sh"]
    assert hosts[0]._link._command[-1].endswith("relay --stdio -- /a /b/a")  # type: ignore[attr-defined]
