"""A connection lasts while one source needs it: one that was never begun, or is stopped twice, ends no other's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker import new_key

from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from agentwatch.remote.copy import Epoch
from agentwatch.remote.fleet import Fleet
from agentwatch.remote.frames import PROTOCOL, Hello, Workspace
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.link import Change, Link, Take
from agentwatch.remote.source import RemoteSource
from agentwatch.state import workspace_id


class Quiet(Link):
    """A link on which nothing is heard."""

    def __init__(self) -> None:
        self.is_on = False

    def start(self, take: Take, change: Change) -> None:
        self.is_on = True

    def send(self, message: bytes, *, keep: bool = False) -> None:
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
    monkeypatch.setattr("agentwatch.remote.nats_link.NatsHub.link", lambda _hub, _key: Quiet())
    fleet = Fleet([parse("nats://broker/box")])
    own = workspace_id(tmp_path)
    known = [Workspace(name, "/w", "shop") for name in ("../../etc", "/etc", "", "..", own)]
    hello = Hello(PROTOCOL, "1.0", "box", key.public.text, "e", 0.0, 0.0, tuple(known))
    fleet._brokered["box"].host._current = Epoch(hello, keeps=True)
    assert [place.workspace for place in fleet.find().places] == [Path(f"/nats:box/{own}")]
    many = [Workspace(f"shop-{number:016x}", "/w", "shop") for number in range(501)] * 2
    fleet._brokered["box"].host._current = Epoch(hello._replace(workspaces=tuple(many)), keeps=True)
    found = fleet.find()
    assert len({place.workspace for place in found.places}) == len(found.places) == 500
    assert found.complaints == ["box relays 501 workspaces: the first 500 are shown"]
    fleet.close()
