"""`agentwatch fleet` and `agentwatch doctor --nats`, against a real nats-server."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.nats import Login
from agentwatch.remote.nats_accounts import host_of
from tests.broker import Broker, needed


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Keys:
    """An operator's, who trusts one host."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "kim"))
    monkeypatch.delenv("NATS_CREDS", raising=False)
    monkeypatch.delenv("NATS_NKEY", raising=False)
    keys = Keys()
    keys.create()
    keys.trust_other(Role.HOST, host_keys(tmp_path).create().public, "box")
    return keys


def host_keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "box" / "agentwatch")


@pytest.fixture
def broker(tmp_path: Path, keys: Keys, capsys: pytest.CaptureFixture[str]) -> Iterator[Broker]:
    """A server with the accounts that are printed for these keys."""
    assert run(["fleet", "config"]) == 0
    text = capsys.readouterr().out
    broker = Broker(tmp_path / "server", text[text.index("accounts {") :]).start()
    yield broker
    broker.stop()


def test_the_configuration_is_one_that_the_server_takes(
    keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fleet", "config"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "fleet.conf").write_text(text)
    done = subprocess.run(
        [needed(), "-t", "-c", str(tmp_path / "fleet.conf")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "# box" in text
    assert host_of(keys.others(Role.HOST)[0].public) in text


def test_init_makes_the_store_and_makes_it_right(
    broker: Broker, keys: Keys, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["doctor", "--nats", broker.url]) == 1
    assert "✗ store: there is none" in capsys.readouterr().out
    with monkeypatch.context() as changed:
        changed.setattr("agentwatch.remote.nats_accounts._KEPT_SECONDS", 60.0)
        broker.make_store(Login(keys.load()))
    assert run(["doctor", "--nats", broker.url]) == 1
    assert "✗ store: not as it has to be (max_age)" in capsys.readouterr().out
    for _ in range(2):
        assert run(["fleet", "init", broker.url]) == 0
        assert capsys.readouterr().out.endswith(f"next, to watch: agentwatch {broker.url}\n")
    run(["doctor", "--nats", broker.url])
    assert "✓ store: as it has to be" in capsys.readouterr().out
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "eve"))
    assert run(["doctor", "--nats", broker.url]) == 1
    assert "does not know this key" in capsys.readouterr().out
