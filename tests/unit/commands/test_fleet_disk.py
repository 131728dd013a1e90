"""`agentwatch doctor --nats` on what is on the disk of a server that tells how it is set."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from agentwatch.cli.doctor_nats import _Found, _sync


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
