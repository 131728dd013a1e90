"""`agentwatch fleet` and `agentwatch doctor --nats`, against a real nats-server."""

import subprocess
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.nats import Login
from agentwatch.remote.nats_accounts import host_of
from tests.broker import Broker, needed


@pytest.fixture
def keys(tmp_path, monkeypatch):
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
def broker(tmp_path, keys, capsys):
    """A server with the accounts that are printed for these keys."""
    assert run(["fleet", "config"]) == 0
    text = capsys.readouterr().out
    broker = Broker(tmp_path / "server", text[text.index("accounts {") :]).start()
    yield broker
    broker.stop()


def test_the_configuration_is_one_that_the_server_takes(keys, tmp_path, capsys):
    assert run(["fleet", "config"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "fleet.conf").write_text(text)
    done = subprocess.run(
        [needed(), "-t", "-c", str(tmp_path / "fleet.conf")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "# box" in text
    assert host_of(keys.others(Role.HOST)[0].public) in text


OWN = "      { nkey: UD3AH3KSJ2ZAN7SLQTEQEFA4QRQJKXZP5TSHIEL2F5W3NGF3GOZMGX57 }  # my laptop"


def test_what_was_written_in_the_file_stays_and_a_fault_changes_nothing(keys, tmp_path, capsys):
    needed()
    file, second = tmp_path / "fleet.conf", Keys(tmp_path / "second" / "agentwatch").create().public

    def write(*words: str) -> int:
        code = run(["fleet", "config", *words, str(file)])
        capsys.readouterr()
        return code

    assert write("--port", "4223") == 0
    assert 'listen: "0.0.0.0:4223"' in file.read_text()
    edited = file.read_text().replace("0.0.0.0", "127.0.0.1").replace("# you", f"# kim's own\n{OWN}")
    edited = edited.replace("accounts {", "# mine\naccounts {\n  SYS { users: [ { user: a, password: b } ] }")
    file.write_text(edited)
    assert (write(), file.read_text()) == (0, edited)
    # Another machine of the same name is refused, by its own it comes to those that are there.
    assert (write("--trust", f"box={second.text}"), file.read_text()) == (2, edited)
    assert write("--trust", f"box2={second.text}") == 0
    assert all(words in file.read_text() for words in (host_of(second), OWN, "# mine", "kim's own", "SYS {"))
    # A key that is trusted no more goes.
    assert run(["keys", "distrust", "box2", "--host"]) == 0
    assert (write(), file.read_text()) == (0, edited)
    broken = edited.replace(OWN, "{ {")
    file.write_text(broken)
    assert (write(), file.read_text()) == (2, broken)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_init_makes_the_store_and_makes_it_right(broker, keys, tmp_path, capsys, monkeypatch):
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
