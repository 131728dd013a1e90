"""`agentwatch doctor -- CMD`: what an agent could do to decisions from inside its sandbox.

A small script runs in there, and its effects are looked at from outside. It is for `sh`, which every sandbox and nearly
every container has. What it says is believed only as far as it can be seen here: a container may have other files under
the same names, and writes of its own that nobody else sees.

Sockets are doors: by them a program in a sandbox has a program outside do what itself may not: type, start, mount. A
file system that is read-only does not close them: a program that sees such a socket and may write to it may connect.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.checkup import Result, bad, good, note, tell
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.envelope import VARIABLE
from agentwatch.decisions.errors import KeyMissingError, reason
from agentwatch.decisions.keys import PRIVATE, PUBLIC
from agentwatch.disk import Directory
from agentwatch.evidence.process import TooSlowError, run
from agentwatch.kept.answers import NAME
from agentwatch.place import state_directories
from agentwatch.text import clean, say

SECONDS: Final = 120.0
"""A container may have to be fetched first."""

_LONGEST: Final = 300
_KEPT: Final = 1 << 20
"""Bytes of what it prints: there are wrappers that print without end."""

SCRIPT: Final = r"""
sum() { if [ -f "$1" ]; then cksum < "$1" 2>/dev/null || echo; else echo; fi; }
node() { if [ -S "$1" ] && [ -w "$1" ]; then ls -di "$1" 2>/dev/null | { read -r number _; echo "$number"; }; fi; }
mark=$1 key=$(sum "$2") public=$(sum "$3"); shift 3
while [ "$1" != -- ]; do ( : > "$1" ) 2>/dev/null; shift; done; shift
for door; do number=$(node "$door"); doors="$doors ${number:-0}"; done
printf '\n%s{"key": "%s", "public": "%s", "doors": "%s"}\n' "$mark" "$key" "$public" "$doors"
"""
"""Arguments: a mark for the line that is printed, the private key, the public key; files to make, which are not there
yet; `--`; sockets, of which it tells the inodes, 0 if it has no use for one."""

_KNOCK_SECONDS: Final = 1.0

_TYPE: Final = "type into your terminal"
_START: Final = "start programs outside of the sandbox"
_MOUNT: Final = "start containers with your files in them"


class Door(NamedTuple):
    """A socket, and what a program that reaches it can do, as in “and so …”."""

    path: str
    use: str


class Reach(NamedTuple):
    """What the script could do, as seen from outside. `writes_workspace` is no harm: the agent works there.

    `enters_processes`: the operator's other processes, and by them all files as they lie outside.
    """

    reads_key: bool
    reads_public_key: bool
    writes_keys: bool
    writes_settings: bool
    writes_ledger: bool
    writes_answers: bool
    writes_workspace: bool
    enters_processes: bool
    doors: tuple[Door, ...] = ()


class ProbeError(Exception):
    """The script did not run in there, and why, in words."""


def examine_sandbox(workspace: Path, command: Sequence[str]) -> int:
    """Print what an agent that is started by `command` could do to decisions. Returns 0 if it cannot forge them."""
    desk = Desk(workspace)
    try:
        # The key file is what the agent is tried on, and the ledger is where it must not write.
        locked = desk.keys.is_encrypted()
        answers = state_directories() / NAME
        for place in (desk.ledger.directory, answers):
            Directory.make(place).close()
    except KeyMissingError as error:
        return tell([bad("probe", f"{error}: make it now with `agentwatch keys create`, then run this again")])
    except OSError as error:
        return tell([bad("probe", f"{desk.ledger.directory}: {reason(error)}; `agentwatch doctor` says more")])
    directory, ledger = desk.keys.directory, desk.ledger.directory
    try:
        found = doors(os.environ)
        reach = probe(command, keys=directory, ledger=ledger, answers=answers, workspace=workspace, doors=found)
    except ProbeError as error:
        return tell([bad("probe", f"the probe did not run in there: {error}")])
    say(json.dumps(reach._asdict() | {"doors": [door._asdict() for door in reach.doors]}))
    return tell(consequences(reach, desk, locked=locked))


def consequences(reach: Reach, desk: Desk, *, locked: bool) -> Iterator[Result]:
    """What follows from what an agent can reach, in plain words. `locked`: a passphrase protects the key."""
    about, keys, ledger = "protection", desk.keys.directory, desk.ledger.directory
    holes = []
    if reach.reads_key and not locked:
        cure = "set a passphrase with `agentwatch keys passphrase`, then replace the key with `agentwatch keys rotate`"
        holes.append(f"can read the key, and so decide in your name: {cure}")
    if reach.writes_keys:
        holes.append(f"can write where the keys are, and put its own there: keep {keys} out of its reach")
    if reach.writes_settings:
        hole = "can write the settings, which name programs that agentwatch runs"
        holes.append(f"{hole}: keep {keys.parent} out of its reach")
    if reach.writes_ledger:
        holes.append(f"can write the ledger, and take decisions away: keep {ledger} out of its reach")
    if reach.writes_answers:
        place = state_directories() / NAME
        holes.append(f"can write where the words of `tree` and `pending` are kept: keep {place} out of its reach")
    if reach.enters_processes and not reach.writes_ledger:
        cure = "give the sandbox process ids of its own (bwrap: --unshare-pid)"
        holes.append(f"can enter your other processes, and read and write all that they can: {cure}")
    holes += [f"can reach {door.path}, and so {door.use}: keep that socket out of its reach" for door in reach.doors]
    for hole in holes:
        yield bad(about, f"an agent in there {hole}")
    if not holes:
        yield good(about, "an agent in there cannot forge decisions")
    if reach.reads_key and locked:
        more = ", and keep the keyring, which holds it, out of its reach" if desk.keys.in_keyring else ""
        said = "it can read the key file, and only the passphrase keeps it from deciding: take a long one"
        yield note(about, f"{said}{more}")
    if not reach.reads_public_key:
        yield note("verifying", f"it cannot read the public key; start it with {VARIABLE}={desk.keys.show().text}")
    if not reach.writes_workspace:
        yield note("workspace", "it cannot write here under this path, so it can leave no receipts")


def probe(
    command: Sequence[str],
    *,
    keys: Path,
    ledger: Path,
    answers: Path,
    workspace: Path,
    doors: Sequence[Door] = (),
    seconds: float = SECONDS,
) -> Reach:
    """Run the script behind `command`, in the workspace. All paths are absolute, and all of them are there.

    `keys` is the directory of the keys. Raises ProbeError.
    """
    mark = f"agentwatch-probe-{secrets.token_hex(8)} "
    first = ["sh", "-c", SCRIPT, "sh", mark, str(keys / PRIVATE), str(keys / PUBLIC)]
    last = ["--", *(door.path for door in doors)]
    with _traces(mark, (keys, keys.parent, ledger, answers, workspace), ledger) as traces:
        inside = _told([*command, *first, *traces, *last], workspace, mark, seconds)
        writes_keys, writes_settings, writes_ledger, writes_answers, writes_workspace, enters_processes = map(
            os.path.lexists, traces.values()
        )
    try:
        here = _told([*first, *last], workspace, mark, seconds)
    except ProbeError:
        here = {"key": ""}
    if not here["key"]:
        raise ProbeError("`sh` and `cksum` are needed out here as well")
    numbers = zip(doors, inside["doors"].split(), here["doors"].split(), strict=False)
    return Reach(
        reads_key=inside["key"] == here["key"],
        reads_public_key=inside["public"] == here["public"],
        writes_keys=writes_keys,
        writes_settings=writes_settings,
        writes_ledger=writes_ledger,
        writes_answers=writes_answers,
        writes_workspace=writes_workspace,
        enters_processes=enters_processes,
        doors=tuple(door for door, number, there in numbers if number == there != "0"),
    )


@contextmanager
def _traces(mark: str, directories: Sequence[Path], ledger: Path) -> Iterator[dict[str, Path]]:
    """Files that the script tries to make, by the names that it has for them; whatever it made is removed.

    The last one lies in the ledger's directory as this process sees it: there for those that may look into processes.
    """
    name = f".{mark.strip()}"
    traces = {str(directory / name): directory / name for directory in directories}
    traces[f"/proc/{os.getpid()}/root{ledger / name}-by-process"] = ledger / f"{name}-by-process"
    try:
        yield traces
    finally:
        for trace in traces.values():
            with suppress(OSError):
                trace.unlink()


def _told(command: list[str], workspace: Path, mark: str, seconds: float) -> dict[str, str]:
    """What the script told, whatever the sandbox printed around it. Raises ProbeError."""
    try:
        ran = run(command, directory=str(workspace), seconds=seconds, max_bytes=_KEPT, keeps_end=True)
    except OSError as error:
        name = clean(command[0], _LONGEST) or "a command without a name"
        raise ProbeError(f"{name}: {error.strerror}") from error
    except TooSlowError as error:
        raise ProbeError(f"it did not end within {seconds:g} s") from error
    output = ran.text.decode("utf-8", "replace")
    for line in output.splitlines():
        if line.startswith(mark):
            with suppress(ValueError):
                told = json.loads(line.removeprefix(mark))
                if isinstance(told, dict) and {"key", "public", "doors"} <= told.keys():
                    return {name: str(value) for name, value in told.items()}
    words = ran.errors.decode("utf-8", "replace").strip() or output.strip() or "it said nothing"
    raise ProbeError(f"it ended with {ran.code}: {clean(words, _LONGEST)}")


def doors(environment: Mapping[str, str], fixed: str = "/") -> list[Door]:
    """Those that listen to the user of this process, each once.

    `environment` tells where most of them are, `fixed` is the root of the places that nothing names.
    """
    open_doors: dict[tuple[int, int], Door] = {}
    for path, use in _places(environment, Path(fixed)):
        # Nobody listens at those that programs left behind that were killed; others are not for us.
        with suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            status = path.stat()
            if stat.S_ISSOCK(status.st_mode):
                caller.settimeout(_KNOCK_SECONDS)
                caller.connect(os.fsencode(path))
                open_doors.setdefault((status.st_dev, status.st_ino), Door(str(path), use))
    return list(open_doors.values())


def _places(environment: Mapping[str, str], root: Path) -> Iterator[tuple[Path, str]]:
    user = os.getuid()
    runtime = Path(environment.get("XDG_RUNTIME_DIR") or root / f"run/user/{user}")
    # `$TMUX` is the socket, a process and a number. A session that agents could be typed into need not be this one.
    yield Path(environment.get("TMUX", "").rsplit(",", 2)[0] or root / "tmp"), _TYPE
    sessions = Path(environment.get("TMUX_TMPDIR") or root / "tmp") / f"tmux-{user}"
    with suppress(OSError):
        yield from ((path, _TYPE) for path in sorted(sessions.iterdir()))
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
