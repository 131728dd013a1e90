"""A server that encrypts, with a CA of one's own, and users whom a file of NATS names; and what is told where one of
these is not as it has to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from tests.broker import Broker, new_key
from tests.certificates import Authority, jwts
from tests.unit.remote.links import Heard

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys
from agentwatch.remote.nats import Login, NatsEnd, NatsHub, TroubleError, asked

DAY = timedelta(days=1)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """A CA that is trusted here."""
    made = Authority(tmp_path / "ca")
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return made


@contextmanager
def serving(place: Path, more: str, login: Login | None = None) -> Iterator[Broker]:
    broker = Broker(place / "broker", more).start()
    try:
        yield broker if login is None else broker.make_store(login)
    finally:
        broker.stop()


def carries(broker: Broker, login: Login) -> None:
    """A host tells something, and a screen decides."""
    host = new_key()
    end, link = NatsEnd(broker.url, host, login=login), NatsHub(broker.url, login).link(host.public)
    hears, shown = Heard(), Heard()
    end.start(hears.receive, hears.change)
    link.start(shown.receive, shown.change)
    try:
        hears.is_up()
        shown.is_up()
        end.send(b"observed", link.screen)
        shown.has(b"observed")
        link.send(b"decided")
        hears.has(b"decided")
    finally:
        end.stop()
        link.stop()


def why_not(server: str, login: Login | None = None) -> str:
    with pytest.raises(TroubleError) as error:
        asked(server, login or Login(), lambda client: client.flush())
    return str(error.value)


def test_over_tls_with_a_creds_file_a_host_tells_and_a_screen_decides(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, file = jwts(), tmp_path / "kim.creds"
    file.write_text(known.creds)
    file.chmod(0o600)
    login = Login(creds=str(file))
    with serving(tmp_path, f"{authority.certify().configuration}\n{known.configuration}", login) as broker:
        carries(broker, login)
        Keys().create()
        run(["doctor", "--nats", broker.url, "--creds", str(file)])
        assert "✓ store: as it has to be" in capsys.readouterr().out
        # An address that says that it encrypts does so, too.
        asked(broker.url.replace("nats://", "tls://"), login, lambda client: client.flush())


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"ends": -DAY / 24}, "certificate has expired"),
        ({"begins": DAY / 24}, "certificate is not yet valid"),
        ({"address": "127.0.0.2"}, "IP address mismatch"),
    ],
)
def test_a_certificate_that_is_not_right_is_told_with_what_to_do(
    authority: Authority, tmp_path: Path, wishes: dict[str, object], why: str
) -> None:
    with serving(tmp_path, authority.certify(**wishes).configuration) as broker:  # type: ignore[arg-type]
        told = why_not(broker.url)
        assert f"TLS with {broker.url} fails ({why}" in told
        assert "look at its certificate" in told


def test_a_server_that_does_not_encrypt_gets_nothing_where_the_address_says_that_it_does(tmp_path: Path) -> None:
    with serving(tmp_path, "") as broker:
        assert "does not encrypt, though its address says so" in why_not(broker.url.replace("nats://", "tls://"))


def test_credentials_that_cannot_be_read_or_are_none_are_named(tmp_path: Path) -> None:
    gone, junk, binary, broken = (tmp_path / name for name in ("gone.creds", "junk", "binary", "broken.creds"))
    junk.write_text("hello")
    binary.write_bytes(b"\xff\xfe")
    broken.write_text("-----BEGIN NATS USER JWT-----\nnonsense\n")
    with serving(tmp_path, "") as broker:
        assert why_not(broker.url, Login(creds=str(gone))) == (
            f"the credentials {gone} cannot be read: No such file or directory"
        )
        assert why_not(broker.url, Login(creds=str(tmp_path))) == (
            f"the credentials {tmp_path} cannot be read: Is a directory"
        )
        for file in (junk, binary, broken):
            assert why_not(broker.url, Login(creds=str(file))).startswith(f"{file} is neither a .creds file")
