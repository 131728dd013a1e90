"""Addresses are read strictly, and an error about one comes with an example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.config import load
from agentwatch.errors import ConfigError, UsageError
from agentwatch.remote.address import Address, parse, read_hosts


@pytest.mark.parametrize(
    ("text", "target", "path", "label"),
    [
        ("ssh://build1/srv/shop", "build1", "/srv/shop", "build1"),
        ("ssh://kim@build1:2222/srv/shop/", "kim@build1:2222", "/srv/shop", "build1"),
        ("SSH://dev.box_1/~/shop", "dev.box_1", "~/shop", "dev.box_1"),
        ("ssh://build1/~", "build1", "~", "build1"),
        ("ssh://kim@build1", "kim@build1", "", "build1"),
        ("ssh://build1/", "build1", "", "build1"),
        ("ssh://build1//srv/./my%20shop", "build1", "/srv/my shop", "build1"),
        ("ssh://build1/srv/50%25", "build1", "/srv/50%", "build1"),
        ("ssh://k.i-m+x@[fe80::1%eth0]:22/w", "k.i-m+x@[fe80::1%eth0]:22", "/w", "fe80::1%eth0"),
    ],
)
def test_an_address_of_ssh(text, target, path, label):
    address = parse(text)
    assert (address.kind, address.target, address.path, address.label) == ("ssh", target, path, label)
    assert parse(text, "mine").label == "mine"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nats://broker:4222/", ("broker:4222", "", "")),
        ("tls://broker:4222/build1", ("tls://broker:4222", "build1", "")),
        ("nats://10.0.0.1:4222/build1/my%20shop", ("10.0.0.1:4222", "build1", "my shop")),
    ],
)
def test_an_address_of_nats(text, parts):
    address = parse(text)
    assert (address.kind, (address.server, address.host, address.path)) == ("nats", parts)


@pytest.mark.parametrize(
    "text",
    [
        "http://build1/srv", "ssh://", "ssh:///srv", "ssh://kim:secret@build1/srv",
        "nats://kim@broker", "ssh://-oProxyCommand=x/srv", "ssh://-l@build1/srv", "ssh://build1;x/srv",
        "ssh://build1:ssh/srv", "ssh://build1:/srv", "ssh://build1:65536/srv", "ssh://build1:0/srv",
        "ssh://build1:٣/srv", "ssh://build1/~root/x", "ssh://build1/srv/../etc", "ssh://build1/srv/%2e%2e/etc",
        "ssh://build1/srv/%zz", "ssh://build1/srv/a%0ab", "ssh://build1/srv/%ff", "ssh://build1/srv\n",
        "nats://broker/build1/shop/x", "nats://broker/-x", "nats://", f"ssh://build1/{'x' * 5_000}",
    ],
)  # fmt: skip
def test_an_invalid_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"ssh://kim@build1/srv/shop|nats://broker"):
        parse(text)


@given(st.text(max_size=40))
def test_no_address_can_hold_an_option_of_ssh(text):
    try:
        address = parse(f"ssh://{text}")
    except UsageError:
        return
    assert isinstance(address, Address)
    assert not address.target.startswith("-")
    assert not address.host.startswith("-")
    assert address.target.isascii()
    assert not set(address.target) & set(" \t\n'\"$`;&|<>()\\")
    assert address.path.startswith(("/", "~")) or not address.path
    assert "\0" not in address.path


def test_the_settings_give_addresses_names(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "agentwatch" / "config.toml"
    file.parent.mkdir()
    file.write_text('[hosts]\nbuild1 = "ssh://b/w"\ntwo = ["ssh://c/w", "nats://n"]\n')
    hosts = read_hosts(load().hosts)
    assert [[one.written, one.label] for one in hosts["two"]] == [["ssh://c/w", "two"], ["nats://n", "two"]]
    assert str(hosts["build1"][0].place) == "/ssh:b:/w"
    for line, said in (
        ('here = "ssh://b/w"', "'here' cannot be the name of a host"),
        ('"-x" = "ssh://b/w"', "'-x' cannot be the name of a host"),
        ('build1 = "ssh://b/../c"', "this is no address"),
    ):
        file.write_text(f"[hosts]\n{line}\n")
        with pytest.raises(ConfigError, match=rf"config\.toml:2: .*{said}"):
            read_hosts(load().hosts)
