"""Sockets that lead out of a sandbox: found where programs say that they are, and only where somebody listens."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agentwatch.commands.doctor_sandbox import doors


@pytest.fixture
def root() -> Iterator[Path]:
    # The name of a socket has 107 bytes at most.
    place = Path(tempfile.mkdtemp(prefix="doors-"))
    yield place
    shutil.rmtree(place)


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listen(sockets: ExitStack, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    made = sockets.enter_context(socket.socket(socket.AF_UNIX))
    made.bind(str(path))
    made.listen(8)


def test_every_place_that_is_known_is_looked_at(root: Path, sockets: ExitStack) -> None:
    user = os.getuid()
    uses = {
        "elsewhere/tmux": "type into your terminal",
        f"tmp/tmux-{user}/default": "type into your terminal",
        f"tmp/tmux-{user}/other": "type into your terminal",
        "kitty": "type into your terminal",
        "wezterm": "type into your terminal",
        "session-bus": "start programs outside of the sandbox",
        "runtime/bus": "start programs outside of the sandbox",
        "runtime/systemd/private": "start programs outside of the sandbox",
        "docker-of-mine": "start containers with your files in them",
        "run/docker.sock": "start containers with your files in them",
        "runtime/podman/podman.sock": "start containers with your files in them",
    }
    for place in uses:
        listen(sockets, root / place)
    environment = {
        "TMUX": f"{root}/elsewhere/tmux,1234,0",
        "KITTY_LISTEN_ON": f"unix:{root}/kitty",
        "WEZTERM_UNIX_SOCKET": f"{root}/wezterm",
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={root}/session-bus,guid=0123;tcp:host=localhost",
        "DOCKER_HOST": f"unix://{root}/docker-of-mine",
        "XDG_RUNTIME_DIR": f"{root}/runtime",
    }
    found = {door.path.removeprefix(f"{root}/"): door.use for door in doors(environment, str(root))}
    assert found == uses


def test_no_door_is_told_twice(root: Path, sockets: ExitStack) -> None:
    listen(sockets, root / "run" / "docker.sock")
    (root / "var").mkdir()
    (root / "var" / "run").symlink_to(root / "run")
    assert len(doors({"DOCKER_HOST": f"unix://{root}/run/docker.sock"}, str(root))) == 1


def test_what_is_no_socket_or_has_nobody_behind_it_is_no_door(root: Path, sockets: ExitStack) -> None:
    assert doors({}, str(root)) == []
    (root / "run").mkdir()
    (root / "run" / "docker.sock").write_text("a file")
    assert doors({}, str(root)) == []
    sessions = root / "tmp" / f"tmux-{os.getuid()}"
    with ExitStack() as gone:
        listen(gone, sessions / "default")
        assert len(doors({}, str(root))) == 1
    assert (sessions / "default").is_socket()
    assert doors({"TMUX": f"{sessions}/default,1,0", "DBUS_SESSION_BUS_ADDRESS": "unix:abstract=x"}, str(root)) == []
