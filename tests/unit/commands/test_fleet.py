"""Machines of one operator: `fleet` and `doctor --nats` with a real nats-server, `keys send` with a real sshd."""

import pytest
from nats.js.api import StreamConfig

from agentwatch.cli import run
from agentwatch.cli.keys import send_key
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from agentwatch.remote.nats import Login, ask_server
from agentwatch.remote.nats_accounts import bucket, host_of
from tests.broker import Broker, needed
from tests.unit.remote.sshd import Sshd, needs_sshd


@pytest.fixture
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "kim"))
    for variable in ("NATS_CREDS", "NATS_NKEY"):
        monkeypatch.delenv(variable, raising=False)
    return Keys()


@pytest.fixture
def trusting(keys, tmp_path):
    """Return the keys of an operator who trusts one host."""
    keys.create()
    keys.trust_key(Role.HOST, Keys(tmp_path / "box").create().public, "box")
    return keys


@pytest.fixture
def broker(tmp_path, trusting, capsys):
    """Run a server with the accounts that `fleet config` prints for these keys."""
    assert run(["fleet", "config"]) == 0
    text = capsys.readouterr().out
    broker = Broker(tmp_path / "server", text[text.index("accounts {") :]).start()
    yield broker
    broker.stop()


OWN = "      { nkey: UD3AH3KSJ2ZAN7SLQTEQEFA4QRQJKXZP5TSHIEL2F5W3NGF3GOZMGX57 }  # my laptop"


def test_edits_of_the_file_stay_and_an_error_changes_nothing(trusting, tmp_path, capsys):
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
    # Another machine with the same name is refused; with a name of its own it is added.
    assert (write("--trust", f"box={second.text}"), file.read_text()) == (2, edited)
    assert write("--trust", f"box2={second.text}") == 0
    assert all(words in file.read_text() for words in (host_of(second), OWN, "# mine", "kim's own", "SYS {"))
    # A key that is no longer trusted is removed.
    assert run(["keys", "distrust", "box2", "--host"]) == 0
    assert (write(), file.read_text()) == (0, edited)
    broken = edited.replace(OWN, "{ {")
    file.write_text(broken)
    assert (write(), file.read_text()) == (2, broken)
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_init_makes_the_store_and_makes_it_right(broker, trusting, tmp_path, capsys, monkeypatch):
    assert run(["doctor", "--nats", broker.url]) == 1
    assert "✗ store: there is none" in capsys.readouterr().out
    short = bucket() | {"max_age": 60.0}
    ask_server(broker.url, Login(trusting.load()), lambda client: client.jetstream().add_stream(StreamConfig(**short)))
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


@pytest.fixture
def sshd(tmp_path):
    running = Sshd(tmp_path / "there")
    yield running
    running.stop()


@needs_sshd
def test_hosts_trust_the_key_that_it_makes(sshd, keys, capsys):
    address = parse(f"ssh://127.0.0.1:{sshd.port}/~")
    assert send_key(keys, [address], "kim o'hara", sshd.program) == 0
    said, key = capsys.readouterr().out, keys.show()
    assert f"{address.target}: you may decide there, as kim o'hara\n" in said
    there = Keys(sshd.home / "config" / "agentwatch").known_keys(Role.OPERATOR)
    assert [(one.name, one.public) for one in there] == [("kim o'hara", key)]
    # Sending again changes nothing.
    assert send_key(keys, [address], "kim o'hara", sshd.program) == 0
    assert Keys(sshd.home / "config" / "agentwatch").known_keys(Role.OPERATOR) == there


@needs_sshd
def test_a_host_that_does_not_get_the_key_is_named(sshd, keys, tmp_path, capsys):
    bare = Sshd(tmp_path / "bare", path="/usr/bin:/bin")
    try:
        program = (*sshd.program, "-o", f"IdentityFile {bare.place / 'user'}")
        addresses = [parse(f"ssh://127.0.0.1:{one.port}/~") for one in (bare, sshd)]
        assert send_key(keys, addresses, "kim", program) == 1
    finally:
        bare.stop()
    told = capsys.readouterr()
    assert f"{addresses[0].target}: agentwatch is not installed on {addresses[0].target}" in told.err
    assert f"{addresses[1].target}: you may decide there" in told.out
    assert "next" not in told.out
