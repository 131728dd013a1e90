"""`agentwatch keys send`: hosts behind a real sshd trust the operator's key, or it is said why they do not."""

import pytest

from agentwatch.cli.keys import send
from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.address import parse
from tests.unit.remote.sshd import Sshd, needs_sshd


@pytest.fixture
def sshd(tmp_path):
    running = Sshd(tmp_path / "there")
    yield running
    running.stop()


@pytest.fixture
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "kim"))
    return Keys()


@needs_sshd
def test_hosts_trust_the_key_that_it_makes(sshd, keys, capsys):
    address = parse(f"ssh://127.0.0.1:{sshd.port}/~")
    assert send(keys, [address], "kim o'hara", sshd.program) == 0
    said, key = capsys.readouterr().out, keys.show()
    assert f"{address.target}: you may decide there, as kim o'hara\n" in said
    there = Keys(sshd.home / "config" / "agentwatch").others(Role.OPERATOR)
    assert [(one.name, one.public) for one in there] == [("kim o'hara", key)]
    # Once more changes nothing.
    assert send(keys, [address], "kim o'hara", sshd.program) == 0
    assert Keys(sshd.home / "config" / "agentwatch").others(Role.OPERATOR) == there


@needs_sshd
def test_a_host_that_cannot_be_told_is_named(sshd, keys, tmp_path, capsys):
    bare = Sshd(tmp_path / "bare", path="/usr/bin:/bin")
    try:
        program = (*sshd.program, "-o", f"IdentityFile {bare.place / 'user'}")
        addresses = [parse(f"ssh://127.0.0.1:{one.port}/~") for one in (bare, sshd)]
        assert send(keys, addresses, "kim", program) == 1
    finally:
        bare.stop()
    told = capsys.readouterr()
    assert f"{addresses[0].target}: agentwatch is not installed on {addresses[0].target}" in told.err
    assert f"{addresses[1].target}: you may decide there" in told.out
    assert "next" not in told.out
