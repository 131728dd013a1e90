"""`agentwatch doctor --nats` on copies, and on what is on the disk: of three servers, and of one that tells how it is
set."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.cli.doctor_nats import _Found, _sync
from agentwatch.decisions.keys import Keys
from tests.broker import Broker


def free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        found = [held.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[Broker]]:
    """Three servers that keep copies for each other."""
    routes = free_ports(3)
    known = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
    servers = [
        Broker(
            tmp_path / f"server{number}",
            f"server_name: s{number}\ncluster {{ name: fleet, listen: 127.0.0.1:{port}, routes: [{known}] }}",
        )
        for number, port in enumerate(routes)
    ]
    for one in servers:
        one.start()
    yield servers
    for one in servers:
        one.stop()


@pytest.mark.slow
def test_three_servers_keep_copies_and_go_on_without_one_of_them(
    cluster: list[Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Keys().create()
    first, second, third = cluster
    until(lambda: run(["fleet", "init", first.url, "--replicas", "3", "--yes"]) == 0, capsys)
    run(["doctor", "--nats", second.url])
    told = capsys.readouterr().out
    assert "✓ streams: as they have to be" in told
    assert "✓ copies: 3 servers have them" in told
    third.kill()
    until(lambda: run(["fleet", "init", second.url, "--replicas", "3"]) == 0, capsys)
    assert capsys.readouterr().out.count("is there, as it has to be") >= 2


def until(is_so: Callable[[], bool], capsys: pytest.CaptureFixture[str]) -> None:
    """Servers take a moment to agree on who leads."""
    for _ in range(60):
        capsys.readouterr()
        if is_so():
            return
        threading.Event().wait(0.5)
    raise AssertionError(capsys.readouterr())


@pytest.fixture
def settings() -> Iterator[tuple[dict[str, object], str]]:
    """What a server tells of its settings, and where."""
    told: dict[str, object] = {}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"jetstream": {"config": told}}).encode())

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """It says nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield told, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.mark.parametrize(
    ("version", "has", "words"),
    [
        ("2.9.10", {}, "writes to its disk every two minutes, and cannot do otherwise"),
        ("2.12.8", {"sync_always": True}, "always: what it has confirmed is on the disk"),
        ("2.12.8", None, "http://127.0.0.1:1 does not answer; look whether its configuration has"),
        (
            "2.12.8",
            {"sync_interval": 120_000_000_000},
            "it writes to its disk every 120 s: set `sync_interval: always` in `jetstream { }`",
        ),
    ],
)
def test_whether_what_a_server_confirms_is_on_its_disk(
    settings: tuple[dict[str, object], str], version: str, has: dict[str, object] | None, words: str
) -> None:
    told, url = settings
    told.update(has or {})
    url = url if has is not None else "http://127.0.0.1:1"
    found = _Found(version, False, 1 << 20, 1.0, None, None, [], {})
    assert words in _sync("nats://127.0.0.1", url, found).found
