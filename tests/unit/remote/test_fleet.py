"""Commands about hosts, one of them behind a real sshd: they print the same as on the host, and decide there; a host is
believed as long as its key is trusted."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from agentwatch.remote.host import Fleet
from tests.homes import live_in
from tests.journeys.made import handoff, returned
from tests.unit.remote.between import until
from tests.unit.remote.sshd import Sshd, needs_sshd
from tests.unit.test_workspaces import session

ENTER = f"""#!/bin/sh
export HOME="$BOX" XDG_STATE_HOME="$BOX/state" XDG_CONFIG_HOME="$BOX/config" PATH="{Path(sys.executable).parent}:$PATH"
exec "$@"
"""


def script(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_a_host_with_a_distrusted_or_new_key_is_not_believed(tmp_path, monkeypatch, capsys):
    live_in(tmp_path, monkeypatch)
    box, enter = tmp_path / "in the box", script(tmp_path / "enter", ENTER)
    (box / "shop").mkdir(parents=True)
    (box / "shop" / "api.handoff.json").write_text(handoff())
    monkeypatch.setenv("BOX", str(box))
    config = Keys().directory.parent / "config.toml"
    config.parent.mkdir(parents=True)

    def seen(name: str = "box") -> tuple[list[str], str]:
        config.write_text(f'[hosts]\n{name} = {{ run = ["{enter}"], path = "~/shop" }}\n')
        capsys.readouterr()
        run(["tree", "--json", name])
        (tree,) = json.loads(capsys.readouterr().out)["workspaces"]
        return [task["task_id"] for task in tree["tasks"]], " ".join(one["message"] for one in tree["problems"])

    assert seen() == (["shop.api"], "")
    (noted,) = Keys().known_keys(Role.HOST)
    assert run(["keys", "distrust", "box", "--host"]) == 0
    tasks, why = seen()
    assert (tasks, "its key is trusted no more: `agentwatch keys trust" in why) == ([], True)
    # Another name does not make it another host.
    assert seen("other")[0] == []
    assert run(["keys", "trust", noted.public.text, "--name", "box", "--host"]) == 0
    assert seen() == (["shop.api"], "")
    shutil.rmtree(box / "config")
    tasks, why = seen()
    assert (tasks, "it signs with another key than it had before" in why) == ([], True)
    assert {one.public for one in Keys().known_keys(Role.HOST)} == {noted.public}


def test_workspaces_of_one_host_have_names_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    places = Fleet([*map(parse, ("ssh://build1/a", "ssh://kim@build2/a", "ssh://build1/b/a"))]).find().places
    assert [place.name for place in places] == ["build1: a", "build1: /b/a", "build2: a"]


# Behind a real sshd


@pytest.fixture(params=[pytest.param("sshd", marks=[needs_sshd, pytest.mark.slow])])
def sshd(tmp_path, monkeypatch):
    """Return a host with a workspace; the operator's `ssh` finds it."""
    running = Sshd(tmp_path / "host")
    shop = running.home / "shop"
    shop.mkdir()
    for name, state in (("api", "ERROR"), ("plan", "SUCCESS")):
        (shop / f"{name}.handoff.json").write_text(handoff(f"shop.{name}"))
        (shop / f"{name}.return.md").write_text(returned(state, f"shop.{name}"))
    command = f'#!/bin/sh\nexec /usr/bin/env PATH="$AGENTWATCH_PATH" {" ".join(running.program)} "$@"\n'
    wrapper = script(tmp_path / "bin" / "ssh", command)
    monkeypatch.setenv("AGENTWATCH_PATH", os.environ["PATH"])
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    live_in(tmp_path / "operator", monkeypatch)
    yield running
    running.stop()


