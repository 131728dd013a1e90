"""A decision is announced to OpenCode by one message that decides nothing, at most once, as the session's own agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.herald import Announcer, AnnouncingError

SESSION: dict[str, Any] = {"id": "ses_1", "agent": "plan", "model": {"id": "small", "providerID": "acme"}}


@dataclass
class Server:
    """A server with one session, on this computer. `found` are the bodies that were posted."""

    session: object = field(default_factory=lambda: SESSION)
    looks: int = 200
    takes: int = 204
    found: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        return [body["parts"][0]["text"] for body in self.found]


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.authorizations.add(self.headers["authorization"])
            self.answer(told.looks if self.path == "/session/ses_1" else 404, json.dumps(told.session).encode())

        def do_POST(self) -> None:
            assert self.path == "/session/ses_1/prompt_async"
            told.found.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.answer(told.takes, b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = listening.server_address[1]
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
    thread.start()
    yield told
    listening.shutdown()
    thread.join()
    listening.server_close()


@pytest.fixture
def announcer(server: Server, tmp_path: Path) -> Announcer:
    return Announcer(server.url, tmp_path, tmp_path, environment={})


def test_the_session_is_told_to_ask_as_the_agent_that_it_is(
    server: Server, announcer: Announcer, tmp_path: Path
) -> None:
    assert announcer.announce("ses_1", "shop.api", "d1") == "announced in its OpenCode session"
    (body,) = server.found
    assert (body["agent"], body["model"]) == ("plan", {"providerID": "acme", "modelID": "small"})
    assert f" wait -- shop.api {tmp_path}` in your shell" in server.texts[0]


def test_a_decision_is_announced_once_whoever_asks_again(server: Server, announcer: Announcer, tmp_path: Path) -> None:
    for one in (announcer, announcer, Announcer(server.url, tmp_path, tmp_path, environment={})):
        assert one.announce("ses_1", "shop.api", "d1") == "announced in its OpenCode session"
    announcer.announce("ses_1", "shop.api", "d2")
    assert len(server.found) == 2


def test_what_may_have_arrived_is_not_sent_again(server: Server, announcer: Announcer, tmp_path: Path) -> None:
    mark = tmp_path / "announced" / "d1.json"
    mark.parent.mkdir()
    mark.write_text('{"version": 1, "sent": false}')
    assert announcer.announce("ses_1", "shop.api", "d1") == "perhaps announced in its OpenCode session"
    assert server.found == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"looks": 404}, "has no session ses_1"),
        ({"looks": 401}, "asks for a password: set OPENCODE_SERVER_PASSWORD"),
        ({"looks": 302}, "does not say as which agent"),
        ({"session": {"id": "ses_1", "agent": None, "model": None}}, "does not say as which agent"),
        ({"session": [1]}, "does not say as which agent"),
    ],
)
def test_nothing_is_sent_to_a_server_that_does_not_know_the_session_well(
    server: Server, announcer: Announcer, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    for name, value in changes.items():
        setattr(server, name, value)
    with pytest.raises(AnnouncingError, match=words):
        announcer.announce("ses_1", "shop.api", "d1")
    assert server.found == []
    assert list((tmp_path / "announced").iterdir()) == []


@pytest.mark.parametrize("task_id", ["a b", "a`id`", "$(id)", "", "-x", "x\ny", "y" * 200])
def test_a_task_id_that_could_be_misread_in_a_shell_is_not_sent(
    server: Server, announcer: Announcer, task_id: str
) -> None:
    with pytest.raises(AnnouncingError, match="could be misread"):
        announcer.announce("ses_1", task_id, "d1")
    assert server.found == []


def test_the_servers_password_comes_from_its_own_variables(server: Server, tmp_path: Path) -> None:
    Announcer(server.url, tmp_path, tmp_path, environment={"OPENCODE_SERVER_PASSWORD": "x"}).announce(
        "ses_1", "a", "d1"
    )
    assert server.authorizations == {"Basic b3BlbmNvZGU6eA=="}
