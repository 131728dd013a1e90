"""The sockets by which a program in a sandbox has a program outside do what itself may not: type, start, mount.

A file system that is read-only does not close them: a program that sees such a socket and may write to it may connect.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_KNOCK_SECONDS: Final = 1.0

_TYPE: Final = "type into your terminal"
_START: Final = "start programs outside of the sandbox"
_MOUNT: Final = "start containers with your files in them"


@dataclass(frozen=True, slots=True)
class Door:
    """A socket, and what a program that reaches it can do, as in “and so …”."""

    path: str
    use: str


def doors(environment: Mapping[str, str], fixed: str = "/") -> list[Door]:
    """Those that listen to the user of this process, each once.

    `environment` tells where most of them are, `fixed` is the root of the places that nothing names.
    """
    found: dict[tuple[int, int], Door] = {}
    for path, use in _places(environment, Path(fixed)):
        try:
            status = path.stat()
            if stat.S_ISSOCK(status.st_mode):
                _knock(path)
                found.setdefault((status.st_dev, status.st_ino), Door(str(path), use))
        except OSError:
            continue
    return list(found.values())


def _knock(path: Path) -> None:
    """Raises OSError if nobody listens, as programs that were killed leave it, or if it is not for us."""
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(_KNOCK_SECONDS)
        caller.connect(os.fsencode(path))


def _places(environment: Mapping[str, str], root: Path) -> Iterator[tuple[Path, str]]:
    user = os.getuid()
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or root / f"run/user/{user}")
    # `$TMUX` is the socket, a process and a number. A session that agents could be typed into need not be this one.
    yield Path(environment.get("TMUX", "").rsplit(",", 2)[0] or root / "tmp"), _TYPE
    sessions = Path(environment.get("TMUX_TMPDIR") or root / "tmp") / f"tmux-{user}"
    yield from ((path, _TYPE) for path in _below(sessions))
    yield Path(environment.get("KITTY_LISTEN_ON", "").removeprefix("unix:") or root), _TYPE
    yield Path(environment.get("WEZTERM_UNIX_SOCKET") or root), _TYPE
    yield from ((path, _START) for path in _buses(environment.get("DBUS_SESSION_BUS_ADDRESS", "")))
    yield runtime / "bus", _START
    yield runtime / "systemd" / "private", _START
    yield Path(environment.get("DOCKER_HOST", "").removeprefix("unix://") or root), _MOUNT
    for directory in (root / "run", root / "var" / "run", runtime):
        yield directory / "docker.sock", _MOUNT
        yield directory / "podman" / "podman.sock", _MOUNT


def _buses(addresses: str) -> Iterator[Path]:
    """The paths in the address of a D-Bus, `unix:path=/run/user/1000/bus,guid=…;…`."""
    for address in addresses.split(";"):
        kind, _, values = address.partition(":")
        for value in values.split(","):
            if kind == "unix" and value.startswith("path="):
                yield Path(value.removeprefix("path="))


def _below(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