def on_host(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command as it would run on the host, once the relays of earlier commands have ended."""
    until(lambda: not sshd.relays())
    with monkeypatch.context() as there:
        for name, value in sshd.environment.items():
            there.setenv(name, value)
        return run(words)


def test_the_tree_is_the_hosts_and_decisions_are_recorded_there(sshd, monkeypatch, capsys):
    address, shop = sshd.address("/~/shop").written, str(sshd.home / "shop")
    assert run(["tree", "--json", address]) == 0
    (far,) = json.loads(capsys.readouterr().out)["workspaces"]
    assert (far["complete"], far["host"], {task["host"] for task in far["tasks"]}) == (True, "127.0.0.1", {"127.0.0.1"})
    assert far["workspace"] == shop
    assert on_host(sshd, monkeypatch, "tree", "--json", shop) == 0
    here = json.loads(capsys.readouterr().out)
    elsewhere = {name: far["tasks"][0][name] for name in ("host", "workspace")}
    assert far["tasks"] == [task | elsewhere for task in here["tasks"]]
    assert run(["pending", address]) == 0
    assert f"-- shop.api {address}" in capsys.readouterr().out.replace("'", "")

    Keys().create()
    decide = ["decide", "shop.api", address, "--retry", "--yes"]
    assert run(decide) == 2
    assert "127.0.0.1 does not trust your key: on it, `agentwatch keys trust ed25519:" in capsys.readouterr().err
    assert on_host(sshd, monkeypatch, "keys", "trust", Keys().show().text, "--name", "kim") == 0
    assert run(decide) == 0
    assert "in the ledger of “127.0.0.1”, once it has checked this" in capsys.readouterr().out
    assert on_host(sshd, monkeypatch, "wait", "shop.api", shop, "--timeout", "0") == 0
    assert json.loads(capsys.readouterr().out)["action"] == "retry"
    assert run(["log", address]) == 0
    far_log = capsys.readouterr().out
    assert "you decided: retry" in far_log
    # The log on the host has the same dates, and names kim instead of you.
    assert on_host(sshd, monkeypatch, "log", shop) == 0
    first, *others = far_log.replace("you decided: retry", "decided: retry by “kim”").splitlines()
    assert "first look: 2 tasks, 1 failed" in first
    assert capsys.readouterr().out.splitlines() == [first, *others]


def test_a_host_that_cannot_be_reached_is_reported(sshd, capsys):
    sshd.stop()
    address = sshd.address("/~/shop").written
    assert run(["tree", "--fail", address]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("127.0.0.1 was not read. ")
    assert re.search("127.0.0.1 cannot be reached: .*refused", said.err)
    assert run(["decide", "shop.api", address, "--retry", "--yes"]) == 2
    assert not (Path(os.environ["HOME"]) / "state" / "agentwatch").exists()


def test_the_workspaces_of_a_host_share_a_connection(sshd, capsys):
    (sshd.home / "api").mkdir()
    (sshd.home / "api" / "a.handoff.json").write_text(handoff("a"))
    run(["tree", "--json", *(sshd.address(f"/~/{name}").written for name in ("shop", "api", "none"))])
    found = json.loads(capsys.readouterr().out)["workspaces"]
    assert [[task["task_id"] for task in one["tasks"]] for one in found] == [["shop.api", "shop.plan"], ["a"], []]
    assert "no such directory" in found[2]["problems"][0]["message"]
    assert (sshd.place / "sshd.log").read_text().count("Accepted publickey") == 1


def test_a_host_without_a_path_shows_what_is_alive_there(sshd, capsys):
    address = sshd.address("").written

    def seen() -> list[tuple[str, int]]:
        assert run(["tree", "--json", address]) == 0
        found = json.loads(capsys.readouterr().out)["workspaces"]
        return [(one["workspace"], len(one["tasks"])) for one in found]

    assert seen() == [(address, 0)]
    assert run(["tree", address]) == 0
    assert "no session of an agent was alive there in the last day" in capsys.readouterr().err
    session(sshd.home, sshd.home / "shop", "s1")
    assert seen() == [(str(sshd.home / "shop"), 3)]
    # The address with the path of the workspace names it, too.
    assert run(["pending", address]) == 0
    assert f"-- shop.api {address}{sshd.home}/shop" in capsys.readouterr().out.replace("'", "")
