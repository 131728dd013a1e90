"""The hosts of a screen: each is believed as long as its key is trusted, and connected as long as somebody needs it."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from agentwatch.remote.host import Fleet, RemoteHost, RemoteSource
from agentwatch.remote.pipe import Change, Link, Receive
from agentwatch.remote.protocol import PROTOCOL, Hello, Workspace
from agentwatch.state import workspace_id
from tests.broker import new_key
from tests.homes import live_in
from tests.journeys.made import handoff

ENTER = f"""#!/bin/sh
export HOME="$BOX" XDG_STATE_HOME="$BOX/state" XDG_CONFIG_HOME="$BOX/config" PATH="{Path(sys.executable).parent}:$PATH"
exec "$@"
"""


@pytest.fixture
def box(tmp_path, monkeypatch):
    """The home of the host that is called `box` here."""
    live_in(tmp_path, monkeypatch)
    box, enter = tmp_path / "in the box", tmp_path / "enter"
    (box / "shop").mkdir(parents=True)
    (box / "shop" / "api.handoff.json").write_text(handoff("shop.api"))
    enter.write_text(ENTER)
    enter.chmod(0o755)
    monkeypatch.setenv("BOX", str(box))
    settings = Keys().directory.parent / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[hosts]\nbox = {{ run = ["{enter}"], path = "~/shop" }}\n')
    return box


def test_a_host_with_a_distrusted_or_new_key_is_not_believed(box, capsys):
    def seen() -> tuple[list[str], str]:
        run(["tree", "--json", "box"])
        (tree,) = json.loads(capsys.readouterr().out)["workspaces"]
        return [task["task_id"] for task in tree["tasks"]], " ".join(one["message"] for one in tree["problems"])

    assert seen() == (["shop.api"], "")
    (noted,) = Keys().others(Role.HOST)
    assert run(["keys", "distrust", "box", "--host"]) == 0
    capsys.readouterr()
    tasks, why = seen()
    assert (tasks, "its key is trusted no more: `agentwatch keys trust" in why) == ([], True)
    # Nor does it become another host by another name.
    config = Keys().directory.parent / "config.toml"
    config.write_text(config.read_text().replace("box =", "other ="))
    run(["tree", "--json", "other"])
    assert json.loads(capsys.readouterr().out)["workspaces"][0]["tasks"] == []
    config.write_text(config.read_text().replace("other =", "box ="))
    assert run(["keys", "trust", noted.public.text, "--name", "box", "--host"]) == 0
    capsys.readouterr()
    assert seen() == (["shop.api"], "")
    shutil.rmtree(box / "config")
    tasks, why = seen()
    assert (tasks, "it signs with another key than it had before" in why) == ([], True)
    assert {one.public for one in Keys().others(Role.HOST)} == {noted.public}


class Quiet(Link):
    """A link on which nothing is heard."""

    def __init__(self):
        self.is_on = False

    def start(self, receive: Receive, change: Change):
        self.is_on = True

    def send(self, message: bytes, to: str = ""):
        pass

    def stop(self):
        self.is_on = False


def test_stopping_a_source_ends_no_connection_of_another():
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


def test_names_of_workspaces_lead_to_no_directory_here(tmp_path, monkeypatch):
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


def test_workspaces_of_one_host_have_names_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    places = Fleet([*map(parse, ("ssh://build1/a", "ssh://kim@build2/a", "ssh://build1/b/a"))]).find().places
    assert [place.name for place in places] == ["build1: a", "build1: /b/a", "build2: a"]
