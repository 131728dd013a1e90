"""Commands about a workspace behind a real sshd: they print what the host would, and decide there."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys
from tests.homes import live_in
from tests.journeys.made import handoff, returned
from tests.unit.remote.seen import until
from tests.unit.remote.sshd import Sshd, needs_sshd
from tests.unit.test_workspaces import session

pytestmark = [needs_sshd, pytest.mark.slow]
ELSEWHERE = {"host", "workspace", "lost_since"}


@pytest.fixture
def sshd(tmp_path, monkeypatch):
    """A host with a workspace, and an operator whose `ssh` finds it."""
    running = Sshd(tmp_path / "host")
    shop = running.home / "shop"
    shop.mkdir()
    for name, state in (("api", "ERROR"), ("plan", "SUCCESS")):
        (shop / f"{name}.handoff.json").write_text(handoff(f"shop.{name}"))
        (shop / f"{name}.return.md").write_text(returned(state, f"shop.{name}"))
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/env PATH="$AGENTWATCH_PATH" {" ".join(running.program)} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("AGENTWATCH_PATH", os.environ["PATH"])
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    live_in(tmp_path / "operator", monkeypatch)
    yield running
    running.stop()


def on_host(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run a command as it would run there, once the relays of commands before have ended."""
    until(lambda: not sshd.relays())
    with monkeypatch.context() as there:
        there.setenv("HOME", str(sshd.home))
        there.setenv("XDG_STATE_HOME", str(sshd.home / "state"))
        there.setenv("XDG_CONFIG_HOME", str(sshd.home / "config"))
        return run(words)


def stripped(document: Any) -> Any:
    """Without what says only where it was printed, and how long ago things were."""
    if isinstance(document, dict):
        return {key: stripped(one) for key, one in document.items() if key not in ELSEWHERE}
    return [stripped(one) for one in document] if isinstance(document, list) else document


def test_the_tree_is_the_hosts_and_decisions_are_recorded_there(sshd, monkeypatch, capsys):
    address = sshd.address("/~/shop").written
    assert run(["tree", "--json", address]) == 0
    (far,) = json.loads(capsys.readouterr().out)["workspaces"]
    assert (far["complete"], far["host"], {task["host"] for task in far["tasks"]}) == (True, "127.0.0.1", {"127.0.0.1"})
    assert far["workspace"] == str(sshd.home / "shop")
    assert on_host(sshd, monkeypatch, "tree", "--json", str(sshd.home / "shop")) == 0
    here = json.loads(capsys.readouterr().out)
    assert here["tasks"][0]["host"] is None
    assert stripped(far)["tasks"] == stripped(here)["tasks"]
    assert run(["pending", address]) == 0
    assert f"-- shop.api {address}" in capsys.readouterr().out.replace("'", "")

    Keys().create()
    decide = ["decide", "shop.api", address, "--retry", "--yes"]
    assert run(decide) == 2
    assert "127.0.0.1 does not trust your key: on it, `agentwatch keys trust ed25519:" in capsys.readouterr().err
    assert on_host(sshd, monkeypatch, "keys", "trust", Keys().show().text, "--name", "kim") == 0
    assert run(decide) == 0
    assert "in the ledger of “127.0.0.1”, once it has checked this" in capsys.readouterr().out
    assert on_host(sshd, monkeypatch, "wait", "shop.api", str(sshd.home / "shop"), "--timeout", "0") == 0
    assert json.loads(capsys.readouterr().out)["action"] == "retry"
    assert run(["log", address]) == 0
    far_log = capsys.readouterr().out
    assert "you decided: retry" in far_log
    # The same dates there, and somebody else who has decided.
    assert on_host(sshd, monkeypatch, "log", str(sshd.home / "shop")) == 0
    first, *others = far_log.replace("you decided: retry", "decided: retry by “kim”").splitlines()
    assert "first look: 2 tasks, 1 failed" in first
    assert capsys.readouterr().out.splitlines() == [first, *others]
    assert run(["tree", "--json", "--session", "a", address]) == 2
    assert "--session is about sessions of this machine" in capsys.readouterr().err


def test_a_host_that_cannot_be_reached_is_said_so(sshd, capsys):
    sshd.stop()
    address = sshd.address("/~/shop").written
    assert run(["tree", "--fail", address]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("127.0.0.1 was not read. ")
    assert "127.0.0.1 cannot be reached: " in said.err
    assert "refused" in said.err
    assert run(["decide", "shop.api", address, "--retry", "--yes"]) == 2
    assert not (Path(os.environ["HOME"]) / "state" / "agentwatch").exists()


def test_the_workspaces_of_a_host_share_a_connection(sshd, capsys):
    (sshd.home / "api").mkdir()
    (sshd.home / "api" / "a.handoff.json").write_text(handoff("a"))
    run(["tree", "--json", *(sshd.address(f"/~/{name}").written for name in ("shop", "api", "none"))])
    shop, api, none = json.loads(capsys.readouterr().out)["workspaces"]
    assert [[task["task_id"] for task in one["tasks"]] for one in (shop, api, none)] == [
        ["shop.api", "shop.plan"],
        ["a"],
        [],
    ]
    assert "no such directory" in none["problems"][0]["message"]
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
    # It is the one that its path names, too.
    assert run(["pending", address]) == 0
    assert f"-- shop.api {address}{sshd.home}/shop" in capsys.readouterr().out.replace("'", "")
